//! Text files without targets as splits: one stream of tokens each.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::chats::Chats;
use super::stored::{Encode, Place};
use super::{Reading, Splits};
use crate::data::DataError;
use crate::data::encode::tokenizer::Tokenizer;
use crate::data::encode::{Encoder, Fitting, InputEncoder, TargetEncoder, fit};
use crate::data::known::Trust;
use crate::data::missing::dropping;
use crate::data::records::Records;
use crate::data::serve::{Set, Split, Tokens};
use crate::data::uses::Uses;
use crate::spec::data::FilesSpec;

impl Reading<'_> {
    /// Texts without targets are concatenated; the splits are pieces of them, test last.
    pub(super) fn running_text(
        &self,
        (files, digest): (&FilesSpec, &str),
        records: Records,
        uses: Uses,
        (cache, trust): (&Path, Trust),
    ) -> Result<Splits, DataError> {
        self.refuse_settings(&uses)?;
        // Rows without a text add nothing where they may be dropped.
        dropping(files, &records, &uses)?;
        let column = uses.features[0];
        let place = Place::of(files, (digest, column), self.split, &records, cache);
        let stored = place
            .as_ref()
            .and_then(|place| place.open(&files.tokens, trust));
        let encoder_by = |train: &[&str], tokenizer: Option<&Tokenizer>| {
            fit(&Fitting {
                tokenizer,
                ..self.fitting(files, &records, &uses, &[], Some(train))
            })
        };
        let (encoder, tokens) = match stored {
            Some(stored) => (encoder_by(&[], Some(&stored.tokenizer))?, stored.tokens),
            None => {
                let chats = Chats::of(files, &records, column)?;
                let texts = self.texts(files, &records, (column, chats.as_ref()));
                let encoder = encoder_by(&texts[0], None)?;
                let tokenizer = stream(&encoder).0;
                let separator = tokenizer.separator();
                let learned = chats.as_ref().filter(|_| !files.tokens.learn_prompts);
                let encode = |text: &str, is_last: bool| match learned {
                    Some(chats) => chats.tokens(text, tokenizer),
                    None => {
                        let mut tokens = tokenizer.encode(text)?;
                        tokens.extend(separator.filter(|_| is_last));
                        Ok(tokens)
                    }
                };
                let tokens = match &place {
                    Some(place) => {
                        place
                            .write(tokenizer, &texts, learned.is_some(), &encode)?
                            .tokens
                    }
                    None => in_memory(&texts, &encode)?,
                };
                (encoder, tokens)
            }
        };
        let (_, length, stride) = stream(&encoder);
        // The last token of an item has one after it, unless the item is its own target.
        let after = match encoder.target {
            TargetEncoder::NextTokens => 1,
            _ => 0,
        };
        let only_learned = files.roles.chats().next().is_some() && !files.tokens.learn_prompts;
        let starts = |tokens: &Tokens| -> Vec<u32> {
            let starts = (0..(tokens.len() + 1).saturating_sub(length + after)).step_by(stride);
            // An item without a target teaches nothing.
            let is_learned = |at: &usize| {
                !only_learned
                    || tokens
                        .part(at + 1..at + 1 + length)
                        .iter()
                        .any(|token| *token >= 0)
            };
            starts.filter(is_learned).map(|at| at as u32).collect()
        };
        let set = Arc::new(Set {
            records,
            encoder: Arc::new(encoder),
            graph: None,
            pairs: None,
        });
        let [train, valid, test] = tokens.map(|tokens| {
            let starts = starts(&tokens);
            Split::of_tokens(set.clone(), tokens, starts)
        });
        Ok(Splits {
            train,
            valid,
            test: (test.num_items() > 0).then_some(test),
            num_dropped: 0,
        })
    }

    fn refuse_settings(&self, uses: &Uses) -> Result<(), DataError> {
        if self.split.folds.is_some() || self.split.group_by.is_some() {
            return Err(
                DataError::new("running text can only be split in its order")
                    .key("data.split")
                    .help("remove `folds` and `group_by`"),
            );
        }
        if uses.weight.is_some() {
            return Err(DataError::new("running text has no items with weights")
                .key("data.weight")
                .help("remove it"));
        }
        Ok(())
    }

    /// The texts of the splits.
    fn texts<'a>(
        &self,
        files: &FilesSpec,
        records: &'a Records,
        (column, chats): (usize, Option<&'a Chats>),
    ) -> [Vec<&'a str>; 3] {
        let [num_train, num_valid, num_test] = records.header.parts;
        let texts = |rows: Range<usize>| -> Vec<&'a str> {
            let text = |row: usize| match chats {
                Some(chats) => chats.text(row),
                None => records.text(row, column),
            };
            rows.filter_map(text).collect()
        };
        let all = texts(0..num_train);
        let share = |num: usize, fraction: f64| if num > 0 { 0.0 } else { fraction };
        let valid_share = share(num_valid, self.split.valid);
        let test_share = share(num_test, self.split.test);
        let num_bytes: usize = all.iter().map(|text| text.len()).sum();
        let cut = |fraction: f64| (num_bytes as f64 * fraction).round() as usize;
        let first = cut(1.0 - valid_share - test_share);
        let second = cut(1.0 - test_share);
        let part = if files.tokens.document_mask && all.len() > 1 || chats.is_some() {
            documents
        } else {
            piece
        };
        let mut pieces = [
            part(&all, 0, first),
            part(&all, first, second),
            part(&all, second, num_bytes),
        ];
        if num_valid > 0 {
            pieces[1] = texts(num_train..num_train + num_valid);
        }
        if num_test > 0 {
            pieces[2] = texts(num_train + num_valid..records.len());
        }
        pieces
    }
}

/// The tokenizer of running text, and the length and the distance of its items.
fn stream(encoder: &Encoder) -> (&Tokenizer, usize, usize) {
    match &encoder.input {
        InputEncoder::Stream {
            tokenizer,
            length,
            stride,
            ..
        } => (tokenizer, *length, *stride),
        _ => unreachable!("running text is a single stream"),
    }
}

/// The tokens of few texts.
fn in_memory(splits: &[Vec<&str>; 3], encode: &Encode<'_>) -> Result<[Tokens; 3], DataError> {
    let of = |texts: &Vec<&str>| -> Result<Tokens, DataError> {
        let encoded = texts.par_iter().map(|text| encode(text, true));
        Ok(encoded
            .collect::<Result<Vec<_>, DataError>>()?
            .concat()
            .into())
    };
    let [train, valid, test] = splits;
    Ok([of(train)?, of(valid)?, of(test)?])
}

/// The texts that start between two byte positions of all texts.
fn documents<'a>(texts: &[&'a str], start: usize, end: usize) -> Vec<&'a str> {
    let mut before = 0;
    let starts = texts.iter().map(|text| {
        before += text.len();
        before - text.len()
    });
    let all = starts
        .zip(texts)
        .filter(|(at, _)| (start..end).contains(at));
    all.map(|(_, text)| *text).collect()
}

/// The text between two byte positions of all texts, at character boundaries.
fn piece<'a>(texts: &[&'a str], start: usize, end: usize) -> Vec<&'a str> {
    let mut pieces = Vec::new();
    let mut before = 0;
    for text in texts {
        let place = |at: usize| {
            let mut at = at.clamp(before, before + text.len()) - before;
            while !text.is_char_boundary(at) {
                at += 1;
            }
            at
        };
        let part = &text[place(start)..place(end)];
        if !part.is_empty() {
            pieces.push(part);
        }
        before += text.len();
    }
    pieces
}
