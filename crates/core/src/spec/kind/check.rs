//! Whether a value is of a kind, and the message if it is not.

mod value;

use serde_json::Value as Json;

use super::Kind;
use crate::diagnostic::{Diagnostic, Span};
use crate::spec::document::{Node, Value};
use crate::spec::remedy;
use value::Checked;

/// Says what else would do where a single word is one of two kinds.
fn with_other(mut wrong: Vec<Diagnostic>, kinds: (&Kind, &Kind)) -> Vec<Diagnostic> {
    if let (Kind::OneOf(_), Kind::Objective) = kinds
        && let [Diagnostic { helps, .. }] = wrong.as_mut_slice()
        && let [help] = helps.as_mut_slice()
    {
        help.push_str(&format!(", or {}", kinds.1.expected()));
    }
    if let (Kind::OneOf(names), second) = kinds
        && let [(name, _)] = names[..]
        && let [Diagnostic { helps, .. }] = wrong.as_mut_slice()
        && *helps == [format!("use `{name}`")]
    {
        helps[0] = format!("use `{name}`, or {}", second.expected());
    }
    wrong
}

impl Kind {
    /// Checks a value; `path` is its name in messages. Every refusal contains a remedy; a list has one for each invalid
    /// item.
    pub fn check(&self, path: &str, node: &Node) -> Vec<Diagnostic> {
        self.check_as(path, node, None)
    }

    /// Like [`Kind::check`], with the key's default, which examples may be based on.
    pub fn check_as(&self, path: &str, node: &Node, default: Option<&Json>) -> Vec<Diagnostic> {
        if let Kind::Either(first, second) = self {
            let kinds = (&**first, &**second);
            let check = |kind: &Kind| kind.check_as(path, node, default);
            let (first, second) = (check(first), check(second));
            if let ((Kind::Indexed(some), Kind::OneOf(more)), false) =
                (kinds, first.is_empty() || second.is_empty())
            {
                return vec![self.no_name(path, node, [&some[..], more].concat())];
            }
            return match (first.is_empty() || second.is_empty(), &node.value) {
                (true, _) => Vec::new(),
                (_, Value::Array(_)) => second,
                (_, Value::Int(_)) if matches!(self, Kind::Either(f, _) if matches!(**f, Kind::OneOf(_))) => {
                    second
                }
                (_, Value::Str(text))
                    if matches!(kinds.1, Kind::Objective) && text.contains('/') =>
                {
                    second
                }
                _ => with_other(first, kinds),
            };
        }
        let item = match self {
            Kind::List { item, .. } | Kind::Tuple { item, .. } => Some(item),
            _ => None,
        };
        if let (Some(item), Value::Array(items)) = (item, &node.value) {
            let each = items.iter().enumerate();
            let mut wrong: Vec<_> = each
                .flat_map(|(at, node)| item.check(&format!("{path}[{at}]"), node))
                .collect();
            wrong.extend(
                self.refusal(path, node)
                    .err()
                    .map(|d| self.with_example(path, default, *d)),
            );
            return wrong;
        }
        let refused = self.refusal(path, node).err();
        refused
            .map(|d| self.with_example(path, default, *d))
            .into_iter()
            .collect()
    }

    fn with_example(
        &self,
        path: &str,
        default: Option<&Json>,
        mut diagnostic: Diagnostic,
    ) -> Diagnostic {
        if diagnostic.helps.is_empty() {
            let key = path.rsplit('.').next().unwrap_or(path);
            let help = if key.contains('[') && matches!(self, Kind::Int(..) | Kind::Float { .. }) {
                format!("use {}", self.expected())
            } else if key.contains('[') {
                format!("use {}, for example {}", self.expected(), self.example())
            } else {
                format!("for example: `{key} = {}`", self.example_for(path, default))
            };
            diagnostic.helps.push(help);
        }
        diagnostic
    }

