//! A single comparison by size, whose sides are evaluated apart from each other.

use super::parser::{Token, tokens};
use super::{Dialect, Formula};
use crate::diagnostic::Wrong;

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
}

impl Relation {
    /// Whether it is true of two numbers.
    pub fn holds(self, left: f64, right: f64) -> bool {
        match self {
            Self::Below => left < right,
            Self::AtMost => left <= right,
            Self::Above => left > right,
            Self::AtLeast => left >= right,
        }
    }

    /// Whether the left side must not be large.
    pub fn is_upper(self) -> bool {
        matches!(self, Self::Below | Self::AtMost)
    }

    /// The same with the sides exchanged.
    pub fn turned(self) -> Self {
        match self {
            Self::Below => Self::Above,
            Self::AtMost => Self::AtLeast,
            Self::Above => Self::Below,
            Self::AtLeast => Self::AtMost,
        }
    }
}

/// The sides of a comparison by size, such as `memory_bytes < 2e9`. The error is a phrase with a remedy; `example` is a
/// comparison in it.
pub fn compared<'a>(
    source: &'a str,
    dialect: Dialect,
    example: &str,
) -> Result<(&'a str, Relation, &'a str), Wrong> {
    let wrong = |message: &str, help: String| {
        let message = format!("`{source}`: {message}");
        Err(Wrong::new(message, help))
    };
    let formula = Formula::parse(source).map_err(|Wrong { message, help }| {
        let help = help.replace("optimizer.type == 'sgd'", example);
        Wrong::new(format!("`{source}`: {message}"), help)
    })?;
    let inner = match formula {
        Formula::Leaf(_) => source,
        Formula::All(parts) => {
            let parts = parts.iter().map(|part| match part {
                Formula::Leaf(part) => Some(format!("\"{part}\"")),
                _ => None,
            });
            let parts: Option<Vec<String>> = parts.collect();
            let help = match parts {
                Some(parts) => format!("list its parts: {}", parts.join(", ")),
                None => "list its parts as separate texts".into(),
            };
            return wrong("only a single comparison is expected here", help);
        }
        Formula::Any(_) | Formula::Not(_) | Formula::IsSet(_) => {
            return wrong(
                "`or`, `not` and `is_set` have no distance from a limit",
                format!("use comparisons by size, as in `{example}`"),
            );
        }
    };
    let tokens = tokens(inner, dialect);
    let signs = tokens.iter().filter_map(|token| match token {
        Token::Sign(sign @ ("<" | "<=" | ">" | ">=" | "==" | "!=" | "=")) => Some(*sign),
        Token::Name(word @ "in") => Some(*word),
        _ => None,
    });
    let signs: Vec<&str> = signs.collect();
    // Signs are slices of the source.
    let place = |sign: &str| sign.as_ptr() as usize - inner.as_ptr() as usize;
    let sign = match signs[..] {
        [] => {
            return wrong(
                "it compares nothing",
                format!("compare it with a limit, as in `{example}`"),
            );
        }
        [sign] => sign,
        [first, second, ..] => {
            let (start, end) = (place(first) + first.len(), place(second));
            let parts = [&inner[..end], &inner[start..]].map(str::trim);
            return wrong(
                "only a single comparison is expected here",
                format!("list its parts: \"{}\", \"{}\"", parts[0], parts[1]),
            );
        }
    };
    let relation = match sign {
        "<" => Relation::Below,
        "<=" => Relation::AtMost,
        ">" => Relation::Above,
        ">=" => Relation::AtLeast,
        sign => {
            return wrong(
                &format!("`{sign}` has no distance from a limit"),
                format!("use `<`, `<=`, `>` or `>=`, as in `{example}`"),
            );
        }
    };
    let at = place(sign);
    let (left, right) = (inner[..at].trim(), inner[at + sign.len()..].trim());
    if left.is_empty() || right.is_empty() {
        return wrong(
            &format!("nothing is on one side of `{sign}`"),
            format!("use two sides, as in `{example}`"),
        );
    }
    Ok((left, relation, right))
}
