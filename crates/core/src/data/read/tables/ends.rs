//! Rows at the ends of a file that are not items: units below the header, totals and notes at the end.

use std::path::Path;

use super::Table;
use super::infer::Columns;
use crate::data::oddity::{Fix, Oddity};
use crate::spec::data::{FilesSpec, Format, RowsSpec};

/// The first and the last row of a file, which are most often not items.
#[derive(Default)]
pub struct Ends {
    first: Option<u64>,
    /// With its texts by column.
    last: Option<(u64, Vec<(String, String)>)>,
}

impl Ends {
    /// Includes the following rows.
    pub fn see<T: Table>(&mut self, table: &T, rows: &[(u64, T::Row)]) {
        let Some(((first, _), (last, row))) = rows.first().zip(rows.last()) else {
            return;
        };
        self.first.get_or_insert(*first);
        let cells = table.cells(row).unwrap_or_default().into_iter();
        let texts =
            cells.filter_map(|(name, cell)| Some((name.into_owned(), cell.text()?.into_owned())));
        self.last = Some((*last, texts.collect()));
    }

    /// Their oddities, compared with the other rows.
    pub fn oddities<T: Table>(
        &self,
        path: &Path,
        files: &FilesSpec,
        columns: &Columns,
    ) -> Vec<Oddity> {
        let mut oddities = Vec::new();
        let has_footer = matches!(files.format, Format::Csv { .. });
        let alone = |row: u64| Alone {
            place: T::place(path, row),
            texts: columns.texts_of_row_alone(row, &files.roles),
        };
        if let Some(row) = self.first.filter(|_| has_footer).map(alone)
            && !row.texts.is_empty()
        {
            oddities.push(row_of_units(&row));
        }
        if let Some((number, texts)) = &self.last {
            let row = alone(*number);
            let totals = columns.totals();
            let is_named = texts
                .iter()
                .any(|(name, text)| totals.contains(&name.as_str()) && is_total(text));
            if is_named || !row.texts.is_empty() {
                oddities.push(row_of_totals(&row, is_named, has_footer));
            }
        }
        oddities
    }
}

/// Whether a text is a name for a sum or mean over other rows.
pub fn is_total(text: &str) -> bool {
    const WORDS: [&str; 16] = [
        "total",
        "totals",
        "grand total",
        "subtotal",
        "sum",
        "average",
        "mean",
        "overall",
        "summe",
        "gesamt",
        "insgesamt",
        "durchschnitt",
        "mittelwert",
        "somme",
        "suma",
        "totale",
    ];
    let text = text.trim().trim_end_matches(':');
    text.len() <= 12 && WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Rows at the ends of a new file where the files of the run have rows that are not items. Not every new file has them,
/// so that each is tried.
pub struct Tried<R> {
    above: usize,
    below: usize,
    /// The last rows so far.
    held: Vec<(u64, R)>,
}

impl<R> Tried<R> {
    /// As many as the run's files leave out.
    pub fn of(rows: &RowsSpec) -> Self {
        Self {
            above: rows.skip_rows_after_header,
            below: rows.skip_footer,
            held: Vec::new(),
        }
    }

    /// The items in the next rows, as far as they are not the last ones, and the rows that are not items.
    pub fn next(&mut self, rows: Vec<(u64, R)>, is_item: impl Fn(&R) -> bool) -> Apart<R> {
        let (mut items, mut left_out) = (std::mem::take(&mut self.held), Vec::new());
        for row in rows {
            let is_tried = self.above > 0;
            self.above = self.above.saturating_sub(1);
            if is_tried && !is_item(&row.1) {
                left_out.push(row);
            } else {
                items.push(row);
            }
        }
        self.held = items.split_off(items.len().saturating_sub(self.below));
        (items, left_out)
    }

    /// The same of the last rows, at the end of the file.
    pub fn last(self, is_item: impl Fn(&R) -> bool) -> Apart<R> {
        let held = self.held.into_iter();
        held.partition(|(_, row)| is_item(row))
    }
}

/// Items, and rows that are not items.
type Apart<R> = (Vec<(u64, R)>, Vec<(u64, R)>);

/// A row of a file: its place, and its content in columns that are numeric in all other rows.
struct Alone {
    /// The row as text.
    place: String,
    /// The columns with the content of the row.
    texts: Vec<(String, String)>,
}

impl Alone {
    fn columns(&self) -> Vec<String> {
        self.texts.iter().map(|(name, _)| name.clone()).collect()
    }

    fn show(&self) -> String {
        let shown = self.texts.iter().take(3);
        let shown: Vec<_> = shown
            .map(|(name, text)| format!("`{text}` in `{name}`"))
            .collect();
        let more = if self.texts.len() > shown.len() {
            ", …"
        } else {
            ""
        };
        format!("{}{more}", shown.join(", "))
    }
}

/// A row below the header that probably contains units.
fn row_of_units(row: &Alone) -> Oddity {
    let message = format!(
        "{} contains {}, but all rows below it contain numbers",
        row.place,
        row.show()
    );
    Oddity {
        is_refused: true,
        fix: Fix {
            skip_rows_after_header: 1,
            ..Fix::default()
        },
        ..Oddity::new(row.columns(), message).help(
            "if it is a row of units or descriptions, set `skip_rows_after_header = 1` under `[data]`; otherwise fix it",
        )
    }
}

/// A row at the end that is probably a total of the others, or a note.
fn row_of_totals(row: &Alone, is_named: bool, has_footer: bool) -> Oddity {
    let what = if is_named {
        format!(
            "{}, the last row, is probably a total of the others",
            row.place
        )
    } else {
        format!(
            "{}, the last row, contains {}, but all rows above it contain numbers",
            row.place,
            row.show()
        )
    };
    let columns = if is_named { Vec::new() } else { row.columns() };
    let odd = Oddity::new(columns, what);
    let odd = if has_footer {
        odd.help("if it is not an item, set `skip_footer = 1` under `[data]`; otherwise fix it")
    } else {
        odd.help("if it is not an item, remove it from the file")
    };
    Oddity {
        is_refused: !is_named,
        fix: Fix {
            skip_footer: usize::from(has_footer),
            ..Fix::default()
        },
        ..odd
    }
}
