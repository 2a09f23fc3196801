//! `${…}` in a value: the value of a name, or arithmetic over names.
//!
//! Names are parameters in the layers of a block, and dotted keys elsewhere: the caller resolves them. A string that is
//! a single `${…}` becomes the value with its type; inside a longer string the value becomes text. Expressions contain
//! numbers, `true` and `false`, names, `'text'` or `"text"`, `[lists]`, `+ - * / % **`, comparisons, `in`, `and`, `or`,
//! `not`, the functions of `functions.rs` and parentheses. Integers stay integers if the result is whole, and results
//! are equal on every machine. `$${` is a literal `${`.

mod comparison;
mod formula;
mod parser;

use super::template::{Part, is_template, parts};
use crate::diagnostic::{Diagnostic, Span, Wrong, nearest};
use crate::spec::document::{Entry, Node, Table, Value};
pub use comparison::{Relation, compared};
pub use formula::{Formula, holds};
use parser::{Parser, Token, WORDS, tokens};

/// The values of names.
pub trait Names {
    /// The value of a name, with its source place; or what is wrong with the name.
    fn value(&self, name: &str) -> Result<Node, Wrong>;

    /// The syntax of names.
    fn dialect(&self) -> Dialect {
        Dialect::File
    }
}

/// The syntax of names and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// In experiment files, where names are keys and `/` divides.
    File,
    /// In filters over runs. Names of metrics contain a `/`, such as `valid/loss`, so it only divides after a space. A
    /// number may have a unit of time, such as `2d`, and is then in seconds, or of memory, such as `2GiB`, and is then in
    /// bytes.
    Filter,
}

/// Parameters by name. A value keeps its source place.
pub type Arguments = Vec<(String, Node)>;

impl Names for Arguments {
    fn value(&self, name: &str) -> Result<Node, Wrong> {
        if let Some((_, node)) = self.iter().rev().find(|(known, _)| known == name) {
            return Ok(node.clone());
        }
        let known = || self.iter().map(|(known, _)| known.as_str());
        let help = match nearest(name, known()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if self.is_empty() => {
                "names without a dot are parameters of `[model.blocks.<name>]`; keys have a dot: `${values.width}`".into()
            }
            None => {
                let known: Vec<_> = known().map(|name| format!("`{name}`")).collect();
                format!("the parameters here are {}", known.join(", "))
            }
        };
        Err(Wrong::new(format!("there is no parameter `{name}`"), help))
    }
}

/// The value of an expression without `${` and `}`, as conditions are written. `span` is its place.
pub fn evaluate(source: &str, span: Span, names: &dyn Names) -> Result<Value, Box<Diagnostic>> {
    let result = Parser::new(source, names).whole();
    result.map_err(|Wrong { message, help }| {
        let message = format!("`{}`: {message}", shown(source));
        Box::new(Diagnostic::error("expression", message).at(span).help(help))
    })
}

/// The start of a long expression.
fn shown(source: &str) -> String {
    const SHOWN: usize = 60;
    let mut shown: String = source.chars().take(SHOWN).collect();
    if shown.len() < source.len() {
        shown.push('…');
    }
    shown
}

