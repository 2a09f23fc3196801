//! Located messages to the user: what is wrong, where, why, and what to do about it.
//!
//! Knows texts and byte ranges, and nothing of what the texts mean. Rendering is deterministic, so
//! that every message can be pinned by a snapshot.

mod printable;

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
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
        if source.name.starts_with("--") {
            source.name.clone()
        } else {
            format!("{}:{}", source.name, 1 + before.matches('\n').count())
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
    /// Messages of the same rule that were left out after this one, by their hashes: so each counts once.
    pub left_out: BTreeSet<u64>,
}

/// No more messages of one rule are kept than this: nobody reads more, and thousands of equal mistakes have one cause.
const MAX_ALIKE: usize = 20;

/// Longer messages hold something that is not meant to be read.
const MAX_TEXT: usize = 4000;

/// No more messages than this are shown in all.
const MAX_SHOWN: usize = 200;

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
            left_out: BTreeSet::new(),
        }
    }

    /// Whether another one says the same of the same place.
    fn is_same(&self, other: &Self) -> bool {
        self.span == other.span && self.code == other.code && self.message == other.message
    }

    fn hash(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.span, self.code, &self.message).hash(&mut hasher);
        hasher.finish()
    }

    /// What is said about the messages that were left out after this one.
    fn rest(&self) -> Option<String> {
        let num = self.left_out.len();
        (num > 0).then(|| format!("and {} more like this", grouped(num as u64)))
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
        let long = |text: &String| text.len() > MAX_TEXT;
        if long(&self.message) || self.notes.iter().chain(&self.helps).any(long) {
            return self.shortened().render(sources, color);
        }
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
}

impl Diagnostic {
    /// The same with head and tail of texts that are too long to be read, such as a key of a million letters.
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

    /// The same form without the margin, which has nothing to stand beside.
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
    /// Adds a diagnostic unless the same message already stands at the same place. Of one rule the first ones are
    /// kept and the others counted, so that neither time nor output grows with the number of equal mistakes.
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

    /// How many were found, those that were left out included.
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
        // What stops the experiment comes first where not all is shown.
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

/// `1 run`, `2 runs`.
pub fn counted(num: usize, what: &str) -> String {
    match num {
        1 => format!("1 {what}"),
        _ => format!("{num} {what}s"),
    }
}

/// A number with a comma between thousands: `12,345,678`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The candidate that a person most likely misspelled as `word`, if exactly one is close enough to offer.
///
/// A wrong suggestion is worse than none. So only slips of the fingers count: other capitals or separators, or about
/// one letter in five. Words with other digits, or with a part that is another word (`in_features` and
/// `out_features`), mean something else. What other tools call a thing is known to `spec::remedy`.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Longer words are not names, and comparing them takes time.
    const MAX_LEN: usize = 200;
    if word.len() > MAX_LEN {
        return None;
    }
    let plain = plain_word(word);
    let mut best: Option<(usize, &str)> = None;
    let mut is_tied = false;
    for candidate in candidates {
        let Some(distance) = slips(word, &plain, candidate) else {
            continue;
        };
        match best {
            Some((least, known)) if distance == least => is_tied |= known != candidate,
            Some((least, _)) if distance > least => {}
            _ => (best, is_tied) = (Some((distance, candidate)), false),
        }
    }
    best.filter(|_| !is_tied).map(|(_, candidate)| candidate)
}

/// A word in small letters without what separates its parts.
fn plain_word(word: &str) -> String {
    let letters = word.chars().filter(|c| !"_- ".contains(*c));
    letters.flat_map(char::to_lowercase).collect()
}

/// How many slips make a word of a candidate; `None` where it is another word.
fn slips(word: &str, plain: &str, candidate: &str) -> Option<usize> {
    let theirs = plain_word(candidate);
    if plain == theirs && !plain.is_empty() {
        return Some(0);
    }
    let digits = |word: &str| -> String { word.chars().filter(char::is_ascii_digit).collect() };
    let allowed = |len: usize| if len < 3 { 0 } else { (len / 5).max(1) };
    let num = plain.chars().count().max(theirs.chars().count());
    if plain.len().abs_diff(theirs.len()) > allowed(num) || digits(plain) != digits(&theirs) {
        return None;
    }
    let word = word.to_lowercase();
    let is_part = |c: char| "_.-/,= ".contains(c);
    let parts: Vec<_> = word.split(is_part).zip(candidate.split(is_part)).collect();
    if word.split(is_part).count() == candidate.split(is_part).count() {
        let is_other = |(a, b): &(&str, &str)| {
            strsim::damerau_levenshtein(a, &b.to_lowercase()) > allowed(a.len().max(b.len()) + 2)
        };
        if parts.iter().any(is_other) {
            return None;
        }
    }
    let distance = strsim::damerau_levenshtein(plain, &theirs);
    (distance <= allowed(num)).then_some(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not_offered() {
        let found = |word, all: &[&'static str]| nearest(word, all.iter().copied());
        let keys = [
            "learning_rate",
            "momentum",
            "out_features",
            "sweep",
            "min_size",
        ];
        assert_eq!(found("learnig_rate", &keys), Some("learning_rate"));
        assert_eq!(found("learningRate", &keys), Some("learning_rate"));
        assert_eq!(found("mometum", &keys), Some("momentum"));
        assert_eq!(found("in_features", &keys), None);
        assert_eq!(found("seed", &keys), None);
        assert_eq!(found("max_size", &keys), None);
        assert_eq!(found("swish", &["mish", "silu"]), None);
        assert_eq!(
            found("LeakyReLU", &["leaky_relu", "relu"]),
            Some("leaky_relu")
        );
        assert_eq!(found("gpu", &["cpu", "wgpu"]), None, "two are as near");
        assert_eq!(found("conv4d", &["conv1d", "conv2d"]), None);
        assert_eq!(found("lr", &["lp"]), None);
        assert_eq!(found("relo", &["relu"]), Some("relu"));
    }

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
