//! `${path.to.key}`: values that other keys hold.
//!
//! References are resolved for each trial, after the values of its axes are in place. A lone reference
//! takes the value whole, with its type and the place where it is written; inside a longer text it
//! becomes text, and arithmetic becomes a number. In the layers of a model, names without a dot are
//! parameters of blocks: those are left to `model/expand.rs`.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::document::{Document, Entry, Node, Table, Value, item_at};
use super::expression::{
    Names, Wrong, as_text, evaluate_part, literal, names_in, placed, unclosed, written_out,
};
use super::hints::default_of;
use super::kind::Kind;
use super::section::{Findings, KeyDoc, Shape};
use super::template::{Part, escaped, is_template, parts};
use crate::diagnostic::{Diagnostic, Span, nearest};

/// A longer chain of references is one that nobody can follow.
const MAX_CHAIN: usize = 64;

/// References that multiply each other come to no more values, or bytes of text, than this.
const MAX_SIZE: usize = 1 << 17;

/// The references of a document.
pub struct References<'a> {
    document: &'a Document,
    /// Whether there is nothing to do for any trial.
    is_idle: bool,
    /// The keys that hold paths.
    path_keys: OnceCell<BTreeSet<String>>,
}

/// A tree without references, and what was wrong with them.
#[derive(Debug)]
pub struct Resolved {
    /// The tree. A reference that is wrong, or that is left to trials, stands in it as it is written.
    pub root: Table,
    /// What is wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether some reference is left to trials.
    pub is_open: bool,
    /// Where references could not be resolved: the key, and the places that a message may point at.
    failed: Vec<(String, Span)>,
}

impl Resolved {
    /// Findings in which the keys of wrong references are poisoned.
    pub fn findings(&self) -> Findings {
        Findings {
            poisoned: self.failed.iter().map(|(path, _)| path.clone()).collect(),
            ..Findings::default()
        }
    }

    /// Puts what was wrong with references in front, and leaves out what only follows from it.
    pub fn report(&mut self, findings: &mut Findings) {
        let found = std::mem::take(&mut findings.diagnostics);
        for diagnostic in self.diagnostics.drain(..) {
            findings.diagnostics.push(diagnostic);
        }
        for diagnostic in found.0 {
            let follows = |(_, span): &(String, Span)| diagnostic.span == Some(*span);
            if !self.failed.iter().any(follows) {
                findings.diagnostics.push(diagnostic);
            }
        }
    }
}

impl<'a> References<'a> {
    /// The references of a document.
    pub fn new(document: &'a Document) -> Self {
        let mut sources = document.sources.0.iter();
        let is_moved = sources.any(|source| !source.folder.as_os_str().is_empty());
        Self {
            document,
            is_idle: !is_moved && !document.root.entries.iter().any(|e| has_template(&e.node)),
            path_keys: OnceCell::new(),
        }
    }

    /// Resolves the tree of a trial. References to `open` keys, which axes set, are left as they are.
    pub fn resolve(&self, root: Table, open: &[String]) -> Resolved {
        self.resolve_as(root, open, false)
    }

    /// As [`References::resolve`], but texts stay as a file would hold them: `$${` is kept.
    pub fn resolve_as_text(&self, root: Table, open: &[String]) -> Resolved {
        self.resolve_as(root, open, true)
    }

    fn resolve_as(&self, root: Table, open: &[String], as_text: bool) -> Resolved {
        if self.is_idle {
            return Resolved {
                root,
                diagnostics: Vec::new(),
                is_open: false,
                failed: Vec::new(),
            };
        }
        let resolver = Resolver {
            references: self,
            root: &root,
            open: open.iter().map(|key| root.numbered(key)).collect(),
            as_text,
            state: RefCell::default(),
        };
        let (mut resolved, fate) = resolver.table("", &root);
        let state = resolver.state.into_inner();
        if self.is_any_moved() {
            self.move_paths(&mut resolved);
        }
        Resolved {
            root: resolved,
            diagnostics: state.diagnostics,
            is_open: fate.is_kept,
            failed: state.failed,
        }
    }

    fn is_any_moved(&self) -> bool {
        let mut sources = self.document.sources.0.iter();
        sources.any(|source| !source.folder.as_os_str().is_empty())
    }

    /// Whether a key holds a path of the user's machine.
    fn is_path(&self, path: &str) -> bool {
        self.path_keys().contains(&unnumbered(path))
    }

