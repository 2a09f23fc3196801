//! Date and time formats other than ISO 8601.

mod calendar;
mod found;
#[cfg(test)]
mod tests;

use crate::diagnostic::Reason;
use crate::spec::section::Section;
pub use calendar::{date_of, days_of};
use found::Found;

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

impl DateFormat {
    /// Parses a format, or returns what is wrong with it.
    pub fn new(text: &str) -> Result<Self, Reason> {
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
                Some(other) => return Err(Reason(format!("`%{other}` is not a date directive"))),
                None => return Err("it ends in a single `%`".into()),
            };
            pieces.extend_from_slice(whole);
        }
        let has = |some: &[Piece]| pieces.iter().any(|piece| some.contains(piece));
        let twice = pieces.iter().enumerate().find(|(at, piece)| {
            !matches!(piece, Piece::Blanks | Piece::Char(_)) && pieces[..*at].contains(piece)
        });
        let has_day = has(&[Piece::DayOfYear]) || has(&[Piece::Month, Piece::MonthName]);
        if twice.is_some() {
            Err("it contains a part of the date twice".into())
        } else if !has(&[Piece::Year, Piece::ShortYear]) {
            Err("it has no year (`%Y`)".into())
        } else if !has_day {
            Err("it has no month (`%m` or `%b`)".into())
        } else if has(&[Piece::Hour12]) != has(&[Piece::HalfOfDay]) {
            Err("`%I` and `%p` go together".into())
        } else if has(&[Piece::Minute]) && !has(&[Piece::Hour, Piece::Hour12]) {
            Err("it has minutes without hours".into())
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
