//! The metrics of a task, out of sums that can be added up in any order.
//!
//! Burn's metrics average the values of batches, which is wrong for all that is no mean over items: so
//! what is summed up here are counts and errors, and values are computed from the sums of a whole split.

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
                TargetPlan::Values { .. } => 0,
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

/// The scores of a whole split, for the metrics that look at their order.
#[derive(Clone, Debug, Default)]
pub struct Ranked {
    num_classes: usize,
    /// \[items, classes\]
    scores: Vec<f64>,
    /// Whether the item is of the class.
    truths: Vec<bool>,
}

impl Ranked {
    /// Keeps the scores of a batch, as [`Scores::add`] takes it.
    pub fn add(&mut self, outputs: Tensor<2>, targets: &Targets) -> Result<(), TensorReadError> {
        let [_, num_classes] = outputs.dims();
        self.num_classes = num_classes;
        match targets {
            Targets::Classes(classes) => {
                self.scores.extend(numbers(log_softmax(outputs, 1))?);
                let classes: Tensor<1, Int> = classes.clone().flatten(0, 1);
                for class in whole_numbers(classes)? {
                    self.truths
                        .extend((0..num_classes).map(|at| at as i64 == class));
                }
            }
            Targets::Values(labels) => {
                self.scores.extend(numbers(outputs)?);
                let labels = numbers(labels.clone())?;
                self.truths
                    .extend(labels.into_iter().map(|label| label > 0.5));
            }
        }
        Ok(())
    }

    /// The value of a metric: each class against the rest, mean over the classes of which there are both.
    pub fn value(&self, metric: Metric) -> f64 {
        let values = (0..self.num_classes).filter_map(|class| {
            let of_class = (class..self.scores.len()).step_by(self.num_classes);
            let mut pairs: Vec<(f64, bool)> = of_class
                .map(|at| (self.scores[at], self.truths[at]))
                .collect();
            pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
            match metric {
                Metric::Auroc => auroc(&pairs),
                _ => average_precision(&pairs),
            }
        });
        let values: Vec<f64> = values.collect();
        values.iter().sum::<f64>() / values.len().max(1) as f64
    }
}

/// Groups of equal scores, highest first: how many are of the class, and how many not.
fn groups(pairs: &[(f64, bool)]) -> impl Iterator<Item = (f64, f64)> {
    pairs.chunk_by(|a, b| a.0 == b.0).map(|group| {
        let positive = group.iter().filter(|(_, truth)| *truth).count();
        (positive as f64, (group.len() - positive) as f64)
    })
}

/// The share of pairs of an item of the class and another in which the first scores higher, ties for half
/// (Mann and Whitney, 1947).
fn auroc(pairs: &[(f64, bool)]) -> Option<f64> {
    let (mut positives, mut negatives, mut won) = (0.0, 0.0, 0.0);
    for (positive, negative) in groups(pairs) {
        won += negative * (positives + positive / 2.0);
        positives += positive;
        negatives += negative;
    }
    (positives > 0.0 && negatives > 0.0).then(|| won / (positives * negatives))
}

