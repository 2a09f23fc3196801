//! Date and time formats other than ISO 8601.

use crate::spec::section::Section;

/// A format such as `%d.%m.%Y %H:%M`, which converts the dates of a file to ISO 8601.
#[derive(Clone, Debug, PartialEq)]
pub struct DateFormat {
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Piece {
    Year,
    ShortYear,
    Month,
    MonthName,
    Day,
    DayOfYear,
    Weekday,
    Hour,
    Hour12,
    HalfOfDay,
    Minute,
    Second,
    Fraction,
    Zone,
    /// Any amount of whitespace, including none.
    Blanks,
    Char(char),
}

/// The directives of a format, as listed in messages.
pub const DIRECTIVES: &str = "%Y year, %y two-digit year, %m month, %b month name, %d day, %j day of the year, %a weekday, %H hour, %I 12-hour clock, %p AM or PM, %M minute, %S second, %f fraction of a second, %z time zone, %T for %H:%M:%S";

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

impl DateFormat {
    /// Parses a format, or returns what is wrong with it.
    pub fn new(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            if c.is_whitespace() {
                pieces.push(Piece::Blanks);
                continue;
            }
            if c != '%' {
                pieces.push(Piece::Char(c));
                continue;
            }
            let directive = chars.next();
            let whole: &[Piece] = match directive {
                Some('Y') => &[Piece::Year],
                Some('y') => &[Piece::ShortYear],
                Some('m') => &[Piece::Month],
                Some('b' | 'B' | 'h') => &[Piece::MonthName],
                Some('d' | 'e') => &[Piece::Day],
                Some('j') => &[Piece::DayOfYear],
                Some('a' | 'A') => &[Piece::Weekday],
                Some('H' | 'k') => &[Piece::Hour],
                Some('I' | 'l') => &[Piece::Hour12],
                Some('p' | 'P') => &[Piece::HalfOfDay],
                Some('M') => &[Piece::Minute],
                Some('S') => &[Piece::Second],
                Some('f') => &[Piece::Fraction],
                Some('z') => &[Piece::Zone],
                Some('%') => &[Piece::Char('%')],
                Some('T') => &[
                    Piece::Hour,
                    Piece::Char(':'),
                    Piece::Minute,
                    Piece::Char(':'),
                    Piece::Second,
                ],
                Some('F') => &[
                    Piece::Year,
                    Piece::Char('-'),
                    Piece::Month,
                    Piece::Char('-'),
                    Piece::Day,
                ],
                Some(other) => return Err(format!("`%{other}` is not a date directive")),
                None => return Err("it ends in a single `%`".to_owned()),
            };
            pieces.extend_from_slice(whole);
        }
        let has = |some: &[Piece]| pieces.iter().any(|piece| some.contains(piece));
        let twice = pieces.iter().enumerate().find(|(at, piece)| {
            !matches!(piece, Piece::Blanks | Piece::Char(_)) && pieces[..*at].contains(piece)
        });
        let has_day = has(&[Piece::DayOfYear]) || has(&[Piece::Month, Piece::MonthName]);
        if twice.is_some() {
            Err("it contains a part of the date twice".to_owned())
        } else if !has(&[Piece::Year, Piece::ShortYear]) {
            Err("it has no year (`%Y`)".to_owned())
        } else if !has_day {
            Err("it has no month (`%m` or `%b`)".to_owned())
        } else if has(&[Piece::Hour12]) != has(&[Piece::HalfOfDay]) {
            Err("`%I` and `%p` go together".to_owned())
        } else if has(&[Piece::Minute]) && !has(&[Piece::Hour, Piece::Hour12]) {
            Err("it has minutes without hours".to_owned())
        } else {
            Ok(Self { pieces })
        }
    }

    /// Whether a plain integer can match it, as with `%Y%m%d`.
    pub fn is_all_digits(&self) -> bool {
        self.pieces.iter().all(|piece| piece.is_number())
    }

    /// A date in this format as ISO 8601, in UTC if it contains a zone; `None` if it does not match.
    pub fn iso(&self, text: &str) -> Option<String> {
        let mut found = Found::default();
        let mut rest = text.trim();
        for (at, piece) in self.pieces.iter().enumerate() {
            // Without a separator between them, numbers have all of their digits.
            let before = at.checked_sub(1).and_then(|at| self.pieces.get(at));
            let beside = [before, self.pieces.get(at + 1)];
            let is_tight = beside.into_iter().flatten().any(|piece| piece.is_number());
            rest = found.take(*piece, rest, is_tight)?;
        }
        if rest.is_empty() { found.iso() } else { None }
    }
}

impl Piece {
    /// Whether it consists of digits.
    fn is_number(self) -> bool {
        let is_year = matches!(self, Piece::Year | Piece::ShortYear | Piece::Fraction);
        is_year || self.range().is_some()
    }

    /// The range of a number in this piece, and its maximum number of digits.
    fn range(self) -> Option<(std::ops::RangeInclusive<i64>, usize)> {
        Some(match self {
            Piece::Month => (1..=12, 2),
            Piece::Day => (1..=31, 2),
            Piece::DayOfYear => (1..=366, 3),
            Piece::Hour => (0..=23, 2),
            Piece::Hour12 => (1..=12, 2),
            Piece::Minute => (0..=59, 2),
            Piece::Second => (0..=60, 2),
            _ => return None,
        })
    }
}

