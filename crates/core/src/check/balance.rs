//! What balances classes of different frequency: their weights in a loss, and the sampler.

use super::Point;
use super::fit::Checked;
use super::task::Goal;
use crate::data::{ClassCount, DataPlan, TargetPlan};
use crate::diagnostic::{Diagnostic, counted};
use crate::spec::loss::{BALANCED, LossSpec};
use crate::spec::losses::{LossTerm, TermTarget};
use crate::spec::section::Choice;
use crate::spec::train::Sampler;

/// n / (k n_c) for each class c: n elements, k classes, n_c elements of the class.
fn balanced(classes: &[ClassCount]) -> Vec<f64> {
    let num: u64 = classes.iter().map(|class| class.count).sum();
    let weight = |class: &ClassCount| num as f64 / (classes.len() as f64 * class.count as f64);
    classes.iter().map(weight).collect()
}

/// The classes of a target in the train split, if they were counted.
fn classes_of<'a>(data: &'a DataPlan, target: &TermTarget) -> Option<&'a [ClassCount]> {
    data.noticed.train_classes.get(target.place()?)?.as_deref()
}

impl Goal {
    /// The loss of the task and those that are added to it, with the class weights of a train split.
    pub fn losses_for(&self, data: &DataPlan) -> (LossSpec, Vec<LossTerm>) {
        let resolved = |loss: &LossSpec, target: &TermTarget| {
            let classes = classes_of(data, target).unwrap_or_default();
            LossSpec {
                function: loss.function.clone().with_class_weights(balanced(classes)),
                ..loss.clone()
            }
        };
        let terms = self.terms.iter().map(|term| LossTerm {
            loss: match &term.target {
                Some(target) => resolved(&term.loss, target),
                None => term.loss.clone(),
            },
            ..term.clone()
        });
        let terms = terms.collect();
        (resolved(&self.loss, &TermTarget::Task), terms)
    }

    /// The targets of the losses whose class weights follow from the train split, with the tables of these losses.
    fn balanced_targets(&self) -> impl Iterator<Item = (String, &TermTarget)> {
        let is_balanced = |loss: &LossSpec| loss.function.is_balanced();
        let main = is_balanced(&self.loss).then(|| ("loss".to_owned(), &TermTarget::Task));
        let terms = self.terms.iter().enumerate();
        let terms = terms.filter(move |(_, term)| is_balanced(&term.loss));
        let terms =
            terms.filter_map(|(at, term)| Some((format!("losses[{at}]"), term.target.as_ref()?)));
        main.into_iter().chain(terms)
    }

    /// Whether a class has no weight because another split for training lacks it.
    pub(super) fn lacks_classes(&self, data: &DataPlan) -> bool {
        let mut targets = self.balanced_targets();
        targets.any(|(_, target)| {
            let classes = classes_of(data, target).unwrap_or_default();
            classes.iter().any(|class| class.count == 0)
        })
    }

    /// Class weights that follow from the train split, as text.
    pub(super) fn balanced_in_words(&self, data: &DataPlan) -> Vec<String> {
        let texts = self.balanced_targets().filter_map(|(table, target)| {
            let classes = classes_of(data, target)?;
            Some(format!(
                "`{table}.class_weights` are balanced over the train split: {}",
                in_words(classes)
            ))
        });
        texts.collect()
    }
}

/// The weights of classes with how often each occurs.
fn in_words(classes: &[ClassCount]) -> String {
    const SHOWN: usize = 10;
    let weights = balanced(classes);
    let each = classes.iter().zip(weights).take(SHOWN);
    let each = each.map(|(class, weight)| {
        // Four digits after the first one that is not 0.
        let digits = (3 - weight.abs().log10().floor() as i32).clamp(0, 9) as usize;
        format!("{weight:.digits$} for `{}` ({})", class.name, class.count)
    });
    let mut each: Vec<_> = each.collect();
    if classes.len() > SHOWN {
        each.push(format!("and {} more", classes.len() - SHOWN));
    }
    each.join(", ")
}

