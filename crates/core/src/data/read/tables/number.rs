//! Formatted numbers: with decimal commas, thousands separators, currencies, percent signs and units.

use std::borrow::Cow;

use crate::spec::data::ValuesSpec;

/// A number in machine-readable form, or `None` if a text is not one according to the experiment.
pub fn plain<'t>(text: &'t str, values: &ValuesSpec) -> Option<Cow<'t, str>> {
    let is_usual = values.has_plain_numbers();
    if is_usual {
        return text.parse::<f64>().is_ok().then_some(Cow::Borrowed(text));
    }
    // `inf` and `nan` have the same spelling everywhere.
    if text.parse::<f64>().is_ok_and(|number| !number.is_finite()) {
        return Some(Cow::Borrowed(text));
    }
    let (is_negative, core) = bare(text, &values.strip);
    let (whole, rest) = match core.find(|c: char| !is_of_whole(c, values)) {
        Some(at) => core.split_at(at),
        None => (core, ""),
    };
    let mut digits = ungrouped(whole, values.thousands)?;
    let decimals = match rest.strip_prefix(values.decimal) {
        Some(decimals) => {
            digits.push('.');
            decimals
        }
        None => rest,
    };
    let is_tail = |c: char| c.is_ascii_digit() || matches!(c, 'e' | 'E' | '+' | '-');
    if !decimals.chars().all(is_tail) || decimals.starts_with(['+', '-']) {
        return None;
    }
    digits.push_str(decimals);
    if is_negative {
        digits.insert(0, '-');
    }
    digits.parse::<f64>().is_ok().then_some(Cow::Owned(digits))
}

fn is_of_whole(c: char, values: &ValuesSpec) -> bool {
    c.is_ascii_digit() || values.thousands.is_some_and(|sign| group_sign(c) == sign)
}

/// The thousands separator, as the usual one of characters that look the same.
fn group_sign(c: char) -> char {
    match c {
        '\u{a0}' | '\u{202f}' | '\u{2009}' => ' ',
        '’' => '\'',
        other => other,
    }
}

/// The digits of an integer whose groups, if any, have three digits.
fn ungrouped(whole: &str, thousands: Option<char>) -> Option<String> {
    let Some(sign) = thousands else {
        return Some(whole.to_owned());
    };
    let mut groups = whole.split(|c| group_sign(c) == sign);
    let first = groups.next().unwrap_or_default();
    let mut digits = first.to_owned();
    for group in groups {
        if group.len() != 3 || first.is_empty() || first.len() > 3 {
            return None;
        }
        digits.push_str(group);
    }
    Some(digits)
}

/// Whether a number is negative, and the rest without its sign and the marks around it.
fn bare<'t>(text: &'t str, marks: &[String]) -> (bool, &'t str) {
    let mut text = text.trim();
    let mut sign = None;
    loop {
        let before = text.len();
        if sign.is_none()
            && let Some(first) = text.chars().next()
            && matches!(first, '+' | '-' | '\u{2212}')
        {
            sign = Some(first);
            text = text[first.len_utf8()..].trim_start();
        }
        for mark in marks.iter().map(|mark| mark.trim()) {
            if let Some(rest) = text.strip_prefix(mark) {
                text = rest.trim_start();
            }
            if let Some(rest) = text.strip_suffix(mark) {
                text = rest.trim_end();
            }
        }
        if text.len() == before {
            break;
        }
    }
    (sign.is_some_and(|sign| sign != '+'), text)
}

/// A text that people read as a number, but programs do not.
#[derive(Clone, Debug, PartialEq)]
pub struct Dressed {
    /// What precedes the number.
    pub prefix: String,
    /// What follows it.
    pub suffix: String,
    /// The format of its digits.
    pub digits: Digits,
}

/// The format of a number's digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digits {
    /// As programs write them.
    Plain,
    /// Groups of three, then optional decimals after a point.
    Grouped(char),
    /// A decimal comma, with this thousands separator, if any.
    DecimalComma(Option<char>),
    /// `1,234`: a thousand and some, or one and some decimals.
    OneOrThousand,
}

/// The longest text that is examined.
const LONGEST: usize = 40;
/// The longest word before or after a number.
const LONGEST_WORD: usize = 6;

