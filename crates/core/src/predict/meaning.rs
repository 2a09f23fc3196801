//! The meaning of the outputs of a network, by its task and loss.

use super::Prediction;
use crate::data::encode::{InputEncoder, Scaling, TargetEncoder, Unit};
use crate::data::picture::Picture;
use crate::data::records::ColumnKind;
use crate::data::{Dataset, Set, TargetPlan, Transforms};
use crate::plan::RunPlan;
use crate::spec::loss::LossFunction;
use crate::spec::losses::TermTarget;
use crate::spec::task::TaskKind;

/// The number of tokens that are listed in addition to the most probable one.
const NUM_ALTERNATIVES: usize = 5;

/// Converts outputs to predictions.
///
/// Outputs are \[classes\] or \[values\] of an item, or \[positions, classes\], as the loss takes them.
/// [`Meaning::activate`] converts them to numbers that can be averaged over several networks, and [`Meaning::decide`]
/// converts these to a prediction.
#[derive(Debug)]
pub struct Meaning {
    task: TaskKind,
    loss: LossFunction,
    target: TargetPlan,
    /// The shape of an item.
    item: Vec<usize>,
    names: Vec<String>,
    /// What brings each number of a target to its units.
    units: Vec<Unit>,
    /// The scaling of each number of a predicted item, if items are predicted and can be restored.
    scalings: Option<Vec<Scaling>>,
    set: Set,
    /// The number of a white pixel: embedded images range from 0 to 1, and others from 0 to 255.
    white: f32,
    /// The outputs that are compared with other columns, by the names of their losses.
    more: Vec<(String, Self)>,
}

impl Meaning {
    /// The meaning for a run.
    pub fn new(plan: &RunPlan, transforms: &Transforms) -> Self {
        // Items are predicted in the units that new data has.
        let transforms: &Transforms = &transforms.of_new_data(&plan.data);
        let of = |task, loss: &LossFunction, target: &TargetPlan, set: Set| Self {
            task,
            loss: loss.clone(),
            // Labels of the data say nothing about generated items.
            target: match task {
                TaskKind::Generation => TargetPlan::None,
                _ => target.clone(),
            },
            item: plan.data.input.shape.clone(),
            names: set.target_names(),
            units: set.target_units(),
            scalings: match task {
                TaskKind::Autoencoding | TaskKind::Generation => {
                    let size = plan.data.input.shape.iter().product();
                    set.encoder.input.scalings(size)
                }
                _ => None,
            },
            set,
            white: match plan.data.dataset {
                Dataset::Digits { .. } => 1.0,
                _ => 255.0,
            },
            more: Vec::new(),
        };
        let tasks = plan.more_tasks();
        let more = plan.losses.iter().filter_map(|term| {
            let Some(TermTarget::More(at)) = term.target else {
                return None;
            };
            let set = Transforms {
                target: transforms.more_targets.get(at)?.clone(),
                more_targets: Vec::new(),
                ..transforms.clone()
            };
            let target = plan.data.more_targets.get(at)?;
            let meaning = of(tasks[at], &term.loss.function, target, set.names());
            Some((term.name.clone(), meaning))
        });
        let task = plan.task.kind;
        Self {
            more: more.collect(),
            ..of(
                task,
                &plan.loss.function,
                &plan.data.target,
                transforms.names(),
            )
        }
    }

    /// The outputs that are compared with other columns than the target of the task, by the names of their losses.
    pub fn more(&self) -> &[(String, Self)] {
        &self.more
    }

    /// The numbers of an item's output.
    fn width(&self) -> usize {
        match &self.target {
            TargetPlan::Classes { shape, num_classes } => {
                shape.iter().product::<usize>() * num_classes
            }
            TargetPlan::Class { num_classes } => *num_classes,
            _ => self.num_values() * (1 + self.has_deviations() as usize),
        }
    }

    /// The predictions of several items, whose activated numbers contain those of all outputs, one output after the
    /// other: that of the task, and those of [`Meaning::more`].
    pub fn decide_outputs(
        &self,
        activated: &[f32],
        num_items: usize,
    ) -> Vec<(Prediction, Vec<Prediction>)> {
        let size = activated.len() / num_items.max(1);
        let items = activated.chunks_exact(size.max(1));
        let decide = |item: &[f32]| {
            let widths: usize = self.more.iter().map(|(_, more)| more.width()).sum();
            let (main, mut rest) = item.split_at(item.len().saturating_sub(widths));
            let more = self.more.iter().map(|(_, more)| {
                let (own, others) = rest.split_at(more.width());
                rest = others;
                more.decide(own)
            });
            let more = more.collect();
            (self.decide(main), more)
        };
        items.map(decide).collect()
    }

    /// The task.
    pub fn task(&self) -> TaskKind {
        self.task
    }