    fn path_keys(&self) -> &BTreeSet<String> {
        self.path_keys.get_or_init(|| {
            let mut keys = BTreeSet::new();
            collect_paths(&super::describe(), "", &mut keys);
            keys
        })
    }

    /// Puts `folder` in front of the paths of a resolved tree.
    pub fn move_to(&self, root: &mut Table, folder: &Path) {
        self.each_path(root, &|_| Some(folder.to_owned()));
    }

    /// Paths are relative to the file that they are written in; seen from the first file, that is
    /// another path.
    fn move_paths(&self, root: &mut Table) {
        self.each_path(root, &|span| {
            let source = self.document.sources.0.get(span.source as usize)?;
            Some(source.folder.clone())
        });
    }

    /// Puts the folder of each path in front of it.
    fn each_path(&self, root: &mut Table, folder: &dyn Fn(Span) -> Option<PathBuf>) {
        fn below(
            references: &References<'_>,
            node: &mut Node,
            path: &str,
            folder: &dyn Fn(Span) -> Option<PathBuf>,
        ) {
            match &mut node.value {
                Value::Table(table) => {
                    for entry in &mut table.entries {
                        let path = joined(path, &entry.key);
                        below(references, &mut entry.node, &path, folder);
                    }
                }
                Value::Array(items) => {
                    for item in items {
                        below(references, item, path, folder);
                    }
                }
                Value::Str(text) => {
                    if references.is_path(path)
                        && let Some(folder) = folder(node.span)
                        && !folder.as_os_str().is_empty()
                    {
                        *text = folder.join(&*text).display().to_string();
                    }
                }
                _ => {}
            }
        }
        for entry in &mut root.entries {
            below(self, &mut entry.node, &entry.key, folder);
        }
    }
}

/// What became of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Fate {
    /// It, or something in it, depends on an axis.
    is_kept: bool,
    /// It, or something in it, is wrong, and that was said.
    is_wrong: bool,
}

impl Fate {
    fn and(self, other: Self) -> Self {
        Self {
            is_kept: self.is_kept | other.is_kept,
            is_wrong: self.is_wrong | other.is_wrong,
        }
    }
}

#[derive(Default)]
struct State {
    /// Texts that were resolved, by path: a value that many refer to is computed once.
    known: BTreeMap<String, (Node, Fate)>,
    /// The texts that are being resolved, each because of the one before.
    chain: Vec<(String, Span)>,
    diagnostics: Vec<Diagnostic>,
    failed: Vec<(String, Span)>,
    size: usize,
}

struct Resolver<'a> {
    references: &'a References<'a>,
    root: &'a Table,
    open: Vec<String>,
    /// Whether texts are to be read once more.
    as_text: bool,
    state: RefCell<State>,
}

