//! Scatter plots.

use super::frame::{Axes, Frame};
use super::scale::{Kind, Scale, range};

/// A scatter plot.
pub struct Scatter<'a> {
    /// Its description, for screen readers.
    pub description: &'a str,
    /// The label of the horizontal axis.
    pub x_label: &'a str,
    /// The label of the vertical axis.
    pub y_label: &'a str,
    /// Whether the horizontal axis is logarithmic, if the values allow it.
    pub is_log: bool,
    /// How values are spread over the vertical axis, if they allow it.
    pub y: Kind,
    /// The points.
    pub points: &'a [Dot],
    /// A reference line.
    pub line: Reference,
}

/// A point.
pub struct Dot {
    /// The horizontal value.
    pub x: f64,
    /// The vertical value.
    pub y: f64,
    /// Its series, which determines its color and mark.
    pub series: usize,
    /// The tooltip.
    pub title: String,
}

/// The reference lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// None.
    None,
    /// Where both values are equal; both axes cover the same range.
    Diagonal,
    /// Where the vertical value is 0.
    Zero,
}

/// Draws points.
pub fn scatter(plot: &Scatter) -> String {
    let xs = || plot.points.iter().map(|dot| dot.x);
    let ys = || plot.points.iter().map(|dot| dot.y);
    let zero = (plot.line == Reference::Zero).then_some(0.0);
    let (x, y) = match plot.line {
        Reference::Diagonal => {
            let both = Scale::over(xs().chain(ys()), false, 0.0, 1.0);
            (both, both)
        }
        _ => (
            Scale::over(xs(), plot.is_log, 0.0, 1.0),
            Scale::new(ys().chain(zero), plot.y, 0.0, 1.0),
        ),
    };
    let mut frame = Frame::new(Axes {
        class: "scatter",
        description: plot.description,
        x_label: plot.x_label,
        y_label: plot.y_label,
        x,
        y,
        names: None,
        beside: 0.0,
    });
    let [left, _, right, _] = frame.area;
    match plot.line {
        Reference::None => {}
        Reference::Diagonal => {
            if let Some((low, high)) = range(xs().chain(ys())) {
                let ends = (frame.at(low, low), frame.at(high, high));
                if let (Some(from), Some(to)) = ends {
                    frame.svg.line("reference", from, to);
                }
            }
        }
        Reference::Zero => {
            if let Some(y) = frame.y.at(0.0) {
                frame.svg.line("reference", (left, y), (right, y));
            }
        }
    }
    let mut is_empty = true;
    for dot in plot.points {
        if let Some(at) = frame.at(dot.x, dot.y) {
            is_empty = false;
            let class = format!("mark s{}", dot.series % 8);
            frame.svg.mark(&class, dot.series, at, 3.5, &dot.title);
        }
    }
    frame.finish(is_empty)
}
