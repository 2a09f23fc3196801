//! Population-based training: what its members do after each interval, and what it cannot be combined with.
//!
//! A member is a trial that is paused after each interval, like one that is pruned, and continued if it is not among the
//! worst. What replaces it otherwise is a trial of its own, a *fork*: it begins as a copy of another member.

use serde_json::{Map, Value as Json};

use super::super::read::read_as_written;
use super::draw::{multiplied, node_at};
use super::search::{Search, TrialResult};
use crate::diagnostic::{Diagnostic, Span, counted};
use crate::spec::distribution::Distribution;
use crate::spec::document::Document;
use crate::spec::reference::References;
use crate::spec::search::{Fork, OnRung, PopulationSpec, SearchMethod, SuggestedBy, Suggestion};
use crate::spec::section::Choice;
use crate::spec::sweep::RandomAxisSpec;
use runner_search::{Change, Next, Population, Shown};

/// Settings of the optimizer that every update reads.
const OF_UPDATES: [&str; 14] = [
    "learning_rate",
    "weight_decay",
    "momentum",
    "dampening",
    "alpha",
    "beta",
    "beta_1",
    "beta_2",
    "beta_3",
    "epsilon",
    "clip.norm",
    "clip.value",
    "clip.global_norm",
    "adamw.learning_rate",
];

impl Search<'_> {
    /// All suggestions after the next interval of a population; empty when the training ends.
    pub(super) fn next_interval(
        &self,
        spec: &PopulationSpec,
        epochs: &[usize],
        known: &[Suggestion],
        results: &[TrialResult],
    ) -> Result<Vec<Suggestion>, Box<Diagnostic>> {
        let Some(members) = members(known, spec.size) else {
            let first = OnRung {
                epochs: epochs[0],
                bracket: 0,
                round: 0,
            };
            let missing = vec![Some(first); spec.size.saturating_sub(known.len())];
            return self.extended(known.to_vec(), (Shown::default(), 0), missing);
        };
        let reached = |at: usize| known[at].rung.map_or(0, |on| on.epochs);
        let done = members.iter().map(|at| reached(*at)).max().unwrap_or(0);
        let interval = epochs.partition_point(|end| *end <= done);
        let value = |at: &usize| results.get(*at).and_then(|result| result.after(done));
        let values: Vec<Option<f64>> = members.iter().map(value).collect();
        let Some(next_end) = epochs.get(interval) else {
            return Ok(Vec::new());
        };
        if values.iter().all(Option::is_none) {
            return Ok(Vec::new());
        }
        let rule = Population {
            quantile: spec.quantile,
            resample_probability: spec.resample_probability,
            factors: spec.factors.clone(),
        };
        let axes: Vec<&RandomAxisSpec> = self.axes().collect();
        let all_next = rule.next(&values, axes.len(), (self.spec.seed, interval));
        let rung = OnRung {
            epochs: *next_end,
            bracket: 0,
            round: interval,
        };
        let mut all = known.to_vec();
        for (member, next) in all_next.into_iter().enumerate() {
            match next {
                Next::Continue => all[members[member]].rung = Some(rung),
                Next::Replace { by, changes } => {
                    let from = first_of_trial(known, members[by]);
                    all.push(Suggestion {
                        trial: String::new(),
                        by: SuggestedBy::Model,
                        shown: known.len(),
                        values: changed(&axes, &known[from].values, &changes),
                        rung: Some(rung),
                        fork: Some(Fork {
                            from,
                            epochs: done,
                            member,
                        }),
                        is_confirmed: false,
                    });
                }
            }
        }
        Ok(all)
    }

    /// Why it cannot train a population.
    pub(super) fn unsupported_by_population(&self) -> Vec<Diagnostic> {
        let Some(prune) = &self.spec.prune else {
            return Vec::new();
        };
        let Some(population) = &prune.population else {
            return Vec::new();
        };
        let mut refusals = self.unsupported_search(population, prune.span);
        refusals.extend(self.axes().filter_map(unsupported_axis));
        refusals.extend(unsupported_training(self.document, prune.span));
        refusals
    }

    /// Keys of the search that mean nothing, or something else, for a population.
    fn unsupported_search(&self, population: &PopulationSpec, span: Span) -> Vec<Diagnostic> {
        let root = &self.document.root;
        let at = |key: &str| root.at(key).map(|entry| entry.key_span);
        let refuse = |message: String, at: Span| refusal(message, at, span);
        let mut refusals = Vec::new();
        let method = self.spec.method;
        if !matches!(method, SearchMethod::Sobol | SearchMethod::Random) {
            let with = format!("search.type = \"{}\"", method.name());
            let at = at("search.type").unwrap_or(self.spec.span);
            let note =
                "a population learns by itself: `search.type` only samples its first members";
            let help = "use `search.type = \"sobol\"`, or another `search.prune.type`";
            refusals.push(combined(&with, at, span).note(note).help(help));
        }
        for (key, note, help) in [
            (
                "search.num_trials",
                "the number of trials follows from the population: its members, and their copies",
                "remove it, and set `search.prune.population`",
            ),
            (
                "search.parallel",
                "all members are trained for an interval, and then compared",
                "remove it",
            ),
            (
                "search.budget",
                "a population is trained to the end: it costs `population` times `train.epochs` epochs",
                "remove it, and set a smaller `search.prune.population` or `train.epochs`",
            ),
            (
                "search.objectives",
                "members are compared by one objective",
                "remove it, or `[search.prune]` to search for trade-offs",
            ),
            (
                "search.constraints",
                "members are compared by the objective alone",
                "remove it, or use another `search.prune.type`",
            ),
            (
                "search.warm_start",
                "earlier results have one value of each hyperparameter for a whole training",
                "remove it",
            ),
            (
                "sweep.exclude",
                "values of copies are multiplied, whatever is excluded",
                "remove it, and set smaller ranges in `[sweep.random.axes]`",
            ),
        ] {
            if let Some(at) = at(key) {
                refusals.push(combined(key, at, span).note(note).help(help));
            }
        }
        let num_enqueued = self.spec.enqueue.len();
        if num_enqueued > population.size {
            let message = format!(
                "a population of {} cannot begin with {}",
                population.size,
                counted(num_enqueued, "point")
            );
            let wrong = refuse(message, at("search.enqueue").unwrap_or(self.spec.span));
            refusals.push(wrong.help(format!(
                "set `search.prune.population` to {num_enqueued} or more, or enqueue fewer points"
            )));
        }
        if (population.quantile * population.size as f64) < 1.0 {
            let least = (1.0 / population.size as f64 * 1e3).ceil() / 1e3;
            let message = format!(
                "no member would be replaced: {} of {} is less than one",
                population.quantile,
                counted(population.size, "member")
            );
            let wrong = refuse(message, at("search.prune.quantile").unwrap_or(span));
            refusals.push(wrong.help(format!(
                "set `quantile = {least}` or more, or a larger `population`"
            )));
        }
        let resamples = population.resample_probability;
        if resamples == 0.0 && population.factors.iter().all(|factor| *factor == 1.0) {
            let message = "copies would have the hyperparameters of what they are copies of";
            let at = at("search.prune.factors").unwrap_or(span);
            let help = "set other factors, such as `factors = [0.8, 1.2]`, or a larger `resample_probability`";
            refusals.push(refuse(message.into(), at).help(help));
        }
        if let Some(at) = at("search.prune.factors").filter(|_| resamples == 1.0) {
            let message = "`factors` multiplies nothing: with a `resample_probability` of 1, every hyperparameter of a copy is sampled again";
            let help = "remove `factors`, or set a smaller `resample_probability`";
            refusals.push(refuse(message.into(), at).help(help));
        }
        refusals
    }
}

