//! Located messages to the user: what is wrong, where, why, and what to do about it.
//!
//! Knows texts and byte ranges, and nothing of what the texts mean. Rendering is deterministic, so
//! that every message can be pinned by a snapshot.

mod printable;

use std::path::PathBuf;

pub use printable::{is_odd, masked, printable, printable_in_color, printable_lines};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// A byte range in one of the texts that an experiment was read from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Index into [`Sources`].
    pub source: u16,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// Where a reference stands that brought the text elsewhere: what is wrong may be wrong only there.
    pub via: Option<Use>,
}

/// The byte range of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Use {
    /// Index into [`Sources`].
    pub source: u16,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The same place, reached by a reference that stands at `reference`.
    pub fn used_at(self, reference: Span) -> Self {
        let Span {
            source, start, end, ..
        } = reference;
        let via = Some(Use { source, start, end });
        Self { via, ..self }
    }

    /// Where the reference stands that brought the text elsewhere.
    pub fn use_span(self) -> Option<Span> {
        let Use { source, start, end } = self.via?;
        Some(Span {
            source,
            start,
            end,
            via: None,
        })
    }
}

/// A text and the name that messages give it.
#[derive(Clone, Debug)]
pub struct Source {
    /// A path as the user typed it, or the flag that the text came from.
    pub name: String,
    /// The whole text.
    pub text: String,
    /// The text that asked for this one with `extends`.
    pub extended_by: Option<u16>,
    /// What its relative paths are relative to, seen from the folder of the first text.
    pub folder: PathBuf,
    /// Tables that take nothing over from the ones below them in other files, with those.
    pub restarts: Vec<(Span, Span)>,
}

/// The texts that spans point into, in the order in which they were read.
#[derive(Clone, Debug, Default)]
pub struct Sources(pub Vec<Source>);

impl Sources {
    /// Adds a text and returns its index.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> u16 {
        self.0.push(Source {
            name: name.into(),
            text: text.into(),
            extended_by: None,
            folder: PathBuf::new(),
            restarts: Vec::new(),
        });
        (self.0.len() - 1) as u16
    }

    /// The text at a place; empty where there is none.
    pub fn text(&self, span: Span) -> &str {
        let source = self.0.get(span.source as usize);
        source.map_or("", |source| &source.text[range(span, &source.text)])
    }

    /// A place as `file:line`, or the name alone for what is no file.
    pub fn line(&self, span: Span) -> String {
        let Some(source) = self.0.get(span.source as usize) else {
            return String::new();
        };
        let before = &source.text[..range(span, &source.text).start];
        match source.name.starts_with("--") {
            true => source.name.clone(),
            false => format!("{}:{}", source.name, 1 + before.matches('\n').count()),
        }
    }

    /// What is to be known of a table that starts anew.
    fn restart(&self, table: Span) -> Option<String> {
        let source = self.0.get(table.source as usize)?;
        let (_, below) = source.restarts.iter().find(|(anew, _)| *anew == table)?;
        let below = self.line(*below);
        Some(format!(
            "the table at {below} has another `type`, so nothing is taken over from it"
        ))
    }

    /// How a text came to be read: which file extends it, down from the first.
    pub fn chain(&self, source: u16) -> Option<String> {
        let mut names = Vec::new();
        let mut next = Some(source);
        while let Some(at) = next {
            let source = self.0.get(at as usize)?;
            names.push(format!("`{}`", source.name));
            next = source.extended_by;
        }
        names.reverse();
        let [first, second, rest @ ..] = names.as_slice() else {
            return None;
        };
        let rest: String = rest
            .iter()
            .map(|name| format!(", which extends {name}"))
            .collect();
        Some(format!("{first} extends {second}{rest}"))
    }
}

/// Whether a diagnostic stops the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The experiment is refused.
    Error,
    /// The experiment runs, and the user should know.
    Warning,
}

/// One message to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether it stops the experiment.
    pub severity: Severity,
    /// The rule that emitted it, for example `unknown-key`.
    pub code: &'static str,
    /// What is wrong, as a lowercase phrase.
    pub message: String,
    /// Where; `None` for what has no place in a text.
    pub span: Option<Span>,
    /// What the marked text is, shown beside the mark.
    pub label: String,
    /// Other places that belong to the message.
    pub related: Vec<(Span, String)>,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// What to do about it.
    pub helps: Vec<String>,
}