impl Resolver<'_> {
    fn table(&self, above: &str, table: &Table) -> (Table, Fate) {
        let mut fate = Fate::default();
        let entries = table.entries.iter().map(|entry| {
            if above.is_empty() && entry.key == "sweep" {
                // Values of axes are resolved where a trial puts them.
                return entry.clone();
            }
            let (node, own) = self.node(&joined(above, &entry.key), &entry.node);
            fate = fate.and(own);
            Entry {
                node,
                ..entry.clone()
            }
        });
        let entries = entries.collect();
        (Table { entries }, fate)
    }

    fn node(&self, path: &str, node: &Node) -> (Node, Fate) {
        let (value, fate) = match &node.value {
            Value::Str(text) if is_template(text) => return self.text(path, text, node),
            Value::Table(table) => {
                let (table, fate) = self.table(path, table);
                (Value::Table(table), fate)
            }
            Value::Array(items) => {
                let mut fate = Fate::default();
                let items = items.iter().enumerate().map(|(at, item)| {
                    let (item, own) = self.node(&format!("{path}[{at}]"), item);
                    fate = fate.and(own);
                    item
                });
                (Value::Array(items.collect()), fate)
            }
            other => (other.clone(), Fate::default()),
        };
        let span = node.span;
        (Node { span, value }, fate)
    }

    /// A text, each once. What is wrong is said here; the text then stays as it is.
    fn text(&self, path: &str, text: &str, node: &Node) -> (Node, Fate) {
        if let Some(known) = self.state.borrow().known.get(path) {
            return known.clone();
        }
        let circle = self.circle(path);
        let result = match circle {
            Some(diagnostic) => Err(Some(diagnostic)),
            None => {
                let mut state = self.state.borrow_mut();
                state.chain.push((path.to_owned(), node.span));
                drop(state);
                let result = self.resolved(path, text, node);
                self.state.borrow_mut().chain.pop();
                result.and_then(|found| self.grown(text, node.span, found))
            }
        };
        let mut state = self.state.borrow_mut();
        let known = match result {
            Ok(known) => known,
            Err(diagnostic) => {
                state.diagnostics.extend(diagnostic.map(|found| *found));
                state.failed.push((path.to_owned(), node.span));
                let is_wrong = true;
                let fate = Fate {
                    is_wrong,
                    ..Fate::default()
                };
                (node.clone(), fate)
            }
        };
        // A text in a circle was put there from within, where it was found.
        let entry = state.known.entry(path.to_owned());
        entry.or_insert(known).clone()
    }

    /// Refuses what grows without measure, once.
    fn grown(
        &self,
        text: &str,
        span: Span,
        (node, fate): (Node, Fate),
    ) -> Result<(Node, Fate), Failure> {
        let mut state = self.state.borrow_mut();
        let was_too_large = state.size > MAX_SIZE;
        state.size += size(&node);
        if state.size <= MAX_SIZE {
            return Ok((node, fate));
        }
        let message = format!("`{}` makes the file too large", head(text));
        let diagnostic = Diagnostic::error("reference", message)
            .at(span)
            .note("references to references multiply")
            .help("write the value itself");
        Err((!was_too_large).then(|| Box::new(diagnostic)))
    }

    /// What is wrong with resolving a text because of itself.
    fn circle(&self, path: &str) -> Option<Box<Diagnostic>> {
        let state = self.state.borrow();
        let Some(at) = state.chain.iter().position(|(known, _)| known == path) else {
            let (first, span) = state.chain.first()?;
            return (state.chain.len() >= MAX_CHAIN).then(|| {
                let message = format!(
                    "`{first}` refers to a key that refers to another, more than {MAX_CHAIN} times"
                );
                let diagnostic = Diagnostic::error("reference", message).at(*span);
                Box::new(diagnostic.help("refer to the last of them"))
            });
        };
        let circle = &state.chain[at..];
        let names: Vec<_> = circle.iter().map(|(path, _)| format!("`{path}`")).collect();
        let message = match names.as_slice() {
            [only] => format!("{only} refers to itself"),
            _ => format!(
                "{} refers to itself: {} -> {}",
                names[0],
                names.join(" -> "),
                names[0]
            ),
        };
        let mut diagnostic = Diagnostic::error("reference", message).at(circle[0].1);
        for (path, span) in &circle[1..] {
            diagnostic = diagnostic.related(*span, format!("`{path}`"));
        }
        Some(Box::new(diagnostic.help("write a value for one of them")))
    }

    fn resolved(&self, path: &str, text: &str, node: &Node) -> Result<(Node, Fate), Failure> {
        let in_layers = is_in_layers(path);
        let Some(parts) = parts(text) else {
            return match in_layers {
                true => Ok((node.clone(), Fate::default())),
                false => Err(Some(Box::new(unclosed(text, node.span)))),
            };
        };
        let names = Scope {
            resolver: self,
            fate: Cell::default(),
        };
        let computed = self.computed(path, &parts, node, &names, in_layers);
        let fate = names.fate.get();
        match computed {
            _ if fate.is_wrong => Err(None),
            // An expression over an axis is resolved as a whole, when all of it is known.
            _ if fate.is_kept => Ok((node.clone(), fate)),
            Ok(node) => Ok((node, fate)),
            Err(diagnostic) => Err(Some(diagnostic)),
        }
    }

    fn computed(
        &self,
        path: &str,
        parts: &[Part<'_>],
        node: &Node,
        names: &Scope<'_>,
        in_layers: bool,
    ) -> Result<Node, Box<Diagnostic>> {
        let is_ours = |inner: &str| {
            let found = names_in(inner);
            let is_dotted = |name: &&str| name.contains('.');
            is_environment(inner) || !in_layers || found.iter().any(is_dotted)
        };
        // In layers the text is taken apart once more.
        let is_read_again = in_layers || self.as_text;
        let again = |node: Node| match is_read_again {
            true => escape(node),
            false => node,
        };
        if let [Part::Expression(inner)] = parts
            && is_ours(inner)
        {
            if let [name] = names_in(inner)[..]
                && name == inner.trim()
            {
                let found = names
                    .value(name)
                    .map_err(|wrong| refuse(inner, node.span, wrong))?;
                return Ok(again(reached(found, node.span)));
            }
            if is_environment(inner) {
                let value = Value::Str(self.variable(path, inner, node.span)?);
                return Ok(again(placed(value, node.span)));
            }
            if !in_layers || names_in(inner).iter().all(|name| name.contains('.')) {
                let value = evaluate_part(inner, node.span, names)?;
                return Ok(again(placed(value, node.span)));
            }
        }
        let mut text = String::new();
        for part in parts {
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Escape if is_read_again => text.push_str("$${"),
                Part::Escape => text.push_str("${"),
                Part::Expression(inner) if !is_ours(inner) => {
                    text.push_str(&format!("${{{inner}}}"))
                }
                Part::Expression(inner) if is_environment(inner) => {
                    text.push_str(&self.variable(path, inner, node.span)?)
                }
                Part::Expression(inner)
                    if in_layers && names_in(inner).iter().any(|name| !name.contains('.')) =>
                {
                    text.push_str(&format!("${{{}}}", self.partly(inner, node.span, names)?));
                }
                Part::Expression(inner) => {
                    let value = evaluate_part(inner, node.span, names)?;
                    let value = as_text(&value);
                    text.push_str(&if is_read_again {
                        escaped(&value)
                    } else {
                        value
                    });
                }
            }
        }
        Ok(Node {
            span: node.span,
            value: Value::Str(text),
        })
    }

    /// An expression over keys and parameters of a block, with the keys written out.
    fn partly(
        &self,
        inner: &str,
        span: Span,
        names: &Scope<'_>,
    ) -> Result<String, Box<Diagnostic>> {
        for name in names_in(inner)
            .into_iter()
            .filter(|name| name.contains('.'))
        {
            let found = names
                .value(name)
                .map_err(|wrong| refuse(inner, span, wrong))?;
            if literal(&found.value).is_none() {
                let message = format!("`{name}` is {}", found.value.kind());
                let help = "refer to a number or a short text beside a parameter".to_owned();
                return Err(refuse(inner, span, (message, help)));
            }
        }
        Ok(written_out(inner, &|name| match name.contains('.') {
            true => literal(&names.value(name).ok()?.value),
            false => None,
        }))
    }

    /// The value of an environment variable.
    fn variable(&self, path: &str, inner: &str, span: Span) -> Result<String, Box<Diagnostic>> {
        let (name, default) = environment(inner).unwrap_or_default();
        let refuse = |message: String| {
            let message = format!("`${{{inner}}}`: {message}");
            Diagnostic::error("environment", message).at(span)
        };
        if !self.references.is_path(path) {
            let set = match path.contains('[') {
                true => String::new(),
                false => format!(", or give it with `--set {path}=…`"),
            };
            let keys = self
                .references
                .path_keys()
                .iter()
                .filter(|key| *key != "extends");
            let keys: Vec<_> = keys.map(|key| format!("`{key}`")).collect();
            let note = format!(
                "environment variables are for paths alone ({}): the same file must mean the same work on every machine",
                keys.join(", ")
            );
            return Err(Box::new(
                refuse(format!("`{path}` cannot come from the environment"))
                    .note(note)
                    .help(format!("write the value here{set}")),
            ));
        }
        let is_name = |name: &str| {
            let is_fit = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !name.is_empty() && name.chars().all(is_fit)
        };
        if !is_name(name) {
            return Err(Box::new(
                refuse(format!("`{name}` is no name of an environment variable"))
                    .help("for example: `${env:DATA}`, or with a default: `${env:DATA:-data}`"),
            ));
        }
        let environment = &self.references.document.environment;
        let value = environment.get(name).cloned().flatten();
        match (value.filter(|value| !value.is_empty()), default) {
            (Some(value), _) => Ok(value),
            (None, Some(default)) => Ok(default.to_owned()),
            (None, None) => Err(Box::new(
                refuse(format!("the environment variable `{name}` is not set"))
                    .help(format!("set it: {name}=… runner …"))
                    .help(format!("or write a default: `${{env:{name}:-path}}`")),
            )),
        }
    }

    /// The value at a dotted path, resolved.
    fn find(&self, name: &str) -> Result<(Node, Fate), Wrong> {
        let segments: Vec<_> = name.split('.').collect();
        if segments[0] == "sweep" {
            return Err((
                "`sweep` holds the values of all trials".into(),
                "refer to the key that is varied: in each trial it has one value".into(),
            ));
        }
        let number = self.root.numbered(name);
        let inside = |a: &str, b: &str| a == b || a.starts_with(b) && a[b.len()..].starts_with('.');
        if self
            .open
            .iter()
            .any(|key| inside(key, &number) || inside(&number, key))
        {
            let node = Node {
                span: Span::default(),
                value: Value::Bool(false),
            };
            let is_kept = true;
            let fate = Fate {
                is_kept,
                ..Fate::default()
            };
            return Ok((node, fate));
        }
        let root = self.root.get(segments[0]).map(|entry| &entry.node);
        match root.and_then(|node| self.below(segments[0], node, &segments[1..])) {
            Some((path, node, fate)) => {
                let is_read_again = self.as_text || is_in_layers(&path);
                let is_done = fate == Fate::default();
                match is_done && has_expression(&node) && is_read_again {
                    false if is_done && is_read_again => Ok((unescape(node), fate)),
                    false => Ok((node, fate)),
                    true => Err((
                        format!("`{name}` holds `${{…}}` with parameters of a block"),
                        "refer to what the block is given".into(),
                    )),
                }
            }
            None => Err(self.not_written(name)),
        }
    }

    /// The value below a node, which is resolved only where that is needed.
    fn below(&self, path: &str, node: &Node, rest: &[&str]) -> Option<(String, Node, Fate)> {
        let Some((head, rest)) = rest.split_first() else {
            let (node, fate) = self.node(path, node);
            return Some((path.to_owned(), node, fate));
        };
        match &node.value {
            Value::Table(table) => {
                let entry = table.get(head)?;
                self.below(&joined(path, head), &entry.node, rest)
            }
            Value::Array(items) => {
                let at = item_at(items, head)?;
                self.below(&format!("{path}[{at}]"), &items[at], rest)
            }
            Value::Str(text) if is_template(text) => {
                let (node, fate) = self.text(path, text, node);
                match fate == Fate::default() {
                    true if node.value != Value::Str(text.clone()) => {
                        self.below(path, &node, &[&[*head], rest].concat())
                    }
                    true => None,
                    false => Some((path.to_owned(), node, fate)),
                }
            }
            _ => None,
        }
    }

    fn not_written(&self, name: &str) -> Wrong {
        let message = format!("`{name}` is not written in this file");
        let (table, key) = name.rsplit_once('.').unwrap_or(("", name));
        if let Some(default) = default_of(name) {
            return (
                message,
                format!("write `{key} = {default}` in `[{table}]`: that is its default"),
            );
        }
        let mut written = Vec::new();
        collect_written(self.root, "", &mut written);
        let help = match nearest(name, written.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if table.starts_with("values") => format!("write `{key} = …` in `[{table}]`"),
            None => {
                "refer to a key that is written, or write the value in `[values]`: `values.name`"
                    .into()
            }
        };
        (message, help)
    }
}

