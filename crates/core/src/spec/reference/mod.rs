//! `${path.to.key}`: values of other keys.
//!
//! References are resolved for each trial, after the values of its axes are set. A lone reference becomes the whole
//! value, with its type and source place; inside a longer text it becomes text, and arithmetic becomes a number. In the
//! layers of a model, names without a dot are parameters of blocks: those are resolved by `model/expand.rs`.

mod environment;
mod find;
mod resolver;
mod texts;
mod values;

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::document::{Document, Node, Table, Value};
use super::kind::Kind;
use super::section::{Findings, KeyDoc, Shape, joined};
use crate::diagnostic::{Diagnostic, Span};
use resolver::Resolver;
use texts::has_template;
pub(super) use texts::size;

pub(super) use environment::environment_names;
pub use values::{depending, drop_unused_values, unused_values};

/// The references of a document.
pub struct References<'a> {
    document: &'a Document,
    /// Whether no trial has anything to resolve.
    is_idle: bool,
    /// The keys that contain paths.
    path_keys: OnceCell<BTreeSet<String>>,
}

/// A resolved tree, and the errors in its references.
#[derive(Debug)]
pub struct Resolved {
    /// The tree. A wrong reference, or one that depends on the trial, stays as written.
    pub root: Table,
    /// The errors.
    pub diagnostics: Vec<Diagnostic>,
    /// Whether some reference depends on the trial.
    pub is_open: bool,
    /// Unresolved references, wrong ones and ones that depend on the trial: the key, and the place of its text.
    failed: Vec<(String, Span)>,
}

impl Resolved {
    /// Findings in which the keys of unresolved references are poisoned.
    pub fn findings(&self) -> Findings {
        Findings {
            poisoned: self.failed.iter().map(|(path, _)| path.clone()).collect(),
            ..Findings::default()
        }
    }

    /// Puts errors in references first, and removes errors that only follow from them.
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

    /// The folder that resolved paths start from.
    pub fn folder(&self) -> Option<&Path> {
        self.document.folder.as_deref()
    }

    /// Resolves the tree of a trial. References to `open` keys, which axes set, stay as they are.
    pub fn resolve(&self, root: Table, open: &[String]) -> Resolved {
        self.resolve_as(root, open, false)
    }

    /// Like [`References::resolve`], but texts keep the form of a file: `$${` stays.
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

    /// Whether a key contains a path of the user's machine.
    fn is_path(&self, path: &str) -> bool {
        self.path_keys().contains(&unnumbered(path))
    }

    fn path_keys(&self) -> &BTreeSet<String> {
        self.path_keys.get_or_init(|| {
            let mut keys = BTreeSet::new();
            collect_paths(super::describe(), "", &mut keys);
            keys
        })
    }

    /// Prepends `folder` to the paths of a resolved tree.
    pub fn move_to(&self, root: &mut Table, folder: &Path) {
        self.each_path(root, &|_| Some(folder.to_owned()));
    }

    /// Paths are relative to the file that contains them; relative to the first file, that is another path.
    fn move_paths(&self, root: &mut Table) {
        self.each_path(root, &|span| {
            let source = self.document.sources.0.get(span.source as usize)?;
            Some(source.folder.clone())
        });
    }

    /// Prepends the folder of each path.
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

/// A path without list indices.
pub(super) fn unnumbered(path: &str) -> String {
    let mut rest = path;
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once('[') {
        plain.push_str(before);
        rest = after.split_once(']').map_or("", |(_, behind)| behind);
    }
    plain + rest
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
