//! `[search]`: trials that are suggested one after the other, from the results so far.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::constraint::Constraint;
use super::document::Entry;
use super::kind::Kind;
use super::section::{Choice, Findings, Section, choices};
use super::sweep::{SweepSpec, Text};
use super::traded::Traded;
use crate::diagnostic::{Diagnostic, Span, Wrong};

/// More trials are a mistake: it is also the number of points of the Sobol sequence.
const MAX_TRIALS: i64 = 1 << 16;

/// More trials at once than any machine trains.
const MAX_PARALLEL: i64 = 1000;

/// More members than any machine trains.
const MAX_POPULATION: i64 = 1000;

/// More decisions about a trial are a mistake: each of them stops its training.
pub const MAX_RUNGS: usize = 1000;

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
    /// How trials are ended early, if they are.
    pub prune: Option<PruneSpec>,
    /// Which trials are trained again at the end, if any.
    pub confirm: Option<ConfirmSpec>,
    /// Further objectives, in a search for trade-offs.
    pub objectives: Vec<(Traded, Span)>,
    /// Limits that its best trial has to meet.
    pub constraints: Vec<(Constraint, Span)>,
    /// Folders of earlier results, whose trials it learns from.
    pub warm_start: Vec<Text>,
    /// Points that are tried first; keys with their values.
    pub enqueue: Vec<Vec<(String, Entry)>>,
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

/// The `[search.prune]` table: trials that are not among the better ones after some epochs end early.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PruneSpec {
    /// The rule.
    #[serde(rename = "type")]
    pub rule: PruneRule,
    /// The epochs before the first decision.
    pub min_epochs: usize,
    /// The reduction factor: one of this many trials continues at each rung, each of which has this many times the
    /// epochs of the one before it. For `median` and `pbt`, the epochs between decisions.
    pub step: usize,
    /// The other trials that `median` needs.
    #[serde(default)]
    pub min_trials: usize,
    /// The population of `pbt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub population: Option<PopulationSpec>,
    /// The place of the table.
    #[serde(skip)]
    pub span: Span,
}

/// The population of `pbt`, and how its worst members are replaced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PopulationSpec {
    /// The number of members.
    pub size: usize,
    /// The part of the members that is replaced, and the part that they are replaced by.
    pub quantile: f64,
    /// One of them multiplies a hyperparameter of a copy.
    pub factors: Vec<f64>,
    /// The probability that it is sampled again instead.
    pub resample_probability: f64,
}

/// The `[search.confirm]` table: the best trials are trained again, with other seeds than those that selected them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfirmSpec {
    /// How many of the best trials.
    pub trials: usize,
    /// How many seeds each.
    pub seeds: usize,
}

/// The training of a suggested trial in a search that prunes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnRung {
    /// The epochs up to which its runs are trained.
    pub epochs: usize,
    /// The bracket, from 0, for rules with brackets.
    #[serde(default)]
    pub bracket: usize,
    /// The round in which this was decided, from 0.
    pub round: usize,
}

/// What a trial of population-based training begins as: a copy of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fork {
    /// The number of the suggestion whose trial is copied, from 0.
    pub from: usize,
    /// The epochs of that trial that are copied.
    pub epochs: usize,
    /// The member of the population that it replaces, from 0.
    pub member: usize,
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
    /// How far it is trained, in a search that prunes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rung: Option<OnRung>,
    /// What it is a copy of, in population-based training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
    /// Whether it is trained with other seeds too, as one of the best.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_confirmed: bool,
}

/// A trial of earlier results that a search learns from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    /// The folder of the results, as in the file.
    pub from: String,
    /// The objective of its experiment.
    pub objective: String,
    /// The values of the axes that it sets.
    pub values: Map<String, Json>,
    /// The mean of the objective, negated if higher is better; none if a run of it failed.
    pub value: Option<f64>,
    /// The same of the further objectives of the search that learns from it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<f64>,
    /// For each constraint of the search that learns from it, how far the trial is from meeting it; none if that is not
    /// known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violations: Vec<Option<f64>>,
}