type Failure = Option<Box<Diagnostic>>;

/// The names of one text, and what became of those that it asked for.
struct Scope<'a> {
    resolver: &'a Resolver<'a>,
    fate: Cell<Fate>,
}

impl Names for Scope<'_> {
    fn value(&self, name: &str) -> Result<Node, Wrong> {
        if !name.contains('.') {
            let value = format!("values.{name}");
            let message = format!("`{name}` is no key");
            return Err(match self.resolver.root.at(&value) {
                Some(_) => (message, format!("did you mean `{value}`?")),
                None => (
                    message,
                    "names are dotted keys, such as `train.batch_size` or `values.width`".into(),
                ),
            });
        }
        let (node, fate) = self.resolver.find(name)?;
        self.fate.set(self.fate.get().and(fate));
        match fate == Fate::default() {
            true => Ok(node),
            // What this comes to is not looked at.
            false => Err((String::new(), String::new())),
        }
    }
}

fn refuse(inner: &str, span: Span, (message, help): Wrong) -> Box<Diagnostic> {
    let message = format!("`${{{}}}`: {message}", head(inner));
    Box::new(Diagnostic::error("reference", message).at(span).help(help))
}

fn head(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// A value that a reference brought elsewhere.
fn reached(node: Node, reference: Span) -> Node {
    let value = match node.value {
        Value::Array(items) => {
            let items = items.into_iter().map(|item| reached(item, reference));
            Value::Array(items.collect())
        }
        Value::Table(table) => {
            let entries = table.entries.into_iter().map(|entry| Entry {
                key: entry.key,
                key_span: entry.key_span.used_at(reference),
                node: reached(entry.node, reference),
            });
            let entries = entries.collect();
            Value::Table(Table { entries })
        }
        other => other,
    };
    let span = node.span.used_at(reference);
    Node { span, value }
}

/// Whether names without a dot mean parameters there.
fn is_in_layers(path: &str) -> bool {
    path.starts_with("model.layers") || path.starts_with("model.blocks")
}

/// A value as it is written in a text that is read again.
fn escape(node: Node) -> Node {
    each_text(node, &|text| escaped(&text))
}

/// A value as it is once it was read.
fn unescape(node: Node) -> Node {
    each_text(node, &|text| match parts(&text) {
        Some(parts) if is_template(&text) => {
            let parts = parts.into_iter().map(|part| match part {
                Part::Text(text) => text,
                _ => "${",
            });
            parts.collect()
        }
        _ => text,
    })
}

fn each_text(node: Node, change: &dyn Fn(String) -> String) -> Node {
    let span = node.span;
    let value = match node.value {
        Value::Str(text) => Value::Str(change(text)),
        Value::Array(items) => {
            let items = items.into_iter().map(|item| each_text(item, change));
            Value::Array(items.collect())
        }
        Value::Table(table) => {
            let entries = table.entries.into_iter().map(|entry| Entry {
                key: entry.key,
                key_span: entry.key_span,
                node: each_text(entry.node, change),
            });
            let entries = entries.collect();
            Value::Table(Table { entries })
        }
        other => other,
    };
    Node { span, value }
}

/// Whether there is something in a value that is left to resolve.
fn has_expression(node: &Node) -> bool {
    match &node.value {
        Value::Str(text) => parts(text)
            .is_none_or(|parts| parts.iter().any(|part| matches!(part, Part::Expression(_)))),
        Value::Array(items) => items.iter().any(has_expression),
        Value::Table(table) => table.entries.iter().any(|e| has_expression(&e.node)),
        _ => false,
    }
}

/// How many values there are, a long text counting as several.
fn size(node: &Node) -> usize {
    match &node.value {
        Value::Str(text) => 1 + text.len() / 8,
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Table(table) => 1 + table.entries.iter().map(|e| size(&e.node)).sum::<usize>(),
        _ => 1,
    }
}

fn joined(above: &str, key: &str) -> String {
    match above.is_empty() {
        true => key.to_owned(),
        false => format!("{above}.{key}"),
    }
}

/// A path without the numbers of items.
fn unnumbered(path: &str) -> String {
    let mut rest = path;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        rest = after.split_once(']').map_or("", |(_, behind)| behind);
    }
    plain + rest
}

