//! Columns that would silently be misread: formatted numbers, dates that are not ISO 8601, codes that look like
//! numbers.

mod dates;
mod numbers;

use std::collections::{BTreeMap, BTreeSet};

use super::number::{Digits, Dressed};
use crate::data::oddity::{Fix, Oddity};
use crate::spec::data::ValuesSpec;
use crate::spec::document::Value;
use dates::FORMATS;

/// This few distinct texts can be intended as categories, whatever they look like.
const FEW: usize = 20;
/// Common texts for missing numbers, in lower case.
const NOTHING: [&str; 26] = [
    "-",
    "--",
    "---",
    ".",
    "..",
    "...",
    "*",
    "#N/A",
    "n/a",
    "n.a.",
    "na",
    "none",
    "<NA>",
    "nil",
    "null",
    "(null)",
    "\\N",
    "missing",
    "unknown",
    "#DIV/0!",
    "#VALUE!",
    "#REF!",
    "#NUM!",
    "1.#QNAN",
    "1.#IND",
    "undefined",
];
/// Distinct marks around numbers that are counted.
const MAX_MARKS: usize = 16;

/// What is known about the texts of a column.
#[derive(Clone, Debug)]
pub struct Looks {
    /// Date formats that all texts match, one bit each.
    dates: u128,
    /// Formatted numbers, by format.
    plain: u64,
    one_or_thousand: u64,
    grouped: BTreeMap<char, u64>,
    decimal_comma: u64,
    decimal_comma_groups: BTreeMap<char, u64>,
    /// The marks before and after numbers; both empty for bare ones.
    marks: BTreeMap<(String, String), u64>,
    /// The same where `strip` removes them.
    stripped: BTreeMap<(String, String), u64>,
    num: u64,
    /// Words for missing, and the row of the first with its text.
    nothing: BTreeMap<String, u64>,
    first_nothing: Option<(u64, String)>,
    placed_nothing: Option<(String, String)>,
    /// Plain numbers with a point, separately those that could be groups of three digits.
    points: u64,
    group_points: u64,
    /// Numbers with leading zeros, and the row of the first with its text.
    zeros: u64,
    first_zeros: Option<(u64, String)>,
    first: Option<(u64, String)>,
    /// The same with its place.
    placed: Option<(String, String)>,
    placed_zeros: Option<(String, String)>,
}

impl Default for Looks {
    fn default() -> Self {
        Self {
            dates: u128::MAX,
            plain: 0,
            one_or_thousand: 0,
            grouped: BTreeMap::new(),
            decimal_comma: 0,
            decimal_comma_groups: BTreeMap::new(),
            marks: BTreeMap::new(),
            stripped: BTreeMap::new(),
            num: 0,
            nothing: BTreeMap::new(),
            first_nothing: None,
            placed_nothing: None,
            points: 0,
            group_points: 0,
            zeros: 0,
            first_zeros: None,
            first: None,
            placed: None,
            placed_zeros: None,
        }
    }
}

/// Other facts about a column.
pub struct Known<'a> {
    /// Its name.
    pub name: &'a str,
    /// Present values.
    pub present: u64,
    /// Values that are not numbers.
    pub texts: u64,
    /// The distinct values; `None` if there are very many.
    pub names: Option<&'a BTreeSet<String>>,
    /// The format of the values.
    pub values: &'a ValuesSpec,
    /// Whether the format can quote texts, so that a quoted number is a text.
    pub has_types: bool,
}

impl Looks {
    /// For following rows.
    pub fn follow(&self) -> Self {
        Self {
            dates: self.dates,
            ..Self::default()
        }
    }

    /// Includes a number.
    pub fn see_number(&mut self, text: Option<&str>, row: u64) {
        self.dates = 0;
        let Some(text) = text else { return };
        if let Some(at) = text.find('.') {
            let whole = text[..at].trim_start_matches(['+', '-']);
            let is_group =
                text.len() - at == 4 && (1..=3).contains(&whole.len()) && !whole.starts_with('0');
            if is_group {
                self.group_points += 1;
            } else {
                self.points += 1;
            }
        }
        let has_zeros = text.len() >= 3
            && text.starts_with('0')
            && text.bytes().all(|byte| byte.is_ascii_digit());
        if has_zeros {
            self.zeros += 1;
            self.first_zeros
                .get_or_insert_with(|| (row, text.to_owned()));
        }
    }

