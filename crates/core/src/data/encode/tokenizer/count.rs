//! How often tokens occur in texts.

use std::collections::BTreeMap;

use rayon::prelude::*;

use super::cut::{lower, pieces, words};
use super::table::CharTable;
use crate::spec::data::{TokenizerKind, TokensSpec};

/// Token counts.
pub(super) enum Counts {
    Chars(CharTable<u64>),
    Words(BTreeMap<String, u64>),
}

impl Counts {
    fn new(kind: TokenizerKind) -> Self {
        match kind {
            TokenizerKind::Word => Counts::Words(BTreeMap::new()),
            _ => Counts::Chars(CharTable::new(0)),
        }
    }

    fn add(&mut self, text: &str) {
        match self {
            Counts::Chars(counts) => text.chars().for_each(|c| *counts.get_mut(c) += 1),
            Counts::Words(counts) => words(text).for_each(|word| match counts.get_mut(word) {
                Some(num) => *num += 1,
                None => {
                    counts.insert(word.to_owned(), 1);
                }
            }),
        }
    }

    /// Sums, so that it does not matter which thread counted what.
    fn merge(mut self, other: Self) -> Self {
        match (&mut self, other) {
            (Counts::Chars(all), Counts::Chars(more)) => {
                more.each(|c, num| *all.get_mut(c) += num);
            }
            (Counts::Words(all), Counts::Words(more)) => {
                for (word, num) in more {
                    *all.entry(word).or_insert(0) += num;
                }
            }
            _ => {}
        }
        self
    }

    /// In the text order of the tokens.
    pub(super) fn into_sorted(self) -> Vec<(String, u64)> {
        match self {
            Counts::Words(counts) => counts.into_iter().collect(),
            Counts::Chars(counts) => {
                let mut sorted = Vec::new();
                counts.each(|c, num| sorted.push((c.to_string(), num)));
                sorted.retain(|(_, num)| *num > 0);
                sorted
            }
        }
    }
}

/// How often each token occurs in texts.
pub(super) fn count<'a>(spec: &TokensSpec, texts: impl Iterator<Item = &'a str>) -> Counts {
    let kind = spec.tokenizer;
    let pieces: Vec<&str> = texts.flat_map(|text| pieces(kind, text)).collect();
    let share = pieces.len() / (8 * rayon::current_num_threads());
    pieces
        .par_iter()
        .with_min_len(share.max(1))
        .fold(
            || Counts::new(kind),
            |mut counts, piece| {
                counts.add(&lower(piece, spec.lowercase));
                counts
            },
        )
        .reduce(|| Counts::new(kind), Counts::merge)
}
