//! Text as tokens, with a vocabulary built on the train split.
//!
//! Tokenizers:
//! - `byte`: a byte of UTF-8. Byte b is token b + 2 for any text: nothing is unknown.
//! - `char`: a character.
//! - `word`: a sequence of letters and digits, including apostrophes inside it (`don't`), or any other single character
//!   except whitespace. A line break is a token too, because it is meaningful in verse, dialogue and lists; other
//!   whitespace only separates.
//! - `bpe`, `wordpiece`, `file`: subwords of the library `tokenizers`.
//!
//! Large texts are cut between tokens, so that the cores share the work; the tokens are the same as without cuts.

pub mod chat;
mod count;
mod cut;
#[cfg(feature = "native")]
mod subwords;
#[cfg(not(feature = "native"))]
#[path = "no_subwords.rs"]
mod subwords;
mod table;
#[cfg(feature = "native")]
mod train;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::data::DataError;
use crate::spec::data::{TokenizerKind, TokensSpec};
use chat::ChatTemplate;
use count::count;
pub use cut::pieces;
use cut::{lower, words};
use subwords::Subwords;
use table::CharTable;

/// The padding token, except of subwords.
const PADDING: i32 = 0;
/// The token for anything that is not in the train split, except of subwords.
const UNKNOWN: i32 = 1;
/// The first token with a meaning.
const FIRST: i32 = 2;

/// A vocabulary that was built on the train split.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "Saved", into = "Saved")]
pub struct Tokenizer {
    /// The kind of tokens.
    pub spec: TokensSpec,
    /// The tokens from 2 on, the most frequent first; equally frequent ones in text order. Empty for
    /// bytes, which need no list, and for subwords.
    pub tokens: Vec<String>,
    /// What writes conversations as text, if anything does.
    pub chat: Option<ChatTemplate>,
    lookup: Lookup,
}

/// The saved part of a tokenizer; the lookup is derived from it.
#[derive(Serialize, Deserialize)]
struct Saved {
    spec: TokensSpec,
    tokens: Vec<String>,
    /// Subwords as the text of a `tokenizer.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subwords: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chat: Option<ChatTemplate>,
}

impl TryFrom<Saved> for Tokenizer {
    type Error = String;

    fn try_from(saved: Saved) -> Result<Self, String> {
        let Saved {
            spec,
            tokens,
            subwords,
            chat,
        } = saved;
        let lookup = match subwords {
            Some(text) => {
                let subwords = Subwords::parse(&text);
                Lookup::Subwords(Arc::new(
                    subwords.map_err(|reason| format!("the tokenizer {reason}"))?,
                ))
            }
            None => Lookup::new(spec.tokenizer, &tokens),
        };
        Ok(Self {
            lookup,
            spec,
            tokens,
            chat,
        })
    }
}

impl From<Tokenizer> for Saved {
    fn from(tokenizer: Tokenizer) -> Self {
        Self {
            subwords: tokenizer.subwords(),
            chat: tokenizer.chat,
            spec: tokenizer.spec,
            tokens: tokenizer.tokens,
        }
    }
}

impl PartialEq for Tokenizer {
    fn eq(&self, other: &Self) -> bool {
        let of = |tokenizer: &Self| tokenizer.subwords();
        let all = |of: &Self| (of.spec.clone(), of.tokens.clone(), of.chat.clone());
        all(self) == all(other) && of(self) == of(other)
    }
}

impl Tokenizer {
    /// Counts the tokens of texts, and keeps the most frequent; reads or trains subwords.
    ///
    /// # Errors
    /// If the file of subwords cannot be used, or the separator is not a token.
    pub fn build<'a>(
        spec: &TokensSpec,
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<Self, DataError> {
        let size = spec.max_vocabulary;
        let of_subwords = |subwords| Self {
            spec: spec.clone(),
            tokens: Vec::new(),
            chat: None,
            lookup: Lookup::Subwords(Arc::new(subwords)),
        };
        let mut tokenizer = match spec.tokenizer {
            TokenizerKind::Char | TokenizerKind::Byte | TokenizerKind::Word => {
                Self::counted(spec, texts)
            }
            TokenizerKind::Bpe => of_subwords(Subwords::bpe(texts, size)?),
            TokenizerKind::Wordpiece => of_subwords(Subwords::wordpiece(texts, size)?),
            TokenizerKind::File => match &spec.path[..] {
                [path] => of_subwords(Subwords::read(Path::new(path))?),
                paths => {
                    let message = format!("`tokens.path` names {} files", paths.len());
                    let error = DataError::new(message).key("data.tokens.path");
                    return Err(error.help("name the file of one tokenizer"));
                }
            },
        };
        if let Some(text) = &spec.separator {
            tokenizer.token(text).ok_or_else(|| {
                let message = format!("the separator `{text}` is not a token");
                DataError::new(message)
                    .key("data.tokens.separator")
                    .help("use a token of the tokenizer, such as its end of a text")
            })?;
        }
        tokenizer.chat = tokenizer.template()?;
        Ok(tokenizer)
    }

