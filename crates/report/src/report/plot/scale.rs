//! From values to coordinates, and the tick values of an axis.

/// Larger values are clamped to this, so that differences of any two are finite.
const LARGEST: f64 = 1e300;

/// Values closer to 0 are rounded to 0, so that differences keep their digits.
const SMALLEST: f64 = 1e-290;

/// From this ratio of the largest to the smallest value on, small ones are indistinguishable on a linear axis.
const LOG_FROM: f64 = 20.0;

/// The smallest distance from 1 that is drawn.
const NEAREST: f64 = 1e-4;

/// How values are spread over an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Evenly.
    Linear,
    /// By their logarithms, if all are positive.
    Log,
    /// By the logarithm of their distance from 1, if none is larger: the best accuracies differ in it. Smaller distances
    /// than the given one count as this one.
    NearOne(f64),
}

/// An axis: its range of values, and its coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    kind: Kind,
    /// The ends, as logarithms on a logarithmic axis.
    low: f64,
    high: f64,
    /// The coordinates of the ends.
    from: f64,
    to: f64,
}

/// A tick value.
#[derive(Clone, Debug, PartialEq)]
pub struct Tick {
    /// The value.
    pub value: f64,
    /// Its label.
    pub label: String,
}

/// Whether values need a logarithmic axis: all are positive, the largest is many times the smallest, and half of them
/// are in the lowest quarter of a linear one.
pub fn is_log_apt(values: impl Iterator<Item = f64>) -> bool {
    let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (values.first(), values.last()) else {
        return false;
    };
    let median = values[(values.len() - 1) / 2];
    *low > 0.0 && high / low >= LOG_FROM && median < 0.25 * high
}

/// The apt kind of axis for values that are best at 1, or for any others.
pub fn apt(values: impl Iterator<Item = f64> + Clone, are_best_at_1: bool) -> Kind {
    if !are_best_at_1 {
        return if is_log_apt(values) {
            Kind::Log
        } else {
            Kind::Linear
        };
    }
    let distances = values.map(|value| 1.0 - value);
    let least = distances.clone().filter(|distance| *distance > NEAREST);
    // What is as good as possible is one step better than the next.
    let least = 0.5 * least.fold(f64::INFINITY, f64::min);
    if least.is_finite() && is_log_apt(distances.map(|distance| distance.max(least))) {
        Kind::NearOne(least)
    } else {
        Kind::Linear
    }
}

