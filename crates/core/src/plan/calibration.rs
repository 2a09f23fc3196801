//! What a machine measured for similar runs, and what follows for the memory of a run.
//!
//! A probe trains a few steps with two batch sizes. The memory of a run is either constant (program, data, weights,
//! states) or grows with the batch (activations, items, workspace), so that a line through the two peaks predicts other
//! batches. Items that are kept on the device are subtracted first and added afterwards: whether they are kept depends
//! on the limit, which the rest does not.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::RunPlan;
use crate::data::sha256_hex;
use crate::spec::section::Choice;

/// The version of the files, and of the probes.
pub const CALIBRATION_FORMAT: u32 = 2;

/// How far beyond the probed batches the line is used.
const REACH: usize = 4;

/// The measurements of runs with one key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The version of this format.
    pub format: u32,
    /// Its key, from [`RunPlan::memory_key`].
    pub key: String,
    /// The peaks, by items per micro-batch.
    pub probes: [Probe; 2],
}

/// The peak of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Items per micro-batch.
    pub items: usize,
    /// Peak memory.
    pub bytes: u64,
    /// The part of it for items kept on the device.
    pub kept: u64,
    /// The counted memory without these.
    pub counted: u64,
}

/// The basis of a forecast.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The plan only.
    Counted,
    /// The plan, and the error of the count for the same run with another batch size or micro-batch size on this
    /// machine.
    Corrected,
    /// The measured peaks of such runs on this machine.
    Measured,
}

impl Basis {
    /// As one word.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Counted => "counted",
            Basis::Corrected => "corrected",
            Basis::Measured => "measured",
        }
    }
}

/// The possible error of a forecast based on measurements of such runs, or of runs that differ in their batch.
const ERROR_MEASURED: f64 = 0.15;
const ERROR_CORRECTED: f64 = 0.3;

/// The peak memory of a run, as well as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Bytes.
    pub bytes: u64,
    /// Its basis.
    pub basis: Basis,
}

impl Expected {
    /// For a run without measurements. `correction` is that of a similar run, if measured.
    pub fn unmeasured(run: &RunPlan, correction: Option<f64>) -> Self {
        let forecast = &run.forecast;
        match correction {
            None => Self {
                bytes: forecast.total(),
                basis: Basis::Counted,
            },
            Some(correction) => Self {
                bytes: ((forecast.without_kept() as f64 * correction) as u64)
                    .saturating_add(forecast.kept),
                basis: Basis::Corrected,
            },
        }
    }

    /// Whether it was measured for such runs on this machine.
    pub fn is_measured(&self) -> bool {
        self.basis == Basis::Measured
    }

    /// The expected memory; none if nothing was measured.
    pub fn at_least(&self) -> Option<u64> {
        let error = match self.basis {
            Basis::Counted => return None,
            Basis::Corrected => ERROR_CORRECTED,
            Basis::Measured => ERROR_MEASURED,
        };
        Some((self.bytes as f64 * (1.0 - error)) as u64)
    }
}

impl Calibration {
    /// From two probes of different batches, in any order.
    pub fn new(key: String, mut probes: [Probe; 2]) -> Self {
        probes.sort_by_key(|probe| probe.items);
        Self {
            format: CALIBRATION_FORMAT,
            key,
            probes,
        }
    }

    /// Whether it is consistent and can be used.
    pub fn is_sound(&self, key: &str) -> bool {
        let [small, large] = self.probes;
        self.format == CALIBRATION_FORMAT
            && self.key == key
            && 0 < small.items
            && small.items < large.items
            && small.bytes > small.kept
            && large.bytes > large.kept
    }

    /// Whether a batch size is close enough to the probed ones.
    pub fn covers(&self, items: usize) -> bool {
        let [small, large] = self.probes;
        items.saturating_mul(REACH) >= small.items && items <= large.items.saturating_mul(REACH)
    }

