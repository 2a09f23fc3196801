//! Blocks: named groups of layers, with parameters, used as a layer type.

use super::expand::*;
use super::layer;
use super::layer_spec::Source;
use super::name::{Unfit, unfit};
use super::preset::is_in_preset;
use crate::diagnostic::{Diagnostic, Span};
use crate::spec::document::{Entry, Node, Table, Value};
use crate::spec::expression::Arguments;

/// How a block is defined.
const DEFINITION: &str =
    "define `[model.blocks.<name>]` with `parameters = { channels = 64 }` and `layers = […]`";

impl Expander<'_> {
    pub(super) fn read_blocks(&mut self, entry: &Entry) {
        let Value::Table(blocks) = &entry.node.value else {
            let message = format!(
                "`model.blocks` must be a table of blocks, found {}",
                entry.node.value.kind()
            );
            let wrong = Diagnostic::error("wrong-type", message);
            return self.refuse(wrong.at(entry.node.span).help(DEFINITION));
        };
        for entry in &blocks.entries {
            self.broken_blocks.insert(entry.key.clone());
            match self.read_block(entry) {
                Ok(Some(block)) => {
                    self.broken_blocks.remove(&entry.key);
                    self.blocks.push(block);
                }
                Ok(None) => {}
                Err(diagnostic) => self.refuse(*diagnostic),
            }
        }
    }

    /// A block of the file; `None` if its layers were refused.
    fn read_block(&mut self, block: &Entry) -> Result<Option<Block>, Box<Diagnostic>> {
        let name = &block.key;
        let path = format!("model.blocks.{name}");
        if name == "sequence" || layer::types().any(|known| known == name) {
            let message = format!("the block `{name}` has the same name as a layer type");
            let wrong = Diagnostic::error("contradiction", message).at(block.key_span);
            return Err(Box::new(wrong.help("choose another name")));
        }
        let Value::Table(table) = &block.node.value else {
            let message = format!(
                "`{path}` must be a table, found {}",
                block.node.value.kind()
            );
            let wrong = Diagnostic::error("wrong-type", message).at(block.node.span);
            return Err(Box::new(wrong.help(DEFINITION)));
        };
        let unknown = table
            .entries
            .iter()
            .find(|e| !["inputs", "parameters", "layers"].contains(&e.key.as_str()));
        if let Some(unknown) = unknown {
            let message = format!("unknown key `{}` in `{path}`", unknown.key);
            let wrong = Diagnostic::error("unknown-key", message).at(unknown.key_span);
            self.refuse(wrong.help("the keys here are `inputs`, `parameters`, `layers`"));
        }
        let parameters = parameters(name, &path, table)?;
        let inputs = inputs(name, &path, table)?;
        let missing = || {
            let message = format!("the block `{name}` has no `layers`");
            let missing = Diagnostic::error("missing-key", message).at(block.key_span);
            missing.help(DEFINITION)
        };
        let layers = self.layers_of(table, &path, missing);
        Ok(layers.map(|layers| Block {
            name: name.clone(),
            inputs,
            parameters,
            layers,
        }))
    }

    /// Expands a use of a block; returns what the names of its layers begin with, and its output.
    pub(super) fn block(
        &mut self,
        at: usize,
        table: &Table,
        span: Span,
        local: &str,
        inputs: Vec<Source>,
        scope: &Scope,
    ) -> (String, Source) {
        let block = &self.blocks[at];
        let (name, names, layers, mut arguments) = (
            block.name.clone(),
            block.inputs.clone(),
            block.layers.clone(),
            block.parameters.clone(),
        );
        let used = table.get("type").map_or(span, |entry| entry.node.span);
        if scope.depth >= MAX_DEPTH {
            self.refuse_depth(&name, used);
            return (String::new(), inputs[0]);
        }
        let mut known = vec!["type", "name", "inputs", "repeat", "when", "freeze"];
        let parameters: Vec<String> = arguments.iter().map(|(key, _)| key.clone()).collect();
        known.extend(parameters.iter().map(String::as_str));
        self.refuse_other_keys(table, &known, &format!("the block `{name}`"));
        for (key, default) in &mut arguments {
            let Some(entry) = table.get(key) else {
                continue;
            };
            let (wanted, found) = (default.value.kind(), entry.node.value.kind());
            let is_whole = matches!(
                (&default.value, &entry.node.value),
                (Value::Float(_), Value::Int(_))
            );
            if wanted != found && !is_whole {
                let message =
                    format!("`{key}` of the block `{name}` is {wanted} by default, found {found}");
                self.refuse(
                    Diagnostic::error("wrong-type", message)
                        .at(entry.node.span)
                        .help(format!(
                            "for example: `{key} = {}`",
                            default.value.to_toml()
                        )),
                );
                continue;
            }
            *default = entry.node.clone();
        }
        let named = table.get("name").is_some();
        let group = self.unique(&format!("{}{local}", scope.prefix), named);
        let mut uses = scope.uses.clone();
        if !is_in_preset(used) {
            uses.push(used);
        }
        let prefix = format!("{group}.");
        let given = names.into_iter().zip(inputs.iter().copied());
        let mut inner = Scope {
            prefix: prefix.clone(),
            names: Vec::new(),
            items: Vec::new(),
            given: given.collect(),
            left_out: Vec::new(),
            previous: inputs[0],
            input: inputs[0],
            arguments,
            uses,
            depth: scope.depth + 1,
        };
        let path = format!("model.blocks.{name}.layers");
        self.path.push(name);
        self.list(&layers, &path, &mut inner);
        self.path.pop();
        (prefix, inner.previous)
    }

    /// Refuses a group that is used with another number of inputs than it takes.
    pub(super) fn refuse_inputs(
        &mut self,
        (kind, block): (&str, Option<usize>),
        num: usize,
        table: &Table,
        span: Span,
    ) -> bool {
        let names = block.map_or(&[][..], |at| &self.blocks[at].inputs);
        if num == names.len().max(1) {
            return false;
        }
        let listed = |quote: char| {
            let names = names.iter().map(|name| format!("{quote}{name}{quote}"));
            names.collect::<Vec<_>>().join(", ")
        };
        let (takes, help) = match (names, block) {
            ([], None) => (
                "one input".to_owned(),
                "combine them first, with `add` or `concat`".to_owned(),
            ),
            ([], Some(_)) => (
                "one input".to_owned(),
                format!(
                    "combine them first, with `add` or `concat`, or name the inputs of the block: `inputs = [\"a\", \"b\"]` in `[model.blocks.{kind}]`"
                ),
            ),
            ([one], _) => (
                format!("one input, `{one}`"),
                "list one layer in `inputs`".to_owned(),
            ),
            (names, _) => (
                format!("{} inputs, {}", names.len(), listed('`')),
                format!(
                    "list {} layers in `inputs`, in this order; `\"previous\"` is the layer before",
                    names.len()
                ),
            ),
        };
        let span = table.get("inputs").map_or(span, |entry| entry.node.span);
        let message = format!("a `{kind}` takes {takes}, found {num}");
        let diagnostic = Diagnostic::error("shape", message).at(span);
        self.refuse(diagnostic.help(help));
        true
    }

    /// A block nested too deeply: nothing more is expanded, since the others may be nested too deeply as well, and they
    /// multiply.
    fn refuse_depth(&mut self, name: &str, used: Span) {
        self.is_full = true;
        let (message, help) = if self.path.iter().any(|outer| outer == name) {
            (
                format!("the block `{name}` contains itself without end"),
                "use another block, or end the recursion with `when`, such as `when = \"${depth > 1}\"`",
            )
        } else {
            (
                format!("blocks are nested more than {MAX_DEPTH} deep, down to `{name}`"),
                "use `repeat` or `for_each` instead of nested blocks",
            )
        };
        let diagnostic = Diagnostic::error("contradiction", message).at(used);
        self.refuse(diagnostic.help(help));
    }
}

