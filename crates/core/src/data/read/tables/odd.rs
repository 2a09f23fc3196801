//! Columns that would silently be something else than they are: numbers that are written for people, dates
//! that are not ISO 8601, codes that look like numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use super::number::{Digits, Dressed, is_currency};
use crate::data::oddity::{Fix, Oddity};
use crate::spec::data::{DateFormat, ValuesSpec};
use crate::spec::document::Value;

/// So few different texts can be meant as categories, whatever they look like.
const FEW: usize = 20;
/// What people and programs write where there is no number, in any case.
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
/// Different things around numbers that are counted.
const MAX_MARKS: usize = 16;

/// Formats of dates that are tried on texts.
const DATES: [&str; 18] = [
    "%Y/%m/%d",
    "%Y.%m.%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%m-%d-%Y",
    "%d-%m-%Y",
    "%d.%m.%y",
    "%m/%d/%y",
    "%d/%m/%y",
    "%b %d, %Y",
    "%b %d %Y",
    "%d %b %Y",
    "%d. %b %Y",
    "%d-%b-%Y",
    "%d-%b-%y",
    "%b-%Y",
    "%Y-%m-%d",
];
/// And of times behind them.
const TIMES: [&str; 6] = [
    "",
    " %H:%M",
    " %H:%M:%S",
    " %I:%M %p",
    " %I:%M:%S %p",
    ", %H:%M",
];

static FORMATS: LazyLock<Vec<(String, DateFormat)>> = LazyLock::new(|| {
    let both = DATES
        .iter()
        .flat_map(|date| TIMES.iter().map(move |time| format!("{date}{time}")));
    let formats = both.filter_map(|text| Some((text.clone(), DateFormat::new(&text).ok()?)));
    formats.collect()
});

/// What was seen of the texts of a column.
#[derive(Clone, Debug)]
pub struct Looks {
    /// Formats of dates, by bit, that all texts have.
    dates: u128,
    /// Numbers that are written for people, by what makes them such.
    plain: u64,
    one_or_thousand: u64,
    grouped: BTreeMap<char, u64>,
    decimal_comma: u64,
    decimal_comma_groups: BTreeMap<char, u64>,
    /// What stands before and behind numbers; both empty for bare ones.
    marks: BTreeMap<(String, String), u64>,
    num: u64,
    /// Words for nothing, and the row of the first with its text.
    nothing: BTreeMap<String, u64>,
    first_nothing: Option<(u64, String)>,
    placed_nothing: Option<(String, String)>,
    /// Plain numbers with a point, those apart that could be groups of three digits.
    points: u64,
    group_points: u64,
    /// Numbers with zeros in front, and the row of the first with its text.
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

/// What is known of a column besides.
pub struct Known<'a> {
    /// Its name.
    pub name: &'a str,
    /// Values that are there.
    pub present: u64,
    /// Values that are not numbers.
    pub texts: u64,
    /// The different values; `None` when there are very many.
    pub names: Option<&'a BTreeSet<String>>,
    /// How values are written.
    pub values: &'a ValuesSpec,
    /// Whether the format can quote texts, so that a number in quotes is a text.
    pub has_types: bool,
}

impl Looks {
    /// Of rows that follow.
    pub fn follow(&self) -> Self {
        Self {
            dates: self.dates,
            ..Self::default()
        }
    }

    /// Takes a number into account.
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

    /// Takes a text into account.
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
        if self.marks.len() < MAX_MARKS || self.marks.contains_key(&mark) {
            *self.marks.entry(mark).or_default() += 1;
        }
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

    /// Takes into account what was seen of rows that follow.
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
            if self.marks.len() < MAX_MARKS || self.marks.contains_key(&mark) {
                *self.marks.entry(mark).or_default() += num;
            }
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

    /// Notes where in a file the first of these stands.
    pub fn place(&mut self, place: &dyn Fn(u64) -> String) {
        let placed =
            |first: &mut Option<(u64, String)>| first.take().map(|(row, text)| (place(row), text));
        self.placed = self.placed.take().or(placed(&mut self.first));
        let nothing = placed(&mut self.first_nothing);
        self.placed_nothing = self.placed_nothing.take().or(nothing);
        self.placed_zeros = self.placed_zeros.take().or(placed(&mut self.first_zeros));
    }

    /// What is odd about a column of which nothing is said.
    pub fn oddity(&self, known: &Known<'_>) -> Option<Oddity> {
        if known.present == 0 {
            return None;
        }
        self.codes(known)
            .or_else(|| self.words_for_nothing(known))
            .or_else(|| self.numbers_for_people(known))
            .or_else(|| self.unusual_dates(known))
            .or_else(|| names_that_differ_by_case(known))
    }

