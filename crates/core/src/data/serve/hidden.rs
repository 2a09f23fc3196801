//! Hidden tokens, which a network predicts from the others (Devlin et al., 2019).

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use crate::data::encode::tokenizer::Tokenizer;

/// The target of a token that is not hidden, which no loss and no metric counts.
const NOT_HIDDEN: i32 = -1;
/// Of the hidden tokens, this fraction become the mask token.
const MASKED: f64 = 0.8;
/// And this fraction a random token. The others stay, so that the network cannot trust any token.
const RANDOM: f64 = 0.1;

/// Hides a share of the tokens of an item, at least one, as a function of the seed. Padding and special tokens are never
/// hidden. Returns the target of each token.
pub(super) fn hide(tokenizer: &Tokenizer, share: f64, seed: u64, tokens: &mut [i32]) -> Vec<i32> {
    let mut targets = vec![NOT_HIDDEN; tokens.len()];
    let ordinary = tokenizer.ordinary();
    let Some(mask) = tokenizer.mask() else {
        return targets;
    };
    let is_ordinary = |at: &usize| ordinary.binary_search(&tokens[*at]).is_ok();
    let mut places: Vec<usize> = (0..tokens.len()).filter(is_ordinary).collect();
    let num = (places.len() as f64 * share).round().max(1.0) as usize;
    let num = num.min(places.len());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    // 32 bits, so that each processor draws the same numbers.
    let mut below = |num: usize| rng.random_range(0..num as u32) as usize;
    for chosen in 0..num {
        let other = chosen + below(places.len() - chosen);
        places.swap(chosen, other);
        let at = places[chosen];
        targets[at] = tokens[at];
        let kind = below(PARTS) as f64 / PARTS as f64;
        if kind < MASKED {
            tokens[at] = mask;
        } else if kind < MASKED + RANDOM {
            tokens[at] = ordinary[below(ordinary.len())];
        }
    }
    targets
}

/// Parts of 1 that are drawn.
const PARTS: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::data::{TokenizerKind, TokensSpec};

    fn tokenizer() -> Tokenizer {
        let spec = TokensSpec {
            tokenizer: TokenizerKind::Wordpiece,
            max_vocabulary: 200,
            ..TokensSpec::default()
        };
        let texts = ["the ship leaves the harbour at dawn and comes back at night"; 4];
        Tokenizer::build(&spec, texts.into_iter()).unwrap()
    }

    #[test]
    fn a_share_is_hidden_of_which_most_are_masked() {
        let tokenizer = tokenizer();
        let (mask, padding) = (tokenizer.mask().unwrap(), tokenizer.padding());
        let ordinary = tokenizer.ordinary().to_vec();
        assert_eq!(ordinary.first(), Some(&5), "special tokens come first");
        let (mut masked, mut kept, mut other) = (0, 0, 0);
        for seed in 0..500 {
            let before: Vec<i32> = (0..40)
                .map(|at| match at {
                    0 => 2,
                    1..=30 => ordinary[at % ordinary.len()],
                    31 => 3,
                    _ => padding,
                })
                .collect();
            let mut tokens = before.clone();
            let targets = hide(&tokenizer, 0.2, seed, &mut tokens);
            for (at, target) in targets.iter().enumerate() {
                if *target < 0 {
                    assert_eq!(tokens[at], before[at]);
                    continue;
                }
                assert!((1..=30).contains(&at));
                assert_eq!(*target, before[at]);
                match tokens[at] {
                    token if token == mask => masked += 1,
                    token if token == before[at] => kept += 1,
                    token => {
                        assert!(ordinary.contains(&token));
                        other += 1;
                    }
                }
            }
            assert_eq!(targets.iter().filter(|target| **target >= 0).count(), 6);
            let mut again = before;
            assert_eq!(hide(&tokenizer, 0.2, seed, &mut again), targets);
            assert_eq!(again, tokens);
        }
        // Of 3000, four standard deviations around 2400. A random token can be the same one.
        assert!((2312..=2488).contains(&masked), "{masked}");
        assert!(kept > 230 && other > 200, "{kept} kept, {other} random");
    }

    #[test]
    fn at_least_one_token_is_hidden_where_there_is_any() {
        let tokenizer = tokenizer();
        let one = tokenizer.ordinary()[0];
        let mut tokens = [2, one, 3, 0];
        assert_eq!(hide(&tokenizer, 0.01, 1, &mut tokens), [-1, one, -1, -1]);
        let mut special = [2, 3, 0];
        assert_eq!(hide(&tokenizer, 0.9, 1, &mut special), [-1; 3]);
        assert_eq!(special, [2, 3, 0]);
    }
}
