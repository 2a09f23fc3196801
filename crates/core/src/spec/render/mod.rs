//! The whole file as one text: every layer merged, every reference resolved, and a comment with the origin after each
//! value.

mod defaults;

use std::path::{Component, Path};

use super::document::{Document, Entry, Node, Table, Value, key_to_toml};
use super::section::joined;
use super::template::{Part, is_template, parts};
use crate::diagnostic::{Source, Sources, Span};

pub use defaults::with_defaults;

/// Lines longer than this are broken where TOML allows it.
const WIDTH: usize = 96;

/// The maximum column of comments, except after longer lines.
const COLUMN: usize = 64;

/// The place of generated text.
const NOWHERE: Span = Span {
    source: u16::MAX,
    start: 0,
    end: 0,
    via: None,
};

/// The place of a name derived from the file name.
const FILE_NAME: Span = Span {
    start: 1,
    ..NOWHERE
};

/// The tree of a document, or of one of its trials, as TOML with origins. `axes` are the keys that the sweep sets,
/// `name` the experiment's name if the tree does not contain it.
pub fn render(document: &Document, root: &Table, axes: &[String], name: &str) -> String {
    let mut root = root.clone();
    name_experiment(&mut root, name);
    let mut renderer = Renderer {
        sources: &document.sources,
        axes,
        blocks: Vec::new(),
        lines: Vec::new(),
    };
    let mut order: Vec<_> = super::describe().iter().map(|doc| doc.key).collect();
    // Referenced tables come before their users, except for the question.
    order.sort_by_key(|key| match *key {
        "experiment" => 0,
        "values" => 1,
        _ => 2,
    });
    let place = |entry: &Entry| order.iter().position(|key| *key == entry.key);
    root.entries
        .sort_by_key(|entry| place(entry).unwrap_or(order.len()));
    renderer.table(&mut Vec::new(), &root);
    let mut text = String::new();
    for block in renderer.blocks {
        text.push('\n');
        text.push_str(&aligned(&block));
    }
    format!("{}{text}", layers(document))
}

/// The sources, as a comment.
fn layers(document: &Document) -> String {
    let mut text = String::from("# Layers, each overriding those before:\n");
    let sources = &document.sources.0;
    let mut order = Vec::new();
    collect_layers(sources, 0, &mut order);
    for source in order {
        let by = source.extended_by.map(|by| &sources[by as usize].name);
        let by = by.map_or(String::new(), |by| format!(", which {by} extends"));
        text.push_str(&format!("#   {}{by}\n", source.name));
    }
    for assignment in &document.overrides {
        text.push_str(&format!("#   --set {}\n", assignment.replace('\n', " ")));
    }
    text
}

/// A file, followed by those that it extends.
fn collect_layers<'a>(sources: &'a [Source], at: usize, order: &mut Vec<&'a Source>) {
    for (below, source) in sources.iter().enumerate() {
        if source.extended_by == Some(at as u16) {
            collect_layers(sources, below, order);
        }
    }
    order.extend(sources.get(at));
}

/// A renamed file must still be the same experiment.
fn name_experiment(root: &mut Table, name: &str) {
    if root.at("experiment.name").is_some() {
        return;
    }
    let node = Node {
        span: FILE_NAME,
        value: Value::Str(name.to_owned()),
    };
    root.set("experiment.name", FILE_NAME, node);
    let experiment = root
        .entries
        .iter_mut()
        .find(|entry| entry.key == "experiment");
    if let Some(Value::Table(table)) = experiment.map(|entry| &mut entry.node.value) {
        table.entries.sort_by_key(|entry| entry.key != "name");
    }
}

/// A line and its comment.
type Line = (String, String);

struct Renderer<'a> {
    sources: &'a Sources,
    axes: &'a [String],
    blocks: Vec<Vec<Line>>,
    lines: Vec<Line>,
}

