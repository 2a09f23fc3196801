//! Writes SVG for inlining in a page: colors are classes, so one drawing suits light, dark and print.

use std::fmt::Write;

/// A drawing in progress.
pub struct Svg {
    text: String,
}

/// The anchor of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At its start.
    Start,
    /// At its middle.
    Middle,
    /// At its end.
    End,
}

/// Width of a character of an axis label, in units of the drawing. A generous estimate: the font is unknown when a
/// drawing is created.
pub const CHAR: f64 = 6.6;

impl Svg {
    /// Starts a drawing of a width and height in its own units; it scales with the page. `class` is the kind of plot,
    /// and `description` the text for screen readers.
    pub fn new(class: &str, width: f64, height: f64, description: &str) -> Self {
        // Text has the same size in small and large drawings.
        let most = px(0.08 * width);
        let (width, height) = (px(width), px(height));
        let description = escape(description);
        Self {
            text: format!(
                "<svg class=\"plot {class}\" style=\"max-width:{most}rem\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{description}\">"
            ),
        }
    }

    /// Records the position and range of the horizontal axis, for the script of the page.
    pub fn say_axis(&mut self, left: f64, right: f64, from: f64, to: f64) {
        let (left, right) = (px(left), px(right));
        let data = format!(
            " data-left=\"{left}\" data-right=\"{right}\" data-from=\"{from}\" data-to=\"{to}\">"
        );
        if let Some(end) = self.text.find('>') {
            self.text.replace_range(end..=end, &data);
        }
    }

    /// Ends the drawing.
    pub fn finish(mut self) -> String {
        self.text.push_str("</svg>");
        self.text
    }

    /// Starts a group. `attributes` must already be escaped.
    pub fn open(&mut self, class: &str, attributes: &str) {
        let space = if attributes.is_empty() { "" } else { " " };
        let _ = write!(self.text, "<g class=\"{class}\"{space}{attributes}>");
    }

    /// Ends the group.
    pub fn close(&mut self) {
        self.text.push_str("</g>");
    }

    /// The tooltip of the group that was just started.
    pub fn title(&mut self, text: &str) {
        let _ = write!(self.text, "<title>{}</title>", escape(text));
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let (x1, y1, x2, y2) = (px(x1), px(y1), px(x2), px(y2));
        let _ = write!(
            self.text,
            "<path class=\"{class}\" d=\"M{x1} {y1}L{x2} {y2}\"/>"
        );
    }

    /// A path, with a tooltip.
    pub fn path(&mut self, class: &str, d: &str, title: &str) {
        let _ = write!(self.text, "<path class=\"{class}\" d=\"{d}\"");
        self.end_with(title, "path");
    }

    /// A path that is filled with some opacity; nothing if it is empty.
    pub fn area(&mut self, class: &str, d: &str, opacity: f64) {
        if !d.is_empty() {
            let _ = write!(
                self.text,
                "<path class=\"{class}\" d=\"{d}\" fill-opacity=\"{opacity:.2}\"/>"
            );
        }
    }

    /// A rectangle, from its upper left corner. With `opacity` below 1 the page is visible through it, which gives
    /// shades that suit light and dark.
    pub fn rect(
        &mut self,
        class: &str,
        at: (f64, f64),
        size: (f64, f64),
        opacity: f64,
        title: &str,
    ) {
        let ((x, y), (width, height)) = (at, size);
        let (x, y, width, height) = (px(x), px(y), px(width.max(0.0)), px(height.max(0.0)));
        let _ = write!(
            self.text,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\""
        );
        if opacity < 1.0 {
            let _ = write!(self.text, " fill-opacity=\"{:.2}\"", opacity.max(0.0));
        }
        self.end_with(title, "rect");
    }

    /// The mark of a series: every series has a different shape, so that they can be told apart without color.
    pub fn mark(&mut self, class: &str, series: usize, at: (f64, f64), r: f64, title: &str) {
        self.path(class, &shape(series, at, r), title);
    }

