//! Whether a value is of a kind, and what is said when it is not.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::{Kind, Scalar, bytes, parse_duration};
use crate::diagnostic::{Diagnostic, Span};
use crate::spec::document::{Node, Value};
use crate::spec::metric::Objective;
use crate::spec::remedy;

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
                _ => first,
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
        // Only computed by refusals: most values are valid, and a sweep checks very many.
        let shown = || node.value.to_toml();
        let wrong_type = || {
            let found = match node.value {
                // The result of an expression is worth showing.
                Value::Float(_) => shown(),
                _ => node.value.kind().to_owned(),
            };
            let message = format!("`{path}` must be {}, found {found}", self.expected());
            Diagnostic::error("wrong-type", message).at(node.span)
        };
        let out_of_range = || {
            let message = format!("`{path}` must be {}, found {}", self.expected(), shown());
            Diagnostic::error("out-of-range", message).at(node.span)
        };
        match (self, &node.value) {
            (Kind::Bool, Value::Bool(_)) => Ok(()),
            (Kind::Bool, Value::Str(s)) if s == "true" || s == "false" => Err(Box::new(
                wrong_type().help(format!("use {s} without quotes")),
            )),
            (Kind::Int(min, max), Value::Int(v)) => {
                if (min..=max).contains(&v) {
                    Ok(())
                } else {
                    Err(Box::new(out_of_range()))
                }
            }
            (Kind::Int(min, max), Value::Float(v))
                if v.fract() == 0.0 && v.abs() < 1e15 && (min..=max).contains(&&(*v as i64)) =>
            {
                Err(Box::new(wrong_type().help(format!("use {}", *v as i64))))
            }
            (Kind::Float { .. }, Value::Int(_) | Value::Float(_)) => {
                let v: f64 = Scalar::from_value(&node.value);
                if self.allows(v) {
                    Ok(())
                } else {
                    Err(Box::new(out_of_range()))
                }
            }
            (Kind::Int(..) | Kind::Float { .. }, Value::Str(s)) if self.takes_text(s) => Err(
                Box::new(wrong_type().help(format!("use {s} without quotes"))),
            ),
            (Kind::AnyText, Value::Str(_)) => Ok(()),
            (Kind::Text | Kind::Path | Kind::Pattern, Value::Str(s)) if !s.trim().is_empty() => {
                Ok(())
            }
            (Kind::Regex, Value::Str(text)) => match wrong_regex(text) {
                None => Ok(()),
                Some(reason) => {
                    let message = format!("`{path}` is not a regular expression: {reason}");
                    let wrong = Diagnostic::error("out-of-range", message).at(node.span);
                    Err(Box::new(wrong.help(REGEX_HELP)))
                }
            },
            (Kind::Text | Kind::Path | Kind::Pattern, Value::Str(_)) => {
                let message = format!("`{path}` is empty");
                Err(Box::new(
                    Diagnostic::error("out-of-range", message)
                        .at(node.span)
                        .help("set a value, or remove the key"),
                ))
            }
            (Kind::OneOf(names), Value::Str(s)) => {
                if names.iter().any(|(name, _)| name == s) {
                    return Ok(());
                }
                Err(Box::new(self.unknown_value(path, node, s, names)))
            }
            (Kind::Indexed(names), Value::Str(s)) => {
                let (name, index) = s.split_once(':').unwrap_or((s, "0"));
                if names.iter().any(|(n, _)| *n == name) && index.parse::<u16>().is_ok() {
                    return Ok(());
                }
                Err(Box::new(self.unknown_value(path, node, name, names)))
            }
            (Kind::Slug, Value::Str(s)) => {
                let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
                match !s.is_empty() && s.chars().all(allowed) && !s.starts_with('.') {
                    true => Ok(()),
                    false if path == "experiment.name" => Err(Box::new(
                        out_of_range().note("it names a folder under `results/`"),
                    )),
                    false => Err(Box::new(out_of_range())),
                }
            }
            (Kind::Objective, Value::Str(s)) => match Objective::parse(s) {
                Ok(_) => Ok(()),
                Err(help) => {
                    let message = if s.starts_with("test/") {
                        format!("`{path}` is `{s}`, but the test split must not decide anything")
                    } else {
                        format!("invalid value `{s}` for `{path}`")
                    };
                    let diagnostic = Diagnostic::error("unknown-value", message).at(node.span);
                    Err(Box::new(diagnostic.help(help)))
                }
            },
            (Kind::Bytes, Value::Str(s)) => match bytes::read(s) {
                Ok(_) => Ok(()),
                Err(help) => Err(Box::new(out_of_range().help(help))),
            },
            (Kind::Bytes, Value::Int(v)) => Err(Box::new(
                wrong_type().help(format!("add the unit: \"{v}MiB\" or \"{v}GiB\"")),
            )),
            (Kind::Duration { allows_zero }, Value::Str(s)) => match parse_duration(s) {
                Ok(duration) if *allows_zero || !duration.is_zero() => Ok(()),
                Ok(_) => {
                    let message = format!("`{path}` must be greater than zero, found {}", shown());
                    Err(Box::new(
                        Diagnostic::error("out-of-range", message)
                            .at(node.span)
                            .help("use a longer duration, or remove the key"),
                    ))
                }
                Err(help) => Err(Box::new(out_of_range().help(help))),
            },
            (Kind::Duration { .. }, Value::Int(_) | Value::Float(_)) => {
                let v = shown();
                Err(Box::new(wrong_type().help(format!(
                    "add the unit: \"{v}s\", \"{v}m\" (minutes) or \"{v}h\""
                ))))
            }
            (
                Kind::List {
                    item: _,
                    min_items,
                    unique,
                },
                Value::Array(items),
            ) => {
                if items.len() < *min_items {
                    let message =
                        format!("`{path}` is empty, but needs at least {min_items} value");
                    let diagnostic = Diagnostic::error("out-of-range", message).at(node.span);
                    return Err(Box::new(
                        diagnostic.help(format!("use {}", self.expected())),
                    ));
                }
                let mut seen: BTreeMap<String, &Node> = BTreeMap::new();
                for node in items.iter().filter(|_| *unique) {
                    if let Some(first) = seen.insert(node.value.to_toml(), node) {
                        let message = format!("`{path}` contains {} twice", node.value.to_toml());
                        return Err(Box::new(
                            Diagnostic::error("repeated-value", message)
                                .at(node.span)
                                .related(first.span, "first listed here")
                                .help("remove one of them"),
                        ));
                    }
                }
                Ok(())
            }
            (Kind::Tuple { len, .. }, Value::Array(items)) => {
                if items.len() == *len {
                    Ok(())
                } else {
                    let num = items.len();
                    let message = format!("`{path}` must have {len} items, found {num}");
                    Err(Box::new(
                        Diagnostic::error("out-of-range", message).at(node.span),
                    ))
                }
            }
            (Kind::List { .. }, Value::Int(num)) if path == "experiment.seeds" && *num > 1 => {
                let shown = |last: i64| (1..=last).map(|seed| seed.to_string()).collect::<Vec<_>>();
                let several = match *num {
                    2..=10 => format!("for {num} seeds, [{}]", shown(*num).join(", ")),
                    _ => format!("for {num} seeds, a list of that many numbers"),
                };
                Err(Box::new(wrong_type().help(format!(
                    "list the seeds themselves: {several}; for the single seed {num}, [{num}]"
                ))))
            }
            (Kind::List { item, .. }, _) if item.check(path, node).is_empty() => {
                Err(Box::new(wrong_type().help(format!("use [{}]", shown()))))
            }
            _ => Err(Box::new(wrong_type())),
        }
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
    let error = regex::Regex::new(text).err()?.to_string();
    // The lines before are a drawing.
    let line = error.lines().last().unwrap_or_default();
    Some(line.trim_start_matches("error: ").to_owned())
}