/// A refusal at a key, with the place of the population.
fn refusal(message: String, at: Span, population: Span) -> Diagnostic {
    let wrong = Diagnostic::error("contradiction", message).at(at);
    wrong.related(population, "the population")
}

/// The refusal of a key beside a population.
fn combined(with: &str, at: Span, population: Span) -> Diagnostic {
    refusal(
        format!("`pbt` and `{with}` cannot be combined"),
        at,
        population,
    )
}

/// The first suggestion with the trial of another one: two members with equal hyperparameters and the same past are one
/// trial, and so are their copies.
fn first_of_trial(known: &[Suggestion], at: usize) -> usize {
    let trial = &known[at].trial;
    let same = known.iter().position(|other| other.trial == *trial);
    same.filter(|_| !trial.is_empty()).unwrap_or(at)
}

/// The newest trial of each member, by the number of its suggestion; none before all of them have one.
fn members(known: &[Suggestion], size: usize) -> Option<Vec<usize>> {
    let mut members: Vec<Option<usize>> = vec![None; size];
    for (at, known) in known.iter().enumerate() {
        let member = known.fork.map_or(at, |fork| fork.member);
        if let Some(member) = members.get_mut(member) {
            *member = Some(at);
        }
    }
    members.into_iter().collect()
}

/// The hyperparameters of a copy.
fn changed(
    axes: &[&RandomAxisSpec],
    values: &Map<String, Json>,
    changes: &[Change],
) -> Map<String, Json> {
    let mut changed = values.clone();
    for (axis, change) in axes.iter().zip(changes) {
        let Some(value) = changed.get_mut(&axis.key) else {
            continue;
        };
        *value = match change {
            Change::Multiply(factor) => multiplied(&axis.distribution, value, *factor),
            Change::Resample(at) => node_at(&axis.distribution, axis.span, *at).value.to_json(),
        };
    }
    changed
}

