//! A single value that is checked, by the type that it has in the file.

use std::collections::BTreeMap;

use super::{REGEX_HELP, wrong_regex};
use crate::diagnostic::Diagnostic;
use crate::spec::document::{Node, Value};
use crate::spec::kind::{Kind, Scalar, bytes, is_slug, parse_duration};
use crate::spec::metric::Objective;

/// A value with the kind that it must have.
pub(super) struct Checked<'a> {
    pub(super) kind: &'a Kind,
    pub(super) path: &'a str,
    pub(super) node: &'a Node,
}

/// Whether a value is valid; `None` if its kind does not take values of this type.
type Found = Option<Result<(), Box<Diagnostic>>>;

fn refused(diagnostic: Diagnostic) -> Found {
    Some(Err(Box::new(diagnostic)))
}

impl Checked<'_> {
    fn shown(&self) -> String {
        self.node.value.to_toml()
    }

    fn wrong_type(&self) -> Diagnostic {
        let found = match self.node.value {
            // The result of an expression is worth showing.
            Value::Float(_) => self.shown(),
            _ => self.node.value.kind().to_owned(),
        };
        let (path, expected) = (self.path, self.kind.expected());
        let message = format!("`{path}` must be {expected}, found {found}");
        Diagnostic::error("wrong-type", message).at(self.node.span)
    }

    fn out_of_range(&self) -> Diagnostic {
        let (path, expected) = (self.path, self.kind.expected());
        let message = format!("`{path}` must be {expected}, found {}", self.shown());
        Diagnostic::error("out-of-range", message).at(self.node.span)
    }

    fn valid(&self, is_valid: bool) -> Found {
        if is_valid {
            Some(Ok(()))
        } else {
            refused(self.out_of_range())
        }
    }

    pub(super) fn number(&self) -> Found {
        match (self.kind, &self.node.value) {
            (Kind::Int(min, max), Value::Int(v)) => self.valid((min..=max).contains(&v)),
            (Kind::Int(min, max), Value::Float(v))
                if v.fract() == 0.0 && v.abs() < 1e15 && (min..=max).contains(&&(*v as i64)) =>
            {
                refused(self.wrong_type().help(format!("use {}", *v as i64)))
            }
            (Kind::Float { .. }, value) => {
                let v: f64 = Scalar::from_value(value);
                self.valid(self.kind.allows(v))
            }
            (Kind::Bytes, Value::Int(v)) => refused(
                self.wrong_type()
                    .help(format!("add the unit: \"{v}MiB\" or \"{v}GiB\"")),
            ),
            (Kind::Duration { .. }, _) => {
                let v = self.shown();
                refused(self.wrong_type().help(format!(
                    "add the unit: \"{v}s\", \"{v}m\" (minutes) or \"{v}h\""
                )))
            }
            (Kind::List { .. }, Value::Int(num)) if self.path == "experiment.seeds" && *num > 1 => {
                let shown = |last: i64| (1..=last).map(|seed| seed.to_string()).collect::<Vec<_>>();
                let several = match *num {
                    2..=10 => format!("for {num} seeds, [{}]", shown(*num).join(", ")),
                    _ => format!("for {num} seeds, a list of that many numbers"),
                };
                refused(self.wrong_type().help(format!(
                    "list the seeds themselves: {several}; for the single seed {num}, [{num}]"
                )))
            }
            _ => None,
        }
    }

    pub(super) fn text(&self, text: &str) -> Found {
        match self.kind {
            Kind::Bool if text == "true" || text == "false" => {
                refused(self.wrong_type().help(format!("use {text} without quotes")))
            }
            Kind::Int(..) | Kind::Float { .. } if self.kind.takes_text(text) => {
                refused(self.wrong_type().help(format!("use {text} without quotes")))
            }
            Kind::AnyText => Some(Ok(())),
            Kind::Text | Kind::Path | Kind::Pattern if !text.trim().is_empty() => Some(Ok(())),
            Kind::Text | Kind::Path | Kind::Pattern => {
                let message = format!("`{}` is empty", self.path);
                let wrong = Diagnostic::error("out-of-range", message).at(self.node.span);
                refused(wrong.help("set a value, or remove the key"))
            }
            Kind::Regex => Some(match wrong_regex(text) {
                None => Ok(()),
                Some(reason) => {
                    let message = format!("`{}` is not a regular expression: {reason}", self.path);
                    let wrong = Diagnostic::error("out-of-range", message).at(self.node.span);
                    Err(Box::new(wrong.help(REGEX_HELP)))
                }
            }),
            Kind::OneOf(names) if names.iter().any(|(name, _)| *name == text) => Some(Ok(())),
            Kind::OneOf(names) => {
                refused(self.kind.unknown_value(self.path, self.node, text, names))
            }
            Kind::Indexed(names) => {
                let (name, index) = text.split_once(':').unwrap_or((text, "0"));
                if names.iter().any(|(n, _)| *n == name) && index.parse::<u16>().is_ok() {
                    return Some(Ok(()));
                }
                refused(self.kind.unknown_value(self.path, self.node, name, names))
            }
            Kind::Slug => {
                let is_valid = is_slug(text);
                if !is_valid && self.path == "experiment.name" {
                    return refused(
                        self.out_of_range()
                            .note("it names a folder under `results/`"),
                    );
                }
                self.valid(is_valid)
            }
            Kind::Objective => self.objective(text),
            Kind::Bytes => Some(match bytes::read(text) {
                Ok(_) => Ok(()),
                Err(help) => Err(Box::new(self.out_of_range().help(help))),
            }),
            Kind::Duration { allows_zero } => self.duration(text, *allows_zero),
            _ => None,
        }
    }

    fn objective(&self, text: &str) -> Found {
        let Err(help) = Objective::parse(text) else {
            return Some(Ok(()));
        };
        let path = self.path;
        let message = if text.starts_with("test/") {
            format!("`{path}` is `{text}`, but the test split must not decide anything")
        } else {
            format!("invalid value `{text}` for `{path}`")
        };
        let diagnostic = Diagnostic::error("unknown-value", message).at(self.node.span);
        refused(diagnostic.help(help))
    }

    fn duration(&self, text: &str, allows_zero: bool) -> Found {
        match parse_duration(text) {
            Ok(duration) if allows_zero || !duration.is_zero() => Some(Ok(())),
            Ok(_) => {
                let (path, shown) = (self.path, self.shown());
                let message = format!("`{path}` must be greater than zero, found {shown}");
                let wrong = Diagnostic::error("out-of-range", message).at(self.node.span);
                refused(wrong.help("use a longer duration, or remove the key"))
            }
            Err(help) => refused(self.out_of_range().help(help)),
        }
    }

    pub(super) fn items(&self, items: &[Node]) -> Found {
        let path = self.path;
        match self.kind {
            Kind::List {
                item: _,
                min_items,
                unique,
            } => {
                if items.len() < *min_items {
                    let message =
                        format!("`{path}` is empty, but needs at least {min_items} value");
                    let wrong = Diagnostic::error("out-of-range", message).at(self.node.span);
                    return refused(wrong.help(format!("use {}", self.kind.expected())));
                }
                let mut seen: BTreeMap<String, &Node> = BTreeMap::new();
                for node in items.iter().filter(|_| *unique) {
                    if let Some(first) = seen.insert(node.value.to_toml(), node) {
                        let message = format!("`{path}` contains {} twice", node.value.to_toml());
                        let twice = Diagnostic::error("repeated-value", message)
                            .at(node.span)
                            .related(first.span, "first listed here");
                        return refused(twice.help("remove one of them"));
                    }
                }
                Some(Ok(()))
            }
            Kind::Tuple { len, .. } if items.len() == *len => Some(Ok(())),
            Kind::Tuple { len, .. } => {
                let message = format!("`{path}` must have {len} items, found {}", items.len());
                refused(Diagnostic::error("out-of-range", message).at(self.node.span))
            }
            _ => None,
        }
    }

    /// A value of a type that the kind does not take.
    pub(super) fn other(&self) -> Result<(), Box<Diagnostic>> {
        let wrong = self.wrong_type();
        Err(Box::new(match self.kind {
            Kind::List { item, .. } if item.check(self.path, self.node).is_empty() => {
                wrong.help(format!("use [{}]", self.shown()))
            }
            _ => wrong,
        }))
    }
}
