//! Norms of gradients: clipping by the global one, and the metrics that are made of them.

use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use burn::train::Interrupter;

use super::gradients::{self, Norms};
use super::metrics::{NotFinite, SharedSums};
use super::network::Network;
use super::paths::Paths;
use crate::plan::RunPlan;
use crate::spec::train::GradientNorms;

/// Measures and clips the gradients of each step, and keeps what is to be a metric on the device until
/// it is read.
pub struct NormLog {
    log: GradientNorms,
    max_norm: Option<f64>,
    paths: Option<Paths>,
    staged: Vec<Norms>,
}

impl NormLog {
    /// What a plan asks for.
    pub fn new(plan: &RunPlan) -> Self {
        let log = plan.train.log_gradient_norms;
        let clip = plan.optimizer.clip.as_ref();
        Self {
            log,
            max_norm: clip.and_then(|clip| clip.global_norm),
            paths: (log == GradientNorms::Parameters).then(|| Paths::new(plan)),
            staged: Vec::new(),
        }
    }

    /// The gradients of a step as the optimizer is to have them. Norms are taken before they are
    /// clipped.
    pub fn measure_and_clip(
        &mut self,
        network: &Network,
        gradients: GradientsParams,
    ) -> GradientsParams {
        if self.log == GradientNorms::None && self.max_norm.is_none() {
            return gradients;
        }
        let Some(norms) = gradients::norms(network, &gradients, self.paths.as_ref()) else {
            return gradients;
        };
        let gradients = match self.max_norm {
            Some(max_norm) => gradients::clip(network, gradients, norms.global.clone(), max_norm),
            None => gradients,
        };
        if self.log != GradientNorms::None {
            self.staged.push(norms);
        }
        gradients
    }

    /// Adds the norms of the steps since the last time to the sums of the epoch, in one read; `step` is the
    /// last of them in the epoch, from 1. A device that they cannot be read from is an error.
    pub fn read(
        &mut self,
        step: usize,
        sums: &SharedSums,
        interrupter: &Interrupter,
    ) -> Result<(), String> {
        if self.staged.is_empty() {
            return Ok(());
        }
        let (mut names, mut values) = (Vec::new(), Vec::new());
        let first = step + 1 - self.staged.len();
        for (at, Norms { global, parameters }) in self.staged.drain(..).enumerate() {
            names.push((first + at, "gradient_norm".to_owned()));
            values.push(global);
            for (path, norm) in parameters {
                names.push((first + at, format!("gradient_norm/{path}")));
                values.push(norm);
            }
        }
        let data = Tensor::cat(values, 0).try_into_data();
        let data = data.map_err(|error| format!("{error:?}"))?;
        let mut sums = sums.lock();
        for ((step, name), value) in names.iter().zip(data.iter::<f64>()) {
            if !value.is_finite() {
                sums.not_finite.get_or_insert(NotFinite {
                    what: "norm of the gradients",
                    step: Some(*step),
                });
                interrupter.stop(Some("a gradient is not finite"));
                break;
            }
            sums.train.add(name, value, 1);
            if let (Some(max_norm), "gradient_norm") = (self.max_norm, name.as_str()) {
                let is_clipped = value > max_norm;
                sums.train
                    .add("clipped_fraction", is_clipped as u8 as f64, 1);
            }
        }
        Ok(())
    }
}
