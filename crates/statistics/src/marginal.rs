//! The effect of one axis of a table, over all its other settings.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::sample::mean;
use super::student::values;
use super::{Interval, Overlap, Refusal, check_level};

/// One row of a table of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The level of each axis, as text, in the same order in all rows.
    pub levels: Vec<String>,
    /// The seed, which is the block.
    pub seed: u64,
    /// The value.
    pub value: f64,
}

/// The marginal effect of an axis: the results of its levels over all other settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Marginal {
    /// Which axis, from 0.
    pub axis: usize,
    /// Whether the levels can be compared directly.
    pub balance: Balance,
    /// The levels, in the order in which they first appear.
    pub levels: Vec<LevelEffect>,
}

/// Whether every level was combined with the same other settings and seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Balance {
    /// Each level has each combination of other settings and seed once.
    Balanced,
    /// Some are missing or repeated, so a difference of two levels may come from other settings or seeds.
    Unbalanced {
        /// How many combinations of level, other settings and seed are missing.
        missing: usize,
        /// The number of rows in excess of one per combination.
        repeated: usize,
    },
}

/// One level of an axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelEffect {
    /// The level.
    pub level: String,
    /// Its number of rows.
    pub num_rows: usize,
    /// Their number of seeds: the n of the interval.
    pub n: usize,
    /// The mean of the means by seed, in the unit of the values. In a balanced table this is the mean of all rows.
    pub mean: f64,
    /// Student's interval over the means by seed; none for a single seed, and if they are all equal.
    pub interval: Option<Interval>,
    /// The mean over all other settings for each seed, by ascending seed. Two levels are compared by the pairs of
    /// these, not by a level's own interval: that includes the differences between seeds.
    pub by_seed: Vec<(u64, f64)>,
}

/// The marginal effect of `axis` (from 0) in `rows`, with intervals of the given level of confidence.
///
/// A seed is a block (Fisher, 1935): its rows share initial weights and data order, so they are not independent
/// samples, and an interval over all rows would be too narrow. For each level the mean over all other settings is
/// computed within each seed, and the interval is Student's over these means. With an `overlap`, blocks are runs on
/// several splits, and the interval is corrected for what they share.
///
/// Refuses an empty table, values that are not finite or too large to sum, rows with different numbers of axes or
/// without this one, and a level of confidence that is not between 0 and 1.
pub fn marginal_effect(
    rows: &[Row],
    axis: usize,
    level: f64,
    overlap: Option<&Overlap>,
) -> Result<Marginal, Refusal> {
    check_level(level)?;
    let Some(first) = rows.first() else {
        return Err(Refusal::TooFew { n: 0, needed: 1 });
    };
    let num_axes = first.levels.len();
    if axis >= num_axes || rows.iter().any(|row| row.levels.len() != num_axes) {
        return Err(Refusal::NoSuchAxis);
    }
    if rows.iter().any(|row| !row.value.is_finite()) {
        return Err(Refusal::NotFinite);
    }
    let mut names: Vec<&str> = Vec::new();
    let mut blocks: BTreeMap<&str, BTreeMap<u64, Vec<f64>>> = BTreeMap::new();
    for row in rows {
        let name = row.levels[axis].as_str();
        let by_seed = blocks.entry(name).or_insert_with(|| {
            names.push(name);
            BTreeMap::new()
        });
        by_seed.entry(row.seed).or_default().push(row.value);
    }
    let effects = names
        .iter()
        .map(|name| effect(name, &blocks[name], level, overlap));
    Ok(Marginal {
        axis,
        balance: Balance::of(rows, axis, names.len()),
        levels: effects.collect::<Result<_, _>>()?,
    })
}

fn effect(
    name: &str,
    blocks: &BTreeMap<u64, Vec<f64>>,
    level: f64,
    overlap: Option<&Overlap>,
) -> Result<LevelEffect, Refusal> {
    let mut by_seed = Vec::new();
    for (seed, values) in blocks {
        by_seed.push((*seed, mean(values)?));
    }
    let means: Vec<f64> = by_seed.iter().map(|(_, mean)| *mean).collect();
    Ok(LevelEffect {
        level: name.to_owned(),
        num_rows: blocks.values().map(Vec::len).sum(),
        n: means.len(),
        mean: mean(&means)?,
        interval: over_blocks(&by_seed, level, overlap),
        by_seed,
    })
}