    /// Numbers with zeros in front: codes, of which the zeros are a part.
    fn codes(&self, known: &Known<'_>) -> Option<Oddity> {
        let (place, text) = self.placed_zeros.as_ref()?;
        if known.texts > 0 || self.zeros == 0 {
            return None;
        }
        let name = known.name;
        let number = text.trim_start_matches('0');
        let number = if number.is_empty() { "0" } else { number };
        let message = format!(
            "`{name}` holds {} that begin with 0, the first at {place}: `{text}` is read as the number {number}",
            counted(self.zeros, "number")
        );
        let odd = Oddity::new(vec![name.to_owned()], message)
            .note("numbers with zeros in front are mostly codes, such as postcodes")
            .help(format!(
                "write `[[data.columns]]` with `name = {}` and `type = \"category\"` for codes, or `type = \"number\"` for amounts",
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

    /// Numbers, and words for a missing one.
    fn words_for_nothing(&self, known: &Known<'_>) -> Option<Oddity> {
        let (place, text) = self.placed_nothing.as_ref()?;
        let num: u64 = self.nothing.values().sum();
        let numbers = known.present - known.texts.min(known.present);
        if num != known.texts || numbers < num {
            return None;
        }
        let name = known.name;
        let message = format!(
            "`{name}` holds {} and {} that is none, the first at {place}: `{text}` most likely stands for a missing value",
            counted(numbers, "number"),
            counted(num, "text"),
        );
        let marks: Vec<String> = self.nothing.keys().cloned().collect();
        let shown: Vec<_> = marks.iter().map(|mark| quoted(mark)).collect();
        let odd = Oddity::new(vec![name.to_owned()], message.replace("texts that is none", "texts that are none"))
            .help(format!(
                "write `[[data.columns]]` with `name = {}` and `missing_values = [{}]`, and what becomes of missing values, such as `missing = \"drop\"`",
                quoted(name),
                shown.join(", ")
            ))
            .help("to keep the texts as they are, write `type = \"category\"` there");
        Some(Oddity {
            is_refused: known.names.is_none_or(|names| names.len() > FEW),
            fix: Fix {
                missing_values: marks,
                ..Fix::default()
            },
            ..odd
        })
    }

    /// Numbers that no program reads: with decimal commas, currencies, percent signs, units.
    fn numbers_for_people(&self, known: &Known<'_>) -> Option<Oddity> {
        let (place, text) = self.placed.as_ref()?;
        let numbers = known.present - known.texts.min(known.present);
        let are_mostly_numbers = numbers * 10 >= known.present * 9;
        let is_mistyped = are_mostly_numbers && (self.num < known.texts || self.plain > 0);
        if (self.num + numbers) * 10 < known.present * 9 || is_mistyped {
            // Of a few mistyped ones it is told that the others are numbers.
            return None;
        }
        let num_names = known.names.map_or(usize::MAX, BTreeSet::len);
        let marks = self.marks_of(numbers);
        let is_word_alone = marks.words && self.plain == self.num;
        let is_text = known.has_types && self.plain == self.num && marks.all.is_empty();
        if num_names <= FEW && (is_word_alone || is_text) || is_text && self.looks_like_codes(known)
        {
            // `64GB` and `128GB` are fine as categories, and a text in quotes may be meant as one.
            return None;
        }
        let name = known.name;
        let message = format!(
            "{} of {} values of `{name}` {}, the first at {place}: `{text}`",
            self.num,
            known.present,
            if self.num == 1 {
                "is a number that is written for people"
            } else {
                "are numbers that are written for people"
            }
        );
        let message = if is_text {
            format!(
                "the numbers of `{name}` are written as texts, the first at {place}: \"{text}\""
            )
        } else {
            message
        };
        let mut odd = Oddity::new(vec![name.to_owned()], message);
        odd.is_refused = num_names > FEW && !is_text;
        self.say_how(known, &marks, &mut odd);
        if is_text || known.has_types {
            odd = odd.help(format!(
                "write `[[data.columns]]` with `name = {}` and `type = \"number\"` to read them as numbers",
                quoted(name)
            ));
            odd.fix.kind = Some(crate::spec::data::ColumnType::Number);
        }
        let other = format!(
            "to keep the texts as they are, write `[[data.columns]]` with `name = {}` and `type = \"category\"`",
            quoted(name)
        );
        Some(odd.help(other))
    }

    /// Texts in quotes that are all as long as each other, or begin with 0, are codes.
    fn looks_like_codes(&self, known: &Known<'_>) -> bool {
        let Some(names) = known.names else {
            return false;
        };
        let mut lengths = names.iter().map(String::len);
        let first = lengths.next();
        let is_one_length = lengths.all(|len| Some(len) == first);
        is_one_length
            || names
                .iter()
                .any(|name| name.len() > 1 && name.starts_with('0') && !name.contains('.'))
    }

    /// What cannot be read in one way: the reason, and what to do. Numbers that were read with decimal commas are
    /// shown with points by now.
    fn contradiction(&self, has_comma: bool, marks: &Marks) -> Option<(String, &'static str)> {
        let points =
            self.grouped.contains_key(&'.') || self.decimal_comma_groups.contains_key(&'.');
        if has_comma && self.decimal_comma == 0 && !points && marks.all.is_empty() {
            return Some((
                "with `decimal = \",\"`, a point is not a part of a number".to_owned(),
                "if the point groups digits, as in 1.234, write `thousands = \".\"` under `[data]`; if it stands before decimals, mend the file, or remove `decimal`",
            ));
        }
        if self.decimal_comma == 0 {
            return None;
        }
        let why = if self.grouped.contains_key(&',') {
            "a comma stands before decimals in some of them, and before three digits that are a group in others".to_owned()
        } else if !has_comma && self.points > 0 {
            format!(
                "{} of the column have a point before their decimals, and {} a comma",
                counted(self.points, "number"),
                self.decimal_comma
            )
        } else {
            return None;
        };
        Some((why, "write all of them in one way"))
    }

    /// Adds the keys that read these numbers, or what is in the way of that.
    fn say_how(&self, known: &Known<'_>, marks: &Marks, odd: &mut Oddity) {
        let mut keys: Vec<String> = Vec::new();
        let mut fix = Fix::default();
        let points = self.grouped.get(&'.').copied().unwrap_or(0)
            + self.decimal_comma_groups.get(&'.').copied().unwrap_or(0);
        let commas = self.grouped.get(&',').copied().unwrap_or(0);
        let groups = self.grouped.keys().chain(self.decimal_comma_groups.keys());
        let groups: BTreeSet<char> = groups.copied().collect();
        let has_comma = known.values.decimal == ',';
        if let Some((note, help)) = self.contradiction(has_comma, marks) {
            odd.notes.push(note);
            odd.helps.push(help.to_owned());
            return;
        }
        if !has_comma && (self.decimal_comma > 0 || groups.contains(&'.')) {
            keys.push("`decimal = \",\"`".to_owned());
            fix.decimal = Some(',');
        }
        let is_unknown =
            self.one_or_thousand > 0 && self.decimal_comma == 0 && commas == 0 && points == 0;
        // Prices do not have three decimals.
        let is_open = is_unknown && !marks.currency;
        let is_grouped_by_points = !has_comma && self.decimal_comma > 0 && self.group_points > 0;
        let groups = if groups.is_empty() && is_grouped_by_points {
            BTreeSet::from(['.'])
        } else if groups.is_empty() && is_unknown && marks.currency {
            BTreeSet::from([','])
        } else {
            groups
        };
        let group = groups.iter().next().copied();
        if let Some(sign) = group.filter(|_| groups.len() == 1) {
            keys.push(format!("`thousands = {}`", quoted(&sign.to_string())));
            fix.thousands = Some(sign);
        }
        if !marks.strip.is_empty() {
            let strip: Vec<_> = marks.strip.iter().map(|mark| quoted(mark)).collect();
            keys.push(format!("`strip = [{}]`", strip.join(", ")));
            fix.strip.clone_from(&marks.strip);
        }
        if let Some(why) = &marks.against {
            odd.notes.push(why.clone());
            odd.helps
                .push("write all values of the column as plain numbers of one unit".to_owned());
            return;
        }
        if is_open {
            let strip = if keys.is_empty() {
                String::new()
            } else {
                format!(", with {}", keys.join(" and "))
            };
            odd.notes.push("three digits follow every comma, so the values do not say whether it stands before decimals".to_owned());
            odd.helps.push(format!("if the comma groups digits (1,234 is more than a thousand), write `thousands = \",\"` under `[data]`{strip}; if it stands before decimals (1,234 is less than two), write `decimal = \",\"`{strip}"));
            return;
        }
        if keys.is_empty() {
            return;
        }
        odd.helps
            .insert(0, format!("write {} under `[data]`", keys.join(" and ")));
        odd.fix = fix;
    }

    /// What stands around the numbers.
    fn marks_of(&self, numbers: u64) -> Marks {
        let mut marks = Marks::default();
        let mut bare = numbers;
        for ((prefix, suffix), num) in &self.marks {
            if prefix.is_empty() && suffix.is_empty() {
                bare += num;
                continue;
            }
            let whole = format!("{prefix}…{suffix}");
            marks.all.push((whole, *num));
            for mark in [prefix, suffix] {
                if mark.is_empty() {
                    continue;
                }
                marks.currency |= is_currency(mark);
                marks.words |= !is_currency(mark) && mark.chars().any(char::is_alphabetic);
                if mark.contains(['(', ')']) {
                    marks.against = Some("brackets around a number often say that it is negative: write it with a minus".to_owned());
                } else if mark.contains(['<', '>', '~', '≈', '=']) {
                    marks.against =
                        Some(format!("`{mark}` says that the number itself is not known"));
                } else if mark.contains(['"', '\'']) {
                    marks.against = Some("there are quotes around the number in the value itself: take them out of the file".to_owned());
                } else if !marks.strip.contains(mark) {
                    marks.strip.push(mark.clone());
                }
            }
        }
        let is_mixed = marks.all.len() > 1 || !marks.all.is_empty() && bare > 0;
        if is_mixed && marks.against.is_none() {
            let mut shown: Vec<_> = marks
                .all
                .iter()
                .take(4)
                .map(|(mark, num)| format!("{num} as `{mark}`"))
                .collect();
            if bare > 0 {
                shown.push(format!("{bare} without any sign"));
            }
            // A bare zero is zero in every unit, but nobody knows that it is meant so.
            marks.against = Some(format!("they are not of one unit: {}", shown.join(", ")));
        }
        marks
    }

    /// Dates that are read as names.
    fn unusual_dates(&self, known: &Known<'_>) -> Option<Oddity> {
        let formats = FORMATS.iter().enumerate();
        let formats = formats.filter(|(at, _)| self.dates & (1 << at) != 0);
        let mut formats: Vec<&str> = formats.map(|(_, (text, _))| text.as_str()).collect();
        if known.texts != known.present || formats.iter().any(|text| text.starts_with("%Y-%m-%d")) {
            return None;
        }
        // A blank in a format takes in none too, so a shorter one may fit as well.
        formats.dedup_by(|a, b| a.replace(", ", " ") == b.replace(", ", " "));
        let shown = known.names.and_then(BTreeSet::first)?;
        let name = known.name;
        let several: Vec<_> = formats
            .iter()
            .map(|text| format!("`date_format = {}`", quoted(text)))
            .collect();
        let first = formats.first()?;
        let message = format!(
            "`{name}` holds dates such as `{shown}`, which are read as names: they are not sorted by time"
        );
        let odd = Oddity::new(vec![name.to_owned()], message);
        let odd = match several.as_slice() {
            [only] => Oddity {
                fix: Fix {
                    date_format: Some((*first).to_owned()),
                    ..Fix::default()
                },
                ..odd.help(format!("write {only} under `[data]`"))
            },
            _ => odd
                .note("no day above 12 says which number is the month")
                .help(format!(
                    "write the one that is meant under `[data]`: {}",
                    several.join(" or ")
                )),
        };
        Some(odd.help(format!(
            "or name the column in `ignore = [{}]`",
            quoted(name)
        )))
    }
}

/// What stands around the numbers of a column.
#[derive(Default)]
struct Marks {
    /// Every pair of what stands before and behind, with how often.
    all: Vec<(String, u64)>,
    /// What `strip` is to leave out.
    strip: Vec<String>,
    /// Whether a word is among them, such as a unit.
    words: bool,
    /// Whether a currency is among them.
    currency: bool,
    /// Why they must not be left out.
    against: Option<String>,
}

/// Categories of which two are the same but for capitals.
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
    let message =
        format!("{first} are two categories of `{name}`{more}: they differ in capitals only");
    Some(
        Oddity::new(vec![name.to_owned()], message)
            .help("if they mean the same, write them in one way; `[[data.columns]]` with the column's `type = \"category\"` says that they are meant to differ"),
    )
}

fn counted(num: u64, what: &str) -> String {
    crate::diagnostic::counted(usize::try_from(num).unwrap_or(usize::MAX), what)
}

fn quoted(text: &str) -> String {
    Value::Str(text.to_owned()).to_toml()
}
