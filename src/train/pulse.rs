//! When a run says where it is.

use std::time::{Duration, Instant};

/// How often a run says where it is and looks at its memory.
const PULSE: Duration = Duration::from_millis(200);

/// Says when it is time to report, and at what rate steps went since the last time.
pub struct Pulse {
    last: Instant,
    last_step: usize,
}

impl Pulse {
    /// Starts to count at a step.
    pub fn new(step: usize) -> Self {
        Self {
            last: Instant::now(),
            last_step: step,
        }
    }

    /// Updates a second since the last time, when it is time again.
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
