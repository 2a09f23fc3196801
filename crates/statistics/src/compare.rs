//! Comparison of two samples: the difference, its uncertainty, its strength, and whether chance would explain it.

use serde::{Deserialize, Serialize};

use super::overlap::Overlap;
use super::sample::mean;
use super::student::{Student, values};
use super::{
    Interval, Pairs, Refusal, TestResult, check_level, cohens_d_z, finite, hedges_g, mann_whitney,
    sign_flip, welch_interval,
};

/// How two samples are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Design {
    /// By their common seeds.
    Paired {
        /// The number of common seeds: the n of all results.
        pairs: usize,
        /// The number of values of the first sample without a partner in the second.
        only_first: usize,
        /// The number for the second.
        only_second: usize,
    },
    /// As two samples, without pairs.
    Independent {
        /// The number of values of the first.
        first: usize,
        /// The number of values of the second.
        second: usize,
        /// How many seeds they share: too few for pairs, which would ignore all values without a partner.
        #[serde(default, skip_serializing_if = "is_zero")]
        common: usize,
    },
}

/// A unitless measure of the strength of an effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectMeasure {
    /// Cohen's d_z of pairs, see [`cohens_d_z`].
    CohensDz,
    /// Hedges' g of independent samples, see [`hedges_g`].
    HedgesG,
}

/// How strong an effect is: a difference of means in standard deviations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Which standard deviation.
    pub measure: EffectMeasure,
    /// The number, above 0 where the first sample has the larger mean.
    pub value: f64,
}

/// A comparison of two samples. Differences are the first sample minus the second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The design, with n.
    pub design: Design,
    /// The mean difference of the pairs or the difference of the means, in the unit of the values.
    pub mean_difference: f64,
    /// Its interval, Student's for pairs or Welch's; none if the values have no spread.
    pub interval: Option<Interval>,
    /// The effect size; none if the values have no spread.
    pub effect: Option<Effect>,
    /// The sign-flip test of the pairs or the exact Mann-Whitney test.
    pub test: TestResult,
}

fn is_zero(num: &usize) -> bool {
    *num == 0
}

impl Design {
    /// The design for the keys (seeds) of two samples. It depends only on the keys, since a test that is chosen by the
    /// values is not valid.
    ///
    /// Pairs ignore values without a partner. The difference of means has the variance σ² (1/n + 1/m) without pairs,
    /// and 2 σ² (1 - ρ) / p with p pairs of values with correlation ρ. At ρ = 1/2, pairs are at least as good from p =
    /// n m / (n + m), so they are used from this number on: with 10 seeds each, from 5 shared ones. At least two pairs
    /// are needed.
    fn of(pairs: &Pairs) -> Self {
        let p = pairs.n();
        let (n, m) = (p + pairs.only_first, p + pairs.only_second);
        let is_weaker = p.saturating_mul(n + m) < n.saturating_mul(m) || p < 2 && n.min(m) > 1;
        if is_weaker && n > 0 && m > 0 {
            Self::Independent {
                first: n,
                second: m,
                common: p,
            }
        } else {
            Self::Paired {
                pairs: p,
                only_first: pairs.only_first,
                only_second: pairs.only_second,
            }
        }
    }

    /// The number of seeds behind a verdict: the pairs, or the values of the smaller sample.
    pub fn n(self) -> usize {
        match self {
            Self::Paired { pairs, .. } => pairs,
            Self::Independent { first, second, .. } => first.min(second),
        }
    }
}

impl Comparison {
    /// Compares values that are keyed by seed, with intervals of the given confidence level: by pairs if enough seeds
    /// are shared, otherwise as independent samples. Omitted values are counted.
    ///
    /// With an `overlap`, keys are those of runs on several splits. The test is then the corrected t test, since no
    /// exact test is valid for correlated values.
    ///
    /// Refuses a level that is not between 0 and 1, a seed twice in a sample, values that are not finite, and an empty
    /// sample.
    pub fn of(
        first: &[(u64, f64)],
        second: &[(u64, f64)],
        level: f64,
        overlap: Option<&Overlap>,
    ) -> Result<Self, Refusal> {
        check_level(level)?;
        Ok(Self::with_student(first, second, level, overlap)?.0)
    }