impl Renderer<'_> {
    /// The keys of a table, then its subtables under their own headers.
    fn table(&mut self, path: &mut Vec<String>, table: &Table) {
        let is_below = |entry: &&Entry| {
            matches!(entry.node.value, Value::Table(_)) && !(path.len() > 1 && path[0] == "sweep")
        };
        let (below, own): (Vec<_>, Vec<_>) = table.entries.iter().partition(is_below);
        if !path.is_empty() && (below.is_empty() || !own.is_empty()) {
            let keys: Vec<_> = path.iter().map(|key| key_to_toml(key)).collect();
            self.lines
                .push((format!("[{}]", keys.join(".")), String::new()));
        }
        for entry in own {
            let above = path.join(".");
            self.entry(&key_to_toml(&entry.key), &joined(&above, &entry.key), entry);
        }
        if !self.lines.is_empty() {
            self.blocks.push(std::mem::take(&mut self.lines));
        }
        for entry in below {
            if let Value::Table(table) = &entry.node.value {
                path.push(entry.key.clone());
                self.table(path, table);
                path.pop();
            }
        }
    }

    fn entry(&mut self, key: &str, path: &str, entry: &Entry) {
        if let Value::Table(table) = &entry.node.value {
            // Axes under nested keys stay lists under dotted keys.
            let is_nested =
                |entry: &Entry| matches!(entry.node.value, Value::Table(_) | Value::Array(_));
            if !table.entries.is_empty() && table.entries.iter().all(is_nested) {
                for entry in &table.entries {
                    let key = format!("{key}.{}", key_to_toml(&entry.key));
                    self.entry(&key, &joined(path, &entry.key), entry);
                }
                return;
            }
        }
        if entry.node.span == NOWHERE {
            // An explicit default may be a mistake, so it is shown.
            let line = format!("# {key} = {}", entry.node.value.to_toml());
            return self.lines.push((line, "default".into()));
        }
        if let (Value::Array(trials), "sweep.list") = (&entry.node.value, path) {
            return self.trials(key, trials);
        }
        self.value(&format!("{key} = "), &entry.node, "", 0, &self.mark(path));
    }

    /// The trials of `[[sweep.list]]`, one per line, in which dotted keys stay dotted.
    fn trials(&mut self, key: &str, trials: &[Node]) {
        self.lines.push((format!("{key} = ["), String::new()));
        for trial in trials {
            let text = match &trial.value {
                Value::Table(table) => table.to_dotted_toml(),
                other => other.to_toml(),
            };
            let line = format!("    {text},");
            self.lines.push((line, self.origin(trial)));
        }
        self.lines.push(("]".into(), String::new()));
    }

    /// The note on a key that an axis sets.
    fn mark(&self, path: &str) -> String {
        if self.axes.iter().any(|axis| axis == path) {
            ", an axis".into()
        } else {
            String::new()
        }
    }

    /// A value between `before` and `after`, on one line if it fits and is not a list of tables.
    fn value(&mut self, before: &str, node: &Node, after: &str, indent: usize, mark: &str) {
        let margin = " ".repeat(indent);
        let line = format!("{margin}{before}{}{after}", node.value.to_toml());
        let is_tables = |value: &Value| matches!(value, Value::Array(items) if items.iter().any(|item| matches!(item.value, Value::Table(_))));
        let fits = line.chars().count() <= WIDTH;
        match &node.value {
            Value::Array(items) if is_tables(&node.value) || (!fits && items.len() > 1) => {
                self.lines
                    .push((format!("{margin}{before}["), String::new()));
                for item in items {
                    self.value("", item, ",", indent + 4, mark);
                }
                self.lines
                    .push((format!("{margin}]{after}"), String::new()));
            }
            Value::Table(table)
                if !fits && table.entries.iter().any(|e| is_tables(&e.node.value)) =>
            {
                // Only lists may be broken inside a table.
                let mut open = format!("{margin}{before}{{ ");
                let mut comment = String::new();
                for (at, entry) in table.entries.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    open.push_str(&format!("{comma}{} = ", key_to_toml(&entry.key)));
                    match &entry.node.value {
                        Value::Array(items) if is_tables(&entry.node.value) => {
                            self.lines
                                .push((format!("{open}["), std::mem::take(&mut comment)));
                            for item in items {
                                self.value("", item, ",", indent + 4, mark);
                            }
                            open = format!("{margin}]");
                        }
                        value => {
                            if comment.is_empty() {
                                comment = self.origin(&entry.node);
                            }
                            open.push_str(&value.to_toml());
                        }
                    }
                }
                self.lines.push((format!("{open} }}{after}"), comment));
            }
            _ => {
                let origin = self.origin(node);
                self.lines.push((line, format!("{origin}{mark}")));
            }
        }
    }

    /// The place of a value, and of values inserted into it.
    fn origin(&self, node: &Node) -> String {
        let mut leaves = Vec::new();
        collect_leaves("", node, &mut leaves);
        let first = leaves.first().map_or(node.span, |(_, leaf)| leaf.span);
        let own = match node.value {
            Value::Table(_) => first,
            _ => node.span,
        };
        let mut words = vec![self.line(own)];
        for (key, leaf) in leaves {
            let Some(more) = self.reference(&leaf) else {
                if leaf.span.source != own.source {
                    words.push(format!("{key}{}", self.line(leaf.span)));
                }
                continue;
            };
            let is_here = leaf.span == own || leaf.span.source == own.source;
            words.push(if is_here {
                more
            } else {
                format!("{key}{} {more}", self.line(leaf.span))
            });
        }
        let mut seen: Vec<String> = Vec::new();
        for word in words {
            if !seen.contains(&word) {
                seen.push(word);
            }
        }
        seen.join(", ")
    }

    fn line(&self, span: Span) -> String {
        match span {
            NOWHERE => return "default".into(),
            FILE_NAME => return "the file's".into(),
            _ => {}
        }
        // Files are named relative to the first one; the head of the text has the rest.
        let line = self.sources.line(span);
        let first = self.sources.0.first().map(|source| Path::new(&source.name));
        let folder = first
            .and_then(Path::parent)
            .filter(|folder| !folder.as_os_str().is_empty());
        match folder.and_then(|folder| seen_from(folder, Path::new(&line))) {
            Some(path) => path,
            None => line,
        }
    }

    /// The reference or expression that a value came from.
    fn reference(&self, leaf: &Node) -> Option<String> {
        if let Value::Str(text) = &leaf.value
            && leaf.span.via.is_none()
            && is_open(text)
        {
            return Some("by trial".into());
        }
        let text = match leaf.span.use_span() {
            Some(reference) => self.sources.text(reference),
            None => self.sources.text(leaf.span),
        };
        let text = text.trim_matches(['"', '\'']);
        if !is_template(text) || text.contains('\n') {
            return None;
        }
        const SHOWN: usize = 48;
        Some(match text.char_indices().nth(SHOWN) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text.to_owned(),
        })
    }
}

