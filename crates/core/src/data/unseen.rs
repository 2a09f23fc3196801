//! Classes and categories that a split lacks.

use std::collections::BTreeSet;

use super::DataError;
use super::encode::{Feature, Form, InputEncoder, TargetEncoder};
use super::load::Splits;
use super::noticed::{ClassCounts, classes};
use super::records::ColumnKind;
use crate::spec::data::{DataKind, FilesSpec};
use crate::spec::document::Value;

/// Classes without an item, of integers that number them: those of items from 1 on, and most levels of a mask.
pub fn unused_classes(
    files: &FilesSpec,
    splits: &Splits,
    counted: Option<&ClassCounts>,
) -> Option<DataError> {
    /// Positions of masks that are looked at.
    const POSITIONS: usize = 1 << 20;
    /// With fewer, a class may just be rare.
    const MANY: usize = 8;
    const SHOWN: usize = 6;
    let set = splits.train.set();
    let is_numbered = |column: usize| {
        let kind = &set.records.columns()[column].kind;
        matches!(kind, ColumnKind::Bytes | ColumnKind::Whole)
    };
    match (&set.encoder.target, counted) {
        (TargetEncoder::Class { column, .. }, Some(found)) if is_numbered(*column) => {
            let first: u64 = found.counts.first()?.iter().sum();
            (first == 0).then(|| {
                DataError::new(format!(
                    "no item has class {} of `{}`, which has {} classes",
                    found.names[0], found.column, found.names.len()
                ))
                .key("data.path")
                .note("classes are numbered from 0, and one that does not occur is still an output of the network")
                .help("subtract 1 from all classes if they are numbered from 1")
            })
        }
        (
            target @ TargetEncoder::Classes {
                column,
                shape,
                num_classes,
            },
            _,
        ) if is_numbered(*column) && *num_classes > MANY => {
            // The classes of many items are in memory at once.
            let items = (POSITIONS / shape.iter().product::<usize>().max(1)).max(1);
            let some = splits.train.slice(0..items.min(splits.train.num_items()));
            let occurring: BTreeSet<i32> =
                classes(&some, target).filter(|class| *class >= 0).collect();
            (2 * occurring.len() < *num_classes).then(|| {
                let shown = occurring.iter().take(SHOWN).map(i32::to_string);
                let more = if occurring.len() > SHOWN { ", …" } else { "" };
                let error = DataError::new(format!(
                    "`{}` has {num_classes} classes, and most of them occur nowhere in the items that were looked at: only {}{more}",
                    set.records.columns()[*column].name,
                    crate::show::listed(shown)
                ))
                .key("data.path");
                let error = if files.kind() == DataKind::ImageFolder {
                    error.note("a level of 255 means no class, and is left out")
                } else if occurring.contains(&255) {
                    error.note("255 is a class here: positions without a class are -1 in arrays")
                } else {
                    error
                };
                error.help("number the classes 0, 1, 2, … without gaps")
            })
        }
        _ => None,
    }
}

/// Features of categories most of which are new in the valid split: dates, and names of single items.
pub fn categories(splits: &Splits) -> Vec<DataError> {
    let set = splits.valid.set();
    let InputEncoder::Features { features, .. } = &set.encoder.input else {
        return Vec::new();
    };
    if set.pairs.is_some() {
        // Features are those of another table.
        return Vec::new();
    }
    let named = features
        .iter()
        .filter(|feature| !matches!(feature.form, Form::Numbers { .. }));
    let unseen = named.filter_map(|feature| {
        let found = splits.valid.rows().iter().filter_map(|row| {
            let code = set.records.category(*row as usize, feature.column)?;
            Some(is_known(feature, code))
        });
        let (num, known) = found.fold((0_usize, 0), |(num, known), is_known| {
            (num + 1, known + usize::from(is_known))
        });
        (num > 0 && 2 * known < num).then(|| {
            DataError::new(format!(
                "{} of {num} valid items have categories of `{}` that the train split does not have, and that the network learns nothing about",
                num - known, feature.name
            ))
            .key("data.path")
            .help(format!(
                "list the column in `ignore = [{}]`, or replace it by what new items share with others, such as the weekday of a date",
                Value::Str(feature.name.clone()).to_toml()
            ))
        })
    });
    unseen.collect()
}

/// Whether a category occurs in the train split.
fn is_known(feature: &Feature, code: usize) -> bool {
    match &feature.form {
        Form::Numbers { .. } => true,
        Form::OneHot { places, .. } => places.get(code).is_some_and(Option::is_some),
        Form::Ordinal { numbers, .. } => numbers.get(code).is_some_and(|number| *number >= 0.0),
    }
}