    /// A text, truncated to a number of characters; the tooltip contains all of it.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str, most: usize) {
        let (x, y) = (px(at.0), px(at.1));
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let shown = cut(text, most);
        let _ = write!(
            self.text,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{}",
            escape(&shown)
        );
        if shown != text {
            self.title(text);
        }
        self.text.push_str("</text>");
    }

    fn end_with(&mut self, title: &str, element: &str) {
        if title.is_empty() {
            self.text.push_str("/>");
            return;
        }
        self.text.push('>');
        self.title(title);
        let _ = write!(self.text, "</{element}>");
    }
}

/// The path of a series' mark: 8 shapes in rotation.
fn shape(series: usize, (x, y): (f64, f64), r: f64) -> String {
    let at = |dx: f64, dy: f64| format!("{} {}", px(x + dx * r), px(y + dy * r));
    let polygon = |points: &[(f64, f64)]| {
        let points: Vec<String> = points.iter().map(|(dx, dy)| at(*dx, *dy)).collect();
        format!("M{}Z", points.join("L"))
    };
    let cross = |a: f64, b: f64| {
        let arm = 0.35;
        polygon(&[
            (-arm, -a),
            (arm, -a),
            (arm, -arm),
            (a, -arm),
            (a, arm),
            (arm, arm),
            (arm, b),
            (-arm, b),
            (-arm, arm),
            (-a, arm),
            (-a, -arm),
            (-arm, -arm),
        ])
    };
    match series % 8 {
        0 => format!(
            "M{}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0Z",
            at(-1.0, 0.0),
            r = px(r),
            d = px(2.0 * r)
        ),
        1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
        2 => polygon(&[(0.0, -1.2), (1.1, 0.9), (-1.1, 0.9)]),
        3 => polygon(&[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)]),
        4 => polygon(&[(0.0, 1.2), (1.1, -0.9), (-1.1, -0.9)]),
        5 => cross(1.2, 1.2),
        6 => polygon(&[(-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0)]),
        _ => polygon(&[
            (-1.3, 0.0),
            (-0.6, -1.1),
            (0.6, -1.1),
            (1.3, 0.0),
            (0.6, 1.1),
            (-0.6, 1.1),
        ]),
    }
}

/// The mark of a series on its own, for a legend.
pub fn legend_mark(series: usize) -> String {
    let mut svg = Svg::new("key", 26.0, 12.0, "");
    svg.line(&format!("line s{}", series % 8), (1.0, 6.0), (25.0, 6.0));
    svg.mark(
        &format!("mark s{}", series % 8),
        series,
        (13.0, 6.0),
        3.5,
        "",
    );
    let text = svg.finish();
    text.replace("role=\"img\" aria-label=\"\"", "aria-hidden=\"true\"")
}

/// Coordinates to a tenth, which is finer than visible.
pub fn px(value: f64) -> String {
    let value = if value.is_finite() { value } else { 0.0 };
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".into(),
        Some(whole) => whole.to_owned(),
        None if text == "-0.0" => "0".into(),
        None => text,
    }
}

/// The text, escaped for HTML and without control characters.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The first `most` characters, ending in an ellipsis if truncated.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        text.to_owned()
    } else {
        text.chars()
            .take(most.saturating_sub(1))
            .chain(['…'])
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_texts_stay_texts() {
        assert_eq!(
            escape("<\"a\" & 'b'>\u{0}\n"),
            "&lt;&quot;a&quot; &amp; &#39;b&#39;&gt;  "
        );
        assert_eq!(cut("learning_rate", 6), "learn…");
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöü", 0), "…");
    }

    #[test]
    fn coordinates_are_short_and_numbers() {
        let shown: Vec<String> = [1.0, 1.25, -0.04, f64::NAN, f64::INFINITY]
            .iter()
            .map(|v| px(*v))
            .collect();
        assert_eq!(shown, ["1", "1.2", "0", "0", "0"]);
    }
}
