//! The plan's learning rates as one of Burn's schedules.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use burn::module::ParamGroup;
use burn::optim::LearningRate;
use burn::optim::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::optim::lr_scheduler::{LrScheduler, LrSchedulerRecord};

use crate::optimizer::treatments;
use crate::paths::Parameter;
use runner_core::event::{Adjustment, learning_rate_factor};
use runner_core::plan::RunPlan;

/// How often a metric that stopped improving has lowered the learning rate: set between epochs.
pub type Reductions = Arc<AtomicUsize>;

/// The plan's learning rates in the order in which Burn requests them.
#[derive(Clone)]
pub struct Schedule {
    plan: Arc<RunPlan>,
    adjustments: Arc<[Adjustment]>,
    reductions: Reductions,
    factor: f64,
    step: usize,
}

/// The adjusted schedule of a plan: the plan's own, and one for each group with a factor.
pub fn schedule(
    plan: &RunPlan,
    parameters: &[Parameter],
    adjustments: &[Adjustment],
    reductions: &Reductions,
) -> ModuleLrScheduler {
    let base = Schedule {
        plan: Arc::new(plan.clone()),
        adjustments: adjustments.into(),
        reductions: reductions.clone(),
        factor: 1.0,
        step: 0,
    };
    let mut schedule = ModuleLrScheduler::new(base.clone());
    for (treatment, paths) in treatments(plan, parameters) {
        if treatment.factor != 1.0 {
            let own = Schedule {
                factor: treatment.factor,
                ..base.clone()
            };
            schedule = schedule.with_group(ParamGroup::from_paths(paths), own);
        }
    }
    schedule
}

impl LrScheduler for Schedule {
    fn step(&mut self) -> LearningRate {
        let step = self.step;
        self.step += 1;
        let adjusted = learning_rate_factor(&self.adjustments, step);
        let num_reductions = self.reductions.load(Ordering::Relaxed);
        let reduced = self.plan.scheduler.curve.reduced(num_reductions);
        self.factor * adjusted * reduced * self.plan.learning_rate(step)
    }

    fn to_record(&self) -> LrSchedulerRecord {
        LrSchedulerRecord::new().with_scalar("step", self.step as u64)
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        self.step = record.scalar::<u64>("step").unwrap_or(0) as usize;
    }
}

#[cfg(test)]
mod tests {
    use burn::optim::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
    use burn::optim::lr_scheduler::exponential::ExponentialLrSchedulerConfig;
    use burn::optim::lr_scheduler::linear::LinearLrSchedulerConfig;
    use burn::optim::lr_scheduler::noam::NoamLrSchedulerConfig;
    use burn::optim::lr_scheduler::step::StepLrSchedulerConfig;

    use super::*;
    use crate::testing::{IRIS, planned};

    /// Rates of a schedule of 15 steps, of which each epoch has 5.
    fn assert_same(scheduler: &str, burn: Result<ModuleLrScheduler, String>, scale: f64) {
        let plan = planned(&format!("{IRIS}scheduler = {{ {scheduler} }}\n"));
        let mut ours = schedule(&plan, &[], &[], &Reductions::default());
        let mut burn = burn.expect("Burn accepts it");
        for step in 0..plan.num_steps() {
            let (ours, burn) = (ours.step().base(), scale * burn.step().base());
            assert!(
                (ours - burn).abs() < 1e-12,
                "{scheduler} at {step}: {ours} and {burn}"
            );
        }
    }

    #[test]
    fn schedules_are_those_of_burn_where_it_has_them() {
        let rate = 1e-2;
        let linear = LinearLrSchedulerConfig::new(1.0, 0.1, 15).init();
        assert_same("type = \"linear\", final_fraction = 0.1", linear, rate);
        let cosine = CosineAnnealingLrSchedulerConfig::new(1.0, 15)
            .with_min_lr(0.1)
            .init();
        assert_same("type = \"cosine\", final_fraction = 0.1", cosine, rate);
        let exponential = ExponentialLrSchedulerConfig::new(1.0, 0.7).init();
        assert_same("type = \"exponential\", gamma = 0.7", exponential, rate);
        let step = StepLrSchedulerConfig::new(1.0, 4).with_gamma(0.5).init();
        assert_same("type = \"step\", step_size = 4, gamma = 0.5", step, rate);
        // Vaswani's schedule as a multiple of its highest rate, which it reaches after the warm-up.
        let noam = NoamLrSchedulerConfig::new(6f64.sqrt())
            .with_warmup_steps(6)
            .with_model_size(1)
            .init();
        assert_same("type = \"noam\", warmup_steps = 6", noam, rate);
    }
}