    /// The same with the result of Student's t; none if the values show no spread.
    pub(super) fn with_student(
        first: &[(u64, f64)],
        second: &[(u64, f64)],
        level: f64,
        overlap: Option<&Overlap>,
    ) -> Result<(Self, Option<Student>), Refusal> {
        let pairs = Pairs::of(first, second)?;
        let design = Design::of(&pairs);
        if let Some(overlap) = overlap {
            return Self::over_splits(first, second, &pairs, design, level, overlap);
        }
        Ok(match design {
            Design::Paired { .. } => (
                Self::paired(&pairs, level)?,
                Student::paired(&pairs.differences, None).ok(),
            ),
            Design::Independent { .. } => {
                let (first, second) = (values(first), values(second));
                let compared = Self::independent(&first, &second, level)?;
                let student = Student::welch(&first, &second, None).ok();
                (Self { design, ..compared }, student)
            }
        })
    }

    /// Over several splits: differences are taken by key. n is the number of splits; the effect is that of single runs.
    fn over_splits(
        first: &[(u64, f64)],
        second: &[(u64, f64)],
        pairs: &Pairs,
        design: Design,
        level: f64,
        overlap: &Overlap,
    ) -> Result<(Self, Option<Student>), Refusal> {
        let (design, student, effect) = match design {
            Design::Paired { .. } => {
                let design = Design::Paired {
                    pairs: overlap.num_splits(&pairs.keys),
                    only_first: pairs.only_first,
                    only_second: pairs.only_second,
                };
                let effect = Effect::of(EffectMeasure::CohensDz, cohens_d_z(&pairs.differences));
                (design, overlap.of_pairs(pairs)?, effect)
            }
            Design::Independent { common, .. } => {
                let splits = |sample| overlap.by_split(sample).len();
                let design = Design::Independent {
                    first: splits(first),
                    second: splits(second),
                    common,
                };
                let student = overlap.of_two(first, second)?;
                let hedges = hedges_g(&values(first), &values(second));
                (design, student, Effect::of(EffectMeasure::HedgesG, hedges))
            }
        };
        let compared = Self {
            design,
            mean_difference: student.difference,
            interval: student.interval(level).ok(),
            effect,
            test: student.test()?,
        };
        Ok((compared, Some(student)))
    }

    /// Compares pairs: mean difference with Student's interval, Cohen's d_z, sign-flip test.
    ///
    /// Refuses a level that is not between 0 and 1, and what [`sign_flip`] refuses.
    pub fn paired(pairs: &Pairs, level: f64) -> Result<Self, Refusal> {
        check_level(level)?;
        let differences = &pairs.differences;
        let test = sign_flip(differences)?;
        Ok(Self {
            design: Design::Paired {
                pairs: pairs.n(),
                only_first: pairs.only_first,
                only_second: pairs.only_second,
            },
            mean_difference: test.statistic,
            interval: Interval::student(differences, level).ok(),
            effect: Effect::of(EffectMeasure::CohensDz, cohens_d_z(differences)),
            test,
        })
    }

    /// Compares independent samples: difference of means with Welch's interval, Hedges' g, exact Mann-Whitney test.
    ///
    /// Refuses a level that is not between 0 and 1, and what [`mann_whitney`] refuses.
    pub fn independent(first: &[f64], second: &[f64], level: f64) -> Result<Self, Refusal> {
        check_level(level)?;
        Ok(Self {
            design: Design::Independent {
                first: first.len(),
                second: second.len(),
                common: 0,
            },
            test: mann_whitney(first, second)?,
            mean_difference: finite(mean(first)? - mean(second)?)?,
            interval: welch_interval(first, second, level).ok(),
            effect: Effect::of(EffectMeasure::HedgesG, hedges_g(first, second)),
        })
    }

    /// The direction of the test: above 0 if the first sample has the larger values. For ranks this is U minus its mean
    /// n1 n2 / 2, since the means can have the opposite direction and the test does not depend on them.
    pub fn points_to(&self) -> f64 {
        match self.design {
            Design::Independent { first, second, .. } if self.test.test.is_exact() => {
                self.test.statistic - 0.5 * first as f64 * second as f64
            }
            _ => self.mean_difference,
        }
    }
}

impl Effect {
    fn of(measure: EffectMeasure, value: Result<f64, Refusal>) -> Option<Self> {
        value.ok().map(|value| Self { measure, value })
    }
}