/// `node` with every `${…}` in it replaced.
pub fn substitute(node: &Node, names: &dyn Names) -> Result<Node, Box<Diagnostic>> {
    let value = match &node.value {
        Value::Str(text) if is_template(text) => return substitute_text(text, node, names),
        Value::Array(items) => {
            let items = items.iter().map(|item| substitute(item, names));
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Value::Table(table) => Value::Table(substitute_table(table, names)?),
        other => other.clone(),
    };
    Ok(Node {
        span: node.span,
        value,
    })
}

/// `table` with every `${…}` in its values replaced, except in nested `layers`, which may have their own names.
pub fn substitute_table(table: &Table, names: &dyn Names) -> Result<Table, Box<Diagnostic>> {
    let entries = table.entries.iter().map(|entry| {
        let node = match entry.key.as_str() {
            "layers" => entry.node.clone(),
            _ => substitute(&entry.node, names)?,
        };
        Ok(Entry {
            node,
            ..entry.clone()
        })
    });
    Ok(Table {
        entries: entries.collect::<Result<_, Box<Diagnostic>>>()?,
    })
}

/// A text with every `${…}` in it replaced.
pub(in crate::spec) fn substitute_text(
    text: &str,
    node: &Node,
    names: &dyn Names,
) -> Result<Node, Box<Diagnostic>> {
    let Some(parts) = parts(text) else {
        return Err(Box::new(unclosed(text, node.span)));
    };
    if let [Part::Expression(inner)] = parts[..] {
        // A single name keeps the place of its value, which later messages point at.
        if let [Token::Name(name)] = tokens(inner, Dialect::File)[..]
            && let Ok(node) = names.value(name)
        {
            return Ok(node);
        }
        let value = evaluate_part(inner, node.span, names)?;
        return Ok(placed(value, node.span));
    }
    let mut result = String::new();
    for part in parts {
        match part {
            Part::Text(text) => result.push_str(text),
            Part::Escape => result.push_str("${"),
            Part::Expression(inner) => {
                result.push_str(&as_text(&evaluate_part(inner, node.span, names)?))
            }
        }
    }
    Ok(Node {
        span: node.span,
        value: Value::Str(result),
    })
}

/// The value of the text between `${` and `}`.
pub(in crate::spec) fn evaluate_part(
    source: &str,
    span: Span,
    names: &dyn Names,
) -> Result<Value, Box<Diagnostic>> {
    let result = Parser::new(source, names).whole();
    result.map_err(|Wrong { message, help }| {
        let message = format!("`${{{}}}`: {message}", shown(source));
        Box::new(Diagnostic::error("expression", message).at(span).help(help))
    })
}

pub(in crate::spec) fn unclosed(text: &str, span: Span) -> Diagnostic {
    let message = format!("`${{` without `}}` in `{text}`");
    Diagnostic::error("expression", message)
        .at(span)
        .help("close it with `}`; for `${` itself write `$${`")
}

/// A value inside a longer text.
pub(in crate::spec) fn as_text(value: &Value) -> String {
    match value {
        Value::Str(text) => text.clone(),
        other => other.to_toml(),
    }
}

/// A computed value at the place of its expression.
pub(in crate::spec) fn placed(value: Value, span: Span) -> Node {
    let value = match value {
        Value::Array(items) => {
            let items = items.into_iter().map(|item| placed(item.value, span));
            Value::Array(items.collect())
        }
        other => other,
    };
    Node { span, value }
}

/// The names in an expression of an experiment file.
pub fn names_in(source: &str) -> Vec<&str> {
    names_by(source, Dialect::File)
}

/// The names in an expression.
pub fn names_by(source: &str, dialect: Dialect) -> Vec<&str> {
    let tokens = tokens(source, dialect);
    let is_call = |at: usize| tokens.get(at + 1) == Some(&Token::Sign("("));
    let names = tokens
        .iter()
        .enumerate()
        .filter_map(|(at, token)| match token {
            Token::Name(name) if !WORDS.contains(name) && !is_call(at) => Some(*name),
            _ => None,
        });
    names.collect()
}

/// The expression with some names replaced by their values.
pub(in crate::spec) fn written_out(source: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
    let (mut text, mut rest) = (String::new(), source);
    for name in names_in(source) {
        // Names are slices of the source, in order.
        let at = name.as_ptr() as usize - rest.as_ptr() as usize;
        text.push_str(&rest[..at]);
        text.push_str(&value(name).unwrap_or_else(|| name.to_owned()));
        rest = &rest[at + name.len()..];
    }
    text + rest
}

/// A value as an expression; `None` if expressions cannot contain it.
pub(in crate::spec) fn literal(value: &Value) -> Option<String> {
    Some(match value {
        Value::Bool(value) => value.to_string(),
        Value::Int(value) if *value < 0 => format!("({value})"),
        Value::Int(value) => value.to_string(),
        Value::Float(value) if !value.is_finite() => return None,
        Value::Float(value) if *value < 0.0 => format!("({value:?})"),
        Value::Float(value) => format!("{value:?}"),
        Value::Str(text) if !text.contains('\'') && !text.contains('}') => format!("'{text}'"),
        Value::Array(items) => {
            let items: Option<Vec<_>> = items.iter().map(|item| literal(&item.value)).collect();
            format!("[{}]", items?.join(", "))
        }
        Value::Str(_) | Value::Datetime(_) | Value::Table(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Span;

    fn evaluated(text: &str) -> Result<String, String> {
        let node = |value| Node {
            span: Span::default(),
            value,
        };
        let arguments = vec![
            ("width".into(), node(Value::Int(12))),
            ("rate".into(), node(Value::Float(0.5))),
            ("kind".into(), node(Value::Str("relu".into()))),
        ];
        let result = substitute(&node(Value::Str(text.into())), &arguments);
        result
            .map(|node| node.value.to_toml())
            .map_err(|d| format!("{}; {}", d.message, d.helps.join("; ")))
    }

    #[test]
    fn values_keep_their_type_and_arithmetic_binds_as_usual() {
        let cases = [
            ("${width}", "12"),
            ("${ kind }", "\"relu\""),
            ("a ${kind} of ${width}", "\"a relu of 12\""),
            ("${width / 4 + 2 * (1 + 2)}", "9"),
            ("${width / 5}", "2.4"),
            ("${-width % 5}", "3"),
            ("${1e-2 * width}", "0.12"),
            ("${rate > 0 and not width == 3 or false}", "true"),
            ("${kind == 'relu'}", "true"),
            ("${kind == \"relu\" and \"a'b\" != 'a\"b'}", "true"),
            ("${9223372036854775807 * 2}", "1.8446744073709552e19"),
        ];
        for (text, expected) in cases {
            let result = evaluated(text).unwrap_or("error".into());
            assert_eq!(result, expected, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let texts = [
            "${widht}",
            "${}",
            "${width +}",
            "${(width}",
            "${width / 0}",
            "${kind + 1}",
            "${width and true}",
            "${1 2}",
            "${width",
            "x ${width",
            "${1.2.3}",
            "${$}",
        ];
        let wrong = texts.map(|text| format!("{text}\n  {}", evaluated(text).unwrap_err()));
        insta::assert_snapshot!(wrong.join("\n"));
    }
}
