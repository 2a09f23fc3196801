//! How much axes matter whose values were drawn: by permutation in a forest of bagged regression trees (Breiman, 2001,
//! Random Forests).
//!
//! A tree is grown on trials that are drawn with replacement. On the trials that were not drawn, its squared error grows
//! if the values of an axis are exchanged between them, by twice the variance that is due to the axis if the tree is
//! right. An axis that says nothing is close to 0, whatever the noise, since a tree is never tested on what it has seen.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

use super::Refusal;

/// Trees.
const NUM_TREES: usize = 100;
/// Fewer trials are too few for trees.
pub const LEAST_FOR_FOREST: usize = 16;
/// Of more trials, as many that are spread evenly are used.
const MOST_ROWS: usize = 400;
/// A tree has no smaller leaves.
const LEAF: usize = 3;
/// Splits from the root to a leaf.
const DEPTH: usize = 8;
/// The part of the trees that a range covers.
const COVERED: f64 = 0.95;

/// How much axes matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForestImportance {
    /// The trials.
    pub n: usize,
    /// The fraction of the variance between trials that the forest predicts, each trial by the trees that have not seen
    /// it.
    pub explained: f64,
    /// Each axis.
    pub axes: Vec<Permuted>,
}

/// How much an axis matters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Permuted {
    /// The fraction of the variance between trials that is due to the axis, alone or together with others: the mean over
    /// trees, from 0 to 1.
    pub share: f64,
    /// The range of the shares of 95 % of the trees.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The importance of axes, each a column with a number for each of `values`. Categories are numbered in any order.
///
/// Refuses fewer than [`LEAST_FOR_FOREST`] values, values that are all equal, and a forest that predicts nothing.
pub fn forest_importance(
    columns: &[Vec<f64>],
    values: &[f64],
) -> Result<ForestImportance, Refusal> {
    super::check_values(values, LEAST_FOR_FOREST)?;
    if columns.iter().any(|column| column.len() != values.len()) {
        return Err(Refusal::NoSuchAxis);
    }
    let every = values.len().div_ceil(MOST_ROWS);
    let spread = |column: &[f64]| column.iter().copied().step_by(every).collect::<Vec<f64>>();
    let columns: Vec<Vec<f64>> = columns.iter().map(|column| spread(column)).collect();
    let values = spread(values);
    let num = values.len();
    let mean = values.iter().map(|value| value / num as f64).sum::<f64>();
    let squares = values.iter().map(|value| (value - mean).powi(2));
    let variance = super::finite(squares.sum::<f64>() / num as f64)?;
    // What is left of equal values by rounding is no spread.
    if variance.sqrt() <= 1e-12 * mean.abs() {
        return Err(Refusal::NoSpread);
    }
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut shares: Vec<Vec<f64>> = vec![Vec::new(); columns.len()];
    let mut predicted = vec![(0.0, 0_u32); num];
    for _ in 0..NUM_TREES {
        let drawn: Vec<usize> = (0..num).map(|_| below(&mut rng, num)).collect();
        let tree = Tree::grow(&columns, &values, drawn.clone());
        let others: Vec<usize> = (0..num).filter(|row| !drawn.contains(row)).collect();
        if others.is_empty() {
            continue;
        }
        let error = |permuted: Option<(usize, &[usize])>| {
            let each = others.iter().enumerate().map(|(at, row)| {
                let value = tree.predict(&|axis| match permuted {
                    Some((other, order)) if other == axis => columns[axis][order[at]],
                    _ => columns[axis][*row],
                });
                (value - values[*row]).powi(2)
            });
            each.sum::<f64>() / others.len() as f64
        };
        let before = error(None);
        for row in &others {
            let (sum, count) = &mut predicted[*row];
            *sum += tree.predict(&|axis| columns[axis][*row]);
            *count += 1;
        }
        for (axis, shares) in shares.iter_mut().enumerate() {
            let mut order = others.clone();
            for at in (1..order.len()).rev() {
                order.swap(at, below(&mut rng, at + 1));
            }
            shares.push((error(Some((axis, &order))) - before) / (2.0 * variance));
        }
    }
    let seen = predicted.iter().zip(&values);
    let seen = seen.filter(|((_, count), _)| *count > 0);
    let errors = seen.map(|((sum, count), value)| (sum / f64::from(*count) - value).powi(2));
    let explained = 1.0 - errors.sum::<f64>() / num as f64 / variance;
    if explained <= 0.0 {
        return Err(Refusal::NoSpread);
    }
    Ok(ForestImportance {
        n: num,
        explained: super::finite(explained)?,
        axes: shares.into_iter().map(Permuted::of).collect(),
    })
}

impl Permuted {
    fn of(mut shares: Vec<f64>) -> Self {
        shares.sort_by(f64::total_cmp);
        let num = shares.len();
        let mean = shares.iter().sum::<f64>() / num.max(1) as f64;
        let beside = (0.5 * (1.0 - COVERED) * num as f64) as usize;
        let within = |at: usize| shares.get(at).map_or(0.0, |share| share.clamp(0.0, 1.0));
        Self {
            share: mean.clamp(0.0, 1.0),
            low: within(beside),
            high: within(num.saturating_sub(1 + beside)),
        }
    }
}

/// A number below `num`.
fn below(rng: &mut ChaCha8Rng, num: usize) -> usize {
    ((u128::from(rng.next_u64()) * num as u128) >> 64) as usize
}

/// A regression tree.
enum Tree {
    Leaf(f64),
    Split {
        axis: usize,
        at: f64,
        below: Box<Tree>,
        above: Box<Tree>,
    },
}

