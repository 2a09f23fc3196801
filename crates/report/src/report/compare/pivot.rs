//! A value by two keys.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{list, nearest_first};
use crate::report::model::Trial;
use crate::report::numbers::{natural_order, value_text};
use crate::report::sample::Repeat;
use runner_core::diagnostic::Wrong;
use runner_statistics::Description;

/// A table of a value: one row per value of one key, one column per value of another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pivot {
    /// The key of the rows.
    pub row_key: String,
    /// The key of the columns.
    pub column_key: String,
    /// The values of the first key.
    pub rows: Vec<String>,
    /// The values of the second.
    pub columns: Vec<String>,
    /// The cells, row by row; none if no trial has both values.
    pub cells: Vec<Vec<Option<Cell>>>,
}

/// A cell: the seeds' means over all other settings.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Trials in it.
    pub num_trials: usize,
    /// Over the mean of each seed.
    pub over_seeds: Description,
}

/// Keys besides the axes that tables can use.
const OTHER_KEYS: [&str; 4] = ["experiment", "backend.device", "backend.precision", SEED];

/// The key of each run's seed.
const SEED: &str = "seed";

/// Builds the table. Trials without one of the keys are under `-`.
pub fn pivot(
    trials: &[Trial],
    axes: &[String],
    row_key: &str,
    column_key: &str,
    value: &str,
) -> Result<Pivot, Wrong> {
    if row_key == column_key {
        return Err(Wrong::new(
            format!("rows and columns are both `{row_key}`"),
            "use two different keys, for rows and for columns",
        ));
    }
    for key in [row_key, column_key] {
        let is_known = axes.iter().any(|axis| axis == key) || OTHER_KEYS.contains(&key);
        if !is_known {
            let mut known = axes.to_vec();
            known.extend(OTHER_KEYS.map(str::to_owned));
            let what = format!("tables can use {}", list(&known));
            return Err(Wrong::new(
                format!("`{key}` is not an axis of this comparison"),
                nearest_first(key, &known, what),
            ));
        }
    }
    let names = |key: &str| {
        let all = trials.iter();
        let mut names: Vec<String> = match key {
            SEED => all
                .flat_map(|trial| trial.values(value))
                .map(|(repeat, _)| repeat.seed.to_string())
                .collect(),
            _ => all.map(|trial| of(trial, key)).collect(),
        };
        names.sort_by(|a, b| natural_order(a, b));
        names.dedup();
        names
    };
    let (rows, columns) = (names(row_key), names(column_key));
    let mut groups: BTreeMap<(usize, usize), Group> = BTreeMap::new();
    for (number, trial) in trials.iter().enumerate() {
        for (repeat, value) in trial.values(value) {
            let at = |names: &[String], key: &str| {
                let own = match key {
                    SEED => repeat.seed.to_string(),
                    _ => of(trial, key),
                };
                names.iter().position(|name| *name == own)
            };
            let (Some(row), Some(column)) = (at(&rows, row_key), at(&columns, column_key)) else {
                continue;
            };
            let group = groups.entry((row, column)).or_default();
            group.trials.insert(number);
            group.by_seed.entry(*repeat).or_default().push(*value);
        }
    }
    let cell = |at: (usize, usize)| groups.get(&at).and_then(Group::cell);
    let cells = (0..rows.len()).map(|row| {
        (0..columns.len())
            .map(|column| cell((row, column)))
            .collect()
    });
    Ok(Pivot {
        row_key: row_key.to_owned(),
        column_key: column_key.to_owned(),
        cells: cells.collect(),
        rows,
        columns,
    })
}

/// The value of a key of a trial, as text.
fn of(trial: &Trial, key: &str) -> String {
    match (trial.axes.get(key), key) {
        (Some(value), _) => value_text(value),
        (None, "backend.device") => trial.device.clone(),
        (None, "backend.precision") => trial.precision.clone(),
        (None, "experiment") => trial
            .id
            .split_once('/')
            .map_or("-", |(name, _)| name)
            .to_owned(),
        (None, _) => "-".into(),
    }
}

/// The trials of a cell.
#[derive(Default)]
struct Group {
    trials: BTreeSet<usize>,
    by_seed: BTreeMap<Repeat, Vec<f64>>,
}

impl Group {
    fn cell(&self) -> Option<Cell> {
        let seeds = self.by_seed.values();
        let means = seeds.map(|values| values.iter().sum::<f64>() / values.len() as f64);
        let means: Vec<f64> = means.collect();
        Some(Cell {
            num_trials: self.trials.len(),
            over_seeds: Description::of(&means).ok()?,
        })
    }
}
