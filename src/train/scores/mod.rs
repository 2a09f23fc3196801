//! The metrics of a task, out of sums that can be added up in any order.
//!
//! Burn's metrics average the values of batches, which is wrong for all that is no mean over items: so
//! what is summed up here are counts and errors, and values are computed from the sums of a whole split.

mod ranked;

pub use ranked::Ranked;

use burn::tensor::activation::{log_softmax, softplus};
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Int, Tensor, TensorData, TensorReadError};

use super::targets::Targets;
use crate::data::TargetPlan;
use crate::plan::RunPlan;
use crate::spec::loss::LossFunction;
use crate::spec::metric::Metric;
use crate::spec::section::Choice;
use crate::spec::task::{Average, MetricSettings, TaskKind};

/// Computes the metrics of a run.
#[derive(Clone, Debug)]
pub struct Scores {
    /// What is measured.
    pub metrics: Vec<Metric>,
    /// How.
    pub settings: MetricSettings,
    /// The loss, which says what outputs mean.
    pub loss: LossFunction,
    /// \[channels, height, width\], where items are images that the network gives back.
    pub image: Option<[usize; 3]>,
    /// What values are multiplied by, and what is added then, for pixels from 0 to 1.
    pub to_pixels: (f32, f32),
    /// Number of classes or labels, where there are such.
    pub num_classes: usize,
}

/// Takes a name and what is added under it.
type Add<'a> = &'a mut dyn FnMut(&str, f64);

impl Scores {
    /// The scores of a plan. `to_pixels` is what values are multiplied by and what is added then, for
    /// pixels from 0 to 1.
    pub fn new(plan: &RunPlan, to_pixels: (f32, f32)) -> Self {
        let image = match (plan.task.kind, plan.data.input.shape.as_slice()) {
            (TaskKind::Autoencoding, &[channels, height, width]) => Some([channels, height, width]),
            _ => None,
        };
        Self {
            metrics: {
                // The loss is measured anyway.
                let asked = plan.task.metrics.iter().copied();
                asked.filter(|metric| *metric != Metric::Loss).collect()
            },
            settings: plan.task.settings,
            loss: plan.loss.function.clone(),
            image,
            to_pixels,
            num_classes: match plan.data.target {
                TargetPlan::Class { num_classes } | TargetPlan::Classes { num_classes, .. } => {
                    num_classes
                }
                TargetPlan::Labels { num_labels } => num_labels,
                TargetPlan::Values { .. } | TargetPlan::None => 0,
            },
        }
    }

    /// Whether all scores of a split must be kept.
    pub fn needs_ranks(&self) -> bool {
        self.metrics.iter().any(|metric| metric.needs_scores())
    }

    fn wants(&self, any: &[Metric]) -> bool {
        self.metrics.iter().any(|metric| any.contains(metric))
    }

    /// Adds what a batch contributes. For classes, `outputs` is \[batch * positions, classes\]; for values
    /// and labels \[batch, values\].
    pub fn add(
        &self,
        outputs: Tensor<2>,
        targets: &Targets,
        add: Add<'_>,
    ) -> Result<(), TensorReadError> {
        match targets {
            Targets::Classes(classes) => self.add_classes(outputs, classes, add),
            Targets::Values(values) if self.is_of_labels() => self.add_labels(outputs, values, add),
            Targets::Values(values) => self.add_values(outputs, values, add),
        }
    }

    fn is_of_labels(&self) -> bool {
        matches!(
            self.loss,
            LossFunction::BinaryCrossEntropy { .. } | LossFunction::SoftMargin
        )
    }

