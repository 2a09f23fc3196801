//! How probabilities separate the items of a class from others, collected item by item.

use runner_statistics::Scored;

use crate::record::evaluation::{ClassSeparation, MOST_SEPARATED};
use crate::spec::loss::LossFunction;
use crate::spec::task::{TaskKind, TaskSpec};

/// Collects the probabilities of classes or labels.
#[derive(Clone, Debug)]
pub struct Separating {
    num_outputs: usize,
    /// The classes or labels that are collected, the first and one past the last.
    from: usize,
    to: usize,
    scored: Scored,
}

impl Separating {
    /// `None` if outputs are not probabilities of at most [`MOST_SEPARATED`] classes or labels. The positive class or
    /// label, if there is one, is the only one that is collected.
    pub fn new(task: &TaskSpec, loss: &LossFunction, num: usize) -> Option<Self> {
        let (from, to) = match (task.kind, task.settings.positive) {
            (TaskKind::Classification | TaskKind::MultiLabel, Some(at)) => (at, at + 1),
            // The probability of one of two classes implies that of the other.
            (TaskKind::Classification, None) if num == 2 => (1, 2),
            (TaskKind::Classification | TaskKind::MultiLabel, None) => (0, num),
            _ => return None,
        };
        let is_apt = loss.gives_probabilities() && (1..=MOST_SEPARATED).contains(&num);
        is_apt.then(|| Self {
            num_outputs: num,
            from,
            to,
            scored: Scored::new(to - from),
        })
    }

    /// Adds items by their classes, of which those below 0 are ignored; `probabilities` has the shape \[items, classes\].
    pub fn add_classes(&mut self, probabilities: &[f32], classes: &[i32]) {
        let items = probabilities.chunks_exact(self.num_outputs).zip(classes);
        for (item, class) in items.filter(|(_, class)| **class >= 0) {
            let each = (self.from..self.to).map(|at| (item[at], *class as usize == at));
            self.scored.add(each);
        }
    }

    /// Adds items by their labels; both have the shape \[items, labels\], and a label is present above 0.5.
    pub fn add_labels(&mut self, probabilities: &[f32], labels: &[f32]) {
        let items = probabilities.chunks_exact(self.num_outputs);
        for (item, labels) in items.zip(labels.chunks_exact(self.num_outputs)) {
            let each = (self.from..self.to).map(|at| (item[at], labels[at] > 0.5));
            self.scored.add(each);
        }
    }

    /// The result for classes or labels of these names.
    pub fn finish(self, names: &[String]) -> Vec<ClassSeparation> {
        let names = names.iter().skip(self.from);
        let each = names.zip(self.scored.separations());
        each.map(|(class, of)| ClassSeparation {
            class: class.clone(),
            of,
        })
        .collect()
    }
}
