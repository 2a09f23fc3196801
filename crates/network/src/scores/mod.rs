//! The metrics of a task, from sums that can be accumulated in any order.
//!
//! Burn's metrics average the values of batches, which is wrong for everything that is not a mean over items: so counts
//! and errors are accumulated here, and values are computed from the sums of a whole split. The contribution of a batch
//! is reduced on the device: counts to one number, errors to one number per item, which are accumulated in double
//! precision when they are read back.

mod classes;
mod counts;
mod measured;
mod ranked;
mod values;

pub use measured::{Measured, Read, read, step_loss};
pub use ranked::Ranked;

use std::sync::Arc;

use burn::tensor::{Int, Tensor, TensorData, TensorReadError};

use crate::adversarial::{Judged, threshold};
use crate::loss::cross_entropies;
use crate::network::Output;
use crate::numeric::{log_sigmoid, log_softmax, mean_axis, sigmoid, softmax, sum_axis};
use crate::own::{self, LossTargets};
use crate::padding::Padding;
use crate::sliced::{self, NUM_DIRECTIONS, directions};
use crate::targets::Targets;
use runner_core::data::TargetPlan;
use runner_core::data::encode::{Pixels, Unit};
use runner_core::plan::RunPlan;
use runner_core::spec::backend::{Arithmetic, Kernels};
use runner_core::spec::loss::LossFunction;
use runner_core::spec::losses::{MAIN, TEACHER, TermTarget};
use runner_core::spec::metric::Metric;
use runner_core::spec::own::MetricName;
use runner_core::spec::section::Choice;
use runner_core::spec::task::{MetricSettings, TaskKind};

use counts::{all, balanced_accuracy, cohen_kappa, macro_mean, matthews, ratio};

/// Computes the metrics of a run.
#[derive(Clone, Debug)]
pub struct Scores {
    /// The metrics.
    pub metrics: Vec<Metric>,
    /// How.
    pub settings: MetricSettings,
    /// The loss, which determines the meaning of outputs.
    pub loss: LossFunction,
    /// Whether values are labels.
    pub is_of_labels: bool,
    /// \[channels, height, width\], if items are images that the network reconstructs.
    pub image: Option<[usize; 3]>,
    /// What brings values of images back to pixels.
    pub pixels: Pixels,
    /// What brings each value of a target to the units of the data.
    pub units: Arc<[Unit]>,
    /// Number of classes or labels, if any.
    pub num_classes: usize,
    /// What computes logarithms of likelihoods.
    pub kernels: Kernels,
    /// How sums are rounded.
    pub arithmetic: Arithmetic,
    /// If the loss is a sum: the names of the loss of the task and of what is added to it, with their metrics.
    pub terms: Vec<(String, Scores)>,
}

