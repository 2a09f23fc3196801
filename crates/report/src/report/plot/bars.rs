//! Bar charts, such as the costs of trials.

use super::scale::{Scale, range};
use super::svg::{Anchor, CHAR, Svg};

/// Width of the drawing.
const WIDTH: f64 = 420.0;
/// Height of a bar including its margin.
const ROW: f64 = 22.0;
/// Maximum length of a name.
const MOST: usize = 24;

/// A bar chart starting at 0.
pub struct Bars<'a> {
    /// Its description, for screen readers.
    pub description: &'a str,
    /// The quantity of the bars.
    pub label: &'a str,
    /// The bars, from top to bottom.
    pub bars: &'a [Bar],
}

/// A bar.
pub struct Bar {
    /// Its name.
    pub name: String,
    /// Its length; nothing is drawn for a negative or non-finite one.
    pub value: f64,
    /// The formatted value.
    pub text: String,
    /// The rank of what it is about, if it has one; shown by whoever names it.
    pub rank: Option<usize>,
    /// A reference value, drawn as a line across.
    pub mark: Option<f64>,
    /// The tooltip.
    pub title: String,
}

/// Draws bars.
pub fn bars(plot: &Bars) -> String {
    let longest = plot.bars.iter().map(|bar| bar.name.chars().count()).max();
    let left = 8.0 + CHAR * longest.unwrap_or(0).min(MOST) as f64;
    let written = plot.bars.iter().map(|bar| bar.text.chars().count()).max();
    let right = WIDTH - 10.0 - CHAR * written.unwrap_or(0) as f64;
    let values = plot.bars.iter().flat_map(|bar| [Some(bar.value), bar.mark]);
    let (_, most) = range(values.flatten()).unwrap_or((0.0, 1.0));
    let scale = Scale::exactly(0.0, if most > 0.0 { most } else { 1.0 }, left, right);
    let height = 24.0 + ROW * plot.bars.len() as f64;
    let mut svg = Svg::new("bars", WIDTH, height, plot.description);
    svg.text("label", (2.0, 13.0), Anchor::Start, plot.label, 60);
    for (at, bar) in plot.bars.iter().enumerate() {
        let y = 22.0 + ROW * at as f64;
        svg.open("s0", "");
        svg.title(&bar.title);
        svg.text("tick", (left - 5.0, y + 13.0), Anchor::End, &bar.name, MOST);
        let end = scale.at(bar.value.max(0.0)).unwrap_or(left);
        svg.rect("fill", (left, y + 3.0), (end - left, ROW - 8.0), 1.0, "");
        let mark = bar
            .mark
            .filter(|mark| *mark >= 0.0)
            .and_then(|mark| scale.at(mark));
        if let Some(x) = mark {
            svg.line("across", (x, y), (x, y + ROW - 2.0));
        }
        let after = (mark.unwrap_or(end).max(end) + 5.0, y + 14.0);
        svg.text("tick", after, Anchor::Start, &bar.text, 20);
        svg.close();
    }
    svg.finish()
}
