//! Scaled dot-product attention that never stores the whole matrix of scores.
//!
//! A thread processes one head of one item, and some queries at a time: their scores, the softmax and its products with
//! the values stay in its caches. The backward pass recomputes the scores from queries, keys and the logarithm of each
//! row's sum of exponentials (Dao et al., 2022, after Rabe and Staats, 2021). Under a causal mask, keys after the last
//! query of a block are skipped; those within the block have weights of 0, so that infinity or NaN in them affects the
//! queries of the same block.

#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::arithmetic::Arithmetic;
use super::functions::ln;
use super::product::{Matrix, product};
use super::reduce::{dot, largest, sum};
use super::scratch::{self, Shared, written};
use super::softmax::{exponentials, finite_or_zero};
use super::vectors::vectorized;

/// Queries per block: few enough for products that do not copy their operands.
const QUERIES: usize = 32;

/// The sizes of queries \[items, queries, heads * width\], and of keys and values \[items, keys, heads * width\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attention {
    /// Items of the batch.
    pub items: usize,
    /// Independent heads.
    pub heads: usize,
    /// Query positions.
    pub queries: usize,
    /// Key positions.
    pub keys: usize,
    /// The size of a head.
    pub width: usize,
    /// Whether positions do not attend to later ones.
    pub is_causal: bool,
    /// How products and sums are rounded.
    pub arithmetic: Arithmetic,
}

/// The positions that attend to each other, if not all do.
#[derive(Clone, Copy, Debug, Default)]
pub struct Visible<'a> {
    /// \[items, keys\]: 0 for a key that gets no weight.
    pub keys: Option<&'a [u32]>,
    /// \[items, positions\]: the number of the document of each position, if positions attend only to those of their
    /// own. Positions of a document follow each other, and queries and keys are the same positions.
    pub documents: Option<&'a [u32]>,
}

/// Positions of an item that attend only to each other.
struct Span {
    first: usize,
    queries: usize,
    keys: usize,
}

impl<'a> Visible<'a> {
    fn check(&self, sizes: &Attention) {
        let (keys, queries) = (sizes.items * sizes.keys, sizes.items * sizes.queries);
        assert!(self.keys.is_none_or(|all| all.len() == keys));
        let is_own = |all: &[u32]| all.len() == queries && sizes.queries == sizes.keys;
        assert!(self.documents.is_none_or(is_own));
    }

    /// The documents of an item; all of it without any.
    fn spans(&self, sizes: &Attention, item: usize) -> Vec<Span> {
        let Some(all) = self.documents else {
            return vec![Span {
                first: 0,
                queries: sizes.queries,
                keys: sizes.keys,
            }];
        };
        let mut first = 0;
        let of_item = &all[item * sizes.keys..][..sizes.keys];
        let spans = of_item.chunk_by(|one, next| one == next).map(|span| {
            let num = span.len();
            first += num;
            Span {
                first: first - num,
                queries: num,
                keys: num,
            }
        });
        spans.collect()
    }

    /// The mask of the keys of a span.
    fn of(&self, sizes: &Attention, item: usize, span: &Span) -> Option<&'a [u32]> {
        let first = item * sizes.keys + span.first;
        self.keys.map(|all| &all[first..][..span.keys])
    }
}

/// One past the last key that any query may attend to.
fn reach(sizes: &Attention, mask: Option<&[u32]>) -> usize {
    let last = mask.map(|keys| keys.iter().rposition(|key| *key != 0));
    // Products have at least one term.
    last.map_or(sizes.keys, |last| last.map_or(1, |last| last + 1))
}

/// Sets the values of a row of scores for keys that get no weight.
#[inline(always)]
fn hide(mask: Option<&[u32]>, row: &mut [f32], value: f32) {
    if let Some(keys) = mask {
        (row.iter_mut().zip(keys))
            .for_each(|(score, key)| *score = if *key == 0 { value } else { *score });
    }
}

impl Attention {
    /// Numbers per position.
    fn columns(&self) -> usize {
        self.heads * self.width
    }

    /// The number of keys that the queries before `past` attend to.
    fn limit(&self, past: usize) -> usize {
        if self.is_causal {
            past.min(self.keys)
        } else {
            self.keys
        }
    }

