//! From a plan to the items of its splits: read, assigned, fitted and digested.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::encode::{Encoder, Fitting, InputEncoder, TargetEncoder, array_scaling, fit};
use super::missing::{all_dropped, dropped, refuse_empty_columns};
use super::read::Watch;
use super::records::{ColumnKind, Records};
use super::series::Series;
use super::serve::{Set, Split};
use super::split::{Assigned, Known, assign, ordered};
use super::uses::Uses;
use super::{
    DataError, DataPlan, Dataset, Inputs, Items, TargetPlan, TargetValues, Trust, cache, content,
    embedded, generate, mnist,
};
use crate::diagnostic::counted;
use crate::spec::data::{AugmentSpec, FilesSpec, Scale, SplitOrder, SplitSpec};

/// A data set, ready to be trained on.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The train split.
    pub train: Split,
    /// The valid split, which epochs are compared on.
    pub valid: Split,
    /// The test split, which is evaluated once.
    pub test: Option<Split>,
    /// Factor and offset of image values, for pixels from 0 to 1.
    pub to_pixels: (f32, f32),
    /// sha256 of each split's items in order, by split.
    pub digests: BTreeMap<String, String>,
    /// Items that were dropped because a value is missing.
    pub num_dropped: usize,
}

/// The splits of a data set, before fitting and digests.
pub(super) struct Splits {
    pub(super) train: Split,
    pub(super) valid: Split,
    pub(super) test: Option<Split>,
    pub(super) num_dropped: usize,
}

/// Reads, checks and splits the items of a plan. Files that certainly did not change are not read again.
pub fn load(plan: &DataPlan, watch: Watch<'_>) -> Result<Loaded, DataError> {
    load_by(plan, Trust::Stamps, watch)
}

/// The same; with [`Trust::Bytes`] every file is read to its end.
pub fn load_by(plan: &DataPlan, trust: Trust, watch: Watch<'_>) -> Result<Loaded, DataError> {
    let splits = match &plan.dataset {
        Dataset::Files { files, cache } => {
            let [now, former] = cache::digest_and_former(files, cache, trust)?;
            if plan.digest != former {
                as_planned(plan, &now)?;
            }
            let reading = Reading {
                split: &plan.split,
                scale: plan.scale,
                augment: plan.augment.as_ref(),
                measure: true,
            };
            reading.files(files, &now, cache, watch)?
        }
        Dataset::Iris => embedded(embedded::iris()?, plan)?,
        Dataset::Digits { image_size } => embedded(embedded::digits(*image_size)?, plan)?,
        Dataset::Mnist { folder, part } => {
            let loaded = mnist::load(folder, *part)?;
            as_planned(plan, &loaded.digest)?;
            of_items(loaded.items, loaded.test, plan)
        }
        Dataset::Synthetic(generated) => {
            as_planned(plan, &content::of_generated(generated))?;
            of_items(generate::generate(generated), None, plan)
        }
    };
    items_as_planned(plan, &splits)?;
    let mut digests = BTreeMap::new();
    let named = [
        ("train", Some(&splits.train)),
        ("valid", Some(&splits.valid)),
        ("test", splits.test.as_ref()),
    ];
    for (name, split) in named {
        if let Some(split) = split {
            digests.insert(name.to_owned(), split.digest());
        }
    }
    Ok(Loaded {
        to_pixels: splits.train.set().encoder.input.to_pixels(),
        train: splits.train,
        valid: splits.valid,
        test: splits.test,
        digests,
        num_dropped: splits.num_dropped,
    })
}

/// Embedded data.
fn embedded(items: Items, plan: &DataPlan) -> Result<Splits, DataError> {
    as_planned(plan, &content::of_items(&items))?;
    Ok(of_items(items, None, plan))
}

fn changed(how: &str) -> DataError {
    DataError::new(format!(
        "the data changed since the experiment was planned: {how}"
    ))
    .help("run `runner run` on the experiment again")
}

/// Refuses data with a different digest than the plan's. Plans of earlier versions may have none.
fn as_planned(plan: &DataPlan, digest: &str) -> Result<(), DataError> {
    if plan.digest.is_empty() || plan.digest == digest {
        return Ok(());
    }
    Err(match &plan.dataset {
        Dataset::Mnist { .. } | Dataset::Files { .. } => {
            changed("the content of its files changed")
        }
        Dataset::Digits { .. } | Dataset::Iris | Dataset::Synthetic(_) => {
            let message = format!(
                "this build of runner has a different data set `{}` than the run was planned with",
                plan.dataset.name()
            );
            DataError::new(message).help("run `runner run` on the experiment again")
        }
    })
}

