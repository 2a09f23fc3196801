//! The quality of a model on some items: metrics as in training, with the contribution of each item.

use burn::tensor::TensorReadError;
use rayon::prelude::*;

use super::{Model, Refusal};
use runner_core::data::encode::Unit;
use runner_core::data::{Served, Split, TargetValues};
use runner_core::diagnostic::Diagnostic;
use runner_core::predict::{
    Against, Difference, Measure, OnlyRight, Prediction, Residual, Separating,
};
use runner_core::record::evaluation::{ClassSeparation, Confusion};
use runner_core::spec::loss::LossSpec;
use runner_core::spec::losses::LossTerm;
use runner_core::spec::metric::Metric;
use runner_core::spec::section::Choice;
use runner_core::spec::task::TaskKind;
use runner_network::adversarial::Judged;
use runner_network::batch::{Batch, TargetUse};
use runner_network::network::Output;
use runner_network::noise::Draws;
use runner_network::scores::{self, Ranked, Scores};
use runner_network::sums::Sums;
use runner_network::targets::Targets;
use runner_statistics::{mcnemar, percentile_interval, quantile, resample};

/// The number of bootstrap resamples.
pub const NUM_RESAMPLES: usize = 1000;
/// The confidence level of its intervals.
pub const LEVEL: f64 = 0.95;
/// The maximum number of items whose contributions are kept, from which intervals are computed.
const MOST_ITEMS: usize = 50_000;
/// The maximum number of classes of a confusion matrix.
const MOST_CLASSES: usize = 200;
/// The maximum number of scores to sort over all resamples, for metrics that depend on their order.
const MOST_SORTED: usize = 50_000_000;

/// The share of resamples in which a metric must be defined for its interval: areas need items of a class and others.
const MOSTLY_DEFINED: f64 = 0.95;

/// The measurements of some items.
#[derive(Debug)]
pub struct Assessed {
    scores: Scores,
    /// What brings targets to their units.
    units: Vec<Unit>,
    loss: LossSpec,
    /// What is added to it.
    terms: Vec<LossTerm>,
    sums: Sums,
    ranked: Ranked,
    /// The names of the sums, and the contributions of each item, one item after the other.
    keys: Vec<String>,
    items: Vec<Vec<(usize, f64)>>,
    losses: Vec<f64>,
    /// Whether each item's class is predicted correctly.
    right: Vec<bool>,
    counts: Vec<Vec<u64>>,
    /// The errors of each target.
    errors: Vec<Vec<f64>>,
    separating: Option<Separating>,
    num_items: usize,
}

impl Assessed {
    /// Nothing yet.
    pub fn new(model: &Model) -> Self {
        let mut scores = Scores::new(
            &model.plan,
            model.transforms.pixels(),
            (
                model.meaning.units(),
                &model.transforms.names().more_units(),
            ),
        );
        let asked = scores.metrics.clone();
        let others = Metric::ALL.iter().map(|(metric, ..)| *metric);
        let others = others.filter(|metric| !asked.contains(metric) && is_usual(*metric, model));
        scores.metrics.extend(others);
        let num = scores.num_classes;
        let has_confusion = matches!(
            model.plan.task.kind,
            TaskKind::Classification | TaskKind::Segmentation
        ) && num <= MOST_CLASSES;
        Self {
            units: model.meaning.units().to_vec(),
            loss: model.plan.loss.clone(),
            terms: model.plan.losses.clone(),
            counts: if has_confusion {
                vec![vec![0; num]; num]
            } else {
                Vec::new()
            },
            errors: match model.plan.task.kind {
                // Numbers at padding are no errors.
                TaskKind::Regression if model.plan.loss.mask.is_none() => {
                    vec![Vec::new(); model.meaning.num_values()]
                }
                _ => Vec::new(),
            },
            separating: Separating::new(
                &model.plan.task,
                &model.plan.loss.function,
                model.meaning.names().len(),
            ),
            scores,
            sums: Sums::default(),
            ranked: Ranked::default(),
            keys: Vec::new(),
            items: Vec::new(),
            losses: Vec::new(),
            right: Vec::new(),
            num_items: 0,
        }
    }

    /// Items so far.
    pub fn num_items(&self) -> usize {
        self.num_items
    }