    fn scale(&self) -> f32 {
        1.0 / (self.width as f32).sqrt()
    }

    fn check(&self, q: &[f32], k: &[f32], v: &[f32]) {
        assert!(self.width > 0 && self.keys > 0, "attention over nothing");
        assert_eq!(q.len(), self.items * self.queries * self.columns());
        assert_eq!(k.len(), self.items * self.keys * self.columns());
        assert_eq!(v.len(), k.len());
    }

    /// The index of the first number of a head at a position, with `positions` per item.
    fn place(&self, item: usize, positions: usize, at: usize, head: usize) -> usize {
        (item * positions + at) * self.columns() + head * self.width
    }

    /// The sizes of a head of a span, and where its queries and its keys begin.
    fn part(&self, item: usize, span: &Span, head: usize) -> (Self, usize, usize) {
        let sizes = Self {
            items: 1,
            queries: span.queries,
            keys: span.keys,
            ..*self
        };
        let queries = self.place(item, self.queries, span.first, head);
        (
            sizes,
            queries,
            self.place(item, self.keys, span.first, head),
        )
    }
}

/// The output of attention, \[items, queries, heads * width\], and the logarithm of each row's sum of exponentials,
/// \[items, heads, queries\]. A query that attends to no key has an output of 0.
///
/// # Panics
/// If lengths do not match the sizes, or there are no keys.
pub fn forward(
    sizes: &Attention,
    visible: Visible<'_>,
    q: &[f32],
    k: &[f32],
    v: &[f32],
) -> (Vec<f32>, Vec<f32>) {
    sizes.check(q, k, v);
    visible.check(sizes);
    let Attention {
        items,
        heads,
        queries,
        ..
    } = *sizes;
    let mut sums = vec![0.0; items * heads * queries];
    let write = |to: Shared| {
        let tasks = sums.par_chunks_mut(queries.max(1)).enumerate();
        tasks.for_each(|(task, sums)| {
            let (item, head) = (task / heads, task % heads);
            for span in visible.spans(sizes, item) {
                let (part, at, at_keys) = sizes.part(item, &span, head);
                let mask = visible.of(sizes, item, &span);
                let sums = &mut sums[span.first..][..span.queries];
                let operands = [&q[at..], &k[at_keys..], &v[at_keys..]];
                // SAFETY: only this task writes this head of this item.
                unsafe { head_forward(&part, mask, operands, sums, (to, at)) };
            }
        });
    };
    // SAFETY: the tasks cover all positions of all heads of all items.
    let output = unsafe { written(q.len(), write) };
    (output, sums)
}

/// The output of a head of an item, or of a document in it: operands and output begin with it.
///
/// # Safety
/// Nothing else accesses this part of the output in the meantime.
unsafe fn head_forward(
    sizes: &Attention,
    mask: Option<&[u32]>,
    [q, k, v]: [&[f32]; 3],
    sums: &mut [f32],
    (to, start): (Shared, usize),
) {
    let Attention {
        queries,
        keys,
        width,
        ..
    } = *sizes;
    let columns = sizes.columns();
    scratch::with((width + QUERIES) * keys, |scratch| {
        let (turned, scores) = scratch.split_at_mut(width * keys);
        turn(sizes, k, sizes.scale(), turned);
        let reach = reach(sizes, mask);
        for first in (0..queries).step_by(QUERIES) {
            let num = QUERIES.min(queries - first);
            let limit = sizes.limit(first + num).min(reach);
            let at = first * columns;
            score(sizes, turned, &q[at..], num, limit, scores);
            soften(
                sizes,
                mask,
                first,
                &mut scores[..num * limit],
                &mut sums[first..first + num],
            );
            let lhs = Matrix {
                values: v,
                row: 1,
                column: columns,
            };
            let rhs = Matrix {
                values: scores,
                row: 1,
                column: limit,
            };
            // SAFETY: the memory belongs to this part.
            unsafe {
                product(
                    sizes.arithmetic,
                    [width, num, limit],
                    to.at(start + at),
                    columns,
                    false,
                    lhs,
                    rhs,
                )
            };
        }
    });
}

