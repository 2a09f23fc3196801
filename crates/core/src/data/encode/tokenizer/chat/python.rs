//! What templates expect of Python: `json.dumps` and `strftime`.

use std::fmt::Write;

use minijinja::value::Value;
use serde_json::Value as Json;

use super::Now;

/// The settings of `json.dumps`.
#[derive(Clone, Debug, Default)]
pub(super) struct Style {
    /// What each level is indented by; without it, everything is on one line.
    pub indent: Option<String>,
    /// What is between values, and between a key and its value.
    pub separators: Option<Vec<String>>,
    /// Whether keys are sorted.
    pub is_sorted: bool,
    /// Whether other characters than ASCII are escaped.
    pub is_ascii: bool,
}

/// An indentation: a number of spaces, or a text.
///
/// # Errors
/// If it is something else.
pub(super) fn indent(value: &Value) -> Result<String, String> {
    /// More is never meant.
    const MOST: usize = 64;
    match (value.as_usize(), value.as_str()) {
        (Some(num), _) => Ok(" ".repeat(num.min(MOST))),
        (_, Some(text)) if text.len() <= MOST => Ok(text.to_owned()),
        _ => Err("`indent` is neither a number nor a short text".to_owned()),
    }
}

impl Style {
    /// Bytes of the text, at most.
    pub(super) fn size(&self, value: &Json, depth: usize) -> usize {
        let indent = self
            .indent
            .as_ref()
            .map_or(0, |indent| 1 + indent.len() * (depth + 1));
        let separators = self
            .separators
            .iter()
            .flatten()
            .map(String::len)
            .sum::<usize>()
            + 4;
        match value {
            Json::Array(values) => {
                let each = values
                    .iter()
                    .map(|value| self.size(value, depth + 1) + indent + separators);
                each.sum::<usize>() + indent + 2
            }
            Json::Object(table) => {
                let each = table.iter().map(|(key, value)| {
                    6 * key.len() + self.size(value, depth + 1) + indent + separators
                });
                each.sum::<usize>() + indent + 2
            }
            Json::String(text) => 6 * text.len() + 2,
            _ => 32,
        }
    }

    /// A value as text.
    pub(super) fn text(&self, value: &Json) -> String {
        let mut text = String::new();
        self.write(value, 0, &mut text);
        text
    }

    fn write(&self, value: &Json, depth: usize, out: &mut String) {
        match value {
            Json::Null => out.push_str("null"),
            Json::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Json::Number(number) => out.push_str(&of_number(number)),
            Json::String(text) => self.quote(text, out),
            Json::Array(values) => {
                let each = values.iter().map(|value| (None, value));
                self.list(['[', ']'], each.collect(), depth, out);
            }
            Json::Object(table) => {
                let each = table.iter().map(|(key, value)| (Some(key.as_str()), value));
                let mut each: Vec<_> = each.collect();
                if self.is_sorted {
                    each.sort_by_key(|(key, _)| *key);
                }
                self.list(['{', '}'], each, depth, out);
            }
        }
    }

    fn list(
        &self,
        [open, close]: [char; 2],
        values: Vec<(Option<&str>, &Json)>,
        depth: usize,
        out: &mut String,
    ) {
        out.push(open);
        let line = |depth: usize, out: &mut String| {
            if let Some(indent) = &self.indent {
                out.push('\n');
                (0..depth).for_each(|_| out.push_str(indent));
            }
        };
        let (between, after_key) = match self.separators.as_deref() {
            Some([between, after_key, ..]) => (between.as_str(), after_key.as_str()),
            _ if self.indent.is_some() => (",", ": "),
            _ => (", ", ": "),
        };
        for (at, (key, value)) in values.iter().enumerate() {
            if at > 0 {
                out.push_str(between);
            }
            line(depth + 1, out);
            if let Some(key) = key {
                self.quote(key, out);
                out.push_str(after_key);
            }
            self.write(value, depth + 1, out);
        }
        if !values.is_empty() {
            line(depth, out);
        }
        out.push(close);
    }

