//! Calls in Python.

use std::fmt::Display;

/// A call with its arguments.
pub struct Call {
    text: String,
    has_arguments: bool,
}

impl Call {
    /// A call of a name.
    pub fn new(name: impl Display) -> Self {
        Self {
            text: format!("{name}("),
            has_arguments: false,
        }
    }

    /// With one more argument.
    pub fn arg(mut self, value: impl Display) -> Self {
        if self.has_arguments {
            self.text += ", ";
        }
        self.has_arguments = true;
        self.text += &value.to_string();
        self
    }

    /// With a named argument.
    pub fn named(self, key: &str, value: impl Display) -> Self {
        self.arg(format!("{key}={value}"))
    }

    /// With a named argument, omitted if it is the default.
    pub fn unless<T: PartialEq + Display>(self, key: &str, value: T, default: T) -> Self {
        if value == default {
            self
        } else {
            self.named(key, value)
        }
    }

    /// With a flag, omitted if it is the default.
    pub fn flag(self, key: &str, value: bool, default: bool) -> Self {
        self.unless(key, truth(value), truth(default))
    }

    /// With one size for each dimension, omitted if all are the default.
    pub fn each(self, key: &str, values: &[usize], default: usize) -> Self {
        self.unless(key, sizes(values), default.to_string())
    }

    /// Its text.
    pub fn end(self) -> String {
        self.text + ")"
    }
}

/// A boolean.
pub fn truth(value: bool) -> &'static str {
    if value { "True" } else { "False" }
}

/// A number if all are equal, otherwise a tuple.
pub fn sizes(values: &[usize]) -> String {
    match values {
        [first, rest @ ..] if rest.iter().all(|value| value == first) => first.to_string(),
        several => tuple(several.iter()),
    }
}

/// A tuple of at least two values.
pub fn tuple<T: Display>(values: impl Iterator<Item = T>) -> String {
    let values: Vec<String> = values.map(|value| value.to_string()).collect();
    format!("({})", values.join(", "))
}