/// Why an axis cannot change while a member is trained.
fn unsupported_axis(axis: &RandomAxisSpec) -> Option<Diagnostic> {
    let key = &axis.key;
    let refuse = |message: String, at: Span| Diagnostic::error("contradiction", message).at(at);
    if let Some(when) = &axis.when {
        let message = format!("`pbt` cannot search `{key}`, which has a condition");
        let wrong = refuse(message, when.span);
        return Some(wrong.help("remove the condition, or use another `search.prune.type`"));
    }
    let is_of_model = key.starts_with("model.");
    let last = key.rsplit('.').next().unwrap_or_default();
    let can_change = match key.strip_prefix("optimizer.") {
        Some(setting) => OF_UPDATES.contains(&setting),
        None if is_of_model => last.ends_with("dropout"),
        None if key.starts_with("losses.") => last == "weight",
        None => {
            key.starts_with("data.augment.")
                || ["loss.label_smoothing", "loss.focal_gamma"].contains(&key.as_str())
        }
    };
    if !can_change {
        let message = format!("`pbt` cannot search `{key}`");
        let wrong = refuse(message, axis.key_span).note(
            "a copy takes over the weights and the state of the optimizer: only what each update reads can change, such as `optimizer.learning_rate`, `optimizer.weight_decay`, `model.dropout`, `loss.label_smoothing` and keys of `data.augment`",
        );
        return Some(
            wrong.help(
                "set one value for it, or use another `search.prune.type`, such as `\"asha\"`",
            ),
        );
    }
    let least = match &axis.distribution {
        Distribution::Choice { .. } => {
            let message = format!("`pbt` needs a range of `{key}`, and its values are choices");
            let wrong = refuse(message, axis.span).note("the values of copies are multiplied");
            return Some(wrong.help("use a `uniform`, `log_uniform` or `integer` distribution"));
        }
        Distribution::Uniform(range) | Distribution::LogUniform(range) => range.min,
        Distribution::Integer { min, .. } => *min as f64,
    };
    if is_of_model && least <= 0.0 {
        let message = format!("`pbt` cannot search `{key}` from 0");
        let wrong = refuse(message, axis.span).note(
            "a network without dropout may have no such layer, and a copy has the same layers",
        );
        return Some(wrong.help("set a `min` above 0, such as 0.01"));
    }
    None
}

/// Why a training cannot be that of a population.
fn unsupported_training(document: &Document, span: Span) -> Vec<Diagnostic> {
    let (_, spec, _) = read_as_written(document, &References::new(document));
    let at = |key: &str| document.root.at(key).map(|entry| entry.key_span);
    let lowers_rate = spec.on_failure.values();
    let mut lowers_rate = lowers_rate.filter(|policy| policy.learning_rate_factor.is_some());
    let found = [
        (
            spec.train.early_stopping.is_some(),
            "train.early_stopping",
            "members are compared after equal numbers of epochs",
            "remove it: the worst members are replaced",
        ),
        (
            !spec.memory.on_exceed.is_empty(),
            "memory.on_exceed",
            "a copy has to be computed like what it is a copy of",
            "remove it, and set a `train.micro_batch_size` that fits",
        ),
        (
            lowers_rate.next().is_some(),
            "on_failure.not_finite.learning_rate_factor",
            "a member that fails is replaced by a copy of one that has not",
            "remove it",
        ),
    ];
    let found = found.into_iter().filter(|(is_set, ..)| *is_set);
    let refusals = found.map(|(_, key, note, help)| {
        let wrong = combined(key, at(key).unwrap_or(span), span);
        wrong.note(note).help(help)
    });
    refusals.collect()
}

#[cfg(test)]
mod tests {
    use super::super::search::Search;
    use super::super::search::tests::searched;
    use super::*;

    const SPEC: &str = r#"
train.epochs = 10

[search]
type = "sobol"
prune = { type = "pbt", population = 8, interval = 2 }

[sweep.random.axes]
"optimizer.learning_rate" = { type = "log_uniform", min = 1e-4, max = 1.0 }
"optimizer.weight_decay" = { type = "uniform", min = 0.0, max = 0.5 }
"#;