    /// The number of resamples for intervals: none of a single item, which shows no spread.
    pub fn num_resamples(&self) -> usize {
        if self.num_items > 1 && self.items.len() == self.num_items {
            NUM_RESAMPLES
        } else {
            0
        }
    }

    fn key(&mut self, name: &str) -> usize {
        match self.keys.iter().position(|key| key == name) {
            Some(at) => at,
            None => {
                self.keys.push(name.to_owned());
                self.keys.len() - 1
            }
        }
    }

    /// The loss and each metric over all items.
    pub fn metrics(&self) -> Vec<Measure> {
        let metrics = self.sums.metrics(&self.scores, Some(&self.ranked));
        let resampled = self.resampled();
        metrics
            .into_iter()
            .map(|(name, value)| Measure {
                interval: interval(&name, resampled.iter().map(|values| find(values, &name))),
                name,
                value,
            })
            .collect()
    }

    /// The metrics of each resample.
    fn resampled(&self) -> Vec<Vec<(String, f64)>> {
        let num = self.num_resamples();
        let all = (0..num as u64).into_par_iter();
        all.map(|at| self.of_resample(&resample(self.num_items, at)))
            .collect()
    }

    fn of_resample(&self, counts: &[u32]) -> Vec<(String, f64)> {
        let mut totals = vec![0.0; self.keys.len()];
        let (mut loss, mut num) = (0.0, 0.0);
        for (item, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = f64::from(*count);
            for (key, value) in &self.items[item] {
                totals[*key] += count * value;
            }
            loss += count * self.losses[item];
            num += count;
        }
        let sum = |name: &str| {
            let at = self.keys.iter().position(|key| key == name)?;
            Some(totals[at])
        };
        let mut values = vec![("loss".to_owned(), loss / num)];
        let of_sums = self.scores.values(&sum).into_iter();
        values.extend(of_sums.map(|(name, value)| (name.to_owned(), value)));
        let size = self.num_items * self.scores.num_classes.max(1);
        if self.scores.needs_ranks() && size * NUM_RESAMPLES <= MOST_SORTED {
            let ranked = self.ranked.resampled(counts);
            let of_ranks = self.scores.metrics.iter();
            let of_ranks = of_ranks.filter(|metric| metric.needs_scores());
            values.extend(of_ranks.filter_map(|metric| {
                let value = ranked.value(*metric, &self.scores.settings)?;
                Some((metric.name().to_owned(), value))
            }));
        }
        values
    }

    /// The confusion matrix of classes.
    pub fn confusion(&self, names: &[String]) -> Option<Confusion> {
        (!self.counts.is_empty()).then(|| Confusion {
            classes: names.to_vec(),
            confusion: self.counts.clone(),
            left_out: None,
        })
    }

    /// How the probabilities of classes or labels separate their items from others.
    pub fn separations(&self, names: &[String]) -> Vec<ClassSeparation> {
        let separating = self.separating.clone();
        separating.map_or_else(Vec::new, |separating| separating.finish(names))
    }

    /// The errors of each target.
    pub fn residuals(&self, names: &[String]) -> Vec<Residual> {
        let each = self.errors.iter().zip(names);
        each.filter(|(errors, _)| !errors.is_empty())
            .map(|(errors, name)| {
                let num = errors.len() as f64;
                let mut sorted = errors.clone();
                sorted.sort_by(f64::total_cmp);
                let at = |share| quantile(&sorted, share);
                Residual {
                    target: name.clone(),
                    mean: errors.iter().sum::<f64>() / num,
                    mean_absolute: errors.iter().map(|e| e.abs()).sum::<f64>() / num,
                    root_mean_square: (errors.iter().map(|e| e * e).sum::<f64>() / num).sqrt(),
                    quantiles: [0.0, 0.05, 0.5, 0.95, 1.0].map(at),
                }
            })
            .collect()
    }