/// Refuses items whose number, shape or kind differs from the plan.
fn items_as_planned(plan: &DataPlan, splits: &Splits) -> Result<(), DataError> {
    let num = |split: &Split| split.num_items();
    let num_test = splits.test.as_ref().map_or(0, num);
    let expected = (plan.num_train, plan.num_valid, plan.num_test);
    let found = (num(&splits.train), num(&splits.valid), num_test);
    if expected != found {
        return Err(changed(&format!(
            "expected {} train, {} valid and {} test items, found {}, {} and {}",
            expected.0, expected.1, expected.2, found.0, found.1, found.2
        )));
    }
    let encoder = &splits.train.set().encoder;
    let input = encoder.input.plan();
    let target = encoder.target.plan(&input);
    if input != plan.input || target != plan.target {
        return Err(changed(&format!(
            "expected items of shape {:?} with {}, found {:?} with {}",
            plan.input.shape,
            plan.target.show(),
            input.shape,
            target.show()
        )));
    }
    Ok(())
}

/// Embedded or generated items as records of one input and one target.
fn of_items(items: Items, official_test: Option<Items>, plan: &DataPlan) -> Splits {
    let classes = match (&items.target, &items.targets) {
        (TargetPlan::Class { .. }, TargetValues::Classes(classes)) => Some(classes.clone()),
        _ => None,
    };
    let num = items.len();
    let known = Known {
        classes: classes.as_deref(),
        ..Known::default()
    };
    let mut assigned = assign(num, known, &plan.split);
    if let Some(test) = &official_test {
        assigned.test = (num as u32..(num + test.len()) as u32).collect();
    }
    let (shape, target_shape) = (items.input.shape.clone(), items.target.clone());
    let unit = match items.inputs {
        Inputs::Bytes { scale, .. } => scale,
        Inputs::Floats(_) | Inputs::Tokens(_) => 1.0,
    };
    let vocabulary = items.input.vocabulary;
    let records = items.into_records(official_test);
    let input = match vocabulary {
        Some(vocabulary) => InputEncoder::Tokens {
            column: 0,
            shape,
            vocabulary,
            shift: 0,
        },
        None => InputEncoder::Array {
            column: 0,
            shape,
            scaling: array_scaling(&records, 0, &assigned.train, plan.scale, unit),
            unit,
            normalize: plan.scale == Scale::Normalize,
        },
    };
    let target = match target_shape {
        TargetPlan::None => TargetEncoder::None,
        TargetPlan::Class { num_classes } => TargetEncoder::Class {
            column: 1,
            num_classes,
        },
        TargetPlan::Classes { shape, num_classes } => TargetEncoder::Classes {
            column: 1,
            shape,
            num_classes,
        },
        TargetPlan::Labels { num_labels } => TargetEncoder::Labels {
            columns: vec![1],
            num_labels,
        },
        TargetPlan::Values { shape } => TargetEncoder::Values {
            columns: vec![(1, vec![super::encode::Scaling::NONE])],
            shape,
        },
    };
    let set = Arc::new(Set {
        records,
        encoder: Arc::new(Encoder { input, target }),
    });
    let split = |rows: Vec<u32>| Split::of_rows(set.clone(), rows);
    Splits {
        train: split(assigned.train).augmented(plan.augment.clone()),
        valid: split(assigned.valid),
        test: (!assigned.test.is_empty()).then(|| split(assigned.test)),
        num_dropped: 0,
    }
}

/// How files become splits.
pub(super) struct Reading<'a> {
    pub(super) split: &'a SplitSpec,
    pub(super) scale: Scale,
    pub(super) augment: Option<&'a AugmentSpec>,
    /// Whether numbers are measured, or only shapes are needed.
    pub(super) measure: bool,
}