    fn add_classes(
        &self,
        outputs: Tensor<2>,
        classes: &Tensor<2, Int>,
        add: Add<'_>,
    ) -> Result<(), TensorReadError> {
        use Metric::*;
        let flat: Tensor<1, Int> = classes.clone().flatten(0, 1);
        let wanted = whole_numbers(flat.clone())?;
        let counted = || wanted.iter().enumerate().filter(|(_, class)| **class >= 0);
        add("counted", counted().count() as f64);
        if self.wants(&[Accuracy, Precision, Recall, FBeta, Dice, MeanIou]) {
            let chosen = whole_numbers(outputs.clone().argmax(1).squeeze_dim::<1>(1))?;
            let right = counted().filter(|(at, class)| chosen[*at] == **class);
            add("right", right.count() as f64);
            if self.wants(&[Precision, Recall, FBeta, Dice, MeanIou]) {
                let mut counts = Counts::new(outputs.dims()[1]);
                counted().for_each(|(at, class)| counts.decide(chosen[at], *class));
                counts.add(add);
            }
        }
        if self.wants(&[TopKAccuracy, Perplexity]) {
            let index = flat.clamp_min(0).unsqueeze_dim::<2>(1);
            if self.wants(&[TopKAccuracy]) {
                let right = outputs.clone().gather(1, index.clone());
                let better = outputs.clone().greater(right.expand(outputs.dims())).int();
                let ranks = whole_numbers(better.sum_dim(1).squeeze_dim::<1>(1))?;
                let among = counted().filter(|(at, _)| ranks[*at] < self.settings.top_k as i64);
                add("among", among.count() as f64);
            }
            if self.wants(&[Perplexity]) {
                let logs = numbers(log_softmax(outputs, 1).gather(1, index))?;
                add("log_likelihood", counted().map(|(at, _)| logs[at]).sum());
            }
        }
        Ok(())
    }

    fn add_labels(
        &self,
        outputs: Tensor<2>,
        labels: &Tensor<2>,
        add: Add<'_>,
    ) -> Result<(), TensorReadError> {
        let [num_items, num_labels] = labels.dims();
        let chosen = whole_numbers(outputs.greater_scalar(0.0).int().flatten(0, 1))?;
        let wanted = numbers(labels.clone())?;
        let mut counts = Counts::new(num_labels);
        let (mut right, mut whole) = (0, 0);
        let items = chosen
            .chunks_exact(num_labels)
            .zip(wanted.chunks_exact(num_labels));
        for (chosen, wanted) in items {
            let mut all = true;
            for (label, (chosen, wanted)) in chosen.iter().zip(wanted).enumerate() {
                let (chosen, wanted) = (*chosen == 1, *wanted > 0.5);
                counts.chosen[label] += chosen as u64;
                counts.wanted[label] += wanted as u64;
                counts.both[label] += (chosen && wanted) as u64;
                right += (chosen == wanted) as u64;
                all &= chosen == wanted;
            }
            whole += all as u64;
        }
        add("items", num_items as f64);
        add("counted", (num_items * num_labels) as f64);
        add("right", right as f64);
        add("whole", whole as f64);
        if self.wants(&[Metric::Precision, Metric::Recall, Metric::FBeta]) {
            counts.add(add);
        }
        Ok(())
    }

    fn add_values(
        &self,
        outputs: Tensor<2>,
        targets: &Tensor<2>,
        add: Add<'_>,
    ) -> Result<(), TensorReadError> {
        let [num_items, num_values] = targets.dims();
        add("items", num_items as f64);
        let predicted = self.predicted(outputs, num_values);
        if self.wants(&[Metric::R2, Metric::Rmse]) {
            let (predicted, wanted) = (numbers(predicted.clone())?, numbers(targets.clone())?);
            for value in 0..num_values {
                let of = |all: &[f64], at: usize| all[at * num_values + value];
                let wanted = (0..num_items).map(|at| of(&wanted, at));
                let errors = (0..num_items).zip(wanted.clone());
                let errors = errors.map(|(at, wanted)| of(&predicted, at) - wanted);
                add(&format!("sum {value}"), wanted.clone().sum());
                add(&format!("squares {value}"), wanted.map(|y| y * y).sum());
                add(&format!("errors {value}"), errors.map(|e| e * e).sum());
            }
        }
        let errors = predicted.clone() - targets.clone();
        if self.wants(&[Metric::Mae]) {
            let each = numbers(errors.clone().abs().mean_dim(1))?;
            add("absolute", each.iter().sum());
        }
        if self.wants(&[Metric::Mse, Metric::Psnr]) {
            let each = numbers(errors.square().mean_dim(1))?;
            add("squared", each.iter().sum());
            // An exact image would have no finite ratio: 100 dB stands for it.
            let unit = f64::from(self.to_pixels.0).powi(2);
            let ratio = |error: &f64| 10.0 * (1.0 / (error * unit)).log10().min(10.0);
            add("decibels", each.iter().map(ratio).sum());
        }
        if let (Some([channels, height, width]), true) = (self.image, self.wants(&[Metric::Ssim])) {
            let (unit, zero) = self.to_pixels;
            let images = |flat: Tensor<2>| {
                (flat * unit + zero).reshape([num_items, channels, height, width])
            };
            let each = similarities(images(predicted), images(targets.clone()));
            add("similarity", numbers(each)?.iter().sum());
        }
        Ok(())
    }

