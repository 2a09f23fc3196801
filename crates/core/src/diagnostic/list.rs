//! All messages of a document: each once, those of one rule bounded in number.

use super::{Diagnostic, Severity, Sources, Span, grouped};

/// At most this many messages of one rule are kept: thousands of equal mistakes have one cause.
const MAX_ALIKE: usize = 20;

/// At most this many messages are shown in total.
const MAX_SHOWN: usize = 200;

/// Diagnostics in the order in which they were found, without duplicates.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Adds a diagnostic unless the same message already exists for the same place. The first ones of each rule are
    /// kept and the others only counted, so that neither time nor output grows with the number of equal mistakes.
    pub fn push(&mut self, mut diagnostic: Diagnostic) {
        let alike = self
            .0
            .iter_mut()
            .filter(|known| known.code == diagnostic.code && known.severity == diagnostic.severity);
        let (mut num, mut last) = (0, None);
        for known in alike {
            if known.is_same(&diagnostic) {
                known.left_out.append(&mut diagnostic.left_out);
                return;
            }
            (num, last) = (num + 1, Some(known));
        }
        match last {
            Some(last) if num >= MAX_ALIKE => {
                last.left_out.insert(diagnostic.hash());
                last.left_out.append(&mut diagnostic.left_out);
            }
            _ => self.0.push(diagnostic),
        }
    }

    /// How many were found, including the omitted ones.
    pub fn num_found(&self) -> usize {
        self.0.iter().map(|d| 1 + d.left_out.len()).sum()
    }

    /// Whether any of them stops the experiment.
    pub fn has_errors(&self) -> bool {
        self.num(Severity::Error) > 0
    }

    /// How many there are of one severity.
    pub fn num(&self, severity: Severity) -> usize {
        let found = self.0.iter().filter(|d| d.severity == severity);
        found.map(|d| 1 + d.left_out.len()).sum()
    }

    /// Renders all of them in the order of the text, and a closing line that counts them.
    pub fn render(&self, sources: &Sources, color: bool) -> String {
        let mut sorted: Vec<_> = self.0.iter().collect();
        sorted.sort_by_key(|d| d.span.map_or((1, Span::default()), |span| (0, span)));
        // If not everything is shown, errors come first.
        let num_hidden = sorted.len().saturating_sub(MAX_SHOWN);
        if num_hidden > 0 {
            sorted.sort_by_key(|d| d.severity);
            sorted.truncate(MAX_SHOWN);
        }
        let mut text = String::new();
        for diagnostic in sorted {
            text.push_str(&diagnostic.render(sources, color));
            text.push_str("\n\n");
        }
        if num_hidden > 0 {
            text.push_str(&format!(
                "and {} more messages\n\n",
                grouped(num_hidden as u64)
            ));
        }
        let count = |num: usize, what: &str| match num {
            1 => format!("1 {what}"),
            _ => format!("{} {what}s", grouped(num as u64)),
        };
        let (errors, warnings) = (self.num(Severity::Error), self.num(Severity::Warning));
        match (errors, warnings) {
            (0, 0) => {}
            (0, w) => text.push_str(&format!("{}\n", count(w, "warning"))),
            (e, 0) => text.push_str(&format!("{}\n", count(e, "error"))),
            (e, w) => text.push_str(&format!("{}, {}\n", count(e, "error"), count(w, "warning"))),
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_one_rule_are_counted_once_there_are_many() {
        let mut found = Diagnostics::default();
        for _ in 0..2 {
            for at in 0..8000 {
                found.push(Diagnostic::error("wrong-type", format!("item {at}")));
            }
        }
        found.push(Diagnostic::error("other", "one"));
        assert_eq!(found.0.len(), MAX_ALIKE + 1);
        assert_eq!(found.num(Severity::Error), 8001);
        let mut merged = Diagnostics::default();
        found.0.into_iter().for_each(|d| merged.push(d));
        let text = merged.render(&Sources::default(), false);
        assert!(
            text.contains("  = note: and 7,980 more like this\n"),
            "{text}"
        );
        assert!(text.ends_with("8,001 errors\n"), "{text}");
    }
}
