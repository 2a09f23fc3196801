//! Differences between two runs, by subject: settings, environment, data, code, weights, metrics.
//!
//! Reads the results tree and related numbers; parts of a run that are damaged or missing are reported, and the rest is
//! compared.

mod numbers;
mod side;
mod text;

use std::fmt;

use serde::Serialize;
use serde_json::Value as Json;

pub use numbers::{MetricDifference, Numbers};
use runner_core::diagnostic::Reason;
use runner_core::record::{changed, settings};
use runner_core::reproduce::{WeightDistance, environment_facts};
pub use side::Side;
pub use text::{brief, show};

/// A fact whose value differs; `null` for the run that does not have it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// What.
    pub name: String,
    /// Its value in the first run.
    pub a: Json,
    /// Its value in the second.
    pub b: Json,
}

impl Difference {
    fn new(name: impl Into<String>, a: impl Into<Json>, b: impl Into<Json>) -> Self {
        Self {
            name: name.into(),
            a: a.into(),
            b: b.into(),
        }
    }
}

/// Compared facts of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Compared {
    /// How many.
    pub num: usize,
    /// The differing ones.
    pub differences: Vec<Difference>,
}

impl Compared {
    /// Includes one fact.
    fn add(&mut self, name: &str, a: Option<&str>, b: Option<&str>) {
        self.num += 1;
        if a != b {
            self.differences.push(Difference::new(name, a, b));
        }
    }
}

/// What could not be compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NotCompared {
    /// The subject.
    pub what: String,
    /// Why not.
    pub why: String,
}

/// The comparison of final weights.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Weights {
    /// Whether their digests are equal.
    pub is_equal: bool,
    /// The distance of each parameter, if they differ and both were read.
    pub parameters: Vec<WeightDistance>,
}

/// Whether a key only gives the location of the data.
fn is_place(key: &str) -> bool {
    let is_path = key.starts_with("data.") && key.ends_with("path");
    is_path || key.starts_with("data.cache") || key.starts_with("data.folder")
}

/// A comparison of two runs. A subject is `None` if it could not be compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// The first run's name and how it ended.
    pub a: [String; 2],
    /// The second's.
    pub b: [String; 2],
    /// Whether everything was compared and nothing differs.
    pub is_equal: bool,
    /// Keys of the resolved runs.
    pub settings: Option<Compared>,
    /// A description of the first layer that differs.
    pub network: Option<String>,
    /// Build, system, machine and device.
    pub environment: Option<Compared>,
    /// Digests of the items by split.
    pub data: Option<Compared>,
    /// The commit of the git checkout, and whether it had uncommitted changes.
    pub code: Option<Compared>,
    /// Other information about the code, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code_note: Option<String>,
    /// Final weights.
    pub weights: Option<Weights>,
    /// Losses, digests and metrics.
    pub numbers: Option<Numbers>,
    /// What could not be compared, and why.
    pub not_compared: Vec<NotCompared>,
}

impl Diff {
    /// Compares two runs. `distances` reads their final weights; it is only called if they differ.
    pub fn of(
        a: &Side,
        b: &Side,
        distances: impl FnOnce() -> Result<Vec<WeightDistance>, Reason>,
    ) -> Self {
        let ends = |side: &Side| [side.name.clone(), side.outcome().to_owned()];
        let mut diff = Self {
            a: ends(a),
            b: ends(b),
            is_equal: false,
            settings: None,
            network: None,
            environment: None,
            data: None,
            code: None,
            code_note: None,
            weights: None,
            numbers: None,
            not_compared: Vec::new(),
        };
        diff.compare_plans(a, b);
        diff.compare_environments(a, b);
        diff.compare_records(a, b, distances);
        diff.is_equal = diff.not_compared.is_empty() && diff.subjects().is_empty();
        diff
    }

    fn skip(&mut self, what: &str, why: impl fmt::Display) {
        self.not_compared.push(NotCompared {
            what: what.into(),
            why: why.to_string(),
        });
    }

    fn compare_plans(&mut self, a: &Side, b: &Side) {
        let (plan_a, plan_b) = match (&a.plan, &b.plan) {
            (Ok(plan_a), Ok(plan_b)) => (plan_a, plan_b),
            (Err(why), _) | (_, Err(why)) => return self.skip("settings", why),
        };
        let [of_a, of_b] = [plan_a, plan_b].map(|plan| settings(plan).len());
        // The location of the same data is not a setting: a capsule has a copy of it elsewhere.
        let digests = [plan_a, plan_b].map(|plan| &plan.data.digest);
        let is_same_data = digests[0] == digests[1] && !digests[0].is_empty();
        let changed = changed(plan_a, plan_b).into_iter();
        let changed = changed.filter(|changed| !(is_same_data && is_place(&changed.key)));
        let mut compared = Compared {
            num: of_a.max(of_b),
            differences: changed
                .map(|changed| {
                    let [a, b] = [changed.then, changed.now].map(Option::unwrap_or_default);
                    Difference::new(changed.key, a, b)
                })
                .collect(),
        };
        // Adjustments count as settings of the run.
        if let (Ok(a), Ok(b)) = (&a.record, &b.record) {
            let words = |record: &runner_core::record::RunRecord| {
                let adjustments = record.attempts.adjustments.iter();
                adjustments.map(ToString::to_string).collect::<Vec<_>>()
            };
            let (a, b) = (words(a), words(b));
            if a != b {
                let difference = Difference::new("adjustments", a, b);
                compared.differences.push(difference);
            }
        }
        self.network = plan_a.network.change(&plan_b.network);
        self.settings = Some(compared);
    }