/// The parts of a date.
#[derive(Default)]
struct Found {
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
    fn take<'t>(&mut self, piece: Piece, text: &'t str, is_tight: bool) -> Option<&'t str> {
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

    fn set(&mut self, piece: Piece, value: i64) {
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

    fn iso(self) -> Option<String> {
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

/// Days since 1970 in the Gregorian calendar; years begin in March here, so that a leap day is the last (Hinnant,
/// 2013).
pub fn days_of(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// `2024-01-31`, from days since 1970.
pub fn date_of(days: i64) -> String {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// Reads `date_format` from a table; an invalid one is reported and ignored.
pub(super) fn decode(s: &mut Section<'_>, doc: &'static str, is_of_all: bool) -> Option<String> {
    use crate::diagnostic::Diagnostic;
    use crate::spec::kind::Kind;

    let text: Option<String> = s.field("date_format", Kind::Text, doc).optional();
    let text = text.filter(|_| s.reading().is_some())?;
    let wrong = match DateFormat::new(&text) {
        Ok(format) if is_of_all && format.is_all_digits() => (
            format!(
                "`date_format = \"{text}\"` matches plain numbers, and would apply to every column"
            ),
            "set it for one column: `[[data.columns]]` with its `name` and `date_format`"
                .to_owned(),
        ),
        Ok(_) => return Some(text),
        Err(reason) => (
            format!("`date_format = \"{text}\"` is not a valid date format: {reason}"),
            format!(
                "for example `date_format = \"%d.%m.%Y %H:%M\"`; the directives are {DIRECTIVES}"
            ),
        ),
    };
    let span = s.written_at("date_format").unwrap_or_default();
    s.refuse(
        "date_format",
        Diagnostic::error("out-of-range", wrong.0)
            .at(span)
            .help(wrong.1),
    );
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iso(format: &str, text: &str) -> Option<String> {
        DateFormat::new(format).unwrap().iso(text)
    }

    #[test]
    fn dates_of_many_countries_become_iso() {
        for (format, text, expected) in [
            ("%Y/%m/%d", "2012/01/02", "2012-01-02"),
            ("%Y/%m/%d", "2012/1/2", "2012-01-02"),
            ("%d.%m.%Y", "01.02.2012", "2012-02-01"),
            ("%m/%d/%Y", "01/02/2012", "2012-01-02"),
            ("%m/%d/%y", "12/31/99", "1999-12-31"),
            ("%d.%m.%y", "1.2.05", "2005-02-01"),
            ("%b %d, %Y %H:%M", "Jan 5, 2012 13:00", "2012-01-05T13:00"),
            ("%B %d, %Y", "September 9, 2020", "2020-09-09"),
            ("%d %b. %Y", "9 Sept. 2020", ""),
            ("%d %b %Y", "9 Sept. 2020", "2020-09-09"),
            (
                "%a, %d %b %Y %T %z",
                "Thu, 05 Jan 2012 13:00:09 +0200",
                "2012-01-05T11:00:09Z",
            ),
            ("%Y%m%d", "20240229", "2024-02-29"),
            ("%Y%m%d%H%M%S", "20240229235960", "2024-02-29T23:59:60"),
            ("%Y-%j", "2023-365", "2023-12-31"),
            (
                "%d/%m/%Y %I:%M %p",
                "31/12/2011 12:05 am",
                "2011-12-31T00:05",
            ),
            ("%d/%m/%Y %I:%M%p", "31/12/2011 1:05PM", "2011-12-31T13:05"),
            (
                "%F %H:%M:%S.%f",
                "2012-01-05 13:00:00.25",
                "2012-01-05T13:00:00.250000000",
            ),
            ("%Y/%m", "2012/11", "2012-11-01"),
            (
                "%d.%m.%Y %H:%M %z",
                "01.01.2000 00:30 +01:00",
                "1999-12-31T23:30Z",
            ),
        ] {
            let found = iso(format, text).unwrap_or_default();
            assert_eq!(found, expected, "{format} {text}");
        }
    }

    #[test]
    fn what_is_not_such_a_date_is_none() {
        for (format, text) in [
            ("%Y/%m/%d", "2012-01-02"),
            ("%Y/%m/%d", "12/01/02"),
            ("%Y/%m/%d", "2012/02/30"),
            ("%Y/%m/%d", "2012/13/01"),
            ("%Y/%m/%d", "2012/01/02 10:00"),
            ("%Y-%j", "2023-366"),
            ("%Y%m%d", "2024123"),
            ("%b %d, %Y", "Foo 1, 2012"),
            ("%m/%d/%Y", "31/12/2011"),
            ("%d.%m.%Y", ""),
            ("%d.%m.%Y", "ä.ö.ü"),
            ("%d/%m/%Y %I:%M %p", "31/12/2011 13:05 pm"),
        ] {
            assert_eq!(iso(format, text), None, "{format} {text}");
        }
    }

    #[test]
    fn wrong_formats_say_why() {
        for (format, reason) in [
            ("yyyy-mm-dd", "it has no year (`%Y`)"),
            ("%Y", "it has no month (`%m` or `%b`)"),
            ("%Y-%m-%q", "`%q` is not a date directive"),
            ("%Y-%m-%d %I:%M", "`%I` and `%p` go together"),
            ("%Y-%m-%Y", "it contains a part of the date twice"),
            ("%Y-%m-%d %M", "it has minutes without hours"),
            ("%Y-%m-%d%", "it ends in a single `%`"),
        ] {
            assert_eq!(DateFormat::new(format).unwrap_err(), reason, "{format}");
        }
        assert!(DateFormat::new("%Y%m%d").unwrap().is_all_digits());
        assert!(!DateFormat::new("%Y%b%d").unwrap().is_all_digits());
    }

    #[test]
    fn days_and_dates_are_each_others_inverse() {
        for days in (-200_000..200_000).step_by(37) {
            let date = date_of(days);
            let parts: Vec<i64> = date
                .rsplitn(3, '-')
                .map(|part| part.parse().unwrap())
                .collect();
            assert_eq!(days_of(parts[2], parts[1], parts[0]), days, "{date}");
        }
    }
}
