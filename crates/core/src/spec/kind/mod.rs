//! The kinds of value a key can take: one check, one phrase for messages, one JSON Schema each.

mod bytes;
mod duration;
mod examples;
mod scalar;

pub use bytes::parse_bytes;
pub use duration::{parse_duration, show_duration};
pub use scalar::{Bytes, Padding, Scalar};

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::diagnostic::{Diagnostic, Span};
use crate::spec::document::{Node, Value};
use crate::spec::metric::{Metric, Objective, ObjectiveSplit};
use crate::spec::remedy;
use crate::spec::section::Choice;

/// What a key accepts.
#[derive(Clone, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// An integer between two bounds, both included.
    Int(i64, i64),
    /// A finite number between two bounds; `open` bounds are themselves refused.
    Float {
        /// Lower bound.
        min: f64,
        /// Whether the lower bound is refused.
        open_min: bool,
        /// Upper bound.
        max: f64,
        /// Whether the upper bound is refused.
        open_max: bool,
    },
    /// A string that is not empty.
    Text,
    /// A string, which may be empty.
    AnyText,
    /// The path of a file or folder, relative to the file that it is written in. Paths alone may hold
    /// `${env:NAME}`.
    Path,
    /// A pattern over names, in which `*` stands for any text.
    Pattern,
    /// One of these names, each with what it means.
    OneOf(Vec<(&'static str, &'static str)>),
    /// One of these names, optionally with an index behind a colon: `wgpu:1`.
    Indexed(Vec<(&'static str, &'static str)>),
    /// A string that can be a folder's name: letters, digits, `-`, `_` and `.`.
    Slug,
    /// A number of bytes as text, such as `"4GiB"`.
    Bytes,
    /// A duration as text, such as `"1h 30m"`.
    Duration {
        /// Whether it may be zero.
        allows_zero: bool,
    },
    /// A metric of a split, such as `"valid/loss"`.
    Objective,
    /// A list.
    List {
        /// What each item is.
        item: Box<Kind>,
        /// The fewest items.
        min_items: usize,
        /// Whether an item may stand only once.
        unique: bool,
    },
    /// A list of a fixed number of items.
    Tuple {
        /// What each item is.
        item: Box<Kind>,
        /// How many there are.
        len: usize,
    },
    /// Whatever one of two kinds accepts; the first speaks for strings and single values.
    Either(Box<Kind>, Box<Kind>),
}

impl Kind {
    /// An integer of at least `min`.
    pub fn at_least(min: i64) -> Self {
        Kind::Int(min, i64::MAX)
    }

    /// Any number.
    pub fn any() -> Self {
        Kind::Float {
            min: f64::NEG_INFINITY,
            open_min: true,
            max: f64::INFINITY,
            open_max: true,
        }
    }

    /// A list of at least `min_items`.
    pub fn list(item: Kind, min_items: usize) -> Self {
        Kind::List {
            item: Box::new(item),
            min_items,
            unique: false,
        }
    }

    /// A single value, or a list of at least one.
    pub fn one_or_many(item: Kind) -> Self {
        let list = Kind::list(item.clone(), 1);
        Kind::Either(Box::new(item), Box::new(list))
    }

    /// A size for every dimension, or one for each.
    pub fn sizes(min: i64, dims: usize) -> Self {
        let item = Kind::Int(min, 1 << 20);
        let tuple = Kind::Tuple {
            item: Box::new(item.clone()),
            len: dims,
        };
        Kind::Either(Box::new(item), Box::new(tuple))
    }

    /// What surrounds an input of some dimensions.
    pub fn padding(dims: usize) -> Self {
        let names = Kind::OneOf(vec![
            ("valid", "Nothing."),
            ("same", "Zeros so that the size over the stride is kept."),
        ]);
        Kind::Either(Box::new(names), Box::new(Kind::sizes(0, dims)))
    }

    /// A number between two bounds, both included.
    pub fn between(min: f64, max: f64) -> Self {
        Kind::Float {
            min,
            open_min: false,
            max,
            open_max: false,
        }
    }

    /// A number above zero.
    pub fn positive() -> Self {
        Kind::Float {
            min: 0.0,
            open_min: true,
            max: f64::INFINITY,
            open_max: true,
        }
    }