impl Reading<'_> {
    /// Reads, assigns and fits resolved files.
    pub(super) fn files(
        &self,
        files: &FilesSpec,
        digest: &str,
        cache: &Path,
        watch: Watch<'_>,
    ) -> Result<Splits, DataError> {
        // A run's data is always checked; a plan uses what was checked before.
        let trust = if self.measure {
            Trust::Bytes
        } else {
            Trust::Stamps
        };
        let records = cache::open(files, digest, cache, trust, watch)?;
        let uses = Uses::new(files, self.split, &records)?;
        refuse_infinite(&records, &uses)?;
        if let [column] = uses.features[..]
            && records.columns()[column].kind == ColumnKind::Text
            && uses.targets.is_empty()
        {
            return self.running_text(files, records, uses);
        }
        refuse_empty_columns(files, &records, &uses)?;
        let dropped = dropped(files, &records, &uses)?;
        let series = Series::new(files, &records, &uses)?;
        let mut assigned = self.assign(files, &records, &uses, &series, &dropped)?;
        let windows = files.roles.window.as_ref();
        let encoder = fit(&self.fitting(files, &records, &uses, &assigned.train, None))?;
        let places = windows.map(|window| (window, series.places(&records)));
        let starts = |rows: &mut Vec<u32>| {
            let (window, places) = places.as_ref()?;
            Some(series.window_starts(&records, places, rows, window))
        };
        let train_starts = starts(&mut assigned.train);
        let valid_starts = starts(&mut assigned.valid);
        let test_starts = starts(&mut assigned.test);
        let set = Arc::new(Set {
            records,
            encoder: Arc::new(encoder),
        });
        let split = |rows: Vec<u32>, starts: Option<Vec<u32>>| match starts {
            Some(starts) => Split::of_windows(set.clone(), rows, starts),
            None => Split::of_rows(set.clone(), rows),
        };
        let has_test = !assigned.test.is_empty();
        Ok(Splits {
            train: split(assigned.train, train_starts).augmented(self.augment.cloned()),
            valid: split(assigned.valid, valid_starts),
            test: has_test.then(|| split(assigned.test, test_starts)),
            num_dropped: dropped.iter().filter(|is| **is).count(),
        })
    }

    /// What an encoder of the files is fitted to.
    fn fitting<'a>(
        &self,
        files: &'a FilesSpec,
        records: &'a Records,
        uses: &'a Uses,
        train: &'a [u32],
        running_text: Option<&'a [&'a str]>,
    ) -> Fitting<'a> {
        Fitting {
            records,
            uses,
            roles: &files.roles,
            scale: self.scale,
            tokens: &files.tokens,
            train,
            running_text,
            measure: self.measure,
        }
    }

    /// The rows of each split: all rows of files for a split, and the others by the fractions.
    fn assign(
        &self,
        files: &FilesSpec,
        records: &Records,
        uses: &Uses,
        series: &Series,
        dropped: &[bool],
    ) -> Result<Assigned, DataError> {
        let [num_train, num_valid, num_test] = records.header.parts;
        let kept = |start: usize, num: usize| -> Vec<u32> {
            let rows = start..start + num;
            rows.filter(|row| !dropped.get(*row).is_some_and(|is| *is))
                .map(|row| row as u32)
                .collect()
        };
        let rows = kept(0, num_train);
        let valid = kept(num_train, num_valid);
        let test = kept(num_train + num_valid, num_test);
        let numbers = |column: usize| -> Vec<f64> {
            let rows = rows.iter();
            rows.map(|row| records.number(*row as usize, column, 0))
                .collect()
        };
        let keys = series.keys.as_deref().map(|keys| of_rows(keys, &rows));
        let groups = series.groups.as_deref().map(|all| of_rows(all, &rows));
        if rows.is_empty() && dropped.iter().any(|is| *is) {
            return Err(all_dropped(files, records, uses));
        }
        let mut split = self.split.clone();
        // The files of a split replace its fraction.
        if num_valid > 0 {
            split.valid = 0.0;
        }
        if num_test > 0 {
            split.test = 0.0;
        }
        if files.roles.window.is_some() && split.group_by.is_none() {
            // Windows of randomly chosen rows would be meaningless.
            split.order = SplitOrder::Time;
        }
        let target = match uses.targets[..] {
            [column] if records.columns()[column].len() == 1 => Some(column),
            _ => None,
        };
        let is_class = |column: &usize| {
            !matches!(
                records.columns()[*column].kind,
                ColumnKind::Numbers | ColumnKind::Doubles | ColumnKind::Text
            ) && records.header.extents[*column].min >= Some(0.0)
        };
        let classes: Option<Vec<i32>> = target.filter(is_class).map(|column| {
            let codes = numbers(column);
            codes.iter().map(|code| *code as i32).collect()
        });
        let known = Known {
            classes: classes.as_deref(),
            groups: groups.as_deref(),
            keys: keys.as_deref(),
        };
        let mut assigned = assign(rows.len(), known, &split);
        if let (Some(folds), Some(groups)) = (split.folds, &groups) {
            let mut left: BTreeSet<i64> = groups.iter().copied().collect();
            for at in &assigned.test {
                left.remove(&groups[*at as usize]);
            }
            if left.len() < folds {
                let name = split.group_by.as_deref().unwrap_or_default();
                let message = format!(
                    "there are {folds} folds, but only {} of `{name}`",
                    counted(left.len(), "group")
                );
                return Err(DataError::new(message)
                    .key("data.split.folds")
                    .note("a group is in one fold, so some folds would be empty")
                    .help(format!("use at most {} folds", left.len().max(2))));
            }
        }
        for places in [&mut assigned.train, &mut assigned.valid, &mut assigned.test] {
            for place in places.iter_mut() {
                *place = rows[*place as usize];
            }
        }
        let in_time = |mut rows: Vec<u32>| {
            if let Some(keys) = &series.keys {
                let keys = of_rows(keys, &rows);
                let order = ordered(rows.len(), Some(&keys));
                rows = order.iter().map(|at| rows[*at as usize]).collect();
            }
            rows
        };
        if num_valid > 0 {
            assigned.valid = in_time(valid);
        }
        if num_test > 0 {
            assigned.test = in_time(test);
        }
        Ok(assigned)
    }

    /// Texts without targets are concatenated; the splits are pieces of them, test last.
    fn running_text(
        &self,
        files: &FilesSpec,
        records: Records,
        uses: Uses,
    ) -> Result<Splits, DataError> {
        if self.split.folds.is_some() || self.split.group_by.is_some() {
            return Err(
                DataError::new("running text can only be split in its order")
                    .key("data.split")
                    .help("remove `folds` and `group_by`"),
            );
        }
        let column = uses.features[0];
        let [num_train, num_valid, num_test] = records.header.parts;
        let texts = |rows: std::ops::Range<usize>| -> Vec<&str> {
            rows.filter_map(|row| records.text(row, column)).collect()
        };
        let all = texts(0..num_train);
        let share = |num: usize, fraction: f64| if num > 0 { 0.0 } else { fraction };
        let valid_share = share(num_valid, self.split.valid);
        let test_share = share(num_test, self.split.test);
        let num_bytes: usize = all.iter().map(|text| text.len()).sum();
        let cut = |fraction: f64| (num_bytes as f64 * fraction).round() as usize;
        let first = cut(1.0 - valid_share - test_share);
        let second = cut(1.0 - test_share);
        let mut pieces = [
            piece(&all, 0, first),
            piece(&all, first, second),
            piece(&all, second, num_bytes),
        ];
        if num_valid > 0 {
            pieces[1] = texts(num_train..num_train + num_valid);
        }
        if num_test > 0 {
            pieces[2] = texts(num_train + num_valid..records.len());
        }
        let encoder = fit(&self.fitting(files, &records, &uses, &[], Some(&pieces[0])))?;
        let InputEncoder::Stream {
            tokenizer,
            length,
            stride,
            ..
        } = &encoder.input
        else {
            unreachable!("running text is a single stream");
        };
        let streams = pieces.map(|texts| {
            let tokens: Vec<Vec<i32>> = texts
                .par_iter()
                .map(|text| tokenizer.encode(text))
                .collect();
            let tokens = tokens.concat();
            let starts: Vec<u32> = (0..tokens.len().saturating_sub(*length))
                .step_by(*stride)
                .map(|at| at as u32)
                .collect();
            (tokens, starts)
        });
        let set = Arc::new(Set {
            records,
            encoder: Arc::new(encoder),
        });
        let [train, valid, test] =
            streams.map(|(tokens, starts)| Split::of_tokens(set.clone(), tokens, starts));
        Ok(Splits {
            train,
            valid,
            test: (test.num_items() > 0).then_some(test),
            num_dropped: 0,
        })
    }
}

/// The text between two byte positions of all texts, at character boundaries.
fn piece<'a>(texts: &[&'a str], start: usize, end: usize) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut before = 0;
    for text in texts {
        let place = |at: usize| {
            let mut at = at.clamp(before, before + text.len()) - before;
            while !text.is_char_boundary(at) {
                at += 1;
            }
            at
        };
        let part = &text[place(start)..place(end)];
        if !part.is_empty() {
            pieces.push(part);
        }
        before += text.len();
    }
    pieces
}

/// The values of some rows.
fn of_rows<T: Copy>(all: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|row| all[*row as usize]).collect()
}

fn refuse_infinite(records: &Records, uses: &Uses) -> Result<(), DataError> {
    let found = uses
        .used()
        .find(|at| records.header.extents[*at].infinite > 0);
    let Some(at) = found else { return Ok(()) };
    let num = records.header.extents[at].infinite;
    let name = &records.columns()[at].name;
    Err(DataError::new(format!(
        "column `{name}` contains infinite numbers in {num} of {} items",
        records.len()
    ))
    .help("fix the file, or exclude the column with `ignore`"))
}
