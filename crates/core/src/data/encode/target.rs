//! How records become targets.

use serde::{Deserialize, Serialize};

use super::nonlinear::Nonlinear;
use super::number::Number;
use super::scaling::{Scaling, of};
use crate::data::records::Records;
use crate::data::{InputPlan, TargetPlan, TargetValues};

/// How records become targets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TargetEncoder {
    /// There are none: the items are their own targets.
    None,
    /// The class in a column.
    Class {
        /// The column.
        column: usize,
        /// Number of classes.
        num_classes: usize,
    },
    /// A class for each position of a column.
    Classes {
        /// The column.
        column: usize,
        /// The positions.
        shape: Vec<usize>,
        /// Number of classes.
        num_classes: usize,
    },
    /// Labels that are 0 or 1, in one or more columns.
    Labels {
        /// The columns.
        columns: Vec<usize>,
        /// Number of labels.
        num_labels: usize,
    },
    /// Numbers of one or more columns.
    Values {
        /// The columns, each with one scaling for all its values or one each.
        columns: Vec<(usize, Vec<Scaling>)>,
        /// The shape of a target.
        shape: Vec<usize>,
        /// The transform of each number, applied before it is scaled; none if the numbers are only scaled.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        nonlinear: Vec<Nonlinear>,
    },
    /// The token after each token of a piece of text.
    NextTokens,
    /// The tokens of the item that are hidden from the network.
    HiddenTokens {
        /// Their fraction.
        share: f64,
    },
}

impl TargetEncoder {
    /// The target columns.
    pub fn columns(&self) -> Vec<usize> {
        match self {
            TargetEncoder::None
            | TargetEncoder::NextTokens
            | TargetEncoder::HiddenTokens { .. } => Vec::new(),
            TargetEncoder::Class { column, .. } | TargetEncoder::Classes { column, .. } => {
                vec![*column]
            }
            TargetEncoder::Labels { columns, .. } => columns.clone(),
            TargetEncoder::Values { columns, .. } => columns.iter().map(|(at, _)| *at).collect(),
        }
    }

    /// The kind of a target; `input` is the kind of an item.
    pub fn plan(&self, input: &InputPlan) -> TargetPlan {
        match self {
            TargetEncoder::None => TargetPlan::None,
            TargetEncoder::Class { num_classes, .. } => TargetPlan::Class {
                num_classes: *num_classes,
            },
            TargetEncoder::Classes {
                shape, num_classes, ..
            } => TargetPlan::Classes {
                shape: shape.clone(),
                num_classes: *num_classes,
            },
            TargetEncoder::Labels { num_labels, .. } => TargetPlan::Labels {
                num_labels: *num_labels,
            },
            TargetEncoder::Values { shape, .. } => TargetPlan::Values {
                shape: shape.clone(),
            },
            TargetEncoder::NextTokens | TargetEncoder::HiddenTokens { .. } => TargetPlan::Classes {
                shape: input.shape.clone(),
                num_classes: input.vocabulary.unwrap_or(0),
            },
        }
    }

    /// The values of no items.
    pub fn no_values<N: Number>(&self) -> TargetValues {
        if self.is_classes() {
            TargetValues::Classes(Vec::new())
        } else {
            N::targets(Vec::new())
        }
    }

    /// Whether each item has one class.
    pub fn is_class(&self) -> bool {
        matches!(self, TargetEncoder::Class { .. })
    }

    /// Whether targets are classes rather than numbers.
    pub fn is_classes(&self) -> bool {
        !matches!(
            self,
            TargetEncoder::Labels { .. } | TargetEncoder::Values { .. }
        )
    }

    /// Adds the classes of one record.
    pub fn classes(&self, records: &Records, item: usize, out: &mut Vec<i32>) {
        match self {
            TargetEncoder::Class { column, .. } => {
                out.push(records.number(item, *column, 0) as i32);
            }
            TargetEncoder::Classes { column, .. } => {
                records.numbers(item, *column, |value| out.push(value as i32));
            }
            _ => {}
        }
    }

    /// A number of one record whose transform has no value, with its column and that transform.
    pub(in crate::data) fn refused(
        &self,
        records: &Records,
        item: usize,
    ) -> Option<(usize, f64, &Nonlinear)> {
        let TargetEncoder::Values {
            columns, nonlinear, ..
        } = self
        else {
            return None;
        };
        let (mut transforms, mut wrong) = (nonlinear.iter(), None);
        for (column, _) in columns {
            records.numbers(item, *column, |value| {
                let transform = transforms.next();
                let refused = transform.filter(|of| of.refusal(value).is_some());
                wrong = wrong.or(refused.map(|of| (*column, value, of)));
            });
        }
        wrong
    }

    /// Adds the numbers of one record.
    pub fn numbers<N: Number>(&self, records: &Records, item: usize, out: &mut Vec<N>) {
        match self {
            TargetEncoder::Labels { columns, .. } => {
                for column in columns {
                    records.numbers(item, *column, |value| out.push(N::of(value)));
                }
            }
            TargetEncoder::Values {
                columns, nonlinear, ..
            } => {
                let mut transforms = nonlinear.iter();
                for (column, scaling) in columns {
                    let mut at = 0;
                    records.numbers(item, *column, |value| {
                        let transform = transforms.next();
                        let value = transform.map_or(value, |of| of.apply(value));
                        out.push(of(scaling, at).apply(value));
                        at += 1;
                    });
                }
            }
            _ => {}
        }
    }
}
