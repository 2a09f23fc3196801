//! A program of one's own: every verb of `runner`, with further parts.

use std::process::ExitCode;

use crate::cli;
use runner_core::diagnostic::{Diagnostic, Reason};
use runner_core::spec::own::{self, Parts, SchedulePart};
use runner_network::own::{self as network, LayerPart, LossPart, MetricPart, OptimizerPart};

/// A program with the verbs of `runner` and parts of its own.
///
/// ```no_run
/// use burn_runner::Runner;
///
/// fn main() -> std::process::ExitCode {
///     Runner::new().main()
/// }
/// ```
#[derive(Debug, Default)]
pub struct Runner {
    parts: Parts,
}

impl Runner {
    /// A program with the parts of `runner`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a layer type.
    #[must_use]
    pub fn layer<L: LayerPart>(mut self) -> Self {
        self.parts.layers.push(network::layer::<L>());
        self
    }

    /// Adds a loss.
    #[must_use]
    pub fn loss<L: LossPart>(mut self) -> Self {
        self.parts.losses.push(network::loss::<L>());
        self
    }

    /// Adds an optimizer.
    #[must_use]
    pub fn optimizer<O: OptimizerPart>(mut self) -> Self {
        self.parts.optimizers.push(network::optimizer::<O>());
        self
    }

    /// Adds a learning rate schedule.
    #[must_use]
    pub fn schedule<S: SchedulePart>(mut self) -> Self {
        self.parts.schedules.push(own::schedule::<S>());
        self
    }

    /// Adds a metric.
    #[must_use]
    pub fn metric<M: MetricPart>(mut self) -> Self {
        self.parts.metrics.push(network::metric::<M>());
        self
    }

    /// Makes the parts known to this process, for a program that uses [`ops`](crate::ops) instead of the command line.
    /// Must be called once, before anything else of this library.
    ///
    /// # Errors
    /// If a name is not valid or taken, or parts were installed before.
    pub fn install(self) -> Result<(), Reason> {
        own::install(self.parts)
    }

    /// Runs the command line. Workers are processes of the same program.
    pub fn main(self) -> ExitCode {
        match self.install() {
            Ok(()) => cli::main(),
            Err(reason) => cli::refuse(Diagnostic::error("own-part", reason)),
        }
    }
}