/// Class weights that are to follow from the train split, which does not determine them.
pub(super) fn weights_can_be_balanced(
    point: &Point<'_>,
    goal: &Checked<'_>,
    target: &TermTarget,
    data: &DataPlan,
) -> Option<Diagnostic> {
    let function = &goal.loss.function;
    let fits = function.tasks().contains(&goal.task);
    if !function.is_balanced() || !fits || data.num_train == 0 {
        return None;
    }
    let key = goal.of_loss("class_weights");
    let refuse = |message: String| Diagnostic::error("task", message).at(point.span(&key));
    if goal.task.is_of_tokens() {
        let message = format!("`{key}` is \"{BALANCED}\", but the classes are tokens");
        return Some(
            refuse(message)
                .note("tokens that are rare or missing in the train split would have very large weights")
                .help("remove `class_weights`"),
        );
    }
    let Some(classes) = classes_of(data, target) else {
        let message = format!(
            "`{key}` is \"{BALANCED}\", but the items cannot be counted: their files are missing"
        );
        return Some(refuse(message).help(
            "`runner run` downloads the files first; to check without them, list the weights",
        ));
    };
    let missing: Vec<_> = classes.iter().filter(|class| class.count == 0).collect();
    let first = missing.first()?;
    let message = match missing.len() {
        1 => format!(
            "`{key}` is \"{BALANCED}\", but the class `{}` does not occur in the train split",
            first.name
        ),
        num => format!(
            "`{key}` is \"{BALANCED}\", but {num} classes do not occur in the train split, such as `{}`",
            first.name
        ),
    };
    Some(
        refuse(message)
            .note("its weight would be infinite")
            .help(format!(
                "list {}, one for each class, or change the split",
                counted(classes.len(), "weight")
            )),
    )
}

/// A sampler that draws classes needs one for each item.
pub fn sampler_has_classes(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let sampler = point.spec.train.sampler;
    if sampler.is_random() || matches!(data.target, TargetPlan::Class { .. }) {
        return None;
    }
    let message = format!(
        "`train.sampler` is \"{}\", but the items have {}",
        sampler.name(),
        data.target.show()
    );
    Some(
        Diagnostic::error("contradiction", message)
            .at(point.span("train.sampler"))
            .note("it draws a class and then one of its items, so each item needs one class")
            .help("remove `sampler`"),
    )
}

/// A class that is drawn more often and weighted more counts twice.
pub fn classes_are_balanced_once(point: &Point<'_>) -> Option<Diagnostic> {
    let loss = point.spec.loss.as_ref()?;
    let is_twice = loss.function.is_balanced() && point.spec.train.sampler == Sampler::Balanced;
    is_twice.then(|| {
        let message = "rare classes are drawn more often and have larger weights: `train.sampler` and `loss.class_weights` are both \"balanced\"";
        Diagnostic::warning("contradiction", message)
            .at(point.span("train.sampler"))
            .related(point.span("loss.class_weights"), "the other one")
            .help("remove one of them, so that each class counts equally")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value as Json;

    fn classes(counts: &[u64]) -> Vec<ClassCount> {
        let named = counts.iter().enumerate().map(|(at, count)| ClassCount {
            name: format!("c{at}"),
            count: *count,
        });
        named.collect()
    }

    /// To the bit, as recorded by `tests/golden/class_weights.py`.
    #[test]
    fn weights_are_those_of_scikit_learn() {
        let golden = include_str!("../../../../tests/golden/class_weights.json");
        let golden: Vec<Json> = serde_json::from_str(golden).unwrap();
        assert!(golden.len() > 5);
        for case in golden {
            let counts: Vec<u64> = serde_json::from_value(case["counts"].clone()).unwrap();
            let weights: Vec<f64> = serde_json::from_value(case["weights"].clone()).unwrap();
            assert_eq!(balanced(&classes(&counts)), weights, "{counts:?}");
        }
    }

    #[test]
    fn weights_are_shown_with_four_digits() {
        assert_eq!(
            in_words(&classes(&[7, 2, 1])),
            "0.4762 for `c0` (7), 1.667 for `c1` (2), 3.333 for `c2` (1)"
        );
        let many = in_words(&classes(&[1; 12]));
        assert!(many.ends_with("1.000 for `c9` (1), and 2 more"), "{many}");
    }
}
