//! The tree-structured Parzen estimator (Bergstra et al., 2011): points are sampled from the density of the good trials,
//! and the one is chosen whose density among the good trials is the highest relative to that among all others.
//!
//! The densities are over all axes at once (Falkner et al., 2018), so that it learns which values are good together. On
//! an axis whose condition is false at a point, the point says nothing. Failed trials and points that have not ended
//! count as bad.

use rand::rngs::ChaCha8Rng;

use super::parzen::Parzen;
use super::space::{Point, Space};
use super::{Shown, Trial, in_order};

/// Points among which the best is chosen.
const NUM_CANDIDATES: usize = 24;

/// The part of all trials that are good.
const GOOD_PART: f64 = 0.13;

/// No more than this many are good.
const MAX_GOOD: usize = 25;

/// Samples from the good density before a point that was tried already is accepted again.
const MAX_SAMPLES: usize = 10 * NUM_CANDIDATES;

/// Suggests a point; none if all that were sampled are excluded.
pub fn suggest(
    space: &Space,
    shown: &Shown,
    random: &mut ChaCha8Rng,
    trial: Trial<'_>,
) -> Option<Point> {
    let (good, bad) = split(shown);
    let (good, bad) = (Parzen::new(space, good), Parzen::new(space, bad));
    let known = shown.known();
    let mut best: Option<(bool, f64, Point)> = None;
    let mut num_new = 0;
    for _ in 0..MAX_SAMPLES {
        let Some(point) = trial(&good.sample(random)) else {
            continue;
        };
        let is_new = !known.contains(&point);
        num_new += is_new as usize;
        let score = good.log_density(&point) - bad.log_density(&point);
        let rank = (is_new, score);
        if best.as_ref().is_none_or(|best| rank > (best.0, best.1)) {
            best = Some((is_new, score, point));
        }
        if num_new == NUM_CANDIDATES {
            break;
        }
    }
    Some(best?.2)
}

/// The points of the good trials, and all others.
fn split(shown: &Shown) -> (Vec<&Point>, Vec<&Point>) {
    let order = in_order(&shown.told);
    let num_good = (GOOD_PART * shown.told.len() as f64).ceil() as usize;
    let num_good = num_good
        .min(MAX_GOOD)
        .min(shown.num_values().saturating_sub(1))
        .max(1);
    let point = |at: &usize| &shown.told[*at].point;
    let good = order[..num_good].iter().map(point).collect();
    let bad = order[num_good..].iter().map(point);
    (good, bad.chain(&shown.pending).collect())
}