    /// The names of classes, labels, numbers or tokens.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Whether a class has a probability.
    pub fn has_probabilities(&self) -> bool {
        self.loss.gives_probabilities()
    }

    /// Whether numbers have standard deviations.
    pub fn has_deviations(&self) -> bool {
        self.loss == LossFunction::GaussianNll
    }

    /// What brings each number of a target to its units.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// The number of values in a target.
    pub fn num_values(&self) -> usize {
        match &self.target {
            TargetPlan::None => self.item.iter().product(),
            other => other.size(),
        }
    }

    /// The shape of a mask, of a predicted item or of values.
    pub fn shape(&self) -> Vec<usize> {
        if self.task.is_of_items() {
            return self.item.clone();
        }
        match &self.target {
            TargetPlan::Classes { shape, .. } | TargetPlan::Values { shape } => shape.clone(),
            TargetPlan::None => self.item.clone(),
            TargetPlan::Class { num_classes } => vec![*num_classes],
            TargetPlan::Labels { num_labels } => vec![*num_labels],
        }
    }

    /// The index of a class, for each position if the task has positions.
    fn num_classes(&self) -> usize {
        match &self.target {
            TargetPlan::Class { num_classes } | TargetPlan::Classes { num_classes, .. } => {
                *num_classes
            }
            TargetPlan::Labels { num_labels } => *num_labels,
            _ => 0,
        }
    }

    /// Converts outputs to probabilities, or to numbers in their own scale, which can be averaged over several
    /// networks. For a Gaussian these are the mean and the mean of squares.
    pub fn activate(&self, outputs: &mut [f32]) {
        match (&self.loss, self.task) {
            (loss, task) if task.is_of_classes() && loss.is_of_softmax() => outputs
                .chunks_exact_mut(self.num_classes().max(1))
                .for_each(softmax),
            (loss, TaskKind::MultiLabel) if loss.gives_probabilities() => {
                outputs.iter_mut().for_each(|x| *x = sigmoid(*x));
            }
            (LossFunction::PoissonNll { log_input, .. }, _) => {
                let rate = |x: f32| if *log_input { x.exp() } else { softplus(x) };
                outputs.iter_mut().for_each(|x| *x = rate(*x));
            }
            (LossFunction::GaussianNll, _) => {
                let num = self.num_values();
                for item in outputs.chunks_exact_mut(2 * num) {
                    let (means, raw) = item.split_at_mut(num);
                    for (mean, raw) in means.iter().zip(raw) {
                        *raw = softplus(*raw) + mean * mean;
                    }
                }
            }
            _ => {}
        }
    }

    /// Of the numbers at each position of several items those at one position of each, which [`Meaning::decide`] takes
    /// for tokens.
    pub fn at_positions(&self, activated: &[f32], positions: &[usize]) -> Vec<f32> {
        let num = self.num_classes().max(1);
        let size = (activated.len() / positions.len().max(1)).max(1);
        let items = activated.chunks_exact(size).zip(positions);
        let at = items.filter_map(|(item, at)| item.get(at * num..(at + 1) * num));
        at.flatten().copied().collect()
    }

    /// The predictions of several items.
    pub fn decide_all(&self, activated: &[f32], num_items: usize) -> Vec<Prediction> {
        let size = activated.len() / num_items.max(1);
        let items = activated.chunks_exact(size.max(1));
        items.map(|item| self.decide(item)).collect()
    }

    /// The prediction of one item.
    pub fn decide(&self, activated: &[f32]) -> Prediction {
        match self.task {
            TaskKind::Classification => {
                let index = largest(activated);
                Prediction::Class {
                    class: self.name(index),
                    index,
                    probability: self.has_probabilities().then(|| activated[index]),
                    probabilities: activated.to_vec(),
                }
            }
            TaskKind::MultiLabel => {
                let holding = activated.iter().enumerate().filter(|(_, p)| **p > 0.5);
                Prediction::Labels {
                    labels: holding.map(|(at, _)| self.name(at)).collect(),
                    probabilities: activated.to_vec(),
                }
            }
            TaskKind::Segmentation => Prediction::Classes {
                shape: self.shape(),
                classes: activated
                    .chunks_exact(self.num_classes().max(1))
                    .map(|pixel| largest(pixel) as u32)
                    .collect(),
            },
            TaskKind::NextToken | TaskKind::MaskedToken => self.token(activated),
            TaskKind::Autoencoding | TaskKind::Generation => Prediction::Item {
                shape: self.item.clone(),
                values: self.item_in_units(activated),
            },
            TaskKind::Regression => self.values(activated),
        }
    }