    /// The comparison with another model on the same items.
    pub fn against(&self, other: &Self, run: String) -> Against {
        let (ours, theirs) = (self.resampled(), other.resampled());
        let of = |assessed: &Self| {
            assessed
                .sums
                .metrics(&assessed.scores, Some(&assessed.ranked))
        };
        let others = of(other);
        let is_scaled = |metric| matches!(metric, Metric::Mae | Metric::Mse | Metric::Rmse);
        let is_comparable = |name: &str| match Metric::named(name) {
            Some(Metric::Loss) => {
                (&self.loss, &self.terms) == (&other.loss, &other.terms)
                    && self.units == other.units
            }
            Some(metric) if is_scaled(metric) => self.units == other.units,
            _ => true,
        };
        let metrics = of(self).into_iter().filter_map(|(name, value)| {
            if !is_comparable(&name) {
                return None;
            }
            let differences = ours.iter().zip(&theirs);
            let differences = differences.map(|(a, b)| Some(find(a, &name)? - find(b, &name)?));
            Some(Difference {
                other: *others.get(&name)?,
                interval: interval(&name, differences),
                name,
                value,
            })
        });
        let metrics = metrics.collect();
        let is_of_classes = !self.right.is_empty() && self.right.len() == other.right.len();
        let right = is_of_classes.then(|| {
            let pairs = self.right.iter().zip(&other.right);
            let num =
                |a: bool, b: bool| pairs.clone().filter(|pair| *pair == (&a, &b)).count() as u64;
            OnlyRight {
                both: num(true, true),
                first: num(true, false),
                other: num(false, true),
                neither: num(false, false),
                p: mcnemar(num(true, false), num(false, true)),
            }
        });
        Against {
            run,
            metrics,
            right,
        }
    }
}

/// The metric of a name among those of a resample.
fn find(values: &[(String, f64)], name: &str) -> Option<f64> {
    let found = values.iter().find(|(other, _)| other == name);
    found.map(|(_, value)| *value)
}

/// The interval of a metric by its values in resamples, where it is defined in nearly all of them. Noise in the bins of
/// a calibration error adds to it, and more so in a resample: its interval would lie above it.
fn interval(name: &str, values: impl Iterator<Item = Option<f64>>) -> Option<[f64; 2]> {
    if name == Metric::CalibrationError.name() {
        return None;
    }
    let (mut defined, mut num) = (Vec::new(), 0);
    for value in values {
        num += 1;
        defined.extend(value);
    }
    let is_enough = defined.len() as f64 >= MOSTLY_DEFINED * f64::from(num);
    is_enough.then(|| percentile_interval(defined, LEVEL))?
}

/// Whether a metric that was not asked for is measured, too: those of the task that need neither all scores of the data
/// at once nor settings.
fn is_usual(metric: Metric, model: &Model) -> bool {
    let task = &model.plan.task;
    let num_classes = model.meaning.names().len();
    metric.tasks().contains(&task.kind)
        && (model.plan.loss.mask.is_none() || metric.leaves_out_positions())
        && !metric.needs_scores()
        && (!metric.needs_probabilities() || model.meaning.has_probabilities())
        && match metric {
            Metric::Loss | Metric::Psnr | Metric::Ssim => false,
            Metric::TopKAccuracy => task.settings.top_k < num_classes,
            Metric::Accuracy | Metric::LogLoss | Metric::Perplexity => true,
            Metric::TargetMae | Metric::TargetRmse => {
                let units = model.meaning.units();
                units
                    .iter()
                    .any(|unit| unit.linear().is_none_or(|(factor, _)| factor != 1.0))
            }
            _ => num_classes <= MOST_CLASSES,
        }
}

impl Model {
    /// Measures the items of a split, `batch_size` at a time.
    ///
    /// # Errors
    /// If the results cannot be read from the device.
    pub fn assess(
        &self,
        split: &Split,
        batch_size: usize,
        assessed: &mut Assessed,
    ) -> Result<(), Refusal> {
        let all: Vec<u32> = (0..split.num_items() as u32).collect();
        for places in all.chunks(batch_size.max(1)) {
            let served = self.served(split, places);
            self.assess_batch(served, assessed).map_err(|e| {
                Box::new(Diagnostic::error(
                    "device",
                    format!("the device failed: {e}"),
                ))
            })?;
        }
        Ok(())
    }

