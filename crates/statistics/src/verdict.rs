//! What may be claimed of trials against a baseline.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::{
    Approximation, Comparison, Design, Direction, Refusal, check_level, holm, pairs_to_reach,
    seeds_for_power, smallest_rank_p, smallest_sign_flip_p,
};

/// The fewest seeds that a claim may rest on. A single one can be far out among many others, and still be one draw.
const LEAST_FOR_CLAIM: usize = 2;

/// What may be claimed of a trial against the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Finding {
    /// It is better, at the stated alpha.
    Better,
    /// It is worse, at the stated alpha.
    Worse,
    /// The test could have shown a difference and did not. This is no claim that there is none.
    NoDifferenceShown,
    /// No outcome whatever could have shown a difference, because there are too few seeds.
    TooFewSeeds {
        /// How many more would do.
        about_more: AboutMore,
    },
    /// Nothing was tested.
    NotTested {
        /// Why.
        refusal: Refusal,
    },
}

/// How many more seeds would do, for the trial and the baseline each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AboutMore {
    /// With how many more the exact test can reach its corrected level at all, if the outcome is as clear as it can be.
    /// None where no number does, for a level below 2^-19.
    pub to_reach: Option<usize>,
    /// How many more give a power of 80 % for the effect as observed, and at least `to_reach` ([`seeds_for_power`]);
    /// none where the spread is not known. With few seeds the observed effect is rough, and so is this. Samples
    /// without a common seed are tested up to [`MOST_RANKED`](super::MOST_RANKED) values in all; pairs have no such
    /// limit.
    pub for_power: Option<usize>,
    /// How `for_power` was computed.
    pub approximation: Option<Approximation>,
}

/// A trial against the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// What may be claimed.
    pub finding: Finding,
    /// Which values are better.
    pub direction: Direction,
    /// The level of significance that holds for all comparisons together.
    pub alpha: f64,
    /// How many comparisons the p-value is corrected for.
    pub num_comparisons: usize,
    /// The level that this comparison's own p-value was held against: alpha over the number of comparisons that Holm's
    /// method had left.
    pub alpha_corrected: f64,
    /// The p-value by Holm's method; none where no claim was possible for want of a second seed or of a test.
    pub p_corrected: Option<f64>,
    /// The trial compared with the baseline, the trial first, with n, test and raw p-value; its interval has the level
    /// 1 - alpha and is not corrected. None where there is nothing to compare.
    pub comparison: Option<Comparison>,
}

