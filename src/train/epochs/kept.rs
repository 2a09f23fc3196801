//! Checkpoints and the trace of a training.

use std::io;
use std::sync::PoisonError;

use burn::train::Learner;
use burn::train::checkpoint::CheckpointerError;

use super::{Components, Epochs};
use crate::train::shared::SharedNetwork;
use runner_core::event::{FailureClass, Outcome};
use runner_core::record::{Digests, TraceWriter};
use runner_network::digest::parameter_digests;
use runner_network::failure::weights_not_finite;
use runner_network::paths::Paths;
use runner_network::state::State;

impl Epochs {
    pub(super) fn save(
        &self,
        state: &State,
        parts: &mut Components,
        learner: &Learner<SharedNetwork>,
    ) {
        if self.watch.is_some() {
            return;
        }
        if let Some(checkpointer) = &mut parts.checkpointer {
            let step = state.step(&self.plan);
            let mut state = State {
                wall_secs: self.start.wall_secs + self.started.elapsed().as_secs_f64(),
                trace: None,
                machine: learner.model().hold(|held| held.machine().cloned()),
                ..state.clone()
            };
            self.trace(|trace| {
                state.trace = trace.sums(step);
                Ok(())
            });
            // Resumed here and not trained since: the weights on disk are these. They are not rewritten, so that a kill
            // cannot damage them.
            if step > 0 && step == self.start.step(&self.plan) {
                let restated = self.checkpoints.restate(step, state);
                let restated = restated.map_err(|e| CheckpointerError::Unknown(e.to_string()));
                parts.interrupter.fail_on_error(restated);
                return;
            }
            learner.model().settle();
            self.checkpoints.expect(step, state);
            checkpointer.checkpoint(learner, step, &parts.event_store);
            // Burn's threads read the tensors while they write: on a GPU, updates in place may come before that.
            if !self.plan.device.backend.is_host() {
                self.checkpoints.wait(step);
            }
        }
    }

    /// Adds the observed losses to the trace, before a checkpoint claims that they exist.
    pub(super) fn trace_losses(&self) {
        let (losses, norms) = {
            let mut sums = self.sums.lock();
            let losses = std::mem::take(&mut sums.losses);
            (losses, std::mem::take(&mut sums.norms))
        };
        self.trace(|trace| trace.add_steps(&losses, &norms));
    }

    /// The digests of the parameters for the trace, none for a training without one; a non-finite parameter is a
    /// failure, which is recorded.
    pub(super) fn digests(
        &self,
        step: usize,
        learner: &Learner<SharedNetwork>,
    ) -> Result<Digests, ()> {
        let mut digests = Digests {
            step,
            parameters: Vec::new(),
        };
        if self.trace.is_none() {
            return Ok(digests);
        }
        digests.parameters = learner
            .model()
            .hold(|held| parameter_digests(held, &Paths::new(&self.plan)))
            .map_err(|path| self.fail(weights_not_finite(&path, step)))?;
        Ok(digests)
    }

    /// Writes to the trace; a failing disk ends the run.
    pub(super) fn trace(&self, write: impl FnOnce(&mut TraceWriter) -> io::Result<()>) {
        let Some(trace) = &self.trace else { return };
        let mut trace = trace.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = write(&mut trace) {
            let message = format!("the trace cannot be written: {error}");
            self.fail(Outcome::failed(FailureClass::Disk, message));
        }
    }
}
