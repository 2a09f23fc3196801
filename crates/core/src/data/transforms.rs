//! What a run saves about its data: how records are converted to numbers, and the columns of the records.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::encode::{
    EncodedInput, Encoder, InputEncoder, Nonlinear, Pixels, Scaling, TargetEncoder,
};
use super::records::{Column, ColumnKind, Writer};
use super::serve::Set;
use super::{DataError, DataPlan, Dataset};

/// `transforms.json`: enough to transform new data as in training, without the training data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transforms {
    /// How records are converted to inputs.
    pub input: InputEncoder,
    /// How records are converted to targets.
    pub target: TargetEncoder,
    /// The same for the targets of `[[losses]]` that are other columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_targets: Vec<TargetEncoder>,
    /// The columns of the records, with the names of categories and classes. Empty in runs of earlier versions.
    #[serde(default)]
    pub columns: Vec<Column>,
}

impl Transforms {
    /// The transforms of a data set.
    pub fn of(set: &Set) -> Self {
        let Encoder {
            mut input,
            target,
            more_targets,
        } = set.encoder.as_ref().clone();
        let mut columns = set.records.columns().to_vec();
        if set.pairs.is_some() {
            // The columns of nodes follow those of edges.
            input.shift(columns.len());
            columns.extend_from_slice(set.inputs().columns());
        }
        let mut transforms = Self {
            input,
            target,
            more_targets,
            columns,
        };
        let mut used = transforms.inputs();
        used.extend(transforms.targets());
        for (at, column) in transforms.columns.iter_mut().enumerate() {
            if let (ColumnKind::Categories { names }, false) =
                (&mut column.kind, used.contains(&at))
            {
                // There can be as many of them as rows.
                names.clear();
            }
        }
        transforms
    }

    /// Whether a text is a category or class of a column.
    pub(super) fn has_category(&self, text: &str) -> bool {
        let mut kinds = self.columns.iter().map(|column| &column.kind);
        kinds.any(|kind| match kind {
            ColumnKind::Categories { names } => names.iter().any(|name| name == text),
            _ => false,
        })
    }

    /// Reads what a run wrote, and refuses contradictions: the file may come from anyone.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, DataError> {
        let shown = path.display();
        let parsed: Self = serde_json::from_slice(text).map_err(|e| {
            DataError::new(format!("`{shown}` is damaged: {e}"))
                .help("copy the folder of the run again, or repeat the run")
        })?;
        if parsed.columns.is_empty() {
            return Err(DataError::new(format!(
                "`{shown}` does not describe the columns of the data: it was written by an earlier version of runner"
            ))
            .help("train the run again with this version"));
        }
        match parsed.contradiction() {
            None => Ok(parsed),
            Some(reason) => Err(DataError::new(format!("`{shown}` is damaged: {reason}"))
                .help("copy the folder of the run again, or repeat the run")),
        }
    }

    /// The input columns of the network.
    pub fn inputs(&self) -> Vec<usize> {
        self.input.columns()
    }

    /// The columns of all targets.
    pub fn targets(&self) -> Vec<usize> {
        let more = self.more_targets.iter();
        let more = more.flat_map(TargetEncoder::columns);
        self.target.columns().into_iter().chain(more).collect()
    }

    /// The same for values of new data: records of embedded data are bytes that represent centimetres, or intensities
    /// from 0 to 1.
    pub fn of_new_data(&self, plan: &DataPlan) -> Cow<'_, Self> {
        let mut transforms = Cow::Borrowed(self);
        if matches!(plan.dataset, Dataset::Iris | Dataset::Digits { .. })
            && let InputEncoder::Array { scaling, unit, .. } = &mut transforms.to_mut().input
        {
            let size = f64::from(std::mem::replace(unit, 1.0));
            for one in scaling {
                one.shift *= size;
                one.factor /= size;
            }
        }
        transforms
    }

    /// The only input column of the network, if it contains arrays and is not a named input.
    pub fn array(&self) -> Option<(usize, &Column)> {
        match self.inputs()[..] {
            _ if self.has_named_inputs() => None,
            [at] => Some((at, &self.columns[at])).filter(|(_, column)| !column.shape.is_empty()),
            _ => None,
        }
    }

    /// Whether the network has named inputs.
    pub fn has_named_inputs(&self) -> bool {
        matches!(self.input, InputEncoder::Inputs { .. })
    }

    /// Whether the input columns are numbers, which arrays can have.
    pub fn is_of_numbers(&self) -> bool {
        let inputs = self.inputs();
        let mut kinds = inputs.iter().map(|at| &self.columns[*at].kind);
        kinds.all(|kind| !matches!(kind, ColumnKind::Categories { .. } | ColumnKind::Text))
    }

    /// What brings values of images back to pixels.
    pub fn pixels(&self) -> Pixels {
        self.input.pixels()
    }

    /// The encoder, with targets or without.
    pub fn encoder(&self, with_targets: bool) -> Encoder {
        Encoder {
            input: self.input.clone(),
            target: if with_targets {
                self.target.clone()
            } else {
                TargetEncoder::None
            },
            more_targets: if with_targets {
                self.more_targets.clone()
            } else {
                Vec::new()
            },
        }
    }

    /// A set without records, which contains names and units.
    pub fn names(&self) -> Set {
        let mut writer = Writer::in_memory();
        writer.begin(self.columns.clone());
        Set {
            records: writer.into_records(),
            encoder: Arc::new(self.encoder(true)),
            graph: None,
            pairs: None,
        }
    }

    fn contradiction(&self) -> Option<String> {
        let places = self.inputs().into_iter().chain(self.targets());
        for at in places {
            if at >= self.columns.len() {
                return Some(format!(
                    "it refers to column {at} of {}",
                    self.columns.len()
                ));
            }
        }
        let size = |column: &Column| {
            let sizes = column.shape.iter();
            sizes.copied().try_fold(1_usize, usize::checked_mul)
        };
        if self
            .columns
            .iter()
            .any(|column| size(column).is_none_or(|size| size as u64 > 1 << 40))
        {
            return Some("a column has a shape that no item has".into());
        }
        let targets = [&self.target].into_iter().chain(&self.more_targets);
        let mut wrong = targets.filter_map(|target| target.contradiction(&self.columns));
        let of_input = self.input.contradiction(&self.columns);
        of_input.or_else(|| wrong.next())
    }
}

