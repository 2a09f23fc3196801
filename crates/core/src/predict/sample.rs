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
pub struct Sampler {
    sampling: Sampling,
    /// Wanted tokens, in their order.
    wanted: Vec<u32>,
    rng: ChaCha8Rng,
}

impl Sampler {
    /// Starts from the seed; only wanted tokens are sampled.
    pub fn new(sampling: Sampling, wanted: Vec<bool>) -> Self {
        let wanted = (0..).zip(wanted).filter(|(_, is_wanted)| *is_wanted);
        Self {
            wanted: wanted.map(|(token, _)| token).collect(),
            rng: ChaCha8Rng::seed_from_u64(sampling.seed),
            sampling,
        }
    }

    /// The next token, given the logarithms of probabilities up to a constant. `None` if a score is NaN, or no token is
    /// wanted.
    ///
    /// Top-p is nucleus sampling (Holtzman et al., 2020), applied after top-k.
    pub fn next(&mut self, scores: &[f32]) -> Option<usize> {
        if scores.iter().any(|score| score.is_nan()) {
            return None;
        }
        let known = self.wanted.iter().map(|token| *token as usize);
        let mut known = known.filter(|token| *token < scores.len());
        let Sampling {
            temperature,
            top_k,
            top_p,
            ..
        } = self.sampling;
        if temperature <= 0.0 {
            // Ties go to the first.
            let first = known.next()?;
            let larger = |best: usize, at: usize| {
                if scores[at].total_cmp(&scores[best]).is_gt() {
                    at
                } else {
                    best
                }
            };
            return Some(known.fold(first, larger));
        }
        let mut ranked = Ranked::new(scores, known.collect());
        ranked.truncate(top_k.unwrap_or(usize::MAX).max(1));
        let most = f64::from(scores[ranked.get(0)?]);
        let weight = |at: usize| ((f64::from(scores[at]) - most) / temperature).exp();
        let mut total: f64 = ranked.all().iter().map(|at| weight(*at)).sum();
        if let Some(share) = top_p {
            let (num, sum) = ranked.until(weight, |sum| sum >= share * total);
            ranked.truncate(num);
            total = sum;
        }
        // 53 random bits: a number from 0 to 1.
        let drawn = (self.rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * total;
        let (num, _) = ranked.until(weight, |sum| drawn < sum);
        ranked.get(num - 1)
    }
}

/// Tokens from the largest score to the smallest. Only as many as are asked for are sorted: a vocabulary is large, and
/// samples are usually among the first.
struct Ranked<'a> {
    scores: &'a [f32],
    tokens: Vec<usize>,
    num_sorted: usize,
}

impl<'a> Ranked<'a> {
    fn new(scores: &'a [f32], tokens: Vec<usize>) -> Self {
        Self {
            scores,
            tokens,
            num_sorted: 0,
        }
    }

    /// All tokens, the first of them in order.
    fn all(&self) -> &[usize] {
        &self.tokens
    }

    /// Leaves only the first ones.
    fn truncate(&mut self, num: usize) {
        if num < self.tokens.len() {
            self.sort(num);
            self.tokens.truncate(num);
            self.num_sorted = num;
        }
    }

    /// Sorts at least so many.
    fn sort(&mut self, num: usize) {
        let num = num.min(self.tokens.len());
        if num <= self.num_sorted {
            return;
        }
        let scores = self.scores;
        // Ties go to the first.
        let order = |a: &usize, b: &usize| scores[*b].total_cmp(&scores[*a]).then(a.cmp(b));
        let rest = &mut self.tokens[self.num_sorted..];
        let more = num - self.num_sorted;
        if more < rest.len() {
            rest.select_nth_unstable_by(more - 1, order);
        }
        rest[..more].sort_unstable_by(order);
        self.num_sorted = num;
    }

    /// The token with the `at`-th largest score.
    fn get(&mut self, at: usize) -> Option<usize> {
        self.sort(at + 1);
        self.tokens.get(at).copied()
    }

    /// How many tokens there are until the sum of their weights is enough, and that sum; all if it never is.
    fn until(
        &mut self,
        weight: impl Fn(usize) -> f64,
        is_enough: impl Fn(f64) -> bool,
    ) -> (usize, f64) {
        let mut sum = 0.0;
        for at in 0..self.tokens.len() {
            if at == self.num_sorted {
                self.sort((4 * at).max(64));
            }
            sum += weight(self.tokens[at]);
            if is_enough(sum) {
                return (at + 1, sum);
            }
        }
        (self.tokens.len(), sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCORES: [f32; 6] = [9.0, 9.0, 1.0, 3.0, 2.0, -50.0];

    fn drawn(sampling: Sampling, num: usize) -> Vec<usize> {
        let wanted = (0..6).map(|token| token > 1);
        let mut sampler = Sampler::new(sampling, wanted.collect());
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
        let mut sampler = Sampler::new(base, vec![false, false, true]);
        assert_eq!(sampler.next(&[0.0, 0.0, f32::NAN]), None);
        assert_eq!(sampler.next(&[0.0, 0.0]), None);
    }

    /// Sorting everything, and adding up from the first on.
    #[test]
    fn samples_of_a_large_vocabulary_are_those_of_sorted_scores() {
        let num = 5_000;
        let scores: Vec<f32> = (0..num)
            .map(|at| ((at * 7919 % num) as f32 * 0.01).sin() * 3.0)
            .collect();
        for (top_k, top_p, temperature) in [
            (None, None, 1.0),
            (Some(300), None, 2.0),
            (None, Some(0.7), 0.7),
            (Some(1000), Some(0.9), 1.5),
        ] {
            let sampling = Sampling {
                temperature,
                top_k,
                top_p,
                seed: 5,
            };
            let mut sampler = Sampler::new(sampling, vec![true; num]);
            let mut rng = ChaCha8Rng::seed_from_u64(5);
            let mut order: Vec<usize> = (0..num).collect();
            order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
            order.truncate(top_k.unwrap_or(num));
            let weight = |at: usize| (f64::from(scores[at] - scores[order[0]]) / temperature).exp();
            let mut sum = 0.0;
            let sums = order.iter().map(|at| {
                sum += weight(*at);
                sum
            });
            let sums: Vec<f64> = sums.collect();
            let least = top_p.unwrap_or(1.0) * sums[sums.len() - 1];
            let last = sums.iter().position(|sum| *sum >= least).unwrap();
            for _ in 0..200 {
                let drawn = (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
                let drawn = drawn * sums[last];
                let place = sums[..=last].iter().position(|sum| drawn < *sum);
                let expected = order[place.unwrap_or(last)];
                assert_eq!(sampler.next(&scores), Some(expected));
            }
        }
    }
}
