//! Commands for a shell.

use super::Plan;

impl Plan {
    /// The command that trains the plan's runs, or resumes them; with `--results` if they are not in the usual folder.
    pub fn command(&self) -> String {
        let sets = self.overrides.iter();
        let sets: String = sets.map(|set| format!(" --set {}", quoted(set))).collect();
        // A leading dash would be parsed as an option.
        let source = if self.source.starts_with('-') {
            format!("./{}", self.source)
        } else {
            self.source.clone()
        };
        format!("runner run {}{sets}", quoted(&source))
    }
}

/// The text as one word of a POSIX shell.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,+:@".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(quoted("a=0.1,b-s1"), "a=0.1,b-s1");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