    /// Includes a text.
    pub fn see_text(&mut self, text: &str, row: u64) {
        if self.dates != 0 {
            self.see_date(text);
        }
        if NOTHING.iter().any(|word| word.eq_ignore_ascii_case(text)) {
            *self.nothing.entry(text.to_owned()).or_default() += 1;
            self.first_nothing
                .get_or_insert_with(|| (row, text.to_owned()));
            return;
        }
        let Some(dressed) = Dressed::of(text) else {
            return;
        };
        self.num += 1;
        self.first.get_or_insert_with(|| (row, text.to_owned()));
        match dressed.digits {
            Digits::Plain => self.plain += 1,
            Digits::OneOrThousand => self.one_or_thousand += 1,
            Digits::Grouped(sign) => *self.grouped.entry(sign).or_default() += 1,
            Digits::DecimalComma(group) => {
                self.decimal_comma += 1;
                if let Some(sign) = group {
                    *self.decimal_comma_groups.entry(sign).or_default() += 1;
                }
            }
        }
        let mark = (dressed.prefix, dressed.suffix);
        count(&mut self.marks, mark, 1);
    }

    /// Includes a number with the marks around it that are stripped.
    pub fn see_marks(&mut self, text: &str) {
        let mark = match Dressed::of(text) {
            Some(dressed) => (dressed.prefix, dressed.suffix),
            None if text.parse::<f64>().is_ok() => Default::default(),
            None => return,
        };
        count(&mut self.stripped, mark, 1);
    }

    fn see_date(&mut self, text: &str) {
        let is_long = text.len() > 40 || !text.bytes().any(|byte| byte.is_ascii_digit());
        if is_long {
            self.dates = 0;
            return;
        }
        for (at, (_, format)) in FORMATS.iter().enumerate() {
            let bit = 1 << at;
            if self.dates & bit != 0 && format.iso(text).is_none() {
                self.dates &= !bit;
            }
        }
        self.dates &= (1 << FORMATS.len()) - 1;
    }

    /// Includes the findings of following rows.
    pub fn merge(&mut self, other: Self) {
        self.dates &= other.dates;
        self.plain += other.plain;
        self.one_or_thousand += other.one_or_thousand;
        self.decimal_comma += other.decimal_comma;
        for (sign, num) in other.grouped {
            *self.grouped.entry(sign).or_default() += num;
        }
        for (sign, num) in other.decimal_comma_groups {
            *self.decimal_comma_groups.entry(sign).or_default() += num;
        }
        for (mark, num) in other.marks {
            count(&mut self.marks, mark, num);
        }
        for (mark, num) in other.stripped {
            count(&mut self.stripped, mark, num);
        }
        self.num += other.num;
        for (word, num) in other.nothing {
            *self.nothing.entry(word).or_default() += num;
        }
        self.first_nothing = self.first_nothing.take().or(other.first_nothing);
        self.placed_nothing = self.placed_nothing.take().or(other.placed_nothing);
        self.points += other.points;
        self.group_points += other.group_points;
        self.zeros += other.zeros;
        self.first = self.first.take().or(other.first);
        self.first_zeros = self.first_zeros.take().or(other.first_zeros);
        self.placed = self.placed.take().or(other.placed);
        self.placed_zeros = self.placed_zeros.take().or(other.placed_zeros);
    }

    /// Resolves the place in the file of the first of these.
    pub fn place(&mut self, place: &dyn Fn(u64) -> String) {
        let placed =
            |first: &mut Option<(u64, String)>| first.take().map(|(row, text)| (place(row), text));
        self.placed = self.placed.take().or(placed(&mut self.first));
        let nothing = placed(&mut self.first_nothing);
        self.placed_nothing = self.placed_nothing.take().or(nothing);
        self.placed_zeros = self.placed_zeros.take().or(placed(&mut self.first_zeros));
    }

    /// The oddity of a column without settings.
    pub fn oddity(&self, known: &Known<'_>) -> Option<Oddity> {
        if known.present == 0 {
            return None;
        }
        self.codes(known)
            .or_else(|| self.words_for_nothing(known))
            .or_else(|| self.numbers_for_people(known))
            .or_else(|| self.units_that_differ(known))
            .or_else(|| self.unusual_dates(known))
            .or_else(|| names_that_differ_by_case(known))
    }

