//! From `[[model.layers]]` to a list of single layers: blocks are expanded, repetitions unrolled, names and inputs
//! resolved. Presets are processed in the same way.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::NetworkInputs;
use super::layer_spec::{LayerSpec, Source};
use super::preset::is_in_preset;
use crate::diagnostic::{Diagnostic, Span};
use crate::show::listed;
use crate::spec::document::{Node, Table, Value};
use crate::spec::expression::Arguments;
use crate::spec::remedy;
use crate::spec::section::Findings;

/// More layers than this are a mistake in a `repeat`.
pub const MAX_LAYERS: usize = 4096;

/// Maximum number of expanded layers and blocks, even if they result in no layer. Nested blocks multiply, so far more
/// may be expanded than results.
pub(super) const MAX_STEPS: usize = 16 * MAX_LAYERS;

/// Deeper nesting than this is a block that contains itself, or a mistake.
pub(super) const MAX_DEPTH: usize = 32;

/// Reserved names: the input of the block, and the preceding layer.
pub const RESERVED: [&str; 2] = ["input", "previous"];

/// Named layers, with parameters.
pub(super) struct Block {
    pub(super) name: String,
    /// The names of its inputs; none if it has one, which is `input`.
    pub(super) inputs: Vec<String>,
    pub(super) parameters: Arguments,
    pub(super) layers: Vec<Node>,
}

/// The layers of a named layer or block.
#[derive(Clone)]
pub(super) struct Part {
    /// Its first layer, and one past its last.
    pub(super) layers: Range<usize>,
    /// What names of layers inside it begin with; the name of a single layer.
    pub(super) prefix: String,
    /// Its inputs.
    pub(super) inputs: Vec<Source>,
    /// Its output.
    pub(super) output: Source,
}

impl Part {
    /// Whether it is a block or sequence.
    pub(super) fn is_group(&self) -> bool {
        self.prefix.ends_with('.')
    }
}

/// The context of a list of layers.
#[derive(Clone)]
pub(super) struct Scope {
    /// The prefix of names.
    pub(super) prefix: String,
    /// What can be referenced.
    pub(super) names: Vec<(String, Part)>,
    /// The named inputs of the network, which blocks do not see.
    pub(super) items: Vec<String>,
    /// The named inputs of the block.
    pub(super) given: Vec<(String, Source)>,
    /// The input of the block, or its first one.
    pub(super) input: Source,
    /// The output of the preceding layer.
    pub(super) previous: Source,
    pub(super) arguments: Arguments,
    pub(super) uses: Vec<Span>,
    pub(super) depth: usize,
    /// Names of layers that `when` or `repeat` removed.
    pub(super) left_out: Vec<String>,
}

impl Scope {
    /// Records that a named layer is not present.
    pub(super) fn leave_out(&mut self, table: &Table) {
        if let Some(Value::Str(name)) = table.get("name").map(|entry| &entry.node.value) {
            self.left_out.push(name.clone());
        }
    }

    /// Makes a layer's output the preceding one, and known by its name, which copies have with their number too.
    pub(super) fn follow(&mut self, name: Option<String>, copy: Option<usize>, part: Part) {
        self.previous = part.output;
        if let Some(name) = name {
            if let Some(copy) = copy {
                self.names.push((format!("{name}{copy}"), part.clone()));
            }
            self.names.push((name, part));
        }
    }

    /// The output of a layer or block, or an input of the block or the network, by its name.
    pub(super) fn source(&self, name: &str) -> Option<Source> {
        let item = || self.items.iter().position(|item| item == name);
        let part = self.part(name).map(|part| part.output);
        part.or_else(|| self.given(name))
            .or_else(|| item().map(Source::Part))
    }

    /// An input of the block by its name.
    pub(super) fn given(&self, name: &str) -> Option<Source> {
        let mut given = self.given.iter();
        given.find_map(|(known, source)| (known == name).then_some(*source))
    }

