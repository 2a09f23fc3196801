//! The keys that read a table correctly, found by reading it: whatever looks wrong is fixed, and the file is read
//! again.

use super::look::records;
use super::{Found, Line, quoted};
use crate::data::DataError;
use crate::data::oddity::{Fix, Oddity};
use crate::data::profile::short;
use crate::data::records::Records;
use crate::data::suspects;
use crate::spec::data::{ColumnSpec, FilesSpec, Format};
use crate::spec::section::Choice;

/// How often a file is read again with the new settings.
const ROUNDS: usize = 3;

/// Reads files with the keys that they need, which are added to the findings.
pub fn read(files: &mut FilesSpec, found: &mut Found) -> Result<Records, DataError> {
    let mut records = records(files)?;
    for _ in 0..ROUNDS {
        if !mend(files, &records) {
            break;
        }
        records = self::records(files)?;
    }
    if mark_missing(files, &records) {
        records = self::records(files)?;
    }
    // Earlier findings concern the targets.
    let before = std::mem::take(&mut found.keys);
    found.keys = keys(files);
    found.keys.extend(before);
    found.said = said(files);
    Ok(records)
}

/// Adopts the keys that fix oddities; returns whether there were any.
fn mend(files: &mut FilesSpec, records: &Records) -> bool {
    let before = files.clone();
    let oddities: Vec<Oddity> = records.header.oddities.clone();
    for odd in &oddities {
        for column in &odd.columns {
            let Fix {
                kind,
                date_format,
                missing_values,
                ..
            } = &odd.fix;
            if !missing_values.is_empty() {
                let of = column_of(files, column);
                of.missing_values
                    .get_or_insert_with(|| missing_values.clone());
            }
            if kind.is_some() || date_format.is_some() {
                let of = column_of(files, column);
                of.kind = of.kind.or(*kind);
                of.date_format = of.date_format.take().or(date_format.clone());
            }
        }
        let fix = &odd.fix;
        let values = &mut files.roles.values;
        if let Some(decimal) = fix.decimal {
            values.decimal = decimal;
        }
        values.thousands = values.thousands.or(fix.thousands);
        for mark in &fix.strip {
            if !values.strip.contains(mark) {
                values.strip.push(mark.clone());
            }
        }
        if let Format::Csv { rows, .. } = &mut files.format {
            rows.skip_footer = rows.skip_footer.max(fix.skip_footer);
            rows.skip_rows_after_header =
                rows.skip_rows_after_header.max(fix.skip_rows_after_header);
        }
    }
    if files.roles.values.thousands == Some(files.roles.values.decimal) {
        files.roles.values.thousands = None;
    }
    before != *files
}

/// Marks numbers such as -999 as missing; returns whether there were any.
fn mark_missing(files: &mut FilesSpec, records: &Records) -> bool {
    // Only tables and named arrays have settings for single columns.
    if matches!(
        files.format,
        Format::Npy { .. } | Format::Idx { .. } | Format::ImageFolder { .. } | Format::Text
    ) {
        return false;
    }
    let all: Vec<usize> = (0..records.columns().len()).collect();
    let found = suspects::all(files, records, &all);
    for (at, sentinel) in &found {
        let name = records.columns()[*at].name.clone();
        let mark = if sentinel.value.fract() == 0.0 && sentinel.value.abs() < 1e15 {
            format!("{}", sentinel.value)
        } else {
            short(sentinel.value)
        };
        column_of(files, &name)
            .missing_values
            .get_or_insert_default()
            .push(mark);
    }
    !found.is_empty()
}

/// The settings of a column.
fn column_of<'a>(files: &'a mut FilesSpec, name: &str) -> &'a mut ColumnSpec {
    let columns = &mut files.roles.columns;
    let at = match columns.iter().position(|column| column.name == name) {
        Some(at) => at,
        None => {
            columns.push(ColumnSpec::named(name));
            columns.len() - 1
        }
    };
    &mut columns[at]
}

/// Keys of `[data]` that differ from the defaults.
fn keys(files: &FilesSpec) -> Vec<Line> {
    let mut keys = Vec::new();
    if let Format::Csv {
        delimiter,
        header,
        rows,
        ..
    } = &files.format
    {
        if *delimiter != ',' {
            let meaning = "the character between values";
            keys.push(Line::text("delimiter", &delimiter.to_string(), meaning));
        }
        if !*header {
            let meaning = "the first row contains values instead of names";
            keys.push(Line::new("header", "false", meaning));
        }
        for (key, num, meaning) in [
            ("skip_rows", rows.skip_rows, "lines to skip above the table"),
            (
                "skip_rows_after_header",
                rows.skip_rows_after_header,
                "rows to skip below the names, such as units",
            ),
            (
                "skip_footer",
                rows.skip_footer,
                "rows to skip at the end, such as totals",
            ),
        ] {
            if num > 0 {
                keys.push(Line::new(key, num.to_string(), meaning));
            }
        }
        if let Some(sign) = rows.comment {
            let meaning = "lines that begin with it are skipped";
            keys.push(Line::text("comment", &sign.to_string(), meaning));
        }
    }
    let values = &files.roles.values;
    if values.decimal != '.' {
        let meaning = "the decimal separator";
        keys.push(Line::text("decimal", &values.decimal.to_string(), meaning));
    }
    if let Some(sign) = values.thousands {
        let meaning = "the thousands separator";
        keys.push(Line::text("thousands", &sign.to_string(), meaning));
    }
    if !values.strip.is_empty() {
        let marks: Vec<_> = values.strip.iter().map(|mark| quoted(mark)).collect();
        let meaning = "marks to remove around numbers";
        keys.push(Line::new(
            "strip",
            format!("[{}]", marks.join(", ")),
            meaning,
        ));
    }
    keys
}

/// The settings of columns.
fn said(files: &FilesSpec) -> Vec<(String, Vec<Line>)> {
    let columns = files.roles.columns.iter().map(|column| {
        let mut lines = Vec::new();
        if let Some(kind) = column.kind {
            let meaning =
                "the kind of its values: \"number\" for quantities, \"category\" for codes and names";
            lines.push(Line::text("type", kind.name(), meaning));
        }
        if let Some(format) = &column.date_format {
            lines.push(Line::text(
                "date_format",
                format,
                "the date format",
            ));
        }
        if let Some(marks) = &column.missing_values {
            let meaning = "probably means missing; use [] if it is a value";
            let marks = marks.iter().map(|mark| {
                if mark.parse::<f64>().is_ok_and(f64::is_finite) {
                    mark.clone()
                } else {
                    quoted(mark)
                }
            });
            let marks: Vec<_> = marks.collect();
            lines.push(Line::new(
                "missing_values",
                format!("[{}]", marks.join(", ")),
                meaning,
            ));
        }
        (column.name.clone(), lines)
    });
    columns.collect()
}
