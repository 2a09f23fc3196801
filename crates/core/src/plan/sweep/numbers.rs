//! Numbers of a search that cannot be meant together: how many trials there can be, what each costs, and what is asked of
//! them.

use super::super::read::read_as_written;
use super::search::{Search, sampler};
use crate::diagnostic::{Diagnostic, Span, counted};
use crate::spec::reference::References;
use crate::spec::search::{PruneRule, SearchMethod};
use crate::spec::section::Choice;

impl Search<'_> {
    /// Numbers with which something that the file asks for cannot happen.
    pub(super) fn unsupported_numbers(&self) -> Vec<Diagnostic> {
        let found = [
            self.too_few_to_confirm(),
            self.budget_without_a_trial(),
            self.median_of_too_few(),
        ];
        found.into_iter().flatten().collect()
    }

    /// Numbers with which the search does other than its file seems to say.
    pub(super) fn doubtful_numbers(&self) -> Vec<Diagnostic> {
        let found = [
            self.never_learns(),
            self.exceeded_by_the_first_round(),
            self.parallel_in_one_round(),
        ];
        found.into_iter().flatten().collect()
    }

    /// The place of a key's value.
    fn value_at(&self, key: &str) -> Option<Span> {
        Some(self.document.root.at(key)?.node.span)
    }

    fn refuse(&self, message: String, key: &str) -> Diagnostic {
        let span = self.value_at(key).unwrap_or(self.spec.span);
        Diagnostic::error("contradiction", message).at(span)
    }

    fn warn(&self, message: String, key: &str) -> Diagnostic {
        let span = self.value_at(key).unwrap_or(self.spec.span);
        Diagnostic::warning("search", message).at(span)
    }

    /// More trials to confirm than there can be. By default, as many as there are.
    fn too_few_to_confirm(&self) -> Option<Diagnostic> {
        let key = "search.confirm.trials";
        self.value_at(key)?;
        let wanted = self.spec.confirm?.trials;
        let population = self.population().map(|population| population.size);
        let of_budget = self.most_of_budget();
        let limits = [
            (self.spec.num_trials, "search.num_trials", "the search has"),
            (
                population,
                "search.prune.population",
                "the population ends with",
            ),
            (
                of_budget,
                "search.budget.epochs",
                "the budget is enough for",
            ),
        ];
        let limits = limits
            .into_iter()
            .filter_map(|(most, key, has)| Some((most?, key, has)));
        let (most, of, has) = limits.min_by_key(|(most, ..)| *most)?;
        if wanted <= most {
            return None;
        }
        let message = format!(
            "{} cannot be confirmed: {has} at most {most}",
            counted(wanted, "trial")
        );
        let mut wrong = self.refuse(message, key);
        if let Some(span) = self
            .value_at(of)
            .or(self.value_at("search.prune.population"))
        {
            wrong = wrong.related(span, "the limit");
        }
        Some(wrong.help(format!("set `trials = {most}` or less, or a larger `{of}`")))
    }

    /// The epochs of a trial that is trained completely; none if that depends on results.
    fn epochs_of_trial(&self) -> Option<usize> {
        let has_axis = self.axes().any(|axis| axis.key == "train.epochs");
        if has_axis || self.value_at("train.epochs").is_none() {
            return None;
        }
        let references = References::new(self.document);
        let (_, spec, findings) = read_as_written(self.document, &references);
        if findings.is_poisoned("train.epochs") || findings.is_poisoned("experiment.seeds") {
            return None;
        }
        let seeds = spec.experiment.seeds.len().max(1);
        let is_whole = spec.train.early_stopping.is_none();
        is_whole.then(|| spec.train.epochs.saturating_mul(seeds))
    }

    /// The most trials that can be trained completely before the budget of epochs is spent.
    fn most_of_budget(&self) -> Option<usize> {
        let budget = self.spec.budget.epochs?;
        if self.pruning.is_some() {
            return None;
        }
        let each = self.epochs_of_trial()?.max(1);
        let (_, first) = self.round_of(0);
        // A round begins before the budget is spent, and is completed.
        let before = (budget - 1) / each;
        Some(before.saturating_add(first.max(self.spec.parallel)))
    }

    /// A budget that is smaller than what one trial takes.
    fn budget_without_a_trial(&self) -> Option<Diagnostic> {
        let key = "search.budget.epochs";
        let budget = self.spec.budget.epochs?;
        let each = self.epochs_of_trial()?;
        // Up to the first decision about it.
        let least = match self.pruning.as_ref().map(|it| it.epochs.as_slice()) {
            Some([first, .., last]) => each / last.max(&1) * first,
            _ => each,
        };
        if budget >= least {
            return None;
        }
        let message = format!(
            "the budget of {} is spent by the first trial, which takes {least}",
            counted(budget, "epoch")
        );
        let wrong = self.refuse(message, key);
        let wrong = match self.value_at("train.epochs") {
            Some(span) => wrong.related(span, "the epochs of a run"),
            None => wrong,
        };
        Some(wrong.help(format!(
            "set a budget for all trials together, such as `epochs = {}`, or limit `num_trials` instead",
            least.saturating_mul(60)
        )))
    }

    /// A median that needs more trials than there are.
    fn median_of_too_few(&self) -> Option<Diagnostic> {
        let prune = self.spec.prune.as_ref()?;
        let num = self.spec.num_trials?;
        if prune.rule != PruneRule::Median || prune.min_trials < num {
            return None;
        }
        let message = format!(
            "nothing can be pruned: `median` needs {} beside the one that it compares, and the search has {num} in all",
            counted(prune.min_trials, "trial"),
        );
        let wrong = self.refuse(message, "search.prune.min_trials");
        let wrong = match self.value_at("search.num_trials") {
            Some(span) => wrong.related(span, "the number of trials"),
            None => wrong,
        };
        Some(wrong.help(match num {
            1 | 2 => format!(
                "set a larger `search.num_trials`, such as {}",
                prune.min_trials.saturating_mul(4)
            ),
            _ => format!(
                "set `min_trials = {}`, or a larger `search.num_trials`",
                num / 2
            ),
        }))
    }

    /// A sampler that learns from results, in a search that ends before it does.
    fn never_learns(&self) -> Option<Diagnostic> {
        let num = self.spec.num_trials?;
        let method = self.spec.method;
        let startup = sampler(method).num_startup(&self.space)?;
        if num > startup || self.prior.len() >= startup || !self.spec.warm_start.is_empty() {
            return None;
        }
        let first = match method {
            SearchMethod::CmaEs => format!("its first {startup} points are a random generation"),
            _ => format!("its first {startup} points are those of `sobol`"),
        };
        let message = format!(
            "`{}` learns nothing in {}: {first}",
            method.name(),
            counted(num, "trial")
        );
        let warning = self.warn(message, "search.num_trials");
        Some(warning.help(format!(
            "set `search.num_trials` to more than {startup}, or `search.type = \"sobol\"`"
        )))
    }

    /// A budget that the first round, which is completed, exceeds.
    fn exceeded_by_the_first_round(&self) -> Option<Diagnostic> {
        let budget = self.spec.budget.epochs?;
        if self.pruning.is_some() {
            return None;
        }
        let (_, first) = self.round_of(0);
        let first = first.min(self.spec.num_trials.unwrap_or(usize::MAX));
        let all = self.epochs_of_trial()?.saturating_mul(first);
        if budget >= all {
            return None;
        }
        let message = format!(
            "the first round takes {}, more than the budget of {budget}",
            counted(all, "epoch")
        );
        let warning = self.warn(message, "search.budget.epochs");
        let warning = warning.note(format!(
            "it has {}, and a budget is checked between rounds",
            counted(first, "trial")
        ));
        Some(warning.help(format!(
            "set a budget of several times {all} epochs, so that the search learns from results, or fewer `train.epochs`"
        )))
    }

    /// A size of rounds where there is a single one.
    fn parallel_in_one_round(&self) -> Option<Diagnostic> {
        let key = "search.parallel";
        self.value_at(key)?;
        let method = self.spec.method;
        let learns = sampler(method).num_startup(&self.space).is_some();
        if learns || !self.spec.budget.is_unlimited() || self.pruning.is_some() {
            return None;
        }
        let message = format!(
            "`search.parallel` has no effect on `{}`, which suggests all points at once",
            method.name()
        );
        let warning = self.warn(message, key);
        Some(warning.help(
            "remove it; `runner run --jobs N` sets how many runs are trained at the same time",
        ))
    }
}