/// A head's keys or values transposed, times `scale`.
fn turn(sizes: &Attention, values: &[f32], scale: f32, to: &mut [f32]) {
    for at in 0..sizes.keys {
        let values = &values[at * sizes.columns()..][..sizes.width];
        for (column, value) in values.iter().enumerate() {
            to[column * sizes.keys + at] = value * scale;
        }
    }
}

/// Products of `num` queries (or gradients) with the first `limit` keys, \[num, limit\].
fn score(sizes: &Attention, turned: &[f32], q: &[f32], num: usize, limit: usize, to: &mut [f32]) {
    let lhs = Matrix {
        values: turned,
        row: 1,
        column: sizes.keys,
    };
    let rhs = Matrix {
        values: q,
        row: 1,
        column: sizes.columns(),
    };
    let to = Shared::of(&mut to[..num * limit]).at(0);
    // SAFETY: the scores are this task's.
    unsafe {
        product(
            sizes.arithmetic,
            [limit, num, sizes.width],
            to,
            limit,
            false,
            lhs,
            rhs,
        )
    };
}

vectorized! {
    fn soften = soften_now(sizes: &Attention, mask: Option<&[u32]>, first: usize, scores: &mut [f32], sums: &mut [f32]);
}

/// The softmax of rows of scores; masked weights become 0.
#[inline(always)]
fn soften_now(
    sizes: &Attention,
    mask: Option<&[u32]>,
    first: usize,
    scores: &mut [f32],
    sums: &mut [f32],
) {
    let limit = scores.len() / sums.len();
    for (query, sums) in sums.iter_mut().enumerate() {
        let seen = if sizes.is_causal {
            (first + query + 1).min(limit)
        } else {
            limit
        };
        let (row, hidden) = scores[query * limit..][..limit].split_at_mut(seen);
        hide(mask, row, f32::NEG_INFINITY);
        let most = finite_or_zero(largest(row));
        exponentials(row, most);
        hide(mask, row, 0.0);
        hidden.fill(0.0);
        let total = sum(row);
        if total == 0.0 && mask.is_some() {
            *sums = 0.0;
            continue;
        }
        let inverse = 1.0 / total;
        row.iter_mut().for_each(|x| *x *= inverse);
        *sums = most + ln(total);
    }
}

/// The gradients of queries, keys and values.
///
/// # Panics
/// As [`forward`], or if the numbers of gradients or sums do not match.
pub fn backward(
    sizes: &Attention,
    visible: Visible<'_>,
    q: &[f32],
    k: &[f32],
    v: &[f32],
    sums: &[f32],
    gradient: &[f32],
) -> [Vec<f32>; 3] {
    sizes.check(q, k, v);
    visible.check(sizes);
    let Attention {
        items,
        heads,
        queries,
        ..
    } = *sizes;
    assert!(gradient.len() == q.len() && sums.len() == items * heads * queries);
    let (mut of_k, mut of_v) = (Vec::new(), Vec::new());
    let write = |of_q: Shared| {
        let write = |to_k: Shared| {
            let write = |to_v: Shared| {
                (0..items * heads).into_par_iter().for_each(|task| {
                    let (item, head) = (task / heads, task % heads);
                    let sums = &sums[task * queries..][..queries];
                    for span in visible.spans(sizes, item) {
                        let (part, at, at_keys) = sizes.part(item, &span, head);
                        let mask = visible.of(sizes, item, &span);
                        let sums = &sums[span.first..][..span.queries];
                        // There may be no queries.
                        let [q, gradient] = [q, gradient].map(|all| all.get(at..).unwrap_or(&[]));
                        let operands = [q, &k[at_keys..], &v[at_keys..], gradient];
                        let to = [(of_q, at), (to_k, at_keys), (to_v, at_keys)];
                        // SAFETY: only this task writes this head of this item.
                        unsafe { head_back(&part, mask, operands, sums, to) };
                    }
                });
            };
            // SAFETY: the tasks cover all positions of all heads of all items.
            of_v = unsafe { written(v.len(), write) };
        };
        // SAFETY: as above.
        of_k = unsafe { written(k.len(), write) };
    };
    // SAFETY: as above.
    let of_q = unsafe { written(q.len(), write) };
    [of_q, of_k, of_v]
}

