//! Consistency of the split settings among themselves and with the resulting splits.

use super::Point;
use super::data::{contradiction, files, is_true, says, written};
use crate::data::{ClassCounts, DataPlan, Dataset, TargetPlan};
use crate::diagnostic::Diagnostic;
use crate::spec::data::{DataSource, FilesSpec, Format, MnistPart, SplitOrder};
use crate::spec::task::TaskKind;

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
        // Already refused.
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
    let wanted = empty.iter().filter(|(.., wanted)| *wanted).count();
    let is_windows = files(point).is_some_and(|files| files.roles.window.is_some());
    Some(
        contradiction(format!("the {name} split has no items"))
            .at(point.span(&format!("data.split.{key}")))
            .note(super::rules::sizes(data))
            .help(match (is_windows, data.input.vocabulary) {
                (true, _) => "a split needs at least as many consecutive rows as a window and its horizon; files, groups and dropped rows interrupt the sequence: choose a larger fraction or a shorter window",
                (false, Some(_)) => "a split needs more tokens than an item has: choose a larger fraction or a shorter `length`",
                (false, None) if data.num_train + data.num_valid + data.num_test < wanted => "there are fewer items than splits: use more data",
                (false, None) if split.group_by.is_some() => "whole groups are held out, and there are too few of them: group by a column with more groups",
                (false, None) if occur_once(data) => OCCUR_ONCE,
                (false, None) if name == "train" => "choose smaller fractions for the other splits",
                (false, None) => "choose a larger fraction for this split",
            }),
    )
}

/// What helps where each item is the only one of its class.
const OCCUR_ONCE: &str = "each class of the target occurs only once: if it is a quantity, save it as floats, or set `type = \"number\"` for its column in a table; otherwise choose another target";

/// Whether each item is the only one of its class.
fn occur_once(data: &DataPlan) -> bool {
    let counts = data.noticed.classes.iter().flat_map(|found| &found.counts);
    let mut counts = counts.map(|counts| counts.iter().sum::<u64>()).peekable();
    counts.peek().is_some() && counts.all(|num| num <= 1)
}

/// A test split has only one source.
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
            "`data.split.test` is set, but MNIST has a separate test part",
            "remove `test`, or set `part = \"train\"` to split only the 60,000 images",
        ),
        DataSource::Files(files) if !files.test_path.is_empty() => (
            "`data.split.test` and `data.test_path` are mutually exclusive",
            "remove one of them",
        ),
        DataSource::Files(_) if located(point).is_some_and(|files| !files.test_path.is_empty()) => {
            (
                "`data.split.test` is set, but the data has a separate test split",
                "remove `test`",
            )
        }
        _ => return None,
    };
    Some(
        contradiction(message)
            .at(point.span("data.split.test"))
            .help(help),
    )
}

/// The files, if they are split by name.
fn located<'a>(point: &'a Point<'_>) -> Option<&'a FilesSpec> {
    match &point.data?.dataset {
        Dataset::Files { files, .. } => Some(files),
        _ => None,
    }
}

/// A valid split has only one source.
pub fn one_valid_split(point: &Point<'_>) -> Option<Diagnostic> {
    let split = &point.spec.data.split;
    let has_files = matches!(
        &point.spec.data.source,
        DataSource::Files(files) if !files.valid_path.is_empty()
    );
    let is_split = !has_files && located(point).is_some_and(|files| !files.valid_path.is_empty());
    if is_split {
        let written = |key: &str| written(point, key);
        let key = match split.folds {
            Some(_) => "data.split.folds",
            None => "data.split.valid",
        };
        let span = written(key)?;
        return Some(
            contradiction(format!(
                "`{key}` is set, but the data has a separate valid split"
            ))
            .at(span)
            .help("remove it, or set `path` to the folder of the train split, to split that one"),
        );
    }
    let says = [
        (has_files, "data.valid_path", "sets the valid items"),
        (
            split.folds.is_some(),
            "data.split.folds",
            "makes one of the folds the valid split",
        ),
    ];
    let (_, other, what) = says.into_iter().find(|(is, ..)| *is)?;
    if let Some(span) = written(point, "data.split.valid") {
        let message = format!("`data.split.valid` is set, but `{other}` {what}");
        return Some(contradiction(message).at(span).help("remove one of them"));
    }
    (has_files && split.folds.is_some()).then(|| {
        contradiction("`data.split.folds` and `data.valid_path` are mutually exclusive")
            .at(point.span("data.split.folds"))
            .help("remove one of them")
    })
}

