//! Numbers that are formatted: with decimal commas, currencies, percent signs, units.

use std::collections::{BTreeMap, BTreeSet};

use super::{FEW, Known, Looks, counted, quoted};
use crate::data::oddity::{Fix, Oddity};
use crate::data::read::tables::number::is_currency;

/// The marks around the numbers of a column.
#[derive(Default)]
struct Marks {
    /// Every pair of marks before and after, with its count.
    all: Vec<(String, u64)>,
    /// The marks for `strip`.
    strip: Vec<String>,
    /// Whether they contain a word, such as a unit.
    words: bool,
    /// Whether they contain a currency.
    currency: bool,
    /// Why they must not be stripped.
    against: Option<String>,
    /// How often each occurs, if they differ.
    differing: Option<String>,
}

impl Looks {
    /// Numbers that programs cannot parse: with decimal commas, currencies, percent signs, units.
    pub(super) fn numbers_for_people(&self, known: &Known<'_>) -> Option<Oddity> {
        let (place, text) = self.placed.as_ref()?;
        let numbers = known.present - known.texts.min(known.present);
        let are_mostly_numbers = numbers * 10 >= known.present * 9;
        let is_mistyped = are_mostly_numbers && (self.num < known.texts || self.plain > 0);
        if (self.num + numbers) * 10 < known.present * 9 || is_mistyped {
            // A few mistyped values are reported as exceptions among numbers.
            return None;
        }
        let num_names = known.names.map_or(usize::MAX, BTreeSet::len);
        let marks = marks_of(&self.marks, numbers);
        let is_word_alone = marks.words && self.plain == self.num;
        let is_text = known.has_types && self.plain == self.num && marks.all.is_empty();
        if num_names <= FEW && (is_word_alone || is_text) || is_text && self.looks_like_codes(known)
        {
            // `64GB` and `128GB` are fine as categories, and a quoted text may be intended as one.
            return None;
        }
        let name = known.name;
        let message = format!(
            "{} of {} values of `{name}` {}, the first at {place}: `{text}`",
            self.num,
            known.present,
            if self.num == 1 {
                "is a formatted number"
            } else {
                "are formatted numbers"
            }
        );
        let message = if is_text {
            format!("the numbers of `{name}` are quoted, the first at {place}: \"{text}\"")
        } else {
            message
        };
        let mut odd = Oddity::new(vec![name.to_owned()], message);
        odd.is_refused = num_names > FEW && !is_text;
        self.say_how(known, &marks, &mut odd);
        if is_text || known.has_types {
            odd = odd.help(format!(
                "add `[[data.columns]]` with `name = {}` and `type = \"number\"` to read them as numbers",
                quoted(name)
            ));
            odd.fix.kind = Some(crate::spec::data::ColumnType::Number);
        }
        let other = format!(
            "to keep the text as it is, add `[[data.columns]]` with `name = {}` and `type = \"category\"`",
            quoted(name)
        );
        Some(odd.help(other))
    }

    /// Quoted texts that all have the same length, or begin with 0, are codes.
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

    /// Ambiguous formats: the reason, and a remedy. Numbers that were read with decimal commas are already shown with
    /// points.
    fn contradiction(&self, has_comma: bool, marks: &Marks) -> Option<(String, &'static str)> {
        let points =
            self.grouped.contains_key(&'.') || self.decimal_comma_groups.contains_key(&'.');
        if has_comma && self.decimal_comma == 0 && !points && marks.all.is_empty() {
            return Some((
                "with `decimal = \",\"`, a point is not part of a number".to_owned(),
                "if the point separates thousands, as in 1.234, set `thousands = \".\"` under `[data]`; if it separates decimals, fix the file, or remove `decimal`",
            ));
        }
        if self.decimal_comma == 0 {
            return None;
        }
        let why = if self.grouped.contains_key(&',') {
            "a comma separates decimals in some of them, and thousands in others".to_owned()
        } else if !has_comma && self.points > 0 {
            format!(
                "{} of the column have a decimal point, and {} a decimal comma",
                counted(self.points, "number"),
                self.decimal_comma
            )
        } else {
            return None;
        };
        Some((why, "use the same format in all of them"))
    }

    /// Adds the keys that read these numbers, or why there are none.
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
                .push("use plain numbers of one unit in the whole column".to_owned());
            return;
        }
        if is_open {
            let strip = if keys.is_empty() {
                String::new()
            } else {
                format!(", with {}", keys.join(" and "))
            };
            odd.notes.push(
                "three digits follow every comma, so it is ambiguous whether it separates decimals"
                    .to_owned(),
            );
            odd.helps.push(format!("if the comma separates thousands (1,234 is more than a thousand), set `thousands = \",\"` under `[data]`{strip}; if it separates decimals (1,234 is less than two), set `decimal = \",\"`{strip}"));
            return;
        }
        if keys.is_empty() {
            return;
        }
        odd.helps
            .insert(0, format!("set {} under `[data]`", keys.join(" and ")));
        odd.fix = fix;
    }

    /// Numbers of one column from which different marks are stripped, so that 7 % and 0.08 become 7 and 0.08.
    pub(super) fn units_that_differ(&self, known: &Known<'_>) -> Option<Oddity> {
        if known.texts > 0 {
            return None;
        }
        let why = marks_of(&self.stripped, 0).differing?;
        let name = known.name;
        let odd = Oddity::new(
            vec![name.to_owned()],
            format!("the numbers of `{name}` have different units: {why}"),
        );
        Some(
            odd.note("what `strip` removes does not change the numbers")
                .help("use plain numbers of one unit in the whole column")
                .help(format!(
                    "if all of them mean the same unit, add `[[data.columns]]` with `name = {}` and `type = \"number\"`",
                    quoted(name)
                )),
        )
    }
}

/// The marks around numbers, some of which are bare.
fn marks_of(counted: &BTreeMap<(String, String), u64>, numbers: u64) -> Marks {
    let mut marks = Marks::default();
    let mut bare = numbers;
    for ((prefix, suffix), num) in counted {
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
                marks.against = Some("parentheses around a number often mean that it is negative: use a minus sign instead".to_owned());
            } else if mark.contains(['<', '>', '~', '≈', '=']) {
                marks.against = Some(format!("`{mark}` means that the number is not exact"));
            } else if mark.contains(['"', '\'']) {
                marks.against = Some(
                    "the value itself contains quotes around the number: remove them from the file"
                        .to_owned(),
                );
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
            shown.push(format!("{bare} without any mark"));
        }
        // A bare zero is zero in every unit, but it may not be intended so.
        let shown = shown.join(", ");
        marks.against = Some(format!("they have different units: {shown}"));
        marks.differing = Some(shown);
    }
    marks
}