impl Tree {
    fn grow(columns: &[Vec<f64>], values: &[f64], rows: Vec<usize>) -> Self {
        Self::node(columns, values, rows, DEPTH)
    }

    fn node(columns: &[Vec<f64>], values: &[f64], rows: Vec<usize>, depth: usize) -> Self {
        let mean = rows.iter().map(|row| values[*row]).sum::<f64>() / rows.len().max(1) as f64;
        let split = (depth > 0 && rows.len() >= 2 * LEAF)
            .then(|| best_split(columns, values, &rows))
            .flatten();
        let Some((axis, at)) = split else {
            return Tree::Leaf(mean);
        };
        let (below, above) = rows.into_iter().partition(|row| columns[axis][*row] <= at);
        let node = |rows| Box::new(Self::node(columns, values, rows, depth - 1));
        Tree::Split {
            axis,
            at,
            below: node(below),
            above: node(above),
        }
    }

    fn predict(&self, value: &dyn Fn(usize) -> f64) -> f64 {
        match self {
            Tree::Leaf(mean) => *mean,
            Tree::Split {
                axis,
                at,
                below,
                above,
            } => {
                let side = if value(*axis) <= *at { below } else { above };
                side.predict(value)
            }
        }
    }
}

/// The axis and the value that leave the smallest sum of squares; none if no split leaves less.
fn best_split(columns: &[Vec<f64>], values: &[f64], rows: &[usize]) -> Option<(usize, f64)> {
    let total: f64 = rows.iter().map(|row| values[*row]).sum();
    let num = rows.len() as f64;
    // What a split explains is the sum of squared sums over their counts, beyond that of all.
    let mut best = (
        total * total / num * (1.0 + 1e-12) + f64::MIN_POSITIVE,
        None,
    );
    for (axis, column) in columns.iter().enumerate() {
        let mut sorted = rows.to_vec();
        sorted.sort_by(|a, b| column[*a].total_cmp(&column[*b]));
        let mut sum = 0.0;
        for (at, row) in sorted.iter().enumerate().take(sorted.len() - LEAF) {
            sum += values[*row];
            let (here, next) = (column[*row], column[sorted[at + 1]]);
            let count = (at + 1) as f64;
            if at + 1 < LEAF || here == next {
                continue;
            }
            let rest = total - sum;
            let explained = sum * sum / count + rest * rest / (num - count);
            if explained > best.0 {
                best = (explained, Some((axis, 0.5 * here + 0.5 * next)));
            }
        }
    }
    best.1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that are as good as random, from 0 to 1.
    fn drawn(num: usize, seed: u64) -> Vec<f64> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        (0..num)
            .map(|_| below(&mut rng, 1 << 30) as f64 / f64::from(1 << 30))
            .collect()
    }

    #[test]
    fn shares_are_those_of_the_variance() {
        let columns: Vec<Vec<f64>> = (1..=3).map(|seed| drawn(400, seed)).collect();
        // The variances of 3 a and of b are as 9 to 1; c says nothing.
        let pairs = columns[0].iter().zip(&columns[1]);
        let values: Vec<f64> = pairs.map(|(a, b)| 3.0 * a + b).collect();
        let found = forest_importance(&columns, &values).unwrap();
        let [a, b, c] = &found.axes[..] else {
            panic!("{found:?}");
        };
        assert!((a.share - 0.9).abs() < 0.08, "{found:?}");
        assert!((b.share - 0.1).abs() < 0.06, "{found:?}");
        assert!(c.share < 0.01, "{found:?}");
        assert!(found.explained > 0.9 && a.low < a.share && a.share < a.high);
        assert_eq!(forest_importance(&columns, &values), Ok(found));
    }

    #[test]
    fn an_axis_without_effect_is_close_to_none_under_noise() {
        for seed in 10..20 {
            let columns = [drawn(60, seed), drawn(60, seed + 100)];
            let noise = drawn(60, seed + 200);
            let pairs = columns[0].iter().zip(&noise);
            let values: Vec<f64> = pairs.map(|(a, noise)| a + 0.5 * noise).collect();
            let found = forest_importance(&columns, &values).unwrap();
            assert!(found.axes[0].share > 0.4, "{found:?}");
            assert!(found.axes[1].share < 0.08, "{found:?}");
        }
    }

    #[test]
    fn interactions_and_categories_count() {
        let category: Vec<f64> = (0..120).map(|at| f64::from(at % 3)).collect();
        let other = drawn(120, 7);
        let pairs = category.iter().zip(&other);
        // Only the second category cares about the other axis.
        let values: Vec<f64> = pairs
            .map(|(category, other)| if *category == 1.0 { *other } else { 0.5 })
            .collect();
        let found = forest_importance(&[category, other], &values).unwrap();
        assert!(found.axes.iter().all(|axis| axis.share > 0.3), "{found:?}");
    }

    #[test]
    fn what_has_no_importance_is_refused() {
        let columns = [drawn(40, 1)];
        assert_eq!(
            forest_importance(&columns, &[1.0; 40]),
            Err(Refusal::NoSpread)
        );
        let few = forest_importance(&[vec![0.0; 5]], &[1.0; 5]);
        assert_eq!(few, Err(Refusal::TooFew { n: 5, needed: 16 }));
        assert_eq!(
            forest_importance(&columns, &[1.0; 39]),
            Err(Refusal::NoSuchAxis)
        );
        let noise = forest_importance(&columns, &drawn(40, 2));
        assert_eq!(noise, Err(Refusal::NoSpread));
        let mut wrong = drawn(40, 2);
        wrong[3] = f64::NAN;
        assert_eq!(forest_importance(&columns, &wrong), Err(Refusal::NotFinite));
    }
}
