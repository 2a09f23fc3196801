//! The probe: items of the train split that decide whether a prediction is kept.

use burn::tensor::{Device, TensorReadError};

use crate::batch::{Batch, TargetUse};
use crate::network::Network;
use runner_core::data::Split;
use runner_core::data::order::{Purpose, permutation};
use runner_core::plan::RunPlan;

/// The items of the probe, which are put on the device when they are needed.
#[derive(Debug)]
pub struct Probe {
    places: Vec<u32>,
    /// The most items at a time.
    size: usize,
    device: Device,
}

impl Probe {
    /// The probe of a plan, on its device without autodiff; none of a plan that predicts nothing.
    pub fn of(plan: &RunPlan, device: &Device) -> Option<Self> {
        let spec = plan.strategy.hybrid()?;
        let mut places = permutation(plan.data.num_train, plan.seed, Purpose::Probe, 0);
        places.truncate(spec.probe_batches.saturating_mul(plan.train.batch_size));
        Some(Self {
            places,
            size: plan
                .train
                .micro_batch_size
                .min(plan.train.batch_size)
                .max(1),
            device: device.clone(),
        })
    }

    /// The mean loss of a network without autodiff.
    ///
    /// # Errors
    /// The device's, if its numbers cannot be read.
    pub fn loss(
        &self,
        plan: &RunPlan,
        split: &Split,
        network: &Network,
    ) -> Result<f64, TensorReadError> {
        let use_of = TargetUse::of(plan);
        let split = split.clone().in_precision(plan.precision);
        let mut sum = 0.0;
        for places in self.places.chunks(self.size) {
            let items = split.serve(places, None);
            let batch = Batch::new(items, &plan.data.input, use_of, &self.device);
            let losses = network.output(batch).losses.try_into_data()?;
            sum += losses.iter::<f64>().sum::<f64>() / losses.num_elements() as f64
                * places.len() as f64;
        }
        Ok(sum / self.places.len() as f64)
    }
}