/// The interval for the mean of the values of blocks.
fn over_blocks(by_seed: &[(u64, f64)], level: f64, overlap: Option<&Overlap>) -> Option<Interval> {
    match overlap {
        Some(overlap) => Interval::corrected(by_seed, overlap, level).ok(),
        None => Interval::student(&values(by_seed), level).ok(),
    }
}

impl Balance {
    /// Whether the rows contain each level with each existing combination of other settings and each seed exactly once.
    fn of(rows: &[Row], axis: usize, num_levels: usize) -> Self {
        let others = |row: &Row| -> Vec<String> {
            let mut others = row.levels.clone();
            others.remove(axis);
            others
        };
        let settings: BTreeSet<Vec<String>> = rows.iter().map(others).collect();
        let seeds: BTreeSet<u64> = rows.iter().map(|row| row.seed).collect();
        let found: BTreeSet<(&[String], u64)> = rows
            .iter()
            .map(|row| (row.levels.as_slice(), row.seed))
            .collect();
        let all = num_levels
            .saturating_mul(settings.len())
            .saturating_mul(seeds.len());
        let missing = all.saturating_sub(found.len());
        let repeated = rows.len().saturating_sub(found.len());
        match (missing, repeated) {
            (0, 0) => Self::Balanced,
            (missing, repeated) => Self::Unbalanced { missing, repeated },
        }
    }
}

/// How much of what varies between settings an axis accounts for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Importance {
    /// Which axis, from 0.
    pub axis: usize,
    /// How many seeds it was computed within: the n of the interval.
    pub n: usize,
    /// The fraction of the variance between settings that is that of the axis's level means: the mean over seeds, from
    /// 0 to 1.
    pub share: f64,
    /// Student's interval over the seeds, within 0 and 1; none for a single seed, and where all are equal.
    pub interval: Option<Interval>,
}

/// The importance of `axis` (from 0) in the balanced table `rows`: the share of its main effect in the variance of the
/// values, as in the functional analysis of variance (Hutter, Hoos and Leyton-Brown, 2014, An Efficient Approach for
/// Assessing Hyperparameter Importance), computed exactly from the grid within each seed. What is left to one of all
/// axes is that of their interactions.
///
/// Refuses what [`marginal_effect`] does, a table that is not balanced ([`Refusal::NoSuchAxis`]), and values that are all
/// equal.
pub fn importance(
    rows: &[Row],
    axis: usize,
    level: f64,
    overlap: Option<&Overlap>,
) -> Result<Importance, Refusal> {
    let marginal = marginal_effect(rows, axis, level, overlap)?;
    if marginal.balance != Balance::Balanced {
        return Err(Refusal::NoSuchAxis);
    }
    let mut by_seed: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for row in rows {
        by_seed.entry(row.seed).or_default().push(row.value);
    }
    let mut shares = Vec::new();
    for (seed, of_seed) in &by_seed {
        let of_level = |effect: &LevelEffect| {
            let found = effect.by_seed.iter().find(|(known, _)| known == seed);
            found.map(|(_, mean)| *mean)
        };
        let levels: Vec<f64> = marginal.levels.iter().filter_map(of_level).collect();
        let (of_axis, of_all) = (variance(&levels)?, variance(of_seed)?);
        // A seed in which nothing varies has no shares.
        if of_all > 0.0 {
            shares.push((*seed, (of_axis / of_all).clamp(0.0, 1.0)));
        }
    }
    if shares.is_empty() {
        return Err(Refusal::NoSpread);
    }
    let within = |interval: Interval| Interval {
        low: interval.low.max(0.0),
        high: interval.high.min(1.0),
        ..interval
    };
    Ok(Importance {
        axis,
        n: shares.len(),
        share: mean(&values(&shares))?,
        interval: over_blocks(&shares, level, overlap).map(within),
    })
}

