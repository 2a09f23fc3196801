//! Texts as tokens.

use serde::{Deserialize, Serialize};

use crate::spec::data::TokensSpec;

/// The token that fills up short texts.
pub const PADDING: i32 = 0;
/// The token of what the train split does not have.
pub const UNKNOWN: i32 = 1;

/// A vocabulary that was built on the train split.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tokenizer {
    /// What a token is.
    pub spec: TokensSpec,
    /// The tokens from [`UNKNOWN`] + 1 on, the most frequent first; equally frequent ones in their order as text.
    pub tokens: Vec<String>,
}

impl Tokenizer {
    /// Counts the tokens of texts.
    pub fn build<'a>(spec: &TokensSpec, _texts: impl Iterator<Item = &'a str>) -> Self {
        Self {
            spec: spec.clone(),
            tokens: Vec::new(),
        }
    }

    /// The number that all tokens are below.
    pub fn vocabulary(&self) -> usize {
        self.tokens.len() + 2
    }

    /// The tokens of a text, as many as it has.
    pub fn encode(&self, _text: &str) -> Vec<i32> {
        Vec::new()
    }
}
