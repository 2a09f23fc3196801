//! One message as it is shown in a terminal.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::place::range;
use super::{Diagnostic, Severity, Source, Sources, Span, masked, printable, printable_lines};

/// Longer messages contain something that is not meant to be read.
const MAX_TEXT: usize = 4000;

impl Diagnostic {
    /// Renders the message for a terminal, with colors if `color`.
    pub fn render(&self, sources: &Sources, color: bool) -> String {
        let long = |text: &String| text.len() > MAX_TEXT;
        if long(&self.message) || self.notes.iter().chain(&self.helps).any(long) {
            return self.shortened().render(sources, color);
        }
        self.printable().render_as_it_is(sources, color)
    }

    /// The same without terminal control sequences, since it contains text from files and other programs.
    fn printable(&self) -> Self {
        let text = |text: &String| printable_lines(text).into_owned();
        Self {
            message: text(&self.message),
            label: text(&self.label),
            related: self
                .related
                .iter()
                .map(|(span, label)| (*span, text(label)))
                .collect(),
            notes: self.notes.iter().map(text).collect(),
            helps: self.helps.iter().map(text).collect(),
            ..self.clone()
        }
    }

    fn render_as_it_is(&self, sources: &Sources, color: bool) -> String {
        let level = match self.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(self.message.as_str());
        let used = self.span.and_then(Span::use_span);
        let used = used.map(|span| (span, "used here".to_owned()));
        let related: Vec<_> = self.related.iter().cloned().chain(used).collect();
        // A missing key is easier to understand with the table that it could have been inherited from.
        let restart = self.span.filter(|_| self.code == "missing-key");
        let restart = restart.and_then(|span| sources.restart(span));
        // Every message names the source of a text: the flag, or how a file was included.
        let chain = self.span.and_then(|span| sources.chain(span.source));
        let mut group = match self.span {
            None => return self.render_without_place(color),
            Some(span) => {
                let source = &sources.0[span.source as usize];
                let mut primary = AnnotationKind::Primary.span(range(span, &source.text));
                if !self.label.is_empty() {
                    primary = primary.label(self.label.as_str());
                }
                let mut snippet = snippet(source).annotation(primary);
                for (other, label) in &related {
                    if other.source == span.source {
                        let mark = AnnotationKind::Context.span(range(*other, &source.text));
                        snippet = snippet.annotation(mark.label(label.as_str()));
                    }
                }
                let mut group = title.element(snippet);
                for (other, label) in &related {
                    if other.source != span.source {
                        let source = &sources.0[other.source as usize];
                        let mark = AnnotationKind::Context.span(range(*other, &source.text));
                        group = group.element(snippet_of(source, mark.label(label.as_str())));
                    }
                }
                group
            }
        };
        let rest = self.rest();
        for note in self.notes.iter().chain(&restart).chain(&chain).chain(&rest) {
            group = group.element(Level::NOTE.message(note.as_str()));
        }
        for help in &self.helps {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if color {
            Renderer::styled()
        } else {
            Renderer::plain()
        };
        renderer.render(&[group])
    }

    /// The same, with texts that are too long to read, such as a key of a million letters, shortened to head and tail.
    fn shortened(&self) -> Self {
        let ends = |text: &String| {
            let head = text.char_indices().nth(MAX_TEXT / 8);
            let tail = text.char_indices().nth_back(MAX_TEXT / 8);
            match (head, tail) {
                (Some((head, _)), Some((tail, _))) if text.len() > MAX_TEXT => {
                    format!("{}…{}", &text[..head], &text[tail..])
                }
                _ => text.clone(),
            }
        };
        Self {
            message: ends(&self.message),
            notes: self.notes.iter().map(ends).collect(),
            helps: self.helps.iter().map(ends).collect(),
            ..self.clone()
        }
    }

    /// The same without the margin, when there is no source line.
    fn render_without_place(&self, color: bool) -> String {
        let (name, style) = match self.severity {
            Severity::Error => ("error", "\u{1b}[1m\u{1b}[91m"),
            Severity::Warning => ("warning", "\u{1b}[1m\u{1b}[33m"),
        };
        let mut text = if color {
            format!("{style}{name}\u{1b}[0m\u{1b}[1m: {}\u{1b}[0m", self.message)
        } else {
            format!("{name}: {}", self.message)
        };
        let rest = self.rest();
        for note in self.notes.iter().chain(&rest) {
            text.push_str(&format!("\n  = note: {note}"));
        }
        for help in &self.helps {
            text.push_str(&format!("\n  = help: {help}"));
        }
        text
    }
}

fn snippet(source: &Source) -> Snippet<'_, annotate_snippets::Annotation<'_>> {
    Snippet::source(masked(&source.text))
        .path(printable(&source.name))
        .fold(true)
}

fn snippet_of<'a>(
    source: &'a Source,
    annotation: annotate_snippets::Annotation<'a>,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    snippet(source).annotation(annotation)
}
