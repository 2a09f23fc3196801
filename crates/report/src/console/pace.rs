//! The remaining time and its uncertainty, estimated only from the epochs so far.
//!
//! Seconds per update are measured in every epoch, including its validation. A run with finished epochs is extrapolated
//! from its own mean; another run from the mean over the runs measured on its device, plus the time that such runs
//! spent outside their epochs (start and evaluation). Runs are assigned to slots in order, each to the first free one;
//! the remaining time is that of the slot that is busy longest.
//!
//! Variances add up along a slot: for a run with finished epochs, the squared standard error of their mean times the
//! remaining updates, and the scatter of the remaining epochs; for a run without, the variance between runs. The error
//! of the mean over runs is shared by all runs of a slot and adds up before it is squared. The displayed range is two
//! standard deviations to both sides, about 95 %.

use std::collections::BTreeMap;

use runner_core::spec::backend::DeviceName;

/// Running mean and variance (Welford, 1962).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    n: usize,
    mean: f64,
    squares: f64,
}

impl Sample {
    /// Includes a number; ignores one that is not finite.
    pub fn add(&mut self, value: f64) {
        if !value.is_finite() {
            return;
        }
        self.n += 1;
        let before = value - self.mean;
        self.mean += before / self.n as f64;
        self.squares += before * (value - self.mean);
    }

    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut sample = Self::default();
        values.for_each(|value| sample.add(value));
        sample
    }

    /// The sample variance; none for fewer than two numbers.
    fn variance(&self) -> Option<f64> {
        (self.n > 1).then(|| self.squares / (self.n - 1) as f64)
    }
}

/// The measurements.
#[derive(Clone, Debug, Default)]
pub struct Pace {
    /// Seconds per update, of each epoch of each run.
    runs: BTreeMap<usize, (DeviceName, Sample)>,
    /// Seconds of whole runs outside their epochs.
    beside: Vec<(DeviceName, Sample)>,
}

/// The remaining work of a run.
#[derive(Clone, Copy, Debug)]
pub struct Rest {
    /// The run.
    pub run: usize,
    /// Its device.
    pub device: DeviceName,
    /// Remaining updates.
    pub steps: usize,
    /// Updates per epoch.
    pub steps_per_epoch: usize,
    /// Whether it has started, and so has a slot.
    pub has_begun: bool,
}

/// The remaining time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeLeft {
    /// Nothing is left.
    None,
    /// No epoch was measured yet on a device that is still needed.
    Unknown,
    /// Approximate seconds.
    About {
        /// The mean.
        secs: f64,
        /// Its standard deviation; none if part of it is based on a single measurement.
        sd: Option<f64>,
    },
}

#[derive(Clone, Copy, Default)]
struct Slot {
    secs: f64,
    variance: f64,
    /// The part of the deviation that all runs share.
    common: f64,
    is_sure: bool,
}

impl Pace {
    /// The duration of an epoch of a run with this many updates.
    pub fn epoch(&mut self, run: usize, device: DeviceName, secs: f64, steps: usize) {
        let (on, sample) = self.runs.entry(run).or_insert((device, Sample::default()));
        if *on != device {
            (*on, *sample) = (device, Sample::default());
        }
        sample.add(secs / steps.max(1) as f64);
    }

    /// The time of a completed run outside its epochs.
    pub fn beside(&mut self, device: DeviceName, secs: f64) {
        let known = self.beside.iter().position(|(known, _)| *known == device);
        let at = known.unwrap_or_else(|| {
            self.beside.push((device, Sample::default()));
            self.beside.len() - 1
        });
        self.beside[at].1.add(secs.max(0.0));
    }

    /// The time of runs in starting order, this many concurrently.
    pub fn left(&self, rest: &[Rest], slots: usize) -> TimeLeft {
        let sure = Slot {
            is_sure: true,
            ..Slot::default()
        };
        let mut slots = vec![sure; slots.max(1)];
        let (begun, waiting): (Vec<&Rest>, Vec<&Rest>) = rest.iter().partition(|r| r.has_begun);
        for rest in begun.into_iter().chain(waiting) {
            let Some(took) = self.of(rest) else {
                return TimeLeft::Unknown;
            };
            let free = slots.iter_mut().min_by(|a, b| a.secs.total_cmp(&b.secs));
            let Some(slot) = free else { continue };
            slot.secs += took.secs;
            slot.variance += took.variance;
            slot.common += took.common;
            slot.is_sure &= took.is_sure;
        }
        match slots.iter().max_by(|a, b| a.secs.total_cmp(&b.secs)) {
            Some(last) if last.secs > 0.0 => TimeLeft::About {
                secs: last.secs,
                sd: last
                    .is_sure
                    .then(|| (last.variance + last.common * last.common).sqrt()),
            },
            _ => TimeLeft::None,
        }
    }

    fn of(&self, rest: &Rest) -> Option<Slot> {
        let steps = rest.steps as f64;
        let own = self.runs.get(&rest.run);
        if let Some((_, own)) = own.filter(|(device, own)| *device == rest.device && own.n > 0) {
            let scatter = steps * steps / own.n as f64 + steps * rest.steps_per_epoch as f64;
            return Some(Slot {
                secs: steps * own.mean,
                variance: own.variance().unwrap_or(0.0) * scatter,
                common: 0.0,
                // The last updates of a run cannot use more than the remaining slots.
                is_sure: own.n > 1 || rest.steps < rest.steps_per_epoch,
            });
        }
        let there = self.runs.values();
        let there = there.filter(|(device, own)| *device == rest.device && own.n > 0);
        let between = Sample::of(there.map(|(_, own)| own.mean));
        if between.n == 0 {
            return None;
        }
        let variance = between.variance();
        let beside = self.beside.iter().find(|(known, _)| *known == rest.device);
        let beside = beside.map_or(Sample::default(), |(_, beside)| *beside);
        let spread = variance.unwrap_or(0.0);
        Some(Slot {
            secs: steps * between.mean + beside.mean,
            variance: steps * steps * spread + beside.variance().unwrap_or(0.0),
            common: steps * (spread / between.n as f64).sqrt(),
            is_sure: variance.is_some(),
        })
    }
}