/// The smallest and the largest of the finite values.
pub fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let finite = values.filter(|value| value.is_finite());
    let finite = finite.map(|value| {
        if value.abs() < SMALLEST {
            0.0
        } else {
            value.clamp(-LARGEST, LARGEST)
        }
    });
    finite.fold(None, |range, value| match range {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

impl Scale {
    /// A scale from coordinate `from` to `to` over all of `values` with a margin. It is only logarithmic if all values
    /// are positive.
    pub fn over(values: impl Iterator<Item = f64>, is_log: bool, from: f64, to: f64) -> Self {
        let kind = if is_log { Kind::Log } else { Kind::Linear };
        Self::new(values, kind, from, to)
    }

    /// The same of any kind, if the values allow it.
    pub fn new(values: impl Iterator<Item = f64>, kind: Kind, from: f64, to: f64) -> Self {
        let (low, high) = range(values).unwrap_or((0.0, 1.0));
        let kind = match kind {
            Kind::Log if low > 0.0 => Kind::Log,
            Kind::NearOne(_) if high <= 1.0 => kind,
            _ => Kind::Linear,
        };
        let is_log = kind != Kind::Linear;
        let (low, high) = (kind.place(low), kind.place(high));
        // A single value, or practically so: digits beyond these cannot be displayed.
        let least = if is_log {
            1e-6
        } else {
            low.abs().max(high.abs()) * 1e-9
        };
        let (low, high) = match high - low > least {
            true => (low, high),
            false if is_log => (low - 0.5, high + 0.5),
            false if low == 0.0 => (-1.0, 1.0),
            false => (low - 0.1 * low.abs(), high + 0.1 * low.abs()),
        };
        let room = 0.04 * (high - low);
        Self {
            kind,
            low: low - room,
            high: high + room,
            from,
            to,
        }
    }

    /// A linear scale with these ends and no margin.
    pub fn exactly(low: f64, high: f64, from: f64, to: f64) -> Self {
        Self {
            kind: Kind::Linear,
            low,
            high,
            from,
            to,
        }
    }

    /// The same scale between other coordinates.
    pub fn between(self, from: f64, to: f64) -> Self {
        Self { from, to, ..self }
    }

    /// How its values are spread.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The values at the ends of a linear scale.
    pub fn ends(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The coordinate of a value; none if it is outside the axis.
    pub fn at(&self, value: f64) -> Option<f64> {
        if !value.is_finite() || (self.kind == Kind::Log && value <= 0.0) {
            return None;
        }
        let value = self.kind.place(value.clamp(-LARGEST, LARGEST));
        let share = (value - self.low) / (self.high - self.low);
        Some(self.from + share * (self.to - self.from))
    }

    /// About `num` round values between the ends, ascending.
    pub fn ticks(&self, num: usize) -> Vec<Tick> {
        match self.kind {
            Kind::Linear => linear_ticks(self.low, self.high, num),
            Kind::Log => self.log_ticks(num),
            Kind::NearOne(_) => self.near_one_ticks(num),
        }
    }

    /// Values such as 0, 0.9, 0.99 and, if there is room, 0.5 and 0.95.
    fn near_one_ticks(&self, num: usize) -> Vec<Tick> {
        let ticks = |factors: &[f64]| -> Vec<Tick> {
            let decades = (0..=6).rev();
            let distances = decades.flat_map(|k| factors.iter().map(move |f| (k, f)));
            let mut ticks: Vec<Tick> = distances
                .map(|(k, factor)| (1.0 - factor * 10f64.powi(2 - k), k - 2))
                .filter(|(value, _)| (self.low..=self.high).contains(&self.kind.place(*value)))
                .map(|(value, k)| Tick {
                    value,
                    label: plain(value, -k.max(0)),
                })
                .collect();
            ticks.sort_by(|a, b| a.value.total_cmp(&b.value));
            ticks
        };
        let all = ticks(&[1.0, 2.0, 5.0]);
        let halves = ticks(&[1.0, 5.0]);
        [all, halves]
            .into_iter()
            .find(|ticks| ticks.len() <= num + 1)
            .unwrap_or_else(|| ticks(&[1.0]))
    }

    fn log_ticks(&self, num: usize) -> Vec<Tick> {
        let (first, last) = (self.low.ceil() as i32, self.high.floor() as i32);
        let num_decades = (last - first + 1).max(0) as usize;
        let every = num_decades.div_ceil(num.max(1)).max(1);
        let factors: &[f64] = match num_decades {
            0..=2 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let decades = (first - 1..=last).step_by(every);
        let values = decades.flat_map(|decade| factors.iter().map(move |f| f * 10f64.powi(decade)));
        let inside = values.filter(|v| (self.low..=self.high).contains(&v.log10()));
        let ticks: Vec<Tick> = inside
            .map(|value| Tick {
                value,
                label: power(value),
            })
            .collect();
        match ticks.len() {
            // Less than a decade: round numbers as on a linear axis.
            0 | 1 => linear_ticks(10f64.powf(self.low), 10f64.powf(self.high), num),
            _ => ticks,
        }
    }
}

impl Kind {
    /// The place of a value on the axis, before it is scaled.
    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.log10(),
            Self::NearOne(least) => -(1.0 - value).max(least).log10(),
        }
    }
}

/// Multiples of 1, 2 or 5 times a power of 10 (Heckbert, 1990, Nice Numbers for Graph Labels).
fn linear_ticks(low: f64, high: f64, num: usize) -> Vec<Tick> {
    let rough = (high - low) / num.max(1) as f64;
    if !(rough > 0.0 && rough.is_finite()) {
        return Vec::new();
    }
    let power = rough.log10().floor() as i32;
    let unit = 10f64.powi(power);
    let step = match rough / unit {
        r if r <= 1.0 => unit,
        r if r <= 2.0 => 2.0 * unit,
        r if r <= 5.0 => 5.0 * unit,
        _ => 10.0 * unit,
    };
    let digits = step.log10().floor() as i32;
    let (first, last) = ((low / step).ceil(), (high / step).floor());
    // Counted, so that an axis is complete even if a step is lost to rounding.
    let count = (last - first).clamp(-1.0, 4.0 * num as f64) as i64;
    (0..=count)
        .map(|k| (first + k as f64) * step)
        .map(|value| Tick {
            value,
            label: plain(value, digits),
        })
        .collect()
}

/// A multiple of `10^last_digit`; with an exponent if it would be long without.
fn plain(value: f64, last_digit: i32) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let size = size(value);
    match size {
        -4..=5 if last_digit >= -6 => {
            let digits = (-last_digit).max(0) as usize;
            format!("{value:.digits$}")
        }
        _ => {
            let digits = (size - last_digit).clamp(0, 12) as usize;
            format!("{value:.digits$e}")
        }
    }
}

/// 1, 2 or 5 times a power of 10.
fn power(value: f64) -> String {
    match size(value) {
        size @ -3..=5 => {
            let digits = (-size).max(0) as usize;
            format!("{value:.digits$}")
        }
        _ => format!("{value:.0e}"),
    }
}

/// The position of the first digit, tolerating rounding errors.
fn size(value: f64) -> i32 {
    (value.abs().log10() + 1e-9).floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(values: &[f64], is_log: bool, num: usize) -> String {
        let scale = Scale::over(values.iter().copied(), is_log, 0.0, 100.0);
        let ticks = scale.ticks(num);
        let labels: Vec<String> = ticks.into_iter().map(|tick| tick.label).collect();
        labels.join(" ")
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(labels(&[0.0, 1.0], false, 5), "0 0.5 1.0");
        assert_eq!(labels(&[0.903, 0.971], false, 5), "0.92 0.94 0.96");
        assert_eq!(labels(&[1.0, 12.0], false, 6), "2 4 6 8 10 12");
        assert_eq!(labels(&[-2e7, 3e7], false, 4), "-2e7 0 2e7");
        assert_eq!(labels(&[1.5e-7, 2.5e-7], false, 4), "1.5e-7 2.0e-7 2.5e-7");
        assert_eq!(labels(&[5.0], false, 4), "4.5 5.0 5.5");
    }

    #[test]
    fn log_ticks_are_decades_or_parts_of_them() {
        assert_eq!(labels(&[1e-4, 1.0], true, 6), "1e-4 0.001 0.01 0.1 1");
        assert_eq!(labels(&[0.02, 0.9], true, 6), "0.02 0.05 0.1 0.2 0.5 1");
        assert_eq!(labels(&[1e-12, 1e12], true, 6), "1e-8 0.001 100 1e7 1e12");
        assert_eq!(labels(&[0.21, 0.24], true, 4), "0.21 0.22 0.23 0.24");
    }

    #[test]
    fn every_input_has_a_scale() {
        let cases: [&[f64]; 8] = [
            &[],
            &[f64::NAN],
            &[f64::INFINITY, f64::NEG_INFINITY],
            &[1e308, -1e308],
            &[f64::MAX],
            &[5e-324],
            &[1.0, 1.0 + f64::EPSILON],
            &[-1.0, 0.0],
        ];
        for (values, is_log) in cases.iter().flat_map(|v| [(v, false), (v, true)]) {
            let scale = Scale::over(values.iter().copied(), is_log, 10.0, 20.0);
            for value in values.iter().filter(|v| v.is_finite()) {
                let at = scale.at(*value).unwrap();
                assert!((10.0..=20.0).contains(&at), "{values:?} {at}");
            }
            let ticks = scale.ticks(5);
            assert!(ticks.len() < 20, "{values:?} {ticks:?}");
            for tick in ticks {
                let at = scale.at(tick.value).unwrap();
                assert!((9.9..=20.1).contains(&at), "{values:?} {tick:?} {at}");
            }
        }
    }

    #[test]
    fn a_log_axis_is_for_what_spans_decades() {
        assert!(is_log_apt([0.01, 1.0].into_iter()));
        assert!(is_log_apt([0.001, 0.01, 0.1].into_iter()));
        assert!(!is_log_apt([0.01, 0.3, 0.6].into_iter()));
        assert!(!is_log_apt([0.5, 1.0].into_iter()));
        assert!(!is_log_apt([0.0, 100.0].into_iter()));
        assert!(!is_log_apt([].into_iter()));
        let scale = Scale::over([0.0, 1.0].into_iter(), true, 0.0, 1.0);
        assert_eq!(scale.kind(), Kind::Linear);
    }

    #[test]
    fn the_best_accuracies_have_room() {
        let kind = |values: &[f64]| apt(values.iter().copied(), true);
        let values = [0.1, 0.9, 0.97, 0.98, 0.985, 0.99, 0.995];
        assert!(matches!(kind(&values), Kind::NearOne(least) if (least - 0.0025).abs() < 1e-9));
        assert_eq!(kind(&[0.2, 0.4, 0.6, 0.8]), Kind::Linear);
        assert_eq!(kind(&[0.9, 0.91]), Kind::Linear);
        let near =
            |values: &[f64]| Scale::new(values.iter().copied(), Kind::NearOne(0.0005), 0.0, 100.0);
        let labels = |scale: Scale| {
            let ticks = scale.ticks(5).into_iter().map(|tick| tick.label);
            ticks.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(near(&values)), "0 0.5 0.9 0.95 0.99 0.995");
        assert_eq!(labels(near(&[-20.0, 0.5, 0.999])), "-9 0 0.9 0.99 0.999");
        // What is as good as possible has a place too, and larger values no such axis.
        assert!(near(&[0.1, 1.0]).at(1.0).is_some_and(|at| at < 100.0));
        assert_eq!(near(&[0.1, 1.5]).kind(), Kind::Linear);
    }
}