/// The sum of precisions, each times the recall that its threshold adds.
fn average_precision(pairs: &[(f64, bool)]) -> Option<f64> {
    let total = pairs.iter().filter(|(_, truth)| *truth).count() as f64;
    let (mut positives, mut seen, mut sum) = (0.0, 0.0, 0.0);
    for (positive, negative) in groups(pairs) {
        positives += positive;
        seen += positive + negative;
        sum += positive * positives / seen;
    }
    (total > 0.0).then(|| sum / total)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use burn::tensor::Device;

    use super::*;

    fn scores(metrics: &[Metric], average: Average, loss: LossFunction) -> Scores {
        Scores {
            metrics: metrics.to_vec(),
            settings: MetricSettings {
                top_k: 2,
                beta: 2.0,
                average,
            },
            loss,
            image: None,
            to_pixels: (1.0, 0.0),
            num_classes: 4,
        }
    }

    fn cross_entropy() -> LossFunction {
        LossFunction::CrossEntropy {
            label_smoothing: 0.0,
            class_weights: Vec::new(),
        }
    }

    fn tensor(values: &[f64], width: usize) -> Tensor<2> {
        let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
        let rows = values.len() / width;
        Tensor::from_data(TensorData::new(values, [rows, width]), &Device::flex())
    }

    /// Numbers that look random and are the same everywhere.
    fn noise(num: usize, seed: f64) -> Vec<f64> {
        let one = |at: usize| ((at as f64 + seed) * 12.9898).sin() * 43_758.545;
        (0..num)
            .map(|at| (one(at) - one(at).floor()) * 4.0 - 2.0)
            .collect()
    }

    /// The metrics of batches that end after each of `ends` items.
    fn measured(
        scores: &Scores,
        outputs: &[f64],
        width: usize,
        targets: impl Fn(usize, usize) -> Targets,
        ends: &[usize],
    ) -> BTreeMap<&'static str, f64> {
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        let mut start = 0;
        for end in ends {
            let batch = tensor(&outputs[start * width..end * width], width);
            let mut add =
                |name: &str, value: f64| *sums.entry(name.to_owned()).or_default() += value;
            scores.add(batch, &targets(start, *end), &mut add).unwrap();
            start = *end;
        }
        scores
            .values(&|name| sums.get(name).copied())
            .into_iter()
            .collect()
    }

    fn assert_close(found: f64, expected: f64, what: &str) {
        assert!(
            (found - expected).abs() < 1e-5 * (1.0 + expected.abs()),
            "{what}: {found} for {expected}"
        );
    }

    const NUM: usize = 40;
    const GROUPINGS: [&[usize]; 3] = [&[40], &[7, 14, 21, 28, 35, 40], &[1, 39, 40]];

    #[test]
    fn metrics_of_classes_are_those_of_brute_force() {
        use Metric::*;
        let width = 4;
        let outputs = noise(NUM * width, 0.3);
        // The last class never occurs; some positions do not count.
        let classes: Vec<i64> = noise(NUM, 9.1)
            .iter()
            .map(|x| ((x + 2.0) * 0.99) as i64 - 1)
            .collect();
        let targets = |start: usize, end: usize| {
            let data = TensorData::new(classes[start..end].to_vec(), [end - start, 1]);
            Targets::Classes(Tensor::from_data(data, &Device::flex()))
        };
        let row = |at: usize| &outputs[at * width..(at + 1) * width];
        let best = |at: usize| {
            (0..width)
                .max_by(|a, b| row(at)[*a].total_cmp(&row(at)[*b]))
                .unwrap() as i64
        };
        let counted: Vec<usize> = (0..NUM).filter(|at| classes[*at] >= 0).collect();
        assert!(counted.len() < NUM && counted.len() > NUM / 2);
        let num = counted.len() as f64;
        let count =
            |holds: &dyn Fn(usize) -> bool| counted.iter().filter(|at| holds(**at)).count() as f64;
        let of_class = |class: i64| {
            let both = count(&|at| best(at) == class && classes[at] == class);
            (
                both,
                count(&|at| best(at) == class),
                count(&|at| classes[at] == class),
            )
        };
        let occurring: Vec<_> = (0..width as i64)
            .map(of_class)
            .filter(|(_, c, w)| c + w > 0.0)
            .collect();
        let mean = |value: &dyn Fn(&(f64, f64, f64)) -> f64| {
            occurring.iter().map(value).sum::<f64>() / occurring.len() as f64
        };
        let safe = |a: f64, b: f64| if b > 0.0 { a / b } else { 0.0 };
        let higher = |at: usize| {
            row(at)
                .iter()
                .filter(|x| **x > row(at)[classes[at] as usize])
                .count()
        };
        let log = |at: usize| {
            let sum: f64 = row(at).iter().map(|x| x.exp()).sum();
            row(at)[classes[at] as usize] - sum.ln()
        };
        let expected = [
            (Accuracy, count(&|at| best(at) == classes[at]) / num),
            (TopKAccuracy, count(&|at| higher(at) < 2) / num),
            (
                Perplexity,
                (-counted.iter().map(|at| log(*at)).sum::<f64>() / num).exp(),
            ),
            (Precision, mean(&|(b, c, _)| safe(*b, *c))),
            (Recall, mean(&|(b, _, w)| safe(*b, *w))),
            (
                FBeta,
                mean(&|(b, c, w)| {
                    let (precision, recall) = (safe(*b, *c), safe(*b, *w));
                    safe(5.0 * precision * recall, 4.0 * precision + recall)
                }),
            ),
            (Dice, mean(&|(b, c, w)| safe(2.0 * b, c + w))),
            (MeanIou, mean(&|(b, c, w)| safe(*b, c + w - b))),
        ];
        let metrics = expected.map(|(metric, _)| metric);
        let scores = scores(&metrics, Average::Macro, cross_entropy());
        for ends in GROUPINGS {
            let found = measured(&scores, &outputs, width, targets, ends);
            for (metric, value) in expected {
                assert_close(found[metric.name()], value, metric.name());
            }
        }
    }

    #[test]
    fn metrics_of_labels_are_those_of_brute_force() {
        use Metric::*;
        let width = 3;
        let outputs = noise(NUM * width, 5.5);
        let labels: Vec<f64> = noise(NUM * width, 7.7)
            .iter()
            .map(|x| (*x > 0.4) as u8 as f64)
            .collect();
        let targets = |start: usize, end: usize| {
            Targets::Values(tensor(&labels[start * width..end * width], width))
        };
        let right = |at: usize| (outputs[at] > 0.0) == (labels[at] > 0.5);
        let all = NUM * width;
        let hits = (0..all)
            .filter(|at| outputs[*at] > 0.0 && labels[*at] > 0.5)
            .count() as f64;
        let chosen = (0..all).filter(|at| outputs[*at] > 0.0).count() as f64;
        let whole = (0..NUM).filter(|item| (0..width).all(|label| right(item * width + label)));
        let expected = [
            (
                HammingScore,
                (0..all).filter(|at| right(*at)).count() as f64 / all as f64,
            ),
            (SubsetAccuracy, whole.count() as f64 / NUM as f64),
            (Precision, hits / chosen),
            (Recall, hits / labels.iter().sum::<f64>()),
        ];
        let metrics = expected.map(|(metric, _)| metric);
        let binary = LossFunction::BinaryCrossEntropy {
            label_smoothing: 0.0,
            label_weights: Vec::new(),
        };
        let scores = scores(&metrics, Average::Micro, binary);
        for ends in GROUPINGS {
            let found = measured(&scores, &outputs, width, targets, ends);
            for (metric, value) in expected {
                assert_close(found[metric.name()], value, metric.name());
            }
        }
    }

    #[test]
    fn metrics_of_values_are_those_of_brute_force() {
        use Metric::*;
        let width = 2;
        let outputs = noise(NUM * width, 1.5);
        let wanted = noise(NUM * width, 2.5);
        let targets = |start: usize, end: usize| {
            Targets::Values(tensor(&wanted[start * width..end * width], width))
        };
        let errors: Vec<f64> = outputs.iter().zip(&wanted).map(|(a, b)| a - b).collect();
        let mean = |values: &dyn Fn(f64) -> f64| {
            errors.iter().map(|e| values(*e)).sum::<f64>() / errors.len() as f64
        };
        let r2 = |value: usize| {
            let of = |all: &[f64]| -> Vec<f64> {
                all.iter().skip(value).step_by(width).copied().collect()
            };
            let (wanted, errors) = (of(&wanted), of(&errors));
            let center = wanted.iter().sum::<f64>() / NUM as f64;
            let varied: f64 = wanted.iter().map(|y| (y - center).powi(2)).sum();
            1.0 - errors.iter().map(|e| e * e).sum::<f64>() / varied
        };
        let of_item = |item: usize| {
            errors[item * width..(item + 1) * width]
                .iter()
                .map(|e| e * e)
                .sum::<f64>()
                / width as f64
        };
        let decibels = (0..NUM)
            .map(|item| 10.0 * (1.0 / of_item(item)).log10())
            .sum::<f64>()
            / NUM as f64;
        let expected = [
            (Mae, mean(&f64::abs)),
            (Mse, mean(&|e| e * e)),
            (Rmse, mean(&|e| e * e).sqrt()),
            (R2, (r2(0) + r2(1)) / 2.0),
            (Psnr, decibels),
        ];
        let metrics = expected.map(|(metric, _)| metric);
        let scores = scores(&metrics, Average::Macro, LossFunction::Mse);
        for ends in GROUPINGS {
            let found = measured(&scores, &outputs, width, targets, ends);
            for (metric, value) in expected {
                assert_close(found[metric.name()], value, metric.name());
            }
        }
    }

    #[test]
    fn structural_similarity_is_that_of_the_definition() {
        let side = 12;
        let image = |seed: f64| -> Vec<f64> {
            noise(side * side, seed)
                .iter()
                .map(|x| (x + 2.0) / 4.0)
                .collect()
        };
        let (a, b) = (image(1.0), image(2.0));
        let weight = |at: usize| (-(at as f64 - 5.0).powi(2) / 4.5).exp();
        let total: f64 = (0..11).map(weight).sum::<f64>().powi(2);
        let mut windows = Vec::new();
        for (row, column) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let mean = |value: &dyn Fn(usize) -> f64| -> f64 {
                let at = (0..121).map(|at| (at / 11, at % 11));
                at.map(|(y, x)| weight(y) * weight(x) * value((row + y) * side + column + x))
                    .sum::<f64>()
                    / total
            };
            let (mean_a, mean_b) = (mean(&|at| a[at]), mean(&|at| b[at]));
            let variance_a = mean(&|at| (a[at] - mean_a).powi(2));
            let variance_b = mean(&|at| (b[at] - mean_b).powi(2));
            let covariance = mean(&|at| (a[at] - mean_a) * (b[at] - mean_b));
            let (c1, c2) = (0.0001, 0.0009);
            windows.push(
                (2.0 * mean_a * mean_b + c1) * (2.0 * covariance + c2)
                    / ((mean_a.powi(2) + mean_b.powi(2) + c1) * (variance_a + variance_b + c2)),
            );
        }
        let images = |values: &[f64]| tensor(values, side * side).reshape([1, 1, side, side]);
        let found = numbers(similarities(images(&a), images(&b))).unwrap()[0];
        let expected = windows.iter().sum::<f64>() / 4.0;
        assert!((found - expected).abs() < 1e-4, "{found} for {expected}");
    }

    #[test]
    fn areas_under_curves_are_those_of_brute_force() {
        let width = 3;
        // Coarse scores, so that there are ties.
        let outputs: Vec<f64> = noise(NUM * width, 3.3).iter().map(|x| x.round()).collect();
        let labels: Vec<f64> = noise(NUM * width, 4.4)
            .iter()
            .map(|x| (*x > 0.0) as u8 as f64)
            .collect();
        let mut ranked = Ranked::default();
        for (outputs, labels) in outputs.chunks(9 * width).zip(labels.chunks(9 * width)) {
            ranked
                .add(
                    tensor(outputs, width),
                    &Targets::Values(tensor(labels, width)),
                )
                .unwrap();
        }
        let class = |class: usize| -> (Vec<f64>, Vec<bool>) {
            let at = (0..NUM).map(|item| item * width + class);
            (
                at.clone().map(|at| outputs[at]).collect(),
                at.map(|at| labels[at] > 0.5).collect(),
            )
        };
        let roc = |(scores, truths): (Vec<f64>, Vec<bool>)| {
            let (mut won, mut pairs) = (0.0, 0.0);
            for a in (0..NUM).filter(|a| truths[*a]) {
                for b in (0..NUM).filter(|b| !truths[*b]) {
                    pairs += 1.0;
                    won += if scores[a] > scores[b] {
                        1.0
                    } else if scores[a] == scores[b] {
                        0.5
                    } else {
                        0.0
                    };
                }
            }
            won / pairs
        };
        let precision = |(scores, truths): (Vec<f64>, Vec<bool>)| {
            let total = truths.iter().filter(|truth| **truth).count() as f64;
            let mut thresholds = scores.clone();
            thresholds.sort_by(|a, b| b.total_cmp(a));
            thresholds.dedup();
            let (mut sum, mut recall) = (0.0, 0.0);
            for threshold in thresholds {
                let chosen: Vec<usize> = (0..NUM).filter(|at| scores[*at] >= threshold).collect();
                let hits = chosen.iter().filter(|at| truths[**at]).count() as f64;
                sum += (hits / total - recall) * hits / chosen.len() as f64;
                recall = hits / total;
            }
            sum
        };
        let mean = |value: &dyn Fn((Vec<f64>, Vec<bool>)) -> f64| {
            (0..width).map(|c| value(class(c))).sum::<f64>() / width as f64
        };
        assert_close(ranked.value(Metric::Auroc), mean(&roc), "auroc");
        assert_close(ranked.value(Metric::AucPr), mean(&precision), "auc_pr");
    }
}
