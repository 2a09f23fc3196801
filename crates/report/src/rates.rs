//! The plot and the page of a learning rate range test.

use std::fmt::Write as _;

use crate::report::plot::escape;
use runner_statistics::RatePoint;

/// What is drawn.
pub struct RatePlot<'a> {
    /// The run that was trained.
    pub run: &'a str,
    /// Where.
    pub device: &'a str,
    /// The updates, by ascending learning rate.
    pub points: &'a [RatePoint],
    /// Suggested learning rates, with how each was found.
    pub suggestions: &'a [(&'static str, f64)],
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
/// Left, top, right and bottom of what is inside the axes.
const AREA: [f64; 4] = [70.0, 28.0, 620.0, 310.0];
const COLORS: [&str; 2] = ["#b3261e", "#1a7f37"];

/// The scales of a plot: the logarithm of the learning rate, and the loss.
struct Scales {
    rates: [f64; 2],
    losses: [f64; 2],
}

impl Scales {
    /// Over all learning rates, and losses up to somewhat more than the first smoothed one: a diverging loss would leave
    /// the others no room.
    fn of(points: &[RatePoint]) -> Option<Self> {
        let (first, last) = (points.first()?, points.last()?);
        let smoothed = || points.iter().map(|point| point.smoothed);
        let low = smoothed().fold(f64::INFINITY, f64::min);
        let fallen = (first.smoothed - low).max(low.abs() * 0.05).max(1e-12);
        let high = smoothed().fold(low, f64::max).min(first.smoothed + fallen);
        let margin = 0.05 * (high - low).max(1e-12);
        Some(Self {
            rates: [first.learning_rate.log10(), last.learning_rate.log10()],
            losses: [low - margin, high + margin],
        })
    }

    fn x(&self, rate: f64) -> f64 {
        let [low, high] = self.rates;
        let part = (rate.log10() - low) / (high - low).max(1e-12);
        AREA[0] + part * (AREA[2] - AREA[0])
    }

    fn y(&self, loss: f64) -> f64 {
        let [low, high] = self.losses;
        let part = ((loss - low) / (high - low)).clamp(0.0, 1.0);
        AREA[3] - part * (AREA[3] - AREA[1])
    }
}

/// The losses over the learning rates, as an image of vectors.
pub fn plot(plot: &RatePlot<'_>) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Loss over learning rate of {}</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n",
        escape(plot.run)
    );
    if let Some(scales) = Scales::of(plot.points) {
        axes(&mut svg, &scales);
        line(
            &mut svg,
            &scales,
            plot.points,
            |point| point.loss,
            "#bbb",
            1.0,
        );
        line(
            &mut svg,
            &scales,
            plot.points,
            |point| point.smoothed,
            "#0b57d0",
            2.0,
        );
        for (at, (how, rate)) in plot.suggestions.iter().enumerate() {
            let (x, color) = (scales.x(*rate), COLORS[at % 2]);
            let y = AREA[1] + 14.0 + 16.0 * at as f64;
            // On the side that has room.
            let (beside, anchor) = if x > f64::midpoint(AREA[0], AREA[2]) {
                (x - 5.0, "end")
            } else {
                (x + 5.0, "start")
            };
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {}V{}\" stroke=\"{color}\" stroke-dasharray=\"4 3\" fill=\"none\"/>\n\
                 <text x=\"{beside:.1}\" y=\"{y}\" text-anchor=\"{anchor}\" fill=\"{color}\">{how}: {rate:.2e}</text>",
                AREA[1], AREA[3],
            );
        }
    }
    svg + "</svg>\n"
}

