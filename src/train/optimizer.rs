//! The planned optimizer and learning-rate schedule as Burn's.

use burn::optim::decay::WeightDecayConfig;
use burn::optim::lr_scheduler::cosine::CosineAnnealingLrSchedulerConfig;
use burn::optim::lr_scheduler::linear::LinearLrSchedulerConfig;
use burn::optim::lr_scheduler::module_lr_scheduler::ModuleLrScheduler;
use burn::optim::lr_scheduler::{LrScheduler, LrSchedulerRecord};
use burn::optim::momentum::MomentumConfig;
use burn::optim::{AdamConfig, AdamWConfig, LearningRate, ModuleOptimizer, SgdConfig};

use crate::plan::RunPlan;
use crate::spec::optimizer::{Decay, OptimizerSpec};

/// The optimizer of a plan.
pub fn optimizer(spec: &OptimizerSpec) -> ModuleOptimizer {
    let decay = |penalty: f64| (penalty > 0.0).then(|| WeightDecayConfig::new(penalty as f32));
    match spec {
        OptimizerSpec::Sgd {
            momentum,
            nesterov,
            weight_decay,
            ..
        } => {
            // Burn dampens the momentum by 0.1 unless told otherwise; the common definition does not.
            let momentum = (*momentum > 0.0).then(|| {
                MomentumConfig::new()
                    .with_momentum(*momentum)
                    .with_dampening(0.0)
                    .with_nesterov(*nesterov)
            });
            SgdConfig::new()
                .with_momentum(momentum)
                .with_weight_decay(decay(*weight_decay))
                .init()
        }
        OptimizerSpec::Adam(adam) => AdamConfig::new()
            .with_beta_1(adam.beta_1 as f32)
            .with_beta_2(adam.beta_2 as f32)
            .with_epsilon(adam.epsilon as f32)
            .with_weight_decay(decay(adam.weight_decay))
            .init(),
        OptimizerSpec::Adamw(adam) => AdamWConfig::new()
            .with_beta_1(adam.beta_1 as f32)
            .with_beta_2(adam.beta_2 as f32)
            .with_epsilon(adam.epsilon as f32)
            .with_weight_decay(adam.weight_decay as f32)
            .init(),
    }
}

/// The learning rate of each step: a linear rise over the warm-up, then Burn's schedule. Burn's
/// schedules refuse rates above 1, so it is run from 1 and multiplied.
#[derive(Clone)]
pub struct Schedule {
    learning_rate: f64,
    warmup_steps: usize,
    step: usize,
    decay: Option<ModuleLrScheduler>,
}

impl Schedule {
    /// The schedule of a plan, or what Burn has against it.
    pub fn new(plan: &RunPlan) -> Result<Self, String> {
        let spec = &plan.scheduler;
        let decay_steps = (plan.num_steps() - spec.warmup_steps).max(1);
        let decay = match spec.decay {
            Decay::Constant => None,
            Decay::Linear { final_fraction } => {
                Some(LinearLrSchedulerConfig::new(1.0, final_fraction, decay_steps).init()?)
            }
            Decay::Cosine { final_fraction } => Some(
                CosineAnnealingLrSchedulerConfig::new(1.0, decay_steps)
                    .with_min_lr(final_fraction)
                    .init()?,
            ),
        };
        Ok(Self {
            learning_rate: plan.optimizer.learning_rate(),
            warmup_steps: spec.warmup_steps,
            step: 0,
            decay,
        })
    }
}

impl LrScheduler for Schedule {
    fn step(&mut self) -> LearningRate {
        self.step += 1;
        if self.step <= self.warmup_steps {
            return self.learning_rate * self.step as f64 / self.warmup_steps as f64;
        }
        match &mut self.decay {
            None => self.learning_rate,
            Some(decay) => self.learning_rate * decay.step().base(),
        }
    }

    fn to_record(&self) -> LrSchedulerRecord {
        let record = LrSchedulerRecord::new().with_scalar("step", self.step as u64);
        match &self.decay {
            None => record,
            Some(decay) => record.with_record("decay", decay.to_record()),
        }
    }

    fn load_record(&mut self, record: LrSchedulerRecord) {
        self.step = record.scalar::<u64>("step").unwrap_or(0) as usize;
        self.decay = self
            .decay
            .take()
            .map(|decay| decay.load_record(record.record("decay")));
    }
}
