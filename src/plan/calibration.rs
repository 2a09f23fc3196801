//! What a machine measured of runs like one, and what follows for their memory.
//!
//! A probe trains a few steps with two batch sizes. Everything that a run holds is either there whatever the
//! batch is (program, data, weights, states) or grows with it (activations, items, workspace), so
//! that a line through the two peaks foretells other batches.

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::RunPlan;
use crate::data::sha256_hex;
use crate::spec::section::Choice;

/// The version of the files, and of what a probe does.
pub const CALIBRATION_FORMAT: u32 = 1;

/// How far beyond the probed batches the line is believed.
const REACH: usize = 4;

/// What was measured of runs with one key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The version of this format.
    pub format: u32,
    /// What it depends on, as [`RunPlan::memory_key`] gives it.
    pub key: String,
    /// The peaks, by items that are computed at a time.
    pub probes: [Probe; 2],
}

/// The peak of one probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// Items that are computed at a time.
    pub items: usize,
    /// The most that was held.
    pub bytes: u64,
}

/// How much memory a run will hold at its peak, as well as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Bytes.
    pub bytes: u64,
    /// Whether it follows from measurements on this machine, and not from the plan alone.
    pub is_calibrated: bool,
}

impl Calibration {
    /// Of two probes of different batches, in any order.
    pub fn new(key: String, mut probes: [Probe; 2]) -> Self {
        probes.sort_by_key(|probe| probe.items);
        Self {
            format: CALIBRATION_FORMAT,
            key,
            probes,
        }
    }

    /// Whether it is what it says, and something can be drawn from it.
    pub fn is_sound(&self, key: &str) -> bool {
        let [small, large] = self.probes;
        self.format == CALIBRATION_FORMAT
            && self.key == key
            && 0 < small.items
            && small.items < large.items
            && small.bytes.min(large.bytes) > 0
    }

    /// Whether so many items are near enough to those that were probed.
    pub fn covers(&self, items: usize) -> bool {
        let [small, large] = self.probes;
        items.saturating_mul(REACH) >= small.items && items <= large.items.saturating_mul(REACH)
    }

    /// The bytes that do not depend on the batch, and those of each item. Noise may make the smaller batch the
    /// larger peak; then what is held does not depend on the batch as far as can be seen.
    pub fn line(&self) -> (f64, f64) {
        let [small, large] = self.probes;
        let items = (large.items - small.items) as f64;
        let slope = (large.bytes as f64 - small.bytes as f64) / items;
        match slope > 0.0 {
            true => (large.bytes as f64 - slope * large.items as f64, slope),
            false => (small.bytes.max(large.bytes) as f64, 0.0),
        }
    }

    /// The peak that is to be expected.
    pub fn bytes(&self, items: usize) -> u64 {
        let (fixed, per_item) = self.line();
        (fixed + per_item * items as f64).max(0.0) as u64
    }
}

impl RunPlan {
    /// A digest of all that decides how much memory it takes but for the batch size. `place` says on which
    /// machine and by which build.
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
            "average": train.ema.is_some(),
            "pieces": train.micro_batch_size < train.batch_size,
            "gradient_checkpointing": train.gradient_checkpointing,
            "gradient_norms": train.log_gradient_norms,
            "data": [self.data.held_bytes(), self.data.num_train as u64],
            "kept": self.forecast.kept,
            "augment": self.data.augment,
        });
        sha256_hex(on.to_string().as_bytes())[..32].to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(probes: [(usize, u64); 2]) -> Calibration {
        Calibration::new(
            "key".into(),
            probes.map(|(items, bytes)| Probe { items, bytes }),
        )
    }

    #[test]
    fn a_line_goes_through_both_probes() {
        let calibration = of([(64, 1640), (32, 1320)]);
        assert_eq!(calibration.line(), (1000.0, 10.0));
        assert_eq!(calibration.bytes(32), 1320);
        assert_eq!(calibration.bytes(64), 1640);
        assert_eq!(calibration.bytes(128), 2280);
        assert!(calibration.covers(8) && calibration.covers(256));
        assert!(!calibration.covers(7) && !calibration.covers(257));
    }

    #[test]
    fn noise_does_not_make_larger_batches_smaller() {
        assert_eq!(of([(8, 1000), (16, 990)]).line(), (1000.0, 0.0));
    }

    #[test]
    fn what_is_not_sound_is_not_believed() {
        let good = of([(32, 1320), (64, 1640)]);
        assert!(good.is_sound("key"));
        assert!(!good.is_sound("other"));
        assert!(!of([(32, 1), (32, 2)]).is_sound("key"));
        assert!(!of([(0, 1), (32, 2)]).is_sound("key"));
        assert!(!of([(16, 0), (32, 2)]).is_sound("key"));
        let other = Calibration { format: 0, ..good };
        assert!(!other.is_sound("key"));
    }
}
