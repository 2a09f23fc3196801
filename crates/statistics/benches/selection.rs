//! Experiments with many trials and no baseline: is the best among those that may be, and how many are they?

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use runner_statistics::{Direction, may_be_best};

use super::simulation::Noise;

/// A kind of experiment without a baseline.
#[derive(Clone, Copy, Debug)]
pub struct Many {
    /// What values scatter by.
    pub noise: Noise,
    /// Trials.
    pub trials: usize,
    /// Seeds of each.
    pub seeds: usize,
    /// How much worse each trial is than the one before it, in standard deviations.
    pub step: f64,
}

/// The share of `num` experiments in which the best trial is ruled out at 5 %, and the mean number of trials that may
/// be the best.
pub fn selection(many: Many, num: usize, seed: u64) -> (f64, f64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut lost, mut kept) = (0, 0);
    for _ in 0..num {
        let mut sample = |trial: usize| -> Vec<(u64, f64)> {
            let worse = many.step * trial as f64;
            let values = (0..many.seeds as u64).map(|key| (key, many.noise.draw(&mut rng) - worse));
            values.collect()
        };
        let samples: Vec<_> = (0..many.trials).map(&mut sample).collect();
        let found = may_be_best(&samples, Direction::HigherIsBetter, 0.05, None, None);
        let found = found.unwrap_or_default();
        lost += usize::from(found.first() == Some(&false));
        kept += found.iter().filter(|may_be| **may_be).count();
    }
    (lost as f64 / num as f64, kept as f64 / num as f64)
}