impl TimeLeft {
    /// As text; `at_most` if runs may stop before their last epoch. Empty if nothing is left.
    pub fn in_words(self, at_most: bool) -> String {
        let about = if at_most { "at most about" } else { "about" };
        match self {
            TimeLeft::None => String::new(),
            TimeLeft::Unknown => "time left: measuring".into(),
            TimeLeft::About { secs, sd: None } => {
                format!("{about} {} left, from one measurement", duration(secs))
            }
            TimeLeft::About { secs, sd: Some(sd) } => {
                let (low, high) = ((secs - 2.0 * sd).max(0.0), secs + 2.0 * sd);
                let mean = duration(secs);
                let (low, high) = (duration(low), duration(high));
                if low == mean && high == mean {
                    return format!("{about} {mean} left");
                }
                // `6 to 8 min`, with the unit once if it is the same.
                let (number, unit) = low.split_once(' ').unwrap_or((&low, ""));
                let low = if high.ends_with(&format!(" {unit}")) {
                    number
                } else {
                    &low
                };
                format!("{about} {mean} left ({low} to {high})")
            }
        }
    }
}

/// Seconds as text, with the precision that an estimate deserves.
pub fn duration(secs: f64) -> String {
    match secs {
        s if s < 60.0 => format!("{:.0} s", s.max(1.0)),
        s if s < 3600.0 => format!("{:.0} min", s / 60.0),
        s if s < 48.0 * 3600.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} d", s / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_core::spec::backend::Backend;

    fn flex() -> DeviceName {
        DeviceName::try_from("flex".to_owned()).unwrap()
    }

    fn rest(run: usize, steps: usize, has_begun: bool) -> Rest {
        Rest {
            run,
            device: flex(),
            steps,
            steps_per_epoch: 10,
            has_begun,
        }
    }

    #[test]
    fn nothing_is_said_before_something_was_measured() {
        let mut pace = Pace::default();
        assert_eq!(pace.left(&[rest(0, 10, true)], 2), TimeLeft::Unknown);
        assert_eq!(pace.left(&[], 2), TimeLeft::None);
        pace.epoch(0, flex(), 10.0, 10);
        let left = pace.left(&[rest(0, 20, true)], 2);
        assert_eq!(
            left,
            TimeLeft::About {
                secs: 20.0,
                sd: None
            }
        );
        assert_eq!(
            left.in_words(false),
            "about 20 s left, from one measurement"
        );
        let mut elsewhere = rest(1, 10, false);
        elsewhere.device = DeviceName {
            backend: Backend::Wgpu,
            ..flex()
        };
        assert_eq!(pace.left(&[elsewhere], 2), TimeLeft::Unknown);
    }

    #[test]
    fn the_slot_that_is_busy_longest_counts() {
        let mut pace = Pace::default();
        for run in [0, 1] {
            pace.epoch(run, flex(), 10.0, 10);
            pace.epoch(run, flex(), 10.0, 10);
        }
        // One of 30 s and one of 10 s, then two of 20 s: the second slot takes both, and is busy for 50 s.
        let runs = [
            rest(0, 30, true),
            rest(1, 10, true),
            rest(2, 20, false),
            rest(3, 20, false),
        ];
        let about = |secs| TimeLeft::About {
            secs,
            sd: Some(0.0),
        };
        assert_eq!(pace.left(&runs, 2), about(50.0));
        assert_eq!(pace.left(&runs, 1), about(80.0));
        assert_eq!(pace.left(&runs, 9), about(30.0));
        // Time outside epochs is added for runs that have not started.
        pace.beside(flex(), 3.0);
        assert_eq!(pace.left(&runs, 1), about(86.0));
    }

    #[test]
    fn the_range_is_two_standard_deviations() {
        let mut pace = Pace::default();
        // Epochs of 8 s and 12 s: a mean of 1 s an update, a variance of 0.08.
        pace.epoch(0, flex(), 8.0, 10);
        pace.epoch(0, flex(), 12.0, 10);
        let TimeLeft::About { secs, sd: Some(sd) } = pace.left(&[rest(0, 100, true)], 1) else {
            panic!("it was measured twice")
        };
        // 0.08 * (100^2 / 2 for the mean, 10 epochs of 10^2 for what is to come).
        assert!(
            (sd - (0.08f64 * (5000.0 + 1000.0)).sqrt()).abs() < 1e-9,
            "{sd}"
        );
        let left = TimeLeft::About { secs, sd: Some(sd) };
        assert_eq!(left.in_words(false), "about 2 min left (56 s to 2 min)");
        // Two runs of 1 s and 3 s per update predict a third: 2 s, with a variance of 2 between runs, and of 1 of the
        // mean.
        let mut pace = Pace::default();
        for (run, secs) in [(0, 10.0), (1, 30.0)] {
            pace.epoch(run, flex(), secs, 10);
        }
        let TimeLeft::About { secs, sd: Some(sd) } = pace.left(&[rest(2, 10, false)], 1) else {
            panic!("two runs were measured")
        };
        assert_eq!(secs, 20.0);
        assert!((sd - 300f64.sqrt()).abs() < 1e-9, "{sd}");
    }
}