    /// A number of at least zero.
    pub fn non_negative() -> Self {
        Kind::Float {
            min: 0.0,
            open_min: false,
            max: f64::INFINITY,
            open_max: true,
        }
    }

    /// A number of at least 0 and below 1.
    pub fn fraction() -> Self {
        Kind::Float {
            min: 0.0,
            open_min: false,
            max: 1.0,
            open_max: true,
        }
    }

    /// The names of a [`Choice`].
    pub fn of_choice<T: Choice>() -> Self {
        Kind::OneOf(T::ALL.iter().map(|(_, name, doc)| (*name, *doc)).collect())
    }

    /// Whether it is a path, or holds paths.
    pub fn is_path(&self) -> bool {
        match self {
            Kind::Path => true,
            Kind::List { item, .. } | Kind::Tuple { item, .. } => item.is_path(),
            Kind::Either(first, second) => first.is_path() || second.is_path(),
            _ => false,
        }
    }

    /// The phrase for messages: `an integer of at least 1`.
    pub fn expected(&self) -> String {
        match self {
            Kind::Bool => "`true` or `false`".into(),
            Kind::Int(min, i64::MAX) => format!("an integer of at least {min}"),
            Kind::Int(min, max) => format!("an integer from {min} to {max}"),
            Kind::Float {
                min,
                open_min,
                max,
                open_max,
            } => {
                let lower = match (open_min, min.is_finite()) {
                    (_, false) => String::new(),
                    (true, _) => format!(" above {min}"),
                    (false, _) => format!(" of at least {min}"),
                };
                let upper = match (open_max, max.is_finite()) {
                    (_, false) => String::new(),
                    (true, _) => format!(" and below {max}"),
                    (false, _) => format!(" and at most {max}"),
                };
                format!("a number{lower}{upper}")
            }
            Kind::Text | Kind::AnyText => "a string".into(),
            Kind::Path => "a path".into(),
            Kind::Pattern => "a pattern".into(),
            Kind::OneOf(names) if names.len() == 1 => format!("`{}`", names[0].0),
            Kind::OneOf(names) | Kind::Indexed(names) => {
                let quoted: Vec<_> = names.iter().map(|(name, _)| format!("`{name}`")).collect();
                let index = match self {
                    Kind::Indexed(_) => ", with an index if there are several, as in `wgpu:1`",
                    _ => "",
                };
                format!("one of {}{index}", quoted.join(", "))
            }
            Kind::Slug => "a name of letters, digits, `-`, `_` and `.`".into(),
            Kind::Bytes => "a size such as \"4GiB\" or \"512MiB\"".into(),
            Kind::Duration { .. } => "a duration such as \"30s\" or \"1h 30m\"".into(),
            Kind::Objective => "a metric of a split, such as `valid/loss`".into(),
            Kind::List { item, .. } => format!("a list, each item {}", item.expected()),
            Kind::Tuple { item, len } => format!("a list of {len}, each {}", item.expected()),
            Kind::Either(first, second) => {
                format!("{}, or {}", first.expected(), second.expected())
            }
        }
    }

    /// A value that is accepted, as TOML.
    pub fn example(&self) -> String {
        match self {
            Kind::Bool => "true".into(),
            Kind::Int(min, max) => 10.clamp(*min, *max).to_string(),
            Kind::Float {
                open_min: true,
                max: f64::INFINITY,
                ..
            } if self.allows(1e-3) => "1e-3".into(),
            Kind::Float { open_min: true, .. } if self.allows(0.5) => "0.5".into(),
            Kind::Float { .. } => {
                let tried = [0.1, 1.0, -0.5];
                tried
                    .iter()
                    .find(|v| self.allows(**v))
                    .unwrap_or(&1.0)
                    .to_string()
            }
            Kind::Text | Kind::AnyText => "\"some words\"".into(),
            Kind::Path => "\"data\"".into(),
            Kind::Pattern => "\"*.bias\"".into(),
            Kind::OneOf(names) | Kind::Indexed(names) => {
                format!("\"{}\"", names.first().map_or("", |(name, _)| name))
            }
            Kind::Slug => "\"my_name\"".into(),
            Kind::Bytes => "\"4GiB\"".into(),
            Kind::Duration { .. } => "\"30s\"".into(),
            Kind::Objective => "\"valid/loss\"".into(),
            Kind::List { item, .. } => format!("[{}]", item.example()),
            Kind::Tuple { item, len } => format!("[{}]", vec![item.example(); *len].join(", ")),
            Kind::Either(first, _) => first.example(),
        }
    }

