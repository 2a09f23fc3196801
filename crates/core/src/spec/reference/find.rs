//! The value of a dotted name, or a remedy for a wrong name.

use super::joined;
use super::resolver::{Fate, Resolver};
use super::texts::{has_expression, is_in_layers, unescape};
use crate::diagnostic::{Span, Wrong};
use crate::spec::SWEEP_TABLES;
use crate::spec::document::{Node, Table, Value, item_at, touch};
use crate::spec::hints::{default_of, nearest_path};
use crate::spec::template::is_template;

impl Resolver<'_> {
    /// The value at a dotted path, resolved.
    pub(super) fn find(&self, name: &str) -> Result<(Node, Fate), Wrong> {
        let segments: Vec<_> = name.split('.').collect();
        if segments[0] == "sweep" {
            return Err(Wrong::new(
                "`sweep` contains the values of all trials",
                "refer to the key that is varied: it has one value in each trial",
            ));
        }
        if segments[0] == "search" {
            return Err(Wrong::new(
                "`search` is about all trials, and none has it",
                "put the value into `[values]`, and refer to that",
            ));
        }
        let number = self.root.numbered(name);
        if self.open.iter().any(|key| touch(key, &number)) {
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
                    true => Err(Wrong::new(
                        format!("`{name}` contains `${{…}}` with parameters of a block"),
                        "refer to the value passed to the block",
                    )),
                }
            }
            None => Err(self.not_written(name)),
        }
    }

    /// The value below a node, resolved only if necessary.
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
        let message = format!("`{name}` is not set in this file");
        let (table, key) = name.rsplit_once('.').unwrap_or(("", name));
        if let Some(default) = default_of(name) {
            let help = format!("set `{key} = {default}` in `[{table}]`, which is its default");
            return Wrong::new(message, help);
        }
        if self.state.borrow().diagnostics.len() > MAX_EXPLAINED {
            return Wrong::new(message, "refer to a key that is set");
        }
        let mut written = Vec::new();
        collect_written(self.root, "", &mut written);
        let help = match nearest_path(name, written.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None if table.starts_with("values") => format!("set `{key} = …` in `[{table}]`"),
            None => {
                "refer to a key that is set, or add the value to `[values]`: `values.name`".into()
            }
        };
        Wrong::new(message, help)
    }
}

/// For more wrong references than this, no suggestions are computed: they are not shown.
const MAX_EXPLAINED: usize = 100;

fn collect_written(table: &Table, above: &str, written: &mut Vec<String>) {
    for entry in &table.entries {
        let path = joined(above, &entry.key);
        if !SWEEP_TABLES.contains(&path.as_str()) {
            if let Value::Table(inner) = &entry.node.value {
                collect_written(inner, &path, written);
            }
            written.push(path);
        }
    }
}