    /// The values that outputs stand for.
    fn predicted(&self, outputs: Tensor<2>, num_values: usize) -> Tensor<2> {
        match self.loss {
            LossFunction::GaussianNll => outputs.narrow(1, 0, num_values),
            LossFunction::PoissonNll {
                log_input: true, ..
            } => outputs.exp(),
            LossFunction::PoissonNll {
                log_input: false, ..
            } => softplus(outputs, 1.0),
            _ => outputs,
        }
    }

    /// The metrics, by name, of everything that was added up. `sum` gives what was added under a name.
    /// Those that need all scores of a split are not among them.
    pub fn values(&self, sum: &dyn Fn(&str) -> Option<f64>) -> Vec<(&'static str, f64)> {
        let total = |name: &str| sum(name).unwrap_or(0.0);
        let share = |name: &str, of: &str| total(name) / total(of).max(1.0);
        let values = self.metrics.iter().filter(|metric| !metric.needs_scores());
        let value = |metric: &Metric| match metric {
            Metric::Accuracy | Metric::HammingScore => share("right", "counted"),
            Metric::TopKAccuracy => share("among", "counted"),
            Metric::SubsetAccuracy => share("whole", "items"),
            Metric::Perplexity => (-share("log_likelihood", "counted")).exp(),
            Metric::Precision => self.of_counts(sum, |c| ratio(c.both, c.chosen)),
            Metric::Recall => self.of_counts(sum, |c| ratio(c.both, c.wanted)),
            Metric::FBeta => {
                let square = self.settings.beta.powi(2);
                self.of_counts(sum, |c| {
                    ratio((1.0 + square) * c.both, square * c.wanted + c.chosen)
                })
            }
            Metric::Dice => macro_mean(sum, self.num_classes, |c| {
                ratio(2.0 * c.both, c.wanted + c.chosen)
            }),
            Metric::MeanIou => macro_mean(sum, self.num_classes, |c| {
                ratio(c.both, c.wanted + c.chosen - c.both)
            }),
            Metric::Mae => share("absolute", "items"),
            Metric::Mse => share("squared", "items"),
            Metric::Psnr => share("decibels", "items"),
            Metric::Ssim => share("similarity", "items"),
            Metric::Rmse => {
                let errors: Vec<f64> = columns(sum).map(|(_, _, errors)| errors).collect();
                let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
                (mean / total("items").max(1.0)).sqrt()
            }
            Metric::R2 => {
                let num = total("items").max(1.0);
                // A target that does not vary has nothing to explain.
                let each = columns(sum).map(|(sum, squares, errors)| {
                    let varied = squares - sum * sum / num;
                    if varied > 0.0 {
                        1.0 - errors / varied
                    } else {
                        0.0
                    }
                });
                let each: Vec<f64> = each.collect();
                each.iter().sum::<f64>() / each.len().max(1) as f64
            }
            Metric::Auroc | Metric::AucPr | Metric::Loss => f64::NAN,
        };
        values
            .map(|metric| (metric.name(), value(metric)))
            .collect()
    }

    fn of_counts(&self, sum: &dyn Fn(&str) -> Option<f64>, value: impl Fn(&Count) -> f64) -> f64 {
        let num = self.num_classes;
        match self.settings.average {
            Average::Macro => macro_mean(sum, num, value),
            Average::Micro => {
                let add = |a: Count, b: Count| Count {
                    both: a.both + b.both,
                    chosen: a.chosen + b.chosen,
                    wanted: a.wanted + b.wanted,
                };
                counts(sum, num).reduce(add).map_or(0.0, |all| value(&all))
            }
        }
    }
}

