//! The value format of tables: decimal commas, thousands, marks around numbers, dates.

use serde::{Deserialize, Serialize};

use super::{DataKind, dates};
use crate::diagnostic::Diagnostic;
use crate::spec::document::Value;
use crate::spec::kind::Kind;
use crate::spec::section::Section;

/// The value format of every column that is not declared as categories or text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValuesSpec {
    /// The decimal separator.
    pub decimal: char,
    /// The thousands separator.
    pub thousands: Option<char>,
    /// Marks to remove before or after a number.
    pub strip: Vec<String>,
    /// The date format.
    pub date_format: Option<String>,
    /// Values that mean missing, in addition to the format's own; an empty list disables all.
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
    /// Whether values are used without any conversion.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// Whether numbers are in machine-readable form.
    pub fn has_plain_numbers(&self) -> bool {
        self.decimal == '.' && self.thousands.is_none() && self.strip.is_empty()
    }

    pub(super) fn decode(s: &mut Section<'_>, kind: DataKind) -> Self {
        let decimal: String = s
            .field(
                "decimal",
                Kind::OneOf(vec![(".", "A point: 1.5."), (",", "A comma: 1,5.")]),
                "The decimal separator.",
            )
            .or(".".to_owned());
        let thousands: Option<String> = s
            .field(
                "thousands",
                Kind::OneOf(vec![
                    (",", "A comma: 1,234,567."),
                    (".", "A point: 1.234.567."),
                    (" ", "A space, including a non-breaking one: 1 234 567."),
                    ("'", "An apostrophe: 1'234'567."),
                    ("_", "An underscore: 1_234_567."),
                ]),
                "The thousands separator; a number with other groups is not parsed as one.",
            )
            .optional();
        let mut values = Self {
            decimal: decimal.chars().next().unwrap_or('.'),
            thousands: thousands.and_then(|text| text.chars().next()),
            strip: s
                .field(
                    "strip",
                    Kind::list(Kind::Text, 0),
                    "Marks to remove before or after a number, such as \"$\" or \"%\": 87% becomes 87. Values that are not numbers are left unchanged.",
                )
                .or(Vec::new()),
            date_format: dates::decode(
                s,
                "The date format, such as \"%d.%m.%Y\"; ISO 8601 needs none.",
                true,
            ),
            missing_values: match kind {
                // A separate key with another default.
                DataKind::Csv => None,
                _ => Self::decode_missing(s),
            },
        };
        values.refuse_what_contradicts(s);
        values
    }

    /// For formats whose numbers are already numbers.
    pub(super) fn of_arrays(s: &mut Section<'_>) -> Self {
        Self {
            missing_values: Self::decode_missing(s),
            ..Self::default()
        }
    }

    fn decode_missing(s: &mut Section<'_>) -> Option<Vec<String>> {
        missing_marks(
            s,
            "Values that mean missing in addition to the format's defaults, such as -999; an empty list treats every number as data.",
        )
    }

    /// An ambiguous mark is refused.
    fn refuse_what_contradicts(&mut self, s: &mut Section<'_>) {
        if self.thousands == Some(self.decimal) {
            let message = format!(
                "`thousands` and `decimal` are both \"{}\", so `1{0}234` is ambiguous",
                self.decimal
            );
            let help = if self.decimal == '.' {
                "set `decimal = \",\"` too, or remove `thousands`"
            } else {
                "set `thousands = \".\"`, or remove it"
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
            (
                "(5) often stands for -5",
                "write such numbers with a minus sign",
            )
        } else if mark.contains(['<', '>']) {
            (
                "<5 is not 5",
                "decide what such values mean, and replace them in the data",
            )
        } else if mark.contains([',', '.']) {
            (
                "1,5 would become 15",
                "for thousands, set `thousands = \",\"`; for decimals, `decimal = \",\"`",
            )
        } else if mark.trim().is_empty() {
            ("whitespace around values is ignored anyway", "remove it")
        } else {
            (
                "it would change the number",
                "list the marks around numbers, such as `strip = [\"$\", \"%\"]`",
            )
        };
        let message = format!("`strip` cannot contain `{mark}`: {why}");
        let at = s.written_at("strip").unwrap_or_default();
        s.refuse(
            "strip",
            Diagnostic::error("out-of-range", message).at(at).help(help),
        );
        self.strip.retain(|mark| !is_wrong(&mark));
    }
}

/// Values that mean missing: texts, or numbers.
pub(super) fn missing_marks(s: &mut Section<'_>, doc: &'static str) -> Option<Vec<String>> {
    let values: Option<Vec<Value>> = s.field("missing_values", marks(), doc).optional();
    Some(values?.iter().map(mark).collect())
}

/// The same with the defaults if none are set.
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
