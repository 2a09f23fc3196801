//! The rungs of a search that prunes: after which epochs it decides, from which results, and what trials that it ended
//! teach the sampler.

use super::super::read::read_as_written;
use super::search::TrialResult;
use crate::diagnostic::{Diagnostic, Span, counted};
use crate::spec::document::Document;
use crate::spec::metric::{Objective, ObjectiveSplit};
use crate::spec::reference::References;
use crate::spec::search::{MAX_RUNGS, OnRung, PruneRule, PruneSpec, Suggestion};
use runner_search::{Climber, Rule, Rungs};

/// The rungs of a search that prunes.
pub(super) struct Pruning {
    /// When trials continue.
    pub(super) rule: Rungs,
    /// The epochs of each rung, the last of which is the end of the training.
    pub(super) epochs: Vec<usize>,
    /// Where the number of epochs is set.
    span: Span,
    objective: Option<Objective>,
    /// Whether the number of epochs is valid.
    is_known: bool,
}

impl Pruning {
    pub(super) fn of(document: &Document, prune: &PruneSpec) -> Self {
        let (_, spec, findings) = read_as_written(document, &References::new(document));
        let epochs = prune.rungs(spec.train.epochs);
        let span = document.root.at("train.epochs");
        Self {
            rule: Rungs {
                rule: match prune.rule {
                    PruneRule::Asha => Rule::Asha,
                    PruneRule::SuccessiveHalving => Rule::SuccessiveHalving,
                    PruneRule::Hyperband => Rule::Hyperband,
                    // A population decides otherwise.
                    PruneRule::Median | PruneRule::Pbt => Rule::Median {
                        min_trials: prune.min_trials,
                    },
                },
                factor: prune.step,
                num: epochs.len(),
            },
            epochs,
            span: span.map_or(prune.span, |entry| entry.node.span),
            objective: spec.objective.metric,
            is_known: span.is_some() && !findings.is_poisoned("train.epochs"),
        }
    }

    /// The rung that ends after this many epochs.
    pub(super) fn rung(&self, epochs: usize) -> usize {
        let at = self.epochs.partition_point(|rung| *rung < epochs);
        at.min(self.epochs.len() - 1)
    }

    /// The epochs of the rung after that of so many epochs.
    pub(super) fn next(&self, epochs: usize) -> usize {
        let next = self.rung(epochs) + 1;
        self.epochs[next.min(self.epochs.len() - 1)]
    }

    pub(super) fn climbers(&self, known: &[Suggestion], results: &[TrialResult]) -> Vec<Climber> {
        let last = known.iter().filter_map(|known| known.rung);
        let last = last.map(|rung| rung.round).max();
        let climber = |(known, result): (&Suggestion, &TrialResult)| {
            let rung = known.rung.map_or(0, |on| self.rung(on.epochs));
            let epochs = &self.epochs[..=rung];
            Climber {
                bracket: known.rung.map_or(0, |on| on.bracket),
                rung,
                is_new: known.rung.map(|on| on.round) == last,
                values: epochs.iter().map(|epochs| result.after(*epochs)).collect(),
                violations: epochs
                    .iter()
                    .map(|epochs| result.violation_after(*epochs))
                    .collect(),
            }
        };
        known.iter().zip(results).map(climber).collect()
    }

    /// What a trial at a rung teaches: its value, and its epochs if it was pruned.
    pub(super) fn told(&self, on: OnRung, result: &TrialResult) -> (Option<f64>, Option<usize>) {
        let is_all = Some(&on.epochs) == self.epochs.last();
        if is_all || result.is_final && result.values.len() <= on.epochs {
            (result.last(), None)
        } else {
            (result.after(on.epochs), Some(on.epochs))
        }
    }

    /// A warning if `hyperband` has too few trials for a second bracket.
    pub(super) fn warning(
        &self,
        prune: &PruneSpec,
        num_trials: Option<usize>,
    ) -> Option<Diagnostic> {
        let num = num_trials.filter(|_| prune.rule == PruneRule::Hyperband)?;
        let sizes = (0..self.epochs.len()).map(|bracket| self.rule.bracket(bracket));
        let sizes: Vec<(usize, usize)> = sizes.collect();
        let (first, _) = *sizes.first()?;
        if num > first {
            return None;
        }
        let brackets = sizes
            .iter()
            .map(|(size, rung)| format!("{size} from {}", counted(self.epochs[*rung], "epoch")));
        let brackets: Vec<String> = brackets.collect();
        let all: usize = sizes.iter().map(|(size, _)| size).sum();
        let message = format!(
            "with {}, `hyperband` is the same as `successive_halving`: its first bracket has {first}",
            counted(num, "trial")
        );
        let warning = Diagnostic::warning("search", message).at(prune.span);
        let warning = warning.related(self.span, "the number of epochs");
        let warning = warning.note(format!("trials of the brackets: {}", brackets.join(", ")));
        Some(warning.help(format!(
            "set `search.num_trials` to {all} for one of each bracket, or `type = \"successive_halving\"`"
        )))
    }