impl Scores {
    /// The scores of a plan. `pixels` brings values of images back to pixels, and `units` those of targets to their
    /// units: of the task, and of further targets.
    pub fn new(plan: &RunPlan, pixels: Pixels, units: (&[Unit], &[Vec<Unit>])) -> Self {
        let of = |task, metrics: &[Metric], loss: &LossFunction, more: Option<usize>| Self {
            metrics: {
                // The loss is measured anyway.
                let asked = metrics.iter().copied();
                asked.filter(|metric| *metric != Metric::Loss).collect()
            },
            settings: plan.task.settings,
            loss: loss.clone(),
            is_of_labels: task == TaskKind::MultiLabel,
            arithmetic: plan.arithmetic,
            image: match (task, plan.data.input.shape.as_slice()) {
                (TaskKind::Autoencoding, &[channels, height, width]) => {
                    Some([channels, height, width])
                }
                _ => None,
            },
            pixels: pixels.clone(),
            units: match more {
                None => units.0.into(),
                Some(at) => units
                    .1
                    .get(at)
                    .map_or_else(Arc::default, |of| of.as_slice().into()),
            },
            kernels: plan.kernels,
            num_classes: match more.map_or(&plan.data.target, |at| &plan.data.more_targets[at]) {
                TargetPlan::Class { num_classes } | TargetPlan::Classes { num_classes, .. } => {
                    *num_classes
                }
                TargetPlan::Labels { num_labels } => *num_labels,
                TargetPlan::Values { .. } | TargetPlan::None => 0,
            },
            terms: Vec::new(),
        };
        let main = of(
            plan.task.kind,
            &plan.task.metrics,
            &plan.loss.function,
            None,
        );
        if plan.task.kind == TaskKind::Generation {
            let generator = of(plan.task.kind, &[], &plan.loss.function, None);
            return Self {
                terms: vec![(GENERATOR.to_owned(), generator)],
                ..main
            };
        }
        let has_teacher = plan.strategy.distill().is_some();
        if plan.losses.is_empty() && !has_teacher {
            return main;
        }
        let more_tasks = plan.more_tasks();
        let terms = plan.losses.iter().map(|term| {
            let (task, more) = match term.target {
                Some(TermTarget::Items) => (TaskKind::Autoencoding, None),
                Some(TermTarget::Task) | None => (plan.task.kind, None),
                Some(TermTarget::More(at)) => (more_tasks[at], Some(at)),
            };
            let scores = of(task, &term.metrics, &term.loss.function, more);
            (term.name.clone(), scores)
        });
        let alone = of(plan.task.kind, &[], &plan.loss.function, None);
        // The distance to a teacher is last, since it is measured only in training.
        let teacher = has_teacher.then(|| (TEACHER.to_owned(), alone.clone()));
        Self {
            terms: [(MAIN.to_owned(), alone)]
                .into_iter()
                .chain(terms)
                .chain(teacher)
                .collect(),
            ..main
        }
    }

    /// Whether all scores of a split must be kept.
    pub fn needs_ranks(&self) -> bool {
        self.metrics.iter().any(|metric| metric.needs_scores())
    }

    fn wants(&self, any: &[Metric]) -> bool {
        self.metrics.iter().any(|metric| any.contains(metric))
    }

    /// The contribution of a batch. With `ranked`, also its scores, if a metric needs them.
    pub fn measure(&self, output: Output, ranked: bool) -> Measured {
        let Output {
            losses,
            outputs,
            targets,
            padding,
            terms,
            judged,
        } = output;
        let mut measured = Measured::of_losses(losses);
        let condition = judged.as_ref().and_then(|judged| judged.condition.clone());
        if let Some(judged) = judged {
            self.measure_scores(judged, &mut measured);
        }
        for ((name, scores), term) in self.terms.iter().zip(terms) {
            let mut of_term = Measured::of_losses(term.losses);
            if let Some((outputs, targets, padding)) = term.compared {
                scores.compare(outputs, targets, padding, &mut of_term);
            }
            measured.terms.push((name.clone(), of_term));
        }
        if ranked && self.needs_ranks() {
            measured.ranked = Some(if self.is_of_items() {
                projected(&outputs, &targets, condition)
            } else {
                let ranked = self.ranked(outputs.clone(), &targets);
                (ranked, targets.clone())
            });
        }
        self.compare(outputs, targets, padding, &mut measured);
        measured
    }

    fn compare(
        &self,
        outputs: Tensor<2>,
        targets: Targets,
        padding: Option<Padding>,
        to: &mut Measured,
    ) {
        let outputs = match &padding {
            Some(padding) => padding.filled(outputs, &targets),
            None => outputs,
        };
        match targets {
            Targets::Classes(classes) => self.measure_classes(outputs, classes, to),
            Targets::Values(labels) if self.is_of_labels => {
                self.measure_labels(outputs, labels, to);
            }
            Targets::Values(values) => {
                let factors = padding.map(|padding| padding.factors(self.arithmetic));
                self.measure_values(outputs, values, factors, to);
            }
        }
    }

    /// The scores that items are ranked by: comparable between items.
    fn ranked(&self, outputs: Tensor<2>, targets: &Targets) -> Tensor<2> {
        match targets {
            Targets::Classes(_) => log_softmax(self.arithmetic, outputs),
            Targets::Values(_) => outputs,
        }
    }

    /// Whether it compares sets of items.
    fn is_of_items(&self) -> bool {
        self.wants(&[Metric::SlicedWasserstein])
    }

