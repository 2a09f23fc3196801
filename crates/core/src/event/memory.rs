//! Memory use of a run: its peak, and whether it grew from epoch to epoch.

use serde::{Deserialize, Serialize};

use crate::show::show_bytes;

/// The allocator state where a run computes: the device's pool, or on the host the allocator of the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolUsage {
    /// Bytes of live allocations; on the host, of those of at least 4 KiB.
    pub in_use_bytes: u64,
    /// Bytes reserved from the device, for these and for reuse; on the host, those of the process.
    pub reserved_bytes: u64,
    /// Living allocations.
    pub num_allocations: u64,
}

/// Peak memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPeak {
    /// Of the process, without pages of mapped files.
    pub process_bytes: u64,
    /// Of the pool, if known; the maximum of each number separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolUsage>,
    /// Of the GPU, all processes included, if its driver reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card_bytes: Option<u64>,
}

impl MemoryPeak {
    /// The number that limits and forecasts refer to: the bytes reserved in the pool, or of the process if there is no
    /// pool.
    pub fn bytes(&self) -> u64 {
        self.pool
            .map_or(self.process_bytes, |pool| pool.reserved_bytes)
    }

    /// The larger of each number.
    pub fn max(self, other: Self) -> Self {
        let pool = match (self.pool, other.pool) {
            (Some(a), Some(b)) => Some(PoolUsage {
                in_use_bytes: a.in_use_bytes.max(b.in_use_bytes),
                reserved_bytes: a.reserved_bytes.max(b.reserved_bytes),
                num_allocations: a.num_allocations.max(b.num_allocations),
            }),
            (a, b) => a.or(b),
        };
        Self {
            process_bytes: self.process_bytes.max(other.process_bytes),
            pool,
            card_bytes: self.card_bytes.max(other.card_bytes),
        }
    }
}

/// Minimum number of epochs of one attempt for fitting growth.
const MIN_EPOCHS: usize = 3;

/// Growth over all epochs that is attributed to the allocator: this many bytes, or this fraction of the first epoch's.
const NOISE_BYTES: f64 = (4 << 20) as f64;
const NOISE_SHARE: f64 = 0.05;

/// How many standard errors a slope must be above zero.
const ERRORS: f64 = 3.0;

/// Memory that grows from epoch to epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemoryGrowth {
    /// Number of fitted epochs.
    pub num_epochs: usize,
    /// The least-squares slope, in bytes.
    pub bytes_per_epoch: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The slope per optimizer update.
    pub bytes_per_step: f64,
    /// Memory after the first epoch.
    pub first_bytes: u64,
    /// Memory after the last epoch.
    pub last_bytes: u64,
    /// The pool after the last epoch, if known; then the fit uses its bytes in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<PoolUsage>,
}

impl MemoryGrowth {
    /// Fits a line to the memory after the epochs of one attempt, in order, and returns it if the growth is beyond
    /// noise: if the slope is more than 3 standard errors above 0, and the line rises by more than 4 MiB and 5 % over
    /// the epochs. With four or more epochs, the first one is excluded: it fills caches. Three points on a line reveal
    /// a leak in the third epoch, while a rise that flattens is not reported.
    pub fn fit(held: &[(u64, Option<PoolUsage>)], steps_per_epoch: usize) -> Option<Self> {
        if held.len() < MIN_EPOCHS {
            return None;
        }
        let held = match held.len() {
            MIN_EPOCHS => held,
            _ => &held[1..],
        };
        let values: Vec<f64> = held.iter().map(|(bytes, _)| *bytes as f64).collect();
        let n = values.len() as f64;
        let (mean_x, mean_y) = ((n - 1.0) / 2.0, values.iter().sum::<f64>() / n);
        let centered = |at: usize| at as f64 - mean_x;
        let squares: f64 = (0..values.len()).map(|at| centered(at).powi(2)).sum();
        let products = values.iter().enumerate();
        let slope = products
            .map(|(at, y)| centered(at) * (y - mean_y))
            .sum::<f64>()
            / squares;
        let residuals = values.iter().enumerate();
        let residuals: f64 = residuals
            .map(|(at, y)| (y - mean_y - slope * centered(at)).powi(2))
            .sum();
        let error = (residuals / (n - 2.0) / squares).sqrt();
        let rise = slope * (n - 1.0);
        let is_growth = slope > ERRORS * error && rise > NOISE_BYTES.max(NOISE_SHARE * values[0]);
        let (first_bytes, _) = held[0];
        let (last_bytes, pool) = held[held.len() - 1];
        is_growth.then(|| Self {
            num_epochs: held.len(),
            bytes_per_epoch: slope,
            standard_error: error,
            bytes_per_step: slope / steps_per_epoch.max(1) as f64,
            first_bytes,
            last_bytes,
            pool,
        })
    }

    /// With the numbers that a bug report to Burn needs, except versions, which are in the environment. `place` is the
    /// device, and a step has `items`.
    pub fn in_words(&self, place: &str, items: usize) -> String {
        let what = match self.pool {
            Some(_) => "in use were",
            None => "the process used",
        };
        let pool = self.pool.map_or(String::new(), |pool| {
            format!(
                "; {} allocations, {} in use, {} reserved",
                pool.num_allocations,
                show_bytes(pool.in_use_bytes),
                show_bytes(pool.reserved_bytes)
            )
        });
        format!(
            "memory grows by {} ± {} per epoch, {} per step of {items} items, on {place}: {what} {} after the first of {} epochs and {} after the last{pool}",
            show_bytes(self.bytes_per_epoch as u64),
            show_bytes(self.standard_error as u64),
            show_bytes(self.bytes_per_step as u64),
            show_bytes(self.first_bytes),
            self.num_epochs,
            show_bytes(self.last_bytes),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(mib: &[f64]) -> Option<MemoryGrowth> {
        let held: Vec<_> = mib.iter().map(|m| ((m * 1048576.0) as u64, None)).collect();
        MemoryGrowth::fit(&held, 100)
    }

    #[test]
    fn a_leak_is_seen_in_the_third_epoch() {
        let growth = fit(&[100.0, 110.0, 121.0]).expect("10 MiB an epoch");
        assert_eq!(growth.num_epochs, 3);
        assert!((growth.bytes_per_epoch / 1048576.0 - 10.5).abs() < 1e-9);
        assert!((growth.bytes_per_step / 1048576.0 - 0.105).abs() < 1e-9);
        // The residuals are 1/6, -1/3, 1/6 MiB: s² = 1/6, over squares of 2.
        let error = (1.0f64 / 6.0 / 2.0).sqrt();
        assert!((growth.standard_error / 1048576.0 - error).abs() < 1e-6);
        assert!(fit(&[100.0, 110.0]).is_none());
    }

    #[test]
    fn warming_up_is_no_leak() {
        assert!(fit(&[100.0, 120.0, 122.0]).is_none(), "it flattens");
        assert!(fit(&[60.0, 100.0, 101.0, 100.5]).is_none());
        assert!(fit(&[20.0, 21.0, 22.0]).is_none(), "too little to tell");
        assert!(fit(&[100.0, 100.0, 100.0]).is_none());
        assert!(fit(&[1000.0, 1010.0, 1020.0]).is_none(), "2 %");
    }

    #[test]
    fn a_slow_leak_is_seen_later() {
        let slow: Vec<f64> = (0..8).map(|epoch| 40.0 + f64::from(epoch)).collect();
        assert!(fit(&slow[..4]).is_none());
        assert!(fit(&slow).is_some());
    }
}
