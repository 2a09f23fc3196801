//! Subwords: tokenizers of the library `tokenizers`, read from a file or trained on texts.
//!
//! A long text is encoded in pieces that end at line breaks, so that the cores share the work and no piece is much
//! larger than [`PIECE`](super::cut::PIECE). The pieces depend on the text alone.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value as Json;
use tokenizers::tokenizer::{PostProcessor, TruncationDirection};
use tokenizers::{
    DecoderWrapper, ModelWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper,
};

use super::cut::pieces;
use super::train;
use crate::data::DataError;
use crate::spec::data::TokenizerKind;
use crate::spec::plain_file;

/// Bytes of a tokenizer's file: those of current language models have at most 35 MB.
const MOST: u64 = 128 << 20;
/// Tokens that models use as padding, the most usual first.
const PADDINGS: [&str; 4] = ["[PAD]", "<pad>", "<|pad|>", "<PAD>"];
/// Tokens for the end of a text. Many models have no token for padding, and are trained with this one in its place.
const ENDS: [&str; 5] = ["<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[EOS]"];
/// Tokens that models use for hidden ones.
const MASKS: [&str; 4] = ["[MASK]", "<mask>", "<|mask|>", "<MASK>"];

/// A tokenizer of subwords.
#[derive(Clone)]
pub struct Subwords {
    library: tokenizers::Tokenizer,
    /// Whether each number, up to the largest one, is a token.
    is_token: Vec<bool>,
    padding: Option<i32>,
    /// Whether that is the end of a text in the texts of the model, too.
    pads_with_end: bool,
    unknown: Option<i32>,
    mask: Option<i32>,
    /// The tokens that are not special, in order.
    ordinary: Vec<i32>,
}

impl fmt::Debug for Subwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Subwords");
        shown.field("vocabulary", &self.vocabulary());
        shown.finish_non_exhaustive()
    }
}

impl Subwords {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    /// If it cannot be read, is not a tokenizer, or gives a text other tokens each time.
    pub fn read(path: &Path) -> Result<Self, DataError> {
        let wrong = |what: String| {
            let message = format!("the tokenizer `{}` {what}", path.display());
            DataError::new(message).key("data.tokens.path")
        };
        let bytes = plain_file::read(path, MOST)
            .map_err(|error| wrong(format!("cannot be read: {error}")))?;
        let bytes = bytes.ok_or_else(|| wrong(format!("is larger than {} MiB", MOST >> 20)))?;
        let help = "use the `tokenizer.json` of a model; `vocab.json`, `merges.txt` and `.model` files are converted to one by `AutoTokenizer.from_pretrained(…).save_pretrained(…)` of transformers";
        let text =
            String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8".to_owned()).help(help))?;
        Self::parse(&text).map_err(|reason| wrong(reason).help(help))
    }