    /// How often a discriminator is right.
    fn measure_scores(&self, judged: Judged, to: &mut Measured) {
        let Judged {
            real, generated, ..
        } = judged;
        to.know("judged", real.dims()[0] as f64);
        if let Some(threshold) = threshold(&self.loss) {
            to.count("real right", real.greater_scalar(threshold).int().sum());
            let right = generated.lower_equal_scalar(threshold).int();
            to.count("generated right", right.sum());
        }
    }

    /// `outputs` is \[batch * positions, classes\].
    fn measure_classes(&self, outputs: Tensor<2>, classes: Tensor<2, Int>, to: &mut Measured) {
        use Metric::*;
        let [num, num_classes] = outputs.dims();
        let wanted: Tensor<2, Int> = classes.reshape([num, 1]);
        let counts = || wanted.clone().greater_equal_scalar(0);
        for own in self.own() {
            let classes = LossTargets::Classes(wanted.clone().clamp_min(0).flatten(0, 1));
            let counts = Some(counts().int());
            let rows = own::of_rows(own, outputs.clone(), classes, counts);
            to.columns(of_own(own), rows);
        }
        let of_classes = [
            Precision,
            Recall,
            FBeta,
            Specificity,
            Jaccard,
            BalancedAccuracy,
            Mcc,
            CohenKappa,
            Dice,
            MeanIou,
        ];
        let counts_each = self.wants(&of_classes);
        if counts_each || self.wants(&[Accuracy]) {
            classes::count(self.kernels, (&outputs, &wanted), counts_each, to);
        } else {
            to.count("counted", counts().int().sum());
        }
        if self.wants(&[Brier, CalibrationError]) {
            self.measure_probabilities(
                softmax(self.arithmetic, outputs.clone()),
                wanted.clone(),
                to,
            );
        }
        if self.wants(&[TopKAccuracy, Perplexity, LogLoss]) {
            let index = wanted.clone().clamp_min(0);
            if self.wants(&[TopKAccuracy]) {
                let right = outputs.clone().gather(1, index.clone());
                let better = outputs.clone().greater(right.expand([num, num_classes]));
                let is_among = better
                    .int()
                    .sum_dim(1)
                    .lower_scalar(self.settings.top_k as i64);
                to.count("among", is_among.bool_and(counts()).int().sum());
            }
            if self.wants(&[Perplexity, LogLoss]) {
                let logs = cross_entropies(self.kernels, outputs, &index.flatten(0, 1), 0.0).neg();
                let logs = logs.mask_fill(counts().bool_not().flatten(0, 1), 0.0);
                to.sum("log_likelihood", logs);
            }
        }
    }

    /// \[items, classes\] and \[items, 1\]; each item has a class.
    fn measure_probabilities(
        &self,
        of_each: Tensor<2>,
        classes: Tensor<2, Int>,
        to: &mut Measured,
    ) {
        let dims = of_each.dims();
        let [num_items, num_classes] = dims;
        to.know("items", num_items as f64);
        if self.wants(&[Metric::Brier]) {
            let each = Tensor::<1, Int>::arange(0..num_classes as i64, &of_each.device());
            let is = classes
                .clone()
                .expand(dims)
                .equal(each.unsqueeze_dim::<2>(0).expand(dims));
            let errors = of_each
                .clone()
                .sub(is.float().cast(of_each.dtype()))
                .square();
            // The two classes of a binary problem have the same error.
            let half = if num_classes == 2 { 0.5 } else { 1.0 };
            let errors = sum_axis(self.arithmetic, errors, 1).flatten(0, 1);
            to.sum("brier", errors.mul_scalar(half));
        }
        if self.wants(&[Metric::CalibrationError]) {
            let (confidence, chosen) = of_each.max_dim_with_indices(1);
            let right = chosen.equal(classes).float().cast(confidence.dtype());
            to.bins(confidence.flatten(0, 1), right.flatten(0, 1));
        }
    }

