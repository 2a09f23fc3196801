//! A Gaussian process as a model of the value (Snoek et al., 2012): points are suggested where an improvement on the best
//! trial is to be expected.
//!
//! The kernel is Matérn's with ν = 5/2 and a length for each axis. Lengths and noise are those of the highest posterior
//! probability, with the priors of Hvarfner et al. (2024). The expected improvement is computed as a logarithm (Ament et
//! al., 2023), and relative to the best mean of the model instead of the best value, which noise makes too good.

mod process;
mod values;

use rand::rngs::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};

use super::space::{Axis, Point, Space};
use super::{Known, Shown, Trial, uniform};
use process::{Embedded, Process, embed, log_improvement};

/// Trials that the model has at most: the best half of them, and the newest of the others.
const MAX_TRIALS: usize = 150;

/// Points of the whole space among which the search for the best begins.
const NUM_ANYWHERE: usize = 400;

/// The points that are improved step by step: this many of those, and of the best trials.
const NUM_STARTS: usize = 4;

/// Steps from each start, at each of the scales.
const NUM_STEPS: usize = 30;

/// How far steps go on an axis.
const SCALES: [f64; 3] = [0.15, 0.05, 0.015];

/// Suggests a point; none if all that were looked at are excluded.
pub fn suggest(
    space: &Space,
    shown: &Shown,
    random: &mut ChaCha8Rng,
    trial: Trial<'_>,
) -> Option<Point> {
    let told: Vec<&super::Told> = values::kept(&shown.told, MAX_TRIALS);
    let embedded = told.iter().map(|told| embed(space, &told.point));
    let model = Process::fit(
        space.axes.len(),
        embedded.collect(),
        values::comparable(&told),
    )?;
    let pending = shown.pending.iter().map(|point| embed(space, point));
    let model = model.with_pending(pending.collect());
    // With the values that are expected of those: beside a point that promises to be the best, there is nothing to gain.
    let best = model.best_mean();
    let mut look = Look {
        space,
        random,
        trial,
        value: &|point: &Embedded| log_improvement(&model.at(point), best),
        known: shown.known(),
    };
    let mut found: Vec<Candidate> = (0..NUM_ANYWHERE).filter_map(|_| look.anywhere()).collect();
    found.sort_by(|a, b| b.rank().total_cmp(&a.rank()));
    found.truncate(NUM_STARTS);
    let best_told = told.iter().take(NUM_STARTS);
    let near_best: Vec<_> = best_told
        .filter_map(|told| look.near(&told.point, SCALES[1]))
        .collect();
    found.extend(near_best);
    let climbed = found.into_iter().map(|start| look.climbed(start));
    let best = climbed.reduce(|best, other| {
        if other.rank() > best.rank() {
            other
        } else {
            best
        }
    });
    Some(best?.point)
}

/// A point that may be suggested.
struct Candidate {
    point: Point,
    log_improvement: f64,
    is_new: bool,
}

impl Candidate {
    /// Points that were tried come after all others.
    fn rank(&self) -> f64 {
        if self.is_new {
            self.log_improvement
        } else {
            self.log_improvement - 1e9
        }
    }
}

/// The search for the point of the highest expected improvement.
struct Look<'a> {
    space: &'a Space,
    random: &'a mut ChaCha8Rng,
    trial: Trial<'a>,
    value: &'a dyn Fn(&Embedded) -> f64,
    known: Known,
}

impl Look<'_> {
    fn at(&self, positions: &[f64]) -> Option<Candidate> {
        let point = (self.trial)(positions)?;
        Some(Candidate {
            log_improvement: (self.value)(&embed(self.space, &point)),
            is_new: !self.known.contains(&point),
            point,
        })
    }

    fn anywhere(&mut self) -> Option<Candidate> {
        let axes = self.space.axes.iter();
        let positions: Vec<f64> = axes
            .map(|axis| axis.snapped(uniform(self.random)))
            .collect();
        self.at(&positions)
    }

    /// A point beside another: about two axes have other positions.
    fn near(&mut self, point: &Point, scale: f64) -> Option<Candidate> {
        let num = self.space.axes.len();
        let always = (uniform(self.random) * num as f64) as usize;
        let moves = (1.0 / num as f64).max(0.2);
        let mut positions = Vec::with_capacity(num);
        for (at, axis) in self.space.axes.iter().enumerate() {
            let moved = uniform(self.random) < moves || at == always;
            let drawn = uniform(self.random);
            positions.push(match point[at] {
                None => axis.snapped(drawn),
                Some(position) if moved => beside(axis, position, scale, drawn),
                Some(position) => position,
            });
        }
        self.at(&positions)
    }

    /// The best point of a walk on which no step is worse.
    fn climbed(&mut self, start: Candidate) -> Candidate {
        let mut best = start;
        for scale in SCALES {
            for _ in 0..NUM_STEPS {
                let next = self.near(&best.point, scale);
                if let Some(next) = next.filter(|next| next.rank() > best.rank()) {
                    best = next;
                }
            }
        }
        best
    }
}

/// A position beside another: of numbers at a normally distributed distance, of levels at least at the next one, and of
/// choices anywhere.
fn beside(axis: &Axis, position: f64, scale: f64, drawn: f64) -> f64 {
    let distance = scale * Normal::standard().inverse_cdf(drawn.max(f64::MIN_POSITIVE));
    let moved = |by: f64| (position + by).clamp(0.0, 1.0 - f64::EPSILON);
    match axis {
        Axis::Real => moved(distance),
        Axis::Choice(_) => axis.snapped(drawn),
        Axis::Levels(ends) => {
            let from = axis.index(position).unwrap_or(0);
            let to = axis.index(moved(distance)).unwrap_or(from);
            let next = match (to == from, distance > 0.0) {
                (false, _) => to,
                (true, true) => (from + 1).min(ends.len() - 1),
                (true, false) => from.saturating_sub(1),
            };
            axis.middle(next)
        }
    }
}
