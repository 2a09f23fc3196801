//! Files as splits: read, assigned and fitted.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::Splits;
use super::targets::refuse_targets;
use crate::data::encode::{Fitting, fit};
use crate::data::graph::Members;
use crate::data::missing::{all_dropped, dropped, refuse_empty_columns};
use crate::data::read::Watch;
use crate::data::records::{ColumnKind, Records};
use crate::data::series::Series;
use crate::data::serve::{Set, Split};
use crate::data::split::{Assigned, Known, assign, ordered};
use crate::data::uses::Uses;
use crate::data::{DataError, Trust, cache, graph};
use crate::diagnostic::counted;
use crate::spec::data::{AugmentSpec, FilesSpec, Scale, ScaleAxis, SplitOrder, SplitSpec};

/// How files become splits.
pub(in crate::data) struct Reading<'a> {
    pub(in crate::data) split: &'a SplitSpec,
    pub(in crate::data) scale: Scale,
    pub(in crate::data) scale_axis: ScaleAxis,
    pub(in crate::data) augment: Option<&'a AugmentSpec>,
    /// The fraction of the labels of the train split that are changed.
    pub(in crate::data) label_noise: f64,
    /// Whether numbers are measured, or only shapes are needed.
    pub(in crate::data) measure: bool,
}

impl Reading<'_> {
    /// Reads, assigns and fits resolved files.
    pub(in crate::data) fn files(
        &self,
        files: &FilesSpec,
        digest: &str,
        cache: &Path,
        watch: Watch<'_>,
    ) -> Result<Splits, DataError> {
        if let Some(graph) = files
            .graph
            .as_ref()
            .filter(|graph| !graph.items.are_nodes())
        {
            return self.edges(files, graph, (cache, watch));
        }
        refuse_negatives(files)?;
        let trust = self.trust();
        let records = cache::open(files, digest, cache, trust, watch)?;
        let uses = Uses::new(files, self.split, &records)?;
        refuse_infinite(&records, &uses)?;
        if let [column] = uses.features[..]
            && uses.inputs.is_empty()
            && records.columns()[column].kind == ColumnKind::Text
            && uses.all_targets().next().is_none()
        {
            if files.graph.is_some() {
                let message = "the nodes of a graph need a list of numbers each, but the only feature is text";
                return Err(DataError::new(message)
                    .key("data.graph")
                    .help("list columns of numbers or categories in `features`"));
            }
            // Rows are sentences or documents of their own; plain files are cut into items.
            if files.tokens.masked.is_none() || !files.format.has_columns() {
                return self.running_text((files, digest), records, uses, (cache, trust));
            }
        }
        refuse_chats(files, &records, &uses)?;
        refuse_empty_columns(files, &records, &uses)?;
        let dropped = dropped(files, &records, &uses)?;
        let series = Series::new(files, &records, &uses)?;
        let targets: Vec<usize> = uses.all_targets().collect();
        let members = Members::of_files(files, &records, &targets, uses.weight)?;
        // The first node of a graph stands for it.
        let is_item = |row: usize| {
            let members = members.as_ref();
            members.is_none_or(|members| members.is_first(row as u32))
        };
        let is_dropped = |row: usize| dropped.get(row).is_some_and(|is| *is);
        let rows = 0..records.len();
        let num_dropped = rows.clone().filter(|row| is_dropped(*row) && is_item(*row));
        let num_dropped = num_dropped.count();
        let left_out = rows.map(|row| is_dropped(row) || !is_item(row));
        let left_out: Vec<bool> = left_out.collect();
        let mut assigned = self.assign(files, &records, &uses, &series, &left_out)?;
        let windows = files.roles.window.as_ref();
        let mut encoder = fit(&self.fitting(files, &records, &uses, &assigned.train, None))?;
        refuse_targets(files, &records, &encoder, &left_out)?;
        if let Some(members) = &members {
            let nodes = members.nodes_of(&assigned.train);
            encoder.input = fit(&self.fitting(files, &records, &uses, &nodes, None))?.input;
        }
        let places = windows.map(|window| (window, series.places(&records)));
        let starts = |rows: &mut Vec<u32>| {
            let (window, places) = places.as_ref()?;
            Some(series.window_starts(&records, places, rows, window))
        };
        let train_starts = starts(&mut assigned.train);
        let valid_starts = starts(&mut assigned.valid);
        let test_starts = starts(&mut assigned.test);
        let graph = graph::of_files(
            files,
            &records,
            (&encoder.input, &uses.features),
            members,
            cache,
            watch,
        )?;
        let set = Arc::new(Set {
            records,
            encoder: Arc::new(encoder),
            graph,
            pairs: None,
        });
        let split = |rows: Vec<u32>, starts: Option<Vec<u32>>| match starts {
            Some(starts) => Split::of_windows(set.clone(), rows, starts),
            None => Split::of_rows(set.clone(), rows),
        };
        let has_test = !assigned.test.is_empty();
        let parts = [
            split(assigned.train, train_starts),
            split(assigned.valid, valid_starts),
        ];
        let test = has_test.then(|| split(assigned.test, test_starts));
        self.changed(parts, test, uses.weight, num_dropped)
    }

    /// The train and valid splits and that of the test, with what is changed in the train split.
    pub(super) fn changed(
        &self,
        [train, valid]: [Split; 2],
        test: Option<Split>,
        weight: Option<usize>,
        num_dropped: usize,
    ) -> Result<Splits, DataError> {
        Ok(Splits {
            train: train
                .augmented(self.augment.cloned())
                .with_label_noise(self.label_noise, self.split.seed)
                .weighted(weight)?,
            valid,
            test,
            num_dropped,
        })
    }

    /// A run's data is always checked; a plan uses what was checked before.
    pub(super) fn trust(&self) -> Trust {
        if self.measure {
            Trust::Bytes
        } else {
            Trust::Stamps
        }
    }

    /// What an encoder of the files is fitted to.
    pub(super) fn fitting<'a>(
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
            scale_axis: self.scale_axis,
            tokens: &files.tokens,
            train,
            running_text,
            tokenizer: None,
            measure: self.measure,
        }
    }

    /// How the rows without a split of their own are divided.
    fn fractions(&self, files: &FilesSpec, has_valid: bool, has_test: bool) -> SplitSpec {
        let mut split = self.split.clone();
        // The files of a split replace its fraction.
        if has_valid {
            split.valid = 0.0;
        }
        if has_test {
            split.test = 0.0;
        }
        if files.roles.window.is_some() && split.group_by.is_none() {
            // Windows of randomly chosen rows would be meaningless.
            split.order = SplitOrder::Time;
        }
        split
    }

    /// The rows of each split: all rows of files for a split, and the others by the fractions.
    pub(super) fn assign(
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
        let keys = series.keys.as_deref().map(|keys| of_rows(keys, &rows));
        let groups = series.groups.as_deref().map(|all| of_rows(all, &rows));
        if rows.is_empty() && dropped.iter().any(|is| *is) {
            return Err(all_dropped(files, records, uses));
        }
        let split = self.fractions(files, num_valid > 0, num_test > 0);
        let classes = classes_of(&rows, records, uses);
        let known = Known {
            classes: classes.as_deref(),
            groups: groups.as_deref(),
            keys: keys.as_deref(),
        };
        let mut assigned = assign(rows.len(), known, &split);
        if let (Some(folds), Some(groups)) = (split.folds, &groups) {
            check_folds(&split, folds, groups, &assigned)?;
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
        // Windows of one series may go on in another file.
        if files.roles.window.is_none() && num_valid + num_test > 0 {
            series.refuse_shared(records, uses, &assigned)?;
        }
        Ok(assigned)
    }
}