    fn quote(&self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if c < ' ' || self.is_ascii && !(' '..='~').contains(&c) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(out, "\\u{unit:04x}");
                    }
                }
                c => out.push(c),
            }
        }
        out.push('"');
    }
}

/// A number as Python writes it.
fn of_number(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => of_float(value),
        _ => number.to_string(),
    }
}

/// `repr` of a float: exponents from 1e16 on and below 1e-4, of at least two digits.
fn of_float(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-4..1e16).contains(&size) {
        let text = value.to_string();
        return if text.contains('.') {
            text
        } else {
            text + ".0"
        };
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

const DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Python's `strftime` in English, in UTC.
///
/// # Errors
/// If the format has a directive that is not known.
pub(super) fn strftime(Now(seconds): Now, format: &str) -> Result<String, String> {
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    // 1970 began on a Thursday.
    let weekday = (days + 3).rem_euclid(7) as usize;
    let of_year = days - days_before(year) + 1;
    let mut text = String::new();
    let mut signs = format.chars();
    while let Some(sign) = signs.next() {
        if sign != '%' {
            text.push(sign);
            continue;
        }
        let mut directive = signs.next();
        // As in the C library of Linux and macOS: no padding.
        let is_bare = directive == Some('-');
        if is_bare {
            directive = signs.next();
        }
        let number = |value: i64, width: usize| {
            if is_bare {
                value.to_string()
            } else {
                format!("{value:0width$}")
            }
        };
        let name = |names: &[&str], at: usize| names[at].to_owned();
        text += &match directive {
            Some('Y') => number(year, 4),
            Some('y') => number(year.rem_euclid(100), 2),
            Some('m') => number(month, 2),
            Some('d') => number(day, 2),
            Some('e') if is_bare => day.to_string(),
            Some('e') => format!("{day:2}"),
            Some('H') => number(hour, 2),
            Some('I') => number((hour + 11) % 12 + 1, 2),
            Some('M') => number(minute, 2),
            Some('S') => number(second, 2),
            Some('j') => number(of_year, 3),
            Some('p') => if hour < 12 { "AM" } else { "PM" }.to_owned(),
            Some('A') => name(&DAYS, weekday),
            Some('a') => name(&DAYS, weekday)[..3].to_owned(),
            Some('B') => name(&MONTHS, month as usize - 1),
            Some('b' | 'h') => name(&MONTHS, month as usize - 1)[..3].to_owned(),
            Some('F') => format!("{year:04}-{month:02}-{day:02}"),
            Some('T') => format!("{hour:02}:{minute:02}:{second:02}"),
            Some('w') => ((weekday + 1) % 7).to_string(),
            Some('u') => (weekday + 1).to_string(),
            Some('%') => "%".to_owned(),
            Some(other) => return Err(format!("`strftime_now` does not know `%{other}`")),
            None => return Err("the format of `strftime_now` ends with `%`".to_owned()),
        };
    }
    Ok(text)
}

/// The year, month and day of a number of days since 1970.
fn civil(days: i64) -> (i64, i64, i64) {
    // Around the year: 400 years have 146,097 days.
    let mut year = 1970 + days * 400 / 146_097;
    while days_before(year) > days {
        year -= 1;
    }
    while days_before(year + 1) <= days {
        year += 1;
    }
    let is_leap = days_before(year + 1) - days_before(year) == 366;
    let mut left = days - days_before(year);
    let lengths = [
        31,
        if is_leap { 29 } else { 28 },
        31,
        30,
        31,
        30,
        31,
        31,
        30,
        31,
        30,
        31,
    ];
    for (month, length) in (1..).zip(lengths) {
        if left < length {
            return (year, month, left + 1);
        }
        left -= length;
    }
    (year, 12, 31)
}

/// Days from 1970 to the start of a year.
fn days_before(year: i64) -> i64 {
    let past = year - 1;
    let leaps = past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400);
    (year - 1970) * 365 + leaps - 477
}
