//! Conditions: `and`, `or`, `not` and `is_set(name)` over comparisons.
//!
//! They are parsed here and not by the parser of expressions, since the part after `and` must not be evaluated if the
//! part before it is false.

use super::parser::QUOTES;
use super::{Dialect, Names, evaluate, names_by};
use crate::diagnostic::{Diagnostic, Span, Wrong};
use crate::spec::document::Value;

/// A condition, parsed where its evaluation may end early.
#[derive(Clone, Debug, PartialEq)]
pub enum Formula {
    /// Some of these.
    Any(Vec<Formula>),
    /// All of these.
    All(Vec<Formula>),
    /// Not this.
    Not(Box<Formula>),
    /// The name has a value.
    IsSet(String),
    /// An expression.
    Leaf(String),
}

impl Formula {
    /// Parses a condition. The remaining parts are not parsed further.
    pub fn parse(source: &str) -> Result<Self, Wrong> {
        Self::nested(source, 0)
    }

    fn nested(source: &str, depth: usize) -> Result<Self, Wrong> {
        const MAX_DEPTH: usize = 64;
        if depth > MAX_DEPTH {
            return Err(Wrong::new("it is nested too deeply", "simplify it"));
        }
        let all = |parts: Vec<&str>| -> Result<Vec<Self>, Wrong> {
            let parts = parts.into_iter();
            parts.map(|part| Self::nested(part, depth + 1)).collect()
        };
        let source = source.trim();
        if source.is_empty() {
            let help = "use a comparison, as in `optimizer.type == 'sgd'`";
            return Err(Wrong::new("missing condition", help));
        }
        match split(source, "or")? {
            parts if parts.len() > 1 => return Ok(Self::Any(all(parts)?)),
            _ => {}
        }
        match split(source, "and")? {
            parts if parts.len() > 1 => return Ok(Self::All(all(parts)?)),
            _ => {}
        }
        if let Some(rest) = source.strip_prefix("not")
            && !rest.starts_with(is_word)
        {
            return Ok(Self::Not(Box::new(Self::nested(rest, depth + 1)?)));
        }
        if let Some(inner) = in_parentheses(source) {
            return Self::nested(inner, depth + 1);
        }
        let asked = source.strip_prefix("is_set").map(str::trim_start);
        if let Some(asked) = asked.filter(|rest| rest.starts_with('(')) {
            let name = in_parentheses(asked).unwrap_or_default().trim();
            let is_key = !name.is_empty() && name.chars().all(|c| is_word(c) || "-/".contains(c));
            return if is_key {
                Ok(Self::IsSet(name.to_owned()))
            } else {
                Err(Wrong::new(
                    format!("`{source}` is not a single key"),
                    "use it as in `is_set(optimizer.momentum)`",
                ))
            };
        }
        Ok(Self::Leaf(source.to_owned()))
    }

    /// Its names, each with whether it is used in `is_set`, so that it need not have a value.
    pub fn names(&self, dialect: Dialect) -> Vec<(String, bool)> {
        let mut found = Vec::new();
        self.collect_names(dialect, &mut found);
        found
    }

    fn collect_names(&self, dialect: Dialect, found: &mut Vec<(String, bool)>) {
        let mut add = |name: &str, asked| match found.iter_mut().find(|(n, _)| n == name) {
            Some((_, known)) => *known |= asked,
            None => found.push((name.to_owned(), asked)),
        };
        match self {
            Self::Any(parts) | Self::All(parts) => {
                let parts = parts.iter();
                parts.for_each(|part| part.collect_names(dialect, found));
            }
            Self::Not(part) => part.collect_names(dialect, found),
            Self::IsSet(name) => add(name, true),
            Self::Leaf(source) => names_by(source, dialect)
                .into_iter()
                .for_each(|name| add(name, false)),
        }
    }

