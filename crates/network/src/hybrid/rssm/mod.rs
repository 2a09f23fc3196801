//! A recurrent state-space model of a training (Hafner et al., 2019, <https://arxiv.org/abs/1811.04551>): what follows
//! from the features of its updates, and how the next update is made of the last ones.
//!
//! After each real update, it is told the features of the update, and learns: to predict features, and the factors of
//! the updates before it whose sum is nearest to the update. Both are numbers; the factors' error follows from inner
//! products. In a prediction it sees no features: each state follows from the one before it.

mod cell;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use cell::{LATENT, Layout, NUM_FEATURES, State, Step, Told};
use runner_core::data::order::{Purpose, normal, uniform};

use super::Seen;

/// Updates that a step of learning looks back at.
const WINDOW: usize = 8;
/// The step size of learning, by Adam.
const LEARNING_RATE: f64 = 1e-2;
/// The greatest norm of its gradient.
const MAX_NORM: f64 = 1.0;
const BETAS: [f64; 2] = [0.9, 0.999];
/// How much the error of factors counts beside that of features.
const WEIGHT: f64 = 10.0;
/// The share of the past in the running mean and variance of features.
const DECAY: f64 = 0.99;
/// The largest feature, in standard deviations.
const LARGEST: f64 = 5.0;
/// Before it has learned anything, an update is the one before it, times this.
const FIRST_FACTOR: f64 = 0.9;

/// The model, and what it has seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rssm {
    seed: u64,
    num_factors: usize,
    parameters: Vec<f64>,
    /// The running means of its gradients and of their squares.
    moments: [Vec<f64>; 2],
    num_steps: u64,
    /// The state before the window.
    start: State,
    window: Vec<Observation>,
    num_seen: u64,
    /// The running mean and variance of each feature.
    scales: Vec<[f64; 2]>,
    /// The logarithm of the last loss.
    last_loss: f64,
}

/// An update.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Observation {
    features: Vec<f64>,
    noise: Vec<f64>,
    /// The inner products of the updates before it and of itself, row by row, divided by its squared norm.
    products: Vec<f64>,
}

impl Rssm {
    /// A model that predicts an update from `num_factors` updates before it, and has learned nothing.
    pub fn new(num_factors: usize, seed: u64) -> Self {
        let layout = Layout::new(num_factors);
        let num = layout.num_parameters();
        let mut parameters = vec![0.0; num];
        for (index, map) in layout.maps().into_iter().enumerate() {
            let (at, columns) = map.weights();
            let bound = 1.0 / (columns as f64).sqrt();
            let drawn = uniform(at.len(), bound, seed, Purpose::Predictor, index as u64);
            parameters[at].copy_from_slice(&drawn);
        }
        parameters[layout.head.weights().0].fill(0.0);
        if let Some(last) = parameters[layout.head.biases()].last_mut() {
            *last = FIRST_FACTOR;
        }
        Self {
            seed,
            num_factors,
            parameters,
            moments: [vec![0.0; num], vec![0.0; num]],
            num_steps: 0,
            start: State::default(),
            window: Vec::new(),
            num_seen: 0,
            scales: vec![[0.0; 2]; NUM_FEATURES],
            last_loss: 0.0,
        }
    }

    /// Learns from a real update, which had this loss and norm of its gradients. `products` are the inner products of
    /// the updates before it and of itself, row by row, the oldest one first.
    pub fn observe(&mut self, products: &[f64], seen: Seen) {
        let Some(features) = self.features(products, seen) else {
            return;
        };
        let features = self.scaled(&features);
        let layout = Layout::new(self.num_factors);
        if self.window.len() == WINDOW {
            let oldest = self.window.remove(0);
            let step = layout.observe(
                &self.parameters,
                &self.start,
                &oldest.features,
                &oldest.noise,
            );
            self.start = step.state;
        }
        let size = products[products.len() - 1];
        self.window.push(Observation {
            features,
            // The first numbers of this purpose initialize the maps.
            noise: normal(LATENT, self.seed, Purpose::Predictor, 1000 + self.num_seen),
            products: products.iter().map(|product| product / size).collect(),
        });
        self.num_seen += 1;
        self.learn(&layout);
    }

    /// What describes an update; nothing if it is not finite, or did not move.
    fn features(&mut self, products: &[f64], (loss, norm): Seen) -> Option<[f64; NUM_FEATURES]> {
        let num = self.num_factors + 1;
        let at = |row: usize, column: usize| products.get(row * num + column).copied();
        let last = num - 1;
        let size = at(last, last)?;
        let cosine = |back: usize| -> Option<f64> {
            let Some(other) = last.checked_sub(back) else {
                return Some(0.0);
            };
            Some(at(last, other)? / (size * at(other, other)?).sqrt())
        };
        let log = |value: f64| libm::log(value.abs().max(f64::MIN_POSITIVE));
        let loss = log(loss);
        let change = if self.num_seen == 0 {
            0.0
        } else {
            loss - self.last_loss
        };
        let features = [
            loss,
            change,
            0.5 * (log(size) - log(at(last - 1, last - 1)?)),
            cosine(1)?,
            cosine(2)?,
            norm.map_or(0.0, log),
        ];
        let is_usable = size > 0.0 && features.iter().all(|feature| feature.is_finite());
        is_usable.then(|| {
            self.last_loss = loss;
            features
        })
    }

