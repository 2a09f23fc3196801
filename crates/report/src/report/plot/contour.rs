//! Contours: a value over two numeric axes, interpolated linearly between the points where it is known.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::frame::{Axes, Frame};
use super::scale::{Kind, Scale, range};
use super::svg::{Anchor, CHAR, px};
use super::triangles::{between, triangles};

/// Bands of values, about.
const BANDS: usize = 6;

/// Width of the key of values.
const KEY: f64 = 12.0;

/// A contour plot.
pub struct Contour<'a> {
    /// Its description, for screen readers.
    pub description: &'a str,
    /// The label of the horizontal axis.
    pub x_label: &'a str,
    /// The label of the vertical axis.
    pub y_label: &'a str,
    /// Whether the axes are logarithmic, if the values allow it.
    pub is_log: [bool; 2],
    /// Where the value is known.
    pub points: &'a [Known],
    /// How the bands of values are spread, if the values allow it.
    pub bands: Kind,
    /// Whether low values are dark.
    pub is_low_dark: bool,
}

/// A point where the value is known.
pub struct Known {
    /// The horizontal place.
    pub x: f64,
    /// The vertical place.
    pub y: f64,
    /// The value.
    pub value: f64,
    /// The tooltip.
    pub title: String,
}

/// Draws contours; nothing is drawn outside of the points.
pub fn contour(plot: &Contour) -> String {
    let finite = plot.points.iter().filter(|known| known.value.is_finite());
    let values = || finite.clone().map(|known| known.value);
    let bands = Bands::over(values(), plot.bands, plot.is_low_dark);
    let widest = bands.labels().map(|label| label.len()).max();
    let mut frame = Frame::new(Axes {
        class: "contour",
        description: plot.description,
        x_label: plot.x_label,
        y_label: plot.y_label,
        x: Scale::over(finite.clone().map(|of| of.x), plot.is_log[0], 0.0, 1.0),
        y: Scale::over(finite.clone().map(|of| of.y), plot.is_log[1], 0.0, 1.0),
        names: None,
        beside: KEY + 12.0 + CHAR * widest.unwrap_or(0) as f64,
    });
    let [left, top, right, bottom] = frame.area;
    // Points in the same place have the mean of their values.
    let mut places: BTreeMap<(i64, i64), Vec<f64>> = BTreeMap::new();
    let mut drawn = Vec::new();
    for known in finite.clone() {
        if let Some((x, y)) = frame.at(known.x, known.y) {
            let place = ((10.0 * x).round() as i64, (10.0 * y).round() as i64);
            places.entry(place).or_default().push(known.value);
            drawn.push(((x, y), known));
        }
    }
    let of_places = places.into_iter().map(|((x, y), values)| {
        let mean = values.iter().map(|value| value / values.len() as f64).sum();
        ((x as f64 / 10.0, y as f64 / 10.0), mean)
    });
    let of_places: Vec<((f64, f64), f64)> = of_places.collect();
    let unit = |(x, y): (f64, f64)| ((x - left) / (right - left), (y - top) / (bottom - top));
    let places: Vec<_> = of_places.iter().map(|(place, _)| unit(*place)).collect();
    let corners = triangles(&places);
    for (at, [low, high]) in bands.ends.iter().enumerate() {
        let mut d = String::new();
        for triangle in &corners {
            let polygon = between(triangle.map(|corner| of_places[corner]), *low, *high);
            for (first, (x, y)) in polygon.iter().enumerate() {
                let letter = if first == 0 { "M" } else { "L" };
                let _ = write!(d, "{letter}{} {}", px(*x), px(*y));
            }
            if !polygon.is_empty() {
                d.push('Z');
            }
        }
        frame.svg.area("cell", &d, bands.shade(at));
    }
    for ((x, y), known) in &drawn {
        frame.svg.mark("known", 0, (*x, *y), 2.5, &known.title);
    }
    draw_key(&mut frame, &bands);
    frame.finish(drawn.is_empty())
}

/// The bands of values, ascending.
struct Bands {
    ends: Vec<[f64; 2]>,
    labels: Vec<(f64, String)>,
    scale: Scale,
    is_low_dark: bool,
}

impl Bands {
    fn over(values: impl Iterator<Item = f64> + Clone, kind: Kind, is_low_dark: bool) -> Self {
        let (low, high) = range(values.clone()).unwrap_or((0.0, 1.0));
        let scale = match kind {
            Kind::Linear => Scale::exactly(low, high, 0.0, 1.0),
            _ => Scale::new(values, kind, 0.0, 1.0),
        };
        let ticks = scale.ticks(BANDS).into_iter();
        let labels: Vec<(f64, String)> = ticks.map(|tick| (tick.value, tick.label)).collect();
        let inner = labels.iter().map(|(value, _)| *value);
        let inner = inner.filter(|value| low < *value && *value < high);
        let ends: Vec<f64> = [low].into_iter().chain(inner).chain([high]).collect();
        Self {
            ends: ends.windows(2).map(|pair| [pair[0], pair[1]]).collect(),
            labels,
            scale,
            is_low_dark,
        }
    }

    fn labels(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().map(|(_, label)| label.as_str())
    }

    /// The opacity of a band: the stronger, the better.
    fn shade(&self, at: usize) -> f64 {
        let share = (at as f64 + 0.5) / self.ends.len() as f64;
        let share = if self.is_low_dark { 1.0 - share } else { share };
        0.04 + 0.88 * share
    }
}

/// The colors of the values, on the right.
fn draw_key(frame: &mut Frame, bands: &Bands) {
    let [_, top, right, bottom] = frame.area;
    let scale = bands.scale.between(bottom, top);
    let x = right + 8.0;
    for (at, ends) in bands.ends.iter().enumerate() {
        if let [Some(from), Some(to)] = ends.map(|end| scale.at(end)) {
            let size = (KEY, from - to);
            frame.svg.rect("cell", (x, to), size, bands.shade(at), "");
        }
    }
    for (value, label) in &bands.labels {
        if let Some(y) = scale.at(*value) {
            let at = (x + KEY + 4.0, y + 4.0);
            frame.svg.text("tick", at, Anchor::Start, label, 12);
        }
    }
}