pub fn fold_is_there(point: &Point<'_>) -> Option<Diagnostic> {
    let split = &point.spec.data.split;
    let Some(folds) = split.folds else {
        // They are not known if another error prevented the data from being read.
        if written(point, "data.split.folds").is_some() {
            return None;
        }
        let span = written(point, "data.split.fold")?;
        return Some(
            contradiction("`data.split.fold` has no effect without `folds`")
                .at(span)
                .help("set `folds`, such as `folds = 5`"),
        );
    };
    if split.fold >= folds {
        let message = format!(
            "`data.split.fold` is {}, but the {folds} folds are numbered from 0",
            split.fold
        );
        return Some(
            contradiction(message)
                .at(point.span("data.split.fold"))
                .help(format!("use a fold from 0 to {}", folds - 1)),
        );
    }
    let data = point.data?;
    (data.num_train + data.num_valid < folds).then(|| {
        let num = data.num_train + data.num_valid;
        contradiction(format!("there are {folds} folds, but only {num} items"))
            .at(point.span("data.split.folds"))
            .help("use fewer folds")
    })
}

/// Ordering and grouping need columns, and randomly held-out items are not in order.
pub fn split_is_one_way(point: &Point<'_>) -> Option<Diagnostic> {
    let split = &point.spec.data.split;
    let is_files = matches!(point.spec.data.source, DataSource::Files(_));
    for (key, column) in [("order_by", &split.order_by), ("group_by", &split.group_by)] {
        if let (Some(column), false) = (column, is_files) {
            let message =
                format!("`{key}` is the column `{column}`, but this data has no named columns");
            return Some(
                contradiction(message)
                    .at(point.span(&format!("data.split.{key}")))
                    .help("remove it"),
            );
        }
    }
    let is_random = says(point, "data.split.order", "random");
    let has_windows = files(point).is_some_and(|files| files.roles.window.is_some());
    if split.order_by.is_some() && is_random && !(split.group_by.is_some() && has_windows) {
        let error =
            contradiction("`data.split.order` is \"random\", but `order_by` orders the items")
                .at(point.span("data.split.order"));
        return Some(match split.group_by {
            None => error.help("remove one of them"),
            Some(_) => error
                .note("randomly chosen groups need an order only for the windows within them")
                .help("remove `order` to hold out the last groups, or remove `order_by`"),
        });
    }
    let span = is_true(point, "data.split.stratified")?;
    let other = match (&split.group_by, split.order) {
        (Some(_), _) => "whole groups are held out",
        (None, SplitOrder::Time) => "the last items are held out",
        (None, SplitOrder::Random) => return None,
    };
    Some(
        contradiction(format!("`data.split.stratified` is true, but {other}"))
            .at(span)
            .help("remove `stratified`"),
    )
}

/// Each run can have a separate split only if splits are random.
pub fn splits_by_run_are_drawn(point: &Point<'_>) -> Option<Diagnostic> {
    let split = &point.spec.data.split;
    if !split.by_run {
        return None;
    }
    let (why, help) = if split.folds.is_some() {
        (
            "`folds` makes each part the valid split once",
            "remove one of them: folds cover all items, and each seed draws its own valid split",
        )
    } else if split.order == SplitOrder::Time {
        (
            "the last items are held out, whatever the seed",
            "remove `seed`",
        )
    } else if located(point).is_some_and(|files| !files.valid_path.is_empty()) {
        (
            "the data has a separate valid split",
            "remove `seed`, or remove the valid split, so that it is chosen at random",
        )
    } else {
        return None;
    };
    let message = format!("`data.split.seed` is \"run\", and {why}");
    let error = contradiction(message).at(point.span("data.split.seed"));
    Some(error.help(help))
}

/// Folds in time would be trained on items that are later than those they are evaluated on.
pub fn folds_are_not_in_time(point: &Point<'_>) -> Option<Diagnostic> {
    let split = &point.spec.data.split;
    split.folds?;
    let has_windows = files(point).is_some_and(|files| files.roles.window.is_some());
    let why = match (split.order, &split.order_by) {
        (SplitOrder::Time, Some(column)) => format!("the items are ordered by `{column}`"),
        (SplitOrder::Time, None) => "the items keep their order".to_owned(),
        (SplitOrder::Random, _) if has_windows && split.group_by.is_none() => {
            "windows are split in the order of their rows".to_owned()
        }
        _ => return None,
    };
    let error = contradiction(format!("`data.split.folds` is set, but {why}"))
        .at(point.span("data.split.folds"))
        .note("all folds except the last would train on items that come after the ones they are evaluated on")
        .help("hold out the last items: set `valid`, such as `valid = 0.2`, instead of `folds` and `fold`");
    Some(if has_windows {
        error.help("or set `group_by` to the column that identifies each series, without `order_by`, to fold whole series")
    } else {
        error.help("or remove it, if the order does not matter")
    })
}

