//! Consistency of the data settings among themselves and with the content of the data, except for splits.

use super::Point;
use crate::data::{DataPlan, InputPart, TargetPlan};
use crate::diagnostic::Diagnostic;
use crate::spec::data::{
    DataSource, FilesSpec, Format, InputEncode, Scale, ScaleAxis, TokenizerKind,
};
use crate::spec::document::Value;
use crate::spec::section::Choice;

/// The user's files, if the data comes from files.
pub(super) fn files<'a>(point: &'a Point<'_>) -> Option<&'a FilesSpec> {
    match &point.spec.data.source {
        DataSource::Files(files) => Some(files),
        _ => None,
    }
}

/// Whether a key is set to a given text.
pub(super) fn says(point: &Point<'_>, path: &str, text: &str) -> bool {
    let value = point.root.at(path).map(|entry| &entry.node.value);
    value == Some(&Value::Str(text.into()))
}

pub(super) fn contradiction(message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("contradiction", message)
}

/// Where a key is set, if it is.
pub(super) fn written(point: &Point<'_>, path: &str) -> Option<crate::diagnostic::Span> {
    Some(point.root.at(path)?.node.span)
}

/// Where a key is set to `true`.
pub(super) fn is_true(point: &Point<'_>, path: &str) -> Option<crate::diagnostic::Span> {
    let entry = point.root.at(path)?;
    (entry.node.value == Value::Bool(true)).then_some(entry.node.span)
}

/// `scale_axis` where nothing is scaled by it, or where black would differ within a channel.
fn scale_axis_fits(point: &Point<'_>, data: &DataPlan) -> Option<Diagnostic> {
    let at = written(point, "data.scale_axis")?;
    let spec = &point.spec.data;
    let has_windows = files(point).is_some_and(|files| files.roles.window.is_some());
    let parts = &data.input.parts;
    let is_array = |part: &InputPart| part.vocabulary.is_none() && part.shape.len() > 1;
    let why = if !parts.is_empty() {
        if parts.iter().any(is_array) && spec.scale.is_measured() {
            return matches!(spec.scale_axis, ScaleAxis::Along(_)).then(|| {
                contradiction("`scale_axis` is an axis of one input, but there are several")
                    .at(at)
                    .help("remove `scale_axis`, so that each array is scaled as usual for its shape, or set \"all\"")
            });
        }
        "no input is a scaled array"
    } else if data.input.vocabulary.is_some() {
        "the items are tokens"
    } else if data.input.shape.len() < 2 || has_windows {
        "the items are rows, whose columns are scaled separately"
    } else if !spec.scale.is_measured() {
        "`scale` measures nothing over the data"
    } else {
        let is_within = data.input.shape.len() == 3 && data.scale_axis.is_some_and(|at| at > 0);
        return (is_within && spec.augment.is_some()).then(|| {
            let message =
                "`[data.augment]` moves pixels to positions that `scale_axis` scales differently";
            contradiction(message)
                .at(at)
                .help("set `scale_axis = 0`, or \"all\"")
        });
    };
    let message = format!("`data.scale_axis` has no effect: {why}");
    Some(contradiction(&message).at(at).help("remove `scale_axis`"))
}

/// `horizon` of windows that have no target.
fn horizon_fits(point: &Point<'_>) -> Option<Diagnostic> {
    let at = written(point, "data.window.horizon")?;
    // Without a task, the target is missing.
    written(point, "task.type")?;
    let window = files(point)?.roles.window.as_ref()?;
    (window.horizon == 0).then(|| {
        contradiction("`data.window.horizon` has no effect: the data has no target")
            .at(at)
            .help("remove `horizon`, or name the column to predict in `target`")
    })
}

/// Whether an input may be a text.
fn has_texts(point: &Point<'_>, data: &DataPlan) -> bool {
    let embedded = |number: usize| {
        let input = files(point).and_then(|files| files.roles.inputs.get(number));
        input.is_some_and(|input| input.encode == InputEncode::Embedding)
    };
    let mut parts = data.input.parts.iter().enumerate();
    data.input.vocabulary.is_some()
        || parts.any(|(number, part)| part.vocabulary.is_some() && !embedded(number))
}