    /// Features relative to their running mean, in running standard deviations.
    fn scaled(&mut self, features: &[f64]) -> Vec<f64> {
        let num = self.num_seen as f64;
        let decay = (num / (num + 1.0)).min(DECAY);
        let scales = self.scales.iter_mut().zip(features);
        scales
            .map(|([mean, variance], value)| {
                let apart = value - *mean;
                *mean += (1.0 - decay) * apart;
                *variance = decay * (*variance + (1.0 - decay) * apart * apart);
                let scaled = (value - *mean) / (*variance + 1e-6).sqrt();
                scaled.clamp(-LARGEST, LARGEST)
            })
            .collect()
    }

    /// The steps of the window, with its noise.
    fn steps(&self, layout: &Layout) -> Vec<Step> {
        let mut state = self.start.clone();
        let steps = self.window.iter().map(|seen| {
            let step = layout.observe(&self.parameters, &state, &seen.features, &seen.noise);
            state = step.state.clone();
            step
        });
        steps.collect()
    }

    /// A step of Adam (Kingma and Ba, 2015) down the losses of the window.
    fn learn(&mut self, layout: &Layout) {
        let mut gradient = self.gradient(layout);
        let norm = gradient
            .iter()
            .map(|value| value * value)
            .sum::<f64>()
            .sqrt();
        if !norm.is_finite() {
            return;
        }
        let factor = (MAX_NORM / norm.max(f64::MIN_POSITIVE)).min(1.0);
        gradient.iter_mut().for_each(|value| *value *= factor);
        self.num_steps += 1;
        // No limit is exceeded: far before, the corrections are 1.
        let steps = self.num_steps.min(1 << 20) as i32;
        let corrections = BETAS.map(|beta| 1.0 - beta.powi(steps));
        let [means, squares] = &mut self.moments;
        for (at, value) in gradient.into_iter().enumerate() {
            means[at] += (1.0 - BETAS[0]) * (value - means[at]);
            squares[at] += (1.0 - BETAS[1]) * (value * value - squares[at]);
            let deviation = (squares[at] / corrections[1]).sqrt() + 1e-8;
            self.parameters[at] -= LEARNING_RATE * means[at] / corrections[0] / deviation;
        }
    }

    fn gradient(&self, layout: &Layout) -> Vec<f64> {
        let steps = self.steps(layout);
        let errors = steps.iter().zip(&self.window);
        let errors: Vec<Vec<f64>> = errors
            .map(|(step, seen)| seen.error_gradient(&step.factors))
            .collect();
        let told = self
            .window
            .iter()
            .zip(&errors)
            .map(|(seen, of_factors)| Told {
                features: &seen.features,
                noise: &seen.noise,
                of_factors,
            });
        layout.gradient(&self.parameters, &steps, &told.collect::<Vec<_>>())
    }

    /// The next `num` updates, each as factors of the last `num_factors` + 1 real ones, the oldest one first.
    pub fn imagine(&self, num: usize) -> Vec<Vec<f64>> {
        let layout = Layout::new(self.num_factors);
        let mut state = self.start.clone();
        let expected = [0.0; LATENT];
        for seen in &self.window {
            let step = layout.observe(&self.parameters, &state, &seen.features, &expected);
            state = step.state;
        }
        let num_known = self.num_factors + 1;
        let known = (1..num_known).map(|at| {
            let mut unit = vec![0.0; num_known];
            unit[at] = 1.0;
            unit
        });
        let mut last: Vec<Vec<f64>> = known.collect();
        let imagined = (0..num).map(|_| {
            state = layout.imagine(&self.parameters, &state);
            let factors = layout.factors(&self.parameters, &state);
            let mut next = vec![0.0; num_known];
            for (factor, update) in factors.iter().zip(&last) {
                next.iter_mut()
                    .zip(update)
                    .for_each(|(sum, part)| *sum += factor * part);
            }
            last.remove(0);
            last.push(next.clone());
            next
        });
        imagined.collect()
    }
}

impl Observation {
    /// [`WEIGHT`] times the squared distance of the sum of updates before it, times their factors, from the update,
    /// relative to its squared norm.
    #[cfg(test)]
    fn error(&self, factors: &[f64]) -> f64 {
        let num = factors.len() + 1;
        let factors: Vec<f64> = factors.iter().copied().chain([-1.0]).collect();
        let rows = factors.iter().enumerate().map(|(row, left)| {
            let row = self.products[row * num..].iter().zip(&factors);
            left * row.map(|(product, right)| product * right).sum::<f64>()
        });
        WEIGHT * rows.sum::<f64>()
    }

    /// The gradient of the error with respect to the factors.
    fn error_gradient(&self, factors: &[f64]) -> Vec<f64> {
        let num = factors.len() + 1;
        let rows = (0..num - 1).map(|row| {
            let row = &self.products[row * num..(row + 1) * num];
            let sum: f64 = row
                .iter()
                .zip(factors)
                .map(|(product, factor)| product * factor)
                .sum();
            2.0 * WEIGHT * (sum - row[num - 1])
        });
        rows.collect()
    }
}
