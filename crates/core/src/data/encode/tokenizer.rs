//! Texts as tokens, by a vocabulary that was built on the train split.
//!
//! What a token is:
//! - `byte`: a byte of UTF-8. Byte b is token b + 2, whatever the texts hold: nothing is unknown.
//! - `char`: a character.
//! - `word`: a run of letters and digits with the apostrophes inside it (`don't`), or any other single
//!   character but white space. A line's end is a token too, because it means something in verse,
//!   dialogue and lists; other white space only separates.
//!
//! Large texts are cut where no token is, so that the cores share the work; the tokens are the same as
//! without cuts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::spec::data::{TokenizerKind, TokensSpec};

/// The token that fills up short texts.
pub const PADDING: i32 = 0;
/// The token of what the train split does not have.
pub const UNKNOWN: i32 = 1;
/// The first token that stands for something.
const FIRST: i32 = 2;

/// A vocabulary that was built on the train split.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(from = "Saved", into = "Saved")]
pub struct Tokenizer {
    /// What a token is.
    pub spec: TokensSpec,
    /// The tokens from [`UNKNOWN`] + 1 on, the most frequent first; equally frequent ones in their order as text.
    /// Empty for bytes, which need no list.
    pub tokens: Vec<String>,
    lookup: Lookup,
}

/// What is saved with a run; the lookup follows from it.
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
        // Stable: what is equally frequent stays in its order as text.
        counts.sort_by_key(|(_, num)| std::cmp::Reverse(*num));
        counts.truncate(spec.max_vocabulary.saturating_sub(FIRST as usize));
        let tokens = counts.into_iter().map(|(token, _)| token).collect();
        Self::from(Saved {
            spec: spec.clone(),
            tokens,
        })
    }

    /// The number that all tokens are below. `max_vocabulary` is the most, but for bytes.
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

    /// A text that tokens may have come from. Padding is left out, what is unknown is `�`; between words
    /// stands a space where one is usual.
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

/// Whether no space is usual between a text and the word behind it.
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

/// A value for each character: pages of 256, of which those exist that were written to.
#[derive(Clone, Debug)]
struct CharTable<T> {
    usual: T,
    pages: Vec<Option<Box<[T; 256]>>>,
}

impl<T: Copy> CharTable<T> {
    fn new(usual: T) -> Self {
        let pages = (0..=char::MAX as usize / 256).map(|_| None).collect();
        Self { usual, pages }
    }

    fn get(&self, c: char) -> &T {
        match &self.pages[c as usize / 256] {
            Some(page) => &page[c as usize % 256],
            None => &self.usual,
        }
    }

    fn get_mut(&mut self, c: char) -> &mut T {
        let usual = self.usual;
        let page = self.pages[c as usize / 256].get_or_insert_with(|| Box::new([usual; 256]));
        &mut page[c as usize % 256]
    }

    /// Those that were written to, and others of their pages, in order.
    fn each(&self, mut see: impl FnMut(char, T)) {
        let pages = (0..).zip(&self.pages);
        for (high, page) in pages.filter_map(|(high, page)| Some((high, page.as_ref()?))) {
            for (low, value) in (0..).zip(page.iter()) {
                if let Some(c) = char::from_u32(high * 256 + low) {
                    see(c, *value);
                }
            }
        }
    }
}

/// How often tokens occur.
enum Counts {
    Chars(CharTable<u64>),
    Words(BTreeMap<String, u64>),
}

