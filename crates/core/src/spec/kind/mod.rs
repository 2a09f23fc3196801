//! The kinds of values of keys: each has a check, a phrase for messages and a JSON Schema.

mod bytes;
pub(in crate::spec) mod check;
mod duration;
mod examples;
mod scalar;
mod schema;

pub use bytes::parse_bytes;
pub use duration::parse_duration;
pub use scalar::{Bytes, Padding, Scalar};

use crate::spec::section::{Choice, Types};

/// Whether a text is a name of letters, digits, `-`, `_` and `.`, as `Kind::Slug` accepts it.
pub fn is_slug(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !text.is_empty() && text.chars().all(allowed) && !text.starts_with('.')
}

/// What a key accepts.
#[derive(Clone, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Bool,
    /// An integer between two bounds, both included.
    Int(i64, i64),
    /// A finite number between two bounds; `open` bounds are excluded.
    Float {
        /// Lower bound.
        min: f64,
        /// Whether the lower bound is excluded.
        open_min: bool,
        /// Upper bound.
        max: f64,
        /// Whether the upper bound is excluded.
        open_max: bool,
    },
    /// A nonempty string.
    Text,
    /// A string, possibly empty.
    AnyText,
    /// The path of a file or folder, relative to the file that contains it. Only paths may contain `${env:NAME}`.
    Path,
    /// A pattern over names, in which `*` matches any text.
    Pattern,
    /// A regular expression.
    Regex,
    /// One of these names, each with its meaning.
    OneOf(Vec<(&'static str, &'static str)>),
    /// One of these names, optionally followed by a colon and an index: `wgpu:1`.
    Indexed(Vec<(&'static str, &'static str)>),
    /// A valid folder name: letters, digits, `-`, `_` and `.`.
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
        /// The kind of each item.
        item: Box<Kind>,
        /// The minimum number of items.
        min_items: usize,
        /// Whether items must be distinct.
        unique: bool,
    },
    /// A list of a fixed number of items.
    Tuple {
        /// The kind of each item.
        item: Box<Kind>,
        /// Their number.
        len: usize,
    },
    /// Anything that one of two kinds accepts; the first is used for strings and single values.
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

    /// One size for all dimensions, or one for each.
    pub fn sizes(min: i64, dims: usize) -> Self {
        let item = Kind::Int(min, 1 << 20);
        let tuple = Kind::Tuple {
            item: Box::new(item.clone()),
            len: dims,
        };
        Kind::Either(Box::new(item), Box::new(tuple))
    }

    /// Padding of an input of some dimensions.
    pub fn padding(dims: usize) -> Self {
        let names = Kind::OneOf(Self::PADDING.to_vec());
        Kind::Either(Box::new(names), Box::new(Kind::sizes(0, dims)))
    }

    /// The same along a single axis of time.
    pub fn padding_in_time() -> Self {
        let causal = (
            "causal",
            "Zeros at the start only, so that no output depends on later inputs.",
        );
        let names = Kind::OneOf([&Self::PADDING[..], &[causal]].concat());
        Kind::Either(Box::new(names), Box::new(Kind::sizes(0, 1)))
    }

    const PADDING: [(&'static str, &'static str); 2] = [
        ("valid", "Nothing."),
        (
            "same",
            "Zero padding that keeps the size, divided by the stride.",
        ),
    ];

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
        Self::of_types::<T>()
    }

    /// The names of the types of a table.
    pub fn of_types<T: Types>() -> Self {
        Self::of_names(T::all())
    }

    /// The names of values.
    pub fn of_names<T>(all: Vec<(T, &'static str, &'static str)>) -> Self {
        let all = all.into_iter();
        Kind::OneOf(all.map(|(_, name, doc)| (name, doc)).collect())
    }

    /// Whether it is a path, or contains paths.
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
            Kind::Regex => "a regular expression".into(),
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
            Kind::List { item, .. } => format!("a list in which each item is {}", item.expected()),
            Kind::Tuple { item, len } => {
                format!("a list of {len}, each of which is {}", item.expected())
            }
            Kind::Either(first, second) => {
                format!("{}, or {}", first.expected(), second.expected())
            }
        }
    }

    /// A valid value, as TOML.
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
            Kind::Text | Kind::AnyText => "\"some text\"".into(),
            Kind::Path => "\"data\"".into(),
            Kind::Pattern => "\"*.bias\"".into(),
            Kind::Regex => r"'^head\.'".into(),
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
}
