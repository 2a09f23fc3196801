//! The origin of an infinity or NaN.
//!
//! A loss is only read after several steps, and by then all weights are NaN. Since updates can be repeated exactly, the
//! run returns to its last checkpoint, repeats them, and traces the failing step: weights before it, the output of each
//! layer, and gradients.

use std::sync::{Arc, Mutex, PoisonError};

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;
use burn::train::Interrupter;

use runner_network::batch::Batch;
use runner_network::finite::is_finite;
use runner_network::network::Network;
use runner_network::paths::Paths;
use runner_network::trained::Trained;

/// Watches a repeated training.
#[derive(Clone)]
pub struct Watch {
    /// The update with the NaN loss, from 1 over the whole training.
    pub step: usize,
    /// Names of parameters.
    pub paths: Paths,
    /// Stops the training when something was found.
    pub interrupter: Interrupter,
    /// The finding, as a phrase that follows "first".
    pub found: Arc<Mutex<Option<String>>>,
}

impl Watch {
    /// Checks the weights before the update and the outputs of its layers. Consumes random numbers where layers do.
    pub fn look_at_outputs(&self, step: usize, held: &Trained, batch: &Batch) {
        if step != self.step {
            return;
        }
        match self.not_finite(held.current(), None) {
            Some(path) => self.find(format!("in `{path}`, after step {}", step - 1)),
            None => {
                if let Some(place) = held.first_not_finite(batch) {
                    self.find(format!("in {place}"));
                }
            }
        }
    }

    /// Checks the gradients of the update and of the one before it.
    pub fn look_at_gradients(&self, step: usize, network: &Network, gradients: &GradientsParams) {
        if step + 1 < self.step {
            return;
        }
        if let Some(path) = self.not_finite(network, Some(gradients)) {
            self.find(format!("in the gradient of `{path}` in step {step}"));
        }
        if step == self.step {
            self.interrupter.stop(Some("the step was traced"));
        }
    }

    /// The finding.
    pub fn found(&self) -> Option<String> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.take()
    }

    /// The parameter whose value, or gradient, is not finite: of weights the first, of gradients the last, since they
    /// propagate backward.
    fn not_finite(&self, network: &Network, gradients: Option<&GradientsParams>) -> Option<String> {
        let mut search = Search {
            gradients,
            num_visited: 0,
            found: None,
        };
        network.visit(&mut search);
        // In the order in which they were visited.
        let parameters = self.paths.parameters(network).into_iter();
        let found = search.found?;
        parameters.map(|parameter| parameter.path).nth(found)
    }

    fn find(&self, what: String) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.get_or_insert(what);
        self.interrupter
            .stop(Some("the origin of the non-finite value was found"));
    }
}

/// Searches weights or gradients for one that is not finite.
struct Search<'a> {
    gradients: Option<&'a GradientsParams>,
    num_visited: usize,
    /// The index of the parameter.
    found: Option<usize>,
}

impl ModuleVisitor for Search<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let tensor = match self.gradients {
            None if self.found.is_some() => None,
            None => Some(param.val()),
            Some(gradients) => gradients.get::<D>(param.id),
        };
        if tensor.is_some_and(|tensor| !is_finite(tensor)) {
            self.found = Some(self.num_visited);
        }
        self.num_visited += 1;
    }
}
