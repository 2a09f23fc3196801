//! Layers that represent several, by `repeat` and `for_each`, and the limit on how many are expanded.

use super::expand::{Expander, MAX_LAYERS, MAX_STEPS, Scope};
use crate::diagnostic::{Diagnostic, Span};
use crate::spec::document::{Entry, Node, Table, Value};
use crate::spec::expression::{Arguments, substitute};
use crate::spec::kind::Kind;
use crate::spec::reference::size;

/// Maximum number of values of parameters that multiply each other.
const MAX_SIZE: usize = 1 << 16;

impl Expander<'_> {
    /// A layer, as many times as `repeat` or `for_each` says.
    pub(super) fn copies(
        &mut self,
        table: &Table,
        span: Span,
        path: &str,
        siblings: &[Node],
        scope: &mut Scope,
    ) {
        let mut rounds: Vec<Arguments> = vec![Vec::new()];
        let index = |at: usize| {
            let value = Value::Int(at as i64);
            ("index".to_owned(), Node { span, value })
        };
        if let Some(entry) = table.get("repeat") {
            let node = match substitute(&entry.node, &scope.arguments) {
                Ok(node) => node,
                Err(diagnostic) => return self.refuse(*diagnostic),
            };
            let wrong = Kind::Int(0, MAX_LAYERS as i64).check(&format!("{path}.repeat"), &node);
            if let (Value::Int(num), true) = (&node.value, wrong.is_empty()) {
                rounds = (0..*num as usize).map(|at| vec![index(at)]).collect();
            }
            wrong
                .into_iter()
                .for_each(|diagnostic| self.refuse(diagnostic));
        }
        if let Some(entry) = table.get("for_each") {
            match self.for_each(entry, path, scope) {
                Some((name, items)) => {
                    let items = items.into_iter().enumerate();
                    rounds = items
                        .map(|(at, item)| vec![index(at), (name.clone(), item)])
                        .collect();
                }
                None => return,
            }
        }
        if let Some(Value::Str(kind)) = table.get("type").map(|entry| &entry.node.value) {
            self.used_blocks.insert(kind.clone());
        }
        if rounds.is_empty() {
            scope.leave_out(table);
        }
        let several = rounds.len() > 1;
        // Each iteration copies the parameters.
        let held = scope.arguments.iter().map(|(_, node)| size(node));
        let weight = 1 + held.sum::<usize>() / 64;
        for (at, round) in rounds.into_iter().enumerate() {
            if !self.step(weight, span) {
                return;
            }
            let outer = scope.arguments.clone();
            scope.arguments.extend(round);
            self.one(
                table,
                span,
                path,
                siblings,
                several.then_some(at + 1),
                scope,
            );
            scope.arguments = outer;
        }
    }

    /// Counts an expanded layer or block by its cost; returns whether the limit is not yet reached.
    fn step(&mut self, weight: usize, span: Span) -> bool {
        self.num_steps += weight;
        if self.layers.len() < MAX_LAYERS && self.num_steps <= MAX_STEPS && !self.is_full {
            return true;
        }
        self.refuse_size(span);
        false
    }

    /// Refuses a network with too many layers or steps, once.
    pub(super) fn refuse_size(&mut self, span: Span) {
        let message = if self.num_steps <= MAX_STEPS {
            format!("the network has more than {MAX_LAYERS} layers")
        } else {
            format!(
                "blocks and `repeat` expand to more than {MAX_STEPS} parts, most of them without a layer"
            )
        };
        if !self.is_full {
            self.is_full = true;
            let diagnostic = Diagnostic::error("out-of-range", message).at(span);
            self.refuse(diagnostic.help("lower a `repeat`, or use fewer nested blocks"));
        }
    }

    /// Refuses a layer whose parameters have become too large: lists or texts that contain each other twice.
    pub(super) fn is_grown(&mut self, table: &Table, span: Span) -> bool {
        let size: usize = table.entries.iter().map(|entry| size(&entry.node)).sum();
        let has_grown = size > MAX_SIZE;
        if has_grown && !self.is_full {
            self.is_full = true;
            let message = "the parameters of this layer expand to too many values";
            self.refuse(
                Diagnostic::error("out-of-range", message)
                    .at(span)
                    .note("parameters that contain other parameters several times multiply")
                    .help("use plain values"),
            );
        }
        has_grown
    }

    fn for_each(
        &mut self,
        entry: &Entry,
        path: &str,
        scope: &Scope,
    ) -> Option<(String, Vec<Node>)> {
        let node = match substitute(&entry.node, &scope.arguments) {
            Ok(node) => node,
            Err(diagnostic) => {
                self.refuse(*diagnostic);
                return None;
            }
        };
        if let Value::Table(table) = &node.value
            && let [
                Entry {
                    key,
                    node:
                        Node {
                            value: Value::Array(items),
                            ..
                        },
                    ..
                },
            ] = table.entries.as_slice()
        {
            return Some((key.clone(), items.clone()));
        }
        let message = format!("`{path}.for_each` must be a table with one name and a list");
        self.refuse(
            Diagnostic::error("wrong-type", message).at(node.span).help(
                "for example: `for_each = { width = [64, 128] }`, then `${width}` in the layer",
            ),
        );
        None
    }
}
