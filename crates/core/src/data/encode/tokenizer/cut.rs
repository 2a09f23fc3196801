//! Texts in pieces for the cores, in words and signs, in small letters.

use std::borrow::Cow;

use crate::spec::data::TokenizerKind;

/// Bytes of a piece of a text, roughly.
pub(super) const PIECE: usize = 1 << 20;
/// The same for subwords, whose tokenizers hold many numbers for each byte.
const SUBWORD_PIECE: usize = 1 << 16;

/// A text in pieces that no token crosses: the concatenated tokens of the pieces are those of the text. A text without
/// gaps between words is one piece for the word tokenizer.
///
/// Subwords are cut after single line breaks between other characters than spaces. Tokenizers that treat the start of a
/// text in their own way do so at the start of each piece.
pub fn pieces(kind: TokenizerKind, mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if text.is_empty() {
            return None;
        }
        let size = if kind.is_of_subwords() {
            SUBWORD_PIECE
        } else {
            PIECE
        };
        let start = text.ceil_char_boundary(size);
        let cut = match kind {
            TokenizerKind::Char | TokenizerKind::Byte => start,
            TokenizerKind::Word => {
                let gap = text[start..].find(char::is_whitespace);
                gap.map_or(text.len(), |gap| start + gap)
            }
            TokenizerKind::Bpe | TokenizerKind::Wordpiece | TokenizerKind::File => {
                let is_end = |at: &usize| {
                    let ends_word = text[..*at].ends_with(|c: char| !c.is_whitespace());
                    ends_word && text[at + 1..].starts_with(|c: char| !c.is_whitespace())
                };
                let breaks = text[start..].match_indices('\n');
                let mut breaks = breaks.map(|(at, _)| start + at).filter(is_end);
                breaks.next().map_or(text.len(), |at| at + 1)
            }
        };
        let (piece, rest) = text.split_at(cut);
        text = rest;
        Some(piece)
    })
}

/// Character by character: lower-casing must not depend on where the text was cut.
pub(super) fn lower(text: &str, lowercase: bool) -> Cow<'_, str> {
    match lowercase {
        false => text.into(),
        true if text.is_ascii() => text.to_ascii_lowercase().into(),
        true => {
            let small = text.chars().flat_map(char::to_lowercase);
            small.collect::<String>().into()
        }
    }
}

/// Letters, digits, and combining accents.
fn is_part(c: char) -> bool {
    c.is_alphanumeric() || ('\u{300}'..='\u{36f}').contains(&c)
}

/// The words and punctuation marks of a text.
pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
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
