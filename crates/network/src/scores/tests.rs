//! Every metric compared with brute force, for any grouping into batches.

use std::collections::BTreeMap;

use burn::tensor::Device;
use runner_core::data::encode::Scaling;
use runner_core::spec::task::{Average, ZeroDivision};

use super::values::similarities;
use super::*;

fn scores(metrics: &[Metric], average: Average, loss: LossFunction) -> Scores {
    Scores {
        kernels: Kernels::Fast,
        arithmetic: Arithmetic::Fast,
        metrics: metrics.to_vec(),
        settings: MetricSettings {
            top_k: 2,
            beta: 2.0,
            average,
            positive: None,
            zero_division: None,
        },
        units: Arc::default(),
        is_of_labels: matches!(loss, LossFunction::BinaryCrossEntropy { .. }),
        loss,
        image: None,
        pixels: Pixels::default(),
        num_classes: 4,
        terms: Vec::new(),
    }
}

fn cross_entropy() -> LossFunction {
    LossFunction::CrossEntropy {
        label_smoothing: 0.0,
        class_weights: Vec::new(),
        is_balanced: false,
        focal_gamma: 0.0,
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
    let mut staged = Vec::new();
    for end in ends {
        let outputs = tensor(&outputs[start * width..end * width], width);
        let output = Output {
            judged: None,
            losses: outputs.clone().sum_dim(1).squeeze_dim(1),
            outputs,
            targets: targets(start, *end),
            padding: None,
            terms: Vec::new(),
        };
        staged.push(scores.measure(output, false));
        start = *end;
    }
    // All at once, as steps are read.
    for batch in read(staged).unwrap() {
        batch.add(&mut |name, value| *sums.entry(name.to_owned()).or_default() += value);
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
    // Counted on the host, and on the device.
    let both = [Kernels::Fast, Kernels::Reference];
    let both = both.map(|kernels| Scores {
        kernels,
        ..scores.clone()
    });
    for (scores, ends) in both
        .iter()
        .flat_map(|scores| GROUPINGS.map(|ends| (scores, ends)))
    {
        let found = measured(scores, &outputs, width, targets, ends);
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
        focal_gamma: 0.0,
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
        let of =
            |all: &[f64]| -> Vec<f64> { all.iter().skip(value).step_by(width).copied().collect() };
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
    let expected = windows.iter().sum::<f64>() / 4.0;
    for arithmetic in [Arithmetic::Fast, Arithmetic::Portable] {
        let found = similarities(arithmetic, images(&a), images(&b));
        let found = numbers(found).unwrap()[0];
        assert!((found - expected).abs() < 1e-4, "{found} for {expected}");
    }
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
    let settings = scores(&[], Average::Macro, LossFunction::SoftMargin).settings;
    let value = |metric| ranked.value(metric, &settings).unwrap();
    assert_close(value(Metric::Auroc), mean(&roc), "auroc");
    assert_close(value(Metric::AucPr), mean(&precision), "auc_pr");
}

#[test]
fn areas_of_one_class_are_not_defined() {
    let settings = scores(&[], Average::Macro, LossFunction::SoftMargin).settings;
    let labels = |labels: &[f64]| {
        let mut ranked = Ranked::default();
        let all = tensor(&[0.2, 0.7], 1);
        let targets = Targets::Values(tensor(labels, 1));
        ranked.add(all, &targets).unwrap();
        [Metric::Auroc, Metric::AucPr].map(|metric| ranked.value(metric, &settings))
    };
    assert_eq!(labels(&[0.0, 1.0]), [Some(1.0), Some(1.0)]);
    assert_eq!(labels(&[1.0, 1.0]), [None, Some(1.0)]);
    assert_eq!(labels(&[0.0, 0.0]), [None, None]);
}

#[derive(serde::Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

/// Outputs and targets of some items, with the metrics of scikit-learn.
#[derive(serde::Deserialize)]
struct Case {
    task: TaskKind,
    outputs: Vec<Vec<f64>>,
    targets: serde_json::Value,
    #[serde(default)]
    units: Vec<(f64, f64)>,
    metrics: BTreeMap<Metric, f64>,
    settings: Vec<Averaged>,
}

/// The metrics of each class, averaged by some settings.
#[derive(serde::Deserialize)]
struct Averaged {
    average: Average,
    zero_division: Option<ZeroDivision>,
    positive: Option<usize>,
    metrics: BTreeMap<Metric, f64>,
}

/// The unit with a factor and a shift.
fn unit((factor, shift): &(f64, f64)) -> Unit {
    let (shift, factor) = (*shift, 1.0 / factor);
    Unit {
        scaling: Scaling { shift, factor },
        nonlinear: None,
    }
}

impl Case {
    fn scores(&self, settings: MetricSettings, metrics: &BTreeMap<Metric, f64>) -> Scores {
        let metrics: Vec<Metric> = metrics.keys().copied().collect();
        let loss = match self.task {
            TaskKind::Classification => cross_entropy(),
            TaskKind::MultiLabel => LossFunction::BinaryCrossEntropy {
                label_smoothing: 0.0,
                label_weights: Vec::new(),
                focal_gamma: 0.0,
            },
            _ => LossFunction::Mse,
        };
        Scores {
            settings,
            units: self.units.iter().map(unit).collect(),
            num_classes: self.outputs[0].len(),
            ..scores(&metrics, settings.average, loss)
        }
    }

    fn targets(&self, start: usize, end: usize) -> Targets {
        let device = Device::flex();
        if self.task == TaskKind::Classification {
            let classes: Vec<i64> = serde_json::from_value(self.targets.clone()).unwrap();
            let data = TensorData::new(classes[start..end].to_vec(), [end - start, 1]);
            return Targets::Classes(Tensor::from_data(data, &device));
        }
        let values: Vec<Vec<f64>> = serde_json::from_value(self.targets.clone()).unwrap();
        Targets::Values(tensor(&values[start..end].concat(), values[0].len()))
    }

    fn assert_metrics(
        &self,
        at: usize,
        settings: MetricSettings,
        expected: &BTreeMap<Metric, f64>,
    ) {
        let scores = self.scores(settings, expected);
        let (outputs, width) = (self.outputs.concat(), self.outputs[0].len());
        let num = self.outputs.len();
        let mut ranked = Ranked::default();
        let targets = self.targets(0, num);
        let all = scores.ranked(tensor(&outputs, width), &targets);
        ranked.add(all, &targets).unwrap();
        for ends in [&[num][..], &[1, 10, num]] {
            let targets = |start, end| self.targets(start, end);
            let found = measured(&scores, &outputs, width, targets, ends);
            for (metric, expected) in expected {
                let found = match found.get(metric.name()) {
                    Some(found) => *found,
                    None => ranked.value(*metric, &settings).unwrap_or_else(|| {
                        panic!("{} of case {at}, {settings:?}: {expected}", metric.name())
                    }),
                };
                let what = format!(
                    "{} of case {at}, {:?}, {settings:?}",
                    metric.name(),
                    self.task
                );
                assert_close(found, *expected, &what);
            }
        }
    }
}

#[test]
fn metrics_are_those_of_scikit_learn() {
    let golden = include_str!("../../../../tests/golden/metrics.json");
    let golden: Golden = serde_json::from_str(golden).unwrap();
    let usual = scores(&[], Average::Macro, LossFunction::Mse).settings;
    for (at, case) in golden.cases.iter().enumerate() {
        case.assert_metrics(at, usual, &case.metrics);
        for averaged in &case.settings {
            let settings = MetricSettings {
                average: averaged.average,
                positive: averaged.positive,
                zero_division: averaged.zero_division,
                ..usual
            };
            case.assert_metrics(at, settings, &averaged.metrics);
        }
    }
}
