//! Sampling of the next token from the scores of a network.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// How tokens are sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// The divisor of the scores; 0 always takes the most probable token.
    pub temperature: f64,
    /// Samples only from this many most probable tokens.
    pub top_k: Option<usize>,
    /// Samples only from the most probable tokens whose probabilities add up to this.
    pub top_p: Option<f64>,
    /// The seed of all samples.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 1.0,
            top_k: None,
            top_p: None,
            seed: 0,
        }
    }
}

/// Samples one token after the other.
#[derive(Debug)]
pub struct Sampler<F> {
    sampling: Sampling,
    is_wanted: F,
    rng: ChaCha8Rng,
}

impl<F: Fn(usize) -> bool> Sampler<F> {
    /// Starts from the seed; only wanted tokens are sampled.
    pub fn new(sampling: Sampling, is_wanted: F) -> Self {
        Self {
            is_wanted,
            rng: ChaCha8Rng::seed_from_u64(sampling.seed),
            sampling,
        }
    }

    /// The next token, given the logarithms of probabilities up to a constant. `None` if a score is NaN, or no token is
    /// wanted.
    ///
    /// Top-p is nucleus sampling (Holtzman et al., 2020), applied after top-k.
    pub fn next(&mut self, scores: &[f32]) -> Option<usize> {
        let all = 0..scores.len();
        let mut order: Vec<usize> = all.filter(|at| (self.is_wanted)(*at)).collect();
        if order.is_empty() || scores.iter().any(|score| score.is_nan()) {
            return None;
        }
        // Stable: ties go to the first.
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let Sampling {
            temperature,
            top_k,
            top_p,
            ..
        } = self.sampling;
        if temperature <= 0.0 {
            return order.first().copied();
        }
        order.truncate(top_k.unwrap_or(order.len()).max(1));
        let most = f64::from(scores[order[0]]);
        let weight = |at: &usize| ((f64::from(scores[*at]) - most) / temperature).exp();
        let mut weights: Vec<f64> = order.iter().map(weight).collect();
        let mut total: f64 = weights.iter().sum();
        if let Some(share) = top_p {
            let mut sum = 0.0;
            let num = weights
                .iter()
                .position(|weight| {
                    sum += weight;
                    sum >= share * total
                })
                .map_or(weights.len(), |last| last + 1);
            weights.truncate(num);
            total = weights.iter().sum();
        }
        // 53 random bits: a number from 0 to 1.
        let drawn = (self.rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * total;
        let mut sum = 0.0;
        let at = weights.iter().position(|weight| {
            sum += weight;
            drawn < sum
        });
        order.get(at.unwrap_or(weights.len() - 1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORES: [f32; 6] = [9.0, 9.0, 1.0, 3.0, 2.0, -50.0];

    fn drawn(sampling: Sampling, num: usize) -> Vec<usize> {
        let mut sampler = Sampler::new(sampling, |token| token > 1);
        (0..num).map(|_| sampler.next(&SCORES).unwrap()).collect()
    }

    #[test]
    fn draws_are_in_proportion_and_repeat_with_the_seed() {
        let num = 20_000;
        let all = drawn(Sampling::default(), num);
        assert_eq!(all, drawn(Sampling::default(), num));
        let other = Sampling {
            seed: 1,
            ..Sampling::default()
        };
        assert_ne!(all, drawn(other, num));
        let total: f64 = [1f64, 3.0, 2.0].iter().map(|x| x.exp()).sum();
        for (token, score) in [(2, 1f64), (3, 3.0), (4, 2.0)] {
            let share = all.iter().filter(|at| **at == token).count() as f64 / num as f64;
            let expected = score.exp() / total;
            // Five standard deviations of the fraction.
            let bound = 5.0 * (expected * (1.0 - expected) / num as f64).sqrt();
            assert!(
                (share - expected).abs() < bound,
                "{token}: {share} for {expected}"
            );
        }
    }

    #[test]
    fn limits_leave_the_most_probable() {
        let base = Sampling::default();
        let greedy = Sampling {
            temperature: 0.0,
            ..base
        };
        assert_eq!(drawn(greedy, 3), [3, 3, 3]);
        let top_k = Sampling {
            top_k: Some(2),
            ..base
        };
        assert!(drawn(top_k, 500).iter().all(|at| [3, 4].contains(at)));
        // The first has a probability of 0.665, the second of 0.245.
        let top_p = |share| Sampling {
            top_p: Some(share),
            ..base
        };
        assert!(drawn(top_p(0.6), 500).iter().all(|at| *at == 3));
        let two = drawn(top_p(0.9), 500);
        assert!(two.contains(&4) && !two.contains(&2));
        let mut sampler = Sampler::new(base, |token| token > 1);
        assert_eq!(sampler.next(&[0.0, 0.0, f32::NAN]), None);
        assert_eq!(sampler.next(&[0.0, 0.0]), None);
    }
}