impl Diagnostic {
    /// An error without a place; [`Diagnostic::at`] gives it one.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            code,
            message: message.into(),
            span: None,
            label: String::new(),
            related: Vec::new(),
            notes: Vec::new(),
            helps: Vec::new(),
        }
    }

    /// A warning without a place.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, message)
        }
    }

    /// Points at `span`.
    pub fn at(mut self, span: Span) -> Self {
        self.span = Some(span);
        self
    }

    /// Says what the marked text is.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Points at another place that belongs to the message.
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }

    /// Adds a fact that explains the message.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Adds what to do about it.
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.helps.push(help.into());
        self
    }

    /// Renders the message for a terminal, with colours if `color`.
    pub fn render(&self, sources: &Sources, color: bool) -> String {
        self.printable().render_as_it_is(sources, color)
    }

    /// The same without anything that a terminal would obey: texts of files and of other programs are in it.
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
        // A key that a file below has is missed all the more.
        let restart = self.span.filter(|_| self.code == "missing-key");
        let restart = restart.and_then(|span| sources.restart(span));
        // Every message names the layer that a text came from: the flag, or how a file came to be read.
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
        for note in self.notes.iter().chain(&restart).chain(&chain) {
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
}

impl Diagnostic {
    /// The same form without the margin, which has nothing to stand beside.
    fn render_without_place(&self, color: bool) -> String {
        let (name, style) = match self.severity {
            Severity::Error => ("error", "\u{1b}[1m\u{1b}[91m"),
            Severity::Warning => ("warning", "\u{1b}[1m\u{1b}[33m"),
        };
        let mut text = match color {
            true => format!("{style}{name}\u{1b}[0m\u{1b}[1m: {}\u{1b}[0m", self.message),
            false => format!("{name}: {}", self.message),
        };
        for (kind, lines) in [("note", &self.notes), ("help", &self.helps)] {
            lines
                .iter()
                .for_each(|line| text.push_str(&format!("\n  = {kind}: {line}")));
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

/// The span as a range that cannot leave the text or cut a character, whatever a parser reported.
fn range(span: Span, text: &str) -> std::ops::Range<usize> {
    let clamp = |at: u32| {
        let mut at = (at as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (clamp(span.start), clamp(span.end));
    start..end.max(start)
}

/// Diagnostics in the order in which they were found, each once.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Adds a diagnostic unless the same message already stands at the same place.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let known = |d: &Diagnostic| {
            d.span == diagnostic.span
                && d.code == diagnostic.code
                && d.message == diagnostic.message
        };
        if !self.0.iter().any(known) {
            self.0.push(diagnostic);
        }
    }

    /// Whether any of them stops the experiment.
    pub fn has_errors(&self) -> bool {
        self.num(Severity::Error) > 0
    }

    /// How many there are of one severity.
    pub fn num(&self, severity: Severity) -> usize {
        self.0.iter().filter(|d| d.severity == severity).count()
    }

    /// Renders all of them in the order of the text, and a closing line that counts them.
    pub fn render(&self, sources: &Sources, color: bool) -> String {
        let mut sorted: Vec<_> = self.0.iter().collect();
        sorted.sort_by_key(|d| d.span.map_or((1, Span::default()), |span| (0, span)));
        let mut text = String::new();
        for diagnostic in sorted {
            text.push_str(&diagnostic.render(sources, color));
            text.push_str("\n\n");
        }
        let count = |num: usize, what: &str| match num {
            1 => format!("1 {what}"),
            _ => format!("{num} {what}s"),
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

/// `1 run`, `2 runs`.
pub fn counted(num: usize, what: &str) -> String {
    match num {
        1 => format!("1 {what}"),
        _ => format!("{num} {what}s"),
    }
}

/// The candidate that a person most likely meant by `word`, if one is close enough to offer.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(&word, c), c))
        .filter(|(distance, c)| *distance <= 1 + c.len().max(word.len()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}
