//! Text as tokens, with a vocabulary built on the train split.
//!
//! Tokenizers:
//! - `byte`: a byte of UTF-8. Byte b is token b + 2 for any text: nothing is unknown.
//! - `char`: a character.
//! - `word`: a sequence of letters and digits, including apostrophes inside it (`don't`), or any other single character
//!   except whitespace. A line break is a token too, because it is meaningful in verse, dialogue and lists; other
//!   whitespace only separates.
//!
//! Large texts are cut between tokens, so that the cores share the work; the tokens are the same as without cuts.

mod count;
mod cut;
mod table;

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::spec::data::{TokenizerKind, TokensSpec};
use count::count;
pub use cut::pieces;
use cut::{lower, words};
use table::CharTable;

/// The padding token.
pub const PADDING: i32 = 0;
/// The token for anything that is not in the train split.
pub const UNKNOWN: i32 = 1;
/// The first token with a meaning.
const FIRST: i32 = 2;

/// A vocabulary that was built on the train split.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Saved", into = "Saved")]
pub struct Tokenizer {
    /// The kind of tokens.
    pub spec: TokensSpec,
    /// The tokens from [`UNKNOWN`] + 1 on, the most frequent first; equally frequent ones in text order. Empty for
    /// bytes, which need no list.
    pub tokens: Vec<String>,
    lookup: Lookup,
}

/// The saved part of a tokenizer; the lookup is derived from it.
#[derive(Serialize, Deserialize)]
struct Saved {
    spec: TokensSpec,
    tokens: Vec<String>,
}

impl From<Saved> for Tokenizer {
    fn from(Saved { spec, tokens }: Saved) -> Self {
        Self {
            lookup: Lookup::new(spec.tokenizer, &tokens),
            spec,
            tokens,
        }
    }
}

impl From<Tokenizer> for Saved {
    fn from(Tokenizer { spec, tokens, .. }: Tokenizer) -> Self {
        Self { spec, tokens }
    }
}

impl PartialEq for Tokenizer {
    fn eq(&self, other: &Self) -> bool {
        (&self.spec, &self.tokens) == (&other.spec, &other.tokens)
    }
}

impl Tokenizer {
    /// Counts the tokens of texts, and keeps the most frequent.
    pub fn build<'a>(spec: &TokensSpec, texts: impl Iterator<Item = &'a str>) -> Self {
        let mut counts = match spec.tokenizer {
            TokenizerKind::Byte => Vec::new(),
            _ => count(spec, texts).into_sorted(),
        };
        // Stable: equally frequent tokens stay in text order.
        counts.sort_by_key(|(_, num)| std::cmp::Reverse(*num));
        counts.truncate(spec.max_vocabulary.saturating_sub(FIRST as usize));
        let tokens = counts.into_iter().map(|(token, _)| token).collect();
        Self::from(Saved {
            spec: spec.clone(),
            tokens,
        })
    }

    /// The size of the vocabulary, at most `max_vocabulary` except for bytes.
    pub fn vocabulary(&self) -> usize {
        FIRST as usize
            + match self.spec.tokenizer {
                TokenizerKind::Byte => 256,
                _ => self.tokens.len(),
            }
    }

    /// The tokens of a text, as many as it has.
    pub fn encode(&self, text: &str) -> Vec<i32> {
        let pieces: Vec<&str> = pieces(self.spec.tokenizer, text).collect();
        match pieces[..] {
            [] | [_] => self.encode_piece(text),
            _ => {
                let encoded = pieces.par_iter().map(|piece| self.encode_piece(piece));
                encoded.collect::<Vec<_>>().concat()
            }
        }
    }

    fn encode_piece(&self, text: &str) -> Vec<i32> {
        let text = lower(text, self.spec.lowercase);
        match &self.lookup {
            Lookup::Bytes => text.bytes().map(|b| FIRST + i32::from(b)).collect(),
            Lookup::Chars(ids) => text.chars().map(|c| *ids.get(c)).collect(),
            Lookup::Words(ids) => words(&text)
                .map(|word| ids.get(word).copied().unwrap_or(UNKNOWN))
                .collect(),
        }
    }

    /// A text that may have produced the tokens. Padding is omitted, unknown tokens are `�`; words are separated by a
    /// space where one is usual.
    pub fn decode(&self, tokens: &[i32]) -> String {
        let shown = tokens.iter().filter(|token| **token != PADDING);
        let at = |token: i32| usize::try_from(token.checked_sub(FIRST)?).ok();
        let name = |token: &i32| at(*token).and_then(|at| self.tokens.get(at));
        let name = |token| name(token).map_or("\u{fffd}", String::as_str);
        match self.spec.tokenizer {
            TokenizerKind::Byte => {
                let byte = |token: &i32| at(*token).and_then(|at| u8::try_from(at).ok());
                let bytes: Vec<u8> = shown.map(|token| byte(token).unwrap_or(0xff)).collect();
                String::from_utf8_lossy(&bytes).into_owned()
            }
            TokenizerKind::Char => shown.map(name).collect(),
            TokenizerKind::Word => {
                let mut text = String::new();
                for word in shown.map(name) {
                    if !text.is_empty() && !sticks(&text, word) {
                        text.push(' ');
                    }
                    text.push_str(word);
                }
                text
            }
        }
    }
}

/// Whether no space is usual between a text and the word after it.
fn sticks(text: &str, word: &str) -> bool {
    text.ends_with(['\n', '(', '[', '{', '“', '‘', '/', '-'])
        || word.starts_with(['\n', '.', ',', ';', ':', '!', '?', ')', ']', '}'])
        || word.starts_with(['”', '’', '%', '/', '-'])
}

/// From tokens to their numbers.
#[derive(Clone, Debug)]
enum Lookup {
    Bytes,
    Chars(CharTable<i32>),
    Words(BTreeMap<Box<str>, i32>),
}

impl Lookup {
    fn new(kind: TokenizerKind, tokens: &[String]) -> Self {
        match kind {
            TokenizerKind::Byte => Lookup::Bytes,
            TokenizerKind::Char => {
                let mut ids = CharTable::new(UNKNOWN);
                for (token, id) in tokens.iter().zip(FIRST..) {
                    token.chars().for_each(|c| *ids.get_mut(c) = id);
                }
                Lookup::Chars(ids)
            }
            TokenizerKind::Word => {
                let words = tokens.iter().map(|token| token.as_str().into());
                Lookup::Words(words.zip(FIRST..).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests;