    /// \[batch, labels\] each.
    fn measure_labels(&self, outputs: Tensor<2>, labels: Tensor<2>, to: &mut Measured) {
        let [num_items, num_labels] = labels.dims();
        for own in self.own() {
            let values = LossTargets::Values(labels.clone());
            let rows = own::of_rows(own, outputs.clone(), values, None);
            to.columns(of_own(own), rows);
        }
        let chosen = outputs.clone().greater_scalar(0.0);
        let wanted = labels.clone().greater_scalar(0.5);
        to.know("items", num_items as f64);
        to.know("counted", (num_items * num_labels) as f64);
        let right = chosen.clone().equal(wanted.clone()).int();
        to.count("right", right.clone().sum());
        let is_whole = right.sum_dim(1).equal_scalar(num_labels as i64);
        to.count("whole", is_whole.int().sum());
        let mean_of = |each: Tensor<2>| mean_axis(self.arithmetic, each, 1).flatten(0, 1);
        let log_sigmoid = |each| log_sigmoid(self.arithmetic, each);
        if self.wants(&[Metric::LogLoss]) {
            let others = labels.clone().neg().add_scalar(1.0);
            let logs = labels.clone().mul(log_sigmoid(outputs.clone()));
            let logs = logs.add(others.mul(log_sigmoid(outputs.clone().neg())));
            to.sum("log_likelihood", mean_of(logs));
        }
        if self.wants(&[Metric::Brier]) {
            to.sum(
                "brier",
                mean_of(sigmoid(self.arithmetic, outputs).sub(labels).square()),
            );
        }
        if self.metrics.iter().any(|metric| metric.is_averaged()) {
            classes::count_each(chosen, wanted, to);
        }
    }

    /// The metrics of the program.
    fn own(&self) -> impl Iterator<Item = MetricName> {
        self.metrics.iter().filter_map(|metric| match metric {
            Metric::Own(own) => Some(*own),
            _ => None,
        })
    }

    /// The metrics, by name, of everything accumulated. `sum` returns the amount for a name. Metrics that need all
    /// scores of a split are not included.
    pub fn values(&self, sum: &dyn Fn(&str) -> Option<f64>) -> Vec<(&'static str, f64)> {
        let total = |name: &str| sum(name).unwrap_or(0.0);
        let share = |name: &str, of: &str| total(name) / total(of).max(1.0);
        let values = self.metrics.iter().filter(|metric| !metric.needs_scores());
        let value = |metric: &Metric| match metric {
            Metric::Accuracy | Metric::HammingScore => share("right", "counted"),
            Metric::TopKAccuracy => share("among", "counted"),
            Metric::SubsetAccuracy => share("whole", "items"),
            Metric::Perplexity => libm::exp(-share("log_likelihood", "counted")),
            Metric::Precision
            | Metric::Recall
            | Metric::FBeta
            | Metric::Specificity
            | Metric::Jaccard => self.averaged(*metric, sum),
            Metric::BalancedAccuracy => balanced_accuracy(&all(sum, self.num_classes)),
            Metric::Mcc => matthews(&all(sum, self.num_classes), total("counted")),
            Metric::CohenKappa => cohen_kappa(&all(sum, self.num_classes), total("counted")),
            // Of labels, the mean over an item's is summed; of classes, every item counts.
            Metric::LogLoss if self.is_of_labels => -share("log_likelihood", "items"),
            Metric::LogLoss => -share("log_likelihood", "counted"),
            Metric::Brier => share("brier", "items"),
            Metric::CalibrationError => {
                let of = |name: &str, at: usize| total(&format!("{name} {at}"));
                let bins = 0..measured::NUM_BINS;
                let gaps = bins.map(|at| (of("confidence", at) - of("sure", at)).abs());
                gaps.sum::<f64>() / total("items").max(1.0)
            }
            Metric::Dice => macro_mean(sum, self.num_classes, |c| {
                ratio(2.0 * c.both, c.wanted + c.chosen)
            }),
            Metric::MeanIou => macro_mean(sum, self.num_classes, |c| {
                ratio(c.both, c.wanted + c.chosen - c.both)
            }),
            Metric::Mae => share("absolute", "items"),
            Metric::TargetMae => share("target_absolute", "items"),
            Metric::Mape => share("percent", "items"),
            Metric::Mse => share("squared", "items"),
            Metric::Psnr => share("decibels", "items"),
            Metric::Ssim => share("similarity", "items"),
            Metric::TargetRmse if !self.is_linear() => {
                let errors = (0..self.units.len()).map(|at| total(&format!("target_errors {at}")));
                let mean = errors.sum::<f64>() / self.units.len() as f64;
                (mean / total("items").max(1.0)).sqrt()
            }
            Metric::Rmse | Metric::TargetRmse => {
                let columns = columns(sum).enumerate();
                let errors = columns.map(|(value, (_, _, errors))| match metric {
                    Metric::TargetRmse => errors * self.unit(value).0.powi(2),
                    _ => errors,
                });
                let errors: Vec<f64> = errors.collect();
                let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
                (mean / total("items").max(1.0)).sqrt()
            }
            Metric::R2 => {
                let num = total("items").max(1.0);
                // A constant target has nothing to explain.
                let each = columns(sum).map(|(sum, squares, errors)| {
                    let varied = squares - sum * sum / num;
                    // As in scikit-learn. Rounding leaves some of the squares.
                    if varied > 1e-12 * squares {
                        1.0 - errors / varied
                    } else {
                        f64::from(errors == 0.0)
                    }
                });
                let each: Vec<f64> = each.collect();
                each.iter().sum::<f64>() / each.len().max(1) as f64
            }
            Metric::Own(own) => own::value(*own, &|at| total(&format!("{} {at}", of_own(*own)))),
            Metric::Auroc | Metric::AucPr | Metric::SlicedWasserstein | Metric::Loss => f64::NAN,
        };
        let values = values.map(|metric| (metric.name(), value(metric)));
        let mut values: Vec<_> = values.collect();
        if sum("judged").is_some() && threshold(&self.loss).is_some() {
            values.push(("real_accuracy", share("real right", "judged")));
            values.push(("generated_accuracy", share("generated right", "judged")));
        }
        values
    }
}