/// Each named input is taken by a layer.
pub fn inputs_are_taken(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let parts = &data.input.parts;
    let network = point.network?;
    let inputs = || network.layers.iter().flat_map(|layer| &layer.inputs);
    let is_taken = |number: usize| inputs().any(|input| input.part == Some(number));
    let number = (0..parts.len()).find(|number| !is_taken(*number))?;
    let name = &parts[number].name;
    Some(
        contradiction(format!("no layer takes the input `{name}`"))
            .at(point.span(&format!("data.inputs[{number}].name")))
            .help(
                "name it in the `inputs` of a layer, or remove it and list its columns in `ignore`",
            ),
    )
}

/// Settings of tokens that contradict the tokenizer.
fn tokens_fit(point: &Point<'_>) -> Option<Diagnostic> {
    let tokens = &files(point)?.tokens;
    let name = tokens.tokenizer.name();
    let is_file = tokens.tokenizer == TokenizerKind::File;
    if let (Some(at), false) = (written(point, "data.tokens.path"), is_file) {
        let message = format!("`path` has no effect: the tokenizer is \"{name}\"");
        let help = "remove `tokenizer` to use the file, or remove `path`";
        return Some(contradiction(message).at(at).help(help));
    }
    let fixed = [
        ("max_vocabulary", is_file, "the file has its vocabulary"),
        (
            "lowercase",
            tokens.tokenizer.is_of_subwords(),
            "subwords are of the letters that their tokenizer makes of a text",
        ),
    ];
    if let (Some(_), true) = (tokens.masked, files(point)?.format.has_columns()) {
        let mut unused = ["stride", "separator"].into_iter();
        let unused = unused.find_map(|key| {
            let at = written(point, &format!("data.tokens.{key}"))?;
            let message =
                format!("`{key}` has no effect: with `masked`, the rows of a table are the items");
            let help = format!("remove `{key}`, or use files of `type = \"text\"`");
            Some(contradiction(message).at(at).help(help))
        });
        if unused.is_some() {
            return unused;
        }
    }
    fixed.into_iter().find_map(|(key, is_fixed, why)| {
        let at = written(point, &format!("data.tokens.{key}")).filter(|_| is_fixed)?;
        let message = format!("`{key}` has no effect on the tokenizer \"{name}\": {why}");
        Some(
            contradiction(message)
                .at(at)
                .help(format!("remove `{key}`")),
        )
    })
}

/// Settings that have no effect on this data.
pub fn settings_fit(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    if let (Some(span), true, true) = (
        written(point, "data.scale"),
        data.input.is_all_indices(),
        point.spec.data.scale != Scale::None,
    ) {
        return Some(
            contradiction("`data.scale` has no effect on tokens")
                .at(span)
                .help("remove `scale`"),
        );
    }
    if let Some(wrong) = horizon_fits(point) {
        return Some(wrong);
    }
    if let Some(wrong) = scale_axis_fits(point, data) {
        return Some(wrong);
    }
    let says_something = point.root.at("data.tokens").is_some_and(
        |entry| matches!(&entry.node.value, Value::Table(table) if !table.entries.is_empty()),
    );
    if says_something && !has_texts(point, data) {
        let error = contradiction("`[data.tokens]` is set, but the items are numbers")
            .at(point.root.span_at("data.tokens").unwrap_or_default());
        return Some(if data.input.parts.is_empty() {
            error
                .note("a text column is tokenized only when it is the only feature")
                .help("list the text column in `features`, or remove `[data.tokens]`")
        } else {
            error
                .note("a text column is tokenized only in an input of its own")
                .help("give the text column an input of its own, or remove `[data.tokens]`")
        });
    }
    if let Some(wrong) = tokens_fit(point) {
        return Some(wrong);
    }
    if let Some(wrong) = targets_are_numbers(point, data) {
        return Some(wrong);
    }
    if let Some(span) = is_true(point, "data.split.stratified")
        && !matches!(data.target, TargetPlan::Class { .. })
    {
        return Some(
            contradiction(
                "`data.split.stratified` is true, but the items do not have one class each",
            )
            .at(span)
            .help("remove `stratified`"),
        );
    }
    None
}

