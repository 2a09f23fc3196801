//! The predicted steps of a training, and the decisions after real ones.

use burn::tensor::TensorReadError;
use burn::train::Learner;

use super::Epochs;
use crate::train::shared::SharedNetwork;
use runner_core::event::{FailureClass, Outcome};
use runner_network::batch::Batch;
use runner_network::network::Network;
use runner_network::scores::{Measured, step_loss};

impl Epochs {
    /// A step whose update is predicted: `Some(None)` if its loss is too high, so that it has to be repeated as a real
    /// one; `None` if the device failed.
    pub(super) fn predicted_step(
        &self,
        learner: &Learner<SharedNetwork>,
        pieces: &[Batch],
    ) -> Option<Option<Vec<Measured>>> {
        let model = learner.model();
        let pieces = pieces.iter().cloned();
        let measured = model.hold(|held| held.forward_pieces(pieces, &self.scores));
        let (loss, _) = self.readable(step_loss(&measured))?;
        let is_over = model.change(|held| held.predict(loss, &|network| self.probed(network)));
        let is_over = self.readable(is_over)?;
        Some(is_over.then_some(measured))
    }

    /// Ends a real step with these measurements: it may be the last one before a prediction.
    pub(super) fn observe(
        &self,
        learner: &Learner<SharedNetwork>,
        measured: Vec<Measured>,
    ) -> Option<Vec<Measured>> {
        if self.probe.is_none() {
            return Some(measured);
        }
        let seen = self.readable(step_loss(&measured))?;
        let after = learner
            .model()
            .change(|held| held.after_update(seen, &|network| self.probed(network)));
        self.readable(after)?;
        Some(measured)
    }

    /// The loss of a network on the probe.
    fn probed(&self, network: &Network) -> Result<f64, TensorReadError> {
        let Some(probe) = &self.probe else {
            return Ok(f64::NAN);
        };
        probe.loss(&self.plan, self.items.split(), network)
    }

    /// A value of the device; if it cannot be read, the training fails.
    fn readable<T>(&self, value: Result<T, TensorReadError>) -> Option<T> {
        let lost = |error: TensorReadError| {
            self.fail(Outcome::failed(FailureClass::DeviceLost, error.to_string()));
        };
        value.map_err(lost).ok()
    }
}