    /// The bytes that do not depend on the batch, and those per item; without items kept on the device. An item needs
    /// at least the counted memory: noise may give the smaller batch the larger peak. The line then lies above both
    /// probes.
    pub fn line(&self) -> (f64, f64) {
        let [small, large] = self.probes;
        let items = (large.items - small.items) as f64;
        let slope = |bytes: fn(&Probe) -> f64| (bytes(&large) - bytes(&small)) / items;
        let measured = |probe: &Probe| probe.bytes.saturating_sub(probe.kept) as f64;
        let slope = slope(measured).max(slope(|probe| probe.counted as f64));
        let fixed = |probe: &Probe| measured(probe) - slope * probe.items as f64;
        (fixed(&small).max(fixed(&large)), slope)
    }

    /// The expected peak of a run with this key: never less than counted.
    pub fn expected(&self, run: &RunPlan) -> Expected {
        let (fixed, per_item) = self.line();
        let line = fixed + per_item * run.train.micro_batch_size as f64;
        let bytes = (line.max(0.0) as u64).saturating_add(run.forecast.kept);
        Expected {
            bytes: bytes.max(run.forecast.total()),
            basis: Basis::Measured,
        }
    }

    /// The ratio of actual to counted memory for a run with this key.
    pub fn correction(&self, run: &RunPlan) -> f64 {
        let bytes = self.expected(run).bytes.saturating_sub(run.forecast.kept);
        bytes as f64 / run.forecast.without_kept().max(1) as f64
    }
}

impl RunPlan {
    /// A digest of everything that determines the memory use except the batch size. `place` identifies the machine and
    /// the build.
    pub fn memory_key(&self, place: &Json) -> String {
        let train = &self.train;
        let frozen = self.optimizer.groups.iter().filter(|group| group.freeze);
        let frozen: Vec<_> = frozen.map(|group| &group.parameters).collect();
        let on = json!({
            "format": CALIBRATION_FORMAT,
            "place": place,
            "device": self.device,
            "precision": self.precision.name(),
            "network": self.network.work(),
            "method": self.optimizer.method,
            "clip": self.optimizer.clip,
            "frozen": frozen,
            "task": self.task,
            "loss": self.loss,
            "losses": self.losses,
            "average": train.ema.is_some() as u64 + self.strategy.num_copies(),
            "pieces": train.micro_batch_size < train.batch_size,
            "gradient_checkpointing": train.gradient_checkpointing,
            "gradient_norms": train.log_gradient_norms,
            "teacher": self.teacher.as_ref().map(|teacher| teacher.network.work()),
            "data": [self.data.held_bytes(), self.data.num_train as u64],
            "augment": self.data.augment,
        });
        sha256_hex(on.to_string().as_bytes())[..32].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(items: usize, bytes: u64, counted: u64) -> Probe {
        Probe {
            items,
            bytes,
            kept: 0,
            counted,
        }
    }

    fn of(probes: [Probe; 2]) -> Calibration {
        Calibration::new("key".into(), probes)
    }

    #[test]
    fn a_line_goes_through_both_probes() {
        let calibration = of([probe(64, 1640, 500), probe(32, 1320, 300)]);
        assert_eq!(calibration.line(), (1000.0, 10.0));
        assert!(calibration.covers(8) && calibration.covers(256));
        assert!(!calibration.covers(7) && !calibration.covers(257));
    }

    #[test]
    fn noise_does_not_make_items_smaller_than_counted() {
        let noisy = of([probe(8, 1000, 300), probe(16, 990, 380)]);
        // Above both: 1000 at 8 items, 1080 at 16.
        assert_eq!(noisy.line(), (920.0, 10.0));
    }

    #[test]
    fn kept_items_are_in_no_line() {
        let mut probes = [probe(32, 1320, 300), probe(64, 2640, 500)];
        probes[1].kept = 1000;
        assert_eq!(of(probes).line(), (1000.0, 10.0));
    }

    #[test]
    fn what_is_not_sound_is_not_believed() {
        let good = of([probe(32, 1320, 300), probe(64, 1640, 500)]);
        assert!(good.is_sound("key"));
        assert!(!good.is_sound("other"));
        assert!(!of([probe(32, 1, 1), probe(32, 2, 1)]).is_sound("key"));
        assert!(!of([probe(0, 1, 1), probe(32, 2, 1)]).is_sound("key"));
        assert!(!of([probe(16, 0, 1), probe(32, 2, 1)]).is_sound("key"));
        let other = Calibration { format: 0, ..good };
        assert!(!other.is_sound("key"));
    }
}
