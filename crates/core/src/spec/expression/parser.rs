//! Parses an expression and evaluates it on the way.

use super::{Dialect, Names, placed};
use crate::diagnostic::{Span, Wrong};
use crate::spec::document::Value;
use crate::spec::functions::{self, FUNCTIONS, arithmetic, number, power, same};
use crate::spec::kind::{parse_bytes, parse_duration};

/// Recursive descent, one method per precedence level.
pub(super) struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    names: &'a dyn Names,
    /// The nesting depth of parentheses and signs.
    depth: usize,
}

/// Deeper nesting than this was not written by a person.
const MAX_DEPTH: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Number(&'a str),
    Name(&'a str),
    Text(&'a str),
    Sign(&'a str),
}

impl<'a> Parser<'a> {
    pub(super) fn new(source: &'a str, names: &'a dyn Names) -> Self {
        Self {
            tokens: tokens(source, names.dialect()),
            at: 0,
            names,
            depth: 0,
        }
    }

    pub(super) fn whole(mut self) -> Result<Value, Wrong> {
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
            return Err(Wrong::new("it is nested too deeply", "simplify it"));
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
                other => Err(Wrong::new(
                    format!("`in` takes a list, found {}", other.to_toml()),
                    "for example: `${model.type in ['mlp', 'cnn']}`",
                )),
            };
        }
        let Some(sign) = self.accept(&["==", "!=", "<=", ">=", "<", ">"]) else {
            return Ok(left);
        };
        let right = self.sum()?;
        if let "==" | "!=" = sign {
            return Ok(Value::Bool(same(&left, &right) == (sign == "==")));
        }
        let (a, b) = (number(&left)?, number(&right)?);
        Ok(Value::Bool(match sign {
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
                None => Err(Wrong::new("`(` is not closed", "add `)`")),
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
                match (value, self.names.dialect()) {
                    (Ok(value), _) => Ok(value),
                    (Err(_), Dialect::File) => Err(Wrong::new(
                        format!("`{text}` is not a number"),
                        "use a number",
                    )),
                    (Err(_), Dialect::Filter) => match (parse_duration(text), parse_bytes(text)) {
                        (Ok(duration), _) => Ok(Value::Float(duration.as_secs_f64())),
                        (_, Some(bytes)) => Ok(Value::Int(bytes as i64)),
                        (Err(help), None) => Err(Wrong::new(
                            format!("`{text}` is not a number, a duration or a size"),
                            format!("{}; sizes are such as `2GiB`", help.0),
                        )),
                    },
                }
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
            None => Err(Wrong::new("the expression is incomplete", EXAMPLE)),
        }
    }

    /// Comma-separated values, up to `close`.
    fn items(&mut self, open: &str, close: &str) -> Result<Vec<Value>, Wrong> {
        let mut items = Vec::new();
        while self.accept(&[close]).is_none() {
            if !items.is_empty() && self.accept(&[","]).is_none() {
                return Err(Wrong::new(
                    format!("`{open}` is not closed"),
                    format!("add `{close}`"),
                ));
            }
            if !items.is_empty() && self.accept(&[close]).is_some() {
                break;
            }
            items.push(self.any_of()?);
        }
        Ok(items)
    }
}

/// The quotes of texts.
pub(super) const QUOTES: [char; 2] = ['\'', '"'];

/// Names with a meaning in expressions.
pub(super) const WORDS: [&str; 6] = ["and", "or", "not", "in", "true", "false"];

const EXAMPLE: &str = "expressions contain names, numbers, `+ - * / % **`, comparisons, `and`, `or`, `not` and functions such as `min(a, b)` or `round(x)`: for example `${2 * channels}`";

fn unexpected(token: Token<'_>) -> Wrong {
    let (Token::Number(text) | Token::Name(text) | Token::Text(text) | Token::Sign(text)) = token;
    let help = match token {
        Token::Sign("=") => "use `==` to compare",
        Token::Sign("$") => {
            "this is already an expression: write names without `${` and `}`, as in `optimizer.type == 'sgd'`"
        }
        _ => EXAMPLE,
    };
    Wrong::new(format!("unexpected `{text}`"), help)
}

pub(super) fn tokens(source: &str, dialect: Dialect) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = source.trim_start();
    while let Some(first) = rest.chars().next() {
        let quoted = |quote| rest.strip_prefix(quote)?.split_once(quote);
        if let Some((text, behind)) = QUOTES.into_iter().find_map(quoted) {
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
            let len = match dialect {
                Dialect::File => word(|c| c.is_alphanumeric() || "_.".contains(c)),
                Dialect::Filter => word(|c| c.is_alphanumeric() || "_./".contains(c)),
            };
            (len, Token::Name)
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
        other => Err(Wrong::new(
            format!("{} is not `true` or `false`", other.to_toml()),
            "compare it, as in `${num_layers > 1}`",
        )),
    }
}
