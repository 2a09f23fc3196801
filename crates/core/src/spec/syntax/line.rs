//! The parts of a line: words, quoted texts and marks.

use std::ops::Range;

use super::brackets::quoted;

/// What a part is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A word without quotes: a key, a number, or a text that lacks them.
    Word,
    /// A text with its quotes.
    Text,
    /// A quote that nothing closes, with all that follows.
    Unclosed,
    /// One of `[]{},=`.
    Mark(char),
}

/// A part of a line.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it is.
    pub kind: Kind,
    /// Where it is, in bytes.
    pub at: Range<usize>,
}

/// The parts of a line, up to its comment.
pub fn parts(line: &str) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    let mut at = 0;
    while let Some(next) = line[at..].chars().next() {
        let length = next.len_utf8();
        let (kind, length) = match next {
            '#' => break,
            _ if next.is_whitespace() => {
                at += length;
                continue;
            }
            '"' | '\'' => match quoted(&line[at..]) {
                Some(length) => (Kind::Text, length),
                None => (Kind::Unclosed, line.trim_end().len() - at),
            },
            '[' | ']' | '{' | '}' | ',' | '=' => (Kind::Mark(next), length),
            _ => {
                let is_end = |c: char| c.is_whitespace() || "[]{},=\"'#".contains(c);
                let end = line[at..].find(is_end);
                (Kind::Word, end.unwrap_or(line.len() - at))
            }
        };
        all.push(Part {
            kind,
            at: at..at + length,
        });
        at += length;
    }
    all
}

/// A line without its comment.
pub fn code(line: &str) -> &str {
    let end = parts(line).last().map_or(0, |part| part.at.end);
    line[..end].trim_start()
}

/// A line with some parts replaced, which are in their order.
pub fn replaced(line: &str, changes: &[(Range<usize>, String)]) -> String {
    let mut text = String::with_capacity(line.len());
    let mut from = 0;
    for (at, with) in changes {
        text += &line[from..at.start];
        text += with;
        from = at.end;
    }
    text + &line[from..]
}

/// What closes the brackets that a line opens and does not close, and the byte from which its marks close more than it
/// opens.
pub fn open_ends(line: &str) -> (String, Option<usize>) {
    let mut open = Vec::new();
    for part in parts(line) {
        match part.kind {
            Kind::Mark('[') => open.push(']'),
            Kind::Mark('{') => open.push('}'),
            Kind::Mark(']' | '}') if open.pop().is_none() => {
                return (String::new(), Some(part.at.start));
            }
            _ => {}
        }
    }
    (open.iter().rev().collect(), None)
}

/// Whether a byte of a line is in a quoted text.
pub fn is_in_text(parts: &[Part], at: usize) -> bool {
    let mut texts = parts.iter().filter(|part| part.kind == Kind::Text);
    texts.any(|part| part.at.contains(&at))
}

/// Whether a text is TOML.
pub fn is_toml(text: &str) -> bool {
    toml::de::DeTable::parse(text).is_ok()
}

/// Whether a text is a value.
pub fn is_value(text: &str) -> bool {
    let ends = |part: &Part| part.at.end == text.len();
    !text.contains('\n') && parts(text).last().is_some_and(ends) && is_toml(&format!("_ = {text}"))
}

/// Whether a text is a number.
pub fn is_number(text: &str) -> bool {
    text.contains(|c: char| c.is_ascii_digit())
        && !text.contains([':', '"', '\'', '[', '{'])
        && text.parse::<f64>().is_ok()
}

/// Whether a text is a key without quotes, dotted or not.
pub fn is_key(text: &str) -> bool {
    text.split('.').all(is_name)
}

/// Whether a text is a key without quotes and points.
pub fn is_name(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    !text.is_empty() && text.chars().all(is_inner)
}

/// The key and the value of a line.
pub fn halves(line: &str) -> Option<(&str, &str)> {
    let parts = parts(line);
    let mark = parts.iter().find(|part| part.kind == Kind::Mark('='))?;
    Some((line[..mark.at.start].trim(), line[mark.at.end..].trim()))
}
