//! A program of one's own: every verb of `runner`, with further parts.

use std::process::ExitCode;

use crate::{cli, ops};
use runner_core::data::own::{self as data, DataPart};
use runner_core::diagnostic::{Diagnostic, Reason};
use runner_core::event::Event;
use runner_core::plan::RunPlan;
use runner_core::spec::own::{self, Parts, SchedulePart};
use runner_network::own::{
    self as network, LayerPart, LossPart, MetricPart, OptimizerPart, StrategyPart,
};

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

    /// Adds a strategy: what happens to the weights after each update.
    #[must_use]
    pub fn strategy<S: StrategyPart>(mut self) -> Self {
        self.parts.strategies.push(network::strategy::<S>());
        self
    }

    /// Adds a metric.
    #[must_use]
    pub fn metric<M: MetricPart>(mut self) -> Self {
        self.parts.metrics.push(network::metric::<M>());
        self
    }

    /// Adds a data source.
    #[must_use]
    pub fn data<D: DataPart>(mut self) -> Self {
        self.parts.data.push(data::data::<D>());
        self
    }

    /// Calls a function at each event of a training, after it was written to the run's record, in the process of
    /// `runner run`. The training waits for it.
    ///
    /// ```no_run
    /// use burn_runner::{Runner, event::Event};
    ///
    /// let runner = Runner::new().on_event(|run, event| {
    ///     if let Event::RunFinished { outcome, .. } = event {
    ///         eprintln!("{}: {outcome:?}", run.id);
    ///     }
    /// });
    /// ```
    #[must_use]
    pub fn on_event(mut self, hook: impl Fn(&RunPlan, &Event) + Send + Sync + 'static) -> Self {
        // For as long as the program runs.
        self.parts.on_event = Some(Box::leak(Box::new(ops::Hook(Box::new(hook)))));
        self
    }

    /// Makes the parts known to this process, for a program that uses [`ops`] instead of the command line.
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
