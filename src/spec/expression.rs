//! `${…}` in a value: what a name stands for, or a little arithmetic over names.
//!
//! Names are parameters in the layers of a block, and dotted keys elsewhere: who calls says what they stand for.
//! A string that is one `${…}` takes the value with its type; inside a longer string the value becomes
//! text. There are numbers, `true` and `false`, names, `'text'`, `[lists]`, `+ - * / % **`, comparisons, `in`,
//! `and`, `or`, `not`, the functions of `functions.rs` and parentheses. Whole numbers stay whole where the
//! result is, and results are the same on every machine. `$${` stands for `${` itself.

use super::functions::{self, FUNCTIONS, arithmetic, number, power, same};
use super::template::{Part, is_template, parts};
use crate::diagnostic::{Diagnostic, Span, nearest};
use crate::spec::document::{Entry, Node, Table, Value};

/// What names stand for.
pub trait Names {
    /// The value of a name, at the place where it was written; or what is wrong with the name.
    fn value(&self, name: &str) -> Result<Node, Wrong>;
}

/// A message and what to do about it.
pub type Wrong = (String, String);

/// Parameters by name. A value keeps the place where it was written.
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
                "`${…}` is for the parameters of `[model.blocks.<name>]`; write a value here".into()
            }
            None => {
                let known: Vec<_> = known().map(|name| format!("`{name}`")).collect();
                format!("the parameters here are {}", known.join(", "))
            }
        };
        Err((format!("there is no parameter `{name}`"), help))
    }
}

/// The value of an expression without `${` and `}`, as conditions are written. `span` is where it stands.
pub fn evaluate(source: &str, span: Span, names: &dyn Names) -> Result<Value, Box<Diagnostic>> {
    let result = Parser::new(source, names).whole();
    result.map_err(|(message, help)| {
        let message = format!("`{}`: {message}", shown(source));
        Box::new(Diagnostic::error("expression", message).at(span).help(help))
    })
}

/// The names in an expression, functions left out.
pub fn names(source: &str) -> Vec<&str> {
    const WORDS: [&str; 6] = ["and", "or", "not", "in", "true", "false"];
    let tokens = tokens(source);
    let is_called = |at: usize| tokens.get(at + 1) == Some(&Token::Sign("("));
    let names = tokens
        .iter()
        .enumerate()
        .filter_map(|(at, token)| match token {
            Token::Name(name) if !WORDS.contains(name) && !is_called(at) => Some(*name),
            _ => None,
        });
    names.collect()
}

/// The head of a long expression.
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

