//! Parallel coordinates: a vertical axis for each of several quantities, a line per trial.

use std::fmt::Write;

use super::scale::{Kind, Scale, Tick};
use super::svg::{Anchor, Svg, px};

/// Shades by value, from the worst fifth to the best.
pub const SHADES: usize = 5;
/// Height of the drawing.
const HEIGHT: f64 = 300.0;
/// Top and bottom of the axes.
const ENDS: (f64, f64) = (34.0, HEIGHT - 16.0);

/// Space between two names.
const BETWEEN: f64 = 14.0;
/// Average width of a character of a name.
const LABEL_CHAR: f64 = 7.0;

/// A plot of parallel coordinates.
pub struct Parallel<'a> {
    /// Its description, for screen readers.
    pub description: &'a str,
    /// The axes, from left to right.
    pub axes: &'a [Coordinate],
    /// The lines; later ones are drawn over earlier ones.
    pub lines: &'a [Trace],
}

/// An axis.
pub struct Coordinate {
    /// Its name.
    pub name: String,
    /// Its levels from bottom to top, if it is categorical; values are then their indices.
    pub levels: Option<Vec<String>>,
    /// How values are spread over it, if it is not categorical.
    pub kind: Kind,
}

/// A line.
pub struct Trace {
    /// A value for each axis; a missing one breaks the line.
    pub values: Vec<Option<f64>>,
    /// Its shade, below [`SHADES`]; the last one is the best.
    pub shade: usize,
    /// The tooltip.
    pub title: String,
}

/// Draws parallel coordinates.
pub fn parallel(plot: &Parallel) -> String {
    let num = plot.axes.len();
    let width = (160.0 * num as f64).clamp(420.0, 1200.0);
    // With many axes, it takes the whole page.
    let class = if width > 1000.0 {
        "parallel many"
    } else {
        "parallel"
    };
    let mut svg = Svg::new(class, width, HEIGHT, plot.description);
    let (left, right) = (30.0, width - 62.0);
    let x = |at: usize| left + (right - left) * at as f64 / num.saturating_sub(1).max(1) as f64;
    let scales: Vec<(Scale, Vec<Tick>)> = (0..num).map(|at| scale(plot, at)).collect();
    for line in plot.lines {
        let mut d = String::new();
        let mut is_broken = true;
        for (at, (scale, _)) in scales.iter().enumerate() {
            let value = line.values.get(at).copied().flatten();
            let Some(y) = value.and_then(|value| scale.at(value)) else {
                is_broken = true;
                continue;
            };
            let _ = write!(
                d,
                "{}{} {}",
                if is_broken { "M" } else { "L" },
                px(x(at)),
                px(y)
            );
            is_broken = false;
        }
        if !d.is_empty() {
            let class = format!("trace q{}", line.shade.min(SHADES - 1));
            svg.path(&class, &d, &line.title);
        }
    }
    let gap = (right - left) / num.saturating_sub(1).max(1) as f64;
    for (at, (axis, (scale, ticks))) in plot.axes.iter().zip(&scales).enumerate() {
        let (x, (top, bottom)) = (x(at), ENDS);
        svg.line("axis", (x, top), (x, bottom));
        let (anchor, from) = match at {
            0 => (Anchor::Start, 2.0),
            _ if at + 1 == num => (Anchor::End, width - 2.0),
            _ => (Anchor::Middle, x),
        };
        // Names alternate in height, so that each has the space of two, except for the outer ones, which begin or end
        // at the edge.
        let height = if at % 2 == 0 { 11.0 } else { 25.0 };
        let room = match at {
            0 => left + gap,
            _ if at + 1 == num => width - right + gap,
            _ => 2.0 * gap,
        };
        let most = (room - BETWEEN) / LABEL_CHAR;
        svg.text("label", (from, height), anchor, &axis.name, most as usize);
        for tick in ticks {
            if let Some(y) = scale.at(tick.value) {
                svg.line("axis", (x - 3.0, y), (x + 3.0, y));
                svg.text(
                    "tick halo",
                    (x + 6.0, y + 4.0),
                    Anchor::Start,
                    &tick.label,
                    9,
                );
            }
        }
    }
    svg.finish()
}

fn scale(plot: &Parallel, at: usize) -> (Scale, Vec<Tick>) {
    let (top, bottom) = ENDS;
    if let Some(levels) = &plot.axes[at].levels {
        let last = levels.len().saturating_sub(1).max(1) as f64;
        let scale = Scale::exactly(-0.04 * last, 1.04 * last, bottom, top);
        let every = levels.len().div_ceil(12).max(1);
        let named = levels.iter().enumerate().step_by(every);
        let ticks = named.map(|(number, name)| Tick {
            value: number as f64,
            label: name.clone(),
        });
        return (scale, ticks.collect());
    }
    let values = || {
        plot.lines
            .iter()
            .filter_map(move |line| line.values.get(at).copied().flatten())
    };
    let scale = Scale::new(values(), plot.axes[at].kind, bottom, top);
    let ticks = scale.ticks(5);
    (scale, ticks)
}
