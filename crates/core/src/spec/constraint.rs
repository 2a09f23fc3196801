//! Constraints of a search: limits of what a trial measures, such as `memory_bytes < 2e9`.
//!
//! A trial that exceeds a limit ranks behind all that do not, by how far it exceeds it, relative to the limit. So the
//! violations of several constraints, which have different units, can be added.

use std::collections::BTreeMap;

use runner_statistics::are_equal;
use serde::{Deserialize, Serialize};

use super::document::{Node, Value};
use super::expression::{Dialect, Names, Relation, compared, evaluate, names_by};
use super::metric::{Objective, ObjectiveSplit};
use super::nearest_path;
use super::section::{Choice, by_name, choices};
use super::traded::{Cost, Traded};
use crate::diagnostic::{Diagnostic, Reason, Wrong};

/// A comparison that a trial has to meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Constraint {
    source: String,
    left: String,
    relation: Relation,
    right: String,
}

/// A number of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// A metric in the best epoch, or a cost.
    Reached(Traded),
    /// A metric in the last epoch.
    Last(Objective),
    /// A count.
    Count(Count),
}

choices! {
    /// What is counted about a run.
    pub enum Count {
        Epochs "epochs" "The number of trained epochs.",
        BestEpoch "best_epoch" "The best epoch by the objective.",
    }
}

/// A limit of a single quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// What is limited.
    pub quantity: Quantity,
    /// How it is compared with the limit.
    pub relation: Relation,
    /// The limit.
    pub limit: f64,
}

/// A comparison in messages.
const EXAMPLE: &str = "memory_bytes < 2e9";

impl Constraint {
    /// Parses a comparison of numbers of a run. The error is a phrase with a remedy.
    pub fn parse(source: &str) -> Result<Self, Wrong> {
        if source.contains("${") {
            let message = format!("`{source}`: references are not replaced in constraints");
            let help = format!("write the number itself, as in `{EXAMPLE}`");
            return Err(Wrong::new(message, help));
        }
        let (left, relation, right) = compared(source, Dialect::Filter, EXAMPLE)?;
        let constraint = Self {
            source: source.to_owned(),
            left: left.to_owned(),
            relation,
            right: right.to_owned(),
        };
        let mut values = BTreeMap::new();
        for (at, name) in constraint.names().into_iter().enumerate() {
            Quantity::parse(name)?;
            // Any number, so that what can never be computed is found now.
            values.insert(name, 0.718_281_828 + 0.137 * at as f64);
        }
        if values.is_empty() {
            let message = format!("`{source}` limits nothing that a run measures");
            let help = format!("name a metric or a cost in it, as in `{EXAMPLE}`");
            return Err(Wrong::new(message, help));
        }
        let values = Values(values);
        for side in [left, right] {
            values.number(side).map_err(|refusal| {
                let helps = refusal.helps.join("; ");
                let helps = helps
                    .replace("${num_layers > 1}", EXAMPLE)
                    .replace("${2 * channels}", EXAMPLE);
                Wrong::new(refusal.message, helps)
            })?;
        }
        Ok(constraint)
    }

    /// As written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The names in it.
    pub fn names(&self) -> Vec<&str> {
        let sides = [&self.left, &self.right].into_iter();
        let mut names: Vec<&str> = sides
            .flat_map(|side| names_by(side, Dialect::Filter))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// What it limits.
    pub fn quantities(&self) -> impl Iterator<Item = Quantity> {
        let names = self.names().into_iter();
        names.filter_map(|name| Quantity::parse(name).ok())
    }

    /// How far numbers are from meeting it: 0 if they do, and otherwise the excess over the limit relative to the limit,
    /// which is the side without names, or else the right one. `None` if a number is missing, or a side has no finite
    /// value.
    pub fn violation(&self, value: &dyn Fn(Quantity) -> Option<f64>) -> Option<f64> {
        let known = |name: &str| Quantity::parse(name).ok().and_then(value);
        let values = self.names().into_iter();
        let values: Option<BTreeMap<&str, f64>> =
            values.map(|name| Some((name, known(name)?))).collect();
        let values = Values(values?);
        let finite = |side: &str| values.number(side).ok().filter(|value| value.is_finite());
        let (left, right) = (finite(&self.left)?, finite(&self.right)?);
        // A mean that is the limit but for rounding is at the limit.
        let is_met = if are_equal(left, right) {
            self.relation.holds(right, right)
        } else {
            self.relation.holds(left, right)
        };
        if is_met {
            return Some(0.0);
        }
        let limit = if is_constant(&self.left) { left } else { right };
        let scale = if limit == 0.0 { 1.0 } else { limit.abs() };
        // A limit that is only touched, or exceeded beyond all numbers, is exceeded by some number.
        Some(((left - right).abs() / scale).clamp(f64::EPSILON, f64::MAX))
    }

    /// The limit, if it is one of a single quantity.
    pub fn limit(&self) -> Option<Limit> {
        let nothing = Values(BTreeMap::new());
        let of = |name: &str, side: &str, relation: Relation| {
            Some(Limit {
                quantity: Quantity::parse(name).ok()?,
                relation,
                limit: nothing.number(side).ok()?,
            })
        };
        of(&self.left, &self.right, self.relation)
            .or_else(|| of(&self.right, &self.left, self.relation.turned()))
    }
}

/// The sum of violations; infinite if one of them is not known.
pub fn total(violations: &[Option<f64>]) -> f64 {
    let known: Option<f64> = violations.iter().copied().sum();
    known.map_or(f64::INFINITY, |sum| sum.min(f64::MAX))
}

/// Whether an expression has no names.
fn is_constant(side: &str) -> bool {
    names_by(side, Dialect::Filter).is_empty()
}

impl Quantity {
    fn parse(name: &str) -> Result<Self, Wrong> {
        if let Some(count) = by_name::<Count>(name) {
            return Ok(Self::Count(count));
        }
        let (of_last, metric) = match name.strip_prefix("last/") {
            Some(metric) => (true, metric),
            None => (false, name),
        };
        match Traded::parse(metric) {
            Ok(Traded::Metric(metric)) if of_last => Ok(Self::Last(metric)),
            Ok(traded) if !of_last => Ok(Self::Reached(traded)),
            Ok(_) => Err(unknown(name, "only metrics have a last epoch".into())),
            Err(Reason(help)) => Err(unknown(name, remedy(name).unwrap_or(help))),
        }
    }