/// `table` with every `${…}` in its values replaced, but for nested `layers`, which may use names of
/// their own.
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
pub(super) fn substitute_text(
    text: &str,
    node: &Node,
    names: &dyn Names,
) -> Result<Node, Box<Diagnostic>> {
    let Some(parts) = parts(text) else {
        return Err(Box::new(unclosed(text, node.span)));
    };
    if let [Part::Expression(inner)] = parts[..] {
        // A name alone keeps the place of its value, which is what a later message has to point at.
        if let [Token::Name(name)] = tokens(inner)[..]
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

/// The value of what stands between `${` and `}`.
pub(super) fn evaluate_part(
    source: &str,
    span: Span,
    names: &dyn Names,
) -> Result<Value, Box<Diagnostic>> {
    let result = Parser::new(source, names).whole();
    result.map_err(|(message, help)| {
        let message = format!("`${{{}}}`: {message}", shown(source));
        Box::new(Diagnostic::error("expression", message).at(span).help(help))
    })
}

pub(super) fn unclosed(text: &str, span: Span) -> Diagnostic {
    let message = format!("`${{` without `}}` in `{text}`");
    Diagnostic::error("expression", message)
        .at(span)
        .help("close it with `}`; for `${` itself write `$${`")
}

/// A value inside a longer text.
pub(super) fn as_text(value: &Value) -> String {
    match value {
        Value::Str(text) => text.clone(),
        other => other.to_toml(),
    }
}

/// A computed value at the place of its expression.
pub(super) fn placed(value: Value, span: Span) -> Node {
    let value = match value {
        Value::Array(items) => {
            let items = items.into_iter().map(|item| placed(item.value, span));
            Value::Array(items.collect())
        }
        other => other,
    };
    Node { span, value }
}

/// The names in an expression.
pub(super) fn names_in(source: &str) -> Vec<&str> {
    let tokens = tokens(source);
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

/// The expression with some names written out as their values.
pub(super) fn written_out(source: &str, value: &dyn Fn(&str) -> Option<String>) -> String {
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

/// A value as an expression; `None` for what expressions cannot hold.
pub(super) fn literal(value: &Value) -> Option<String> {
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

/// Recursive descent, one method for each strength of binding.
struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    names: &'a dyn Names,
    /// How deep parentheses and signs are nested.
    depth: usize,
}

/// Deeper nesting than this is no arithmetic that a person wrote.
const MAX_DEPTH: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Number(&'a str),
    Name(&'a str),
    Text(&'a str),
    Sign(&'a str),
}

impl<'a> Parser<'a> {
    fn new(source: &'a str, names: &'a dyn Names) -> Self {
        Self {
            tokens: tokens(source),
            at: 0,
            names,
            depth: 0,
        }
    }

    fn whole(mut self) -> Result<Value, Wrong> {
        let value = self.any_of()?;
        match self.peek() {
            None => Ok(value),
            Some(token) => Err(unexpected(token)),
        }
    }

    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    fn accept(&mut self, signs: &[&str]) -> Option<&'a str> {
        let found = match self.peek()? {
            Token::Sign(text) | Token::Name(text) if signs.contains(&text) => text,
            _ => return None,
        };
        self.at += 1;
        Some(found)
    }

    fn any_of(&mut self) -> Result<Value, Wrong> {
        let mut left = self.all_of()?;
        while self.accept(&["or"]).is_some() {
            let right = self.all_of()?;
            left = Value::Bool(truth(&left)? | truth(&right)?);
        }
        Ok(left)
    }

    fn all_of(&mut self) -> Result<Value, Wrong> {
        let mut left = self.comparison()?;
        while self.accept(&["and"]).is_some() {
            let right = self.comparison()?;
            left = Value::Bool(truth(&left)? & truth(&right)?);
        }
        Ok(left)
    }

    fn comparison(&mut self) -> Result<Value, Wrong> {
        self.nested(Self::plain_comparison)
    }

    /// Recursion of a bounded depth.
    fn nested(&mut self, parse: fn(&mut Self) -> Result<Value, Wrong>) -> Result<Value, Wrong> {
        if self.depth >= MAX_DEPTH {
            return Err(("it is nested too deeply".into(), "write it shorter".into()));
        }
        self.depth += 1;
        let value = parse(self);
        self.depth -= 1;
        value
    }

    fn plain_comparison(&mut self) -> Result<Value, Wrong> {
        if self.accept(&["not"]).is_some() {
            let value = self.comparison()?;
            return Ok(Value::Bool(!truth(&value)?));
        }
        let left = self.sum()?;
        if self.accept(&["in"]).is_some() {
            return match self.sum()? {
                Value::Array(items) => {
                    let found = items.iter().any(|item| same(&item.value, &left));
                    Ok(Value::Bool(found))
                }
                other => Err((
                    format!("`in` takes a list, found {}", other.to_toml()),
                    "for example: `${model.type in ['mlp', 'cnn']}`".into(),
                )),
            };
        }
        let Some(sign) = self.accept(&["==", "!=", "<=", ">=", "<", ">"]) else {
            return Ok(left);
        };
        let right = self.sum()?;
        if let (Value::Str(_) | Value::Bool(_), "==" | "!=") = (&left, sign) {
            return Ok(Value::Bool((left == right) == (sign == "==")));
        }
        let (a, b) = (number(&left)?, number(&right)?);
        Ok(Value::Bool(match sign {
            "==" => a == b,
            "!=" => a != b,
            "<=" => a <= b,
            ">=" => a >= b,
            "<" => a < b,
            _ => a > b,
        }))
    }

    fn sum(&mut self) -> Result<Value, Wrong> {
        let mut left = self.product()?;
        while let Some(sign) = self.accept(&["+", "-"]) {
            let right = self.product()?;
            left = arithmetic(&left, sign, &right)?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Value, Wrong> {
        let mut left = self.factor()?;
        while let Some(sign) = self.accept(&["*", "/", "%"]) {
            let right = self.factor()?;
            left = arithmetic(&left, sign, &right)?;
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Value, Wrong> {
        self.nested(Self::plain_factor)
    }

    fn plain_factor(&mut self) -> Result<Value, Wrong> {
        if self.accept(&["-"]).is_some() {
            let value = self.factor()?;
            return arithmetic(&Value::Int(0), "-", &value);
        }
        let base = self.atom()?;
        match self.accept(&["**"]) {
            Some(_) => power(&base, &self.factor()?),
            None => Ok(base),
        }
    }

    fn atom(&mut self) -> Result<Value, Wrong> {
        if self.accept(&["("]).is_some() {
            let value = self.any_of()?;
            return match self.accept(&[")"]) {
                Some(_) => Ok(value),
                None => Err(("`(` is not closed".into(), "add `)`".into())),
            };
        }
        if self.accept(&["["]).is_some() {
            let items = self.items("[", "]")?;
            let items = items.into_iter().map(|item| placed(item, Span::default()));
            return Ok(Value::Array(items.collect()));
        }
        let token = self.peek();
        self.at += 1;
        match token {
            Some(Token::Number(text)) => {
                let whole = text.parse().map(Value::Int);
                let value = whole.or_else(|_| text.parse().map(Value::Float));
                value.map_err(|_| (format!("`{text}` is not a number"), "write a number".into()))
            }
            Some(Token::Text(text)) => Ok(Value::Str(text.to_owned())),
            Some(Token::Name("true")) => Ok(Value::Bool(true)),
            Some(Token::Name("false")) => Ok(Value::Bool(false)),
            Some(Token::Name(name)) if self.accept(&["("]).is_some() => {
                if !FUNCTIONS.contains(&name) {
                    return Err(functions::unknown(name));
                }
                let arguments = self.items(&format!("{name}("), ")")?;
                functions::call(name, &arguments)
            }
            Some(Token::Name(name)) => Ok(self.names.value(name)?.value),
            Some(sign) => Err(unexpected(sign)),
            None => Err(("the expression ends too early".into(), EXAMPLE.into())),
        }
    }

    /// Values with commas between them, up to `close`.
    fn items(&mut self, open: &str, close: &str) -> Result<Vec<Value>, Wrong> {
        let mut items = Vec::new();
        while self.accept(&[close]).is_none() {
            if !items.is_empty() && self.accept(&[","]).is_none() {
                return Err((format!("`{open}` is not closed"), format!("add `{close}`")));
            }
            if !items.is_empty() && self.accept(&[close]).is_some() {
                break;
            }
            items.push(self.any_of()?);
        }
        Ok(items)
    }
}

/// Names that mean something in an expression.
const WORDS: [&str; 6] = ["and", "or", "not", "in", "true", "false"];

const EXAMPLE: &str = "there are names, numbers, `+ - * / % **`, comparisons, `and`, `or`, `not`, functions such as `min(a, b)` or `round(x)`: for example `${2 * channels}`";

fn unexpected(token: Token<'_>) -> Wrong {
    let (Token::Number(text) | Token::Name(text) | Token::Text(text) | Token::Sign(text)) = token;
    (format!("`{text}` is not expected there"), EXAMPLE.into())
}

fn tokens(source: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = source.trim_start();
    while let Some(first) = rest.chars().next() {
        if let Some((text, behind)) = rest.strip_prefix('\'').and_then(|r| r.split_once('\'')) {
            tokens.push(Token::Text(text));
            rest = behind.trim_start();
            continue;
        }
        let word = |inside: fn(char) -> bool| rest.find(|c| !inside(c)).unwrap_or(rest.len());
        let (len, make): (_, fn(_) -> _) = if first.is_ascii_digit() {
            let len = word(|c| c.is_ascii_alphanumeric() || "._".contains(c));
            // The sign of an exponent belongs to the number: 1e-5.
            let signed = rest[..len].ends_with(['e', 'E']) && rest[len..].starts_with(['-', '+']);
            let digits = rest[len..].chars().skip(1).take_while(char::is_ascii_digit);
            (
                len + if signed { 1 + digits.count() } else { 0 },
                Token::Number,
            )
        } else if first.is_alphabetic() || first == '_' {
            (
                word(|c| c.is_alphanumeric() || "_.".contains(c)),
                Token::Name,
            )
        } else {
            let double = ["==", "!=", "<=", ">=", "**"]
                .iter()
                .any(|s| rest.starts_with(s));
            (if double { 2 } else { first.len_utf8() }, Token::Sign)
        };
        tokens.push(make(&rest[..len]));
        rest = rest[len..].trim_start();
    }
    tokens
}

fn truth(value: &Value) -> Result<bool, Wrong> {
    match value {
        Value::Bool(value) => Ok(*value),
        other => Err((
            format!("{} is not `true` or `false`", other.to_toml()),
            "compare it, as in `${num_layers > 1}`".into(),
        )),
    }
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