choices! {
    /// How points are suggested.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SearchMethod {
        Random "random" "Independent points, whatever the results.",
        Sobol "sobol" "A Sobol sequence with Owen scrambling (Burley, 2020): points that cover the space evenly, whatever the results.",
        Tpe "tpe" "The tree-structured Parzen estimator (Bergstra et al., 2011): points that resemble the good trials more than the others. The first ten are those of `sobol`.",
        Gp "gp" "A Gaussian process (Snoek et al., 2012): points at which an improvement on the best trial is expected. The first ten are those of `sobol`.",
        CmaEs "cma_es" "The evolution strategy CMA-ES (Hansen, 2016), for axes without choices and conditions: points around a center that moves to the better trials.",
        Nsga2 "nsga2" "The genetic algorithm NSGA-II (Deb et al., 2002), for several `objectives`: points that mix two of the best 20 trials. The first 20 are those of `sobol`.",
    }
}

choices! {
    /// When trials end early.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum PruneRule {
        Asha "asha" "Asynchronous successive halving (Li et al., 2018): of the trials at a rung so far, the best 1/`factor` continue to the next.",
        SuccessiveHalving "successive_halving" "Successive halving (Jamieson and Talwalkar, 2016): brackets of trials, of which the best 1/`factor` continue once all are at a rung.",
        Hyperband "hyperband" "Hyperband (Li et al., 2016): successive halving with brackets that begin with few trials and many epochs, or the other way round, in turn.",
        Pbt "pbt" "Population-based training (Jaderberg et al., 2017): a population of trials is trained together, and after each interval the worst of them are replaced by copies of the best with changed hyperparameters.",
        Median "median" "The median rule (Golovin et al., 2017): a trial ends when its best value so far is worse than the median of the others after as many epochs.",
    }
}