impl Counts {
    fn new(kind: TokenizerKind) -> Self {
        match kind {
            TokenizerKind::Word => Counts::Words(BTreeMap::new()),
            TokenizerKind::Char | TokenizerKind::Byte => Counts::Chars(CharTable::new(0)),
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

    /// In the tokens' order as text.
    fn into_sorted(self) -> Vec<(String, u64)> {
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
fn count<'a>(spec: &TokensSpec, texts: impl Iterator<Item = &'a str>) -> Counts {
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

/// Bytes of a piece of a text, roughly.
const PIECE: usize = 1 << 20;

/// A text in pieces that no token reaches over: the tokens of the pieces one after the other are those of the
/// text. A text without any gap between words is one piece for the word tokenizer.
pub fn pieces(kind: TokenizerKind, mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let start = text.ceil_char_boundary(PIECE);
        let cut = match kind {
            TokenizerKind::Char | TokenizerKind::Byte => start,
            TokenizerKind::Word => {
                let gap = text[start..].find(char::is_whitespace);
                gap.map_or(text.len(), |gap| start + gap)
            }
        };
        let (piece, rest) = text.split_at(cut);
        text = rest;
        Some(piece)
    })
}

/// Character by character: what a capital becomes does not depend on where the text was cut.
fn lower(text: &str, lowercase: bool) -> Cow<'_, str> {
    match lowercase {
        false => text.into(),
        true if text.is_ascii() => text.to_ascii_lowercase().into(),
        true => {
            let small = text.chars().flat_map(char::to_lowercase);
            small.collect::<String>().into()
        }
    }
}

/// Letters, digits, and the accents that stand behind a letter as characters of their own.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || ('\u{300}'..='\u{36f}').contains(&c)
}

