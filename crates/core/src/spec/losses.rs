//! `[[losses]]`: losses that are added to `[loss]`.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::loss::LossSpec;
use super::metric::Metric;
use super::section::Section;
use super::task::metrics;

/// A table of `[[losses]]` as written.
#[derive(Clone, Debug, PartialEq)]
pub struct TermTable {
    /// What its metrics are named after; by default the layer, or the type of the loss.
    pub name: String,
    /// The layer whose output it is about; the output of the task if not set.
    pub output: Option<String>,
    /// What the output is compared with: [`ITEMS`], or columns; the target of the task if not set.
    pub target: Option<Vec<String>>,
    /// The loss of an item.
    pub loss: LossSpec,
    /// Its factor in the sum.
    pub weight: f64,
    /// In addition to its loss; the usual ones of its task if not set.
    pub metrics: Option<Vec<Metric>>,
}

/// A loss that is added to that of the task, fully resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossTerm {
    /// What its metrics are named after.
    pub name: String,
    /// The index of the layer whose output it is about.
    pub layer: usize,
    /// What the output is compared with; nothing for a penalty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<TermTarget>,
    /// Its factor in the sum.
    pub weight: f64,
    /// In addition to its loss.
    pub metrics: Vec<Metric>,
    /// The loss of an item.
    #[serde(flatten)]
    pub loss: LossSpec,
}

/// What the output of a term is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TermTarget {
    /// The target of the task.
    Task,
    /// The items.
    Items,
    /// Other columns: one of the further targets of the data.
    More(usize),
}

impl TermTarget {
    /// Its place among the target of the task and the further ones; none for the items.
    pub fn place(self) -> Option<usize> {
        match self {
            TermTarget::Task => Some(0),
            TermTarget::More(at) => Some(at + 1),
            TermTarget::Items => None,
        }
    }
}

/// The `target` that stands for the items themselves.
pub const ITEMS: &str = "items";

/// The name under which the loss of the task is measured beside its sum with others.
pub const MAIN: &str = "main";

/// The name under which the distance to a teacher is measured.
pub const TEACHER: &str = "teacher";

/// One column, or several different ones.
fn columns() -> Kind {
    let several = Kind::List {
        item: Box::new(Kind::Text),
        min_items: 1,
        unique: true,
    };
    Kind::Either(Box::new(Kind::Text), Box::new(several))
}

impl TermTable {
    /// The columns that it is compared with, if it names some.
    pub fn columns(&self) -> Option<&[String]> {
        let target = self.target.as_deref()?;
        (target != [ITEMS] && !self.loss.function.is_penalty()).then_some(target)
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let loss = s.variant("The loss of an item.", None, LossSpec::of_term);
        let output: Option<String> = s
            .field(
                "output",
                Kind::Text,
                "The layer whose output it is about; the output of the task when not set.",
            )
            .optional();
        let name: Option<String> = s
            .field(
                "name",
                Kind::Slug,
                "What its metrics are named after: `valid/NAME/loss`; the name of the layer or, without `output`, the type when not set.",
            )
            .optional();
        let usual = || {
            let function = &loss.function;
            output.clone().unwrap_or_else(|| function.name().to_owned())
        };
        Self {
            name: name.unwrap_or_else(usual),
            target: s
                .field(
                    "target",
                    columns(),
                    "What the output is compared with: \"items\" for the items themselves, or one or more columns of the data; the target of the task when not set. Penalties have none.",
                )
                .optional(),
            weight: s
                .field("weight", Kind::non_negative(), "Its factor in the sum of the losses.")
                .or(1.0),
            metrics: metrics(
                s,
                "Metrics of this output, in addition to its loss; the usual ones for its target when not set.",
            ),
            loss,
            output,
        }
    }
}

/// The name of a term in the name of a metric.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TermName {
    bytes: [u8; Self::MOST],
    len: usize,
}

impl TermName {
    /// The maximum length.
    pub const MOST: usize = 48;

    /// A name, unless it is too long or contains other characters than letters, digits, `-`, `_` and `.`.
    pub fn new(name: &str) -> Option<Self> {
        let is_fine = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
        if name.is_empty() || name.len() > Self::MOST || !name.bytes().all(is_fine) {
            return None;
        }
        let mut bytes = [0; Self::MOST];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        Some(Self {
            bytes,
            len: name.len(),
        })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl fmt::Debug for TermName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::TermName;

    #[test]
    fn names_are_short_and_plain() {
        let name = "encoder.latent-1_a";
        assert_eq!(TermName::new(name).unwrap().as_str(), name);
        for wrong in ["", "a/b", "a b", "ä", &"a".repeat(TermName::MOST + 1)] {
            assert_eq!(TermName::new(wrong), None, "{wrong}");
        }
    }
}