    /// The metric, if it is one.
    pub fn metric(self) -> Option<Objective> {
        match self {
            Self::Reached(Traded::Metric(metric)) | Self::Last(metric) => Some(metric),
            Self::Reached(Traded::Cost(_)) | Self::Count(_) => None,
        }
    }

    /// Why trials cannot be compared by it in the middle of their training, if they cannot.
    pub fn unknown_at_rung(self) -> Option<&'static str> {
        match self {
            Self::Reached(Traded::Cost(Cost::EpochSecs | Cost::WallSecs | Cost::MemoryBytes)) => {
                Some(
                    "what is pruned must not depend on the speed or the memory of a machine, so that a repeated search is the same",
                )
            }
            Self::Count(Count::Epochs) => {
                Some("pruning compares trials after equal numbers of epochs")
            }
            Self::Reached(Traded::Metric(metric)) | Self::Last(metric)
                if metric.split == ObjectiveSplit::ValidSwa =>
            {
                Some("it is only measured once weights are averaged, near the end of the training")
            }
            Self::Reached(Traded::Metric(_) | Traded::Cost(Cost::Parameters))
            | Self::Last(_)
            | Self::Count(Count::BestEpoch) => None,
        }
    }

    /// As written.
    pub fn name(self) -> String {
        match self {
            Self::Reached(traded) => traded.name(),
            Self::Last(metric) => format!("last/{}", metric.name()),
            Self::Count(count) => count.name().to_owned(),
        }
    }

    /// Its range.
    pub fn bounds(self) -> (f64, f64) {
        self.metric()
            .map_or((0.0, f64::INFINITY), |metric| metric.metric.bounds())
    }
}

fn unknown(name: &str, help: String) -> Wrong {
    if name.starts_with("test/") || name.starts_with("last/test/") {
        let message = format!("`{name}` is of the test split, which must not decide anything");
        return Wrong::new(message, help);
    }
    Wrong::new(format!("no run measures `{name}`"), help)
}

/// What was probably meant by a name that is not a metric of a split.
fn remedy(name: &str) -> Option<String> {
    if ["B", "kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB"].contains(&name) {
        return Some(format!("write a size without a space, such as `2{name}`"));
    }
    if name == "objective" {
        return Some("name the metric itself, such as `valid/accuracy`".into());
    }
    if name.contains('.') && !name.contains('/') {
        return Some(
            "settings are known before the training: exclude points with `exclude` in `[sweep]`"
                .into(),
        );
    }
    let costs = Cost::ALL.iter().map(|(_, name, _)| *name);
    let counts = Count::ALL.iter().map(|(_, name, _)| *name);
    let known = costs.clone().chain(counts.clone());
    // `memory`, `params`
    let begins = |known: &&str| {
        let same = name.bytes().zip(known.bytes()).take_while(|(a, b)| a == b);
        same.count() >= 4
    };
    let near = nearest_path(name, known.clone()).or_else(|| known.clone().find(begins));
    if let Some(near) = near {
        return Some(format!("did you mean `{near}`?"));
    }
    // A metric without a split, or of test, has a remedy of its own.
    if name.contains('/') || super::metric::Metric::named(name).is_some() {
        return None;
    }
    let all: Vec<String> = known.map(|name| format!("`{name}`")).collect();
    Some(format!(
        "use {}, or a metric of a split, such as `valid/loss`",
        all.join(", ")
    ))
}

/// Numbers by name.
struct Values<'a>(BTreeMap<&'a str, f64>);

impl Values<'_> {
    /// The number that an expression is.
    fn number(&self, source: &str) -> Result<f64, Box<Diagnostic>> {
        match evaluate(source, Default::default(), self)? {
            Value::Int(number) => Ok(number as f64),
            Value::Float(number) => Ok(number),
            other => {
                let message = format!("`{source}` is {}, which is not a number", other.to_toml());
                let wrong = Diagnostic::error("expression", message);
                Err(Box::new(
                    wrong.help(format!("compare numbers, as in `{EXAMPLE}`")),
                ))
            }
        }
    }
}

