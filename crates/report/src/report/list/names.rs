//! The names by which runs are filtered, sorted and shown: built-in names, metrics, and settings as in an experiment
//! file.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use super::Run;
use runner_core::diagnostic::Wrong;
use runner_core::record::{Index, State};
use runner_core::spec::nearest_path;

/// The names that every run has, with their meanings in column order.
pub const OWN: [&str; 20] = [
    "experiment",
    "run",
    "trial",
    "seed",
    "outcome",
    // The objective at the best epoch.
    "objective",
    "best_epoch",
    "epochs",
    "num_epochs",
    // Of the network.
    "parameters",
    "wall_secs",
    "epoch_secs",
    "memory_bytes",
    // Whether it differs from the plan.
    "adjusted",
    // The class of the failure.
    "failure",
    "message",
    // Seconds since its last event.
    "age",
    "last_event_ms",
    "fingerprint",
    "weights_digest",
];

/// Names that few runs have: how far a trial is from meeting the constraints of its search, what it is a copy of, where runs are among earlier
/// settings, and what people say of them.
pub const FEW: [&str; 6] = [
    "violation",
    "copy_of",
    "generation",
    "changed",
    "tags",
    "note",
];

impl Run<'_> {
    /// The value of a name; `None` if this run does not have it.
    pub fn value(&self, name: &str) -> Option<Json> {
        let run = self.entry;
        let text = |text: &str| (!text.is_empty()).then(|| json!(text));
        match name {
            "experiment" => Some(json!(self.index.plan.experiment)),
            "run" => Some(json!(run.id)),
            "trial" => Some(json!(run.trial)),
            "seed" => Some(json!(run.seed)),
            "outcome" => Some(json!(run.state.word())),
            "objective" => self.metric(&self.index.plan.objective.name()),
            "best_epoch" => run.best_epoch.map(|epoch| json!(epoch)),
            "epochs" => Some(json!(run.epochs)),
            "num_epochs" => Some(json!(run.num_epochs)),
            "parameters" => Some(json!(run.num_parameters)),
            "wall_secs" => Some(json!(match run.state {
                State::Running => run.wall_secs + self.age_secs().unwrap_or(0.0),
                _ => run.wall_secs,
            })),
            "epoch_secs" => run.epoch_secs.map(|secs| json!(secs)),
            "memory_bytes" => run.memory.map(|memory| json!(memory.measured.bytes())),
            "adjusted" => Some(json!(run.is_adjusted)),
            "failure" => run.failure.map(|class| json!(class)),
            "message" => text(&run.message),
            "age" => self.age_secs().map(|secs| json!(secs)),
            "last_event_ms" => run.last_event_ms.map(|time| json!(time)),
            "fingerprint" => text(&run.fingerprint),
            "weights_digest" => text(&run.weights_digest),
            "tags" => text(&run.label.tags_in_words()),
            "note" => text(&run.label.note),
            "generation" => Some(run.generation.number)
                .filter(|number| *number > 0)
                .map(|number| json!(number)),
            "changed" => text(&run.generation.changed),
            "violation" => self.violation.map(|violation| json!(violation)),
            "copy_of" => self.copy_of().map(|of| json!(of)),
            _ => self.metric(name).or_else(|| self.setting(name).cloned()),
        }
    }

    /// The run that it begins as a copy of, in population-based training.
    fn copy_of(&self) -> Option<String> {
        let run = self.setting("fork.run")?.as_str()?;
        let epoch = self.setting("fork.epoch")?;
        Some(format!("{run} after epoch {epoch}"))
    }

    fn metric(&self, name: &str) -> Option<Json> {
        self.entry.metrics.get(name).map(|value| json!(value))
    }

    fn setting(&self, name: &str) -> Option<&Json> {
        let own = self.entry.settings.get(name);
        own.or_else(|| self.index.settings.get(name))
    }

    /// Seconds since its last event; 0 if clocks disagree.
    pub fn age_secs(&self) -> Option<f64> {
        let last = self.entry.last_event_ms?;
        Some(self.now_ms.saturating_sub(last) as f64 / 1e3)
    }
}

/// The name whose last part is most similar to another, preferring the metric on valid.
pub fn nearest_last<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut all: Vec<(&str, &str)> = names
        .filter_map(|full| Some((full.rsplit(['.', '/']).next()?, full)))
        .collect();
    all.sort_by_key(|(_, full)| !full.starts_with("valid/"));
    let near = nearest_path(name, all.iter().map(|(last, _)| *last))?;
    all.iter()
        .find(|(last, _)| *last == near)
        .map(|(_, full)| *full)
}