fn has_template(node: &Node) -> bool {
    match &node.value {
        Value::Str(text) => is_template(text),
        Value::Array(items) => items.iter().any(has_template),
        Value::Table(table) => table.entries.iter().any(|entry| has_template(&entry.node)),
        _ => false,
    }
}

fn collect_paths(keys: &[KeyDoc], above: &str, paths: &mut BTreeSet<String>) {
    for key in keys {
        let path = joined(above, key.key);
        match &key.shape {
            Shape::Scalar(kind) if Kind::is_path(kind) => {
                paths.insert(path);
            }
            Shape::Table(inner) | Shape::Tables(inner) => collect_paths(inner, &path, paths),
            Shape::Variants(variants) => {
                for variant in variants {
                    collect_paths(&variant.keys, above, paths);
                }
            }
            _ => {}
        }
    }
}

fn collect_written(table: &Table, above: &str, written: &mut Vec<String>) {
    for entry in &table.entries {
        let path = joined(above, &entry.key);
        if path != "sweep" {
            if let Value::Table(inner) = &entry.node.value {
                collect_written(inner, &path, written);
            }
            written.push(path);
        }
    }
}

/// The variable and the default of `env:NAME:-default`.
fn environment(inner: &str) -> Option<(&str, Option<&str>)> {
    let asked = inner.trim().strip_prefix("env:")?;
    Some(match asked.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (asked, None),
    })
}

