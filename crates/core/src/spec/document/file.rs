//! An experiment file with its edits.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::parse::parse_table;
use super::write::bare_to_toml;
use super::{Node, Table, Value};
use crate::diagnostic::{Diagnostic, Diagnostics, Sources, Span};
use crate::spec::search::{Prior, Suggestion};
use crate::spec::{extends, reference};

/// A dotted key with more parts is meaningless.
pub(crate) const MAX_PARTS: usize = 64;

/// An experiment file, read and parsed, with the edits of `--set`.
#[derive(Clone, Debug)]
pub struct Document {
    /// The texts that spans point into; the first is the file.
    pub sources: Sources,
    /// The root table.
    pub root: Table,
    /// The folder that its paths start from; `None` for a text that is in no folder.
    pub folder: Option<PathBuf>,
    /// The edits, as the user wrote them.
    pub overrides: Vec<String>,
    /// The environment variables that it uses; `None` for those that are not set.
    pub environment: BTreeMap<String, Option<String>>,
    /// The points of its search so far; `None` for those of the first round.
    pub suggestions: Option<Vec<Suggestion>>,
    /// The trials of earlier results that its search learns from; `None` if they were not read.
    pub prior: Option<Vec<Prior>>,
}

impl Document {
    /// Reads and parses a file and those that it extends. `path` is as the user wrote it, for messages.
    pub fn read(path: &Path) -> Result<Self, (Sources, Diagnostics)> {
        let name = path.display().to_string();
        let text = match extends::read_text(path) {
            Ok(text) => text,
            Err(reason) => {
                let diagnostic = reason.diagnostic(&name);
                let diagnostic = match reason.near(path) {
                    Some(help) => diagnostic.help(help),
                    None => diagnostic.help(reason.help()),
                };
                return Err((Sources::default(), Diagnostics(vec![diagnostic])));
            }
        };
        Self::compose(&name, &text, path.parent())
    }

    /// Parses a text that does not extend others.
    pub fn parse(name: &str, text: &str) -> Result<Self, (Sources, Diagnostics)> {
        Self::compose(name, text, None)
    }

    /// Parses a text, and reads the files that it extends, relative to `folder`.
    pub fn compose(
        name: &str,
        text: &str,
        folder: Option<&Path>,
    ) -> Result<Self, (Sources, Diagnostics)> {
        let (sources, root) = extends::compose(name, text, folder)?;
        Ok(Self {
            sources,
            root,
            folder: folder.map(Path::to_owned),
            overrides: Vec::new(),
            environment: BTreeMap::new(),
            suggestions: None,
            prior: None,
        })
    }

    /// Looks up the environment variables that the document uses. The caller decides whether a document may see the
    /// environment; without this, no variable is set.
    pub fn look_up(&mut self, variable: &dyn Fn(&str) -> Option<String>) {
        let mut names = BTreeSet::new();
        reference::environment_names(&self.root, &mut names);
        let looked_up = names.into_iter().map(|name| {
            let value = variable(&name);
            (name, value)
        });
        self.environment = looked_up.collect();
    }

    /// Applies one `--set key=value`. The value is TOML; a bare word is read as a string.
    pub fn set(&mut self, assignment: &str) -> Result<(), Box<Diagnostic>> {
        let usage = "use `--set key=value`, for example `--set optimizer.learning_rate=1e-2`";
        let refuse = |message| Box::new(Diagnostic::error("bad-override", message).help(usage));
        let Some((key, value)) = assignment.split_once('=') else {
            let message = format!("`--set {assignment}` has no `=`");
            return Err(refuse(message));
        };
        let (key, value) = (key.trim(), value.trim());
        if key.is_empty() || key.split('.').any(str::is_empty) {
            let message = format!("`--set {assignment}` names no key");
            return Err(refuse(message));
        }
        if key.split('.').count() > MAX_PARTS {
            let message = format!("the key of `--set` has more than {MAX_PARTS} parts");
            return Err(refuse(message));
        }
        if key.split('.').next() == Some("extends") {
            let message =
                format!("`--set {assignment}` has no effect: the files have already been read");
            let help = "set `extends` in the file, or create a small file that extends others";
            return Err(Box::new(
                Diagnostic::error("bad-override", message).help(help),
            ));
        }
        if let Some((item, names)) = self.root.missing_item(key) {
            let message = format!("`--set {assignment}`: the list has no item `{item}`");
            let help = format!(
                "its items are {}, by name or number from 0",
                names.join(", ")
            );
            return Err(Box::new(
                Diagnostic::error("bad-override", message).help(help),
            ));
        }
        let value = bare_to_toml(value);
        let text = format!("{key} = {value}");
        let source = self.sources.add("--set", &text);
        let key_span = Span::of(source, 0..key.len());
        let offset = key.len() as u32 + 3;
        let parsed = parse_table(&format!("v = {value}"), source, &mut Diagnostics::default());
        if let Some(entry) = parsed.entries.into_iter().next() {
            let mut node = entry.node;
            shift(&mut node, offset as i64 - 4);
            self.root.set(key, key_span, node);
        }
        self.overrides.push(assignment.to_owned());
        Ok(())
    }
}

fn shift(node: &mut Node, by: i64) {
    node.span.start = (node.span.start as i64 + by) as u32;
    node.span.end = (node.span.end as i64 + by) as u32;
    match &mut node.value {
        Value::Array(items) => items.iter_mut().for_each(|n| shift(n, by)),
        Value::Table(table) => table.entries.iter_mut().for_each(|e| {
            e.key_span.start = (e.key_span.start as i64 + by) as u32;
            e.key_span.end = (e.key_span.end as i64 + by) as u32;
            shift(&mut e.node, by);
        }),
        _ => {}
    }
}
