//! Predictions as rows: the columns by task, and the cells of an item.

use super::write::Layout;
use super::{Meaning, Prediction};
use crate::spec::task::TaskKind;

/// The maximum number of classes with a column each.
const MOST_COLUMNS: usize = 100;

/// The content of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Content {
    Text,
    /// A number from 1, as text.
    Integer,
    Single,
    Double,
    Texts,
    Singles,
}

/// A cell of a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell<'a> {
    /// For a column of texts or of integers.
    Text(&'a str),
    Single(f32),
    Double(f64),
    Texts(&'a [String]),
    Singles(&'a [f32]),
}

impl Cell<'_> {
    /// In CSV: labels are separated by `|`, numbers by spaces.
    pub(super) fn text(&self) -> String {
        match self {
            Cell::Text(text) => (*text).to_owned(),
            Cell::Single(value) => value.to_string(),
            Cell::Double(value) => value.to_string(),
            Cell::Texts(texts) => texts.join("|"),
            Cell::Singles(values) => {
                let values: Vec<String> = values.iter().map(f32::to_string).collect();
                values.join(" ")
            }
        }
    }
}

/// The columns of a table of predictions, with their content.
pub(super) fn columns(layout: &Layout, meaning: &Meaning) -> Vec<(String, Content)> {
    let id = if layout.is_numbered {
        Content::Integer
    } else {
        Content::Text
    };
    let mut columns = vec![(layout.id.to_owned(), id)];
    let kept = layout.keep.iter();
    columns.extend(kept.map(|name| (name.clone(), Content::Text)));
    columns.extend(of_output(meaning, None));
    for (name, more) in meaning.more() {
        columns.extend(of_output(more, Some(name)));
    }
    columns
}

/// The columns of an output; those of another than that of the task begin with its name.
fn of_output(meaning: &Meaning, output: Option<&str>) -> Vec<(String, Content)> {
    let mut columns = Vec::new();
    let names = meaning.names();
    let what = if meaning.has_probabilities() {
        "probability"
    } else {
        "score"
    };
    // The prediction itself.
    let own = |name: &str| output.map_or_else(|| name.to_owned(), str::to_owned);
    let beside = |name: String| match output {
        Some(output) => format!("{output}_{name}"),
        None => name,
    };
    let each = |columns: &mut Vec<(String, Content)>| {
        if names.len() <= MOST_COLUMNS {
            let named = names.iter().map(|name| beside(format!("{what}_{name}")));
            columns.extend(named.map(|name| (name, Content::Single)));
        }
    };
    match meaning.task() {
        TaskKind::Classification => {
            columns.push((own("prediction"), Content::Text));
            if meaning.has_probabilities() {
                columns.push((beside("probability".into()), Content::Single));
            }
            each(&mut columns);
        }
        TaskKind::MultiLabel => {
            columns.push((own("labels"), Content::Texts));
            each(&mut columns);
        }
        TaskKind::Regression => {
            let number = |name: &String| match names {
                [_] => own(name),
                _ => beside(name.clone()),
            };
            let doubles: Vec<String> = names.iter().map(number).collect();
            let deviations = doubles.iter().map(|name| format!("{name}_deviation"));
            let deviations = deviations.filter(|_| meaning.has_deviations());
            let all: Vec<String> = doubles.iter().cloned().chain(deviations).collect();
            columns.extend(all.into_iter().map(|name| (name, Content::Double)));
        }
        TaskKind::Segmentation => {
            let named = names.iter().map(|name| beside(format!("share_{name}")));
            columns.extend(named.map(|name| (name, Content::Double)));
        }
        TaskKind::NextToken | TaskKind::MaskedToken => {
            columns.push((own("token"), Content::Text));
            columns.push((beside("probability".into()), Content::Single));
        }
        TaskKind::Autoencoding | TaskKind::Generation => {
            columns.push((own("values"), Content::Singles))
        }
    }
    columns
}

/// Passes the cells of an item to `put`, in the order of [`columns`].
pub(super) fn cells(
    meaning: &Meaning,
    id: &str,
    kept: &[String],
    (prediction, more): (&Prediction, &[Prediction]),
    put: &mut dyn FnMut(Cell<'_>),
) {
    put(Cell::Text(id));
    kept.iter().for_each(|value| put(Cell::Text(value)));
    cells_of(meaning, prediction, put);
    for ((_, meaning), prediction) in meaning.more().iter().zip(more) {
        cells_of(meaning, prediction, put);
    }
}

fn cells_of(meaning: &Meaning, prediction: &Prediction, put: &mut dyn FnMut(Cell<'_>)) {
    match prediction {
        Prediction::Class {
            class,
            probability,
            probabilities,
            ..
        } => {
            put(Cell::Text(class));
            probability.iter().for_each(|p| put(Cell::Single(*p)));
            each(probabilities, put);
        }
        Prediction::Labels {
            labels,
            probabilities,
        } => {
            put(Cell::Texts(labels));
            each(probabilities, put);
        }
        Prediction::Values { values, deviations } => {
            let all = values.iter().chain(deviations);
            all.for_each(|value| put(Cell::Double(*value)));
        }
        Prediction::Classes { classes, .. } => {
            let shares = shares(classes, meaning.names().len());
            shares
                .into_iter()
                .for_each(|share| put(Cell::Double(share)));
        }
        Prediction::Item { values, .. } => put(Cell::Singles(values)),
        Prediction::NextToken {
            token, probability, ..
        } => {
            put(Cell::Text(token));
            put(Cell::Single(*probability));
        }
    }
}

/// A cell for each class, unless there are too many.
fn each(probabilities: &[f32], put: &mut dyn FnMut(Cell<'_>)) {
    if probabilities.len() <= MOST_COLUMNS {
        probabilities.iter().for_each(|p| put(Cell::Single(*p)));
    }
}

/// The fraction of pixels of each class.
fn shares(classes: &[u32], num_classes: usize) -> Vec<f64> {
    let mut counts = vec![0_u64; num_classes];
    for class in classes {
        if let Some(count) = counts.get_mut(*class as usize) {
            *count += 1;
        }
    }
    let total = classes.len().max(1) as f64;
    counts.iter().map(|count| *count as f64 / total).collect()
}
