//! A mean with its interval and its values on a scale that all rows of a table share.

use super::scale::Scale;
use super::svg::Svg;

/// Width of the drawing.
const WIDTH: f64 = 120.0;
/// Height of the drawing.
const HEIGHT: f64 = 18.0;

/// The scale of a column of strips, over all values that are in it.
pub fn strip_scale(values: impl Iterator<Item = f64>) -> Scale {
    Scale::over(values, false, 2.0, WIDTH - 2.0)
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
    let inside = |value: f64| scale.at(value).map(|x| x.clamp(0.0, WIDTH));
    let ends = interval.map(|(low, high)| (inside(low), inside(high)));
    if let Some((Some(low), Some(high))) = ends {
        svg.rect("range", (low, middle - 3.0), (high - low, 6.0), 1.0, "");
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