/// Whether a text still contains references to keys.
fn is_open(text: &str) -> bool {
    let parts = parts(text).unwrap_or_default();
    let mut parts = parts.iter();
    parts.any(|part| matches!(part, Part::Expression(inner) if inner.contains('.')))
}

/// A path relative to a folder, so that files of the same name in several folders can be told apart; `None` if it is
/// not a path, or if the way up has no name.
fn seen_from(folder: &Path, path: &Path) -> Option<String> {
    if path.to_string_lossy().starts_with("--") || folder.is_absolute() != path.is_absolute() {
        return None;
    }
    let shared = folder.components().zip(path.components());
    let shared = shared.take_while(|(a, b)| a == b).count();
    let up: Vec<Component<'_>> = folder.components().skip(shared).collect();
    if up.contains(&Component::ParentDir) || (folder.is_absolute() && shared < 2 && !up.is_empty())
    {
        return None;
    }
    let up = up.iter().map(|_| "..".to_owned());
    let down = path.components().skip(shared);
    let down = down.map(|part| part.as_os_str().to_string_lossy().into_owned());
    Some(up.chain(down).collect::<Vec<_>>().join("/"))
}

fn collect_leaves(key: &str, node: &Node, leaves: &mut Vec<(String, Node)>) {
    match &node.value {
        Value::Array(items) if !items.is_empty() => {
            items
                .iter()
                .for_each(|item| collect_leaves(key, item, leaves));
        }
        Value::Table(table) if !table.entries.is_empty() => {
            for entry in &table.entries {
                collect_leaves(&format!("{} ", entry.key), &entry.node, leaves);
            }
        }
        _ => leaves.push((key.to_owned(), node.clone())),
    }
}

/// Lines whose comments are aligned with those of their neighbors.
fn aligned(lines: &[Line]) -> String {
    let len = |line: &str| line.chars().count();
    let mut text = String::new();
    for group in lines.chunk_by(|a, b| a.1.is_empty() == b.1.is_empty()) {
        let fitting = group.iter().map(|(line, _)| len(line));
        let column = fitting.filter(|len| *len <= COLUMN).max().unwrap_or(0);
        for (line, comment) in group {
            text.push_str(line);
            if !comment.is_empty() {
                let gap = 2 + column.saturating_sub(len(line));
                text.push_str(&format!("{}# {comment}", " ".repeat(gap)));
            }
            text.push('\n');
        }
    }
    text
}
