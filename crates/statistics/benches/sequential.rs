//! Experiments to which seeds are added while their verdicts are looked at.

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use runner_statistics::{Claims, Direction, Finding, Looks, Reading, Verdict, verdicts};

use super::simulation::{NUM_TRIALS, Noise};

/// A kind of experiment that is looked at several times.
#[derive(Clone, Copy, Debug)]
pub struct Sequence<'a> {
    /// What values scatter by.
    pub noise: Noise,
    /// The seeds of each trial at each look.
    pub seeds: &'a [usize],
    /// Whether the level is shared by the looks.
    pub is_planned: bool,
    /// How much better than the baseline each trial is, in standard deviations.
    pub difference: f64,
}

/// Shares of experiments, and what they cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Found {
    /// With any claim of a difference by the exact test at any look.
    pub exact: f64,
    /// With any by Student's t at any look.
    pub if_normal: f64,
    /// With a claim by Student's t or exactly about every trial at some look.
    pub decided: f64,
    /// The mean number of seeds of a trial if adding seeds ends as soon as all trials are decided.
    pub seeds: f64,
}

/// Makes up `num` experiments and counts what is claimed at 5 %.
pub fn sequential(sequence: Sequence<'_>, num: usize, seed: u64) -> Found {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let most = sequence.seeds.last().copied().unwrap_or(0);
    let mut found = Found::default();
    let share = 1.0 / num as f64;
    for _ in 0..num {
        let mut sample = |trial: usize| -> Vec<(u64, f64)> {
            let better = if trial == 0 { 0.0 } else { sequence.difference };
            let values = (0..most as u64).map(|key| (key, better + sequence.noise.draw(&mut rng)));
            values.collect()
        };
        let all: Vec<_> = (0..=NUM_TRIALS).map(&mut sample).collect();
        let (mut exact, mut normal, mut ended) = (false, false, None);
        for (at, seeds) in sequence.seeds.iter().enumerate() {
            let looks = Looks {
                number: at + 1,
                planned: sequence.seeds.len(),
            };
            let claims = Claims {
                direction: Direction::HigherIsBetter,
                alpha: 0.05,
                num_comparisons: NUM_TRIALS,
                smallest_difference: None,
                overlap: None,
                looks: sequence.is_planned.then_some(looks),
            };
            let trials: Vec<_> = all[1..].iter().map(|trial| &trial[..*seeds]).collect();
            let made = verdicts(&all[0][..*seeds], &trials, &claims).unwrap_or_default();
            exact |= made.iter().any(is_exact);
            normal |= made.iter().any(is_normal);
            if made
                .iter()
                .all(|verdict| is_exact(verdict) || is_normal(verdict))
            {
                ended = ended.or(Some(*seeds));
            }
        }
        found.exact += f64::from(exact) * share;
        found.if_normal += f64::from(normal) * share;
        found.decided += f64::from(ended.is_some()) * share;
        found.seeds += ended.unwrap_or(most) as f64 * share;
    }
    found
}

fn is_exact(verdict: &Verdict) -> bool {
    matches!(verdict.finding, Finding::Better | Finding::Worse)
}

fn is_normal(verdict: &Verdict) -> bool {
    let reading = verdict.if_normal.map(|normal| normal.reading);
    matches!(reading, Some(Reading::Better | Reading::Worse))
}