impl TargetEncoder {
    /// A mismatch with the columns, for messages.
    fn contradiction(&self, columns: &[Column]) -> Option<String> {
        let TargetEncoder::Values {
            columns: of,
            nonlinear,
            ..
        } = self
        else {
            return None;
        };
        let num: usize = of.iter().map(|(at, _)| columns[*at].len()).sum();
        let is_scaled = |(at, scaling): &(usize, Vec<Scaling>)| {
            scaling.len() == 1 || scaling.len() == columns[*at].len()
        };
        let kind = |one: &Nonlinear| (std::mem::discriminant(one), one.num_quantiles());
        let first = nonlinear.first().map(kind);
        let is_like = |one: &Nonlinear| one.is_valid() && Some(kind(one)) == first;
        let is_transformed = nonlinear.is_empty() || nonlinear.len() == num;
        let fits = of.iter().all(is_scaled) && is_transformed && nonlinear.iter().all(is_like);
        (!fits).then(|| "its targets have different numbers".to_owned())
    }
}

impl InputEncoder {
    /// The same in records that have other columns before its own.
    fn shift(&mut self, num: usize) {
        match self {
            InputEncoder::Features { features, .. } => {
                features
                    .iter_mut()
                    .for_each(|feature| feature.column += num);
            }
            InputEncoder::Indices { columns } => {
                columns.iter_mut().for_each(|indexed| indexed.column += num);
            }
            InputEncoder::Inputs { inputs } => {
                inputs.iter_mut().for_each(|input| input.encoder.shift(num));
            }
            InputEncoder::Array { column, .. }
            | InputEncoder::Tokens { column, .. }
            | InputEncoder::Text { column, .. }
            | InputEncoder::Stream { column, .. } => *column += num,
        }
    }

    /// A mismatch with the columns, for messages.
    fn contradiction(&self, columns: &[Column]) -> Option<String> {
        match self {
            InputEncoder::Features { features, .. } => features
                .iter()
                .find(|feature| !feature.fits(&columns[feature.column]))
                .map(|feature| {
                    format!(
                        "column `{}` differs from the one that it was fitted to",
                        feature.name
                    )
                }),
            InputEncoder::Array {
                column,
                shape,
                scaling,
                axis,
                ..
            } => {
                let has_shape = columns[*column].shape == *shape;
                let num = match axis {
                    Some(axis) => shape.get(*axis).copied(),
                    None => Some(columns[*column].len()),
                };
                let is_scaled = axis.is_none() && scaling.len() == 1 || Some(scaling.len()) == num;
                (!has_shape || !is_scaled).then(|| "its array has a different shape".to_owned())
            }
            InputEncoder::Tokens { column, shape, .. } => (columns[*column].shape != *shape)
                .then(|| "its tokens have a different shape".to_owned()),
            InputEncoder::Indices { columns: indexed } => {
                let mut first = 0;
                let wrong = indexed.iter().find(|of| {
                    let follows = of.first == first;
                    first = of.first.saturating_add(of.num);
                    !follows || !of.fits(&columns[of.column])
                });
                wrong.map(|of| {
                    format!(
                        "column `{}` differs from the one that it was fitted to",
                        of.name
                    )
                })
            }
            InputEncoder::Inputs { inputs } => {
                let is_nested = |input: &EncodedInput| {
                    input.encoder.window().is_some()
                        || matches!(
                            input.encoder,
                            InputEncoder::Inputs { .. } | InputEncoder::Stream { .. }
                        )
                };
                if inputs.is_empty() || inputs.iter().any(is_nested) {
                    return Some("its inputs are none that a network can have".to_owned());
                }
                inputs
                    .iter()
                    .find_map(|input| input.encoder.contradiction(columns))
            }
            InputEncoder::Text { length, .. } | InputEncoder::Stream { length, .. } => {
                (*length == 0).then(|| "its texts have no length".to_owned())
            }
        }
    }
}
