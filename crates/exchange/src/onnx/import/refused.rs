//! Why a part of a graph cannot be imported.

use std::fmt;

/// A reason, which continues the name of an operator or of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(String);

/// What was read of a part of a graph.
pub type Read<T = ()> = Result<T, Refused>;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Refused {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

impl From<&str> for Refused {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}
