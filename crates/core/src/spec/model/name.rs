//! Names of layers: type lookup, input resolution, numbering of copies.

use super::common::Common;
use super::expand::*;
use super::layer;
use super::layer_spec::Source;
use super::preset::ModelType;
use crate::diagnostic::{Diagnostic, Span, nearest};
use crate::spec::adversarial::CONDITION;
use crate::spec::document::{Node, Table, Value};
use crate::spec::kind::is_slug;
use crate::spec::remedy;
use crate::spec::section::Choice;

/// Why a name cannot be that of a layer or of an input of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It is not a name of letters, digits, `-`, `_` and `.`.
    Signs,
    /// It has a meaning of its own in `inputs`.
    Reserved,
    /// It would be the number of a layer.
    Number,
}

/// Why a name cannot be that of a layer or of an input, whatever the others are called: the one rule for files and for
/// imported networks.
pub fn unfit(name: &str) -> Option<Unfit> {
    if !is_slug(name) {
        Some(Unfit::Signs)
    } else if RESERVED.contains(&name) {
        Some(Unfit::Reserved)
    } else if name.bytes().all(|byte| byte.is_ascii_digit()) {
        Some(Unfit::Number)
    } else {
        None
    }
}

impl Expander<'_> {
    pub(super) fn type_of(&mut self, table: &Table, span: Span, path: &str) -> Option<String> {
        let blocks = || self.blocks.iter().map(|block| block.name.as_str());
        let known = || {
            let types = layer::types().map(|name| -> &str { name });
            types.chain(["sequence"]).chain(blocks())
        };
        let diagnostic = match table.get("type").map(|entry| &entry.node) {
            Some(Node {
                value: Value::Str(name),
                span,
            }) => {
                if known().any(|known| known == name) {
                    return Some(name.clone());
                }
                let message = format!("unknown layer type `{name}`");
                let diagnostic = Diagnostic::error("unknown-value", message).at(*span);
                if self.broken_blocks.contains(name) {
                    return None;
                }
                let is_preset = ModelType::ALL.iter().any(|(_, known, _)| known == name);
                if is_preset && !["layers", "hub"].contains(&name.as_str()) {
                    let help = format!(
                        "presets are whole networks: write `[model]` with `type = \"{name}\"`; `runner describe SPEC --as-layers` prints its layers"
                    );
                    self.refuse(diagnostic.help(help));
                    return None;
                }
                match remedy::for_value("layer.type", name, known()) {
                    Some(answer) => diagnostic.help(answer),
                    None => diagnostic.help(
                        "docs/reference/layers.md lists the layer types; a block of `[model.blocks]` is also a layer type",
                    ),
                }
            }
            Some(node) => {
                let message = format!(
                    "`{path}.type` must be the name of a layer type, found {}",
                    node.value.kind()
                );
                Diagnostic::error("wrong-type", message)
                    .at(node.span)
                    .help("for example: `type = \"linear\"`")
            }
            None => match remedy::for_missing_type("model.layers[0]", table) {
                Some(entry) => {
                    let message = format!("unknown key `{}` in `{path}`", entry.key);
                    Diagnostic::error("unknown-key", message)
                        .at(entry.key_span)
                        .help("did you mean `type`?")
                }
                None => Diagnostic::error("missing-key", format!("missing key `type` in `{path}`"))
                    .at(span)
                    .help("add `type = …`, for example `type = \"linear\"`"),
            },
        };
        self.refuse(diagnostic);
        None
    }

    pub(super) fn inputs(
        &mut self,
        common: &Common,
        table: &Table,
        siblings: &[Node],
        scope: &Scope,
    ) -> Option<Vec<Source>> {
        if common.inputs.is_empty() {
            return Some(vec![scope.previous]);
        }
        let nodes = match table.get("inputs").map(|entry| &entry.node.value) {
            Some(Value::Array(nodes)) => nodes.clone(),
            _ => return Some(vec![scope.previous]),
        };
        let mut inputs = Vec::new();
        for (name, node) in common.inputs.iter().zip(nodes) {
            let found = match name.as_str() {
                "input" => Some(scope.input),
                "previous" => Some(scope.previous),
                name => scope.source(name),
            };
            match found {
                Some(source) => inputs.push(source),
                // The problem with that layer was already reported.
                None if self.is_wrong() => return None,
                // So was the problem with the inputs of the network.
                None if self.findings.is_poisoned("data") => {
                    self.findings.poisoned.push("model".into());
                    return None;
                }
                None if scope.left_out.contains(name) => {
                    let message =
                        format!("the layer `{name}` is removed by its `when` or `repeat`");
                    self.refuse(
                        Diagnostic::error("unknown-value", message)
                            .at(node.span)
                            .help("give this layer the same `when`, or use another input"),
                    );
                    return None;
                }
                None => {
                    let diagnostic = Diagnostic::error(
                        "unknown-value",
                        if scope.items.is_empty() && scope.given.is_empty() {
                            format!("there is no layer `{name}` before this one")
                        } else {
                            format!(
                                "there is neither an input `{name}` nor a layer before this one"
                            )
                        },
                    )
                    .at(node.span);
                    let is_named = |node: &Node| match &node.value {
                        Value::Table(table) => {
                            matches!(table.get("name").map(|e| &e.node.value), Some(Value::Str(known)) if known == name)
                        }
                        _ => false,
                    };
                    let names = || {
                        let layers = scope.names.iter().map(|(name, _)| name.as_str());
                        let given = scope.given.iter().map(|(name, _)| name.as_str());
                        scope
                            .items
                            .iter()
                            .map(String::as_str)
                            .chain(given)
                            .chain(layers)
                    };
                    let later = siblings.iter().any(is_named);
                    let near = nearest(name, names().chain(RESERVED));
                    self.refuse(match (later, near) {
                        (true, _) => diagnostic.help(
                            "a layer can only use the outputs of earlier layers: move that layer up",
                        ),
                        (_, None) if name == CONDITION => diagnostic.help(
                            "for the target of each item in an adversarial training, set `strategy.conditional = true`",
                        ),
                        (_, Some(near)) => diagnostic.help(format!("did you mean `{near}`?")),
                        _ => {
                            let mut names: Vec<_> = names()
                                .chain(RESERVED)
                                .map(|name| format!("`{name}`"))
                                .collect();
                            names.dedup();
                            diagnostic.help(format!(
                                "give that layer a `name`; the names here are {}",
                                names.join(", ")
                            ))
                        }
                    });
                    return None;
                }
            }
        }
        Some(inputs)
    }

    /// The name inside the block: as written, or the type with a number.
    pub(super) fn local_name(
        &mut self,
        common: &Common,
        table: &Table,
        kind: &str,
        copy: Option<usize>,
        scope: &Scope,
    ) -> Option<String> {
        let Some(name) = &common.name else {
            return Some(kind.to_owned());
        };
        let span = table
            .get("name")
            .map(|entry| entry.node.span)
            .unwrap_or_default();
        match unfit(name) {
            // Refused as a value of the key.
            None | Some(Unfit::Signs) => {}
            Some(Unfit::Reserved) => {
                let message = format!("`{name}` cannot be a layer's name");
                let note = "`input` is the input of the block, `previous` the preceding layer";
                self.refuse(
                    Diagnostic::error("contradiction", message)
                        .at(span)
                        .note(note)
                        .help("choose another name"),
                );
                return None;
            }
            Some(Unfit::Number) => {
                let message = format!(
                    "`{name}` cannot be a layer's name: a number refers to the layer at that position"
                );
                self.refuse(
                    Diagnostic::error("contradiction", message)
                        .at(span)
                        .help("start the name with a letter"),
                );
                return None;
            }
        }
        let is_given = scope.given(name).is_some();
        if is_given || scope.items.contains(name) {
            let of = if is_given {
                "the block"
            } else if scope.items == [CONDITION] {
                "the network"
            } else {
                "`[[data.inputs]]`"
            };
            let message = format!("a layer and an input of {of} are named `{name}`");
            self.refuse(
                Diagnostic::error("repeated-value", message)
                    .at(span)
                    .help("rename one of them"),
            );
            return None;
        }
        match copy {
            Some(copy) => Some(format!("{name}{copy}")),
            None if scope.names.iter().any(|(known, _)| known == name) => {
                let message = format!("two layers are named `{name}`");
                self.refuse(
                    Diagnostic::error("repeated-value", message)
                        .at(span)
                        .help("rename one of them"),
                );
                None
            }
            None => Some(name.clone()),
        }
    }

    /// `base` if it was written and is free, otherwise followed by the first free number.
    pub(super) fn unique(&mut self, base: &str, written: bool) -> String {
        if written && self.names.insert(base.to_owned()) {
            return base.to_owned();
        }
        let number = self
            .numbers
            .entry(base.to_owned())
            .or_insert(written as usize);
        loop {
            *number += 1;
            let name = format!("{base}_{number}");
            if self.names.insert(name.clone()) {
                return name;
            }
        }
    }
}