    /// Numbers with leading zeros: codes, whose zeros matter.
    fn codes(&self, known: &Known<'_>) -> Option<Oddity> {
        let (place, text) = self.placed_zeros.as_ref()?;
        if known.texts > 0 || self.zeros == 0 {
            return None;
        }
        let name = known.name;
        let number = text.trim_start_matches('0');
        let number = if number.is_empty() { "0" } else { number };
        let message = format!(
            "`{name}` contains {} that begin with 0, the first at {place}: `{text}` is read as the number {number}",
            counted(self.zeros, "number")
        );
        let odd = Oddity::new(vec![name.to_owned()], message)
            .note("numbers with leading zeros are usually codes, such as postcodes")
            .help(format!(
                "add `[[data.columns]]` with `name = {}` and `type = \"category\"` for codes, or `type = \"number\"` for quantities",
                quoted(name)
            ));
        Some(Oddity {
            fix: Fix {
                kind: Some(crate::spec::data::ColumnType::Category),
                ..Fix::default()
            },
            ..odd
        })
    }

    /// Numbers, and words for missing ones.
    fn words_for_nothing(&self, known: &Known<'_>) -> Option<Oddity> {
        let (place, text) = self.placed_nothing.as_ref()?;
        let num: u64 = self.nothing.values().sum();
        let numbers = known.present - known.texts.min(known.present);
        if num != known.texts || numbers < num {
            return None;
        }
        let name = known.name;
        let message = format!(
            "`{name}` contains {} and {} that is not a number, the first at {place}: `{text}` probably means missing",
            counted(numbers, "number"),
            counted(num, "text"),
        );
        let marks: Vec<String> = self.nothing.keys().cloned().collect();
        let shown: Vec<_> = marks.iter().map(|mark| quoted(mark)).collect();
        let odd = Oddity::new(vec![name.to_owned()], message.replace("texts that is not a number", "texts that are not numbers"))
            .help(format!(
                "add `[[data.columns]]` with `name = {}` and `missing_values = [{}]`, and set how to handle missing values, such as `missing = \"drop\"`",
                quoted(name),
                shown.join(", ")
            ))
            .help("to keep the text as it is, set `type = \"category\"` there");
        Some(Oddity {
            is_refused: known.names.is_none_or(|names| names.len() > FEW),
            fix: Fix {
                missing_values: marks,
                ..Fix::default()
            },
            ..odd
        })
    }
}

/// Counts marks, as long as they are few.
fn count(marks: &mut BTreeMap<(String, String), u64>, mark: (String, String), num: u64) {
    if marks.len() < MAX_MARKS || marks.contains_key(&mark) {
        *marks.entry(mark).or_default() += num;
    }
}

/// Categories that differ only in case.
fn names_that_differ_by_case(known: &Known<'_>) -> Option<Oddity> {
    let names = known
        .names
        .filter(|names| names.len() > 1 && known.texts > 0)?;
    let is_repeated = names.len() <= FEW || names.len() as u64 <= known.present / 2;
    if !is_repeated {
        return None;
    }
    let mut seen: BTreeMap<String, &String> = BTreeMap::new();
    let mut twice = Vec::new();
    for name in names.iter().filter(|name| name.chars().count() > 1) {
        if let Some(other) = seen.insert(name.to_lowercase(), name) {
            twice.push(format!("`{other}` and `{name}`"));
        }
    }
    let first = twice.first()?;
    let more = match twice.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more such pairs)"),
    };
    let name = known.name;
    let message = format!("{first} are two categories of `{name}`{more} that differ only in case");
    Some(
        Oddity::new(vec![name.to_owned()], message)
            .help("if they mean the same, use the same spelling; to keep them separate, set `type = \"category\"` for the column in `[[data.columns]]`"),
    )
}

fn counted(num: u64, what: &str) -> String {
    crate::diagnostic::counted(usize::try_from(num).unwrap_or(usize::MAX), what)
}

fn quoted(text: &str) -> String {
    Value::Str(text.to_owned()).to_toml()
}