/// The name of what is measured of a generator.
const GENERATOR: &str = "generator";

/// Generated items and those of a split, each by its coordinates along fixed directions, in double precision: so they do
/// not depend on the other items of a batch.
fn projected(
    outputs: &Tensor<2>,
    targets: &Targets,
    condition: Option<Tensor<2>>,
) -> (Tensor<2>, Targets) {
    let Targets::Values(items) = targets else {
        return (outputs.clone(), targets.clone());
    };
    let with_condition = |items: &Tensor<2>| match &condition {
        Some(condition) => Tensor::cat(vec![items.clone(), condition.clone()], 1),
        None => items.clone(),
    };
    let (outputs, items) = (with_condition(outputs), with_condition(items));
    let along = directions(items.dims()[1]);
    let project = |items: Tensor<2>| {
        let num = items.dims()[0];
        let device = items.device();
        let values: Vec<f64> = items.into_data().iter::<f64>().collect();
        let data = TensorData::new(sliced::projected(&values, &along), [num, NUM_DIRECTIONS]);
        Tensor::from_data(data, &device)
    };
    (project(outputs), Targets::Values(project(items)))
}

/// The name that sums of a metric of the program are accumulated under.
fn of_own(metric: MetricName) -> String {
    format!("own {}", metric.name())
}

/// For each value of an item: the sum of the targets, of their squares, and of the squared errors.
fn columns(sum: &dyn Fn(&str) -> Option<f64>) -> impl Iterator<Item = (f64, f64, f64)> {
    (0..).map_while(move |value| {
        let of = |what: &str| sum(&format!("{what} {value}"));
        Some((of("sum")?, of("squares")?, of("errors")?))
    })
}

/// The integers of a tensor in order.
pub fn whole_numbers(tensor: Tensor<1, Int>) -> Result<Vec<i64>, TensorReadError> {
    Ok(tensor.try_into_data()?.iter::<i64>().collect())
}

/// The values of a tensor in order.
pub fn numbers<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f64>, TensorReadError> {
    Ok(tensor.try_into_data()?.iter::<f64>().collect())
}

#[cfg(all(test, feature = "flex"))]
mod tests;
