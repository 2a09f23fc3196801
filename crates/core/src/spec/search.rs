//! `[search]`: trials that are suggested one after the other, from the results so far.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::kind::Kind;
use super::section::{Findings, Section, choices};
use super::sweep::SweepSpec;
use crate::diagnostic::{Diagnostic, Span};

/// More trials are a mistake: it is also the number of points of the Sobol sequence.
const MAX_TRIALS: i64 = 1 << 16;

/// More trials at once than any machine trains.
const MAX_PARALLEL: i64 = 1000;

/// The `[search]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchSpec {
    /// How points are suggested.
    pub method: SearchMethod,
    /// The number of trials, if it is limited.
    pub num_trials: Option<usize>,
    /// The seed of the sampler.
    pub seed: u64,
    /// Trials that are suggested together.
    pub parallel: usize,
    /// What the search may cost.
    pub budget: Budget,
    /// The place of the table.
    pub span: Span,
}

/// The `[search.budget]` table: limits after which no more trials are suggested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// Time of training, over all runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Duration>,
    /// Trained epochs, over all runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epochs: Option<usize>,
}

/// A suggested point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suggestion {
    /// Its trial, which is that of an earlier suggestion if both set the same values.
    #[serde(default)]
    pub trial: String,
    /// What chose it.
    pub by: SuggestedBy,
    /// The number of trials whose results it was shown: the first of the search.
    pub shown: usize,
    /// The values of the axes that it sets.
    pub values: Map<String, Json>,
}

choices! {
    /// How points are suggested.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SearchMethod {
        Random "random" "Independent points, whatever the results.",
        Sobol "sobol" "A Sobol sequence with Owen scrambling (Burley, 2020): points that cover the space evenly, whatever the results.",
        Tpe "tpe" "The tree-structured Parzen estimator (Bergstra et al., 2011): points that resemble the good trials more than the others. The first ten are those of `sobol`.",
    }
}

choices! {
    /// What chose a point.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SuggestedBy {
        Sample "sample" "It was sampled, without regard to results.",
        Model "model" "It was chosen from results.",
    }
}

impl SearchSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let doc = "How points are suggested.";
        let method = s.variant(doc, None::<SearchMethod>, |_, method| method);
        let doc = "The number of trials. Required unless `[search.budget]` is set.";
        let num_trials = s
            .field("num_trials", Kind::Int(1, MAX_TRIALS), doc)
            .optional();
        let doc = "Seed of the suggestions.";
        let seed = s.field("seed", Kind::Int(0, u32::MAX.into()), doc).or(0);
        let doc = "Trials that are suggested together, from the results of all earlier ones. More of them use more of a machine, fewer learn more per trial. The trials of a search do not depend on `--jobs`.";
        let parallel = s.field("parallel", Kind::Int(1, MAX_PARALLEL), doc).or(4);
        let doc = "What the search may cost: when it is spent, no more trials are suggested.";
        let budget = s.optional_table("budget", doc, Budget::decode);
        let is_refused =
            s.is_refused("num_trials") || s.is_refused("budget") || s.is_refused("type");
        let span = match s.reading() {
            Some((span, findings)) => {
                if num_trials.is_none() && budget.is_none() && !is_refused {
                    let missing =
                        Diagnostic::error("missing-key", "missing key `num_trials` in `search`");
                    let missing = missing.at(span).label("`num_trials` must be set here");
                    let help =
                        "add `num_trials = 60`, or a limit such as `budget = { time = \"2h\" }`";
                    findings.refuse("search.num_trials", missing.help(help));
                }
                span
            }
            None => Span::default(),
        };
        Self {
            method,
            num_trials,
            seed,
            parallel,
            budget: budget.unwrap_or_default(),
            span,
        }
    }

    /// Refuses a sweep that cannot be searched.
    pub(super) fn check(&self, sweep: &SweepSpec, findings: &mut Findings) {
        let mut refuse = |message: String, span: Span, help: String| {
            let wrong = Diagnostic::error("contradiction", message).at(span);
            let wrong = wrong.related(self.span, "the search");
            findings.refuse("search", wrong.help(help));
        };
        let axes = [("grid", &sweep.grid), ("zip", &sweep.zip)];
        for (table, axis) in axes
            .iter()
            .filter_map(|(table, axes)| Some((table, axes.first()?)))
        {
            refuse(
                format!("`[search]` and `[sweep.{table}]` cannot be combined"),
                axis.key_span,
                format!(
                    "search it as well: `{} = {{ type = \"choice\", values = {} }}` in `[sweep.random.axes]`",
                    axis.key,
                    axis.values.value.to_toml()
                ),
            );
        }
        if let Some((_, entry)) = sweep.list.iter().flatten().next() {
            refuse(
                "`[search]` and `[[sweep.list]]` cannot be combined".into(),
                entry.key_span,
                "remove `[search]` to train these trials, or move their keys to `[sweep.random.axes]`".into(),
            );
        }
        if let Some((_, span)) = sweep.limit {
            refuse(
                "`sweep.limit` has no effect on a search".into(),
                span,
                "set `search.num_trials` instead".into(),
            );
        }
        let written = sweep.random.iter().flat_map(|random| &random.written);
        for (key, span) in written {
            let own = if *key == "sampler" { "type" } else { key };
            refuse(
                format!("`sweep.random.{key}` and `[search]` contradict each other"),
                *span,
                format!("remove it: `search.{own}` applies"),
            );
        }
        if sweep.random.is_none() && !findings.is_poisoned("sweep.random") {
            let missing = Diagnostic::error("missing-table", "`[search]` has no axes to search");
            let help = "add `[sweep.random.axes]`, with lines such as `\"optimizer.learning_rate\" = { type = \"log_uniform\", min = 1e-4, max = 1e-1 }` below it";
            findings.refuse("sweep.random", missing.at(self.span).help(help));
        }
    }
}

impl Budget {
    fn decode(s: &mut Section<'_>) -> Self {
        let kind = Kind::Duration { allows_zero: false };
        let doc = "Time of training, summed over all runs.";
        let time: Option<Duration> = s.field("time", kind, doc).optional();
        let doc = "Trained epochs, summed over all runs.";
        let epochs = s.field("epochs", Kind::at_least(1), doc).optional();
        let is_refused = s.is_refused("time") || s.is_refused("epochs");
        if let (None, None, false, Some((span, findings))) = (time, epochs, is_refused, s.reading())
        {
            let empty =
                Diagnostic::error("missing-key", "`[search.budget]` limits nothing").at(span);
            let help = "set `time = \"2h\"` or `epochs = 2000` in it, or remove it";
            findings.refuse("search.budget", empty.help(help));
        }
        Self { time, epochs }
    }

    /// Whether there is no limit.
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }
}
