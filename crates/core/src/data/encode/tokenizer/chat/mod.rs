//! Chat templates: conversations as text, written in Jinja and rendered as the library transformers does.
//!
//! A template comes from a file of a model hub, so it is untrusted: what it may compute and write is bounded, and it
//! sees nothing but the conversation.

mod conversation;
mod file;
mod not_marked;
#[cfg(feature = "native")]
mod python;
#[cfg(feature = "native")]
mod render;
#[cfg(not(feature = "native"))]
#[path = "no_render.rs"]
mod render;
#[cfg(feature = "native")]
mod source;
#[cfg(all(test, feature = "native"))]
mod tests;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use conversation::Conversation;
pub use file::{CONFIG, SPECIAL_TOKENS, TEMPLATE, files_of};
pub use not_marked::NotMarked;
pub use render::Renderer;

/// A chat template, with the tokens that it may name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatTemplate {
    /// The template, in Jinja.
    pub text: String,
    /// The one for conversations with tools, if it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<String>,
    /// Texts of special tokens by their names in templates, such as `bos_token`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub special: BTreeMap<String, String>,
    /// The tokens that end a turn, as numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ends: Vec<i32>,
}

/// A conversation as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// The bytes of the text that the assistant wrote, in order.
    pub assistant: Vec<Range<usize>>,
}

/// A moment for templates that write the date: seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now(pub i64);