/// Classes are neither scaled nor transformed.
fn targets_are_numbers(point: &Point<'_>, data: &DataPlan) -> Option<Diagnostic> {
    let roles = &files(point)?.roles;
    let mut targets = [&data.target].into_iter().chain(&data.more_targets);
    if targets.any(|target| matches!(target, TargetPlan::Values { .. })) {
        return None;
    }
    let keys = [
        ("target_scale", "scaled", roles.target_scale != Scale::None),
        (
            "target_transform",
            "transformed",
            !roles.target_transform.is_none(),
        ),
    ];
    let mut asked = keys.into_iter().filter(|(_, _, is_asked)| *is_asked);
    asked.find_map(|(key, what, _)| {
        let span = written(point, &format!("data.{key}"))?;
        let message = format!(
            "`data.{key}` has no effect: the targets are {}",
            data.target.show()
        );
        let help = format!(
            "remove `{key}`; if the numbers are not classes, set `type = \"number\"` for the target in `[[data.columns]]`"
        );
        let note = format!("only numeric targets can be {what}, not classes or labels");
        Some(contradiction(message).at(span).note(note).help(help))
    })
}

/// Targets that the file must set.
pub fn target_is_named(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let is_adversarial = point.spec.strategy.adversarial().is_some();
    let is_asked = is_adversarial || point.root.at("task.type").is_some();
    (data.target == TargetPlan::None && !is_asked).then(|| {
        Diagnostic::error(
            "data",
            "the data has no target",
        )
        .at(point.span("data.type"))
        .help(match files(point).map(|files| &files.format) {
            None => "use a data source with targets",
            Some(Format::Npy { .. } | Format::Idx { .. }) => "set `target_path` to the file of targets",
            Some(Format::ImageFolder { .. }) => "set `target_path` to the folder of masks, or use one folder of images per class",
            _ => "set `target` to the column to predict",
        })
        .help("or add `[task]` with `type = \"autoencoding\"` to reconstruct the items themselves")
    })
}

/// Images have no more colors than this.
const MOST_COLORS: usize = 4;

/// Augmentation needs images, and at least one change.
pub fn augment_changes_pictures(point: &Point<'_>) -> Option<Diagnostic> {
    let augment = point.spec.data.augment.as_ref()?;
    let data = point.data?;
    let [channels, height, width] = data.input.shape[..] else {
        let message = format!(
            "`[data.augment]` needs images, but the items have {}",
            data.input.show_shape()
        );
        let refused = contradiction(message).at(point.span("data.augment"));
        return Some(match &data.input.parts[..] {
            [only] if only.shape.len() == 3 => refused
                .note("inputs with names are not augmented")
                .help("replace `[[data.inputs]]` by its column in `features`, or remove `[data.augment]`"),
            _ => refused
                .note("an image has shape [channels, height, width]")
                .help("remove `[data.augment]`"),
        });
    };
    if augment.crop >= height.min(width) {
        let message = format!(
            "`data.augment.crop` is {}, but the images have {height} x {width} pixels",
            augment.crop
        );
        return Some(
            contradiction(message)
                .at(point.span("data.augment.crop"))
                .help("use fewer pixels: an eighth of the side is usual"),
        );
    }
    if channels.min(height) > MOST_COLORS && matches!(width, 1 | 3 | 4) {
        let message = format!(
            "`[data.augment]` takes items of shape [{channels}, {height}, {width}] for images of {height} x {width} pixels with {channels} channels"
        );
        let help = "if their channels come last, transpose the array with NumPy: `x.transpose(0, 3, 1, 2)`";
        let warning = Diagnostic::warning("shape", message).at(point.span("data.augment"));
        return Some(warning.help(help));
    }
    let numbers = [
        augment.flip,
        augment.flip_vertical,
        augment.shift,
        augment.rotate,
        augment.erase,
    ];
    let is_used = augment.mixes() || augment.changes_colors() || augment.crop > 0;
    let is_used = is_used || augment.resized_crop.is_some();
    (!is_used && numbers.iter().all(|number| *number == 0.0)).then(|| {
        Diagnostic::warning("no-effect", "`[data.augment]` is empty")
            .at(point.span("data.augment"))
            .help("set for example `flip = 0.5`, or remove the table")
    })
}
