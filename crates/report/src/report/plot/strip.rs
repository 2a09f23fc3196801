//! A mean with its interval and its values on a scale that all rows of a table share.

use super::scale::{Kind, Scale};
use super::svg::Svg;

/// Width of the drawing.
const WIDTH: f64 = 120.0;
/// Height of the drawing.
const HEIGHT: f64 = 18.0;

/// The scale of a column of strips, over all of its values.
pub fn strip_scale(values: impl Iterator<Item = f64>, kind: Kind) -> Scale {
    Scale::new(values, kind, 2.0, WIDTH - 2.0)
}

/// Where a value is, or would be: what a logarithmic scale does not have is before all others.
fn place(scale: &Scale, value: f64) -> Option<f64> {
    let is_before = scale.kind() == Kind::Log && value <= 0.0;
    if is_before {
        Some(-1.0)
    } else {
        scale.at(value)
    }
}

/// Whether an interval extends beyond its strip.
pub fn is_beyond_strip(scale: &Scale, interval: (f64, f64)) -> bool {
    let ends = [place(scale, interval.0), place(scale, interval.1)];
    let mut ends = ends.into_iter().flatten();
    ends.any(|x| !(0.0..=WIDTH).contains(&x))
}

/// Draws a row's strip.
pub fn strip(
    scale: &Scale,
    mean: f64,
    interval: Option<(f64, f64)>,
    values: &[f64],
    title: &str,
) -> String {
    let mut svg = Svg::new("strip", WIDTH, HEIGHT, title);
    svg.open("s0", "");
    svg.title(title);
    let middle = 0.5 * HEIGHT;
    svg.line("axis", (0.0, middle), (WIDTH, middle));
    let inside = |value: f64| place(scale, value).map(|x| x.clamp(0.0, WIDTH));
    let ends = interval.map(|(low, high)| (inside(low), inside(high)));
    if let Some((Some(low), Some(high))) = ends {
        svg.rect("range", (low, middle - 3.0), (high - low, 6.0), 1.0, "");
    }
    // Arrows where the interval extends further.
    for (end, way) in interval
        .into_iter()
        .flat_map(|(low, high)| [(low, 1.0), (high, -1.0)])
    {
        if let Some(x) = place(scale, end).filter(|x| !(0.0..=WIDTH).contains(x)) {
            let tip = x.clamp(0.5, WIDTH - 0.5);
            svg.line("bar", (tip + 4.0 * way, middle - 4.0), (tip, middle));
            svg.line("bar", (tip, middle), (tip + 4.0 * way, middle + 4.0));
        }
    }
    for value in values {
        if let Some(x) = inside(*value) {
            svg.line("seed", (x, middle - 6.0), (x, middle + 6.0));
        }
    }
    if let Some(x) = inside(mean) {
        svg.mark("mark", 0, (x, middle), 4.0, "");
    }
    svg.close();
    svg.finish()
}