/// States of a run, which were probably intended where they occur without quotes.
const STATES: [&str; 7] = [
    "completed",
    "failed",
    "interrupted",
    "pruned",
    "skipped",
    "running",
    "incomplete",
];

/// The names that some run has.
pub struct Known {
    metrics: BTreeSet<String>,
    /// Those that differ between runs.
    varied: BTreeSet<String>,
    /// All other settings.
    shared: BTreeSet<String>,
    /// Of [`FEW`], those that some run has.
    few: Vec<&'static str>,
}

impl Known {
    /// Those of all runs of some experiments.
    pub fn of(indexes: &[Index]) -> Self {
        let (mut metrics, mut varied) = (BTreeSet::new(), BTreeSet::new());
        let mut shared: BTreeSet<String> = BTreeSet::new();
        let add = |all: &mut BTreeSet<String>, name: &String| {
            if !all.contains(name) {
                all.insert(name.clone());
            }
        };
        for index in indexes {
            for run in &index.runs {
                run.metrics.keys().for_each(|name| add(&mut metrics, name));
                run.settings.keys().for_each(|name| add(&mut varied, name));
            }
            for (key, value) in &index.settings {
                let is_same = |other: &Index| other.settings.get(key) == Some(value);
                if indexes.iter().all(is_same) {
                    add(&mut shared, key)
                } else {
                    add(&mut varied, key)
                }
            }
        }
        let runs = || indexes.iter().flat_map(|index| &index.runs);
        let has_constraints = |index: &Index| {
            let search = index.plan.search.as_ref();
            search.is_some_and(|search| !search.constraints.is_empty())
        };
        let has_copies = varied.contains("fork.run");
        let has = |name: &&str| match *name {
            "violation" => indexes.iter().any(has_constraints),
            "copy_of" => has_copies,
            "generation" => runs().any(|run| run.generation.number > 0),
            "changed" => runs().any(|run| !run.generation.changed.is_empty()),
            "tags" => runs().any(|run| !run.label.tags.is_empty()),
            _ => runs().any(|run| !run.label.note.is_empty()),
        };
        Self {
            metrics,
            varied,
            shared,
            few: FEW.into_iter().filter(has).collect(),
        }
    }

    /// What every run has, what differs between runs, and the metrics: the columns of a table of everything.
    pub fn all(&self) -> Vec<String> {
        let own = OWN.into_iter().chain(self.few.iter().copied());
        let own = own.map(str::to_owned);
        let varied = self.varied.iter().cloned();
        own.chain(varied)
            .chain(self.metrics.iter().cloned())
            .collect()
    }

    /// The settings that all runs share.
    pub fn shared(&self) -> Vec<String> {
        self.shared.iter().cloned().collect()
    }

    /// Refuses a name that no run has.
    pub fn check(&self, name: &str) -> Result<(), Wrong> {
        let sets = [&self.metrics, &self.varied, &self.shared];
        if OWN.contains(&name) || FEW.contains(&name) || sets.iter().any(|set| set.contains(name)) {
            return Ok(());
        }
        let names = sets.into_iter().flatten().map(String::as_str);
        let names = OWN.into_iter().chain(names);
        // A name is probable if its last part is given, preferring the metric on valid.
        let is_end = |key: &&str| {
            let before = key.strip_suffix(name);
            before.is_some_and(|before| before.ends_with(['.', '/']))
        };
        let mut ends: Vec<&str> = names.clone().filter(is_end).collect();
        ends.sort_by_key(|key| !key.starts_with("valid/"));
        let near = ends.first().copied();
        // Or where its end is left out.
        let begins = |key: &&str| name.len() > 2 && key.starts_with(name);
        let near = near.or_else(|| names.clone().filter(begins).min_by_key(|key| key.len()));
        let near = near.or_else(|| nearest_path(name, names.clone()));
        let near = near.or_else(|| nearest_last(name, names));
        let state = nearest_path(name, STATES.into_iter());
        let help = match (near, state) {
            (Some(near), _) => format!("did you mean `{near}`?"),
            (None, Some(state)) => format!("text needs quotes: use `outcome == '{state}'`"),
            (None, None) if name.contains('/') => {
                "metrics have names such as `valid/loss` and `last/train/loss`; to divide, put spaces around `/`".into()
            }
            (None, None) => "use metrics such as `valid/loss`, keys of the experiment file such as `optimizer.type`, or names such as `outcome`, `age` and `wall_secs`; text needs quotes".into(),
        };
        Err(Wrong::new(
            format!("no run has a key or metric named `{name}`"),
            help,
        ))
    }
}
