//! Differences from a baseline side by side: a point with its interval for each, and a line at no difference.

use super::scale::{Scale, range};
use super::svg::{Anchor, CHAR, Svg};

/// Width of the drawing.
const WIDTH: f64 = 420.0;
/// Height of a row.
const ROW: f64 = 22.0;
/// Most characters of a name.
const MOST: usize = 28;
/// A difference is not shown if it is this many times as large as three quarters of all.
const FAR: f64 = 8.0;
/// The fewest differences of which one may not be shown.
const FEWEST: usize = 4;

/// A plot of differences.
pub struct Forest<'a> {
    /// What it shows, for those who cannot see it.
    pub description: &'a str,
    /// What the differences are of.
    pub label: &'a str,
    /// Differences that do not matter: from minus this to this.
    pub within: Option<f64>,
    /// The differences, from top to bottom.
    pub rows: &'a [Apart],
}

/// A difference.
pub struct Apart {
    /// Whose it is.
    pub name: String,
    /// The difference.
    pub difference: f64,
    /// The ends of its interval, if it has one.
    pub interval: Option<(f64, f64)>,
    /// What is claimed of it, in a few characters.
    pub text: String,
    /// What is shown when the pointer rests on it.
    pub title: String,
}

impl Forest<'_> {
    /// What is shown: 0, all differences except for a few that would leave no room for the others, and of intervals no
    /// more than as far beyond them again.
    fn shown(&self) -> (f64, f64) {
        let within = self.within.into_iter().flat_map(|within| [-within, within]);
        let mut sizes: Vec<f64> = self.rows.iter().map(|row| row.difference.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let usual = sizes.get((3 * sizes.len()).div_ceil(4).saturating_sub(1));
        let most = usual.filter(|usual| **usual > 0.0 && sizes.len() >= FEWEST);
        let most = most.map_or(f64::INFINITY, |usual| FAR * usual);
        let values = self.rows.iter().map(|row| row.difference);
        let values = values.filter(|difference| difference.abs() <= most);
        let (low, high) = range(values.chain([0.0]).chain(within)).unwrap_or((-1.0, 1.0));
        let reach = if high > low { high - low } else { 1.0 };
        let ends = || self.rows.iter().filter_map(|row| row.interval);
        let lowest = ends().map(|(low, _)| low).fold(low, f64::min);
        let highest = ends().map(|(_, high)| high).fold(high, f64::max);
        (
            lowest.max(low - 0.5 * reach),
            highest.min(high + 0.5 * reach),
        )
    }

    /// Whether an interval or a difference is beyond what is shown.
    pub fn is_cut(&self) -> bool {
        let (low, high) = self.shown();
        let ends = |row: &Apart| row.interval.unwrap_or((row.difference, row.difference));
        let mut ends = self.rows.iter().map(ends);
        ends.any(|(from, to)| from < low || to > high)
    }
}

/// Draws differences.
pub fn forest(plot: &Forest) -> String {
    let longest = plot.rows.iter().map(|row| row.name.chars().count()).max();
    let left = 10.0 + CHAR * longest.unwrap_or(0).min(MOST) as f64;
    let written = plot.rows.iter().map(|row| row.text.chars().count()).max();
    let right = WIDTH - 12.0 - CHAR * written.unwrap_or(0) as f64;
    let (least, most) = plot.shown();
    let scale = Scale::over([least, most].into_iter(), false, left, right);
    let bottom = 22.0 + ROW * plot.rows.len() as f64;
    let mut svg = Svg::new("forest", WIDTH, bottom + 22.0, plot.description);
    svg.text("label", (2.0, 13.0), Anchor::Start, plot.label, 60);
    if let Some(within) = plot.within
        && let (Some(from), Some(to)) = (scale.at(-within), scale.at(within))
    {
        svg.rect(
            "range s6",
            (from, 20.0),
            (to - from, bottom - 20.0),
            1.0,
            "",
        );
    }
    for tick in scale.ticks(4) {
        if let Some(x) = scale.at(tick.value) {
            svg.line("grid", (x, 20.0), (x, bottom));
            svg.text("tick", (x, bottom + 15.0), Anchor::Middle, &tick.label, 12);
        }
    }
    if let Some(x) = scale.at(0.0) {
        svg.line("reference", (x, 20.0), (x, bottom));
    }
    for (at, row) in plot.rows.iter().enumerate() {
        let y = 22.0 + ROW * (at as f64 + 0.5);
        svg.open("s0", "");
        svg.title(&row.title);
        svg.text("tick", (left - 6.0, y + 4.0), Anchor::End, &row.name, MOST);
        if let Some((low, high)) = row.interval
            && let (Some(from), Some(to)) = (
                scale.at(low.clamp(least, most)),
                scale.at(high.clamp(least, most)),
            )
        {
            svg.line("bar", (from, y), (to, y));
            // A cap, or an arrow where it goes on.
            if high >= least {
                arrow(&mut svg, (from, y), if low < least { 5.0 } else { 0.0 });
            }
            if low <= most {
                arrow(&mut svg, (to, y), if high > most { -5.0 } else { 0.0 });
            }
        }
        if !(least..=most).contains(&row.difference) {
            let (end, wing) = if row.difference > most {
                (most, -5.0)
            } else {
                (least, 5.0)
            };
            if let Some(x) = scale.at(end) {
                arrow(&mut svg, (x, y), wing);
            }
        } else if let Some(x) = scale.at(row.difference) {
            svg.mark("mark", 0, (x, y), 4.5, "");
        }
        svg.text("tick", (right + 6.0, y + 4.0), Anchor::Start, &row.text, 20);
        svg.close();
    }
    svg.finish()
}

/// The cap of an interval; with wings, an arrow that says that it goes on.
fn arrow(svg: &mut Svg, (x, y): (f64, f64), wing: f64) {
    svg.line("bar", (x + wing, y - 4.0), (x, y));
    svg.line("bar", (x, y), (x + wing, y + 4.0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(differences: &[f64]) -> Vec<Apart> {
        let row = |difference: &f64| Apart {
            name: format!("lr={difference}"),
            difference: *difference,
            interval: Some((difference - 0.01, difference + 0.01)),
            text: "worse".into(),
            title: String::new(),
        };
        differences.iter().map(row).collect()
    }

    fn of(rows: &[Apart]) -> Forest<'_> {
        Forest {
            description: "differences",
            label: "difference",
            within: None,
            rows,
        }
    }

    #[test]
    fn a_far_difference_leaves_room_for_the_others() {
        let near = rows(&[-0.02, 0.03, 0.01, -0.04]);
        assert!(!of(&near).is_cut());
        let far = rows(&[-0.02, 0.03, 0.01, -0.04, -9.0]);
        let plot = of(&far);
        assert!(plot.is_cut());
        let (low, high) = plot.shown();
        assert!(low > -0.1 && high < 0.1, "{low} to {high}");
        // Four points, and an arrow in place of the fifth.
        assert_eq!(forest(&plot).matches("class=\"mark").count(), 4);
        // Of few, none is far.
        let few = rows(&[-0.02, 0.03, -9.0]);
        assert!(!of(&few).is_cut());
    }
}
