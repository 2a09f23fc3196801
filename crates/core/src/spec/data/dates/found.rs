//! The parts of a date found in a text.

use super::{Piece, date_of, days_of};

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

const WEEKDAYS: [&str; 7] = [
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
];

/// The parts of a date.
#[derive(Default)]
pub(super) struct Found {
    year: i64,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: Option<i64>,
    is_afternoon: Option<bool>,
    minute: i64,
    second: Option<i64>,
    nanos: Option<i64>,
    offset: Option<i64>,
}

impl Found {
    pub(super) fn take<'t>(
        &mut self,
        piece: Piece,
        text: &'t str,
        is_tight: bool,
    ) -> Option<&'t str> {
        let number = |most: usize| {
            let (value, rest) = number(text, most)?;
            let is_whole = text.len() - rest.len() == most;
            (is_whole || !is_tight).then_some((value, rest))
        };
        if let Some((range, most)) = piece.range() {
            let (value, rest) = number(most).filter(|(value, _)| range.contains(value))?;
            self.set(piece, value);
            return Some(rest);
        }
        let rest = match piece {
            Piece::Blanks => text.trim_start(),
            Piece::Char(c) => text.strip_prefix(c)?,
            Piece::Year => {
                let (year, rest) = number(4)?;
                // `12` is a two-digit year, which needs `%y`.
                if text.len() - rest.len() < 4 {
                    return None;
                }
                self.year = year;
                rest
            }
            Piece::ShortYear => {
                let (year, rest) = number(2)?;
                if text.len() - rest.len() < 2 {
                    return None;
                }
                // As in POSIX.
                self.year = if year < 69 { 2000 + year } else { 1900 + year };
                rest
            }
            Piece::MonthName => {
                let (month, rest) = name(text, &MONTHS)?;
                self.month = Some(month + 1);
                rest
            }
            Piece::Weekday => name(text, &WEEKDAYS)?.1,
            Piece::HalfOfDay => {
                let half = text.get(..2)?.to_ascii_lowercase();
                self.is_afternoon = Some(match half.as_str() {
                    "am" => false,
                    "pm" => true,
                    _ => return None,
                });
                &text[2..]
            }
            Piece::Fraction => {
                let (value, rest) = number(9)?;
                let digits = (text.len() - rest.len()) as u32;
                self.nanos = Some(value * 10_i64.pow(9 - digits));
                rest
            }
            Piece::Zone => {
                let (offset, rest) = zone(text)?;
                self.offset = Some(offset);
                rest
            }
            // Numbers with a range.
            _ => return None,
        };
        Some(rest)
    }

    pub(super) fn set(&mut self, piece: Piece, value: i64) {
        match piece {
            Piece::Month => self.month = Some(value),
            Piece::Day => self.day = Some(value),
            Piece::DayOfYear => self.day_of_year = Some(value),
            Piece::Hour => self.hour = Some(value),
            Piece::Hour12 => self.hour = Some(value % 12),
            Piece::Minute => self.minute = value,
            _ => self.second = Some(value),
        }
    }

    pub(super) fn iso(self) -> Option<String> {
        let mut days = match (self.day_of_year, self.month, self.day) {
            (Some(day), _, _) => {
                let days = days_of(self.year, 1, 1) + day - 1;
                (day <= 365 || days < days_of(self.year + 1, 1, 1)).then_some(days)?
            }
            (None, Some(month), day) => {
                let day = day.unwrap_or(1);
                let next = match month {
                    12 => days_of(self.year + 1, 1, 1),
                    _ => days_of(self.year, month + 1, 1),
                };
                let days = days_of(self.year, month, day);
                (days < next).then_some(days)?
            }
            (None, None, _) => return None,
        };
        let Some(hour) = self.hour else {
            return Some(date_of(days));
        };
        let hour = hour
            + if self.is_afternoon == Some(true) {
                12
            } else {
                0
            };
        let mut minutes = 60 * hour + self.minute - self.offset.unwrap_or(0);
        days += minutes.div_euclid(24 * 60);
        minutes = minutes.rem_euclid(24 * 60);
        let mut iso = format!("{}T{:02}:{:02}", date_of(days), minutes / 60, minutes % 60);
        if let Some(second) = self.second {
            iso.push_str(&format!(":{second:02}"));
        }
        if let Some(nanos) = self.nanos {
            // Always the same number of digits, so that texts sort by time.
            iso.push_str(&format!(".{nanos:09}"));
        }
        if self.offset.is_some() {
            iso.push('Z');
        }
        Some(iso)
    }
}

/// The number at the start of a text, with at most this many digits.
fn number(text: &str, most: usize) -> Option<(i64, &str)> {
    let digits = text.bytes().take(most).take_while(u8::is_ascii_digit);
    let (digits, rest) = text.split_at(digits.count());
    Some((digits.parse().ok()?, rest))
}

/// The index of the name at the start of a text, whole or by its first three letters.
fn name<'t>(text: &'t str, names: &[&str]) -> Option<(i64, &'t str)> {
    let letters = text.find(|c: char| !c.is_ascii_alphabetic());
    let (word, rest) = text.split_at(letters.unwrap_or(text.len()));
    let word = word.to_ascii_lowercase();
    let is_it = |name: &&str| {
        **name == word
            || word.len() == 3 && name.starts_with(&word)
            || word == "sept" && **name == *"september"
    };
    let at = names.iter().position(is_it)?;
    // An abbreviation may end in a point.
    let rest = if word.len() < names[at].len() {
        rest.strip_prefix('.').unwrap_or(rest)
    } else {
        rest
    };
    Some((at as i64, rest))
}

/// Minutes that a zone is ahead of UTC: `Z`, `+02:00`, `+0200`, `+02`.
fn zone(text: &str) -> Option<(i64, &str)> {
    let sign = match text.chars().next()? {
        'Z' | 'z' => return Some((0, &text[1..])),
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    let (hours, rest) = number(&text[1..], 2)?;
    let behind = rest.strip_prefix(':').unwrap_or(rest);
    let (minutes, rest) = number(behind, 2).unwrap_or((0, rest));
    (hours < 24 && minutes < 60).then_some((sign * (60 * hours + minutes), rest))
}