/// The words and signs of a text.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() && c != '\n');
        let first = rest.chars().next()?;
        let mut end = first.len_utf8();
        if is_part(first) {
            let mut next = rest[end..].chars().peekable();
            while let Some(c) = next.next() {
                let goes_on = match c {
                    '\'' | '’' => next.peek().is_some_and(|c| is_part(*c)),
                    c => is_part(c),
                };
                if !goes_on {
                    break;
                }
                end += c.len_utf8();
            }
        }
        let (word, behind) = rest.split_at(end);
        rest = behind;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(tokenizer: TokenizerKind) -> TokensSpec {
        TokensSpec {
            tokenizer,
            ..TokensSpec::default()
        }
    }

    fn build(spec: &TokensSpec, texts: &[&str]) -> Tokenizer {
        Tokenizer::build(spec, texts.iter().copied())
    }

    /// A text of about so many bytes with letters of one, two, three and four bytes.
    fn long(len: usize) -> String {
        let mut text = String::new();
        let mut seed = 7_u64;
        while text.len() < len {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
            let word = [
                "The", "sea", "täglich", "語", "don't", "🦀", "3,14", "end.\n",
            ];
            text.push_str(word[(seed >> 33) as usize % word.len()]);
            text.push(' ');
            if seed >> 60 == 0 {
                text.push_str(&format!("w{} ", (seed >> 40) % 5000));
            }
        }
        text
    }

    #[test]
    fn characters_are_numbered_by_frequency_then_as_text() {
        let chars = build(&spec(TokenizerKind::Char), &["banana", "cb"]);
        assert_eq!(chars.tokens, ["a", "b", "n", "c"]);
        assert_eq!(chars.vocabulary(), 6);
        assert_eq!(chars.encode("nab\nc"), [4, 2, 3, UNKNOWN, 5]);
        assert_eq!(
            chars.decode(&[4, 2, UNKNOWN, 3, PADDING, 99, -7, i32::MIN]),
            "na�b���"
        );
        assert_eq!(chars.encode(""), [0; 0]);
    }

    #[test]
    fn bytes_need_no_texts() {
        let bytes = build(&spec(TokenizerKind::Byte), &[]);
        assert_eq!((bytes.vocabulary(), bytes.tokens.len()), (258, 0));
        assert_eq!(bytes.encode("aä"), [99, 0xc3 + 2, 0xa4 + 2]);
        assert_eq!(bytes.decode(&bytes.encode("täg\0 語")), "täg\0 語");
        assert_eq!(bytes.decode(&[99, 0xc3 + 2, 258, -1, 0]), "a���");
        let small = TokensSpec {
            lowercase: true,
            max_vocabulary: 3,
            ..spec(TokenizerKind::Byte)
        };
        assert_eq!(build(&small, &["X"]).decode(&[67]), "A");
        assert_eq!(build(&small, &["X"]).encode("A"), [99]);
    }

    #[test]
    fn words_are_runs_of_letters_and_digits_and_single_signs() {
        let cut = |text| words(text).collect::<Vec<_>>();
        assert_eq!(
            cut("Don't 'stop', täglich—3.5 % 語\r\n\n  l’été x'"),
            [
                "Don't",
                "'",
                "stop",
                "'",
                ",",
                "täglich",
                "—",
                "3",
                ".",
                "5",
                "%",
                "語",
                "\n",
                "\n",
                "l’été",
                "x",
                "'"
            ]
        );
        assert_eq!(cut("e\u{301}te\u{301}!"), ["e\u{301}te\u{301}", "!"]);
        assert_eq!(cut(" \t\u{a0}"), [""; 0]);
        let tokenizer = build(&spec(TokenizerKind::Word), &["The cat, the\ndog (a dog)."]);
        let text = "The dog,\nthe cat (a dog).";
        assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text);
        assert_eq!(
            tokenizer.encode("a bird"),
            [tokenizer.encode("a")[0], UNKNOWN]
        );
        assert_eq!(tokenizer.tokens[0], "dog");
    }

    #[test]
    fn the_most_frequent_are_kept_and_capitals_are_made_small() {
        let few = TokensSpec {
            max_vocabulary: 4,
            lowercase: true,
            ..spec(TokenizerKind::Word)
        };
        let tokenizer = build(&few, &["b a A", "B c d B"]);
        assert_eq!(tokenizer.tokens, ["b", "a"]);
        assert_eq!(tokenizer.vocabulary(), 4);
        assert_eq!(tokenizer.encode("A b C"), [3, 2, UNKNOWN]);
        let chars = TokensSpec {
            tokenizer: TokenizerKind::Char,
            ..few
        };
        assert_eq!(build(&chars, &["ÄäBbB a"]).tokens, ["b", "ä"]);
    }

    #[test]
    fn a_saved_tokenizer_is_the_same() {
        for kind in [
            TokenizerKind::Char,
            TokenizerKind::Byte,
            TokenizerKind::Word,
        ] {
            let tokenizer = build(&spec(kind), &["Das \"Öl\", 語 🦀\n."]);
            let saved = serde_json::to_string(&tokenizer).unwrap();
            let read: Tokenizer = serde_json::from_str(&saved).unwrap();
            assert_eq!(read, tokenizer);
            let text = "Das 語 Öl fehlt.";
            assert_eq!(read.encode(text), tokenizer.encode(text));
            assert!(!saved.contains("lookup"), "{saved}");
        }
    }

    /// Cuts fall into characters of several bytes, words and gaps here.
    #[test]
    fn pieces_and_threads_do_not_show() {
        let text = long(5 * PIECE / 2);
        for kind in [
            TokenizerKind::Char,
            TokenizerKind::Byte,
            TokenizerKind::Word,
        ] {
            assert_eq!(pieces(kind, &text).collect::<String>(), text);
            assert!(pieces(kind, &text).count() > 1);
            let spec = spec(kind);
            let tokenizer = build(&spec, &[&text]);
            let alone = rayon::ThreadPoolBuilder::new()
                .num_threads(1)
                .build()
                .unwrap();
            let (one, tokens) = alone.install(|| {
                let one = build(&spec, &[&text]);
                let tokens = one.encode(&text);
                (one, tokens)
            });
            assert_eq!(one, tokenizer);
            assert_eq!(tokenizer.encode(&text), tokens);
            assert_eq!(tokenizer.encode_piece(&text), tokens);
            assert!(!tokens.contains(&UNKNOWN) && !tokens.contains(&PADDING));
        }
        assert_eq!(
            pieces(TokenizerKind::Word, &"x".repeat(3 * PIECE)).count(),
            1
        );
    }
}
