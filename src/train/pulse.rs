//! When a run reports its progress.

use std::time::{Duration, Instant};

/// How often a run reports its progress and checks its memory.
const PULSE: Duration = Duration::from_millis(200);

/// Decides when to report, and measures the rate of steps since the last report.
pub struct Pulse {
    last: Instant,
    last_step: usize,
}

impl Pulse {
    /// Starts counting at a step.
    pub fn new(step: usize) -> Self {
        Self {
            last: Instant::now(),
            last_step: step,
        }
    }

    /// Updates per second since the last report, if it is time again.
    pub fn beat(&mut self, step: usize) -> Option<f64> {
        let passed = self.last.elapsed();
        if passed < PULSE {
            return None;
        }
        let rate = (step - self.last_step) as f64 / passed.as_secs_f64();
        (self.last, self.last_step) = (Instant::now(), step);
        Some(rate)
    }
}