/// The mean square distance from the mean.
fn variance(values: &[f64]) -> Result<f64, Refusal> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    super::finite(squares / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(levels: [&str; 2], seed: u64, value: f64) -> Row {
        Row {
            levels: levels.map(String::from).to_vec(),
            seed,
            value,
        }
    }

    fn table() -> Vec<Row> {
        vec![
            row(["sgd", "small"], 2, 1.0),
            row(["sgd", "small"], 1, 2.0),
            row(["sgd", "large"], 1, 4.0),
            row(["sgd", "large"], 2, 2.0),
            row(["adam", "small"], 1, 5.0),
            row(["adam", "small"], 2, 6.0),
            row(["adam", "large"], 1, 7.0),
            row(["adam", "large"], 2, 10.0),
        ]
    }

    #[test]
    fn seeds_are_blocks() {
        let marginal = marginal_effect(&table(), 0, 0.95, None).unwrap();
        assert_eq!(marginal.balance, Balance::Balanced);
        let [sgd, adam] = &marginal.levels[..] else {
            panic!("{marginal:?}");
        };
        assert_eq!((sgd.level.as_str(), sgd.num_rows, sgd.n), ("sgd", 4, 2));
        assert_eq!(sgd.by_seed, [(1, 3.0), (2, 1.5)]);
        assert_eq!(sgd.mean, 2.25);
        assert_eq!(
            sgd.interval,
            Some(Interval::student(&[3.0, 1.5], 0.95).unwrap())
        );
        assert_eq!((adam.mean, adam.by_seed[1]), (7.0, (2, 8.0)));
        let sizes = marginal_effect(&table(), 1, 0.95, None).unwrap();
        assert_eq!(sizes.levels[0].by_seed, [(1, 3.5), (2, 3.5)]);
        assert_eq!(sizes.levels[0].interval, None);
    }

    #[test]
    fn importance_is_the_share_of_main_effects() {
        // By hand. Seed 1: 2, 4, 5, 7 with a variance of 3.25, level means 3 and 6 (2.25) and 3.5 and 5.5 (1). Seed 2:
        // 1, 2, 6, 10 with 12.6875, level means 1.5 and 8 (10.5625) and 3.5 and 6 (1.5625).
        let found = |axis| importance(&table(), axis, 0.95, None).unwrap();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(found(0).share, 0.5 * (2.25 / 3.25 + 10.5625 / 12.6875));
        close(found(1).share, 0.5 * (1.0 / 3.25 + 1.5625 / 12.6875));
        assert_eq!(found(0).n, 2);
        let interval = found(0).interval.unwrap();
        assert!(interval.low >= 0.0 && interval.high <= 1.0 && interval.low < interval.high);
        assert_eq!(
            importance(&table()[1..], 0, 0.95, None),
            Err(Refusal::NoSuchAxis)
        );
        let same: Vec<Row> = table()
            .into_iter()
            .map(|row| Row { value: 1.0, ..row })
            .collect();
        assert_eq!(importance(&same, 0, 0.95, None), Err(Refusal::NoSpread));
    }

    #[test]
    fn imbalance_is_told() {
        let balance = |rows: &[Row]| marginal_effect(rows, 0, 0.95, None).unwrap().balance;
        let unbalanced = |missing, repeated| Balance::Unbalanced { missing, repeated };
        assert_eq!(balance(&table()[1..]), unbalanced(1, 0));
        let mut rows = table();
        rows.push(row(["adam", "large"], 2, 9.0));
        assert_eq!(balance(&rows), unbalanced(0, 1));
        rows.push(row(["adam", "huge"], 2, 9.0));
        assert_eq!(balance(&rows), unbalanced(3, 1));
        assert_eq!(balance(&table()[..1]), Balance::Balanced);
    }

    #[test]
    fn what_makes_no_table_is_refused() {
        let refused = |rows: &[Row], axis| marginal_effect(rows, axis, 0.95, None).unwrap_err();
        assert_eq!(refused(&[], 0), Refusal::TooFew { n: 0, needed: 1 });
        assert_eq!(refused(&table(), 2), Refusal::NoSuchAxis);
        let mut rows = table();
        rows[3].levels.pop();
        assert_eq!(refused(&rows, 0), Refusal::NoSuchAxis);
        let mut rows = table();
        rows[3].value = f64::NAN;
        assert_eq!(refused(&rows, 0), Refusal::NotFinite);
        assert_eq!(
            marginal_effect(&table(), 0, 1.5, None),
            Err(Refusal::BadLevel)
        );
    }
}
