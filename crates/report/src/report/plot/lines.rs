//! Lines with bands, such as learning curves over epochs.

use std::fmt::Write;

use super::frame::{Axes, Frame};
use super::scale::{Kind, Scale, Tick};
use super::svg::{escape, px};

/// Marks on a line, so that it is recognizable without color.
const MARKS: usize = 5;

/// A line plot.
pub struct Lines<'a> {
    /// Its description, for screen readers.
    pub description: &'a str,
    /// The label of the horizontal axis.
    pub x_label: &'a str,
    /// The label of the vertical axis.
    pub y_label: &'a str,
    /// How values are spread over the vertical axis, if they allow it.
    pub y: Kind,
    /// The lines; later ones are drawn over earlier ones.
    pub lines: &'a [Line],
}

/// One line.
pub struct Line {
    /// Its number, which determines its color and mark.
    pub series: usize,
    /// Its name.
    pub name: String,
    /// Its style.
    pub stroke: Stroke,
    /// Its points by ascending x. A non-finite value breaks the line.
    pub points: Vec<Point>,
}

/// Line styles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Solid, with the marks of its series.
    Solid,
    /// Dashed, thin.
    Dashed,
    /// Dotted, thin.
    Dotted,
}

/// A point of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Where it is.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The ends of its band, if it has one.
    pub band: Option<(f64, f64)>,
}

/// Draws lines. Each carries its values as `data-x` and `data-y`, for the script of the page.
pub fn lines(plot: &Lines) -> String {
    let points = || plot.lines.iter().flat_map(|line| &line.points);
    let ys = points().flat_map(|point| {
        let (low, high) = point.band.unwrap_or((point.y, point.y));
        [point.y, low, high]
    });
    let x = Scale::over(points().map(|point| point.x), false, 0.0, 1.0);
    let are_whole = points().all(|point| point.x.fract() == 0.0);
    let mut frame = Frame::new(Axes {
        class: "lines",
        description: plot.description,
        x_label: plot.x_label,
        y_label: plot.y_label,
        x,
        y: Scale::new(ys, plot.y, 0.0, 1.0),
        // Epochs have no fractions.
        names: are_whole.then(|| whole(x.ticks(6))),
        beside: 0.0,
    });
    let ([left, _, right, _], (from, to)) = (frame.area, frame.x.ends());
    frame.svg.say_axis(left, right, from, to);
    for line in plot.lines {
        draw(&mut frame, line);
    }
    let is_empty = points().all(|point| frame.at(point.x, point.y).is_none());
    frame.finish(is_empty)
}

/// Only integer values.
fn whole(mut ticks: Vec<Tick>) -> Vec<Tick> {
    ticks.retain(|tick| tick.value.fract() == 0.0);
    for tick in &mut ticks {
        if let Some((whole, _)) = tick
            .label
            .split_once('.')
            .filter(|_| !tick.label.contains('e'))
        {
            tick.label = whole.to_owned();
        }
    }
    ticks
}

fn draw(frame: &mut Frame, line: &Line) {
    let class = format!("s{}", line.series % 8);
    let mut data = format!("data-name=\"{}\" data-x=\"", escape(&line.name));
    let finite = line.points.iter().filter(|point| point.y.is_finite());
    let finite: Vec<&Point> = finite.collect();
    for point in &finite {
        let _ = write!(data, "{} ", point.x);
    }
    data.push_str("\" data-y=\"");
    for point in &finite {
        let _ = write!(data, "{} ", crate::report::short_number(point.y));
    }
    data.push('"');
    frame.svg.open(&format!("series {class}"), &data);
    frame.svg.title(&title(line, &finite));
    for piece in line
        .points
        .chunk_by(|a, b| a.y.is_finite() && b.y.is_finite())
    {
        let band = band(frame, piece);
        if !band.is_empty() {
            frame.svg.path("band", &band, "");
        }
        let at = piece.iter().filter_map(|point| frame.at(point.x, point.y));
        let at: Vec<(f64, f64)> = at.collect();
        let class = match line.stroke {
            Stroke::Solid => "line",
            Stroke::Dashed => "line dashed",
            Stroke::Dotted => "line dotted",
        };
        match at.as_slice() {
            [] => {}
            [only] => frame.svg.mark("mark", line.series, *only, 3.0, ""),
            _ => frame.svg.path(class, &path(&at), ""),
        }
        if line.stroke == Stroke::Solid && at.len() > 1 {
            // Not at the same positions as those of other lines, which would hide them.
            let every = at.len().div_ceil(MARKS).max(1);
            let places = (0..at.len()).skip((line.series + 1) % every).step_by(every);
            for place in places {
                frame.svg.mark("mark", line.series, at[place], 3.0, "");
            }
        }
    }
    frame.svg.close();
}

fn title(line: &Line, finite: &[&Point]) -> String {
    match finite.last() {
        Some(last) => format!(
            "{}: {} at {}",
            line.name,
            crate::report::short_number(last.y),
            last.x
        ),
        None => format!("{}: no finite value", line.name),
    }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut d = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let _ = write!(
            d,
            "{}{} {}",
            if at == 0 { "M" } else { "L" },
            px(*x),
            px(*y)
        );
    }
    d
}

/// The band of an unbroken piece: along its upper end and back along the lower one. On a logarithmic axis, an end at or
/// below 0 is clipped to the axis.
fn band(frame: &Frame, piece: &[Point]) -> String {
    let [_, top, _, bottom] = frame.area;
    let ends = piece.iter().filter_map(|point| {
        let (low, high) = point.band?;
        let x = frame.x.at(point.x)?;
        let high = frame.y.at(high)?.clamp(top, bottom);
        let low = frame.y.at(low).unwrap_or(bottom).clamp(top, bottom);
        Some((x, high, low))
    });
    let ends: Vec<(f64, f64, f64)> = ends.collect();
    if ends.len() < 2 {
        return String::new();
    }
    let upper: Vec<(f64, f64)> = ends.iter().map(|(x, high, _)| (*x, *high)).collect();
    let lower: Vec<(f64, f64)> = ends.iter().rev().map(|(x, _, low)| (*x, *low)).collect();
    format!("{}Z", path(&[upper, lower].concat()))
}
