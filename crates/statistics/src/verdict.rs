//! Verdicts on trials against a baseline.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::overlap::Overlap;
use super::student::Student;
use super::{
    Approximation, Comparison, Design, Direction, Looks, Refusal, TestResult, check_level, holm,
    pairs_to_reach, seeds_for_power, smallest_rank_p, smallest_sign_flip_p,
};

/// The minimum number of seeds for a verdict. A single one can be an outlier among many others, and still be one
/// sample.
const LEAST_FOR_CLAIM: usize = 2;

/// The verdict on a trial against the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Finding {
    /// It is better, at the given alpha.
    Better,
    /// It is worse, at the given alpha.
    Worse,
    /// The test could have shown a difference and did not. This does not mean that there is none.
    NoDifferenceShown,
    /// No outcome could have shown a difference, because there are too few seeds.
    TooFewSeeds {
        /// How many more are needed.
        about_more: AboutMore,
    },
    /// There is no exact test for runs on several splits that share items. Possible claims are in
    /// [`Verdict::if_normal`].
    NoExactTest,
    /// Nothing was tested.
    NotTested {
        /// Why.
        refusal: Refusal,
    },
}

/// How many more seeds are needed, for the trial and the baseline each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AboutMore {
    /// How many more allow the exact test to reach its corrected level at all, for the clearest possible outcome. None
    /// if no number suffices, for a level below 2^-19.
    pub to_reach: Option<usize>,
    /// How many more give a power of 80 % for the observed effect, and at least `to_reach` ([`seeds_for_power`]); none
    /// if the spread is unknown. With few seeds the observed effect is uncertain, and so is this number.
    pub for_power: Option<usize>,
    /// How `for_power` was computed.
    pub approximation: Option<Approximation>,
}

/// A trial compared with the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The verdict.
    pub finding: Finding,
    /// Which values are better.
    pub direction: Direction,
    /// The significance level of all comparisons together.
    pub alpha: f64,
    /// The number of comparisons that the p-value is corrected for.
    pub num_comparisons: usize,
    /// The level that this comparison's own p-value was compared with: alpha over the number of comparisons that Holm's
    /// method had left.
    pub alpha_corrected: f64,
    /// The p-value by Holm's method; none if no verdict was possible for lack of a second seed or of a test.
    pub p_corrected: Option<f64>,
    /// What else can be claimed if the noise is normal; none if Student's t cannot be computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_normal: Option<IfNormal>,
    /// The trial compared with the baseline, the trial first, with n, test and raw p-value; its interval has the level
    /// 1 - alpha and is not corrected. None if there is nothing to compare.
    pub comparison: Option<Comparison>,
}

/// The result of Student's t: for pairs, by Welch without pairs, corrected over splits. It assumes normal noise, which
/// makes claims possible with three seeds; its error rates for other noise are in `docs/verdicts.md`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IfNormal {
    /// The verdict.
    pub reading: Reading,
    /// The two-sided test of no difference.
    pub test: TestResult,
    /// Its p-value, corrected by Holm's method.
    pub p_corrected: f64,
    /// The test for a difference too small to matter, if the smallest one that matters is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equality: Option<Equality>,
    /// How many more seeds of both give a power of 80 % for the observed effect, if nothing is claimed and seeds are
    /// the repeats. With few seeds, the observed effect is a rough estimate, and so is this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about_more: Option<usize>,
}

/// What can be claimed about a trial if the noise is normal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// It is better.
    Better,
    /// It is worse.
    Worse,
    /// Neither, and not equal.
    Undecided,
    /// Neither, and equal for practical purposes ([`Equality`]).
    Equal,
}

/// Whether a difference is too small to matter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Equality {
    /// The smallest difference that matters, in the unit of the values.
    pub within: f64,
    /// The p-value of the two one-sided tests.
    pub p: f64,
    /// The same, corrected by Holm's method over the equality tests of all comparisons.
    pub p_corrected: f64,
    /// Whether it is claimed. A difference can be significant and too small to matter.
    pub is_claimed: bool,
}

/// The settings for the comparisons of a table.
#[derive(Clone, Copy, Debug)]
pub struct Claims<'a> {
    /// Which values are better.
    pub direction: Direction,
    /// The significance level for all claims of a difference together, and again for all claims of equality.
    pub alpha: f64,
    /// The number of comparisons that these belong to, if it is larger than the number of trials: all pairs if the
    /// baseline was selected by its values, or those of other tables. Comparisons that are not made here count with p =
    /// 1, which makes Holm's method no less strict than with their own p-values.
    pub num_comparisons: usize,
    /// The smallest difference that matters, in the unit of the values.
    pub smallest_difference: Option<f64>,
    /// How runs on several splits share items, if they do.
    pub overlap: Option<&'a Overlap>,
    /// Which look at growing samples this is, if several are planned.
    pub looks: Option<Looks>,
}