    /// From the text of a `tokenizer.json`.
    ///
    /// # Errors
    /// What is wrong with it, to follow "the tokenizer".
    pub fn parse(text: &str) -> Result<Self, String> {
        let json: Json = serde_json::from_str(text).map_err(|e| format!("is not JSON: {e}"))?;
        let Some(model) = json.get("model").filter(|model| model.is_object()) else {
            return Err("has no `model`".to_owned());
        };
        let dropout = model.get("dropout").and_then(Json::as_f64);
        if dropout.is_some_and(|dropout| dropout > 0.0) {
            return Err("has `dropout`, with which a text has other tokens each time; set it to `null` in the file".to_owned());
        }
        let unknown_name = model
            .get("unk_token")
            .and_then(Json::as_str)
            .map(str::to_owned);
        // Unigram has its number.
        let unknown = model
            .get("unk_id")
            .and_then(Json::as_u64)
            .map(|at| at as u32);
        let mut library: tokenizers::Tokenizer =
            Deserialize::deserialize(&json).map_err(|e: serde_json::Error| {
                wrong_part(&json).unwrap_or_else(|| format!("is not a tokenizer: {e}"))
            })?;
        drop(json);
        let known = |name: &str| library.token_to_id(name);
        let padding = library.get_padding().map(|padding| padding.pad_id);
        let padding = padding.or_else(|| PADDINGS.into_iter().chain(ENDS).find_map(known));
        let ends =
            padding.is_some_and(|padding| ENDS.iter().any(|end| known(end) == Some(padding)));
        let unknown = unknown.or_else(|| known(unknown_name.as_deref()?));
        // Items have the length of the experiment.
        library.with_padding(None);
        let _ = library.with_truncation(None);
        let numbers: Vec<u32> = library.get_vocab(true).into_values().collect();
        let Some(last) = numbers.iter().max().filter(|last| **last < 1 << 24) else {
            return Err("has no tokens, or numbers above 16 million".to_owned());
        };
        let mut is_token = vec![false; *last as usize + 1];
        numbers.iter().for_each(|at| is_token[*at as usize] = true);
        // Networks have no row for it.
        if let Some(padding) = padding.filter(|padding| padding > last) {
            return Err(format!(
                "pads texts with {padding}, but its largest number of a token is {last}"
            ));
        }
        // Numbers of tokens around a text are in the file apart from their names.
        let around = library.encode_fast("", true);
        let around = around.map(|around| around.get_ids().to_vec());
        let outside = around.unwrap_or_default().into_iter();
        if let Some(outside) = outside.filter(|token| token > last).max() {
            return Err(format!(
                "puts the token {outside} around texts, but its largest number of a token is {last}"
            ));
        }
        let added = library.get_added_tokens_decoder();
        let is_special = |at: u32| {
            let is_added = added.get(&at).is_some_and(|token| token.special);
            is_added || Some(at) == padding || Some(at) == unknown
        };
        let ordinary = (0..=*last).filter(|at| is_token[*at as usize] && !is_special(*at));
        let ordinary = ordinary.map(|at| at as i32).collect();
        // Others are not found in a text.
        let masks = MASKS.into_iter();
        let mut masks = masks.filter_map(|name| library.token_to_id(name));
        let mask = masks.find(|at| added.contains_key(at));
        Ok(Self {
            mask: mask.map(|mask| mask as i32),
            ordinary,
            is_token,
            padding: padding.map(|padding| padding as i32),
            pads_with_end: ends,
            unknown: unknown.map(|unknown| unknown as i32),
            library,
        })
    }