    fn refusal(&self, path: &str, node: &Node) -> Result<(), Box<Diagnostic>> {
        let checked = Checked {
            kind: self,
            path,
            node,
        };
        let found = match &node.value {
            Value::Bool(_) if matches!(self, Kind::Bool) => Some(Ok(())),
            Value::Int(_) | Value::Float(_) => checked.number(),
            Value::Str(text) => checked.text(text),
            Value::Array(items) => checked.items(items),
            _ => None,
        };
        found.unwrap_or_else(|| checked.other())
    }

    /// A value outside two sets of names.
    fn no_name(
        &self,
        path: &str,
        node: &Node,
        names: Vec<(&'static str, &'static str)>,
    ) -> Diagnostic {
        if let Value::Str(written) = &node.value {
            let name = written.split_once(':').map_or(&**written, |(name, _)| name);
            return self.unknown_value(path, node, name, &names);
        }
        let found = node.value.kind();
        let message = format!("`{path}` must be {}, found {found}", self.expected());
        let diagnostic = Diagnostic::error("wrong-type", message).at(node.span);
        match node.value {
            Value::Array(_) => diagnostic.help(format!(
                "to try several values, set it under `[sweep.grid]`: \"{path}\" = {}",
                node.value.to_toml()
            )),
            _ => diagnostic.help(format!("for example: {}", self.example_for(path, None))),
        }
    }

    /// `name` is the part of the value to look up in `names`.
    fn unknown_value(
        &self,
        path: &str,
        node: &Node,
        name: &str,
        names: &[(&'static str, &'static str)],
    ) -> Diagnostic {
        let written = match &node.value {
            Value::Str(written) => written,
            _ => name,
        };
        let message = format!("invalid value `{written}` for `{path}`");
        let diagnostic = Diagnostic::error("unknown-value", message).at(node.span);
        let known = names.iter().map(|(name, _)| *name);
        // The whole text first: `16-mixed`, but also the part before an index, as in `gpu:0`.
        let answer = remedy::for_value(path, written, known.clone());
        match answer.or_else(|| remedy::for_value(path, name, known)) {
            Some(answer) => diagnostic.help(answer),
            None => diagnostic.help(format!("use {}", self.expected())),
        }
    }

    /// Whether a text is a number that would be valid without its quotes.
    fn takes_text(&self, text: &str) -> bool {
        let value = match (self, text.parse::<i64>(), text.parse::<f64>()) {
            (_, Ok(whole), _) => Value::Int(whole),
            (Kind::Float { .. }, _, Ok(number)) => Value::Float(number),
            _ => return false,
        };
        let span = Span::default();
        self.check("", &Node { span, value }).is_empty()
    }

    pub(super) fn allows(&self, v: f64) -> bool {
        match self {
            Kind::Float {
                min,
                open_min,
                max,
                open_max,
            } => {
                v.is_finite()
                    && (if *open_min { v > *min } else { v >= *min })
                    && (if *open_max { v < *max } else { v <= *max })
            }
            _ => true,
        }
    }
}

/// How a regular expression is written in TOML.
pub(in crate::spec) const REGEX_HELP: &str =
    "write it between single quotes, such as '^head\\.', with `\\.` for a dot";

/// Why a text is not a regular expression, as a phrase.
pub(in crate::spec) fn wrong_regex(text: &str) -> Option<String> {
    let error = refused_regex(text)?;
    // The lines before are a drawing.
    let line = error.lines().last().unwrap_or_default();
    Some(line.trim_start_matches("error: ").to_owned())
}

#[cfg(feature = "native")]
fn refused_regex(text: &str) -> Option<String> {
    Some(regex::Regex::new(text).err()?.to_string())
}

/// In a browser, expressions are only checked, and the tables of Unicode's properties would be a tenth of the program.
#[cfg(not(feature = "native"))]
fn refused_regex(text: &str) -> Option<String> {
    use regex_syntax::{Error, hir::ErrorKind, parse};
    match parse(text).err()? {
        Error::Translate(error)
            if matches!(
                error.kind(),
                ErrorKind::UnicodePropertyNotFound
                    | ErrorKind::UnicodePropertyValueNotFound
                    | ErrorKind::UnicodePerlClassNotFound
                    | ErrorKind::UnicodeCaseUnavailable
            ) =>
        {
            None
        }
        error => Some(error.to_string()),
    }
}