fn is_environment(inner: &str) -> bool {
    environment(inner).is_some()
}

/// Calls `see` with every `${…}` below a table.
fn expressions(table: &Table, see: &mut dyn FnMut(&str)) {
    fn inside(node: &Node, see: &mut dyn FnMut(&str)) {
        match &node.value {
            Value::Str(text) => {
                for part in parts(text).unwrap_or_default() {
                    if let Part::Expression(inner) = part {
                        see(inner);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| inside(item, see)),
            Value::Table(table) => expressions(table, see),
            _ => {}
        }
    }
    table
        .entries
        .iter()
        .for_each(|entry| inside(&entry.node, see));
}

/// The environment variables that a tree asks for.
pub(super) fn environment_names(root: &Table, names: &mut BTreeSet<String>) {
    expressions(root, &mut |inner| {
        names.extend(environment(inner).map(|(name, _)| name.to_owned()));
    });
}

/// Takes out of `[values]` what no reference in the tree needs.
pub fn drop_unused_values(root: &mut Table) {
    let used = used_names(root);
    let Some(at) = root.entries.iter().position(|entry| entry.key == "values") else {
        return;
    };
    if let Value::Table(values) = &mut root.entries[at].node.value {
        keep_used(values, "values", &used);
        if values.entries.is_empty() {
            root.entries.remove(at);
        }
    }
}

fn keep_used(table: &mut Table, above: &str, used: &BTreeSet<String>) {
    table.entries.retain_mut(|entry| {
        let path = joined(above, &entry.key);
        if used
            .iter()
            .any(|name| *name == path || path.starts_with(&format!("{name}.")))
        {
            return true;
        }
        let is_below = used
            .iter()
            .any(|name| name.starts_with(&format!("{path}.")));
        if let Value::Table(inner) = &mut entry.node.value {
            keep_used(inner, &path, used);
        }
        is_below
    });
}

/// The names in all expressions of a tree.
fn used_names(root: &Table) -> BTreeSet<String> {
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut see = |inner: &str| used.extend(names_in(inner).into_iter().map(str::to_owned));
    expressions(root, &mut see);
    // Conditions of a sweep are expressions without `${`.
    if let Some(Value::Table(sweep)) = root.get("sweep").map(|entry| &entry.node.value) {
        bare_texts(sweep, &mut see);
    }
    used
}

/// Warns of values that nothing refers to. Those of a file that others extend may be for others.
pub fn unused_values(document: &Document) -> Vec<Diagnostic> {
    let root = &document.root;
    let Some(Value::Table(values)) = root.get("values").map(|entry| &entry.node.value) else {
        return Vec::new();
    };
    let used = used_names(root);
    let mut warnings = Vec::new();
    let is_base = |span: Span| {
        let source = document.sources.0.get(span.source as usize);
        source.is_some_and(|source| source.extended_by.is_some())
    };
    warn_of_unused(values, "values", &used, &is_base, &mut warnings);
    warnings
}

fn bare_texts(table: &Table, see: &mut dyn FnMut(&str)) {
    fn inside(node: &Node, see: &mut dyn FnMut(&str)) {
        match &node.value {
            Value::Str(text) if !is_template(text) => see(text),
            Value::Array(items) => items.iter().for_each(|item| inside(item, see)),
            Value::Table(table) => bare_texts(table, see),
            _ => {}
        }
    }
    table
        .entries
        .iter()
        .for_each(|entry| inside(&entry.node, see));
}

fn warn_of_unused(
    table: &Table,
    above: &str,
    used: &BTreeSet<String>,
    is_base: &dyn Fn(Span) -> bool,
    warnings: &mut Vec<Diagnostic>,
) {
    for entry in &table.entries {
        let path = joined(above, &entry.key);
        let reaches = |name: &String| *name == path || path.starts_with(&format!("{name}."));
        if used.iter().any(reaches) || is_base(entry.key_span) {
            continue;
        }
        let below = |name: &String| name.starts_with(&format!("{path}."));
        match &entry.node.value {
            Value::Table(inner) => warn_of_unused(inner, &path, used, is_base, warnings),
            _ if used.iter().any(below) => {}
            _ => warnings.push(
                Diagnostic::warning("unused-value", format!("nothing refers to `{path}`"))
                    .at(entry.key_span)
                    .help(format!(
                        "write `\"${{{path}}}\"` where it is meant, or remove it"
                    )),
            ),
        }
    }
}
