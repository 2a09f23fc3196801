//! Why it is not known what the assistant wrote.

use std::fmt;

/// Why it is not known what the assistant wrote in a conversation; as text, to follow "the chat template".
#[derive(Debug, PartialEq, Eq)]
pub enum NotMarked {
    /// The template refuses the conversation.
    Refused(String),
    /// The turns cannot be told apart, from this message on.
    Mixed(usize),
}

impl From<String> for NotMarked {
    fn from(reason: String) -> Self {
        Self::Refused(reason)
    }
}

impl fmt::Display for NotMarked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reason) => f.write_str(reason),
            Self::Mixed(message) => write!(
                f,
                "writes the first messages of a conversation in another way when others follow, at message {message}, so that the assistant's turns cannot be told apart"
            ),
        }
    }
}
