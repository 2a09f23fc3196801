//! Values in the format that the experiment sets, in machine-readable form.

use std::borrow::Cow;

use super::cell::{Cell, Cells};
use super::encode::shorten;
use super::number::plain;
use crate::diagnostic::Reason;
use crate::spec::data::{ColumnType, DateFormat, FilesSpec, ValuesSpec};

/// The value format of some files.
pub struct Writing<'a> {
    values: &'a ValuesSpec,
    date_format: Option<DateFormat>,
    marks: Marks,
    columns: Vec<Said<'a>>,
    /// Whether every value can be used as it is.
    is_usual: bool,
}

/// The settings of one column.
struct Said<'a> {
    name: &'a str,
    kind: Option<ColumnType>,
    date_format: Option<DateFormat>,
    marks: Marks,
}

/// Marks of missing values.
#[derive(Default)]
struct Marks {
    texts: Vec<String>,
    /// Those that are numbers, in any format.
    numbers: Vec<f64>,
}

impl Marks {
    fn of(texts: &[String]) -> Self {
        let numbers = texts.iter().filter_map(|text| text.trim().parse().ok());
        Self {
            numbers: numbers.filter(|number: &f64| number.is_finite()).collect(),
            texts: texts.to_vec(),
        }
    }

    fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    fn hold(&self, cell: &Cell<'_>, values: &ValuesSpec) -> bool {
        let number = match cell {
            Cell::Plain(text) | Cell::Text(text) => {
                if self.texts.iter().any(|mark| mark.trim() == text.trim()) {
                    return true;
                }
                if self.numbers.is_empty() {
                    return false;
                }
                plain(text, values).and_then(|text| text.parse().ok())
            }
            Cell::Whole(number) => Some(*number as f64),
            Cell::Float(number) => Some(*number),
            Cell::Missing | Cell::Bool(_) | Cell::List(_) | Cell::Wrong(_) => None,
        };
        number.is_some_and(|number| self.have(number))
    }

    /// Whether a number is one of them, or what 32 bits make of one.
    fn have(&self, number: f64) -> bool {
        let mut numbers = self.numbers.iter();
        numbers.any(|mark| number == *mark || number == f64::from(*mark as f32))
    }
}

/// A format that was checked when the experiment was read.
fn date_format(text: Option<&String>) -> Option<DateFormat> {
    text.and_then(|text| DateFormat::new(text).ok())
}

impl<'a> Writing<'a> {
    /// The settings of the experiment for some files.
    pub fn of(files: &'a FilesSpec) -> Self {
        let roles = &files.roles;
        let columns = roles.columns.iter().map(|said| Said {
            name: &said.name,
            kind: said.kind,
            date_format: date_format(said.date_format.as_ref()),
            marks: Marks::of(said.missing_values.as_deref().unwrap_or_default()),
        });
        let columns: Vec<_> = columns
            .filter(|said| {
                said.kind.is_some() || said.date_format.is_some() || !said.marks.is_empty()
            })
            .collect();
        let marks = Marks::of(files.missing_values());
        let is_usual = roles.values.has_plain_numbers()
            && roles.values.date_format.is_none()
            && marks.is_empty()
            && columns
                .iter()
                .all(|said| said.date_format.is_none() && said.marks.is_empty());
        Self {
            values: &roles.values,
            date_format: date_format(roles.values.date_format.as_ref()),
            marks,
            columns,
            is_usual,
        }
    }

    /// The values of a row in machine-readable form.
    pub fn read<'r>(&self, cells: Cells<'r>) -> Cells<'r> {
        if self.is_usual {
            return cells;
        }
        let cells = cells.into_iter();
        cells
            .map(|(name, cell)| {
                let said = self.columns.iter().find(|said| said.name == name);
                let cell = self.value(said, cell);
                (name, cell)
            })
            .collect()
    }

    fn value<'r>(&self, said: Option<&Said<'_>>, cell: Cell<'r>) -> Cell<'r> {
        let own = said.map(|said| &said.marks);
        let is_missing = |marks: &Marks| !marks.is_empty() && marks.hold(&cell, self.values);
        if is_missing(&self.marks) || own.is_some_and(is_missing) {
            return Cell::Missing;
        }
        if let Cell::List(mut list) = cell {
            for number in &mut list.values {
                if self.marks.have(*number) || own.is_some_and(|own| own.have(*number)) {
                    *number = f64::NAN;
                }
            }
            return Cell::List(list);
        }
        let kind = said.and_then(|said| said.kind);
        let own_format = said.and_then(|said| said.date_format.as_ref());
        // A date such as 20240103 is a number in JSON.
        let cell = match cell {
            Cell::Whole(number) if own_format.is_some() => Cell::Text(number.to_string().into()),
            cell => cell,
        };
        let format = own_format.or(self.date_format.as_ref());
        if let (Some(format), Cell::Plain(text) | Cell::Text(text)) = (format, &cell)
            && (own_format.is_some() || text.parse::<f64>().is_err())
        {
            match format.iso(text) {
                Some(iso) => return Cell::Text(Cow::Owned(iso)),
                None if own_format.is_some() && kind.is_none() => {
                    let reason = format!("`{}` does not match `date_format`", shorten(text));
                    return Cell::Wrong(Reason(reason));
                }
                None => {}
            }
        }
        let is_number = match (&cell, kind) {
            (_, Some(ColumnType::Category | ColumnType::Text | ColumnType::Chat)) => false,
            (Cell::Plain(_), _) => !self.values.has_plain_numbers(),
            // A text in JSON stays a text unless set otherwise.
            (Cell::Text(_), Some(ColumnType::Number)) => !self.values.has_plain_numbers(),
            _ => false,
        };
        match cell {
            Cell::Plain(text) | Cell::Text(text) if is_number => self.number(text, kind),
            cell => cell,
        }
    }

    fn number<'r>(&self, text: Cow<'r, str>, kind: Option<ColumnType>) -> Cell<'r> {
        let number = plain(&text, self.values).map(Cow::into_owned);
        if let Some(number) = number {
            return Cell::Plain(Cow::Owned(number));
        }
        let is_bool = matches!(
            text.trim(),
            "true" | "True" | "TRUE" | "false" | "False" | "FALSE"
        );
        match kind {
            Some(ColumnType::Number) if !is_bool => Cell::Wrong(Reason(format!(
                "`{}` does not match the number format of `decimal`, `thousands` and `strip`",
                shorten(&text)
            ))),
            // Never read as a number again.
            _ => Cell::Text(text),
        }
    }
}
