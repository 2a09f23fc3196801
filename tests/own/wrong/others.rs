//! A loss, metrics, a strategy, a data source and an optimizer that are wrong.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use burn::optim::Optimizer;
use burn::tensor::Tensor;
use burn_runner::parts::{
    DataPart, Device, Items, Kind, LossPart, LossTargets, MetricPart, OptimizerPart, Section,
    StrategyPart, TaskKind, Unfit, Update,
};

use crate::NoSettings;

static CALLS: AtomicU32 = AtomicU32::new(0);

pub(super) struct NanLoss;

impl LossPart for NanLoss {
    const NAME: &'static str = "nan_loss";
    const DOC: &'static str = "A loss that is wrong.";
    const TASKS: &'static [TaskKind] = &[TaskKind::Classification];
    type Settings = NoSettings;

    fn settings(_: &mut Section<'_>) -> NoSettings {
        NoSettings
    }

    fn losses(_: &NoSettings, outputs: Tensor<2>, _: LossTargets) -> Tensor<2> {
        outputs.narrow(1, 0, 1) * f32::NAN
    }
}

macro_rules! metric {
    ($metric:ident $name:literal, |$sums:ident, $num:ident| $value:expr) => {
        pub(super) struct $metric;

        impl MetricPart for $metric {
            const NAME: &'static str = $name;
            const DOC: &'static str = "A metric that is wrong.";
            const TASKS: &'static [TaskKind] = &[TaskKind::Classification];
            const HIGHER_IS_BETTER: bool = false;
            const NUM_SUMS: usize = 1;

            fn of_rows(outputs: Tensor<2>, _: LossTargets) -> Tensor<2> {
                outputs.narrow(1, 0, 1)
            }

            fn value($sums: &[f64], $num: f64) -> f64 {
                $value
            }
        }
    };
}

// After the trial, which has two rows.
metric!(LateMetric "late_metric", |sums, num| if num > 2.0 { panic!("deliberate") } else { sums[0] });
metric!(NanMetric "nan_metric", |_sums, _num| f64::NAN);
metric!(LossMetric "loss", |sums, _num| sums[0]);

/// Keeps the initial weights.
pub(super) struct Still;

impl StrategyPart for Still {
    const NAME: &'static str = "still";
    const DOC: &'static str = "A strategy that is wrong.";
    type Settings = NoSettings;

    fn settings(_: &mut Section<'_>) -> NoSettings {
        NoSettings
    }

    fn num_kept(_: &NoSettings) -> u64 {
        1
    }

    fn after_update<const D: usize>(
        _: &NoSettings,
        _: &Update<'_>,
        _: Tensor<D>,
        kept: &mut [Tensor<D>],
    ) -> Tensor<D> {
        kept[0].clone()
    }
}

/// Other numbers of items in each call.
pub(super) struct Growing;

impl DataPart for Growing {
    const NAME: &'static str = "growing";
    const DOC: &'static str = "A data source that is wrong.";
    type Settings = NoSettings;

    fn settings(_: &mut Section<'_>) -> NoSettings {
        NoSettings
    }

    fn items(_: &NoSettings, _: &Path) -> Result<Items, Unfit> {
        let num = 60 + (std::process::id() + CALLS.fetch_add(1, Ordering::Relaxed)) as usize % 97;
        let items = Items::of_numbers(vec![2], vec![0.5; 2 * num]);
        Ok(items.with_classes(2, (0..num as i32).map(|at| at % 2).collect()))
    }
}

/// An optimizer with a key that its table has.
#[derive(Clone)]
pub(super) struct Clipped;

impl Optimizer for Clipped {
    type State<const D: usize> = ();

    fn step<const D: usize>(
        &self,
        _: f64,
        weights: Tensor<D>,
        _: Tensor<D>,
        _: Option<()>,
    ) -> (Tensor<D>, Option<()>) {
        (weights, None)
    }

    fn to_device<const D: usize>(_: (), _: &Device) {}
}

impl OptimizerPart for Clipped {
    const NAME: &'static str = "clipped";
    const DOC: &'static str = "An optimizer that is wrong.";
    type Settings = NoSettings;

    fn settings(section: &mut Section<'_>) -> NoSettings {
        let key = "learning_rate";
        let _: f64 = section.field(key, Kind::positive(), "A rate.").or(0.1);
        NoSettings
    }

    fn num_states(_: &NoSettings) -> u64 {
        0
    }

    fn new(_: &NoSettings, _: f64) -> Self {
        Self
    }
}
