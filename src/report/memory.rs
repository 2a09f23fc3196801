//! What runs held of memory, beside what was forecast.

use serde::{Deserialize, Serialize};

use crate::event::{MemoryGrowth, MemoryPeak};
use crate::plan::RunPlan;
use crate::record::RunRecord;
use crate::spec::kind::show_bytes;

/// Memory over the runs of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialMemory {
    /// As counted before anything was measured, in bytes.
    pub forecast_bytes: u64,
    /// By measurements of such runs on this machine, if there were any before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calibrated_bytes: Option<u64>,
    /// The most that a run of the trial held.
    pub measured: MemoryPeak,
}

impl TrialMemory {
    /// Of one run, once something was measured.
    pub fn of(run: &RunPlan, record: &RunRecord) -> Option<Self> {
        let adjusted = run.adjusted(&record.attempts.adjustments);
        // What was foretold of the run as planned says nothing of one that takes less.
        let is_as_planned = adjusted.forecast == run.forecast && adjusted.device == run.device;
        Some(Self {
            forecast_bytes: adjusted.forecast.total(),
            calibrated_bytes: record.calibrated_bytes.filter(|_| is_as_planned),
            measured: record.peak?,
        })
    }

    /// With those of another run of the trial.
    pub fn max(self, other: Self) -> Self {
        Self {
            forecast_bytes: self.forecast_bytes.max(other.forecast_bytes),
            calibrated_bytes: self.calibrated_bytes.max(other.calibrated_bytes),
            measured: self.measured.max(other.measured),
        }
    }

    /// How far the best forecast is off what was measured, as a share of that.
    pub fn error(&self) -> f64 {
        let forecast = self.calibrated_bytes.unwrap_or(self.forecast_bytes) as f64;
        forecast / self.measured.bytes().max(1) as f64 - 1.0
    }

    /// A row of the report's table.
    pub fn row(&self) -> Vec<String> {
        let pool = |bytes: fn(&crate::event::PoolUsage) -> u64| {
            let pool = self.measured.pool.as_ref();
            pool.map_or("-".into(), |pool| show_bytes(bytes(pool)))
        };
        vec![
            show_bytes(self.forecast_bytes),
            self.calibrated_bytes.map_or("-".into(), show_bytes),
            show_bytes(self.measured.process_bytes),
            pool(|pool| pool.in_use_bytes),
            pool(|pool| pool.reserved_bytes),
            format!("{:+.1} %", 100.0 * self.error()),
        ]
    }

    /// The names of the row's columns.
    pub const HEAD: [&str; 6] = [
        "forecast",
        "calibrated",
        "process",
        "in use",
        "reserved",
        "error",
    ];
}

/// Growth with the figures that a report of a leak to Burn would need, but for versions, which stand in the
/// environment.
pub fn growth_in_words(run: &RunPlan, growth: &MemoryGrowth) -> String {
    let what = match growth.pool {
        Some(_) => "in use were",
        None => "the process held",
    };
    let pool = growth.pool.map_or(String::new(), |pool| {
        format!(
            "; there are {} allocations, {} in use, {} reserved",
            pool.num_allocations,
            show_bytes(pool.in_use_bytes),
            show_bytes(pool.reserved_bytes)
        )
    });
    format!(
        "memory grows by {} ± {} an epoch, {} a step of {} items, on {}: {what} {} after the first of {} epochs and {} after the last{pool}",
        show_bytes(growth.bytes_per_epoch as u64),
        show_bytes(growth.standard_error as u64),
        show_bytes(growth.bytes_per_step as u64),
        run.train.batch_size,
        run.device,
        show_bytes(growth.first_bytes),
        growth.num_epochs,
        show_bytes(growth.last_bytes),
    )
}
