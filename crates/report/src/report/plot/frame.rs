//! The frame of a plot: axes with tick labels, grid lines, axis labels.

use super::scale::{Kind, Scale, Tick};
use super::svg::{Anchor, CHAR, Svg};

/// Width of a plot in its own units. A phone shows it slightly smaller, a wide screen larger.
pub const WIDTH: f64 = 420.0;
/// Height of a plot in its own units.
pub const HEIGHT: f64 = 260.0;
/// Maximum length of an axis label.
const MOST: usize = 16;

/// The inputs of a frame.
pub struct Axes<'a> {
    /// The kind of plot, a class.
    pub class: &'a str,
    /// The description, for screen readers.
    pub description: &'a str,
    /// The label of the horizontal axis.
    pub x_label: &'a str,
    /// The label of the vertical axis.
    pub y_label: &'a str,
    /// The horizontal scale; its coordinates are set here.
    pub x: Scale,
    /// The vertical scale; its coordinates are set here.
    pub y: Scale,
    /// The names along the horizontal axis, if it is not numeric.
    pub names: Option<Vec<Tick>>,
    /// Room that is kept free on the right.
    pub beside: f64,
}

/// A drawing with a frame, and the scales for its content.
pub struct Frame {
    /// The drawing.
    pub svg: Svg,
    /// From values to horizontal coordinates.
    pub x: Scale,
    /// From values to vertical coordinates.
    pub y: Scale,
    /// Left, top, right and bottom of the inner area.
    pub area: [f64; 4],
}

/// The names that are drawn, and how many characters of each. Of numbers that have no room, some are left out: a part of
/// a number would be another one.
fn named(names: Vec<Tick>, room: usize) -> (Vec<Tick>, usize) {
    let each = (room / names.len().max(1)).max(2);
    let longest = names.iter().map(|tick| tick.label.chars().count()).max();
    let are_numbers = names.iter().all(|tick| tick.label.parse::<f64>().is_ok());
    match longest {
        Some(longest) if are_numbers && longest >= each => {
            let every = (longest + 1).div_ceil(each);
            (names.into_iter().step_by(every).collect(), longest)
        }
        _ => (names, each),
    }
}

impl Frame {
    /// Draws the frame.
    pub fn new(axes: Axes) -> Self {
        let y_ticks = axes.y.ticks(5);
        let widest = y_ticks.iter().map(|tick| tick.label.len()).max();
        let left = 10.0 + CHAR * widest.unwrap_or(1).min(MOST) as f64;
        let [left, top, right, bottom] = [left, 24.0, WIDTH - 10.0 - axes.beside, HEIGHT - 38.0];
        let x = axes.x.between(left, right);
        let y = axes.y.between(bottom, top);
        let mut svg = Svg::new(axes.class, WIDTH, HEIGHT, axes.description);
        for tick in y_ticks {
            let Some(at) = y.at(tick.value) else { continue };
            svg.line("grid", (left, at), (right, at));
            svg.text(
                "tick",
                (left - 5.0, at + 4.0),
                Anchor::End,
                &tick.label,
                MOST,
            );
        }
        let (x_ticks, room) = match axes.names {
            Some(names) => named(names, ((right - left) / CHAR) as usize),
            None => (x.ticks(6), MOST),
        };
        for tick in x_ticks {
            let Some(at) = x.at(tick.value) else { continue };
            svg.line("axis", (at, bottom), (at, bottom + 4.0));
            svg.text(
                "tick",
                (at, bottom + 16.0),
                Anchor::Middle,
                &tick.label,
                room,
            );
        }
        svg.line("axis", (left, bottom), (right, bottom));
        let of = |label: &str, kind| match kind {
            Kind::Linear => label.to_owned(),
            Kind::Log => format!("{label} (log)"),
            Kind::NearOne(_) => format!("{label} (log distance from 1)"),
        };
        svg.text(
            "label",
            (2.0, 13.0),
            Anchor::Start,
            &of(axes.y_label, y.kind()),
            56,
        );
        let below = (0.5 * (left + right), HEIGHT - 6.0);
        svg.text(
            "label",
            below,
            Anchor::Middle,
            &of(axes.x_label, x.kind()),
            56,
        );
        Self {
            svg,
            x,
            y,
            area: [left, top, right, bottom],
        }
    }

    /// Both coordinates of a point, if it has them.
    pub fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.x.at(x)?, self.y.at(y)?))
    }

    /// Completes the drawing, with a note if there was nothing to draw.
    pub fn finish(mut self, is_empty: bool) -> String {
        if is_empty {
            let [left, top, right, bottom] = self.area;
            let middle = (0.5 * (left + right), 0.5 * (top + bottom));
            self.svg.text(
                "label",
                middle,
                Anchor::Middle,
                "no finite value to show",
                40,
            );
        }
        self.svg.finish()
    }
}
