//! The network's targets, by their columns.

use std::collections::BTreeSet;

use super::Fitting;
use crate::data::DataError;
use crate::data::encode::statistics::moments;
use crate::data::encode::{Groups, InputEncoder, Nonlinear, Scaling, TargetEncoder};
use crate::data::records::ColumnKind;
use crate::spec::data::{ColumnType, TargetTransform};
use crate::spec::section::Choice;

/// The most numbers of a target whose quantiles are kept.
const MOST_QUANTILE_TARGETS: usize = 64;

impl Fitting<'_> {
    /// Refuses integer classes of which most do not occur: they are identifiers or quantities.
    fn refuse_holes(&self, column: usize, num_classes: usize, key: &str) -> Result<(), DataError> {
        /// This few classes may have any gaps.
        const FEW: usize = 20;
        /// Classes per class that occurs.
        const MOST: usize = 10;
        if num_classes <= FEW {
            return Ok(());
        }
        let mut seen = BTreeSet::new();
        for row in 0..self.records.len() {
            let class = self.records.number(row, column, 0);
            if !class.is_nan() && seen.insert(class as i64) && seen.len() * MOST >= num_classes {
                return Ok(());
            }
        }
        let shown: Vec<_> = seen.iter().take(5).map(ToString::to_string).collect();
        let more = if seen.len() > shown.len() {
            ", …"
        } else {
            ""
        };
        let name = &self.column(column).name;
        let error = DataError::new(format!(
            "the target `{name}` would have {num_classes} classes, of which {} occur: {}{more}",
            seen.len(),
            shown.join(", ")
        ))
        .note("integers are classes, numbered from 0")
        .key(if self.roles.target.is_empty() && key == "data.target" {
            "data.target_path"
        } else {
            key
        });
        Err(error.help(
            "number the classes 0, 1, 2, …, or save quantities as floats, for example with `y.astype(np.float32)`",
        ))
    }

    /// A single column of classes; `None` for one of numbers.
    fn class(&self, column: usize, key: &str) -> Result<Option<TargetEncoder>, DataError> {
        let (spec, extent) = (self.column(column), self.records.header.extents[column]);
        let said = self.roles.of(&spec.name).and_then(|said| said.kind);
        let (min, max) = (extent.min.unwrap_or(0.0), extent.max.unwrap_or(0.0));
        let is_number = said == Some(ColumnType::Number);
        match (&spec.kind, spec.shape.len()) {
            (ColumnKind::Categories { names }, _) => Ok(Some(TargetEncoder::Class {
                column,
                num_classes: names.len(),
            })),
            (ColumnKind::Bytes | ColumnKind::Whole, 0 | 1)
                if !is_number && spec.len() == 1 && min >= 0.0 =>
            {
                self.refuse_holes(column, max as usize + 1, key)?;
                Ok(Some(TargetEncoder::Class {
                    column,
                    num_classes: max as usize + 1,
                }))
            }
            (ColumnKind::Bytes | ColumnKind::Whole, 2..) if !is_number && min >= -1.0 => {
                Ok(Some(TargetEncoder::Classes {
                    column,
                    shape: spec.shape.clone(),
                    num_classes: max as usize + 1,
                }))
            }
            (ColumnKind::Bytes | ColumnKind::Whole, 1)
                if said == Some(ColumnType::Category) && min >= -1.0 =>
            {
                Ok(Some(TargetEncoder::Classes {
                    column,
                    shape: spec.shape.clone(),
                    num_classes: max as usize + 1,
                }))
            }
            _ if said == Some(ColumnType::Category) => {
                let message = format!(
                    "the target `{}` cannot be classes: it contains {}",
                    spec.name,
                    spec.kind.show()
                );
                Err(DataError::new(message).key("data.columns").help(
                    "number the classes 0, 1, 2, … as integers, for example with `y.astype(np.int64)`, or remove `type = \"category\"`",
                ))
            }
            _ => Ok(None),
        }
    }

    /// Whether the file says that a column contains labels.
    fn is_label(&self, column: usize) -> bool {
        let said = self.roles.of(&self.column(column).name);
        said.and_then(|said| said.kind) == Some(ColumnType::Label)
    }

    /// Whether a column has only the integers 0 and 1.
    fn is_binary(&self, column: usize) -> bool {
        let extent = self.records.header.extents[column];
        let kind = &self.column(column).kind;
        let is_whole = matches!(kind, ColumnKind::Bytes | ColumnKind::Whole);
        is_whole && extent.min >= Some(0.0) && extent.max <= Some(1.0)
    }

    /// Refuses labels that are not targets.
    fn refuse_other_labels(&self) -> Result<(), DataError> {
        let targets: Vec<usize> = self.uses.all_targets().collect();
        let mut columns = 0..self.records.columns().len();
        let Some(other) = columns.find(|at| self.is_label(*at) && !targets.contains(at)) else {
            return Ok(());
        };
        let name = &self.column(other).name;
        let number = self.roles.columns.iter().position(|of| of.name == *name);
        let message = format!("`{name}` has the type \"label\", but is not a target");
        Err(DataError::new(message)
            .key(format!("data.columns[{}].type", number.unwrap_or(0)))
            .help("add it to `target`, or remove its `type`: a feature of 0 and 1 is a number"))
    }

    /// Why targets are not labels, though the file says so of some.
    fn no_labels(&self, targets: &[usize]) -> DataError {
        let wrong = targets.iter().find(|at| !self.is_binary(**at));
        let column = self.column(wrong.copied().unwrap_or(targets[0]));
        DataError::new(format!(
            "the target `{}` is not a list of labels, which are the integers 0 and 1",
            column.name
        ))
        .help("save labels as integers 0 and 1, or remove `type = \"label\"`")
    }

    /// The encoder of the targets.
    pub fn target(&self, input: &InputEncoder) -> Result<TargetEncoder, DataError> {
        if let Some(share) = self.tokens.masked {
            return self.hidden_tokens(share, input);
        }
        if self.running_text.is_some() {
            return Ok(TargetEncoder::NextTokens);
        }
        self.target_of(&self.uses.targets, "data.target")
    }

    /// The hidden tokens of a text.
    fn hidden_tokens(&self, share: f64, input: &InputEncoder) -> Result<TargetEncoder, DataError> {
        let refuse = |message: &str, help: &str| {
            let error = DataError::new(message).key("data.tokens.masked");
            Err(error.help(help))
        };
        if self.uses.all_targets().next().is_some() {
            return refuse(
                "`masked` hides tokens of a text to predict them, but the data has another target",
                "remove `masked` to predict the target, or remove the target and list its column in `ignore`",
            );
        }
        let Some(tokenizer) = input.tokenizer() else {
            return refuse(
                "`masked` hides tokens of a text, but the items are not texts",
                "list the text column alone in `features`, or remove `masked`",
            );
        };
        if tokenizer.mask().is_none() {
            let message = format!(
                "`masked` hides tokens behind a mask token, but the tokenizer \"{}\" has none",
                self.tokens.tokenizer.name()
            );
            return refuse(
                &message,
                "set `tokenizer = \"wordpiece\"`, or use a file whose special tokens contain `[MASK]` or `<mask>`",
            );
        }
        Ok(TargetEncoder::HiddenTokens { share })
    }

    /// The targets of `[[losses]]` that are other columns.
    pub fn more_targets(&self) -> Result<Vec<TargetEncoder>, DataError> {
        let more = self.uses.more_targets.iter().zip(&self.roles.more_targets);
        more.map(|(columns, named)| self.target_of(columns, &named.key()))
            .collect()
    }

    /// The transform of each number of a target; none if the file asks for none.
    fn nonlinear(&self, targets: &[usize], num: usize) -> Result<Vec<Nonlinear>, DataError> {
        let asked = self.roles.target_transform;
        if asked == TargetTransform::Quantile && num > MOST_QUANTILE_TARGETS {
            let message = format!(
                "`target_transform = \"quantile\"` keeps the quantiles of each number of a target, but a target has {num} numbers"
            );
            return Err(DataError::new(message)
                .key("data.target_transform")
                .note(format!(
                    "at most {MOST_QUANTILE_TARGETS} can be transformed so"
                ))
                .help("use `target_scale = \"standardize\"` instead"));
        }
        let mut all = Vec::new();
        for column in targets {
            for at in 0..self.column(*column).len() {
                let value = |row: &u32| self.records.number(*row as usize, *column, at);
                let rows = if self.measure { self.train } else { &[] };
                let values = || rows.iter().map(value).collect();
                all.extend(Nonlinear::fit(asked, values));
            }
        }
        Ok(all)
    }

    /// The target in some columns, which a key names.
    fn target_of(&self, targets: &[usize], key: &str) -> Result<TargetEncoder, DataError> {
        let Some(first) = targets.first() else {
            return Ok(TargetEncoder::None);
        };
        self.refuse_other_labels()?;
        if let [column] = targets[..]
            && !self.is_label(column)
            && let Some(encoder) = self.class(column, key)?
        {
            return Ok(encoder);
        }
        let are_labels = targets.iter().all(|at| {
            let column = self.column(*at);
            let said = self.roles.of(&column.name).and_then(|said| said.kind);
            self.is_binary(*at) && column.shape.len() < 2 && said != Some(ColumnType::Number)
        });
        let num: usize = targets.iter().map(|at| self.column(*at).len()).sum();
        let is_asked = targets.iter().any(|at| self.is_label(*at));
        if is_asked && !are_labels {
            return Err(self.no_labels(targets).key(key));
        }
        if are_labels && (num > 1 || is_asked) {
            return Ok(TargetEncoder::Labels {
                columns: targets.to_vec(),
                num_labels: num,
            });
        }
        for at in targets {
            let column = self.column(*at);
            if matches!(
                column.kind,
                ColumnKind::Categories { .. } | ColumnKind::Text
            ) {
                return Err(DataError::new(format!(
                    "the target `{}` contains {}, but several targets must be numbers",
                    column.name,
                    column.kind.show()
                ))
                .key(key)
                .help("use one column of classes, only numeric columns, or only columns of 0 and 1, which are labels"));
            }
        }
        let mut columns = Vec::new();
        let nonlinear = self.nonlinear(targets, num)?;
        let mut before = 0;
        for at in targets {
            let width = self.column(*at).len();
            let of_column = nonlinear.get(before..before + width).unwrap_or_default();
            before += width;
            let scaling = if !(self.measure && self.roles.target_scale.is_measured()) {
                vec![Scaling::NONE]
            } else {
                moments(self.train, Groups::each(width), |row, out| {
                    let mut transforms = of_column.iter();
                    self.records.numbers(row, *at, |value| {
                        let transform = transforms.next();
                        out.push(transform.map_or(value, |of| of.apply(value)));
                    });
                })
                .iter()
                .map(|found| found.scaling(self.roles.target_scale, 1.0))
                .collect()
            };
            columns.push((*at, scaling));
        }
        Ok(TargetEncoder::Values {
            columns,
            nonlinear,
            shape: match targets.len() {
                1 if !self.column(*first).shape.is_empty() => self.column(*first).shape.clone(),
                _ => vec![num],
            },
        })
    }
}
