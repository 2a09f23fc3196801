//! Tokenizers of subwords that are trained on texts.
//!
//! The library counts words in tables without an order, and numbers the parts of WordPiece in the order in which it
//! meets them. Words are counted here, and all single characters are numbered before training, so that the same texts
//! give the same tokens in each process and with any number of threads. Its trainer of Unigram sums probabilities in an
//! order that changes: such tokenizers are only read from files.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use tokenizers::Tokenizer;
use tokenizers::decoders::wordpiece::WordPiece as WordPieceDecoder;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::tokenizer::{
    AddedToken, NormalizedString, Normalizer, OffsetReferential, OffsetType, PreTokenizedString,
    PreTokenizer,
};

use super::cut::pieces;
use crate::spec::data::TokenizerKind;

/// Special tokens of trained byte pair encodings, numbered from 0: padding, unknown, end of a text.
const OF_BYTES: [&str; 3] = ["<pad>", "<unk>", "<eos>"];
/// Those of WordPiece.
const OF_WORDS: [&str; 5] = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"];
/// What begins a part inside of a word in WordPiece.
const INSIDE: &str = "##";
/// A part has at most this many characters: longer runs of one character are several tokens.
const LONGEST: usize = 64;

/// Byte pair encoding of bytes (Sennrich et al., 2016; Radford et al., 2019), with words as GPT-2 cuts them.
pub(super) fn bpe<'a>(
    texts: impl Iterator<Item = &'a str>,
    size: usize,
) -> tokenizers::Result<Tokenizer> {
    let words = counted(texts, |text| {
        let mut text = PreTokenizedString::from(text);
        byte_level().pre_tokenize(&mut text)?;
        Ok(text)
    })?;
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(size.max(OF_BYTES.len() + 256))
        .min_frequency(2)
        .max_token_length(Some(LONGEST))
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .special_tokens(special(&OF_BYTES))
        .build();
    let mut model = BPE::default();
    let words = words.into_iter().map(|(word, num)| (word.into(), num));
    trainer.do_train(&words.collect(), &mut model)?;
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_pre_tokenizer(Some(byte_level()));
    tokenizer.with_decoder(Some(byte_level()));
    tokenizer.add_special_tokens(special(&OF_BYTES))?;
    Ok(tokenizer)
}

/// WordPiece (Schuster and Nakajima, 2012) with BERT's lower case, words and special tokens. As in the library, parts
/// are merged by frequency.
pub(super) fn wordpiece<'a>(
    texts: impl Iterator<Item = &'a str>,
    size: usize,
) -> tokenizers::Result<Tokenizer> {
    let words = counted(texts, |text| {
        let mut normal = NormalizedString::from(text);
        BertNormalizer::default().normalize(&mut normal)?;
        let mut text = PreTokenizedString::from(normal);
        BertPreTokenizer.pre_tokenize(&mut text)?;
        Ok(text)
    })?;
    let mut inside = BTreeSet::new();
    for word in words.keys() {
        inside.extend(word.chars().skip(1).map(|c| format!("{INSIDE}{c}")));
    }
    let named: Vec<&str> = OF_WORDS
        .into_iter()
        .chain(inside.iter().map(String::as_str))
        .collect();
    let trainer = BpeTrainer::builder()
        .show_progress(false)
        .vocab_size(size)
        .min_frequency(2)
        .continuing_subword_prefix(INSIDE.to_owned())
        .max_token_length(Some(LONGEST))
        .special_tokens(special(&named))
        .build();
    let mut parts = BPE::default();
    let words = words.into_iter().map(|(word, num)| (word.into(), num));
    trainer.do_train(&words.collect(), &mut parts)?;
    let mut model = WordPiece::from_bpe(&parts);
    model.unk_token = OF_WORDS[1].to_owned();
    let mut tokenizer = Tokenizer::new(model);
    tokenizer.with_normalizer(Some(BertNormalizer::default()))?;
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    tokenizer.with_decoder(Some(WordPieceDecoder::default()));
    tokenizer.add_special_tokens(special(&OF_WORDS))?;
    let numbered = |at: usize| (OF_WORDS[at].to_owned(), at as u32);
    tokenizer.with_post_processor(Some(BertProcessing::new(numbered(3), numbered(2))));
    Ok(tokenizer)
}

/// Without a space before the first word of a text.
fn byte_level() -> ByteLevel {
    ByteLevel::default().add_prefix_space(false)
}

fn special(names: &[&str]) -> Vec<AddedToken> {
    let token = |name: &&str| AddedToken::from(*name, true);
    names.iter().map(token).collect()
}

/// How often words occur.
type Counts = BTreeMap<String, u64>;

/// The words of texts, as `cut` finds them.
fn counted<'a>(
    texts: impl Iterator<Item = &'a str>,
    cut: impl Fn(&str) -> tokenizers::Result<PreTokenizedString> + Sync,
) -> tokenizers::Result<Counts> {
    let pieces: Vec<&str> = texts
        .flat_map(|text| pieces(TokenizerKind::Bpe, text))
        .collect();
    let merged = |mut all: Counts, more: Counts| {
        for (word, num) in more {
            *all.entry(word).or_default() += num;
        }
        all
    };
    let of_piece = |mut counts: Counts, piece: &&str| {
        let text = cut(piece)?;
        for (word, _, _) in text.get_splits(OffsetReferential::Normalized, OffsetType::None) {
            match counts.get_mut(word) {
                Some(num) => *num += 1,
                None => {
                    counts.insert(word.to_owned(), 1);
                }
            }
        }
        tokenizers::Result::Ok(counts)
    };
    let counts = pieces.par_iter().try_fold(Counts::new, of_piece);
    counts.try_reduce(Counts::new, |all, more| Ok(merged(all, more)))
}
