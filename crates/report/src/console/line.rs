//! Text in a terminal: its width, truncation, and removal of control characters.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use runner_core::spec::printable;

/// The columns that a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// A text on one line, without terminal control characters: names and messages come from files and from other programs.
pub fn plain(text: &str) -> String {
    let spaced = text.replace(['\n', '\r', '\t'], " ");
    printable(&spaced).into_owned()
}

/// A text of several lines without other control characters.
pub fn plain_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(plain).collect();
    lines.join("\n")
}

/// A text truncated to a number of columns, with `…` for the missing part.
pub fn cut(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used + 1 > columns {
            break;
        }
        kept.push(c);
    }
    if columns > 0 {
        kept.push('…');
    }
    kept
}

/// A text truncated after a word, unless that would leave less than half of the columns.
pub fn cut_words(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let kept = cut(text, columns);
    match kept.rfind(' ') {
        Some(at) if width(&kept[..at]) >= columns / 2 => format!("{}…", &kept[..=at]),
        _ => kept,
    }
}

/// A name truncated in the middle to a number of columns: run names start alike, and differ at their end.
pub fn cut_name(name: &str, columns: usize) -> String {
    let all = width(name);
    if all <= columns || columns < 4 {
        return cut(name, columns);
    }
    let start = cut(name, columns / 3);
    let mut end = String::new();
    let mut used = width(&start);
    for c in name.chars().rev() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        end.insert(0, c);
    }
    start + &end
}

/// A left-aligned text of exactly this many columns.
pub fn left(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    let missing = columns.saturating_sub(width(&text));
    text + &" ".repeat(missing)
}

/// A right-aligned text of exactly this many columns.
pub fn right(text: &str, columns: usize) -> String {
    let text = cut(text, columns);
    " ".repeat(columns.saturating_sub(width(&text))) + &text
}

/// A curve in at most this many columns: each is the last value of its stretch, from the lowest to the highest of all.
/// NaN leaves a gap.
pub fn sparkline(values: &[f64], columns: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let num = values.len().min(columns);
    let finite = || values.iter().copied().filter(|v| v.is_finite());
    let low = finite().fold(f64::INFINITY, f64::min);
    let high = finite().fold(f64::NEG_INFINITY, f64::max);
    let bar = |value: f64| {
        if !value.is_finite() {
            return ' ';
        }
        // Halved first, so that the span of two large numbers is finite.
        let span = high / 2.0 - low / 2.0;
        let share = if span > 0.0 {
            (value / 2.0 - low / 2.0) / span
        } else {
            0.5
        };
        BARS[((share * 8.0) as usize).min(7)]
    };
    (1..=num)
        .map(|n| bar(values[n * values.len() / num - 1]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_as_wide_as_there_is_room() {
        assert_eq!(sparkline(&[], 8), "");
        assert_eq!(sparkline(&[3.0], 8), "▅");
        assert_eq!(sparkline(&[0.0, 0.5, 1.0], 8), "▁▅█");
        assert_eq!(sparkline(&[0.0, f64::NAN, 1.0], 8), "▁ █");
        assert_eq!(sparkline(&[f64::MIN, f64::MAX], 2), "▁█");
        let long: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!(sparkline(&long, 8), "▁▂▃▄▅▆▇█");
        assert_eq!(sparkline(&long, 0), "");
    }

    #[test]
    fn texts_fit_and_move_no_cursor() {
        assert_eq!(cut("hidden=64", 6), "hidde…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(left("日本", 5), "日本 ");
        assert_eq!(right("7", 3), "  7");
        assert_eq!(cut("a", 0), "");
        assert_eq!(cut_words("the loss is infinite", 14), "the loss is …");
        assert_eq!(cut_words("the hidden=64,rate=0.01", 14), "the hidden=64…");
        assert_eq!(cut_name("hidden=64,rate=0.01-s1", 12), "hid…=0.01-s1");
        assert_eq!(cut_name("hidden=64-s1", 12), "hidden=64-s1");
        assert_eq!(cut_name("hidden=64-s1", 3), "hi…");
        assert_eq!(plain("a\u{1b}[2Jb\nc"), "a\\u001b[2Jb c");
        assert_eq!(plain_lines("a\r\nb\u{7}"), "a\nb\\u0007");
    }
}