    /// The chat template: that of the settings, or one that happens to be beside the tokenizer.
    fn template(&self) -> Result<Option<ChatTemplate>, DataError> {
        let token = |text: &str| self.token(text);
        if !self.spec.template.is_empty() {
            let files: Vec<PathBuf> = self.spec.template.iter().map(PathBuf::from).collect();
            let found = ChatTemplate::read(&files, token)?;
            return found.map(Some).ok_or_else(|| {
                let message = format!("`{}` has no `chat_template`", files[0].display());
                DataError::new(message)
                    .key("data.tokens")
                    .help("set `template` to a file with a chat template in Jinja")
            });
        }
        let [path] = &self.spec.path[..] else {
            return Ok(None);
        };
        let files = chat::files_of(None, Some(Path::new(path)));
        // The data has no conversations: a template that cannot be read is only missed by who asks for it.
        let found = ChatTemplate::read(&files, token).unwrap_or_else(|error| {
            tracing::warn!("there is no chat template: {}", error.message);
            None
        });
        Ok(found)
    }

    fn counted<'a>(spec: &TokensSpec, texts: impl Iterator<Item = &'a str>) -> Self {
        let mut counts = match spec.tokenizer {
            TokenizerKind::Byte => Vec::new(),
            _ => count(spec, texts).into_sorted(),
        };
        // Stable: equally frequent tokens stay in text order.
        counts.sort_by_key(|(_, num)| std::cmp::Reverse(*num));
        counts.truncate(spec.max_vocabulary.saturating_sub(FIRST as usize));
        let tokens: Vec<String> = counts.into_iter().map(|(token, _)| token).collect();
        Self {
            lookup: Lookup::new(spec.tokenizer, &tokens),
            spec: spec.clone(),
            tokens,
            chat: None,
        }
    }

    /// Subwords as the text of a `tokenizer.json`; `None` for other tokens.
    pub fn subwords(&self) -> Option<String> {
        match &self.lookup {
            Lookup::Subwords(subwords) => Some(subwords.to_json()),
            _ => None,
        }
    }

    /// The size of the vocabulary, from `min_vocabulary` to `max_vocabulary`; more for bytes and subwords from a file.
    pub fn vocabulary(&self) -> usize {
        self.num_tokens().max(self.spec.min_vocabulary)
    }

    fn num_tokens(&self) -> usize {
        match &self.lookup {
            Lookup::Bytes => FIRST as usize + 256,
            Lookup::Subwords(subwords) => subwords.vocabulary(),
            _ => FIRST as usize + self.tokens.len(),
        }
    }

    /// The token that fills short items; 0 for a tokenizer without one, which texts of items are refused for.
    pub fn padding(&self) -> i32 {
        self.own_padding().unwrap_or(0)
    }

    fn own_padding(&self) -> Option<i32> {
        match &self.lookup {
            Lookup::Subwords(subwords) => subwords.padding(),
            _ => Some(PADDING),
        }
    }

    /// A tokenizer for items of one length each.
    ///
    /// # Errors
    /// If no token is for padding: a real one in its place would be taken for padding wherever it occurs.
    pub fn build_for_items<'a>(
        spec: &TokensSpec,
        texts: impl Iterator<Item = &'a str>,
    ) -> Result<Self, DataError> {
        let tokenizer = Self::build(spec, texts)?;
        if tokenizer.own_padding().is_none() {
            let message = "the tokenizer has no token for padding, such as `[PAD]`, and none for the end of a text, such as `</s>`: short texts cannot be filled up";
            let help = "add one with the library tokenizers: `tokenizer.add_special_tokens([\"[PAD]\"])`, then `tokenizer.save(\"tokenizer.json\")`";
            return Err(DataError::new(message).key("data.tokens.path").help(help));
        }
        Ok(tokenizer)
    }

    /// The token of anything without one, if there is such a token.
    pub fn unknown(&self) -> Option<i32> {
        match &self.lookup {
            Lookup::Subwords(subwords) => subwords.unknown(),
            _ => Some(UNKNOWN),
        }
    }

    /// The token that stands for a hidden one, if there is such a token.
    pub fn mask(&self) -> Option<i32> {
        match &self.lookup {
            Lookup::Subwords(subwords) => subwords.mask(),
            _ => None,
        }
    }

    /// A special token as it is written in a text.
    pub fn name(&self, token: i32) -> String {
        match &self.lookup {
            Lookup::Subwords(subwords) => subwords.name(token),
            _ => None,
        }
        .unwrap_or_else(|| format!("token {token}"))
    }

    /// Bytes of a text that a token stands for. It may be a part of a character, or special: decoded, the one is `�`, and
    /// the other nothing.
    pub fn num_bytes(&self, token: i32) -> usize {
        let text = self.decode(&[token]);
        match &self.lookup {
            Lookup::Bytes => 1,
            Lookup::Subwords(_) if text.is_empty() => self.name(token).len(),
            Lookup::Subwords(_) if text.contains('\u{fffd}') => match &*self.name(token) {
                // A byte that is no token of its own.
                name if name.starts_with("<0x") => 1,
                // A character for each byte, as in GPT-2.
                name => name.chars().count(),
            },
            _ => text.len(),
        }
    }

    /// The tokens of texts, without special ones, in order; empty except for subwords.
    pub fn ordinary(&self) -> &[i32] {
        match &self.lookup {
            Lookup::Subwords(subwords) => subwords.ordinary(),
            _ => &[],
        }
    }

    /// Whether a number stands for a text: neither padding, nor the unknown token, nor a gap between the numbers.
    pub fn is_text(&self, token: i32) -> bool {
        let is_token = match &self.lookup {
            Lookup::Subwords(subwords) => subwords.has(token),
            _ => (FIRST..self.num_tokens() as i32).contains(&token),
        };
        let stops = self.ends_text(token);
        is_token && (stops || token != self.padding() && Some(token) != self.unknown())
    }

    /// Whether a token ends a text: the separator, or the token of a model for this that pads its texts, too.
    pub fn ends_text(&self, token: i32) -> bool {
        let end = match &self.lookup {
            Lookup::Subwords(subwords) => subwords.end(),
            _ => None,
        };
        self.separator() == Some(token) || end == Some(token)
    }

    /// The number of the token after each text of running text.
    pub fn separator(&self) -> Option<i32> {
        self.token(self.spec.separator.as_ref()?)
    }

    /// The number of the token that ends a document, if documents in an item are kept apart.
    pub fn document_end(&self) -> Option<i32> {
        self.spec.document_mask.then(|| self.separator()).flatten()
    }

    /// The tokens that end the assistant's turn.
    pub fn turn_ends(&self) -> &[i32] {
        self.chat.as_ref().map_or(&[], |chat| &chat.ends)
    }

    /// The number of a token by its text.
    fn token(&self, text: &str) -> Option<i32> {
        if let Lookup::Subwords(subwords) = &self.lookup {
            return subwords.token(text);
        }
        match self.encode_piece(text)[..] {
            [token] if token != UNKNOWN => Some(token),
            _ => None,
        }
    }

    /// The tokens of a text, as many as it has, without special ones.
    ///
    /// # Errors
    /// If a tokenizer from a file cannot encode it.
    pub fn encode(&self, text: &str) -> Result<Vec<i32>, DataError> {
        if let Lookup::Subwords(subwords) = &self.lookup {
            return subwords.encode(text);
        }
        let pieces: Vec<&str> = pieces(self.spec.tokenizer, text).collect();
        Ok(match pieces[..] {
            [] | [_] => self.encode_piece(text),
            _ => {
                let encoded = pieces.par_iter().map(|piece| self.encode_piece(piece));
                encoded.collect::<Vec<_>>().concat()
            }
        })
    }

    /// The tokens of a text, and whether each has a byte of one of some ranges, which are in order.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_marked(
        &self,
        text: &str,
        marked: &[Range<usize>],
    ) -> Result<Vec<(i32, bool)>, DataError> {
        if let Lookup::Subwords(subwords) = &self.lookup {
            let tokens = subwords.encode_with_places(text)?.into_iter();
            let is_marked = |at: &Range<usize>| {
                let after = marked.partition_point(|range| range.end <= at.start);
                marked.get(after).is_some_and(|range| range.start < at.end)
            };
            return Ok(tokens.map(|(token, at)| (token, is_marked(&at))).collect());
        }
        // No token of these goes beyond the end of a range.
        let (mut tokens, mut done) = (Vec::new(), 0);
        let all = marked.iter().map(|range| (range.clone(), true));
        for (range, is_marked) in all.chain([(text.len()..text.len(), false)]) {
            for (part, is_marked) in [
                (&text[done..range.start], false),
                (&text[range.clone()], is_marked),
            ] {
                tokens.extend(
                    self.encode_piece(part)
                        .into_iter()
                        .map(|token| (token, is_marked)),
                );
            }
            done = range.end;
        }
        Ok(tokens)
    }

    /// A text as `length` tokens: truncated, or padded. Subwords have the special tokens that the tokenizer puts around
    /// a text. An empty text, and one that a tokenizer from a file cannot encode, is an unknown token: padding alone
    /// contains no information.
    pub fn encode_item(&self, text: &str, length: usize) -> Vec<i32> {
        let mut tokens = match &self.lookup {
            Lookup::Subwords(subwords) => subwords.encode_item(text, length).unwrap_or_default(),
            _ => self.encode_piece(text),
        };
        if tokens.is_empty() {
            tokens.extend(self.unknown());
        }
        tokens.resize(length, self.padding());
        tokens
    }

    fn encode_piece(&self, text: &str) -> Vec<i32> {
        let text = lower(text, self.spec.lowercase);
        match &self.lookup {
            // These know words, not characters.
            Lookup::Subwords(subwords) => subwords.encode(&text).unwrap_or_default(),
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
        if let Lookup::Subwords(subwords) = &self.lookup {
            return subwords.decode(tokens);
        }
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
            _ => {
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
    Subwords(Arc<Subwords>),
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
            _ => {
                let words = tokens.iter().map(|token| token.as_str().into());
                Lookup::Words(words.zip(FIRST..).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests;
