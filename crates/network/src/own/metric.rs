//! Metrics of a program's own.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::training::LossTargets;
use crate::scores::numbers;
use runner_core::spec::own::{Entry, MetricName, OwnMetric, Part, Settings};
use runner_core::spec::task::TaskKind;

/// A metric, written in Rust: a function of sums over the rows of a split.
///
/// A row is an item, or a position of it for tasks with positions, such as tokens or pixels. Since a split is measured
/// in batches, and intervals are computed from resampled items, the numbers of a row are functions of this row alone.
/// Metrics have no keys.
pub trait MetricPart: 'static {
    /// Its name in experiment files: lowercase letters, digits and `_`.
    const NAME: &'static str;
    /// Its meaning, as one sentence.
    const DOC: &'static str;
    /// The tasks that it supports: at least one.
    const TASKS: &'static [TaskKind];
    /// Whether more is better.
    const HIGHER_IS_BETTER: bool;
    /// How many numbers each row adds to the sums: at least one.
    const NUM_SUMS: usize;

    /// The numbers of each row, \[rows, `NUM_SUMS`\].
    ///
    /// `outputs` are \[rows, classes\] for classes, as the network computes them (logits for most losses), and
    /// \[rows, labels\] for labels. For numbers, they are the predictions, \[rows, values\], in the units of the data,
    /// as the targets are.
    fn of_rows(outputs: Tensor<2>, targets: LossTargets) -> Tensor<2>;

    /// The metric for the sums over `num_rows` rows.
    fn value(sums: &[f64], num_rows: f64) -> f64;
}

/// The entry of a metric in the table of parts.
pub fn metric<M: MetricPart>() -> OwnMetric {
    OwnMetric {
        entry: Entry {
            name: M::NAME,
            doc: M::DOC,
            decode: |_| Settings::new(),
        },
        higher_is_better: M::HIGHER_IS_BETTER,
        tasks: M::TASKS,
        module: const {
            &Measure {
                num_sums: M::NUM_SUMS,
                of_rows: M::of_rows,
                value: M::value,
            }
        },
    }
}

/// What [`OwnMetric::module`] refers to.
struct Measure {
    num_sums: usize,
    of_rows: fn(Tensor<2>, LossTargets) -> Tensor<2>,
    value: fn(&[f64], f64) -> f64,
}

fn measure(metric: MetricName) -> &'static Measure {
    let part = metric.installed();
    let part = part.unwrap_or_else(|| panic!("the metric `{}` is missing", metric.name()));
    part.module.downcast_ref().expect("`metric` made it")
}

/// The numbers of each row, and 1 as the last one; rows that do not count have zeros.
///
/// # Panics
/// With the name of the metric, if it panics or breaks its promise about the shape.
pub(crate) fn of_rows(
    metric: MetricName,
    outputs: Tensor<2>,
    targets: LossTargets,
    counts: Option<Tensor<2, Int>>,
) -> Tensor<2> {
    let (name, part) = (metric.name(), measure(metric));
    let [num_rows, _] = outputs.dims();
    let compute = || (part.of_rows)(outputs, targets);
    let rows = OwnMetric::guarded(name, "for a batch", compute);
    let rows = rows.unwrap_or_else(|panicked| panic!("{panicked}"));
    let (dims, promised) = (rows.dims(), [num_rows, part.num_sums]);
    if dims != promised {
        let promise = format!(
            "the numbers of its rows have the shape {dims:?}, and {promised:?} was promised"
        );
        panic!("{}", OwnMetric::broken(name, promise));
    }
    let ones = Tensor::ones([num_rows, 1], (&rows.device(), rows.dtype()));
    let rows = Tensor::cat(vec![rows, ones], 1);
    match counts {
        // Not a product, which would keep a NaN.
        Some(counts) => {
            let left_out = counts.equal_scalar(0).expand(rows.dims());
            rows.mask_fill(left_out, 0.0)
        }
        None => rows,
    }
}

/// The metric for sums that were accumulated under numbers from 0 on.
///
/// # Panics
/// With the name of the metric, if it panics.
pub(crate) fn value(metric: MetricName, sum: &dyn Fn(usize) -> f64) -> f64 {
    let part = measure(metric);
    let sums: Vec<f64> = (0..part.num_sums).map(sum).collect();
    let num_rows = sum(part.num_sums);
    let value = OwnMetric::guarded(metric.name(), &format!("for the sums {sums:?}"), || {
        (part.value)(&sums, num_rows)
    });
    value.unwrap_or_else(|panicked| panic!("{panicked}"))
}

/// Checks that a metric is the same twice, without any randomness, and that its rows do not depend on each other.
pub(super) fn verify(
    metric: MetricName,
    outputs: &TensorData,
    targets: &dyn Fn() -> LossTargets,
    device: &Device,
) -> Result<(), String> {
    let broken = |promise: &str| Err(OwnMetric::broken(metric.name(), promise));
    let all = || Tensor::<2>::from_data(outputs.clone(), device);
    let read = |rows: Tensor<2>| numbers(rows).map_err(|e| format!("the device failed: {e}"));
    let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    let compute = || read(of_rows(metric, all(), targets(), None));
    let (first, second) = (compute()?, compute()?);
    if bits(&first) != bits(&second) {
        return broken(
            "two computations of the same rows differ, so that no run could be repeated; use nothing but outputs and targets",
        );
    }
    let [num_rows, _] = all().dims();
    let mut alone = Vec::new();
    for row in 0..num_rows {
        let targets = match targets() {
            LossTargets::Classes(classes) => LossTargets::Classes(classes.narrow(0, row, 1)),
            LossTargets::Values(values) => LossTargets::Values(values.narrow(0, row, 1)),
        };
        alone.extend(read(of_rows(
            metric,
            all().narrow(0, row, 1),
            targets,
            None,
        ))?);
    }
    let near =
        |(a, b): (&f64, &f64)| a == b || (a - b).abs() <= 1e-4 * (1.0 + a.abs().max(b.abs()));
    let is_same = |pair: (&f64, &f64)| (pair.0.is_nan() && pair.1.is_nan()) || near(pair);
    if !first.iter().zip(&alone).all(is_same) {
        return broken(
            "the numbers of a row depend on the other rows of its batch, so that the metric would depend on the size of batches; compute each row alone, and put them together in `value`",
        );
    }
    let num_sums = measure(metric).num_sums;
    value(metric, &|at| {
        let rows = first.chunks(num_sums + 1);
        rows.map(|row| row[at]).sum()
    });
    Ok(())
}
