//! Texts that tests change a little. Also included by unit tests.

/// Replaces parts of a text that must be there: when the text changes, a test that edits it fails instead of
/// testing the unchanged text.
pub trait Edit {
    /// The text with `to` wherever it has `from`.
    ///
    /// # Panics
    /// When it does not have `from`.
    fn edit(&self, from: &str, to: &str) -> String;

    /// The text with `to` where it has `from` first.
    ///
    /// # Panics
    /// When it does not have `from`.
    fn edit_first(&self, from: &str, to: &str) -> String;
}

impl Edit for str {
    #[track_caller]
    fn edit(&self, from: &str, to: &str) -> String {
        assert!(self.contains(from), "there is no `{from}` in:\n{self}");
        self.replace(from, to)
    }

    #[track_caller]
    fn edit_first(&self, from: &str, to: &str) -> String {
        assert!(self.contains(from), "there is no `{from}` in:\n{self}");
        self.replacen(from, to, 1)
    }
}