    /// Whether it is true, where `is_set` says which names have a value, and `leaf` whether an unparsed part is true.
    /// Parts that cannot affect the result are not evaluated.
    pub fn holds<E>(
        &self,
        is_set: &dyn Fn(&str) -> bool,
        leaf: &mut dyn FnMut(&str) -> Result<bool, E>,
    ) -> Result<bool, E> {
        match self {
            Self::Any(parts) => {
                for part in parts {
                    if part.holds(is_set, leaf)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::All(parts) => {
                for part in parts {
                    if !part.holds(is_set, leaf)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Not(part) => Ok(!part.holds(is_set, leaf)?),
            Self::IsSet(name) => Ok(is_set(name)),
            Self::Leaf(source) => leaf(source),
        }
    }
}

/// Whether an expression is true; it must be `true` or `false`. `span` is its place.
pub fn holds(source: &str, span: Span, names: &dyn Names) -> Result<bool, Box<Diagnostic>> {
    match evaluate(source, span, names)? {
        Value::Bool(holds) => Ok(holds),
        other => {
            let value = other.to_toml();
            let message = format!("`{source}` is {value}, which is neither true nor false");
            let refusal = Diagnostic::error("expression", message).at(span);
            Err(Box::new(
                refusal.help("compare it, as in `train.batch_size > 64`"),
            ))
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || "_.".contains(c)
}

/// Splits at a word outside quotes and parentheses.
fn split<'a>(source: &'a str, word: &str) -> Result<Vec<&'a str>, Wrong> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut quote) = (0, 0usize, None);
    let mut before = ' ';
    for (at, c) in source.char_indices() {
        match c {
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => {}
            _ if QUOTES.contains(&c) => quote = Some(c),
            '(' => depth += 1,
            ')' if depth == 0 => return Err(Wrong::new("`)` without `(`", "remove it")),
            ')' => depth -= 1,
            _ if depth == 0 && !is_word(before) && source[at..].starts_with(word) => {
                let behind = at + word.len();
                if !source[behind..].starts_with(is_word) {
                    parts.push(&source[start..at]);
                    start = behind;
                }
            }
            _ => {}
        }
        before = c;
    }
    if let Some(quote) = quote {
        return Err(Wrong::new(
            format!("`{quote}` is not closed"),
            format!("add `{quote}`"),
        ));
    }
    if depth > 0 {
        return Err(Wrong::new("`(` is not closed", "add `)`"));
    }
    parts.push(&source[start..]);
    Ok(parts)
}

/// The text between a first `(` and a matching last `)`.
fn in_parentheses(source: &str) -> Option<&str> {
    let inner = source.strip_prefix('(')?.strip_suffix(')')?;
    let (mut depth, mut quote) = (0i32, None);
    for c in inner.chars() {
        match c {
            _ if quote == Some(c) => quote = None,
            _ if quote.is_some() => {}
            _ if QUOTES.contains(&c) => quote = Some(c),
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            return None;
        }
    }
    Some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(source: &str) -> String {
        match Formula::parse(source) {
            Ok(formula) => format!("{formula:?}"),
            Err(Wrong { message, help }) => format!("{message}; {help}"),
        }
    }

    #[test]
    fn conditions_are_taken_apart_where_evaluation_may_end_early() {
        let sources = [
            "a.b == 'x or y' or c.d > 1 and not e.f",
            "(a.b == 1 or c.d == 2) and (e.f + 1) * 2 > 3",
            "not (a.b == 1) and is_set(c.d)",
            "order.ordinal == android.band",
            "is_set()",
            "is_set(a.b, c.d)",
            "a.b == 1 and",
            "(a.b == 1",
            "a.b == 1)",
            "a.b == 'x",
            "a.b == \"x and ('\" or valid/loss < 1",
            " ",
        ];
        let shown = sources.map(|source| format!("{source}\n  {}", parsed(source)));
        insta::assert_snapshot!(shown.join("\n"));
        assert!(parsed(&"(".repeat(9999)).contains("not closed"));
        let deep = format!("{}a.b == 1{}", "(".repeat(999), ")".repeat(999));
        assert!(parsed(&deep).contains("too deeply"));
    }
}
