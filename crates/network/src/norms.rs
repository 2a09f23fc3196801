//! Norms of gradients: clipping by the global norm, and the metrics.

use burn::optim::GradientsParams;

use crate::gradients;
use crate::network::Network;
use crate::paths::Paths;
use crate::scores::Measured;
use crate::sums::GRADIENT_NORM;
use runner_core::plan::RunPlan;
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::train::GradientNorms;

/// Measures and clips the gradients of each step, without waiting for the device.
pub struct NormLog {
    log: GradientNorms,
    max_norm: Option<f64>,
    paths: Option<Paths>,
    /// Whether the norm is watched for signs of divergence.
    is_watched: bool,
    arithmetic: Arithmetic,
}

impl NormLog {
    /// The settings of a plan.
    pub fn new(plan: &RunPlan) -> Self {
        let log = plan.train.log_gradient_norms;
        let clip = plan.optimizer.clip.as_ref();
        Self {
            log,
            max_norm: clip.and_then(|clip| clip.global_norm),
            paths: (log == GradientNorms::Parameters).then(|| Paths::new(plan)),
            is_watched: plan.strategy.hybrid().is_some(),
            arithmetic: plan.arithmetic,
        }
    }

    /// The gradients of a step for the optimizer. Norms are measured before clipping, and those that are metrics are
    /// added to the step's measurements.
    pub fn measure_and_clip(
        &self,
        network: &Network,
        gradients: GradientsParams,
        measured: Option<&mut Measured>,
    ) -> GradientsParams {
        if self.log == GradientNorms::None && self.max_norm.is_none() && !self.is_watched {
            return gradients;
        }
        let Some(norms) =
            gradients::norms(network, &gradients, self.paths.as_ref(), self.arithmetic)
        else {
            return gradients;
        };
        let gradients = match self.max_norm {
            Some(max_norm) => gradients::clip(network, gradients, norms.global.clone(), max_norm),
            None => gradients,
        };
        let Some(measured) = measured else {
            return gradients;
        };
        if self.is_watched {
            measured.watched = Some(norms.global.clone());
        }
        if self.log != GradientNorms::None {
            measured.norm(GRADIENT_NORM.into(), norms.global);
            for (path, norm) in norms.parameters {
                measured.norm(format!("{GRADIENT_NORM}/{path}"), norm);
            }
        }
        gradients
    }
}