/// The class of each row, if the only target is one.
fn classes_of(rows: &[u32], records: &Records, uses: &Uses) -> Option<Vec<i32>> {
    let &[column] = &uses.targets[..] else {
        return None;
    };
    let target = &records.columns()[column];
    let is_number = matches!(
        target.kind,
        ColumnKind::Numbers | ColumnKind::Doubles | ColumnKind::Text
    );
    let is_class =
        target.len() == 1 && !is_number && records.header.extents[column].min >= Some(0.0);
    let code = |row: &u32| records.number(*row as usize, column, 0) as i32;
    is_class.then(|| rows.iter().map(code).collect())
}

/// Refuses more folds than groups outside the test split.
fn check_folds(
    split: &SplitSpec,
    folds: usize,
    groups: &[i64],
    assigned: &Assigned,
) -> Result<(), DataError> {
    let mut left: BTreeSet<i64> = groups.iter().copied().collect();
    for at in &assigned.test {
        left.remove(&groups[*at as usize]);
    }
    if left.len() >= folds {
        return Ok(());
    }
    let name = split.group_by.as_deref().unwrap_or_default();
    let message = format!(
        "there are {folds} folds, but only {} of `{name}`",
        counted(left.len(), "group")
    );
    Err(DataError::new(message)
        .key("data.split.folds")
        .note("a group is in one fold, so some folds would be empty")
        .help(format!("use at most {} folds", left.len().max(2))))
}

/// The values of some rows.
fn of_rows<T: Copy>(all: &[T], rows: &[u32]) -> Vec<T> {
    rows.iter().map(|row| all[*row as usize]).collect()
}

/// Refuses conversations that are not the only feature, or have targets.
fn refuse_chats(files: &FilesSpec, records: &Records, uses: &Uses) -> Result<(), DataError> {
    let mut used = uses.used().map(|at| &records.columns()[at].name);
    let Some(name) = used.find(|name| files.roles.chats().any(|chat| chat == *name)) else {
        return Ok(());
    };
    let message = format!(
        "`{name}` contains conversations, from which only the next token can be predicted, but there are other features or a target"
    );
    Err(DataError::new(message).key("data.columns").help(format!(
        "set `features = [\"{name}\"]` and remove `target`, or use a column of texts"
    )))
}

pub(super) fn refuse_infinite(records: &Records, uses: &Uses) -> Result<(), DataError> {
    let mut used = uses.used().chain(uses.weight);
    let found = used.find(|at| records.header.extents[*at].infinite > 0);
    let Some(at) = found else { return Ok(()) };
    let num = records.header.extents[at].infinite;
    let name = &records.columns()[at].name;
    Err(DataError::new(format!(
        "column `{name}` contains infinite numbers in {num} of {} items",
        records.len()
    ))
    .help("fix the file, or exclude the column with `ignore`"))
}

/// Refuses pairs without an edge where items are not pairs.
fn refuse_negatives(files: &FilesSpec) -> Result<(), DataError> {
    let graph = files.graph.as_ref();
    match graph.and_then(|graph| graph.negatives) {
        None => Ok(()),
        Some(_) => Err(
            DataError::new("`negatives` has no effect: the items are nodes or graphs")
                .key("data.graph.negatives")
                .help("remove it, or set `items = \"links\"` to predict which nodes have an edge"),
        ),
    }
}
