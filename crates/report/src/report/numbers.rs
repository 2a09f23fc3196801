//! Numbers and values formatted for readers.

use std::cmp::Ordering;

use serde_json::Value as Json;

use runner_statistics::{Description, Interval};

/// A number with 4 significant digits, without an exponent if possible.
pub fn short_number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if !(1e-4..1e6).contains(&v) => format!("{value:.3e}"),
        v => {
            let digits = (3 - v.log10().floor() as i32).clamp(0, 6) as usize;
            format!("{value:.digits$}")
        }
    }
}

/// `0.9713 ± 0.0021`: to two digits of the standard deviation, which is all that the spread justifies.
pub fn mean_and_sd(sample: &Description) -> String {
    let mean = sample.mean;
    match sample.sd {
        Some(sd) if sd > 0.0 => match digits_of(sd) {
            Some(digits) => format!("{mean:.digits$} ± {sd:.digits$}"),
            None => format!("{} ± {sd:.1e}", with_all_digits(mean)),
        },
        Some(_) => format!("{} ± 0", short_number(mean)),
        None => short_number(mean),
    }
}

/// `0.9661 to 0.9765`, to two digits of half its width.
pub fn interval(interval: &Interval) -> String {
    let (low, high) = (interval.low, interval.high);
    // Narrower intervals are rounding errors of equal values.
    let least = 1e-9 * low.abs().max(high.abs());
    // Halved first, so that the span of two large numbers is finite.
    let half = high / 2.0 - low / 2.0;
    match digits_of(half).filter(|_| half > least) {
        Some(digits) => format!("{low:.digits$} to {high:.digits$}"),
        None if half > least => format!("{} to {}", with_all_digits(low), with_all_digits(high)),
        None => format!("{} to {}", short_number(low), short_number(high)),
    }
}

/// A number whose spread is too small or too large for decimals.
fn with_all_digits(value: f64) -> String {
    if (1e-3..1e6).contains(&value.abs()) {
        format!("{value:.MOST_DIGITS$}")
    } else {
        short_number(value)
    }
}

/// A fraction as a percentage, such as `5 %`.
pub fn percent(share: f64) -> String {
    let share = 100.0 * share;
    let trimmed = |digits: &str| {
        digits
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
    };
    match share.abs() {
        small if small > 0.0 && small < 1e-3 => {
            let text = format!("{share:.3e}");
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            format!("{}e{power} %", trimmed(digits))
        }
        _ => format!("{} %", trimmed(&format!("{share:.4}"))),
    }
}

/// More decimals than this are not shown.
const MOST_DIGITS: usize = 6;

/// The decimals that show two digits of a spread; none if that takes too many, or if the spread is huge.
fn digits_of(spread: f64) -> Option<usize> {
    let digits = 1 - spread.log10().floor() as i32;
    let is_shown = spread < 1e6 && digits <= MOST_DIGITS as i32;
    is_shown.then_some(digits.max(0) as usize)
}

/// The value of a key as text. A table is labeled by its type, followed by its other keys.
pub fn value_text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Object(table) => {
            let more = table.iter().filter(|(key, _)| *key != "type");
            let more = more.map(|(key, value)| format!("{key}={}", value_text(value)));
            let kind = table.get("type").map(value_text);
            kind.into_iter().chain(more).collect::<Vec<_>>().join(" ")
        }
        other => other.to_string(),
    }
}

/// The natural order of values: numbers in texts by size, the rest as text.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let ((word_a, number_a, rest_a), (word_b, number_b, rest_b)) = (split(a), split(b));
        let order = word_a.cmp(word_b).then(match (number_a, number_b) {
            (Some(a), Some(b)) => a.total_cmp(&b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        });
        if order != Ordering::Equal || (number_a.is_none() && number_b.is_none()) {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
}

/// The text before the first number, the number, and the rest.
fn split(text: &str) -> (&str, Option<f64>, &str) {
    let Some(start) = text.find(|c: char| c.is_ascii_digit()) else {
        return (text, None, "");
    };
    let number = |c: char| c.is_ascii_digit() || ".eE-".contains(c);
    let end = text[start..]
        .find(|c| !number(c))
        .map_or(text.len(), |end| start + end);
    // The longest numeric prefix, since a dash or a point may also follow a number.
    let parsed = (start + 1..=end)
        .rev()
        .find_map(|end| Some((text[start..end].parse().ok()?, end)));
    match parsed {
        Some((number, end)) => (&text[..start], Some(number), &text[end..]),
        None => (text, None, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_statistics::Description;

    #[test]
    fn values_are_in_the_order_of_their_numbers() {
        let mut values = [
            "[16]", "[8, 8]", "[8]", "adam", "1e-3", "0.1", "-", "0.02", "1-s10", "1-s9",
        ];
        values.sort_by(|a, b| natural_order(a, b));
        assert_eq!(
            values,
            [
                "1e-3", "0.02", "0.1", "1-s9", "1-s10", "-", "[8, 8]", "[8]", "[16]", "adam"
            ]
        );
    }

    #[test]
    fn numbers_have_the_digits_that_the_spread_justifies() {
        let shown = |values: &[f64]| mean_and_sd(&Description::of(values).unwrap());
        assert_eq!(shown(&[0.969_2, 0.971_3, 0.973_5]), "0.9713 ± 0.0022");
        assert_eq!(shown(&[10.8, 12.3, 13.9]), "12.3 ± 1.6");
        assert_eq!(shown(&[0.971_312]), "0.9713");
        assert_eq!(shown(&[0.5, 0.5]), "0.5000 ± 0");
        assert_eq!(short_number(0.000_012_3), "1.230e-5");
        // A spread is not 0 because it is small or large.
        assert_eq!(shown(&[2.1e-8, 3.2e-8, 4.3e-8]), "3.200e-8 ± 1.1e-8");
        assert_eq!(shown(&[0.97, 0.970_000_004]), "0.970000 ± 2.8e-9");
        assert_eq!(shown(&[1.0e7, 2.0e7, 3.0e7]), "2.000e7 ± 1.0e7");
        assert_eq!(shown(&[48.0e6, 48.2e6]), "48100000 ± 141421");
        let tiny = Interval::student(&[2.1e-8, 3.2e-8, 4.3e-8], 0.95).unwrap();
        assert_eq!(interval(&tiny), "4.674e-9 to 5.933e-8");
        let huge = Interval::student(&[1.0e7, 2.0e7, 3.0e7], 0.95).unwrap();
        assert_eq!(interval(&huge), "-4.841e6 to 4.484e7");
        let values = [0.969_2, 0.971_3, 0.973_5];
        let student = Interval::student(&values, 0.95).unwrap();
        assert_eq!(interval(&student), "0.9660 to 0.9767");
        let shares = [0.05, 0.001, 1e-7, 0.0, 1.0].map(percent);
        assert_eq!(shares, ["5 %", "0.1 %", "1e-5 %", "0 %", "100 %"]);
    }
}