    /// Why it cannot prune as requested, in a search of so many trials.
    pub(super) fn refusals(
        &self,
        prune: &PruneSpec,
        num_trials: Option<usize>,
        has_epochs_axis: bool,
    ) -> Vec<Diagnostic> {
        let mut refusals = Vec::new();
        if !self.is_known && !has_epochs_axis {
            return refusals;
        }
        let mut refuse = |message: String, note: &str, help: String| {
            let wrong = Diagnostic::error("contradiction", message).at(prune.span);
            let wrong = wrong.related(self.span, "the number of epochs");
            refusals.push(wrong.note(note).help(help));
        };
        let all = self.epochs.last().copied().unwrap_or(0);
        if has_epochs_axis {
            refuse(
                "`[search.prune]` and an axis `train.epochs` cannot be combined".into(),
                "trials are compared after equal numbers of epochs",
                "set one number of `train.epochs`: pruning ends the trials that do not need more"
                    .into(),
            );
        } else if self.epochs.len() < 2 {
            let more = prune.min_epochs.saturating_mul(9).max(9);
            let (nothing, first) = match prune.rule {
                PruneRule::Pbt => ("no member would be replaced", "interval"),
                _ => ("nothing can be pruned", "min_epochs"),
            };
            refuse(
                format!(
                    "{nothing}: the first decision is after {}, and training has {all}",
                    counted(prune.min_epochs, "epoch")
                ),
                "a trial has to be compared before its training ends",
                match all {
                    1 => format!("train for more epochs, such as `train.epochs = {more}`"),
                    _ => format!("set a smaller `{first}`, or train for more epochs"),
                },
            );
        } else if self.epochs.len() > MAX_RUNGS {
            refuse(
                format!("a trial would be stopped for more than {MAX_RUNGS} decisions"),
                "each decision stops a training, and starts it again",
                match prune.rule {
                    PruneRule::Pbt => format!("set `interval = {}`", all.div_ceil(100)),
                    _ => format!("set `every_epochs = {}`", all.div_ceil(100)),
                },
            );
        } else if let (PruneRule::Asha, Some(num)) = (prune.rule, num_trials) {
            let least = self.rule.bracket(0).0;
            if num < least {
                refuse(
                    format!(
                        "no trial would be trained completely: of {}, one in {} continues at each of {}",
                        counted(num, "trial"),
                        prune.step,
                        counted(self.epochs.len() - 1, "rung")
                    ),
                    "the last rung is the end of the training",
                    format!(
                        "set `search.num_trials` to {least} or more, a larger `min_epochs`, or `type = \"median\"`"
                    ),
                );
            }
        }
        let is_late = |objective: Objective| objective.split == ObjectiveSplit::ValidSwa;
        if self.objective.is_some_and(is_late) {
            let message = "`[search.prune]` needs an objective that is measured after each epoch";
            let late = Diagnostic::error("contradiction", message).at(prune.span);
            let late = late.note("`valid_swa` is only measured once weights are averaged, near the end of the training");
            refusals.push(late.help("set `objective.metric` to a metric of `valid`"));
        }
        refusals
    }
}

#[cfg(test)]
mod tests {
    use super::super::search::Search;
    use super::super::search::tests::searched;
    use super::*;

    const PRUNED: &str = r#"
train.epochs = 27

[search]
type = "tpe"
num_trials = 40
prune = { type = "asha" }

[sweep.random.axes]
"optimizer.learning_rate" = { type = "log_uniform", min = 1e-4, max = 1.0 }
"#;

    /// A curve that falls towards the distance from the best learning rate, whose trials fail on one side of the space.
    fn curve(suggestion: &Suggestion) -> TrialResult {
        let rate = suggestion.values["optimizer.learning_rate"]
            .as_f64()
            .unwrap();
        let distance = (rate.log10() + 2.0).abs();
        let fails = distance > 1.8;
        let epochs = if fails { 2 } else { 27 };
        let values = (1..=epochs).map(|epoch| distance + 1.0 / f64::from(epoch));
        TrialResult {
            values: values.collect(),
            is_final: !fails,
            ..TrialResult::default()
        }
    }