    fn compare_environments(&mut self, a: &Side, b: &Side) {
        let (a, b) = match (&a.environment, &b.environment) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(why), _) | (_, Err(why)) => {
                self.skip("environment", why);
                return self.skip("code", why);
            }
        };
        let mut environment = Compared::default();
        let facts = environment_facts(a).into_iter().zip(environment_facts(b));
        for ((name, a), (_, b)) in facts {
            environment.add(name, a.as_deref(), b.as_deref());
        }
        // A capsule does not name its machine.
        if !a.host.is_empty() && !b.host.is_empty() {
            environment.add("host", Some(&a.host), Some(&b.host));
        }
        let [cores_a, cores_b] = [a, b].map(|e| e.cores.to_string());
        environment.add("cores", Some(&cores_a), Some(&cores_b));
        self.environment = Some(environment);
        let mut code = Compared::default();
        code.add("commit", a.git_commit.as_deref(), b.git_commit.as_deref());
        let word = |dirty: Option<bool>| dirty.map(|dirty| if dirty { "yes" } else { "no" });
        code.add("uncommitted changes", word(a.git_dirty), word(b.git_dirty));
        self.code = Some(code);
        self.code_note = match (&a.git_commit, a.git_dirty, b.git_dirty) {
            (None, ..) if b.git_commit.is_none() => {
                Some("neither experiment file was in a git checkout".into())
            }
            (_, Some(true), Some(true)) => Some("both checkouts had uncommitted changes".into()),
            _ => None,
        };
    }

    fn compare_records(
        &mut self,
        a: &Side,
        b: &Side,
        distances: impl FnOnce() -> Result<Vec<WeightDistance>, Reason>,
    ) {
        let (of_a, of_b) = match (&a.record, &b.record) {
            (Ok(of_a), Ok(of_b)) => (of_a, of_b),
            (Err(why), _) | (_, Err(why)) => {
                for what in ["data", "weights", "metrics"] {
                    self.skip(what, why);
                }
                return;
            }
        };
        match (&of_a.started, &of_b.started) {
            (Some(a), Some(b)) => {
                let (a, b) = (&a.data_digests, &b.data_digests);
                let mut data = Compared::default();
                let more = b.keys().filter(|split| !a.contains_key(*split));
                for split in a.keys().chain(more) {
                    let digest =
                        |of: &std::collections::BTreeMap<String, String>| of.get(split).cloned();
                    data.add(split, digest(a).as_deref(), digest(b).as_deref());
                }
                self.data = Some(data);
            }
            (a, b) => {
                let why = missing("start in its record", a.is_some(), b.is_some());
                self.skip("data", why.unwrap_or_default());
            }
        }
        let digests = [&of_a.weights_digest, &of_b.weights_digest];
        match missing(
            "final weights",
            !digests[0].is_empty(),
            !digests[1].is_empty(),
        ) {
            Some(why) => self.skip("weights", why),
            None if digests[0] == digests[1] => {
                // Equal digests are the recorded ones; the files must match them.
                match a.check_weights().and_then(|()| b.check_weights()) {
                    Ok(()) => {
                        self.weights = Some(Weights {
                            is_equal: true,
                            parameters: Vec::new(),
                        });
                    }
                    Err(why) => self.skip("weights", why),
                }
            }
            None => {
                let parameters = distances().unwrap_or_else(|why| {
                    self.skip("weights by parameter", why);
                    Vec::new()
                });
                self.weights = Some(Weights {
                    is_equal: false,
                    parameters,
                });
            }
        }
        let traces = match (&a.trace, &b.trace) {
            (Ok(a), Ok(b)) => Some((a, b)),
            (Err(why), _) | (_, Err(why)) => {
                self.skip("steps", why);
                None
            }
        };
        let numbers = Numbers::of(of_a, of_b, traces);
        for why in &numbers.not_compared {
            self.skip("steps", why);
        }
        self.numbers = Some(numbers);
    }

    /// The differing subjects.
    pub fn subjects(&self) -> Vec<&'static str> {
        let differs = |compared: &Option<Compared>| {
            let compared = compared.as_ref();
            compared.is_some_and(|compared| !compared.differences.is_empty())
        };
        let weights = self.weights.as_ref();
        let numbers = self.numbers.as_ref();
        let all = [
            ("outcome", self.a[1] != self.b[1]),
            (
                "settings",
                differs(&self.settings) || self.network.is_some(),
            ),
            ("environment", differs(&self.environment)),
            ("data", differs(&self.data)),
            ("code", differs(&self.code)),
            ("weights", weights.is_some_and(|weights| !weights.is_equal)),
            (
                "metrics",
                numbers.is_some_and(|numbers| !numbers.is_equal()),
            ),
        ];
        let differing = all.into_iter().filter(|(_, differs)| *differs);
        differing.map(|(name, _)| name).collect()
    }
}

/// Which of two runs lack something, if any does.
fn missing(what: &str, has_a: bool, has_b: bool) -> Option<String> {
    match (has_a, has_b) {
        (true, true) => None,
        (false, true) => Some(format!("the first run has no {what}")),
        (true, false) => Some(format!("the second run has no {what}")),
        (false, false) => Some(format!("neither run has {what}")),
    }
}