fn axes(svg: &mut String, scales: &Scales) {
    let [left, top, right, bottom] = AREA;
    let _ = writeln!(
        svg,
        "<path d=\"M{left} {top}V{bottom}H{right}\" stroke=\"#333\" fill=\"none\"/>"
    );
    let [low, high] = scales.rates.map(|rate| rate.ceil() as i32);
    for power in low..=high {
        let x = scales.x(10f64.powi(power));
        if x > right + 0.5 {
            continue;
        }
        let _ = writeln!(
            svg,
            "<path d=\"M{x:.1} {top}V{bottom}\" stroke=\"#eee\"/>\n<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">1e{power}</text>",
            bottom + 16.0
        );
    }
    for part in 0..=4 {
        let loss = scales.losses[0] + (scales.losses[1] - scales.losses[0]) * f64::from(part) / 4.0;
        let y = scales.y(loss);
        let _ = writeln!(
            svg,
            "<path d=\"M{left} {y:.1}H{right}\" stroke=\"#eee\"/>\n<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{loss:.3}</text>",
            left - 6.0,
            y + 4.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">learning rate</text>\n<text x=\"14\" y=\"14\">loss (gray) and its moving average (blue)</text>",
        (left + right) / 2.0,
        bottom + 36.0
    );
}

fn line(
    svg: &mut String,
    scales: &Scales,
    points: &[RatePoint],
    of: impl Fn(&RatePoint) -> f64,
    color: &str,
    width: f64,
) {
    let _ = write!(svg, "<path d=\"");
    for (at, point) in points.iter().enumerate() {
        let (x, y) = (scales.x(point.learning_rate), scales.y(of(point)));
        let _ = write!(svg, "{}{x:.1} {y:.1}", if at == 0 { "M" } else { "L" });
    }
    let _ = writeln!(
        svg,
        "\" stroke=\"{color}\" stroke-width=\"{width}\" fill=\"none\"/>"
    );
}

/// The plot with all numbers as a page without scripts and other files.
pub fn page(of: &RatePlot<'_>) -> String {
    let title = format!("Learning rates of {}", escape(of.run));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>\nbody {{ font: 14px/1.4 system-ui, sans-serif; margin: 1.5rem; max-width: 60rem; }}\n\
         td, th {{ text-align: right; padding: 0 1rem 0 0; font-variant-numeric: tabular-nums; }}\nsvg {{ max-width: 100%; }}\n</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<p>{} updates on {}.</p>\n<ul>\n",
        of.points.len(),
        escape(of.device),
    );
    for (how, rate) in of.suggestions {
        let _ = writeln!(
            page,
            "<li>{how}: <code>learning_rate = {rate:.2e}</code></li>"
        );
    }
    page += "</ul>\n";
    page += &plot(of);
    page += "<table>\n<tr><th>learning rate</th><th>loss</th><th>moving average</th></tr>\n";
    for point in of.points {
        let _ = writeln!(
            page,
            "<tr><td>{:.3e}</td><td>{:.5}</td><td>{:.5}</td></tr>",
            point.learning_rate, point.loss, point.smoothed
        );
    }
    page + "</table>\n</body>\n</html>\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(step: i32) -> RatePoint {
        let rate = 10f64.powi(step - 5);
        RatePoint {
            learning_rate: rate,
            loss: f64::from(3 - step).abs() + 1.0,
            smoothed: f64::from(3 - step).abs() + 1.0,
        }
    }

    #[test]
    fn a_plot_has_every_update_and_suggestion() {
        let points: Vec<RatePoint> = (0..6).map(point).collect();
        let of = RatePlot {
            run: "a<b",
            device: "flex",
            points: &points,
            suggestions: &[("steepest descent", 1e-3)],
        };
        let page = page(&of);
        assert!(page.contains("a&lt;b") && !page.contains("a<b"));
        assert_eq!(page.matches("<tr><td>").count(), 6);
        let svg = plot(&of);
        assert!(svg.contains("steepest descent: 1.00e-3"), "{svg}");
        assert_eq!(svg.matches('L').count(), 2 * 5 + 1, "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        let empty = RatePlot {
            points: &[],
            suggestions: &[],
            ..of
        };
        assert!(plot(&empty).ends_with("</svg>\n"));
    }
}