choices! {
    /// What chose a point.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SuggestedBy {
        Sample "sample" "It was sampled, without regard to results.",
        Model "model" "It was chosen from results.",
        File "file" "It is in the file.",
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
        let doc = "Ends trials early that are not among the better ones after some epochs.";
        let prune = s.optional_table("prune", doc, PruneSpec::decode);
        let doc = "Trains the best trials again at the end, with other seeds: the value of the best of many trials is biased.";
        let confirm = s.optional_table("confirm", doc, ConfirmSpec::decode);
        let doc = "Further objectives besides `objective.metric`, such as `[\"parameters\"]`: the search looks for the best trade-offs (the Pareto front).";
        let objectives = further(s, "objectives", doc);
        let doc = "Limits that the best trial has to meet, such as `[\"memory_bytes < 2e9\"]`: comparisons of metrics and costs of a trial. Trials that exceed one are ranked behind all others, and are not selected.";
        let constraints = limits(s, "constraints", doc);
        let doc = "Folders of earlier results over the same axes, such as `results/digits`, relative to this file: the search learns from their trials, and does not try these again.";
        let warm_start = Text::list(s, "warm_start", Kind::Text, 1, doc);
        let doc = "Points that are tried first: tables of axes with one value each. Axes that are not listed are sampled.";
        let enqueue = super::sweep::trials(s, "enqueue", doc);
        let is_refused = ["num_trials", "budget", "type", "prune"]
            .iter()
            .any(|key| s.is_refused(key));
        let span = match s.reading() {
            Some((span, findings)) => {
                let has_population = prune
                    .as_ref()
                    .is_some_and(|prune| prune.rule == PruneRule::Pbt);
                let is_unlimited = num_trials.is_none() && budget.is_none();
                if is_unlimited && !is_refused && !has_population {
                    // As for other keys, so that a misspelled one is reported once.
                    let message = format!(
                        "missing key `num_trials` in `search` (type `{}`)",
                        method.name()
                    );
                    let missing = Diagnostic::error("missing-key", message);
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
            prune,
            confirm,
            objectives,
            constraints,
            warm_start,
            enqueue,
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

/// A list of further objectives.
fn further(s: &mut Section<'_>, key: &'static str, doc: &'static str) -> Vec<(Traded, Span)> {
    let listed = Text::list(s, key, Traded::kind(), 1, doc);
    let parsed = listed
        .into_iter()
        .filter_map(|text| Some((Traded::parse(&text.source).ok()?, text.span)));
    parsed.collect()
}

/// A list of constraints.
fn limits(s: &mut Section<'_>, key: &'static str, doc: &'static str) -> Vec<(Constraint, Span)> {
    let mut read = Vec::new();
    for Text { source, span } in Text::list(s, key, Kind::Text, 1, doc) {
        match Constraint::parse(&source) {
            Ok(constraint) => read.push((constraint, span)),
            Err(Wrong { message, help }) => {
                let wrong = Diagnostic::error("expression", message).at(span);
                s.refuse(key, wrong.help(help));
            }
        }
    }
    read
}

impl PruneSpec {
    fn decode(s: &mut Section<'_>) -> Self {
        let doc = "When trials end early.";
        let (rule, [min_epochs, step, min_trials], population) = s.variant(doc, None::<PruneRule>, |s, rule| {
            if rule == PruneRule::Pbt {
                let doc = "The epochs after which members are compared, and the worst replaced.";
                let interval = s.field("interval", Kind::at_least(1), doc).or(1);
                let population = PopulationSpec::decode(s);
                return (rule, [interval, interval, 0], Some(population));
            }
            let doc = "The epochs before the first decision.";
            let min_epochs = s.field("min_epochs", Kind::at_least(1), doc).or(1);
            if rule == PruneRule::Median {
                let doc = "The epochs between decisions.";
                let every = s.field("every_epochs", Kind::at_least(1), doc).or(1);
                let doc = "Other trials that must have been trained for as many epochs.";
                let others = s.field("min_trials", Kind::at_least(1), doc).or(5);
                return (rule, [min_epochs, every, others], None);
            }
            let doc = "The reduction factor: one of this many trials continues, for this many times the epochs.";
            let factor = s.field("factor", Kind::Int(2, 100), doc).or(3);
            (rule, [min_epochs, factor, 0], None)
        });
        Self {
            rule,
            min_epochs,
            step,
            min_trials,
            population,
            span: s.reading().map_or(Span::default(), |(span, _)| span),
        }
    }

    /// The epochs of the rungs of a training, the last of which is its end; with more than [`MAX_RUNGS`], the first.
    pub fn rungs(&self, epochs: usize) -> Vec<usize> {
        let next = |rung: &usize| match self.rule {
            PruneRule::Median | PruneRule::Pbt => rung.checked_add(self.step),
            _ => rung.checked_mul(self.step),
        };
        let rungs = std::iter::successors(Some(self.min_epochs), next);
        let below = rungs.take_while(|rung| *rung < epochs);
        let below = below.take(MAX_RUNGS);
        below.chain([epochs]).collect()
    }
}

impl PopulationSpec {
    fn decode(s: &mut Section<'_>) -> Self {
        let doc = "The number of members, which are trained together.";
        let size = s
            .field("population", Kind::Int(2, MAX_POPULATION), doc)
            .or(8);
        let doc = "The part of the members that is replaced after an interval, and the part of the best by whose copies they are replaced.";
        let part = Kind::Float {
            min: 0.0,
            open_min: true,
            max: 0.5,
            open_max: false,
        };
        let quantile = s.field("quantile", part, doc).or(0.25);
        let doc = "A copy has its hyperparameters multiplied by one of these, each with equal probability.";
        let factor = Kind::Float {
            min: 0.0,
            open_min: true,
            max: 1e3,
            open_max: false,
        };
        let factors = s
            .field("factors", Kind::list(factor, 1), doc)
            .or(vec![0.8, 1.2]);
        let doc = "The probability that a hyperparameter of a copy is sampled again from its distribution, rather than multiplied.";
        let part = Kind::Float {
            min: 0.0,
            open_min: false,
            max: 1.0,
            open_max: false,
        };
        let resample_probability = s.field("resample_probability", part, doc).or(0.25);
        Self {
            size,
            quantile,
            factors,
            resample_probability,
        }
    }
}

impl ConfirmSpec {
    fn decode(s: &mut Section<'_>) -> Self {
        let doc =
            "The number of trials: the best by the mean of the objective over `experiment.seeds`.";
        let trials = s.field("trials", Kind::Int(1, 100), doc).or(5);
        let doc = "The number of seeds of each: the smallest that are not in `experiment.seeds`.";
        let seeds = s.field("seeds", Kind::Int(2, 1000), doc).or(10);
        Self { trials, seeds }
    }

    /// The seeds, for an experiment with these.
    pub fn other_seeds(&self, seeds: &[u64]) -> Vec<u64> {
        let others = (1..).filter(|seed| !seeds.contains(seed));
        others.take(self.seeds).collect()
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
