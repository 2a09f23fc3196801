//! The rules of `[predictions]`.

use super::Point;
use super::data::{contradiction, files};
use crate::diagnostic::{Diagnostic, Span};
use crate::spec::data::{DataSource, MnistPart};
use crate::spec::document::Value;
use crate::spec::predictions::{PredictedSplit, PredictionsFormat};
use crate::spec::section::Choice;

/// Every data set has a train and a valid split; a test split only if there is a source for one.
pub fn split_is_there(point: &Point<'_>) -> Option<Diagnostic> {
    let spec = point.spec.predictions.as_ref()?;
    let data = point.data?;
    if !spec.splits.contains(&PredictedSplit::Test)
        || data.num_test > 0
        || point.spec.data.split.test > 0.0
    {
        return None;
    }
    let others = spec
        .splits
        .iter()
        .filter(|split| **split != PredictedSplit::Test);
    let others: Vec<String> = others
        .map(|split| format!("\"{}\"", split.name()))
        .collect();
    let rest = match others.as_slice() {
        [] => "or remove `[predictions]`".to_owned(),
        others => format!("or write `splits = [{}]`", others.join(", ")),
    };
    let source = match &point.spec.data.source {
        DataSource::Mnist {
            part: MnistPart::Train | MnistPart::Test,
            ..
        } => "set `test = 0.1` in `[data.split]`, or remove `part`",
        _ if files(point).is_some() => {
            "set `test = 0.1` in `[data.split]`, or `test_path` in `[data]`"
        }
        _ => "set `test = 0.1` in `[data.split]`",
    };
    Some(
        contradiction("`predictions.splits` contains \"test\", but there is no test split")
            .at(place_of(point, PredictedSplit::Test.name()))
            .note(super::rules::sizes(data))
            .help(format!("{source}, {rest}")),
    )
}

/// Where a split is listed.
fn place_of(point: &Point<'_>, split: &str) -> Span {
    let listed = point
        .root
        .at("predictions.splits")
        .and_then(|entry| match &entry.node.value {
            Value::Array(items) => items
                .iter()
                .find(|item| item.value == Value::Str(split.to_owned())),
            _ => None,
        });
    listed.map_or_else(|| point.span("predictions.splits"), |item| item.span)
}

/// Parquet needs a build that writes it.
pub fn format_is_built(point: &Point<'_>) -> Option<Diagnostic> {
    let spec = point.spec.predictions.as_ref()?;
    (spec.format == PredictionsFormat::Parquet && !cfg!(feature = "parquet")).then(|| {
        Diagnostic::error(
            "unknown-value",
            "this build of runner does not write Parquet",
        )
        .at(point.span("predictions.format"))
        .help("build it with `--features parquet`, or write `format = \"csv\"`")
    })
}