/// The gradients of a head of an item, or of a document in it: operands and gradients begin with it.
///
/// # Safety
/// Nothing else accesses this part in the meantime.
unsafe fn head_back(
    sizes: &Attention,
    mask: Option<&[u32]>,
    [q, k, v, gradient]: [&[f32]; 4],
    sums: &[f32],
    [(of_q, at_queries), (of_k, at_keys), (of_v, _)]: [(Shared, usize); 3],
) {
    let Attention {
        queries,
        keys,
        width,
        ..
    } = *sizes;
    let columns = sizes.columns();
    for at in 0..keys {
        for to in [of_k, of_v] {
            // SAFETY: the memory belongs to this part.
            unsafe { to.filled(at_keys + at * columns, width, 0.0) };
        }
    }
    scratch::with(2 * (width + QUERIES) * keys, |scratch| {
        let (turned_k, rest) = scratch.split_at_mut(width * keys);
        let (turned_v, rest) = rest.split_at_mut(width * keys);
        let (weights, scores) = rest.split_at_mut(QUERIES * keys);
        turn(sizes, k, sizes.scale(), turned_k);
        turn(sizes, v, 1.0, turned_v);
        let reach = reach(sizes, mask);
        for first in (0..queries).step_by(QUERIES) {
            let num = QUERIES.min(queries - first);
            let limit = sizes.limit(first + num).min(reach);
            let at = first * columns;
            score(sizes, turned_k, &q[at..], num, limit, weights);
            score(sizes, turned_v, &gradient[at..], num, limit, scores);
            let (weights, scores) = (&mut weights[..num * limit], &mut scores[..num * limit]);
            let sums = &sums[first..first + num];
            soften_back(sizes, mask, first, weights, scores, sums);
            let by_query = Matrix {
                values: &*scores,
                row: 1,
                column: limit,
            };
            let by_key = [&*scores, &*weights].map(|values| Matrix {
                values,
                row: limit,
                column: 1,
            });
            let [k, q, gradient] = [k, &q[at..], &gradient[at..]].map(|values| Matrix {
                values,
                row: 1,
                column: columns,
            });
            let (to_k, to_v) = (of_k.at(at_keys), of_v.at(at_keys));
            // SAFETY: the memory belongs to this part, and that of keys and values is initialized.
            unsafe {
                product(
                    sizes.arithmetic,
                    [width, num, limit],
                    of_q.at(at_queries + at),
                    columns,
                    false,
                    k,
                    by_query,
                );
                product(
                    sizes.arithmetic,
                    [width, limit, num],
                    to_k,
                    columns,
                    true,
                    q,
                    by_key[0],
                );
                product(
                    sizes.arithmetic,
                    [width, limit, num],
                    to_v,
                    columns,
                    true,
                    gradient,
                    by_key[1],
                );
            }
        }
    });
}

vectorized! {
    fn soften_back = soften_back_now(sizes: &Attention, mask: Option<&[u32]>, first: usize, weights: &mut [f32], scores: &mut [f32], sums: &[f32]);
}

/// Recomputes the weights from scores and, from the gradients of weights, those of the scores, in `scores`.
#[inline(always)]
fn soften_back_now(
    sizes: &Attention,
    mask: Option<&[u32]>,
    first: usize,
    weights: &mut [f32],
    scores: &mut [f32],
    sums: &[f32],
) {
    let limit = scores.len() / sums.len();
    let scale = sizes.scale();
    for (query, from) in sums.iter().enumerate() {
        let seen = if sizes.is_causal {
            (first + query + 1).min(limit)
        } else {
            limit
        };
        let (weights, unseen) = weights[query * limit..][..limit].split_at_mut(seen);
        let (scores, hidden) = scores[query * limit..][..limit].split_at_mut(seen);
        exponentials(weights, *from);
        hide(mask, weights, 0.0);
        let along = dot(weights, scores);
        for (score, weight) in scores.iter_mut().zip(weights) {
            *score = *weight * (*score - along) * scale;
        }
        unseen.fill(0.0);
        hidden.fill(0.0);
    }
}