    fn rate(known: &Suggestion) -> f64 {
        known.values["optimizer.learning_rate"].as_f64().unwrap()
    }

    /// The distance from the best learning rate, which fails on one side of the space after three epochs.
    fn curve(known: &Suggestion) -> TrialResult {
        let distance = (rate(known).log10() + 2.0).abs();
        let epochs = if rate(known) > 0.7 { 3 } else { 10 };
        TrialResult {
            values: (1..=epochs)
                .map(|epoch| distance + 1.0 / f64::from(epoch))
                .collect(),
            is_final: epochs == 10,
            ..TrialResult::default()
        }
    }

    #[test]
    fn the_worst_members_are_replaced_after_each_interval() {
        let all = searched(SPEC, curve);
        // Two of eight after each of four intervals.
        assert_eq!(all.len(), 8 + 2 * 4);
        for (at, known) in all.iter().enumerate() {
            let Some(fork) = known.fork else {
                assert!(at < 8);
                continue;
            };
            let source = &all[fork.from];
            assert!(fork.from < at && [2, 4, 6, 8].contains(&fork.epochs));
            // What is copied goes on, at least for one interval.
            assert!(source.rung.unwrap().epochs > fork.epochs);
            assert!(known.rung.unwrap().epochs > fork.epochs);
            assert!(source.fork.is_none_or(|own| own.epochs < fork.epochs));
            let factor = rate(known) / rate(source);
            let is_multiplied = (factor - 0.8).abs() < 1e-3 || (factor - 1.2).abs() < 1e-3;
            let is_sampled = (1e-4..=1.0).contains(&rate(known));
            assert!(is_multiplied || is_sampled, "{factor}");
            assert!(known.values["optimizer.weight_decay"].as_f64().unwrap() <= 0.5);
        }
        // Whatever is known of later epochs.
        let up_to_rung = |known: &Suggestion| {
            let all = curve(known);
            let epochs = known.rung.unwrap().epochs;
            TrialResult {
                is_final: all.is_final && epochs == 10,
                values: all.values.into_iter().take(epochs).collect(),
                ..TrialResult::default()
            }
        };
        assert_eq!(searched(SPEC, up_to_rung), all);
        // Without any value, there is nothing to copy.
        assert_eq!(searched(SPEC, |_| TrialResult::failed()).len(), 8);
    }

    #[test]
    fn what_a_population_cannot_do_is_refused() {
        let refused = |text: &str| -> Vec<String> {
            let document = Document::compose("spec.toml", text, None).ok().unwrap();
            let refusals = Search::of(&document).unwrap().refusals();
            refusals.into_iter().map(|wrong| wrong.message).collect()
        };
        assert_eq!(refused(SPEC), Vec::<String>::new());
        for (from, to, expected) in [
            ("\"sobol\"", "\"tpe\"", "`pbt` and `search.type = \"tpe\"`"),
            (
                "[search]",
                "[search]\nnum_trials = 9",
                "`search.num_trials`",
            ),
            ("[search]", "[search]\nparallel = 9", "`search.parallel`"),
            ("[search]", "[search]\nbudget.epochs = 9", "`search.budget`"),
            (
                "population = 8",
                "population = 3",
                "0.25 of 3 members is less than one",
            ),
            ("epochs = 10", "epochs = 2", "no member would be replaced"),
            (
                "optimizer.weight_decay",
                "train.batch_size",
                "cannot search `train.batch_size`",
            ),
            (
                "optimizer.weight_decay",
                "model.dropout",
                "cannot search `model.dropout` from 0",
            ),
            (
                "{ type = \"uniform\", min = 0.0, max = 0.5 }",
                "{ type = \"choice\", values = [0.1, 0.2] }",
                "its values are choices",
            ),
            (
                "max = 0.5",
                "max = 0.5, when = \"train.epochs > 1\"",
                "has a condition",
            ),
            (
                "train.epochs = 10",
                "train.epochs = 10\ntrain.early_stopping.patience = 3",
                "`train.early_stopping`",
            ),
            (
                "train.epochs = 10",
                "train.epochs = 10\nmemory = { limit = \"1GiB\", on_exceed = \"accumulate\" }",
                "`memory.on_exceed`",
            ),
        ] {
            let text = SPEC.replacen(from, to, 1);
            assert_ne!(text, SPEC);
            let found = refused(&text);
            assert_eq!(found.len(), 1, "{to}: {found:?}");
            assert!(found[0].contains(expected), "{found:?}");
        }
    }
}
