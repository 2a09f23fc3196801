//! Why a value is refused.

use std::fmt;

/// Why a value is refused, as a phrase: what it must be, or what is wrong with it.
///
/// ```
/// use runner_core::diagnostic::Reason;
///
/// let reason = Reason::from("it has to be positive");
/// assert_eq!(reason.to_string(), "it has to be positive");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(pub String);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Reason {}

impl From<String> for Reason {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

impl From<&str> for Reason {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// Its words, as a part of a message.
impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        reason.0
    }
}