/// The names of a block's inputs.
fn inputs(name: &str, path: &str, table: &Table) -> Result<Vec<String>, Box<Diagnostic>> {
    const EXAMPLE: &str = "for example: `inputs = [\"query\", \"memory\"]`";
    let Some(entry) = table.get("inputs") else {
        return Ok(Vec::new());
    };
    let wrong = |node: &Node| {
        let found = node.value.kind();
        let message = format!("`{path}.inputs` must be a list of names, found {found}");
        let wrong = Diagnostic::error("wrong-type", message).at(node.span);
        Err(Box::new(wrong.help(EXAMPLE)))
    };
    let Value::Array(nodes) = &entry.node.value else {
        return wrong(&entry.node);
    };
    let mut names: Vec<String> = Vec::new();
    for node in nodes {
        let Value::Str(input) = &node.value else {
            return wrong(node);
        };
        let (code, message) = match unfit(input) {
            None if names.contains(input) => (
                "repeated-value",
                format!("two inputs of the block `{name}` are named `{input}`"),
            ),
            None => {
                names.push(input.clone());
                continue;
            }
            Some(Unfit::Reserved) => (
                "contradiction",
                format!(
                    "`{input}` cannot be the name of an input: it is the first input, or the preceding layer"
                ),
            ),
            Some(_) => (
                "wrong-type",
                format!(
                    "`{input}` cannot be the name of an input: use letters, digits, `-` and `_`, and start with a letter"
                ),
            ),
        };
        let wrong = Diagnostic::error(code, message).at(node.span);
        return Err(Box::new(wrong.help("choose another name")));
    }
    if names.is_empty() {
        let message = format!("`{path}.inputs` is empty");
        let wrong = Diagnostic::error("out-of-range", message).at(entry.node.span);
        return Err(Box::new(wrong.help(format!(
            "{EXAMPLE}, or remove it: a block takes one input, `input`"
        ))));
    }
    Ok(names)
}

/// The parameters of a block with their defaults.
fn parameters(name: &str, path: &str, table: &Table) -> Result<Arguments, Box<Diagnostic>> {
    let parameters: Arguments = match table.get("parameters").map(|entry| &entry.node) {
        None => Vec::new(),
        Some(Node {
            value: Value::Table(table),
            ..
        }) => {
            let entries = table.entries.iter();
            entries.map(|e| (e.key.clone(), e.node.clone())).collect()
        }
        Some(node) => {
            let message = format!(
                "`{path}.parameters` must be a table, found {}",
                node.value.kind()
            );
            let help = "give each parameter a default: `parameters = { channels = 64 }`";
            let wrong = Diagnostic::error("wrong-type", message).at(node.span);
            return Err(Box::new(wrong.help(help)));
        }
    };
    let taken = [
        "type", "name", "inputs", "repeat", "when", "freeze", "share", "for_each", "index",
    ];
    let mut reserved = parameters.iter();
    match reserved.find(|(key, _)| taken.contains(&key.as_str())) {
        Some((key, node)) => {
            let message = format!(
                "`{key}` cannot be a parameter of the block `{name}`: every layer has this key"
            );
            let wrong = Diagnostic::error("contradiction", message).at(node.span);
            Err(Box::new(wrong.help("choose another name")))
        }
        None => Ok(parameters),
    }
}
