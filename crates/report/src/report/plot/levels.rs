//! Points with error bars for the levels of an axis.

use super::frame::{Axes, Frame};
use super::scale::{Scale, Tick, range};

/// A plot of levels.
pub struct Levels<'a> {
    /// Its description, for screen readers.
    pub description: &'a str,
    /// The axis.
    pub x_label: &'a str,
    /// The value.
    pub y_label: &'a str,
    /// The levels, from left to right.
    pub levels: &'a [Level],
    /// Whether the levels are ordered, so that a line through them is meaningful.
    pub is_ordered: bool,
    /// The range of the value.
    pub bounds: (f64, f64),
}

/// One level.
pub struct Level {
    /// Its name.
    pub name: String,
    /// The value.
    pub mean: f64,
    /// The ends of its error bar, if it has one.
    pub interval: Option<(f64, f64)>,
    /// Single values, drawn small.
    pub dots: Vec<f64>,
    /// The tooltip.
    pub title: String,
}

impl Levels<'_> {
    /// The displayed range: all values, and the possible part of error bars as far beyond the values as these reach
    /// themselves. The intervals of two seeds would make everything else indistinguishable.
    fn shown(&self) -> (f64, f64) {
        let values = self.levels.iter().flat_map(|level| {
            let dots = level.dots.iter().copied();
            dots.chain([level.mean])
        });
        let Some((low, high)) = range(values) else {
            return (f64::NEG_INFINITY, f64::INFINITY);
        };
        let beyond = match high - low {
            0.0 => f64::INFINITY,
            reach => reach,
        };
        let (least, most) = self.bounds;
        (
            (low - beyond).max(least.min(low)),
            (high + beyond).min(most.max(high)),
        )
    }

    /// Whether an error bar extends beyond the displayed range.
    pub fn is_cut(&self) -> bool {
        let (low, high) = self.shown();
        let mut bars = self.levels.iter().filter_map(|level| level.interval);
        bars.any(|(from, to)| from < low || to > high)
    }
}

/// Draws levels.
pub fn levels(plot: &Levels) -> String {
    let (least, most) = plot.shown();
    let values = plot.levels.iter().flat_map(|level| {
        let (low, high) = level.interval.unwrap_or((level.mean, level.mean));
        let ends = [low.max(least), high.min(most)];
        level.dots.iter().copied().chain([level.mean]).chain(ends)
    });
    let num = plot.levels.len();
    let names = plot.levels.iter().enumerate().map(|(at, level)| Tick {
        value: at as f64,
        label: level.name.clone(),
    });
    let mut frame = Frame::new(Axes {
        class: "levels",
        description: plot.description,
        x_label: plot.x_label,
        y_label: plot.y_label,
        x: Scale::exactly(-0.5, num.max(1) as f64 - 0.5, 0.0, 1.0),
        y: Scale::over(values, false, 0.0, 1.0),
        names: Some(names.collect()),
        beside: 0.0,
    });
    let place = |frame: &Frame, at: usize, value: f64| frame.at(at as f64, value);
    if plot.is_ordered {
        for at in 1..num {
            let from = place(&frame, at - 1, plot.levels[at - 1].mean);
            let to = place(&frame, at, plot.levels[at].mean);
            if let (Some(from), Some(to)) = (from, to) {
                frame.svg.line("line thin s0", from, to);
            }
        }
    }
    let mut is_empty = true;
    for (at, level) in plot.levels.iter().enumerate() {
        frame.svg.open("s0", "");
        frame.svg.title(&level.title);
        for dot in &level.dots {
            if let Some((x, y)) = place(&frame, at, *dot) {
                frame.svg.mark("dot", 0, (x + 9.0, y), 2.0, "");
            }
        }
        let ends = level.interval.map(|(low, high)| {
            let shown = (low.max(least), high.min(most));
            let (from, to) = (place(&frame, at, shown.0), place(&frame, at, shown.1));
            (from, to, shown.0 > low, shown.1 < high)
        });
        if let Some((Some(low), Some(high), is_low_cut, is_high_cut)) = ends {
            frame.svg.line("bar", low, high);
            // A cap, or an arrow if it extends further.
            for ((x, y), wings) in [
                (low, if is_low_cut { -5.0 } else { 0.0 }),
                (high, if is_high_cut { 5.0 } else { 0.0 }),
            ] {
                frame.svg.line("bar", (x - 4.0, y + wings), (x, y));
                frame.svg.line("bar", (x, y), (x + 4.0, y + wings));
            }
        }
        if let Some(point) = place(&frame, at, level.mean) {
            is_empty = false;
            frame.svg.mark("mark", 0, point, 4.5, "");
        }
        frame.svg.close();
    }
    frame.finish(is_empty)
}
