//! Two samples compared: how far apart, how surely, how strongly, and whether chance would do it.

use serde::{Deserialize, Serialize};

use super::sample::mean;
use super::{
    Interval, Pairs, Refusal, TestResult, check_level, cohens_d_z, finite, hedges_g, mann_whitney,
    sign_flip, welch_interval,
};

/// How two samples are held against each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Design {
    /// By their common seeds.
    Paired {
        /// How many seeds both samples have: the n of everything that is said of them.
        pairs: usize,
        /// How many values of the first sample were left out, since the second has none of their seed.
        only_first: usize,
        /// How many of the second.
        only_second: usize,
    },
    /// As two samples without a common seed.
    Independent {
        /// How many values the first has.
        first: usize,
        /// How many the second has.
        second: usize,
    },
}

/// A measure of how strong an effect is, without a unit.
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

/// Two samples compared. Differences are the first sample less the second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// How they are held against each other, with n.
    pub design: Design,
    /// The mean difference of the pairs or the difference of the means, in the unit of the values.
    pub mean_difference: f64,
    /// Its interval, Student's of the pairs or Welch's; none where the values show no spread.
    pub interval: Option<Interval>,
    /// The effect size; none where the values show no spread.
    pub effect: Option<Effect>,
    /// The sign-flip test of the pairs or the exact Mann-Whitney test.
    pub test: TestResult,
}

impl Design {
    /// The design that the keys (seeds) of two samples ask for: paired if they have one in common or if one of them is
    /// empty, independent otherwise. It looks at keys alone, since a test that is chosen by the values is none.
    fn of(pairs: &Pairs) -> Self {
        let (first, second) = (pairs.only_first, pairs.only_second);
        if pairs.n() == 0 && first > 0 && second > 0 {
            Self::Independent { first, second }
        } else {
            Self::Paired {
                pairs: pairs.n(),
                only_first: first,
                only_second: second,
            }
        }
    }

    /// The number of seeds that a claim rests on: the pairs, or the values of the smaller sample.
    pub fn n(self) -> usize {
        match self {
            Self::Paired { pairs, .. } => pairs,
            Self::Independent { first, second } => first.min(second),
        }
    }
}

impl Comparison {
    /// Compares values that are keyed by seed, with intervals of the given level of confidence. Seeds in common make it
    /// paired, and what is unpaired is left out and counted; without any it is a comparison of independent samples.
    ///
    /// Refuses a level that is not between 0 and 1, a seed twice in a sample, values that are not finite, an empty
    /// sample, and more than [`MOST_RANKED`](super::MOST_RANKED) values that are unpaired.
    pub fn of(first: &[(u64, f64)], second: &[(u64, f64)], level: f64) -> Result<Self, Refusal> {
        check_level(level)?;
        let pairs = Pairs::of(first, second)?;
        match Design::of(&pairs) {
            Design::Paired { .. } => Self::paired(&pairs, level),
            Design::Independent { .. } => {
                let values = |sample: &[(u64, f64)]| sample.iter().map(|(_, v)| *v).collect();
                let (first, second): (Vec<f64>, Vec<f64>) = (values(first), values(second));
                Self::independent(&first, &second, level)
            }
        }
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
            },
            test: mann_whitney(first, second)?,
            mean_difference: finite(mean(first)? - mean(second)?)?,
            interval: welch_interval(first, second, level).ok(),
            effect: Effect::of(EffectMeasure::HedgesG, hedges_g(first, second)),
        })
    }

    /// Which way the test points: above 0 where the first sample has the larger values. For ranks this is U less its
    /// mean n1 n2 / 2, since the means can point the other way and the test says nothing of them.
    pub fn points_to(&self) -> f64 {
        match self.design {
            Design::Paired { .. } => self.mean_difference,
            Design::Independent { first, second } => {
                self.test.statistic - 0.5 * first as f64 * second as f64
            }
        }
    }
}

impl Effect {
    fn of(measure: EffectMeasure, value: Result<f64, Refusal>) -> Option<Self> {
        value.ok().map(|value| Self { measure, value })
    }
}
