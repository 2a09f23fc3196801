//! How much each axis matters.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value as Json;

use super::mixture::share_items;
use super::model::{AxisEffect, Trial};
use super::numbers::{natural_order, value_text};
use super::sample::{CONFIDENCE, Repeat, keyed, overlap};
use runner_core::record::DataUsed;
use runner_statistics::{ForestImportance, Row, forest_importance, importance, marginal_effect};

/// With more values than this, an axis has no table of effects.
const MAX_LEVELS: usize = 24;

/// The effect of each axis on a metric, over the values of the other axes, if there are any.
pub(super) fn axis_effects(
    (trials, data): (&[Trial], &[DataUsed]),
    axes: &[String],
    value: &str,
    ratio: Option<f64>,
) -> Vec<AxisEffect> {
    if axes.len() < 2 {
        return Vec::new();
    }
    let mut rows: Vec<Row> = Vec::new();
    let values: Vec<&[(Repeat, f64)]> = trials.iter().map(|t| t.values(value)).collect();
    let overlap = overlap(&values, ratio);
    for (trial, by_seed) in trials.iter().zip(keyed(&values)) {
        let level = |key: &String| trial.axes.get(key).map_or("-".into(), value_text);
        let levels: Vec<String> = axes.iter().map(level).collect();
        rows.extend(by_seed.into_iter().map(|(seed, value)| Row {
            levels: levels.clone(),
            seed,
            value,
        }));
    }
    let mut effects = Vec::new();
    for (at, key) in axes.iter().enumerate() {
        let levels: BTreeSet<&String> = rows.iter().map(|row| &row.levels[at]).collect();
        // Sampled values are all different, and single trials do not average over other axes.
        let is_table = (2..=MAX_LEVELS).contains(&levels.len()) && levels.len() < trials.len();
        if is_table
            && !changes_items(key, (trials, data), value)
            && let Ok(mut marginal) = marginal_effect(&rows, at, CONFIDENCE, overlap.as_ref())
        {
            let levels = &mut marginal.levels;
            levels.sort_by(|a, b| natural_order(&a.level, &b.level));
            effects.push(AxisEffect {
                key: key.clone(),
                importance: importance(&rows, at, CONFIDENCE, overlap.as_ref()).ok(),
                marginal,
            });
        }
    }
    effects
}

/// Whether trials that differ only in an axis were measured on different items.
fn changes_items(key: &str, (trials, data): (&[Trial], &[DataUsed]), metric: &str) -> bool {
    let mut found: BTreeMap<String, Vec<&DataUsed>> = BTreeMap::new();
    trials.iter().any(|trial| {
        let items = trial.data_in(data);
        if items.is_empty() {
            return false;
        }
        let mut axes = trial.axes.clone();
        axes.remove(key);
        let alike = found.entry(Json::Object(axes).to_string());
        let first = alike.or_insert_with(|| items.clone());
        !share_items(&items, first, metric)
    })
}

/// How much each axis matters, if the importance of at least one does not follow from a grid.
pub(super) fn importance_of_drawn(
    trials: &[Trial],
    axes: &[String],
    value: &str,
    effects: &[AxisEffect],
) -> Option<ForestImportance> {
    let num_known = effects.iter().filter(|effect| effect.importance.is_some());
    if axes.len() < 2 || num_known.count() == axes.len() {
        return None;
    }
    let valued = trials
        .iter()
        .filter_map(|trial| Some((trial, trial.metrics.get(value)?.mean())));
    let valued: Vec<(&Trial, f64)> = valued.collect();
    let columns = axes.iter().map(|key| {
        let texts: Vec<String> = valued
            .iter()
            .map(|(trial, _)| trial.axes.get(key).map_or("-".into(), value_text))
            .collect();
        let numbers: Option<Vec<f64>> = texts.iter().map(|text| text.parse().ok()).collect();
        // Categories are numbered as they come.
        numbers.unwrap_or_else(|| {
            let mut known: Vec<&String> = Vec::new();
            let number = |text| {
                let place = known.iter().position(|other| *other == text);
                place.unwrap_or_else(|| {
                    known.push(text);
                    known.len() - 1
                })
            };
            texts.iter().map(number).map(|at| at as f64).collect()
        })
    });
    let columns: Vec<Vec<f64>> = columns.collect();
    let values: Vec<f64> = valued.iter().map(|(_, mean)| *mean).collect();
    forest_importance(&columns, &values).ok()
}