    /// [Byte pair encoding](train::bpe) of at most `size` tokens, trained on texts.
    ///
    /// # Errors
    /// If the library fails.
    pub fn bpe<'a>(texts: impl Iterator<Item = &'a str>, size: usize) -> Result<Self, DataError> {
        Self::trained(train::bpe(texts, size))
    }

    /// [WordPiece](train::wordpiece) of at most `size` tokens, trained on texts.
    ///
    /// # Errors
    /// If the library fails.
    pub fn wordpiece<'a>(
        texts: impl Iterator<Item = &'a str>,
        size: usize,
    ) -> Result<Self, DataError> {
        Self::trained(train::wordpiece(texts, size))
    }

    fn trained(library: tokenizers::Result<tokenizers::Tokenizer>) -> Result<Self, DataError> {
        let parsed = library
            .and_then(|library| library.to_string(false))
            .map_err(|error| error.to_string())
            .and_then(|text| Self::parse(&text));
        parsed.map_err(|reason| {
            let message = format!("a tokenizer cannot be trained on the train split: {reason}");
            DataError::new(message).key("data.tokens.tokenizer")
        })
    }

    /// As the text of a `tokenizer.json`.
    pub fn to_json(&self) -> String {
        // A tokenizer that was parsed or trained can be written.
        self.library.to_string(false).unwrap_or_default()
    }

    /// One more than the largest number of a token.
    pub fn vocabulary(&self) -> usize {
        self.is_token.len()
    }

    /// The token that fills short items, if the tokenizer has one.
    pub fn padding(&self) -> Option<i32> {
        self.padding
    }

    /// The token for the end of a text, if texts are padded with it.
    pub fn end(&self) -> Option<i32> {
        self.padding.filter(|_| self.pads_with_end)
    }

    /// The token of unknown text, if the tokenizer has one.
    pub fn unknown(&self) -> Option<i32> {
        self.unknown
    }

    /// The token that stands for a hidden one, if the tokenizer has one.
    pub fn mask(&self) -> Option<i32> {
        self.mask
    }

    /// A token as it is written in the vocabulary.
    pub fn name(&self, token: i32) -> Option<String> {
        self.library.id_to_token(token.try_into().ok()?)
    }

    /// The tokens that are not special, in order.
    pub fn ordinary(&self) -> &[i32] {
        &self.ordinary
    }

    /// The number of a token by its text.
    pub fn token(&self, text: &str) -> Option<i32> {
        self.library.token_to_id(text).map(|token| token as i32)
    }

    /// Whether a number is a token.
    pub fn has(&self, token: i32) -> bool {
        let at = usize::try_from(token).ok();
        at.is_some_and(|at| self.is_token.get(at) == Some(&true))
    }

    /// The tokens of running text, without special ones except those that are written in it.
    ///
    /// # Errors
    /// If the tokenizer fails, for example at an unknown character without a token for unknown text.
    pub fn encode(&self, text: &str) -> Result<Vec<i32>, DataError> {
        let piece = |text: &str| {
            let found = self.library.encode_fast(text, false);
            found.map(|found| numbers(found.get_ids())).map_err(failed)
        };
        let pieces: Vec<&str> = pieces(TokenizerKind::Bpe, text).collect();
        match pieces[..] {
            [] | [_] => piece(text),
            _ => {
                let encoded: Result<Vec<_>, _> =
                    pieces.par_iter().map(|text| piece(text)).collect();
                Ok(encoded?.concat())
            }
        }
    }

    /// The same tokens, each with the bytes of the text that it stands for.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_with_places(&self, text: &str) -> Result<Vec<(i32, Range<usize>)>, DataError> {
        let (mut all, mut before) = (Vec::new(), 0);
        for piece in pieces(TokenizerKind::Bpe, text) {
            let found = self.library.encode(piece, false).map_err(failed)?;
            let places = found.get_offsets().iter();
            let places = places.map(|(start, end)| before + start..before + end);
            all.extend(numbers(found.get_ids()).into_iter().zip(places));
            before += piece.len();
        }
        Ok(all)
    }

    /// At most `length` tokens of an item, with the special ones that the tokenizer puts around a text.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn encode_item(&self, text: &str, length: usize) -> Result<Vec<i32>, DataError> {
        let mut found = self.library.encode_fast(text, false).map_err(failed)?;
        let special = self.library.get_post_processor();
        let num_special = special.map_or(0, |special| special.added_tokens(false));
        if num_special >= length {
            found.truncate(length, 0, TruncationDirection::Right);
            return Ok(numbers(found.get_ids()));
        }
        found.truncate(length - num_special, 0, TruncationDirection::Right);
        let found = self.library.post_process(found, None, true);
        found.map(|found| numbers(found.get_ids())).map_err(failed)
    }

    /// The text of tokens, without special ones.
    pub fn decode(&self, tokens: &[i32]) -> String {
        let tokens = tokens.iter().filter_map(|token| u32::try_from(*token).ok());
        let tokens: Vec<u32> = tokens.collect();
        self.library.decode(&tokens, true).unwrap_or_default()
    }
}

/// The part of a file that the library cannot read, which its own error does not name.
fn wrong_part(json: &Json) -> Option<String> {
    fn error<T: DeserializeOwned>(part: &Json) -> Option<String> {
        T::deserialize(part).err().map(|error| error.to_string())
    }
    type Read = fn(&Json) -> Option<String>;
    let parts: [(&str, Read); 5] = [
        ("normalizer", error::<NormalizerWrapper>),
        ("pre_tokenizer", error::<PreTokenizerWrapper>),
        ("model", error::<ModelWrapper>),
        ("post_processor", error::<PostProcessorWrapper>),
        ("decoder", error::<DecoderWrapper>),
    ];
    parts.into_iter().find_map(|(key, read)| {
        let part = json.get(key).filter(|part| !part.is_null())?;
        let reason = read(part)?;
        let kind = part.get("type").and_then(Json::as_str);
        let kind = kind.map_or_else(String::new, |kind| format!(" of type `{kind}`"));
        // The library tries all types.
        let is_of_none = reason.contains("untagged enum");
        Some(if is_of_none {
            format!("has a `{key}`{kind} that is unknown, or lacks a key")
        } else {
            format!("has a wrong `{key}`{kind}: {reason}")
        })
    })
}

fn numbers(tokens: &[u32]) -> Vec<i32> {
    tokens.iter().map(|token| *token as i32).collect()
}

fn failed(error: tokenizers::Error) -> DataError {
    DataError::new(format!("a text cannot be tokenized: {error}"))
        .key("data.tokens.path")
        .help("use a tokenizer with a token for unknown text, or with `byte_fallback`")
}