/// What may be claimed of each trial against the baseline, at the level `alpha` of significance for all of them
/// together. Values are keyed by seed. The test is the sign-flip test over common seeds, or the Mann-Whitney test
/// where there are none ([`Comparison::of`]); p-values are corrected by [`holm`]. A claim takes a corrected p of at
/// most `alpha`, and goes the way that the test points.
///
/// A trial that cannot be tested counts with p = 1, so that nobody's claim gets easier from a trial that failed. The
/// level that a trial without a claim had to reach is alpha / (m - r), for m comparisons and r claims: with a raw p of
/// that, Holm's method would have made it a claim. If the smallest p that the test can give for its n is above that,
/// there are too few seeds.
///
/// `num_comparisons` is how many comparisons the trials' are among, if they are more than the trials: those of all
/// pairs, where the baseline was picked by its values, or those of other tables. Comparisons that are not made here
/// count with p = 1, which makes Holm's method no less strict than with their own p-values.
///
/// Refuses an `alpha` that is not between 0 and 1. What is wrong with one trial is told in its own verdict.
pub fn verdicts<T: AsRef<[(u64, f64)]> + Sync>(
    baseline: &[(u64, f64)],
    trials: &[T],
    direction: Direction,
    alpha: f64,
    num_comparisons: usize,
) -> Result<Vec<Verdict>, Refusal> {
    check_level(alpha)?;
    // The complement rounds to 1 for the smallest alphas, and 1 is no level.
    let level = (1.0 - alpha).min(1.0 - f64::EPSILON);
    let compare = |trial: &T| Comparison::of(trial.as_ref(), baseline, level);
    let compared: Vec<_> = trials.par_iter().map(compare).collect();
    let is_testable = |comparison: &Comparison| comparison.design.n() >= LEAST_FOR_CLAIM;
    let raw: Vec<Option<f64>> = compared
        .iter()
        .map(|result| result.ok().filter(is_testable).map(|c| c.test.p))
        .collect();
    let num_comparisons = num_comparisons.max(trials.len());
    let mut counted: Vec<f64> = raw.iter().map(|p| p.unwrap_or(1.0)).collect();
    counted.resize(num_comparisons, 1.0);
    let corrected = holm(&counted)?;
    let num_claims = corrected.iter().filter(|p| **p <= alpha).count();
    let mut verdicts = Vec::new();
    for (at, compared) in compared.into_iter().enumerate() {
        let is_claim = corrected[at] <= alpha;
        // A claim was held against the level of its own step. Equal p-values share the first of their steps.
        let before = counted.iter().filter(|p| **p < counted[at]).count();
        let left = num_comparisons - if is_claim { before } else { num_claims };
        let alpha_corrected = alpha / left as f64;
        let finding = match compared {
            Ok(comparison) if is_claim => claim(&comparison, direction),
            Ok(comparison) => no_claim(&comparison, alpha_corrected),
            Err(Refusal::TooFew { n, .. }) => Finding::TooFewSeeds {
                about_more: AboutMore {
                    to_reach: pairs_to_reach(alpha_corrected).map(|pairs| pairs.saturating_sub(n)),
                    for_power: None,
                    approximation: None,
                },
            },
            Err(refusal) => Finding::NotTested { refusal },
        };
        verdicts.push(Verdict {
            finding,
            direction,
            alpha,
            num_comparisons,
            alpha_corrected,
            p_corrected: raw[at].map(|_| corrected[at]),
            comparison: compared.ok(),
        });
    }
    Ok(verdicts)
}

fn claim(comparison: &Comparison, direction: Direction) -> Finding {
    let points_to = comparison.points_to();
    match direction.is_better(points_to, 0.0) {
        true => Finding::Better,
        false if points_to == 0.0 => Finding::NoDifferenceShown,
        false => Finding::Worse,
    }
}

/// What is said of a comparison that did not reach `alpha`.
fn no_claim(comparison: &Comparison, alpha: f64) -> Finding {
    let design = comparison.design;
    if design.n() >= LEAST_FOR_CLAIM && smallest_p(design, 0) <= alpha {
        return Finding::NoDifferenceShown;
    }
    let to_reach = more_to_reach(design, alpha);
    let for_power = comparison
        .effect
        .zip(to_reach)
        .and_then(|(effect, to_reach)| {
            let found = seeds_for_power(effect, alpha)?;
            let more = found.seeds.saturating_sub(design.n());
            Some((more.max(to_reach), found.approximation))
        });
    Finding::TooFewSeeds {
        about_more: AboutMore {
            to_reach,
            for_power: for_power.map(|(more, _)| more),
            approximation: for_power.map(|(_, approximation)| approximation),
        },
    }
}

/// The smallest p that the design's test can give, with so many more seeds on both sides.
fn smallest_p(design: Design, more: usize) -> f64 {
    match design {
        Design::Paired { pairs, .. } => smallest_sign_flip_p(pairs.saturating_add(more)),
        Design::Independent { first, second } => {
            smallest_rank_p(first.saturating_add(more), second.saturating_add(more))
        }
    }
}

/// The fewest seeds on both sides with which the design's test can reach `alpha`, and a claim can be made.
fn more_to_reach(design: Design, alpha: f64) -> Option<usize> {
    match design {
        Design::Paired { pairs, .. } => pairs_to_reach(alpha).map(|n| n.saturating_sub(pairs)),
        Design::Independent { .. } => {
            let least = LEAST_FOR_CLAIM.saturating_sub(design.n());
            // At least a factor of 2 a seed, so that any positive number is reached.
            (least..2048).find(|more| smallest_p(design, *more) <= alpha)
        }
    }
}