/// The structural similarity of each pair of images of pixels from 0 to 1, \[batch\], in Gaussian windows of 11x11 that lie inside
/// the image (Wang et al., 2004).
fn similarities(a: Tensor<4>, b: Tensor<4>) -> Tensor<1> {
    const SIDE: usize = 11;
    const DEVIATION: f64 = 1.5;
    let channels = a.dims()[1];
    let weight = |at: usize| (-(at as f64 - 5.0).powi(2) / (2.0 * DEVIATION * DEVIATION)).exp();
    let total: f64 = (0..SIDE).map(weight).sum();
    let window = (0..channels * SIDE * SIDE).map(|at| {
        let at = at % (SIDE * SIDE);
        (weight(at / SIDE) * weight(at % SIDE) / (total * total)) as f32
    });
    let window = TensorData::new(window.collect::<Vec<_>>(), [channels, 1, SIDE, SIDE]);
    let window = Tensor::<4>::from_data(window, &a.device());
    let options = ConvOptions::new([1, 1], [0, 0], [1, 1], channels);
    let mean = |images: Tensor<4>| conv2d(images, window.clone(), None, options.clone());
    let (mean_a, mean_b) = (mean(a.clone()), mean(b.clone()));
    let (square_a, square_b) = (mean_a.clone().square(), mean_b.clone().square());
    let product = mean_a * mean_b;
    let variances =
        mean(a.clone().square()) + mean(b.clone().square()) - square_a.clone() - square_b.clone();
    let covariance = mean(a * b) - product.clone();
    let (c1, c2) = (0.01f64.powi(2), 0.03f64.powi(2));
    let above = (product * 2.0 + c1) * (covariance * 2.0 + c2);
    let below = (square_a + square_b + c1) * (variances + c2);
    let map: Tensor<2> = (above / below).flatten(1, 3);
    map.mean_dim(1).squeeze_dim(1)
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The mean over the classes that occur, in the data or in the predictions.
fn macro_mean(sum: &dyn Fn(&str) -> Option<f64>, num: usize, value: impl Fn(&Count) -> f64) -> f64 {
    let occurring = counts(sum, num).filter(|count| count.chosen + count.wanted > 0.0);
    let values: Vec<f64> = occurring.map(|count| value(&count)).collect();
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Decisions about one class or label.
struct Count {
    both: f64,
    chosen: f64,
    wanted: f64,
}

fn counts(sum: &dyn Fn(&str) -> Option<f64>, num: usize) -> impl Iterator<Item = Count> {
    (0..num).map(move |class| {
        let of = |what: &str| sum(&format!("{what} {class}")).unwrap_or(0.0);
        Count {
            both: of("both"),
            chosen: of("chosen"),
            wanted: of("wanted"),
        }
    })
}

/// For each value of an item: the sum of the targets, of their squares, and of the squared errors.
fn columns(sum: &dyn Fn(&str) -> Option<f64>) -> impl Iterator<Item = (f64, f64, f64)> {
    (0..).map_while(move |value| {
        let of = |what: &str| sum(&format!("{what} {value}"));
        Some((of("sum")?, of("squares")?, of("errors")?))
    })
}

/// Decisions about each class or label in a batch.
struct Counts {
    both: Vec<u64>,
    chosen: Vec<u64>,
    wanted: Vec<u64>,
}

impl Counts {
    fn new(num: usize) -> Self {
        let [both, chosen, wanted] = [(); 3].map(|()| vec![0; num]);
        Self {
            both,
            chosen,
            wanted,
        }
    }

    fn decide(&mut self, chosen: i64, wanted: i64) {
        self.chosen[chosen as usize] += 1;
        self.wanted[wanted as usize] += 1;
        self.both[wanted as usize] += (chosen == wanted) as u64;
    }

    fn add(&self, add: Add<'_>) {
        let parts = [
            ("both", &self.both),
            ("chosen", &self.chosen),
            ("wanted", &self.wanted),
        ];
        for (what, counts) in parts {
            for (class, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                add(&format!("{what} {class}"), *count as f64);
            }
        }
    }
}

fn whole_numbers(tensor: Tensor<1, Int>) -> Result<Vec<i64>, TensorReadError> {
    Ok(tensor.try_into_data()?.iter::<i64>().collect())
}

/// The values of a tensor in order.
pub fn numbers<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f64>, TensorReadError> {
    Ok(tensor.try_into_data()?.iter::<f64>().collect())
}

#[cfg(test)]
mod tests;
