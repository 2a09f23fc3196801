//! Counters and latencies, in the text format of Prometheus.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the latency buckets, in microseconds.
const BUCKETS: [u64; 12] = [
    500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000,
];

/// Statuses that the server gives; any other is counted as 500.
const STATUSES: [u16; 12] = [200, 303, 400, 401, 403, 404, 405, 408, 413, 431, 500, 503];

/// What has happened since the start.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    statuses: [AtomicU64; STATUSES.len()],
    /// Requests by latency; the last ones took longer than all bounds.
    latencies: [AtomicU64; BUCKETS.len() + 1],
    latency_micros: AtomicU64,
    items: AtomicU64,
    batches: AtomicU64,
}

impl Gauges {
    /// Counts a request by its status alone: it was refused before it was read, or took too long.
    pub fn counted(&self, status: u16) {
        let place = STATUSES.iter().position(|known| *known == status);
        let place = place.unwrap_or(STATUSES.len() - 2);
        add(&self.statuses[place], 1);
    }

    /// Counts an answered request.
    pub fn answered(&self, status: u16, time: Duration) {
        self.counted(status);
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS.iter().position(|bound| micros <= *bound);
        add(&self.latencies[bucket.unwrap_or(BUCKETS.len())], 1);
        add(&self.latency_micros, micros);
    }

    /// Counts a computed batch.
    pub fn computed(&self, items: usize) {
        add(&self.batches, 1);
        add(&self.items, items as u64);
    }

    /// Everything as text.
    pub fn text(&self, num_waiting: usize) -> String {
        let mut text = String::new();
        let mut put = |line: std::fmt::Arguments<'_>| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{line}");
        };
        put(format_args!(
            "# HELP runner_requests_total Requests for predictions, and refused ones, by status."
        ));
        put(format_args!("# TYPE runner_requests_total counter"));
        for (status, count) in STATUSES.iter().zip(&self.statuses) {
            let count = count.load(Ordering::Relaxed);
            put(format_args!(
                "runner_requests_total{{code=\"{status}\"}} {count}"
            ));
        }
        put(format_args!(
            "# HELP runner_items_total Items with a computed prediction."
        ));
        put(format_args!("# TYPE runner_items_total counter"));
        put(format_args!(
            "runner_items_total {}",
            self.items.load(Ordering::Relaxed)
        ));
        put(format_args!(
            "# HELP runner_batches_total Batches that were computed."
        ));
        put(format_args!("# TYPE runner_batches_total counter"));
        put(format_args!(
            "runner_batches_total {}",
            self.batches.load(Ordering::Relaxed)
        ));
        put(format_args!(
            "# HELP runner_waiting_items Items in the queue."
        ));
        put(format_args!("# TYPE runner_waiting_items gauge"));
        put(format_args!("runner_waiting_items {num_waiting}"));
        put(format_args!(
            "# HELP runner_request_seconds Time from a complete request to its response."
        ));
        put(format_args!("# TYPE runner_request_seconds histogram"));
        let mut sum = 0;
        for (at, count) in self.latencies.iter().enumerate() {
            sum += count.load(Ordering::Relaxed);
            let bound = BUCKETS.get(at).map(|micros| *micros as f64 / 1e6);
            let bound = bound.map_or("+Inf".to_owned(), |bound| bound.to_string());
            put(format_args!(
                "runner_request_seconds_bucket{{le=\"{bound}\"}} {sum}"
            ));
        }
        let seconds = self.latency_micros.load(Ordering::Relaxed) as f64 / 1e6;
        put(format_args!("runner_request_seconds_sum {seconds}"));
        put(format_args!("runner_request_seconds_count {sum}"));
        text
    }
}

fn add(counter: &AtomicU64, num: u64) {
    counter.fetch_add(num, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_cumulative() {
        let gauges = Gauges::default();
        gauges.answered(200, Duration::from_micros(400));
        gauges.answered(200, Duration::from_millis(2));
        gauges.answered(503, Duration::from_secs(60));
        gauges.answered(418, Duration::from_micros(500));
        gauges.computed(7);
        let text = gauges.text(3);
        for line in [
            "runner_requests_total{code=\"200\"} 2",
            "runner_requests_total{code=\"500\"} 1",
            "runner_requests_total{code=\"503\"} 1",
            "runner_request_seconds_bucket{le=\"0.0005\"} 2",
            "runner_request_seconds_bucket{le=\"0.0025\"} 3",
            "runner_request_seconds_bucket{le=\"+Inf\"} 4",
            "runner_request_seconds_count 4",
            "runner_items_total 7",
            "runner_waiting_items 3",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
    }
}
