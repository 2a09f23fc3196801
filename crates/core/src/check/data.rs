//! What the file says of its data, against itself and against what the data holds, but for its splits.

use super::Point;
use crate::data::TargetPlan;
use crate::diagnostic::Diagnostic;
use crate::spec::data::{DataSource, FilesSpec, Format, Scale};
use crate::spec::document::Value;

/// The user's files, where the data comes from those.
pub(super) fn files<'a>(point: &'a Point<'_>) -> Option<&'a FilesSpec> {
    match &point.spec.data.source {
        DataSource::Files(files) => Some(files),
        _ => None,
    }
}

/// Whether a key is written with some text.
pub(super) fn says(point: &Point<'_>, path: &str, text: &str) -> bool {
    let value = point.root.at(path).map(|entry| &entry.node.value);
    value == Some(&Value::Str(text.into()))
}

pub(super) fn contradiction(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("contradiction", message)
}

/// Where a key is written, if it is.
pub(super) fn written(point: &Point<'_>, path: &str) -> Option<crate::diagnostic::Span> {
    Some(point.root.at(path)?.node.span)
}

/// Where a key is written as `true`.
pub(super) fn is_true(point: &Point<'_>, path: &str) -> Option<crate::diagnostic::Span> {
    let entry = point.root.at(path)?;
    (entry.node.value == Value::Bool(true)).then_some(entry.node.span)
}

/// Settings that the data has no use for, where they are written.
pub fn settings_fit(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    if let (Some(span), Some(_), true) = (
        written(point, "data.scale"),
        data.input.vocabulary,
        point.spec.data.scale != Scale::None,
    ) {
        return Some(
            contradiction("`data.scale` is written, and the items are tokens")
                .at(span)
                .help("remove `scale`"),
        );
    }
    let says_something = point.root.at("data.tokens").is_some_and(
        |entry| matches!(&entry.node.value, Value::Table(table) if !table.entries.is_empty()),
    );
    if says_something && data.input.vocabulary.is_none() {
        return Some(
            contradiction("`[data.tokens]` is written, and the items are numbers")
                .at(point.root.span_at("data.tokens").unwrap_or_default())
                .note("a column of texts becomes tokens when it is the only feature")
                .help("name the column of texts in `features`, or remove `[data.tokens]`"),
        );
    }
    let is_scaled = files(point).is_some_and(|files| files.roles.target_scale != Scale::None);
    if let (Some(span), true) = (written(point, "data.target_scale"), is_scaled)
        && !matches!(data.target, TargetPlan::Values { .. })
    {
        let message = format!(
            "`data.target_scale` is written, and there are {}",
            data.target.show()
        );
        return Some(
            contradiction(message)
                .at(span)
                .note("targets that are numbers are scaled, classes and labels are not")
                .help("remove `target_scale`; or, where the numbers are no classes, write `type = \"number\"` for the target in `[[data.columns]]`"),
        );
    }
    if let Some(span) = is_true(point, "data.split.stratified")
        && !matches!(data.target, TargetPlan::Class { .. })
    {
        return Some(
            contradiction("`data.split.stratified` is true, and the items have no class each")
                .at(span)
                .help("remove `stratified`"),
        );
    }
    None
}

/// Whether there is something to learn was asked of the file.
pub fn target_is_named(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let is_asked = point.root.at("task.type").is_some();
    (data.target == TargetPlan::None && !is_asked).then(|| {
        Diagnostic::error(
            "data",
            "nothing says what is to be learned: the items have no target",
        )
        .at(point.span("data.type"))
        .help(match files(point).map(|files| &files.format) {
            Some(Format::Npy { .. } | Format::Idx { .. }) => "name the file of targets in `target_path`",
            Some(Format::ImageFolder { .. }) => "name the folder of masks in `target_path`, or give a folder of pictures for each class",
            _ => "name the column of targets in `target`",
        })
        .help("or write `[task]` with `type = \"autoencoding\"` to learn the items themselves")
    })
}

/// Changes of pictures need pictures, and something to change.
pub fn augment_changes_pictures(point: &Point<'_>) -> Option<Diagnostic> {
    let augment = point.spec.data.augment.as_ref()?;
    let data = point.data?;
    let [_, height, width] = data.input.shape[..] else {
        let message = format!(
            "`[data.augment]` changes pictures, and the items are of shape {:?}",
            data.input.shape
        );
        return Some(
            contradiction(message)
                .at(point.span("data.augment"))
                .note("a picture is of shape [channels, height, width]")
                .help("remove `[data.augment]`"),
        );
    };
    if augment.crop >= height.min(width) {
        let message = format!(
            "`data.augment.crop` is {}, and the pictures are of {height} x {width} pixels",
            augment.crop
        );
        return Some(
            contradiction(message)
                .at(point.span("data.augment.crop"))
                .help("write fewer pixels: an eighth of the side is usual"),
        );
    }
    let numbers = [
        augment.flip,
        augment.flip_vertical,
        augment.shift,
        augment.rotate,
        augment.erase,
    ];
    (augment.crop == 0 && numbers.iter().all(|number| *number == 0.0)).then(|| {
        Diagnostic::warning("no-effect", "`[data.augment]` changes nothing")
            .at(point.span("data.augment"))
            .help("write for example `flip = 0.5`, or remove the table")
    })
}