/// What can be claimed about each trial against the baseline. Values are keyed by seed. The test is the sign-flip test
/// over shared seeds, or the Mann-Whitney test if too few are shared ([`Comparison::of`]); p-values are corrected by
/// [`holm`]. A claim requires a corrected p of at most `alpha`, and has the direction of the test.
///
/// A trial that cannot be tested counts with p = 1, so that a failed trial does not make other claims easier. The level
/// that a trial without a claim had to reach is alpha / (m - r), for m comparisons and r claims: with such a raw p,
/// Holm's method would have made it a claim. If the smallest possible p of the test for its n is above that, there are
/// too few seeds.
///
/// In addition, the result of Student's t for the same values ([`IfNormal`]), with its own correction.
///
/// With several looks, p-values are also multiplied by the number of looks ([`Looks`]). Nothing is tested at a look
/// beyond those that were planned.
///
/// Refuses an `alpha` that is not between 0 and 1. Problems of one trial are reported in its own verdict.
pub fn verdicts<T: AsRef<[(u64, f64)]> + Sync>(
    baseline: &[(u64, f64)],
    trials: &[T],
    claims: &Claims<'_>,
) -> Result<Vec<Verdict>, Refusal> {
    check_level(claims.alpha)?;
    // The complement rounds to 1 for the smallest alphas, and 1 is not a valid level.
    let confidence = (1.0 - claims.alpha).min(1.0 - f64::EPSILON);
    let compare =
        |trial: &T| Comparison::with_student(trial.as_ref(), baseline, confidence, claims.overlap);
    let compared: Vec<_> = trials.par_iter().map(compare).collect();
    let num = claims.num_comparisons.max(trials.len());
    let share = match claims.looks.map_or(Ok(1.0), Looks::share) {
        Ok(share) => share,
        Err(refusal) => return Ok(not_tested(&compared, claims, num, refusal)),
    };
    let level = Level {
        alpha: claims.alpha,
        share,
    };
    let is_testable = |comparison: &Comparison| {
        comparison.design.n() >= LEAST_FOR_CLAIM && comparison.test.test.is_exact()
    };
    let raw = compared.iter().map(|result| {
        let comparison = result.as_ref().ok().map(|(comparison, _)| comparison);
        comparison.filter(|c| is_testable(c)).map(|c| c.test.p)
    });
    let exact = Corrected::of(raw.collect(), num, level)?;
    let mut if_normal = if_normal(&compared, claims, num, level)?.into_iter();
    let verdicts = compared.iter().enumerate().map(|(at, compared)| Verdict {
        finding: match compared {
            Ok((comparison, _)) if !comparison.test.test.is_exact() => Finding::NoExactTest,
            Ok((comparison, _)) if exact.is_claim(at) => claim(comparison, claims.direction),
            Ok((comparison, _)) => no_claim(comparison, exact.level(at)),
            Err(Refusal::TooFew { n, .. }) => {
                let least = match claims.overlap {
                    Some(_) => Some(LEAST_FOR_CLAIM),
                    None => pairs_to_reach(exact.level(at)),
                };
                Finding::TooFewSeeds {
                    about_more: AboutMore {
                        to_reach: least.map(|pairs| pairs.saturating_sub(*n)),
                        for_power: None,
                        approximation: None,
                    },
                }
            }
            Err(refusal) => Finding::NotTested { refusal: *refusal },
        },
        direction: claims.direction,
        alpha: claims.alpha,
        num_comparisons: num,
        alpha_corrected: exact.level(at),
        p_corrected: exact.p(at),
        if_normal: if_normal.next().flatten(),
        comparison: compared.as_ref().ok().map(|(comparison, _)| *comparison),
    });
    Ok(verdicts.collect())
}

/// The verdicts at a look for which no level is left.
fn not_tested(
    compared: &[Compared],
    claims: &Claims<'_>,
    num: usize,
    refusal: Refusal,
) -> Vec<Verdict> {
    let verdict = |compared: &Compared| Verdict {
        finding: Finding::NotTested { refusal },
        direction: claims.direction,
        alpha: claims.alpha,
        num_comparisons: num,
        alpha_corrected: 0.0,
        p_corrected: None,
        if_normal: None,
        comparison: compared.as_ref().ok().map(|(comparison, _)| *comparison),
    };
    compared.iter().map(verdict).collect()
}

/// A significance level, of which one of several looks may use a part.
#[derive(Clone, Copy)]
struct Level {
    alpha: f64,
    share: f64,
}

/// p-values of the comparisons of a table, corrected for their number and that of the looks.
struct Corrected {
    /// None if nothing was tested; it counts as 1.
    raw: Vec<Option<f64>>,
    /// Over all comparisons, including those of other tables.
    corrected: Vec<f64>,
    level: Level,
    num_claims: usize,
}

