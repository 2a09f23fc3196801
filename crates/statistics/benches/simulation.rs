//! Simulated experiments with known effects: how often verdicts are wrong, and how often they detect existing
//! differences.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use runner_statistics::{Claims, Direction, Finding, Reading, verdicts};

/// Trials that are compared with the baseline.
pub const NUM_TRIALS: usize = 4;

/// The distribution of noise. Each has a standard deviation of about 1, except t2, which has none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Noise {
    /// The normal distribution.
    Normal,
    /// Student's t with 2 degrees of freedom: outliers are common.
    HeavyTails,
    /// An exponential distribution: a long tail to one side.
    Skewed,
    /// The normal distribution, rounded to halves: many values are equal.
    Tied,
    /// The exponential distribution for trials, a tenth of it for the baseline: differences are skewed, which is valid
    /// for neither a sign-flip test nor Student's t test.
    SkewedApart,
    /// The fraction of 200 items that are correct with probability 0.95, in standard deviations.
    Binomial,
}

impl Noise {
    /// All of them with their names.
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::Normal, "normal"),
        (Self::HeavyTails, "t, 2 degrees of freedom"),
        (Self::Skewed, "exponential"),
        (Self::SkewedApart, "exponential, baseline a tenth"),
        (Self::Tied, "normal, rounded to 0.5 sd"),
        (Self::Binomial, "binomial, 200 items at 0.95"),
    ];

    /// A value.
    pub fn draw(self, rng: &mut ChaCha8Rng) -> f64 {
        match self {
            Self::Normal => normal(rng),
            Self::HeavyTails => normal(rng) / (-uniform(rng).ln()).sqrt(),
            Self::Skewed | Self::SkewedApart => -uniform(rng).ln() - 1.0,
            Self::Tied => (2.0 * normal(rng)).round() / 2.0,
            Self::Binomial => {
                let right = (0..200).filter(|_| uniform(rng) < 0.95).count() as f64;
                (right - 190.0) / 9.5_f64.sqrt()
            }
        }
    }
}

/// A number above 0 and at most 1.
fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    ((rng.next_u64() >> 11) as f64 + 1.0) / (1u64 << 53) as f64
}

/// By Box and Muller (1958).
pub fn normal(rng: &mut ChaCha8Rng) -> f64 {
    let radius = (-2.0 * uniform(rng).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(rng)).cos()
}

/// A kind of experiment.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The distribution of noise.
    pub noise: Noise,
    /// Seeds of each trial.
    pub seeds: usize,
    /// Whether trials share their seeds.
    pub is_paired: bool,
    /// How much better than the baseline each trial is, in standard deviations.
    pub difference: f64,
    /// The smallest difference that matters.
    pub smallest: f64,
}

/// Fractions of experiments.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rates {
    /// With any claim of a difference by the exact test.
    pub exact: f64,
    /// With any by Student's t.
    pub if_normal: f64,
    /// With any claim of equality.
    pub equal: f64,
    /// Of all trials, those claimed to be better by the exact test.
    pub found_exact: f64,
    /// The same by Student's t.
    pub found_if_normal: f64,
    /// Of all trials, those claimed to be equal.
    pub found_equal: f64,
}

/// Simulates `num` experiments and counts the claims at 5 %.
pub fn simulate(setting: Setting, num: usize, seed: u64) -> Rates {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let claims = Claims {
        direction: Direction::HigherIsBetter,
        alpha: 0.05,
        num_comparisons: NUM_TRIALS,
        smallest_difference: Some(setting.smallest),
        overlap: None,
        looks: None,
    };
    let mut rates = Rates::default();
    let (of_all, of_trials) = (1.0 / num as f64, 1.0 / (num * NUM_TRIALS) as f64);
    for _ in 0..num {
        let mut sample = |trial: usize| -> Vec<(u64, f64)> {
            let first = if setting.is_paired { 0 } else { trial * 1000 };
            let better = if trial == 0 { 0.0 } else { setting.difference };
            let scale = if trial == 0 && setting.noise == Noise::SkewedApart {
                0.1
            } else {
                1.0
            };
            let keys = (0..setting.seeds).map(|seed| (first + seed) as u64);
            keys.map(|key| (key, better + scale * setting.noise.draw(&mut rng)))
                .collect()
        };
        let baseline = sample(0);
        let trials: Vec<_> = (1..=NUM_TRIALS).map(sample).collect();
        let found = verdicts(&baseline, &trials, &claims).unwrap_or_default();
        let is_exact = |finding: Finding| matches!(finding, Finding::Better | Finding::Worse);
        let num_exact = found.iter().filter(|v| is_exact(v.finding)).count();
        let read = || found.iter().filter_map(|verdict| verdict.if_normal);
        let is_claim = |reading| matches!(reading, Reading::Better | Reading::Worse);
        let num_claims = read().filter(|n| is_claim(n.reading)).count();
        let is_equal = |n: &runner_statistics::IfNormal| n.equality.is_some_and(|e| e.is_claimed);
        let num_equal = read().filter(is_equal).count();
        rates.exact += f64::from(num_exact > 0) * of_all;
        rates.if_normal += f64::from(num_claims > 0) * of_all;
        rates.equal += f64::from(num_equal > 0) * of_all;
        let better = found.iter().filter(|v| v.finding == Finding::Better);
        rates.found_exact += better.count() as f64 * of_trials;
        let better = read().filter(|n| n.reading == Reading::Better);
        rates.found_if_normal += better.count() as f64 * of_trials;
        rates.found_equal += num_equal as f64 * of_trials;
    }
    rates
}
