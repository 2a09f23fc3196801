//! Points in two directions.

use super::frame::{Axes, Frame};
use super::scale::{Scale, range};

/// A plot of points.
pub struct Scatter<'a> {
    /// What it shows, for those who cannot see it.
    pub description: &'a str,
    /// What is along the horizontal axis.
    pub x_label: &'a str,
    /// What is along the vertical axis.
    pub y_label: &'a str,
    /// Whether the horizontal axis is logarithmic, if the values can be.
    pub is_log: bool,
    /// The points.
    pub points: &'a [Dot],
    /// A line to hold the points against.
    pub line: Reference,
}

/// A point.
pub struct Dot {
    /// Along the horizontal axis.
    pub x: f64,
    /// Along the vertical axis.
    pub y: f64,
    /// Its series, which decides its colour and mark.
    pub series: usize,
    /// What is shown when the pointer rests on it.
    pub title: String,
}

/// A line that points are held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// None.
    None,
    /// Where both values are equal; both axes cover the same values.
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
            Scale::over(ys().chain(zero), false, 0.0, 1.0),
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