impl Corrected {
    fn of(raw: Vec<Option<f64>>, num: usize, level: Level) -> Result<Self, Refusal> {
        let mut counted: Vec<f64> = raw.iter().map(|p| p.unwrap_or(1.0)).collect();
        counted.resize(num, 1.0);
        let mut corrected = holm(&counted)?;
        corrected
            .iter_mut()
            .for_each(|p| *p = (*p / level.share).min(1.0));
        Ok(Self {
            num_claims: corrected.iter().filter(|p| **p <= level.alpha).count(),
            raw,
            corrected,
            level,
        })
    }

    fn p(&self, at: usize) -> Option<f64> {
        self.raw[at].map(|_| self.corrected[at])
    }

    fn is_claim(&self, at: usize) -> bool {
        self.corrected[at] <= self.level.alpha
    }

    /// The level that the p-value of a comparison was compared with. A claim was compared with the level of its own
    /// step, and equal p-values share the first of their steps.
    fn level(&self, at: usize) -> f64 {
        let own = self.raw[at].unwrap_or(1.0);
        let passed = if self.is_claim(at) {
            self.raw.iter().filter(|p| p.unwrap_or(1.0) < own).count()
        } else {
            self.num_claims
        };
        self.level.alpha * self.level.share / (self.corrected.len() - passed) as f64
    }
}

/// A comparison with the result of Student's t, or why there is none.
type Compared = Result<(Comparison, Option<Student>), Refusal>;

/// The test of no difference, and the p-value of one that does not matter with what that is.
type Tested = (Comparison, TestResult, Option<(f64, f64)>);

/// The results of Student's t for each comparison.
fn if_normal(
    compared: &[Compared],
    claims: &Claims<'_>,
    num: usize,
    level: Level,
) -> Result<Vec<Option<IfNormal>>, Refusal> {
    let tested = |compared: &Compared| -> Option<Tested> {
        let (comparison, student) = compared.as_ref().ok()?;
        let student = (*student)?;
        let within = claims.smallest_difference;
        let equal = within.and_then(|within| Some((within, student.equality_p(within).ok()?)));
        Some((*comparison, student.test().ok()?, equal))
    };
    let tested: Vec<_> = compared.iter().map(tested).collect();
    let p = tested.iter().map(|t| t.as_ref().map(|(_, test, _)| test.p));
    let differences = Corrected::of(p.collect(), num, level)?;
    let p = tested.iter().map(|t| t.as_ref()?.2.map(|(_, p)| p));
    let equalities = Corrected::of(p.collect(), num, level)?;
    let reading = |(at, tested): (usize, Option<Tested>)| {
        let (comparison, test, equal) = tested?;
        let equality = equal.map(|(within, p)| Equality {
            within,
            p,
            p_corrected: equalities.corrected[at],
            is_claimed: equalities.is_claim(at),
        });
        let is_equal = equality.is_some_and(|equality| equality.is_claimed);
        let is_claim = differences.is_claim(at);
        let is_better = claims.direction.is_better(comparison.mean_difference, 0.0);
        let about_more = || {
            let found = seeds_for_power(comparison.effect?, differences.level(at))?;
            Some(found.seeds.saturating_sub(comparison.design.n()).max(1))
        };
        Some(IfNormal {
            reading: match (is_claim, is_better, is_equal) {
                (true, true, _) => Reading::Better,
                (true, false, _) => Reading::Worse,
                (false, _, true) => Reading::Equal,
                (false, _, false) => Reading::Undecided,
            },
            test,
            p_corrected: differences.corrected[at],
            equality,
            about_more: (!is_claim && !is_equal && claims.overlap.is_none())
                .then(about_more)
                .flatten(),
        })
    };
    Ok(tested.into_iter().enumerate().map(reading).collect())
}

fn claim(comparison: &Comparison, direction: Direction) -> Finding {
    let points_to = comparison.points_to();
    match direction.is_better(points_to, 0.0) {
        true => Finding::Better,
        false if points_to == 0.0 => Finding::NoDifferenceShown,
        false => Finding::Worse,
    }
}

/// The verdict on a comparison that did not reach `alpha`.
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

/// The smallest possible p of the design's test, with this many more seeds on both sides.
fn smallest_p(design: Design, more: usize) -> f64 {
    match design {
        Design::Paired { pairs, .. } => smallest_sign_flip_p(pairs.saturating_add(more)),
        Design::Independent { first, second, .. } => {
            smallest_rank_p(first.saturating_add(more), second.saturating_add(more))
        }
    }
}

/// The minimum number of seeds on both sides with which the design's test can reach `alpha`, and a claim is possible.
fn more_to_reach(design: Design, alpha: f64) -> Option<usize> {
    match design {
        Design::Paired { pairs, .. } => pairs_to_reach(alpha).map(|n| n.saturating_sub(pairs)),
        Design::Independent { .. } => {
            let least = LEAST_FOR_CLAIM.saturating_sub(design.n());
            // At least a factor of 2 per seed, so that any positive number is reached.
            (least..2048).find(|more| smallest_p(design, *more) <= alpha)
        }
    }
}
