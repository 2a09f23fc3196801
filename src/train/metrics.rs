//! The measurements in Burn's learner: they are accumulated on the thread that it has for them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use burn::tensor::{ExecutionError, TensorReadError};
use burn::train::logger::{EvaluationProgressLogger, MetricLogger, TrainingProgressLogger};
use burn::train::metric::store::{EpochSummary, MetricsUpdate, Split};
use burn::train::metric::{
    Adaptor, Metric, MetricDefinition, MetricMetadata, MetricName, NumericEntry, SerializedEntry,
};
use burn::train::renderer::{
    EvaluationName, MetricState, MetricsRenderer, MetricsRendererEvaluation,
    MetricsRendererTraining,
};
use burn::train::{Interrupter, ItemLazy};

use runner_core::plan::RunPlan;
use runner_network::scores::{Measured, read};
use runner_network::sums::EpochSums;

/// The measurements of steps or batches, in order, on the device: passed on many at a time, and shared because Burn
/// clones them for each metric.
#[derive(Clone, Debug, Default)]
pub struct Outputs(Arc<Vec<Measured>>);

impl From<Vec<Measured>> for Outputs {
    fn from(all: Vec<Measured>) -> Self {
        Self(Arc::new(all))
    }
}

impl Outputs {
    /// The measurements.
    pub fn into_measured(self) -> Vec<Measured> {
        Arc::unwrap_or_clone(self.0)
    }
}

impl ItemLazy for Outputs {
    fn sync(self) -> Result<Self, ExecutionError> {
        // Values to be read are computed first, so that nothing waits for an idle queue.
        self.0.last().map_or(Ok(()), Measured::flush)?;
        Ok(self)
    }
}

impl Adaptor<Outputs> for Outputs {
    fn adapt(&self) -> Outputs {
        self.clone()
    }
}

/// A handle to the sums.
#[derive(Clone, Debug, Default)]
pub struct SharedSums(Arc<Mutex<EpochSums>>);

impl SharedSums {
    /// The sums; a thread that panicked while holding them ended the run anyway.
    pub fn lock(&self) -> MutexGuard<'_, EpochSums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Fills the sums: a metric for Burn's learner, which updates it on the thread that `flush` waits for. It stops the
/// training if the loss is NaN.
#[derive(Clone)]
pub struct Tap {
    sums: SharedSums,
    is_train: bool,
    /// The norm that gradients are clipped to.
    max_norm: Option<f64>,
    interrupter: Interrupter,
}

impl Tap {
    /// The metrics of the train and of the valid split.
    pub fn pair(sums: &SharedSums, plan: &RunPlan, interrupter: &Interrupter) -> [Self; 2] {
        let clip = plan.optimizer.clip.as_ref();
        [true, false].map(|is_train| Self {
            sums: sums.clone(),
            is_train,
            max_norm: clip.and_then(|clip| clip.global_norm),
            interrupter: interrupter.clone(),
        })
    }
}

impl Metric for Tap {
    type Input = Outputs;

    fn name(&self) -> MetricName {
        Arc::new("scores".to_owned())
    }

    fn update(
        &mut self,
        outputs: &Outputs,
        _: &MetricMetadata,
    ) -> Result<SerializedEntry, TensorReadError> {
        let read = read(outputs.0.to_vec())?;
        let mut sums = self.sums.lock();
        if self.is_train {
            for step in read.chunk_by(|piece, _| piece.goes_on) {
                sums.add_step(step, self.max_norm);
            }
        } else {
            for batch in read {
                sums.add_valid(batch)?;
            }
        }
        if sums.not_finite.is_some() {
            self.interrupter.stop(Some("a number is not finite"));
        }
        Ok(SerializedEntry::new(String::new(), String::new()))
    }

    fn compute(&mut self) -> Result<SerializedEntry, TensorReadError> {
        Ok(SerializedEntry::new(String::new(), String::new()))
    }

    fn clear(&mut self) {}
}

/// A renderer and logger that does nothing: by default Burn draws on the terminal and writes its own files.
pub struct Nothing;

impl MetricsRendererTraining for Nothing {
    fn update_train(&mut self, _: MetricState) {}
    fn update_valid(&mut self, _: MetricState) {}
}

impl MetricsRenderer for Nothing {
    fn manual_close(&mut self) {}
    fn register_metric(&mut self, _: MetricDefinition) {}
}

impl MetricsRendererEvaluation for Nothing {
    fn update_test(&mut self, _: EvaluationName, _: MetricState) {}
}

impl TrainingProgressLogger for Nothing {
    fn start(&mut self, _: usize, _: usize, _: Option<usize>, _: Option<&str>) {}
    fn update_epoch(&mut self, _: usize) {}
    fn start_split(&mut self, _: &str, _: usize) {}
    fn update_split(&mut self, _: usize) {}
    fn end_split(&mut self) {}
    fn end(&mut self) {}
    fn log_event_training(&mut self, _: String) {}
}

impl EvaluationProgressLogger for Nothing {
    fn start_global_progress(&mut self, _: usize) {}
    fn start_test(&mut self, _: &str, _: usize) {}
    fn update_test_progress(&mut self, _: usize) {}
    fn end_test(&mut self) {}
    fn end_global_progress(&mut self) {}
    fn log_event_evaluation(&mut self, _: String) {}
}

impl MetricLogger for Nothing {
    fn log(&mut self, _: MetricsUpdate, _: usize, _: &Split) {}

    fn read_numeric(&mut self, _: &str, _: usize, _: &Split) -> Result<Vec<NumericEntry>, String> {
        Ok(Vec::new())
    }

    fn log_metric_definition(&mut self, _: MetricDefinition) {}

    fn log_epoch_summary(&mut self, _: EpochSummary) {}
}
