//! What a search cannot do, or does other than its file seems to say.

use super::Search;
use crate::diagnostic::Diagnostic;
use crate::spec::constraint::Quantity;
use crate::spec::reference::depending;
use crate::spec::search::SearchMethod;
use crate::spec::section::Choice;
use runner_search::Shown;

impl Search<'_> {
    /// Why it cannot prune as requested, or try the points of the file.
    pub fn refusals(&self) -> Vec<Diagnostic> {
        let mut refusals = self.queue.refusals.clone();
        if let (Some(pruning), Some(prune)) = (&self.pruning, &self.spec.prune) {
            let axes: Vec<String> = self.axes().map(|axis| axis.key.clone()).collect();
            let is_epochs = |key: &String| ["train", "train.epochs"].contains(&key.as_str());
            let depending = depending(&self.document.root, &axes);
            let has_axis = axes.iter().chain(&depending).any(is_epochs);
            refusals.extend(pruning.refusals(prune, self.spec.num_trials, has_axis));
        }
        let of_population = self.unsupported_by_population();
        if !of_population.is_empty() {
            return of_population;
        }
        refusals.extend(self.unsupported_axis());
        refusals.extend(self.unsupported_trade());
        refusals.extend(self.unsupported_constraint());
        refusals.extend(self.unsupported_numbers());
        if refusals.is_empty() {
            let points = 0..self.queue.points.len();
            refusals.extend(points.filter_map(|number| self.refusal_of(number)));
        }
        refusals
    }

    /// What it does other than its file seems to say.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        let pruning = self.pruning.as_ref().zip(self.spec.prune.as_ref());
        let of_pruning =
            pruning.and_then(|(pruning, prune)| pruning.warning(prune, self.spec.num_trials));
        let mut warnings = self.doubtful_numbers();
        warnings.extend(of_pruning);
        warnings.extend(self.lack_of_points());
        warnings
    }

    /// Why the sampler cannot search these axes.
    fn unsupported_axis(&self) -> Option<Diagnostic> {
        if self.spec.method != SearchMethod::CmaEs {
            return None;
        }
        let refuse = |message: String, span| {
            let wrong = Diagnostic::error("contradiction", message).at(span);
            wrong.help("use `search.type = \"tpe\"` or `\"gp\"`, which search all axes")
        };
        self.axes().zip(&self.space.axes).find_map(|(axis, kind)| {
            let key = &axis.key;
            if matches!(kind, runner_search::Axis::Choice(_)) {
                let message =
                    format!("`cma_es` needs ordered values, and those of `{key}` are choices");
                return Some(refuse(message, axis.span));
            }
            let when = axis.when.as_ref()?;
            let message = format!("`cma_es` cannot search `{key}`, which has a condition");
            Some(refuse(message, when.span))
        })
    }

    /// Why it cannot search for trade-offs.
    fn unsupported_trade(&self) -> Option<Diagnostic> {
        let (_, span) = self.spec.objectives.first()?;
        let refuse = |message: String, help: &str| {
            let wrong = Diagnostic::error("contradiction", message).at(*span);
            Some(wrong.help(help))
        };
        if self.pruning.is_some() {
            return refuse(
                "`[search.prune]` and `search.objectives` cannot be combined".into(),
                "remove one of them: trials are pruned by a single objective",
            );
        }
        let method = self.spec.method;
        if matches!(method, SearchMethod::Gp | SearchMethod::CmaEs) {
            return refuse(
                format!("`{}` searches for a single objective", method.name()),
                "use `search.type = \"tpe\"` or `\"nsga2\"`",
            );
        }
        None
    }

    /// Why it cannot have a constraint.
    fn unsupported_constraint(&self) -> Option<Diagnostic> {
        self.pruning.as_ref()?;
        let found = self.spec.constraints.iter().find_map(|(constraint, span)| {
            let mut quantities = constraint.quantities();
            let reason = |quantity: Quantity| Some((quantity, quantity.unknown_at_rung()?));
            Some((*span, quantities.find_map(reason)?))
        });
        let (span, (quantity, reason)) = found?;
        let message = format!(
            "`[search.prune]` and a constraint over `{}` cannot be combined",
            quantity.name()
        );
        let wrong = Diagnostic::error("contradiction", message).at(span);
        let wrong = wrong.note(reason);
        Some(wrong.help("remove one of them, or limit `parameters` or a metric instead"))
    }

    /// Why a point of the file cannot be tried.
    fn refusal_of(&self, number: usize) -> Option<Diagnostic> {
        let point = &self.queue.points[number];
        let refuse = |message: String, help: &str| {
            let wrong = Diagnostic::error("contradiction", message).at(point.span);
            Some(wrong.help(help))
        };
        let Some(suggested) = self.suggest(number, &Shown::default()) else {
            return refuse(
                "`sweep.exclude` excludes this point".into(),
                "change or remove it",
            );
        };
        let axes = self.axes().zip(&point.positions).zip(&suggested.point);
        let mut off = axes.filter(|((_, wanted), set)| wanted.is_some() && set.is_none());
        let ((axis, _), _) = off.next()?;
        refuse(
            format!("the condition of `{}` is false at this point", axis.key),
            "remove it from the point, or change what it depends on",
        )
    }

    /// No point is left.
    pub(super) fn no_point(&self) -> Diagnostic {
        let message = "the search found no point that `sweep.exclude` leaves";
        let span = self.sweep.exclude.first().map(|text| text.span);
        Diagnostic::error("sweep", message)
            .at(span.unwrap_or(self.spec.span))
            .help("exclude less, or search smaller ranges")
    }
}
