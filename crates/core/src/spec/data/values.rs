//! How the values of tables are written: decimal commas, thousands, signs around numbers, dates.

use serde::{Deserialize, Serialize};

use super::{DataKind, dates};
use crate::diagnostic::Diagnostic;
use crate::spec::document::Value;
use crate::spec::kind::Kind;
use crate::spec::section::Section;

/// How values are written, in every column that is not said to hold categories or texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValuesSpec {
    /// What stands before the decimals of a number.
    pub decimal: char,
    /// What groups the digits of a number by three.
    pub thousands: Option<char>,
    /// What may stand before or behind a number and is not a part of it.
    pub strip: Vec<String>,
    /// How dates are written.
    pub date_format: Option<String>,
    /// What stands for a missing value, besides the format's own word for it; an empty list says that nothing does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_values: Option<Vec<String>>,
}

impl Default for ValuesSpec {
    fn default() -> Self {
        Self {
            decimal: '.',
            thousands: None,
            strip: Vec::new(),
            date_format: None,
            missing_values: None,
        }
    }
}

impl ValuesSpec {
    /// Whether values are written as they are without a word about it.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Whether numbers are written as programs write them.
    pub fn has_plain_numbers(&self) -> bool {
        self.decimal == '.' && self.thousands.is_none() && self.strip.is_empty()
    }

    pub(super) fn decode(s: &mut Section<'_>, kind: DataKind) -> Self {
        let decimal: String = s
            .field(
                "decimal",
                Kind::OneOf(vec![(".", "A point: 1.5."), (",", "A comma: 1,5.")]),
                "What stands before the decimals of a number.",
            )
            .or(".".to_owned());
        let thousands: Option<String> = s
            .field(
                "thousands",
                Kind::OneOf(vec![
                    (",", "A comma: 1,234,567."),
                    (".", "A point: 1.234.567."),
                    (" ", "A blank, also one that does not break: 1 234 567."),
                    ("'", "An apostrophe: 1'234'567."),
                    ("_", "A low line: 1_234_567."),
                ]),
                "What groups the digits of a number by three; a number with other groups is not read as one.",
            )
            .optional();
        let mut values = Self {
            decimal: decimal.chars().next().unwrap_or('.'),
            thousands: thousands.and_then(|text| text.chars().next()),
            strip: s
                .field(
                    "strip",
                    Kind::list(Kind::Text, 0),
                    "What may stand before or behind a number and is left out, such as \"$\" or \"%\": 87% becomes 87. Values that are not numbers then stay as they are.",
                )
                .or(Vec::new()),
            date_format: dates::decode(
                s,
                "How dates are written, such as \"%d.%m.%Y\"; ISO 8601 needs no format.",
                true,
            ),
            missing_values: match kind {
                // Its own key, which has another default.
                DataKind::Csv => None,
                _ => Self::decode_missing(s),
            },
        };
        values.refuse_what_contradicts(s);
        values
    }

    /// For formats whose numbers are numbers already.
    pub(super) fn of_arrays(s: &mut Section<'_>) -> Self {
        Self {
            missing_values: Self::decode_missing(s),
            ..Self::default()
        }
    }

    fn decode_missing(s: &mut Section<'_>) -> Option<Vec<String>> {
        missing_marks(
            s,
            "What stands for a missing value besides the format's own, such as -999; an empty list says that no number does.",
        )
    }

    /// A sign that is read in two ways is refused.
    fn refuse_what_contradicts(&mut self, s: &mut Section<'_>) {
        if self.thousands == Some(self.decimal) {
            let message = format!(
                "`thousands` and `decimal` are both \"{}\", so `1{0}234` could be read in two ways",
                self.decimal
            );
            let help = if self.decimal == '.' {
                "write `decimal = \",\"` too, or remove `thousands`"
            } else {
                "write `thousands = \".\"`, or remove it"
            };
            let at = s.written_at("thousands").unwrap_or_default();
            let wrong = Diagnostic::error("contradiction", message)
                .at(at)
                .help(help);
            s.refuse("thousands", wrong);
            self.thousands = None;
        }
        let is_wrong = |mark: &&String| {
            mark.trim().is_empty()
                || mark.contains(|c: char| c.is_ascii_digit() || "+-.,()<>".contains(c))
        };
        let Some(mark) = self.strip.iter().find(is_wrong).cloned() else {
            return;
        };
        let (why, help) = if mark.contains(['(', ')']) {
            ("(5) often stands for -5", "write such numbers with a minus")
        } else if mark.contains(['<', '>']) {
            (
                "<5 is not 5",
                "decide what such values are to be, and write that",
            )
        } else if mark.contains([',', '.']) {
            (
                "1,5 would become 15",
                "for groups of digits, write `thousands = \",\"`; for decimals, `decimal = \",\"`",
            )
        } else if mark.trim().is_empty() {
            ("blanks around values do not count anyway", "remove it")
        } else {
            (
                "the number would change",
                "name what stands around numbers, such as `strip = [\"$\", \"%\"]`",
            )
        };
        let message = format!("`strip` cannot leave out `{mark}`: {why}");
        let at = s.written_at("strip").unwrap_or_default();
        s.refuse(
            "strip",
            Diagnostic::error("out-of-range", message).at(at).help(help),
        );
        self.strip.retain(|mark| !is_wrong(&mark));
    }
}

/// Values that stand for a missing one: texts, or numbers.
pub(super) fn missing_marks(s: &mut Section<'_>, doc: &'static str) -> Option<Vec<String>> {
    let values: Option<Vec<Value>> = s.field("missing_values", marks(), doc).optional();
    Some(values?.iter().map(mark).collect())
}

/// The same with those that are there when none are written.
pub(super) fn missing_marks_or(
    s: &mut Section<'_>,
    doc: &'static str,
    usual: &[&str],
) -> Vec<String> {
    let usual = usual.iter().map(|text| Value::Str((*text).to_owned()));
    let values: Vec<Value> = s.field("missing_values", marks(), doc).or(usual.collect());
    values.iter().map(mark).collect()
}

fn marks() -> Kind {
    let item = Kind::Either(Box::new(Kind::AnyText), Box::new(Kind::any()));
    Kind::list(item, 0)
}

fn mark(value: &Value) -> String {
    match value {
        Value::Str(text) => text.clone(),
        Value::Float(number) => number.to_string(),
        other => other.to_toml(),
    }
}
