//! Keys and values of the tokens of a text so far, and the attention of the next token to them.

use rayon::prelude::*;

use super::softmax::{Form, apply};
use super::thin::{MOST_ROWS, Thin};

/// Keys and values by head and token, in memory that grows ahead of them.
#[derive(Clone, Debug)]
pub struct Past {
    heads: usize,
    width: usize,
    num: usize,
    /// Tokens of each head that there is memory for.
    capacity: usize,
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Past {
    /// No tokens, of so many heads of so many numbers.
    pub fn new(heads: usize, width: usize) -> Self {
        Self {
            heads,
            width,
            num: 0,
            capacity: 0,
            keys: Vec::new(),
            values: Vec::new(),
        }
    }

    /// The number of tokens.
    pub fn num(&self) -> usize {
        self.num
    }

    /// Adds tokens: their keys and values, \[heads, tokens, width\].
    ///
    /// # Panics
    /// If there are not as many keys as values, or not the same number for each head.
    pub fn push(&mut self, keys: &[f32], values: &[f32]) {
        assert_eq!(keys.len(), values.len());
        let of_head = keys.len() / self.heads;
        assert!(of_head * self.heads == keys.len() && of_head.is_multiple_of(self.width));
        let after = self.num + of_head / self.width;
        if after > self.capacity {
            let capacity = after.next_power_of_two().max(64);
            for all in [&mut self.keys, &mut self.values] {
                let mut larger = vec![0.0; self.heads * capacity * self.width];
                let (len, step) = (self.num * self.width, capacity * self.width);
                for head in 0..self.heads {
                    let from = head * self.capacity * self.width;
                    larger[head * step..][..len].copy_from_slice(&all[from..][..len]);
                }
                *all = larger;
            }
            self.capacity = capacity;
        }
        for (all, new) in [(&mut self.keys, keys), (&mut self.values, values)] {
            for (head, new) in new.chunks_exact(of_head.max(1)).enumerate() {
                let first = (head * self.capacity + self.num) * self.width;
                all[first..][..of_head].copy_from_slice(new);
            }
        }
        self.num = after;
    }

    /// Keys and values of all tokens, \[heads, tokens, width\].
    pub fn all(&self) -> [Vec<f32>; 2] {
        [&self.keys, &self.values].map(|all| {
            let heads = (0..self.heads).flat_map(|head| self.head(all, head));
            heads.copied().collect()
        })
    }

    fn head<'a>(&self, all: &'a [f32], head: usize) -> &'a [f32] {
        &all[head * self.capacity * self.width..][..self.num * self.width]
    }

    /// What the last token attends to: the weighted values of each head of its queries, \[query heads, width\]. Heads of
    /// queries that share one of keys follow each other. `change` gets the index of each head of queries and its scores.
    ///
    /// # Panics
    /// If there are no tokens, or heads cannot be shared.
    pub fn attend(&self, queries: &[f32], change: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
        /// Numbers of keys that are worth another thread.
        const PARALLEL: usize = 1 << 16;
        let (num, width) = (self.num, self.width);
        let of_head = queries.len() / self.heads;
        let shared = of_head / width;
        assert!(num > 0 && queries.len() == self.heads * shared * width);
        let scale = 1.0 / (width as f32).sqrt();
        let mut context = vec![0.0; queries.len()];
        let head = |(head, (queries, context)): (usize, (&[f32], &mut [f32]))| {
            let product = |rows, inputs, outputs, is_turned| Thin {
                rows,
                inputs,
                outputs,
                is_turned,
            };
            let most = MOST_ROWS * width;
            let groups = queries.chunks(most).zip(context.chunks_mut(most));
            for (group, (queries, context)) in groups.enumerate() {
                let rows = queries.len() / width;
                let keys = self.head(&self.keys, head);
                let mut scores = product(rows, width, num, true).forward(queries, keys, None);
                for (row, scores) in scores.chunks_exact_mut(num).enumerate() {
                    scores.iter_mut().for_each(|score| *score *= scale);
                    change(head * shared + group * MOST_ROWS + row, scores);
                }
                apply(Form::Softmax, &mut scores, num);
                let values = self.head(&self.values, head);
                let found = product(rows, num, width, false).forward(&scores, values, None);
                context.copy_from_slice(&found);
            }
        };
        let heads = queries.chunks(of_head).zip(context.chunks_mut(of_head));
        if num * width * self.heads < PARALLEL {
            heads.enumerate().for_each(head);
        } else {
            let heads: Vec<_> = heads.enumerate().collect();
            heads.into_par_iter().for_each(head);
        }
        context
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::numbers;

    #[test]
    fn the_last_token_attends_to_all_tokens() {
        for [heads, shared, width, num] in [
            [1, 1, 1, 1],
            [3, 3, 8, 70],
            [2, 20, 5, 200],
            [4, 1, 64, 600],
        ] {
            let mut past = Past::new(heads, width);
            let (keys, values) = (
                numbers(heads * num * width, 1),
                numbers(heads * num * width, 2),
            );
            // All but one at first, then one by one.
            let part = |all: &[f32], from: usize, to: usize| -> Vec<f32> {
                let heads = all.chunks(num * width);
                let heads = heads.flat_map(|head| &head[from * width..to * width]);
                heads.copied().collect()
            };
            let first = num / 3;
            if first > 0 {
                past.push(&part(&keys, 0, first), &part(&values, 0, first));
            }
            for at in first..num {
                past.push(&part(&keys, at, at + 1), &part(&values, at, at + 1));
            }
            assert_eq!(past.num(), num);
            assert_eq!(past.all(), [keys.clone(), values.clone()]);
            let queries = numbers(heads * shared * width, 3);
            let shift = |head: usize, at: usize| (head + at) as f32 * 0.01;
            let found = past.attend(&queries, |head, scores| {
                for (at, score) in scores.iter_mut().enumerate() {
                    *score += shift(head, at);
                }
            });
            for (head, query) in queries.chunks(width).enumerate() {
                let of = |all: &[f32], at: usize, column: usize| {
                    f64::from(all[(head / shared * num + at) * width + column])
                };
                let score = |at: usize| {
                    let dot =
                        (0..width).map(|column| f64::from(query[column]) * of(&keys, at, column));
                    dot.sum::<f64>() / (width as f64).sqrt() + f64::from(shift(head, at))
                };
                let weights: Vec<f64> = (0..num).map(|at| score(at).exp()).collect();
                let total: f64 = weights.iter().sum();
                for column in 0..width {
                    let each = weights.iter().enumerate();
                    let sum: f64 = each
                        .map(|(at, weight)| weight * of(&values, at, column))
                        .sum();
                    let found = f64::from(found[head * width + column]);
                    assert!(
                        (found - sum / total).abs() < 1e-5,
                        "{found} for {}",
                        sum / total
                    );
                }
            }
        }
    }
}
