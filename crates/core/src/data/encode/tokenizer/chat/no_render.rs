//! Without the library for templates, as in a browser: nothing is rendered.

use super::{ChatTemplate, Conversation, NotMarked, Now, Rendered};

/// There are none.
#[derive(Debug)]
pub enum Renderer {}

impl Renderer {
    /// Refuses every template.
    pub fn new(_: &ChatTemplate, _: Option<Now>) -> Result<Self, String> {
        Err("cannot be rendered by this build of runner".to_owned())
    }

    /// As with the library.
    pub fn render(&self, _: &Conversation, _: bool) -> Result<String, String> {
        match *self {}
    }

    /// As with the library.
    pub fn marked(&self, _: &Conversation) -> Result<Rendered, NotMarked> {
        match *self {}
    }
}