    /// The token of the last position: of items with padding or hidden tokens, only one position is passed.
    fn token(&self, activated: &[f32]) -> Prediction {
        let num = self.num_classes().max(1);
        let last = &activated[activated.len().saturating_sub(num)..];
        let mut order: Vec<usize> = (0..last.len()).collect();
        order.sort_by(|a, b| last[*b].total_cmp(&last[*a]));
        order.truncate(NUM_ALTERNATIVES);
        let id = order.first().copied().unwrap_or(0);
        Prediction::NextToken {
            token: self.name(id),
            id: id as u32,
            probability: last.get(id).copied().unwrap_or(f32::NAN),
            alternatives: order
                .into_iter()
                .map(|at| (self.name(at), last[at]))
                .collect(),
        }
    }

    fn values(&self, activated: &[f32]) -> Prediction {
        let num = self.num_values();
        let (means, squares) = activated.split_at(num.min(activated.len()));
        let deviation = |at: usize| {
            let mean = f64::from(means[at]);
            let variance = (f64::from(squares[at]) - mean * mean).max(0.0);
            variance.sqrt() * self.unit(at).abs()
        };
        Prediction::Values {
            values: (0..num).map(|at| self.in_units(at, means[at])).collect(),
            deviations: if self.has_deviations() {
                (0..num).map(deviation).collect()
            } else {
                Vec::new()
            },
        }
    }

    /// The size of one unit of a scaled number in units of the data.
    fn unit(&self, at: usize) -> f64 {
        self.in_units(at, 1.0) - self.in_units(at, 0.0)
    }

    /// A reconstructed item in the units of the data.
    fn item_in_units(&self, values: &[f32]) -> Vec<f32> {
        match &self.scalings {
            Some(scalings) => {
                let each = values.iter().zip(scalings);
                each.map(|(value, scaling)| scaling.undo(f64::from(*value)) as f32)
                    .collect()
            }
            None => values.to_vec(),
        }
    }

    /// An item in the units of the data as an image, if the items of the data are images.
    pub(super) fn picture(&self, values: &[f32]) -> Option<Picture> {
        let InputEncoder::Array { column, .. } = &self.set.encoder.input else {
            return None;
        };
        let is_bytes = self.set.records.columns()[*column].kind == ColumnKind::Bytes;
        let &[channels @ (1 | 3), height, width] = self.item.as_slice() else {
            return None;
        };
        let shade = |value: &f32| (value / self.white * 255.0).round().clamp(0.0, 255.0) as u8;
        is_bytes.then(|| Picture {
            caption: String::new(),
            shape: [channels, height, width],
            pixels: values.iter().map(shade).collect(),
            mask: None,
        })
    }

    /// Whether items of the data are images, so that predicted items are too.
    pub(super) fn has_pictures(&self) -> bool {
        let is_of_items = matches!(self.task, TaskKind::Autoencoding | TaskKind::Generation);
        is_of_items && self.picture(&[]).is_some()
    }

    /// The name of a class or label.
    pub fn name(&self, at: usize) -> String {
        self.names
            .get(at)
            .cloned()
            .unwrap_or_else(|| at.to_string())
    }

    /// Whether targets are scaled numbers.
    pub fn is_scaled(&self) -> bool {
        matches!(self.set.encoder.target, TargetEncoder::Values { .. })
    }

    /// A target in units of the data.
    pub fn target_in_units(&self, at: usize, value: f32) -> f64 {
        let (unit, value) = (self.units.get(at), f64::from(value));
        unit.map_or(value, |unit| unit.undo_target(value))
    }

    /// A predicted number of a target in units of the data.
    pub fn in_units(&self, at: usize, value: f32) -> f64 {
        let (unit, value) = (self.units.get(at), f64::from(value));
        unit.map_or(value, |unit| unit.undo(value))
    }
}

/// The index of the largest value; the first of equal ones.
fn largest(values: &[f32]) -> usize {
    let mut best = 0;
    for (at, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = at;
        }
    }
    best
}

fn softmax(values: &mut [f32]) {
    let most = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    for value in values.iter_mut() {
        *value = (*value - most).exp();
        total += *value;
    }
    for value in values {
        *value /= total;
    }
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

/// ln(1 + exp(x)) without overflow.
fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_are_those_of_the_definition() {
        let mut values = [1.0, 2.0, 0.5];
        softmax(&mut values);
        let total: f32 = [1f32, 2.0, 0.5].iter().map(|x| x.exp()).sum();
        for (found, x) in values.iter().zip([1f32, 2.0, 0.5]) {
            assert!((found - x.exp() / total).abs() < 1e-6, "{values:?}");
        }
        let mut large = [1e4, -1e4];
        softmax(&mut large);
        assert_eq!(large, [1.0, 0.0]);
        assert_eq!(
            (sigmoid(0.0), sigmoid(100.0), sigmoid(-200.0)),
            (0.5, 1.0, 0.0)
        );
        assert_eq!(softplus(100.0), 100.0);
        assert!((softplus(0.0) - 2f32.ln()).abs() < 1e-7);
        assert_eq!(largest(&[0.1, 0.7, 0.7]), 1);
    }
}
