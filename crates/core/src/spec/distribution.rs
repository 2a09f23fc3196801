//! The distributions of random axes.

use super::document::{Node, Value};
use super::kind::Kind;
use super::section::{Section, Shape, choices};
use super::sweep::Text;
use crate::diagnostic::Diagnostic;

/// A distribution over the values of a key.
#[derive(Clone, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform between two numbers.
    Uniform(Range),
    /// Log-uniform between two numbers.
    LogUniform(Range),
    /// Integers, both bounds included.
    Integer {
        /// The smallest.
        min: i64,
        /// The largest.
        max: i64,
        /// The step.
        step: i64,
        /// Whether log-uniform instead of uniform.
        log: bool,
    },
    /// Some values, each with its weight.
    Choice {
        /// The values.
        values: Vec<Node>,
        /// A weight for each.
        weights: Vec<f64>,
    },
}

/// The bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// If set, only `min`, `min + step`, `min + 2 * step`, … are sampled.
    pub step: Option<f64>,
}

choices! {
    /// The kinds of distributions.
    enum DistributionType {
        Uniform "uniform" "Uniform between `min` and `max`.",
        LogUniform "log_uniform" "Log-uniform between `min` and `max`.",
        Integer "integer" "Integers from `min` to `max`, both included.",
        Choice "choice" "One of a list of values.",
    }
}

impl Distribution {
    /// Decodes the table of a random axis: the distribution, and the axis' condition.
    pub(super) fn decode(s: &mut Section<'_>) -> (Self, Option<Text>) {
        if s.is_written("values") {
            s.refuse_missing_type("add `type = \"choice\"`, which samples one of `values`");
        } else if s.is_written("min") || s.is_written("max") {
            s.refuse_missing_type("add `type = …`, one of `uniform`, `log_uniform`, `integer`");
        }
        let distribution = s.variant(
            "The distribution to sample from.",
            None::<DistributionType>,
            |s, kind| match kind {
                DistributionType::Uniform => Self::Uniform(Range::decode(s, Kind::any())),
                DistributionType::LogUniform => {
                    Self::LogUniform(Range::decode(s, Kind::positive()))
                }
                DistributionType::Integer => Self::integer(s),
                DistributionType::Choice => Self::choice(s),
            },
        );
        (distribution, Text::when(s))
    }

    fn integer(s: &mut Section<'_>) -> Self {
        // Differences and widths of such numbers are also exact as floats.
        const MOST: i64 = 1 << 53;
        let log = s
            .field("log", Kind::Bool, "Whether to sample log-uniformly.")
            .or(false);
        let least = if log { 1 } else { -MOST };
        let mut bound = |key, doc| s.field(key, Kind::Int(least, MOST), doc).required();
        let (min, max) = (
            bound("min", "The smallest value; at least 1 with `log`."),
            bound("max", "The largest value."),
        );
        let doc = "Step between values, counted from `min`.";
        let step = s.field("step", Kind::Int(1, MOST), doc).or(1);
        refuse_no_range(s, min as f64, max as f64, Some(step as f64));
        Self::Integer {
            min,
            max,
            step,
            log,
        }
    }

    fn choice(s: &mut Section<'_>) -> Self {
        let doc = "The values; they may be lists or tables.";
        let values = s.raw("values", doc, Shape::Values);
        let weights: Option<Vec<f64>> = s
            .field(
                "weights",
                Kind::list(Kind::positive(), 1),
                "Relative probability of each value; uniform when not set.",
            )
            .optional();
        let items = match values.as_ref().map(|entry| &entry.node.value) {
            Some(Value::Array(items)) => items.clone(),
            _ => Vec::new(),
        };
        let place = s.reading().map(|(span, _)| span);
        match (s.written_at("values"), s.written_at("weights"), &weights) {
            (None, _, _) => {
                if let Some(place) = place {
                    let missing =
                        Diagnostic::error("missing-key", "missing key `values` of a `choice`");
                    let help = "add `values = [1, 2, 3]`, the values to choose from";
                    s.refuse("values", missing.at(place).help(help));
                }
            }
            (Some(at), _, _) if items.is_empty() => {
                let empty = Diagnostic::error("out-of-range", "a choice needs a list of values");
                let help = "list at least two values, or remove the axis";
                s.refuse("values", empty.at(at).help(help));
            }
            (Some(at), Some(weights_at), Some(weights)) if weights.len() != items.len() => {
                let (num, num_weights) = (items.len(), weights.len());
                let message = format!("there are {num} values and {num_weights} weights");
                let unequal = Diagnostic::error("contradiction", message).at(weights_at);
                let help = "give one weight per value";
                s.refuse("weights", unequal.related(at, "the values").help(help));
            }
            _ => {}
        }
        Self::Choice {
            weights: weights.unwrap_or(vec![1.0; items.len()]),
            values: items,
        }
    }
}

impl Range {
    fn decode(s: &mut Section<'_>, kind: Kind) -> Self {
        let mut bound = |key, doc| s.field(key, kind.clone(), doc).required();
        let (min, max) = (
            bound("min", "The smallest value."),
            bound("max", "The largest value."),
        );
        let doc = "Samples only `min` and multiples of `step` above it; any number when not set.";
        let step = s.field("step", Kind::positive(), doc).optional();
        refuse_no_range(s, min, max, step);
        Self { min, max, step }
    }
}

/// Refuses bounds that leave nothing to sample.
fn refuse_no_range(s: &mut Section<'_>, min: f64, max: f64, step: Option<f64>) {
    let (Some(min_at), Some(max_at)) = (s.written_at("min"), s.written_at("max")) else {
        return;
    };
    if ["min", "max", "step"].iter().any(|key| s.is_refused(key)) {
        return;
    }
    if min >= max {
        let message = format!(
            "`min` is {} and `max` is {}, which leaves nothing to sample",
            show(min),
            show(max)
        );
        let empty = Diagnostic::error("contradiction", message).at(max_at);
        let empty = empty.related(min_at, "the smallest value");
        s.refuse("max", empty.help("set `max` above `min`"));
    } else if let (Some(step), Some(at)) = (step, s.written_at("step"))
        && step > max - min
    {
        let (step, width) = (show(step), show(max - min));
        let message = format!("`step` is {step}, but the range from `min` to `max` is {width}");
        let wide = Diagnostic::error("contradiction", message).at(at);
        let help = "use a smaller step, so that at least two values can be sampled";
        s.refuse("step", wide.help(help));
    }
}

/// Small numbers with an exponent, as they are usually written.
fn show(number: f64) -> String {
    if number.fract() == 0.0 {
        format!("{number}")
    } else {
        format!("{number:?}")
    }
}
