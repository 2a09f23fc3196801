//! Losses, optimizers and schedules that break promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use burn::optim::Optimizer;
use burn::tensor::{Device, Tensor};
use burn_runner::Runner;
use burn_runner::parts::{
    LossPart, LossTargets, OptimizerPart, Place, SchedulePart, Section, TaskKind,
};

use crate::NoSettings;
use crate::own::strategy;

static CALLS: AtomicU32 = AtomicU32::new(0);

macro_rules! loss {
    ($loss:ident $name:literal, |$x:ident| $losses:expr) => {
        struct $loss;

        impl LossPart for $loss {
            const NAME: &'static str = $name;
            const DOC: &'static str = "A loss that breaks a promise.";
            const TASKS: &'static [TaskKind] = &[TaskKind::Classification];
            type Settings = NoSettings;

            fn settings(_: &mut Section<'_>) -> NoSettings {
                NoSettings
            }

            fn losses(_: &NoSettings, $x: Tensor<2>, _: LossTargets) -> Tensor<2> {
                $losses
            }
        }
    };
}

loss!(Detached "detached", |x| x.detach().narrow(1, 0, 1));
loss!(Noisy "noisy", |x| {
    x.narrow(1, 0, 1) * CALLS.fetch_add(1, Ordering::Relaxed) as f32
});
loss!(Wide "wide", |x| x);
loss!(Loud "loud", |x| if x.dims()[0] > 0 { panic!("deliberate") } else { x });
loss!(TakenLoss "mse", |x| x);
loss!(NoWord "My-Loss", |x| x);

macro_rules! optimizer {
    ($optimizer:ident $name:literal $num_states:literal, |$own:ident, $weights:ident| $next:expr) => {
        #[derive(Clone, Default)]
        struct $optimizer(#[allow(dead_code, reason = "only one keeps something")] Arc<AtomicU32>);

        impl Optimizer for $optimizer {
            type State<const D: usize> = ();

            fn step<const D: usize>(
                &self,
                _: f64,
                $weights: Tensor<D>,
                _: Tensor<D>,
                _: Option<()>,
            ) -> (Tensor<D>, Option<()>) {
                let $own = self;
                ($next, None)
            }

            fn to_device<const D: usize>(_: (), _: &Device) {}
        }

        impl OptimizerPart for $optimizer {
            const NAME: &'static str = $name;
            const DOC: &'static str = "An optimizer that breaks a promise.";
            type Settings = NoSettings;

            fn settings(_: &mut Section<'_>) -> NoSettings {
                NoSettings
            }

            fn num_states(_: &NoSettings) -> u64 {
                $num_states
            }

            fn new(_: &NoSettings, _: f64) -> Self {
                Self::default()
            }
        }
    };
}

optimizer!(Hidden "hidden" 0, |own, weights| {
    weights * own.0.fetch_add(1, Ordering::Relaxed) as f32
});
optimizer!(Heavy "heavy" 3, |_own, weights| weights);
optimizer!(Bursts "bursts" 0, |_own, weights| {
    if weights.dims()[0] > 0 { panic!("deliberate") } else { weights }
});
optimizer!(TakenOptimizer "adam" 0, |_own, weights| weights);

macro_rules! schedule {
    ($schedule:ident $name:literal, |$at:ident| $factor:expr) => {
        struct $schedule;

        impl SchedulePart for $schedule {
            const NAME: &'static str = $name;
            const DOC: &'static str = "A schedule that breaks a promise.";
            type Settings = NoSettings;

            fn settings(_: &mut Section<'_>) -> NoSettings {
                NoSettings
            }

            fn factor(_: &NoSettings, $at: Place) -> f64 {
                $factor
            }
        }
    };
}

schedule!(Negative "negative", |at| 1.0 - at.step as f64);
schedule!(Stumbles "stumbles", |at| if at.step < 3 { 1.0 } else { panic!("deliberate") });
schedule!(TakenSchedule "cosine", |_at| 1.0);

/// Adds all that can be installed.
pub fn training(program: Runner) -> Runner {
    let program = program.loss::<Detached>().loss::<Noisy>();
    let program = program.loss::<Wide>().loss::<Loud>();
    let program = program.optimizer::<Hidden>().optimizer::<Heavy>();
    let program = program.optimizer::<Bursts>();
    program.schedule::<Negative>().schedule::<Stumbles>()
}

/// A program with a part that cannot be installed.
pub fn taken(program: &str) -> Option<Runner> {
    let runner = Runner::new();
    Some(match program {
        "taken_loss" => runner.loss::<TakenLoss>(),
        "no_word" => runner.loss::<NoWord>(),
        "taken_optimizer" => runner.optimizer::<TakenOptimizer>(),
        "taken_schedule" => runner.schedule::<TakenSchedule>(),
        "taken_strategy" => strategy::taken(),
        _ => return None,
    })
}
