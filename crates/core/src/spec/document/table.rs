//! Tables by dotted paths.

use super::{Entry, Node, Table, Value};
use crate::diagnostic::Span;

/// Whether one dotted key equals the other or is inside it.
pub fn touch(a: &str, b: &str) -> bool {
    a == b || is_inside(a, b) || is_inside(b, a)
}

/// Whether the dotted key `a` is inside the table `b`.
pub fn is_inside(a: &str, b: &str) -> bool {
    a.strip_prefix(b).is_some_and(|rest| rest.starts_with('.'))
}

impl Table {
    /// The entry of `key`.
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|e| e.key == key)
    }

    /// The entry at a dotted path. In a list of tables a segment is the index of an item from 0, or its `name`.
    pub fn at(&self, path: &str) -> Option<&Entry> {
        let (head, rest) = match path.split_once('.') {
            None => return self.get(path),
            Some(parts) => parts,
        };
        match &self.get(head)?.node.value {
            Value::Table(table) => table.at(rest),
            Value::Array(items) => {
                let (item, rest) = rest.split_once('.')?;
                match &items.get(item_at(items, item)?)?.value {
                    Value::Table(table) => table.at(rest),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The place of the value at a dotted path, or of its key for a table. A segment may end in the index of a list
    /// item: `groups[1]`.
    pub fn span_at(&self, path: &str) -> Option<Span> {
        let (head, rest) = match path.split_once('.') {
            None => (path, None),
            Some((head, rest)) => (head, Some(rest)),
        };
        let (key, at) = match head.strip_suffix(']').and_then(|head| head.split_once('[')) {
            None => (head, None),
            Some((key, at)) => (key, Some(at.parse::<usize>().ok()?)),
        };
        let entry = self.get(key)?;
        let node = match (at, &entry.node.value) {
            (None, _) => &entry.node,
            (Some(at), Value::Array(items)) => items.get(at)?,
            // A value that may be written without a list is its only item.
            (Some(_), _) => &entry.node,
        };
        match (rest, &node.value) {
            (Some(rest), Value::Table(table)) => table.span_at(rest),
            (Some(rest), Value::Array(items)) => {
                let (item, rest) = rest.split_once('.')?;
                match &items.get(item_at(items, item)?)?.value {
                    Value::Table(table) => table.span_at(rest),
                    _ => None,
                }
            }
            (Some(_), _) => None,
            (None, Value::Table(_)) if at.is_none() => Some(entry.key_span),
            (None, _) => Some(node.span),
        }
    }

    /// The missing list item of a dotted path, with the existing ones.
    pub fn missing_item(&self, path: &str) -> Option<(String, Vec<String>)> {
        let (head, rest) = path.split_once('.')?;
        match &self.get(head)?.node.value {
            Value::Table(table) => table.missing_item(rest),
            Value::Array(items) => {
                let (item, rest) = rest.split_once('.').unwrap_or((rest, ""));
                let Some(at) = item_at(items, item) else {
                    let name = |(at, node): (usize, &Node)| match &node.value {
                        Value::Table(table) => match table.get("name").map(|e| &e.node.value) {
                            Some(Value::Str(name)) => name.clone(),
                            _ => at.to_string(),
                        },
                        _ => at.to_string(),
                    };
                    let names = items.iter().enumerate().map(name);
                    return Some((item.to_owned(), names.collect()));
                };
                match &items[at].value {
                    Value::Table(table) => table.missing_item(rest),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The same path with list items by index.
    pub fn numbered(&self, path: &str) -> String {
        let Some((head, rest)) = path.split_once('.') else {
            return path.to_owned();
        };
        let rest = match self.get(head).map(|entry| &entry.node.value) {
            Some(Value::Table(table)) => table.numbered(rest),
            Some(Value::Array(items)) => {
                let (item, behind) = rest.split_once('.').unwrap_or((rest, ""));
                match item_at(items, item).map(|at| (at, &items[at].value)) {
                    Some((at, Value::Table(table))) if !behind.is_empty() => {
                        format!("{at}.{}", table.numbered(behind))
                    }
                    Some((at, _)) if behind.is_empty() => at.to_string(),
                    _ => rest.to_owned(),
                }
            }
            _ => rest.to_owned(),
        };
        format!("{head}.{rest}")
    }

    /// The value at a dotted path, which may end at a list item.
    pub fn value_at(&self, path: &str) -> Option<&Value> {
        let (head, rest) = match path.split_once('.') {
            None => (path, None),
            Some((head, rest)) => (head, Some(rest)),
        };
        match (&self.get(head)?.node.value, rest) {
            (value, None) => Some(value),
            (Value::Table(table), Some(rest)) => table.value_at(rest),
            (Value::Array(items), Some(rest)) => {
                let (item, rest) = match rest.split_once('.') {
                    None => (rest, None),
                    Some((item, rest)) => (item, Some(rest)),
                };
                match (&items.get(item_at(items, item)?)?.value, rest) {
                    (value, None) => Some(value),
                    (Value::Table(table), Some(rest)) => table.value_at(rest),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Removes the entry at a dotted path, if it exists.
    pub fn remove(&mut self, path: &str) {
        let Some((head, rest)) = path.split_once('.') else {
            return self.entries.retain(|entry| entry.key != path);
        };
        let entry = self.entries.iter_mut().find(|entry| entry.key == head);
        match entry.map(|entry| &mut entry.node.value) {
            Some(Value::Table(table)) => table.remove(rest),
            Some(Value::Array(items)) => {
                if let Some((item, rest)) = rest.split_once('.')
                    && let Some(at) = item_at(items, item)
                    && let Value::Table(table) = &mut items[at].value
                {
                    table.remove(rest);
                }
            }
            _ => {}
        }
    }

    /// Sets `node` at a dotted path, creating tables as needed. Anything in the way that is not a table is replaced.
    /// The keys get `key_span`.
    pub fn set(&mut self, path: &str, key_span: Span, node: Node) {
        // A key with dots in it, as axes have.
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.key == path) {
            entry.key_span = key_span;
            entry.node = node;
            return;
        }
        let (head, rest) = match path.split_once('.') {
            None => (path, None),
            Some((head, rest)) => (head, Some(rest)),
        };
        // A quoted key may contain dots, as the keys of axes do.
        let quoted = |e: &Entry| {
            let rest = path.strip_prefix(e.key.as_str());
            e.key.contains('.') && rest.is_some_and(|r| r.is_empty() || r.starts_with('.'))
        };
        let (at, rest) = match self.entries.iter().position(quoted) {
            Some(at) => (Some(at), path.get(self.entries[at].key.len() + 1..)),
            None => (self.entries.iter().position(|e| e.key == head), rest),
        };
        let at = match at {
            Some(at) => at,
            None => {
                self.entries.push(Entry {
                    key: head.to_owned(),
                    key_span,
                    node: Node {
                        span: key_span,
                        value: Value::Table(Table::default()),
                    },
                });
                self.entries.len() - 1
            }
        };
        let entry = &mut self.entries[at];
        let Some(rest) = rest else {
            entry.key_span = key_span;
            entry.node = node;
            return;
        };
        if let (Value::Array(items), Some((item, rest))) =
            (&mut entry.node.value, rest.split_once('.'))
            && let Some(at) = item_at(items, item)
            && let Value::Table(table) = &mut items[at].value
        {
            return table.set(rest, key_span, node);
        }
        if let Value::Array(items) = &mut entry.node.value
            && let Some(at) = item_at(items, rest)
        {
            items[at] = node;
            return;
        }
        if !matches!(entry.node.value, Value::Table(_)) {
            entry.node = Node {
                span: key_span,
                value: Value::Table(Table::default()),
            };
        }
        if let Value::Table(table) = &mut entry.node.value {
            table.set(rest, key_span, node);
        }
    }
}

/// The position of an item in a list of tables, by its index or its `name`.
pub(in crate::spec) fn item_at(items: &[Node], item: &str) -> Option<usize> {
    let is_named = |node: &Node| match &node.value {
        Value::Table(table) => {
            table.get("name").map(|entry| &entry.node.value) == Some(&Value::Str(item.to_owned()))
        }
        _ => false,
    };
    let number = item.parse().ok().filter(|at| *at < items.len());
    number.or_else(|| items.iter().position(is_named))
}