    #[test]
    fn pruned_trials_end_at_rungs() {
        for (rule, epochs) in [
            ("asha", vec![1, 3, 9, 27]),
            ("successive_halving", vec![1, 3, 9, 27]),
            ("hyperband", vec![1, 3, 9, 27]),
            ("median", (1..=27).collect()),
        ] {
            let all = searched(&PRUNED.replace("asha", rule), curve);
            assert_eq!(all.len(), 40);
            let rungs: Vec<usize> = all.iter().map(|known| known.rung.unwrap().epochs).collect();
            assert!(rungs.iter().all(|rung| epochs.contains(rung)), "{rungs:?}");
            let num_full = rungs.iter().filter(|rung| **rung == 27).count();
            assert!((1..=20).contains(&num_full), "{rule} {num_full}");
            // Trials that fail in their third epoch do not reach it.
            for (known, rung) in all.iter().zip(&rungs) {
                let has_failed = !curve(known).is_final;
                assert!(!has_failed || *rung <= 9, "{rule} {rung}");
            }
        }
    }

    #[test]
    fn decisions_follow_from_curves_however_far_they_go() {
        // As in a search that lost its plan: results contain later epochs than those that were decided on.
        for rule in ["asha", "successive_halving", "hyperband", "median"] {
            let text = PRUNED.replace("asha", rule);
            let until_rung = |known: &Suggestion| {
                let (values, is_final) = (curve(known).values, curve(known).is_final);
                let epochs = known.rung.unwrap().epochs;
                TrialResult {
                    is_final: is_final && epochs == 27,
                    values: values.into_iter().take(epochs).collect(),
                    ..TrialResult::default()
                }
            };
            assert_eq!(
                searched(&text, curve),
                searched(&text, until_rung),
                "{rule}"
            );
        }
    }

    #[test]
    fn a_thousand_trials_are_scheduled_at_each_of_27_rungs() {
        let text = PRUNED
            .replace("tpe", "random")
            .replace("num_trials = 40", "num_trials = 1000\nparallel = 8")
            .replace("asha\"", "median\", min_trials = 1000");
        let all = searched(&text, |known| TrialResult {
            values: (1..=27).map(|epoch| 1.0 / f64::from(epoch)).collect(),
            is_final: known.rung.is_some(),
            ..TrialResult::default()
        });
        assert!(all.iter().all(|known| known.rung.unwrap().epochs == 27));
    }

    #[test]
    fn hyperband_with_a_single_bracket_is_told() {
        let warned = |num: usize| {
            let text = PRUNED.replace("asha", "hyperband");
            let text = text.replace("num_trials = 40", &format!("num_trials = {num}"));
            let document = Document::compose("spec.toml", &text, None).ok().unwrap();
            Search::of(&document).unwrap().warnings().pop()
        };
        let few = warned(27).unwrap();
        assert!(few.message.contains("its first bracket has 27"), "{few:?}");
        // Table 1 of Li et al. with R = 27: 27, 12, 6 and 4 trials.
        assert!(
            few.helps[0].contains("`search.num_trials` to 49"),
            "{few:?}"
        );
        assert_eq!(warned(28), None);
        // What it is then, it is the same as.
        let points = |rule: &str| {
            let text = PRUNED.replace("asha", rule);
            searched(&text.replace("num_trials = 40", "num_trials = 27"), curve)
        };
        assert_eq!(points("hyperband"), points("successive_halving"));
    }

    #[test]
    fn pruning_that_cannot_work_is_refused() {
        let refused = |text: &str| -> Vec<String> {
            let document = Document::compose("spec.toml", text, None).ok().unwrap();
            let refusals = Search::of(&document).unwrap().refusals();
            refusals.into_iter().map(|wrong| wrong.message).collect()
        };
        assert!(refused(PRUNED).is_empty());
        let once = refused(&PRUNED.replace("train.epochs = 27", "train.epochs = 1"));
        assert!(once[0].contains("nothing can be pruned"), "{once:?}");
        let few = refused(&PRUNED.replace("num_trials = 40", "num_trials = 20"));
        assert!(
            few[0].contains("no trial would be trained completely"),
            "{few:?}"
        );
        let axis =
            format!("{PRUNED}\n\"train.epochs\" = {{ type = \"integer\", min = 2, max = 9 }}");
        assert!(refused(&axis)[0].contains("cannot be combined"));
    }
}