    fn assess_batch(&self, served: Served, to: &mut Assessed) -> Result<(), TensorReadError> {
        let (num, targets) = (served.num_items, served.targets.clone());
        let use_of = TargetUse::of(&self.plan);
        let input = &self.plan.data.input;
        let places = to.num_items..to.num_items + num;
        let noise = Draws::of(&self.plan).map(|draws| draws.of_split(places, &self.device));
        let batch = Batch::new(served, input, use_of, &self.device).with_noise(noise);
        let output = self.network.output(batch);
        let keeps = to.num_items + num <= MOST_ITEMS;
        let mut measured = vec![to.scores.measure(output.clone(), true)];
        if keeps {
            measured.extend((0..num).map(|at| to.scores.measure(item(&output, at, num), false)));
        }
        let mut activated: Vec<f32> = output.outputs.into_data().iter::<f32>().collect();
        let mut read = scores::read(measured)?.into_iter();
        if let Some(whole) = read.next() {
            to.sums.add_batch(&whole);
            if let Some((outputs, targets)) = whole.ranked {
                to.ranked.add(outputs, &targets)?;
            }
        }
        for read in read {
            let mut added = Vec::new();
            read.add(&mut |name, value| added.push((name.to_owned(), value)));
            let added = added.into_iter().filter(|(_, value)| *value != 0.0);
            let added: Vec<(usize, f64)> =
                added.map(|(name, value)| (to.key(&name), value)).collect();
            to.items.push(added);
            to.losses
                .push(read.losses.first().copied().unwrap_or(f64::NAN));
        }
        self.meaning.activate(&mut activated);
        match (&mut to.separating, &targets) {
            (Some(separating), TargetValues::Classes(classes)) => {
                separating.add_classes(&activated, classes);
            }
            (Some(separating), labels) => {
                let labels = labels.singles().unwrap_or_default();
                separating.add_labels(&activated, &labels);
            }
            (None, _) => {}
        }
        to.num_items += num;
        let decided = self.meaning.decide_all(&activated, num);
        self.count(&decided, &targets, to);
        Ok(())
    }

    /// Counts classes and errors.
    fn count(&self, predictions: &[Prediction], targets: &TargetValues, to: &mut Assessed) {
        let num = predictions.len().max(1);
        let numbers = targets.singles().unwrap_or_default();
        for (at, prediction) in predictions.iter().enumerate() {
            match (prediction, targets) {
                (Prediction::Class { index, .. }, TargetValues::Classes(classes)) => {
                    let class = classes[at];
                    to.right.push(class == *index as i32);
                    count_pair(&mut to.counts, class, *index);
                }
                (Prediction::Classes { classes, .. }, TargetValues::Classes(wanted)) => {
                    let size = wanted.len() / num;
                    for (class, given) in wanted[at * size..].iter().zip(classes) {
                        count_pair(&mut to.counts, *class, *given as usize);
                    }
                }
                (Prediction::Values { values, .. }, _) if !numbers.is_empty() => {
                    let size = values.len();
                    for (place, value) in values.iter().enumerate() {
                        let wanted = self
                            .meaning
                            .target_in_units(place, numbers[at * size + place]);
                        // If there are more items, the kept ones represent all.
                        let errors = to.errors.get_mut(place);
                        if let Some(errors) = errors.filter(|errors| errors.len() < 20 * MOST_ITEMS)
                        {
                            errors.push(value - wanted);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

fn count_pair(counts: &mut [Vec<u64>], class: i32, given: usize) {
    let row = usize::try_from(class)
        .ok()
        .and_then(|class| counts.get_mut(class));
    if let Some(count) = row.and_then(|row| row.get_mut(given)) {
        *count += 1;
    }
}

/// The part of a batch that belongs to one item.
fn item(output: &Output, at: usize, num: usize) -> Output {
    let rows = output.outputs.dims()[0] / num;
    Output {
        losses: output.losses.clone().narrow(0, at, 1),
        outputs: output.outputs.clone().narrow(0, at * rows, rows),
        targets: match &output.targets {
            Targets::Classes(classes) => Targets::Classes(classes.clone().narrow(0, at, 1)),
            Targets::Values(values) => Targets::Values(values.clone().narrow(0, at, 1)),
        },
        padding: output.padding.as_ref().map(|all| all.narrow(at, 1)),
        // Only whole batches are measured for them.
        terms: Vec::new(),
        judged: output.judged.as_ref().map(|judged| Judged {
            real: judged.real.clone().narrow(0, at, 1),
            generated: judged.generated.clone().narrow(0, at, 1),
            condition: {
                let condition = judged.condition.as_ref();
                condition.map(|condition| condition.clone().narrow(0, at, 1))
            },
        }),
    }
}
