//! What the file says of its data, against itself and against what the data holds.

use super::Point;
use crate::data::TargetPlan;
use crate::diagnostic::Diagnostic;
use crate::spec::data::{DataSource, MnistPart, Scale, SplitOrder};
use crate::spec::document::Value;

fn contradiction(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("contradiction", message)
}

/// Where a key is written, if it is.
fn written(point: &Point<'_>, path: &str) -> Option<crate::diagnostic::Span> {
    Some(point.root.at(path)?.node.span)
}

/// Where a key is written as `true`.
fn is_true(point: &Point<'_>, path: &str) -> Option<crate::diagnostic::Span> {
    let entry = point.root.at(path)?;
    (entry.node.value == Value::Bool(true)).then_some(entry.node.span)
}

pub fn split_leaves_items(point: &Point<'_>) -> Option<Diagnostic> {
    let split = &point.spec.data.split;
    if split.folds.is_none() && split.valid + split.test >= 1.0 {
        let message = format!(
            "`data.split` holds out {} for valid and {} for test, which leaves nothing to train on",
            split.valid, split.test
        );
        return Some(
            contradiction(message)
                .at(point.span("data.split.valid"))
                .help("the two fractions must add up to less than 1"),
        );
    }
    let data = point.data?;
    if split.folds.is_some_and(|folds| split.fold >= folds) {
        // Refused by itself.
        return None;
    }
    let empty = [
        ("train", data.num_train, true),
        ("valid", data.num_valid, true),
        ("test", data.num_test, split.test > 0.0),
    ];
    let (name, _, _) = empty
        .into_iter()
        .find(|(_, num, wanted)| *wanted && *num == 0)?;
    let key = if name == "train" { "valid" } else { name };
    let is_windows = matches!(
        &point.spec.data.source,
        DataSource::Files(files) if files.roles.window.is_some()
    );
    Some(
        contradiction(format!("the {name} split has no items"))
            .at(point.span(&format!("data.split.{key}")))
            .note(super::rules::sizes(data))
            .help(match (is_windows, data.input.vocabulary) {
                (true, _) => "a split needs as many rows as a window and its horizon: choose a larger fraction or a shorter window",
                (false, Some(_)) => "a split needs more tokens than an item has: choose a larger fraction or a shorter `length`",
                (false, None) => "choose a larger fraction for it",
            }),
    )
}

/// A test split comes from one place alone.
pub fn one_test_split(point: &Point<'_>) -> Option<Diagnostic> {
    let split = &point.spec.data.split;
    if split.test == 0.0 {
        return None;
    }
    let (message, help) = match &point.spec.data.source {
        DataSource::Mnist {
            part: MnistPart::All,
            ..
        } => (
            "`data.split.test` is set, and MNIST has a test part of its own",
            "remove `test`, or write `part = \"train\"` to split the 60,000 images alone",
        ),
        DataSource::Files(files) if !files.test_path.is_empty() => (
            "`data.split.test` is set, and `data.test_path` names the test items",
            "remove one of them",
        ),
        _ => return None,
    };
    Some(
        contradiction(message)
            .at(point.span("data.split.test"))
            .help(help),
    )
}

/// A valid split comes from one place alone.
pub fn one_valid_split(point: &Point<'_>) -> Option<Diagnostic> {
    let split = &point.spec.data.split;
    let has_files = matches!(
        &point.spec.data.source,
        DataSource::Files(files) if !files.valid_path.is_empty()
    );
    let says = [
        (has_files, "data.valid_path", "names the valid items"),
        (
            split.folds.is_some(),
            "data.split.folds",
            "makes one of the folds the valid split",
        ),
    ];
    let (_, other, what) = says.into_iter().find(|(is, ..)| *is)?;
    if let Some(span) = written(point, "data.split.valid") {
        let message = format!("`data.split.valid` is set, and `{other}` {what}");
        return Some(contradiction(message).at(span).help("remove one of them"));
    }
    (has_files && split.folds.is_some()).then(|| {
        contradiction("`data.split.folds` is set, and `data.valid_path` names the valid items")
            .at(point.span("data.split.folds"))
            .help("remove one of them")
    })
}

pub fn fold_is_there(point: &Point<'_>) -> Option<Diagnostic> {
    let split = &point.spec.data.split;
    let Some(folds) = split.folds else {
        let span = written(point, "data.split.fold")?;
        return Some(
            contradiction("`data.split.fold` is set, and there are no folds")
                .at(span)
                .help("write `folds`, such as `folds = 5`"),
        );
    };
    if split.fold >= folds {
        let message = format!(
            "`data.split.fold` is {}, and the {folds} folds count from 0",
            split.fold
        );
        return Some(
            contradiction(message)
                .at(point.span("data.split.fold"))
                .help(format!("write a fold from 0 to {}", folds - 1)),
        );
    }
    let data = point.data?;
    (data.num_train + data.num_valid < folds).then(|| {
        let num = data.num_train + data.num_valid;
        contradiction(format!("there are {folds} folds for {num} items"))
            .at(point.span("data.split.folds"))
            .help("choose fewer folds")
    })
}

/// What orders and groups is a column, and what is drawn at random is not in order.
pub fn split_is_one_way(point: &Point<'_>) -> Option<Diagnostic> {
    let split = &point.spec.data.split;
    let is_files = matches!(point.spec.data.source, DataSource::Files(_));
    for (key, column) in [("order_by", &split.order_by), ("group_by", &split.group_by)] {
        if let (Some(column), false) = (column, is_files) {
            let message =
                format!("`{key}` names the column `{column}`, and this data has no named columns");
            return Some(
                contradiction(message)
                    .at(point.span(&format!("data.split.{key}")))
                    .help("remove it"),
            );
        }
    }
    let order = point
        .root
        .at("data.split.order")
        .map(|entry| &entry.node.value);
    if split.order_by.is_some() && order == Some(&Value::Str("random".into())) {
        return Some(
            contradiction("`data.split.order` is \"random\", and `order_by` orders the items")
                .at(point.span("data.split.order"))
                .help("remove one of them"),
        );
    }
    let span = is_true(point, "data.split.stratified")?;
    let other = match (&split.group_by, split.order) {
        (Some(_), _) => "whole groups are held out",
        (None, SplitOrder::Time) => "the last items are held out",
        (None, SplitOrder::Random) => return None,
    };
    Some(
        contradiction(format!("`data.split.stratified` is true, and {other}"))
            .at(span)
            .help("remove `stratified`"),
    )
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
        .help("name the column or the files of targets in `target` or `target_path`")
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