impl Dressed {
    /// The format of a text, if people would read it as one number.
    pub fn of(text: &str) -> Option<Self> {
        let text = text.trim();
        if text.is_empty() || text.len() > LONGEST || !text.bytes().any(|b| b.is_ascii_digit()) {
            return None;
        }
        let is_sign = |c: char| matches!(c, '+' | '-' | '\u{2212}');
        let text = text.trim_start_matches(is_sign);
        let first = text.find(|c: char| c.is_ascii_digit())?;
        // In `.5`, the point is part of the number.
        let first = if text[..first].ends_with('.') {
            first - 1
        } else {
            first
        };
        let (prefix, rest) = text.split_at(first);
        let prefix = prefix.trim().trim_end_matches(is_sign).trim_end();
        let end = number_end(rest);
        let (core, suffix) = rest.split_at(end);
        let suffix = suffix.trim();
        if !is_mark(prefix, true) || !is_mark(suffix, false) {
            return None;
        }
        Some(Self {
            prefix: prefix.to_owned(),
            suffix: suffix.to_owned(),
            digits: digits(core)?,
        })
    }
}

/// The end of a number's digits and separators, including its exponent.
fn number_end(text: &str) -> usize {
    let mut end = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next_is_digit = chars.peek().is_some_and(|(_, c)| c.is_ascii_digit());
        let is_separator = matches!(group_sign(c), ',' | '.' | ' ' | '\'' | '_') && next_is_digit;
        if c.is_ascii_digit() {
            end = at + 1;
        } else if c == '.' && at == end {
            // `5.` is a number too.
            end = at + 1;
        } else if matches!(c, 'e' | 'E') && at == end {
            let behind = &text[at + 1..];
            let behind = behind.strip_prefix(['+', '-']).unwrap_or(behind);
            let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
            return match digits {
                0 => end,
                _ => text.len() - behind.len() + digits,
            };
        } else if !is_separator {
            break;
        }
    }
    end
}

/// Whether a text can accompany a number: a currency sign, a percent sign, a word.
fn is_mark(text: &str, is_before: bool) -> bool {
    let is_sign = |c: char| "$€£¥₹₽₩₺₴₪฿¢%‰°µ²³/<>=~≈()\"'".contains(c);
    let is_word = |text: &str| {
        text.chars()
            .all(|c| c.is_alphabetic() || is_sign(c) || c == ' ')
    };
    if text.is_empty() {
        return true;
    }
    if text.chars().count() > LONGEST_WORD || !is_word(text) {
        return false;
    }
    // Words before numbers are more often names than currencies: `room 5`, `A4`.
    !is_before || is_currency(text) || text.chars().all(is_sign)
}

/// Whether a text is a currency sign or code.
pub fn is_currency(text: &str) -> bool {
    const CODES: [&str; 22] = [
        "USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "RUB", "BRL", "CAD", "AUD", "NZD", "SEK",
        "NOK", "DKK", "PLN", "CZK", "TRY", "ZAR", "US$", "R$", "A$",
    ];
    let is_sign = |c: char| "$€£¥₹₽₩₺₴₪฿¢".contains(c);
    CODES.contains(&text) || !text.is_empty() && text.chars().all(is_sign)
}

