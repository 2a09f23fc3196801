//! Resolves the texts of one tree, each once.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::environment::is_environment;
use super::texts::{escape, head, is_in_layers, reached, size};
use super::{References, joined};
use crate::diagnostic::{Diagnostic, Span, Wrong, circle};
use crate::spec::SWEEP_TABLES;
use crate::spec::document::{Entry, Node, Table, Value};
use crate::spec::expression::{
    Names, as_text, evaluate_part, literal, names_in, placed, unclosed, written_out,
};
use crate::spec::remedy;
use crate::spec::template::{Part, escaped, is_template, parts};

/// The maximum length of a chain of references.
const MAX_CHAIN: usize = 64;

/// The maximum number of values, or bytes of text, of references that multiply each other.
const MAX_SIZE: usize = 1 << 17;

/// The state of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Fate {
    /// It, or a part of it, depends on an axis.
    pub(super) is_kept: bool,
    /// It, or a part of it, is wrong, which was already reported.
    pub(super) is_wrong: bool,
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
pub(super) struct State {
    /// Resolved texts, by path: a value with many references is computed once.
    known: BTreeMap<String, (Node, Fate)>,
    /// The texts being resolved, each because of the one before.
    chain: Vec<(String, Span)>,
    pub(super) diagnostics: Vec<Diagnostic>,
    pub(super) failed: Vec<(String, Span)>,
    size: usize,
}

pub(super) struct Resolver<'a> {
    pub(super) references: &'a References<'a>,
    pub(super) root: &'a Table,
    pub(super) open: Vec<String>,
    /// Whether texts will be parsed again.
    pub(super) as_text: bool,
    pub(super) state: RefCell<State>,
}

impl Resolver<'_> {
    pub(super) fn table(&self, above: &str, table: &Table) -> (Table, Fate) {
        let mut fate = Fate::default();
        let entries = table.entries.iter().map(|entry| {
            if above.is_empty() && SWEEP_TABLES.contains(&entry.key.as_str()) {
                // Values of axes are resolved in the trial.
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

    pub(super) fn node(&self, path: &str, node: &Node) -> (Node, Fate) {
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

    /// A text, once. Errors are reported here; the text then stays as it is.
    pub(super) fn text(&self, path: &str, text: &str, node: &Node) -> (Node, Fate) {
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
            Ok(known) => {
                // It has no value before it is that of a trial.
                if known.1.is_kept && !self.as_text {
                    state.failed.push((path.to_owned(), node.span));
                }
                known
            }
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
        // A text in a cycle was already set when the cycle was found.
        let entry = state.known.entry(path.to_owned());
        entry.or_insert(known).clone()
    }

    /// Refuses unlimited growth, once.
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
            .help("use a plain value");
        Err((!was_too_large).then(|| Box::new(diagnostic)))
    }

    /// An error in a text's own resolution.
    fn circle(&self, path: &str) -> Option<Box<Diagnostic>> {
        let state = self.state.borrow();
        let Some(at) = state.chain.iter().position(|(known, _)| known == path) else {
            let (first, span) = state.chain.first()?;
            return (state.chain.len() >= MAX_CHAIN).then(|| {
                let message = format!(
                    "`{first}` refers to a key that refers to another, more than {MAX_CHAIN} times"
                );
                let diagnostic = Diagnostic::error("reference", message).at(*span);
                Box::new(diagnostic.help("refer to the last of them directly"))
            });
        };
        let entries = &state.chain[at..];
        let names: Vec<_> = entries
            .iter()
            .map(|(path, _)| format!("`{path}`"))
            .collect();
        let message = circle(&names, "refers to");
        let mut diagnostic = Diagnostic::error("reference", message).at(entries[0].1);
        for (path, span) in &entries[1..] {
            diagnostic = diagnostic.related(*span, format!("`{path}`"));
        }
        Some(Box::new(
            diagnostic.help("set a plain value for one of them"),
        ))
    }

    fn resolved(&self, path: &str, text: &str, node: &Node) -> Result<(Node, Fate), Failure> {
        let in_layers = is_in_layers(path);
        let Some(parts) = parts(text) else {
            return if in_layers {
                Ok((node.clone(), Fate::default()))
            } else {
                Err(Some(Box::new(unclosed(text, node.span))))
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
            // An expression over an axis is resolved as a whole, once all of it is known.
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
        for part in parts {
            if let Part::Expression(inner) = part
                && let Some(help) = remedy::for_expression(inner)
            {
                let message = "this is an expression of another program";
                return Err(refuse(inner, node.span, Wrong::new(message, help)));
            }
        }
        let is_ours = |inner: &str| {
            let found = names_in(inner);
            let is_dotted = |name: &&str| name.contains('.');
            is_environment(inner) || !in_layers || found.iter().any(is_dotted)
        };
        // In layers the text is parsed again.
        let is_read_again = in_layers || self.as_text;
        let again = |node: Node| if is_read_again { escape(node) } else { node };
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

    /// An expression over keys and block parameters, with the keys replaced by values.
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
                let help = "refer to a number or a short text";
                return Err(refuse(inner, span, Wrong::new(message, help)));
            }
        }
        Ok(written_out(inner, &|name| {
            if name.contains('.') {
                literal(&names.value(name).ok()?.value)
            } else {
                None
            }
        }))
    }
}

type Failure = Option<Box<Diagnostic>>;

/// The names of one text, and the state of the requested ones.
struct Scope<'a> {
    resolver: &'a Resolver<'a>,
    fate: Cell<Fate>,
}

impl Names for Scope<'_> {
    fn value(&self, name: &str) -> Result<Node, Wrong> {
        if !name.contains('.') {
            let value = format!("values.{name}");
            let message = format!("`{name}` is not a key");
            return Err(match self.resolver.root.at(&value) {
                Some(_) => Wrong::new(message, format!("did you mean `{value}`?")),
                None => Wrong::new(
                    message,
                    "names are dotted keys, such as `train.batch_size` or `values.width`",
                ),
            });
        }
        let (node, fate) = self.resolver.find(name)?;
        self.fate.set(self.fate.get().and(fate));
        if fate == Fate::default() {
            Ok(node)
        } else {
            Err(Wrong::new(String::new(), String::new()))
        }
    }
}

fn refuse(inner: &str, span: Span, Wrong { message, help }: Wrong) -> Box<Diagnostic> {
    let message = format!("`${{{}}}`: {message}", head(inner));
    Box::new(Diagnostic::error("reference", message).at(span).help(help))
}
