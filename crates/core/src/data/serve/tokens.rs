//! Tokens of running text, in memory or in a mapped file.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::data::records::Records;

/// Tokens in their order. Those that are not to be predicted are complemented (`!token`), so they are negative.
#[derive(Clone, Debug)]
pub enum Tokens {
    /// In memory.
    Memory(Arc<[i32]>),
    /// Some of a file with a token as each record.
    Stored(Arc<Records>, Range<usize>),
}

impl Tokens {
    /// Their number.
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(tokens) => tokens.len(),
            Self::Stored(_, range) => range.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Some of them.
    pub fn part(&self, part: Range<usize>) -> Cow<'_, [i32]> {
        match self {
            Self::Memory(tokens) => Cow::Borrowed(&tokens[part]),
            Self::Stored(records, range) => {
                let part = range.start + part.start..range.start + part.end;
                let bytes = records.record(part).chunks_exact(size_of::<i32>());
                let token = |bytes: &[u8]| bytes.try_into().map_or(0, i32::from_le_bytes);
                Cow::Owned(bytes.map(token).collect())
            }
        }
    }

    /// Includes all of them in a digest, as little-endian bytes.
    pub(super) fn add_to(&self, hasher: &mut Sha256) {
        match self {
            Self::Memory(tokens) => {
                for tokens in tokens.chunks(1 << 12) {
                    hasher.update(little_endian(tokens));
                }
            }
            Self::Stored(records, range) => hasher.update(records.record(range.clone())),
        }
    }
}

/// Tokens as bytes.
pub(in crate::data) fn little_endian(tokens: &[i32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(tokens));
    for token in tokens {
        bytes.extend_from_slice(&token.to_le_bytes());
    }
    bytes
}

impl From<Vec<i32>> for Tokens {
    fn from(tokens: Vec<i32>) -> Self {
        Self::Memory(tokens.into())
    }
}