    /// The latest layer or block of a name.
    pub(super) fn part(&self, name: &str) -> Option<&Part> {
        let mut named = self.names.iter().rev();
        named.find_map(|(known, part)| (known == name).then_some(part))
    }
}

/// The layers of a model: `model` contains `layers` and `blocks`, `arguments` the values of its parameters. For a
/// preset, `preset` is its name with the place that requests it. `inputs` are the names of the network's inputs, if they
/// have names.
pub fn expand(
    model: &Table,
    arguments: Arguments,
    preset: Option<(&'static str, Span)>,
    inputs: &NetworkInputs,
    findings: &mut Findings,
) -> Vec<LayerSpec> {
    let mut expander = Expander {
        findings,
        blocks: Vec::new(),
        layers: Vec::new(),
        preset,
        is_full: false,
        num_steps: 0,
        path: Vec::new(),
        names: BTreeSet::new(),
        numbers: BTreeMap::new(),
        used_blocks: BTreeSet::new(),
        broken_blocks: BTreeSet::new(),
    };
    if let Some(entry) = model.get("blocks") {
        expander.read_blocks(entry);
    }
    let items = inputs.first();
    let mut scope = Scope {
        prefix: String::new(),
        names: Vec::new(),
        items: inputs.all(),
        given: Vec::new(),
        input: items,
        previous: items,
        arguments,
        uses: Vec::new(),
        depth: 0,
        left_out: Vec::new(),
    };
    if let Some(entry) = model.get("layers") {
        match &entry.node.value {
            Value::Array(layers) if !layers.is_empty() => {
                expander.list(layers, "model.layers", &mut scope);
            }
            Value::Array(_) => expander.refuse(
                Diagnostic::error("out-of-range", "`model.layers` is empty")
                    .at(entry.node.span)
                    .help("add `[[model.layers]]` with a `type`, such as \"linear\""),
            ),
            other => expander.refuse(not_layers("model.layers", entry.node.span, other)),
        }
    }
    if !expander.is_wrong() && inputs.names.len() > 1 {
        expander.refuse_unnamed(&inputs.names);
    }
    if !expander.is_wrong() {
        expander.refuse_nothing(model);
    }
    expander.layers
}

pub(super) fn not_layers(path: &str, span: Span, found: &Value) -> Diagnostic {
    let message = format!("`{path}` must be a list of layers, found {}", found.kind());
    Diagnostic::error("wrong-type", message).at(span).help(
        "add `[[model.layers]]` for each layer, or a list such as `layers = [{ type = \"relu\" }]`",
    )
}

pub(super) struct Expander<'a> {
    pub(super) findings: &'a mut Findings,
    pub(super) blocks: Vec<Block>,
    pub(super) layers: Vec<LayerSpec>,
    pub(super) preset: Option<(&'static str, Span)>,
    /// Whether a limit was already reported, and expansion stops.
    pub(super) is_full: bool,
    /// The number of expanded layers and blocks.
    pub(super) num_steps: usize,
    /// The blocks being expanded, each used by the one before.
    pub(super) path: Vec<String>,
    /// The names of layers, and of blocks in use.
    pub(super) names: BTreeSet<String>,
    /// How many times a name was numbered.
    pub(super) numbers: BTreeMap<String, usize>,
    pub(super) used_blocks: BTreeSet<String>,
    /// Refused blocks: their uses need no further message.
    pub(super) broken_blocks: BTreeSet<String>,
}

impl Expander<'_> {
    pub(super) fn refuse(&mut self, mut diagnostic: Diagnostic) {
        if let Some((preset, place)) = self.preset
            && diagnostic.span.is_none_or(is_in_preset)
        {
            diagnostic = diagnostic
                .at(place)
                .note(format!("in a layer of the preset `{preset}`"));
        }
        self.findings.refuse("model", diagnostic);
    }

    pub(super) fn list(&mut self, layers: &[Node], path: &str, scope: &mut Scope) {
        for (at, node) in layers.iter().enumerate() {
            if self.is_full {
                return;
            }
            let path = format!("{path}[{at}]");
            match &node.value {
                Value::Table(table) => self.copies(table, node.span, &path, layers, scope),
                other => {
                    let message =
                        format!("`{path}` must be a layer's table, found {}", other.kind());
                    self.refuse(
                        Diagnostic::error("wrong-type", message)
                            .at(node.span)
                            .help("for example: `{ type = \"relu\" }`"),
                    );
                }
            }
        }
    }

    /// The list under `layers` of a table; `None` if it was refused.
    pub(super) fn layers_of(
        &mut self,
        table: &Table,
        path: &str,
        missing: impl FnOnce() -> Diagnostic,
    ) -> Option<Vec<Node>> {
        let wrong = match table.get("layers") {
            Some(entry) => match &entry.node.value {
                Value::Array(layers) => return Some(layers.clone()),
                other => not_layers(&format!("{path}.layers"), entry.node.span, other),
            },
            None => missing(),
        };
        self.refuse(wrong);
        None
    }

    pub(super) fn refuse_other_keys(&mut self, table: &Table, known: &[&str], place: &str) {
        for entry in table
            .entries
            .iter()
            .filter(|entry| !known.contains(&entry.key.as_str()))
        {
            let message = format!("unknown key `{}` in {place}", entry.key);
            let diagnostic = Diagnostic::error("unknown-key", message).at(entry.key_span);
            let answer = remedy::for_key("model.layers[0]", entry, table, known);
            self.refuse(match answer {
                Some(answer) => diagnostic.help(answer),
                None => {
                    let known: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
                    diagnostic.help(format!("the keys here are {}", known.join(", ")))
                }
            });
        }
    }

    pub(super) fn is_wrong(&self) -> bool {
        self.findings.is_poisoned("model")
    }

    /// A network without layers, or an unused block, is a mistake in the file.
    fn refuse_nothing(&mut self, model: &Table) {
        let layers = model.get("layers").map(|entry| entry.node.span);
        if self.layers.is_empty() {
            let message = "`when` and `repeat` leave the network without layers";
            let diagnostic = Diagnostic::error("contradiction", message);
            self.refuse(
                diagnostic
                    .at(layers.unwrap_or_default())
                    .help("keep at least one layer"),
            );
        }
        let blocks = model.get("blocks").map(|entry| &entry.node.value);
        if let (Some(Value::Table(blocks)), None) = (blocks, self.preset) {
            let unused = blocks
                .entries
                .iter()
                .find(|block| !self.used_blocks.contains(&block.key));
            if let Some(block) = unused {
                let message = format!("the block `{}` is never used", block.key);
                self.refuse(
                    Diagnostic::error("contradiction", message)
                        .at(block.key_span)
                        .help(format!(
                            "use it as a layer, `{{ type = \"{}\" }}`, or remove it",
                            block.key
                        )),
                );
            }
        }
    }

    /// With several inputs, none of them is the items.
    fn refuse_unnamed(&mut self, inputs: &[String]) {
        let takes_items = |layer: &&LayerSpec| layer.inputs.contains(&Source::Items);
        let Some(layer) = self.layers.iter().find(takes_items) else {
            return;
        };
        let names = listed(inputs);
        let diagnostic = match self.preset {
            Some((preset, place)) => {
                let message = format!(
                    "the preset `{preset}` takes one input, but `[[data.inputs]]` has several: {names}"
                );
                Diagnostic::error("contradiction", message).at(place).help(
                    "write the layers of each input in `[[model.layers]]`; `runner describe SPEC --as-layers` prints the layers of a preset for one input",
                )
            }
            None => {
                let message = format!(
                    "`{}` takes the input of the network, which has several: {names}",
                    layer.name
                );
                let key = if layer.table.get("inputs").is_some() {
                    "inputs"
                } else {
                    "type"
                };
                let diagnostic = layer.point(Diagnostic::error("contradiction", message), key);
                diagnostic.help(format!(
                    "name the one that it takes, such as `inputs = [\"{}\"]`, or earlier layers",
                    inputs[0]
                ))
            }
        };
        self.findings.refuse("model", diagnostic);
    }
}