impl Names for Values<'_> {
    fn value(&self, name: &str) -> Result<Node, Wrong> {
        match self.0.get(name) {
            Some(number) => Ok(Node {
                span: Default::default(),
                value: Value::Float(*number),
            }),
            None => Err(Wrong::new(format!("there is no `{name}`"), "")),
        }
    }

    fn dialect(&self) -> Dialect {
        Dialect::Filter
    }
}

impl TryFrom<String> for Constraint {
    type Error = Reason;

    fn try_from(text: String) -> Result<Self, Reason> {
        Self::parse(&text).map_err(|Wrong { message, help }| Reason(format!("{message}: {help}")))
    }
}

impl From<Constraint> for String {
    fn from(constraint: Constraint) -> Self {
        constraint.source
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(source: &str) -> Option<f64> {
        let value = |quantity: Quantity| match quantity.name().as_str() {
            "memory_bytes" => Some(3e9),
            "parameters" => Some(100.0),
            "valid/loss" => Some(-0.5),
            "last/valid/loss" => Some(0.5),
            "wall_secs" => Some(5400.0),
            // The mean of 28/30, 21/30 and 23/30.
            "valid/accuracy" => Some(0.7999999999999999),
            _ => None,
        };
        Constraint::parse(source).unwrap().violation(&value)
    }

    #[test]
    fn violations_are_relative_to_the_limit() {
        for (source, expected) in [
            ("memory_bytes < 2e9", Some(0.5)),
            ("2e9 > memory_bytes", Some(0.5)),
            ("memory_bytes <= 4e9", Some(0.0)),
            ("memory_bytes < 2GiB", Some(3e9 / 2_147_483_648.0 - 1.0)),
            ("wall_secs < 1h", Some(0.5)),
            ("parameters >= 200", Some(0.5)),
            ("parameters < 100", Some(f64::EPSILON)),
            ("parameters <= 100", Some(0.0)),
            ("valid/accuracy >= 0.8", Some(0.0)),
            ("valid/accuracy < 0.8", Some(f64::EPSILON)),
            // Of 0, and of a negative number.
            ("valid/loss > 0", Some(0.5)),
            ("valid/loss < -1", Some(0.5)),
            ("last/valid/loss - valid/loss < 0.5", Some(1.0)),
            ("last/valid/loss < valid/loss", Some(2.0)),
            // Missing, or not a number.
            ("train/loss < 1", None),
            ("parameters / (parameters - 100) < 2", None),
            ("1e308 * memory_bytes < 2", None),
            ("1e298 * memory_bytes < 1e-99", Some(f64::MAX)),
        ] {
            let found = violation(source);
            let is_near = match (found, expected) {
                (Some(found), Some(expected)) => {
                    found == expected || (found - expected).abs() < 1e-12
                }
                (found, expected) => found == expected,
            };
            assert!(is_near, "{source} {found:?}");
        }
        assert_eq!(total(&[Some(0.5), Some(0.25)]), 0.75);
        assert_eq!(total(&[Some(0.5), None]), f64::INFINITY);
        assert_eq!(total(&[]), 0.0);
    }

    #[test]
    fn what_is_no_constraint_is_said() {
        let sources = [
            "memory_bytes",
            "1 < 2",
            "memory_bytes = 2e9",
            "memory_bytes == 2e9",
            "memory_bytes in [1, 2]",
            "memory_bytes < 2e9 and valid/loss < 1",
            "memory_bytes < 2e9 or valid/loss < 1",
            "not memory_bytes < 2e9",
            "1 < parameters < 9",
            "memory_byte < 2e9",
            "params < 100",
            "memory < 2e9",
            "latency < 1",
            "accuracy > 0.9",
            "test/accuracy > 0.9",
            "valid/acuracy > 0.9",
            "last/parameters < 9",
            "optimizer.learning_rate < 0.1",
            "objective > 0.9",
            "valid/loss < 'low'",
            "valid/loss <",
            "(valid/loss < 1",
            "valid/loss < 2x",
            "memory_bytes < ${values.most}",
            "",
        ];
        let said = sources.map(|source| {
            let Wrong { message, help } = Constraint::parse(source).unwrap_err();
            format!("{source}\n  {message}\n  {help}")
        });
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn limits_of_a_single_quantity_are_found() {
        let limit = |source: &str| {
            let limit = Constraint::parse(source).unwrap().limit()?;
            Some((limit.quantity.name(), limit.relation, limit.limit))
        };
        let below = |name: &str, number: f64| Some((name.into(), Relation::Below, number));
        assert_eq!(limit("parameters < 2 * 50"), below("parameters", 100.0));
        assert_eq!(limit("1e-1 > valid/loss"), below("valid/loss", 0.1));
        assert_eq!(limit("2 * parameters < 50"), None);
        assert_eq!(limit("valid/loss < train/loss"), None);
    }
}
