//! Sort keys of items: numbers, and dates and times in ISO 8601.

use crate::spec::data::days_of;

/// Seconds of a day.
const DAY: f64 = 86_400.0;

/// The forms of a date, as messages show them.
pub const FORMS: &str =
    "`2024-01-31`, `2024-01` or `2024-01-31 12:30`, optionally with seconds and a time zone";

/// The sort key of a text: a number itself, a date or time in seconds since 1970. Times without a zone are used as they
/// are.
pub fn instant(text: &str) -> Option<f64> {
    let text = text.trim();
    if let Ok(number) = text.parse::<f64>() {
        return number.is_finite().then_some(number);
    }
    let (date, rest) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2).filter(|month| (1..=12).contains(month))?;
    let day = match parts.next() {
        Some(day) => digits(day, 2).filter(|day| (1..=last_day(year, month)).contains(day))?,
        None if rest.is_none() => 1,
        None => return None,
    };
    if parts.next().is_some() {
        return None;
    }
    let days = days_of(i64::from(year), i64::from(month), i64::from(day)) as f64 * DAY;
    match rest {
        None => Some(days),
        Some(rest) => Some(days + time(rest.trim())?),
    }
}

/// Seconds of `12:30`, `12:30:01.5` or `12:30+02:00` since midnight UTC.
fn time(text: &str) -> Option<f64> {
    let (clock, zone) = match text.find(['Z', 'z', '+', '-']) {
        Some(at) => (text[..at].trim_end(), &text[at..]),
        None => (text, ""),
    };
    let mut parts = clock.split(':');
    let hour = digits(parts.next()?, 2).filter(|hour| *hour < 24)?;
    let minute = digits(parts.next()?, 2).filter(|minute| *minute < 60)?;
    let second = match parts.next() {
        None => 0.0,
        Some(text) => {
            let whole = text.split(['.', ',']).next()?;
            digits(whole, 2)?;
            let second: f64 = text.replace(',', ".").parse().ok()?;
            // Some minutes have a 61st second.
            (second < 61.0).then_some(second)?
        }
    };
    if parts.next().is_some() {
        return None;
    }
    let seconds = f64::from(hour * 3600 + minute * 60) + second;
    Some(seconds - zone_offset(zone)?)
}

/// Seconds that a zone is ahead of UTC: `Z`, `+02:00`, `+0200`, `+02`.
fn zone_offset(text: &str) -> Option<f64> {
    let (sign, rest) = match text.chars().next() {
        None => return Some(0.0),
        Some('Z' | 'z') => return (text.len() == 1).then_some(0.0),
        Some('-') => (-1.0, &text[1..]),
        Some(_) => (1.0, &text[1..]),
    };
    let plain = rest.replacen(':', "", 1);
    let (hours, minutes) = plain.split_at_checked(2)?;
    let minutes = match minutes {
        "" => 0,
        minutes => digits(minutes, 2)?,
    };
    Some(sign * f64::from(digits(hours, 2)? * 3600 + minutes * 60))
}

/// A number with exactly this many digits.
fn digits(text: &str, num: usize) -> Option<i32> {
    let is_right = text.len() == num && text.bytes().all(|byte| byte.is_ascii_digit());
    is_right.then(|| text.parse().ok()).flatten()
}

fn last_day(year: i32, month: i32) -> i32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_dates_have_a_place() {
        assert_eq!(instant("1970-01-01"), Some(0.0));
        assert_eq!(instant("2000-03-01"), Some(951_868_800.0));
        assert_eq!(instant("2024-02-29T12:30"), Some(1_709_209_800.0));
        assert_eq!(
            instant("2024-02-29 14:30:00.5+02:00"),
            Some(1_709_209_800.5)
        );
        assert_eq!(
            instant("2024-02-29t10:30z"),
            instant("2024-02-29 08:00-02:30")
        );
        assert_eq!(instant("2024-02"), instant("2024-02-01"));
        assert_eq!(instant(" 12.5 "), Some(12.5));
    }

    #[test]
    fn what_is_no_date_has_none() {
        for text in [
            "jan",
            "",
            "31.01.2024",
            "2024-13-01",
            "2023-02-29",
            "2024-1-3",
            "2024-01T10:00",
            "2024-01-31T",
            "2024-01-31 25:00",
            "2024-01-31 10",
            "2024-01-31 10:00+x",
            "nan",
            "inf",
            "2024-01-31-2",
            "ä-01",
        ] {
            assert_eq!(instant(text), None, "{text}");
        }
    }
}