    /// Checks a value; `path` is how messages name it. Every refusal says what to write instead; a list
    /// has one for each wrong item.
    pub fn check(&self, path: &str, node: &Node) -> Vec<Diagnostic> {
        self.check_as(path, node, None)
    }

    /// As [`Kind::check`], with the key's default, which examples may be made from.
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
                format!("write {}", self.expected())
            } else if key.contains('[') {
                format!("write {}, for example {}", self.expected(), self.example())
            } else {
                format!("for example: `{key} = {}`", self.example_for(path, default))
            };
            diagnostic.helps.push(help);
        }
        diagnostic
    }

    fn refusal(&self, path: &str, node: &Node) -> Result<(), Box<Diagnostic>> {
        // Asked for by refusals alone: most values are right, and a sweep checks very many.
        let shown = || node.value.to_toml();
        let wrong_type = || {
            let found = match node.value {
                // What an expression came to is worth seeing.
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
                wrong_type().help(format!("write {s} without quotes")),
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
                Err(Box::new(wrong_type().help(format!("write {}", *v as i64))))
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
                Box::new(wrong_type().help(format!("write {s} without quotes"))),
            ),
            (Kind::AnyText, Value::Str(_)) => Ok(()),
            (Kind::Text | Kind::Path | Kind::Pattern, Value::Str(s)) if !s.trim().is_empty() => {
                Ok(())
            }
            (Kind::Text | Kind::Path | Kind::Pattern, Value::Str(_)) => {
                let message = format!("`{path}` is empty");
                Err(Box::new(
                    Diagnostic::error("out-of-range", message)
                        .at(node.span)
                        .help("write a value, or remove the key"),
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
                        out_of_range().note("it names a folder of results"),
                    )),
                    false => Err(Box::new(out_of_range())),
                }
            }
            (Kind::Objective, Value::Str(s)) => match Objective::parse(s) {
                Ok(_) => Ok(()),
                Err(help) => {
                    let message = if s.starts_with("test/") {
                        format!("`{path}` is `{s}`, and the test split decides nothing")
                    } else {
                        format!("unknown value `{s}` for `{path}`")
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
                wrong_type().help(format!("write the unit: \"{v}MiB\" or \"{v}GiB\"")),
            )),
            (Kind::Duration { allows_zero }, Value::Str(s)) => match parse_duration(s) {
                Ok(duration) if *allows_zero || !duration.is_zero() => Ok(()),
                Ok(_) => {
                    let message = format!("`{path}` must be above zero, found {}", shown());
                    Err(Box::new(
                        Diagnostic::error("out-of-range", message)
                            .at(node.span)
                            .help("write a longer duration, or remove the key"),
                    ))
                }
                Err(help) => Err(Box::new(out_of_range().help(help))),
            },
            (Kind::Duration { .. }, Value::Int(_) | Value::Float(_)) => {
                let v = shown();
                Err(Box::new(wrong_type().help(format!(
                    "write the unit: \"{v}s\", \"{v}m\" (minutes) or \"{v}h\""
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
                        format!("`{path}` is empty, and needs at least {min_items} value");
                    let diagnostic = Diagnostic::error("out-of-range", message).at(node.span);
                    return Err(Box::new(
                        diagnostic.help(format!("write {}", self.expected())),
                    ));
                }
                let mut seen: BTreeMap<String, &Node> = BTreeMap::new();
                for node in items.iter().filter(|_| *unique) {
                    if let Some(first) = seen.insert(node.value.to_toml(), node) {
                        let message = format!("`{path}` holds {} twice", node.value.to_toml());
                        return Err(Box::new(
                            Diagnostic::error("repeated-value", message)
                                .at(node.span)
                                .related(first.span, "first written here")
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
                    2..=10 => format!("{num} seeds are [{}]", shown(*num).join(", ")),
                    _ => format!("{num} seeds are a list of that many numbers"),
                };
                Err(Box::new(wrong_type().help(format!(
                    "the seeds themselves are listed: {several}, and the one seed {num} is [{num}]"
                ))))
            }
            (Kind::List { item, .. }, _) if item.check(path, node).is_empty() => {
                Err(Box::new(wrong_type().help(format!("write [{}]", shown()))))
            }
            _ => Err(Box::new(wrong_type())),
        }
    }

    /// What is none of two sets of names.
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
                "to try several, write it under `[sweep.grid]`: \"{path}\" = {}",
                node.value.to_toml()
            )),
            _ => diagnostic.help(format!("for example: {}", self.example_for(path, None))),
        }
    }

    /// `name` is the part of the value that is looked for among `names`.
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
        let message = format!("unknown value `{written}` for `{path}`");
        let diagnostic = Diagnostic::error("unknown-value", message).at(node.span);
        let known = names.iter().map(|(name, _)| *name);
        // The whole text first: `16-mixed`, but also the part before an index, as in `gpu:0`.
        let answer = remedy::for_value(path, written, known.clone());
        match answer.or_else(|| remedy::for_value(path, name, known)) {
            Some(answer) => diagnostic.help(answer),
            None => diagnostic.help(format!("write {}", self.expected())),
        }
    }

    /// Whether a text is a number that would be accepted without its quotes.
    fn takes_text(&self, text: &str) -> bool {
        let value = match (self, text.parse::<i64>(), text.parse::<f64>()) {
            (_, Ok(whole), _) => Value::Int(whole),
            (Kind::Float { .. }, _, Ok(number)) => Value::Float(number),
            _ => return false,
        };
        let span = Span::default();
        self.check("", &Node { span, value }).is_empty()
    }

    fn allows(&self, v: f64) -> bool {
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

    /// The JSON Schema (draft 7) of the value.
    pub fn schema(&self) -> Json {
        match self {
            Kind::Bool => json!({ "type": "boolean" }),
            Kind::Int(min, i64::MAX) => json!({ "type": "integer", "minimum": min }),
            Kind::Int(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
            Kind::Float {
                min,
                open_min,
                max,
                open_max,
            } => {
                let mut schema = json!({ "type": "number" });
                if min.is_finite() {
                    let key = if *open_min {
                        "exclusiveMinimum"
                    } else {
                        "minimum"
                    };
                    schema[key] = json!(min);
                }
                if max.is_finite() {
                    let key = if *open_max {
                        "exclusiveMaximum"
                    } else {
                        "maximum"
                    };
                    schema[key] = json!(max);
                }
                schema
            }
            Kind::AnyText => json!({ "type": "string" }),
            Kind::Text | Kind::Path | Kind::Pattern => json!({ "type": "string", "minLength": 1 }),
            Kind::OneOf(names) => {
                let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
                json!({ "type": "string", "enum": names })
            }
            Kind::Indexed(names) => {
                let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
                json!({ "type": "string", "pattern": format!("^({})(:[0-9]+)?$", names.join("|")) })
            }
            Kind::Slug => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-][A-Za-z0-9._-]*$" }),
            Kind::Objective => {
                let names: Vec<_> = Metric::ALL.iter().map(|(_, name, _)| *name).collect();
                let splits: Vec<_> = ObjectiveSplit::ALL
                    .iter()
                    .map(|(_, name, _)| *name)
                    .collect();
                let splits = splits.join("|");
                json!({ "type": "string", "pattern": format!("^({splits})/({})$", names.join("|")) })
            }
            Kind::Bytes => json!({
                "type": "string",
                "pattern": "^[0-9]+(\\.[0-9]+)? ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$"
            }),
            Kind::Duration { .. } => json!({ "type": "string", "pattern": duration::PATTERN }),
            Kind::List {
                item,
                min_items,
                unique,
            } => json!({
                "type": "array",
                "items": item.schema(),
                "minItems": min_items,
                "uniqueItems": unique,
            }),
            Kind::Tuple { item, len } => json!({
                "type": "array",
                "items": item.schema(),
                "minItems": len,
                "maxItems": len,
            }),
            Kind::Either(first, second) => json!({ "anyOf": [first.schema(), second.schema()] }),
        }
    }
}

/// A number of bytes in the unit that suits it, such as `6.4 MiB`.
pub fn show_bytes(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in units {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    match unit {
        "B" => format!("{bytes} B"),
        _ => format!("{value:.1} {unit}"),
    }
}