/// The format of digits and separators; `None` if they are not a number.
fn digits(core: &str) -> Option<Digits> {
    if core.parse::<f64>().is_ok() {
        return Some(Digits::Plain);
    }
    let (core, has_exponent) = match core.find(['e', 'E']) {
        Some(at) => (&core[..at], true),
        None => (core, false),
    };
    let mut signs: Vec<char> = Vec::new();
    let mut parts = vec![String::new()];
    for c in core.chars() {
        if c.is_ascii_digit() {
            parts.last_mut()?.push(c);
        } else {
            signs.push(group_sign(c));
            parts.push(String::new());
        }
    }
    let (last, others) = signs.split_last()?;
    let (tail, wholes) = parts.split_last()?;
    let are_groups = |parts: &[String], is_tail: bool| {
        let (Some(first), rest) = (parts.first(), parts.get(1..).unwrap_or_default()) else {
            return false;
        };
        let is_first = (1..=3).contains(&first.len()) && (!first.starts_with('0') || !is_tail);
        is_first && rest.iter().all(|part| part.len() == 3)
    };
    let first_sign = others.first().copied();
    if others.iter().all(|sign| sign == last) {
        // A single kind of character.
        if *last == ',' && others.is_empty() {
            let could_be_thousand = tail.len() == 3 && !has_exponent && are_groups(&parts, true);
            return Some(if could_be_thousand {
                Digits::OneOrThousand
            } else {
                Digits::DecimalComma(None)
            });
        }
        let is_number = are_groups(&parts, true) && !has_exponent;
        return is_number.then_some(Digits::Grouped(*last));
    }
    let group = first_sign.filter(|sign| others.iter().all(|other| other == sign))?;
    if !are_groups(wholes, false) || tail.is_empty() {
        return None;
    }
    match last {
        ',' => Some(Digits::DecimalComma(Some(group))),
        '.' => Some(Digits::Grouped(group)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(decimal: char, thousands: Option<char>, strip: &[&str]) -> ValuesSpec {
        ValuesSpec {
            decimal,
            thousands,
            strip: strip.iter().map(|mark| (*mark).to_owned()).collect(),
            ..ValuesSpec::default()
        }
    }

    #[test]
    fn numbers_are_read_as_the_experiment_says() {
        let german = values(',', Some('.'), &["€", "%"]);
        let english = values('.', Some(','), &["$", "kg"]);
        let swiss = values('.', Some('\''), &[]);
        let french = values(',', Some(' '), &[]);
        for (values, text, expected) in [
            (&german, "1,5", Some(1.5)),
            (&german, "-1.234.567,89 €", Some(-1_234_567.89)),
            (&german, "€ -5", Some(-5.0)),
            (&german, "1.234", Some(1234.0)),
            (&german, "1.5", None),
            (&german, "12.34,5", None),
            (&german, "1234,5", Some(1234.5)),
            (&german, "87,5 %", Some(87.5)),
            (&german, ",5", Some(0.5)),
            (&german, "1,5e3", Some(1500.0)),
            (&german, "1,5,6", None),
            (&german, "abc", None),
            (&german, "€", None),
            (&german, "", None),
            (&english, "$1,234", Some(1234.0)),
            (&english, "-$1,234.50", Some(-1234.5)),
            (&english, "$-1,234.50", Some(-1234.5)),
            (&english, "\u{2212}3", Some(-3.0)),
            (&english, "1e5 kg", Some(1e5)),
            (&english, "1,23", None),
            (&english, "1,5", None),
            (&english, ",123", None),
            (&english, "1234,567", None),
            (&english, "1,234,56", None),
            (&english, "5 lb", None),
            (&english, "--5", None),
            (&swiss, "1’234'567.5", Some(1_234_567.5)),
            (&french, "1\u{202f}234\u{a0}567,5", Some(1_234_567.5)),
            (&french, "1 2", None),
        ] {
            let found = plain(text, values).map(|text| text.parse::<f64>().unwrap());
            assert_eq!(found, expected, "{text}");
        }
        let usual = ValuesSpec::default();
        assert_eq!(plain("1e-3", &usual).as_deref(), Some("1e-3"));
        assert_eq!(plain("1,5", &usual), None);
        assert!(plain("inf", &german).is_some());
    }

    #[test]
    fn what_people_take_for_a_number_is_told() {
        let of = |text: &str| Dressed::of(text).map(|d| (d.prefix, d.digits, d.suffix));
        let is = |prefix: &str, digits, suffix: &str| {
            Some((prefix.to_owned(), digits, suffix.to_owned()))
        };
        assert_eq!(of("1,5"), is("", Digits::DecimalComma(None), ""));
        assert_eq!(of("0,123"), is("", Digits::DecimalComma(None), ""));
        assert_eq!(of("1234,567"), is("", Digits::DecimalComma(None), ""));
        assert_eq!(of("-1,234"), is("", Digits::OneOrThousand, ""));
        assert_eq!(of("1,234,567"), is("", Digits::Grouped(','), ""));
        assert_eq!(of("1,234.5"), is("", Digits::Grouped(','), ""));
        assert_eq!(of("1.234,5"), is("", Digits::DecimalComma(Some('.')), ""));
        assert_eq!(of("1 234"), is("", Digits::Grouped(' '), ""));
        assert_eq!(of("1_000"), is("", Digits::Grouped('_'), ""));
        assert_eq!(
            of("1\u{a0}234,5"),
            is("", Digits::DecimalComma(Some(' ')), "")
        );
        assert_eq!(of("$1,234"), is("$", Digits::OneOrThousand, ""));
        assert_eq!(of("-$5"), is("$", Digits::Plain, ""));
        assert_eq!(of("€ 5.20"), is("€", Digits::Plain, ""));
        assert_eq!(of("USD 5"), is("USD", Digits::Plain, ""));
        assert_eq!(of("87%"), is("", Digits::Plain, "%"));
        assert_eq!(of("1e5 kg"), is("", Digits::Plain, "kg"));
        assert_eq!(of("<0.5"), is("<", Digits::Plain, ""));
        assert_eq!(of("(5)"), is("(", Digits::Plain, ")"));
        assert_eq!(of("12"), is("", Digits::Plain, ""));
        for text in [
            "2012/01/01",
            "01.02.2012",
            "12:30",
            "1.2.3",
            "A4",
            "room 5",
            "5-10",
            "85123A7",
            "n5",
            "030 123 456",
            "1,23,4",
            "",
            "x",
            "5 times a long",
            "10.0.0.1",
            "ä5ö6",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