/// Text is always split in order.
pub fn texts_are_in_order(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let is_running = files(point).is_some_and(|files| {
        let holds_texts = matches!(
            files.format,
            Format::Text | Format::Csv { .. } | Format::JsonLines | Format::Parquet
        );
        holds_texts && files.roles.target.is_empty()
    });
    let is_text = is_running && matches!(data.target, TargetPlan::Classes { .. });
    (is_text && says(point, "data.split.order", "random")).then(|| {
        contradiction("`data.split.order` is \"random\", but running text is split in order")
            .at(point.span("data.split.order"))
            .note("randomly held-out pieces of a text would leak through the text around them")
            .help("remove `order`, or set it to \"time\": the end of the text is held out")
    })
}

/// Some classes with the numbers of their held-out items.
fn held_out(names: &[String], counts: &[[u64; 3]], classes: &[usize]) -> String {
    const SHOWN: usize = 5;
    let mut shown: Vec<_> = classes
        .iter()
        .take(SHOWN)
        .map(|class| {
            let [_, valid, test] = counts[*class];
            let of = match (valid, test) {
                (0, test) => format!("{test} in test"),
                (valid, 0) => format!("{valid} in valid"),
                (valid, test) => format!("{valid} in valid, {test} in test"),
            };
            format!("`{}` ({of})", names[*class])
        })
        .collect();
    if classes.len() > SHOWN {
        shown.push(format!("and {} more", classes.len() - SHOWN));
    }
    shown.join(", ")
}

/// Held-out classes must occur in the train split.
pub fn classes_are_learned(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let task = point.spec.task.kind.unwrap_or(TaskKind::Classification);
    let found = data.noticed.classes.as_ref()?;
    if task != TaskKind::Classification || data.num_train == 0 || data.num_valid == 0 {
        return None;
    }
    let ClassCounts {
        column,
        names,
        counts,
    } = found;
    let at = match written(point, "data.target") {
        Some(span) => span,
        None => point.span("data.split"),
    };
    let occurs = |counts: &[u64; 3]| counts.iter().any(|num| *num > 0);
    let mut present = (0..counts.len()).filter(|class| occurs(&counts[*class]));
    if let (Some(only), None) = (present.next(), present.next()) {
        let message = format!("all items have the same class, `{}`", names[only]);
        return Some(
            Diagnostic::error("data", message)
                .at(at)
                .note(format!(
                    "`{column}` contains a single class, so there is nothing to learn"
                ))
                .help("add items of other classes, or choose another target"),
        );
    }
    let learned: u64 = counts.iter().filter(|c| c[0] > 0).map(|c| c[1]).sum();
    let unlearned = |counts: &[u64; 3]| counts[0] == 0 && counts[1] + counts[2] > 0;
    let unlearned: Vec<usize> = (0..counts.len())
        .filter(|at| unlearned(&counts[*at]))
        .collect();
    if unlearned.is_empty() {
        return None;
    }
    let shown = held_out(names, counts, &unlearned);
    let num = match unlearned.len() {
        1 => "1 class occurs".to_owned(),
        num => format!("{num} classes occur"),
    };
    let (diagnostic, message) = match learned {
        0 => (
            Diagnostic::error as fn(&'static str, String) -> Diagnostic,
            "the train and valid splits have no class in common".to_owned(),
        ),
        _ => (
            Diagnostic::warning as fn(&'static str, String) -> Diagnostic,
            format!(
                "{num} only in held-out items and never in the train split: {}",
                shown
            ),
        ),
    };
    let diagnostic = diagnostic("unlearned-class", message).at(match learned {
        0 => point.span("data.split"),
        _ => at,
    });
    let diagnostic = match learned {
        0 => diagnostic.note(format!("never in the train split: {shown}")),
        _ => diagnostic,
    };
    let split = &point.spec.data.split;
    if occur_once(data) {
        return Some(diagnostic.help(OCCUR_ONCE));
    }
    Some(match (split.order, &split.group_by, split.folds) {
        (SplitOrder::Time, None, _) => diagnostic.help("the file may be sorted by class: remove `order` or `order_by`, or hold out more or less"),
        (_, Some(_), _) => diagnostic.help("whole groups are held out: group by a column whose groups share classes, or choose another `seed`"),
        (_, None, Some(_)) => diagnostic.help("a class with a single item occurs in only one fold: add more items of it, or remove it"),
        _ => diagnostic.help("add such items to the train split, or remove them"),
    })
}
