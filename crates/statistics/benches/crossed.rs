//! Experiments over folds with several seeds, simulated: how often are intervals and claims wrong?

use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use runner_statistics::{
    Claims, Direction, Interval, Overlap, Reading, Verdict, may_be_best, verdicts,
};

use super::simulation::normal;

/// What values vary by: each part is normal, with this standard deviation.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    /// Over splits.
    pub split: f64,
    /// Over seeds, on all splits alike.
    pub seed: f64,
    /// Over runs.
    pub rest: f64,
}

/// The settings of the table, with their names.
pub const ALL: [(Parts, &str); 4] = [
    (parts(0.2, 1.0, 0.2), "mostly seeds"),
    (parts(1.0, 0.2, 0.2), "mostly folds"),
    (parts(1.0, 1.0, 0.2), "seeds and folds"),
    (parts(0.0, 0.0, 1.0), "neither"),
];

const fn parts(split: f64, seed: f64, rest: f64) -> Parts {
    Parts { split, seed, rest }
}

/// A kind of experiment.
#[derive(Clone, Copy, Debug)]
pub struct Crossed {
    pub parts: Parts,
    pub seeds: u64,
    pub folds: u64,
}

/// Fractions of experiments, at 5 %.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wrong {
    /// In which the interval for a trial's mean misses the true mean.
    pub interval: f64,
    /// In which a trial with the same seeds is claimed to be different, and is not.
    pub paired: f64,
    /// The same with other seeds.
    pub unpaired: f64,
    /// In which a trial is claimed to be equal that differs by exactly the smallest difference that matters.
    pub equal: f64,
    /// In which the best of three equal trials is ruled out.
    pub best: f64,
}

/// Runs on all folds with all seeds from `first` on.
struct Runs {
    /// By fold and seed.
    values: Vec<Vec<f64>>,
    first: u64,
}

impl Runs {
    /// The folds of all runs share training items: their parts are correlated as Nadeau and Bengio assume, by n2 / (n1 +
    /// n2).
    fn draw(crossed: Crossed, first: u64, rng: &mut ChaCha8Rng) -> Self {
        let Parts { split, seed, rest } = crossed.parts;
        let shared = 1.0 / crossed.folds as f64;
        let common = shared.sqrt() * normal(rng);
        let seeds: Vec<f64> = (0..crossed.seeds).map(|_| seed * normal(rng)).collect();
        let fold = |_| -> Vec<f64> {
            let of_fold = split * (common + (1.0 - shared).sqrt() * normal(rng));
            let runs = seeds.iter();
            runs.map(|of_seed| of_fold + of_seed + rest * normal(rng))
                .collect()
        };
        Self {
            values: (0..crossed.folds).map(fold).collect(),
            first,
        }
    }

    fn keyed(&self, more: f64) -> Vec<(u64, f64)> {
        let of_fold = |(fold, runs): (usize, &Vec<f64>)| -> Vec<(u64, f64)> {
            let keyed = (self.first..).zip(runs);
            keyed
                .map(|(seed, value)| (key(fold as u64, seed), value + more))
                .collect()
        };
        self.values.iter().enumerate().flat_map(of_fold).collect()
    }
}

fn key(fold: u64, seed: u64) -> u64 {
    1000 * fold + seed
}

/// The first seed of a trial that shares none.
const OTHERS: u64 = 500;

/// Simulates `num` experiments.
pub fn crossed(crossed: Crossed, num: usize, seed: u64) -> Wrong {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let seeds = (0..crossed.seeds).chain((0..crossed.seeds).map(|seed| OTHERS + seed));
    let at: Vec<(u64, u64)> = seeds
        .flat_map(|seed| (0..crossed.folds).map(move |fold| (fold, seed)))
        .collect();
    let overlap = Overlap {
        ratio: 1.0 / (crossed.folds - 1) as f64,
        splits: at
            .iter()
            .map(|(fold, seed)| (key(*fold, *seed), *fold))
            .collect(),
        seeds: at
            .iter()
            .map(|(fold, seed)| (key(*fold, *seed), *seed))
            .collect(),
    };
    let verdict = |trial: &Runs, baseline: &Runs, more: f64| -> Option<Verdict> {
        let claims = Claims {
            direction: Direction::HigherIsBetter,
            alpha: 0.05,
            num_comparisons: 1,
            smallest_difference: Some(1.0),
            overlap: Some(&overlap),
            looks: None,
        };
        let found = verdicts(&baseline.keyed(0.0), &[trial.keyed(more)], &claims);
        found.ok()?.first().copied()
    };
    let is_reading = |verdict: Option<Verdict>, those: &[Reading]| {
        let reading = verdict.and_then(|verdict| Some(verdict.if_normal?.reading));
        reading.is_some_and(|reading| those.contains(&reading))
    };
    let mut wrong = Wrong::default();
    let count = |rate: &mut f64, is_wrong| *rate += f64::from(is_wrong) / num as f64;
    for _ in 0..num {
        let mut draw = |first| Runs::draw(crossed, first, &mut rng);
        let (baseline, trial, third, other) = (draw(0), draw(0), draw(0), draw(OTHERS));
        let interval = Interval::corrected(&trial.keyed(0.0), &overlap, 0.95);
        count(
            &mut wrong.interval,
            interval.is_ok_and(|i| !i.contains(0.0)),
        );
        let apart = [Reading::Better, Reading::Worse];
        count(
            &mut wrong.paired,
            is_reading(verdict(&trial, &baseline, 0.0), &apart),
        );
        count(
            &mut wrong.unpaired,
            is_reading(verdict(&other, &baseline, 0.0), &apart),
        );
        let equal = verdict(&trial, &baseline, 1.0).and_then(|v| v.if_normal?.equality);
        count(
            &mut wrong.equal,
            equal.is_some_and(|equality| equality.is_claimed),
        );
        let all = [&baseline, &trial, &third].map(|runs| runs.keyed(0.0));
        let best = may_be_best(&all, Direction::HigherIsBetter, 0.05, Some(&overlap), None);
        count(&mut wrong.best, best.is_ok_and(|may_be| !may_be[0]));
    }
    wrong
}
