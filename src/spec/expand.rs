//! From `[[model.layers]]` to a list of single layers: blocks put in, repetitions unrolled, names and
//! inputs resolved. Presets go the same way.

use super::document::{Entry, Node, Table, Value};
use super::expression::{Arguments, substitute, substitute_table};
use super::kind::Kind;
use super::layer::{LayerKind, LayerType};
use super::preset::is_in_preset;
use super::section::{Choice, Findings, Section, read_at};
use crate::diagnostic::{Diagnostic, Span, nearest};

/// More layers than this are a mistake in a `repeat`.
const MAX_LAYERS: usize = 4096;

/// Deeper nesting than this is a block inside itself.
const MAX_DEPTH: usize = 32;

/// Names that mean something else: what comes into the block, and the layer before.
const RESERVED: [&str; 2] = ["input", "previous"];

/// A single layer with its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSpec {
    /// Its name, unique in the network.
    pub name: String,
    /// What it computes.
    pub kind: LayerKind,
    /// Where its inputs come from, in order.
    pub inputs: Vec<Source>,
    /// Whether its weights stay as they are.
    pub freeze: bool,
    /// Its table with parameters put in, as messages and `--as-layers` need it.
    pub table: Table,
    /// Where it is written: in the file, or where the file asks for the preset.
    pub place: Place,
}

/// Where an input comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The items.
    Items,
    /// The output of a layer, by its index.
    Layer(usize),
}

/// A place in the file, and how it came to be asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Where to point.
    pub span: Span,
    /// Uses of the blocks that the layer is in, outermost first.
    pub uses: Vec<Span>,
    /// The preset that the layer is in.
    pub preset: Option<&'static str>,
}

impl LayerSpec {
    /// Where to point for a key of the layer.
    pub fn span(&self, key: &str) -> Span {
        let entry = self.table.get(key);
        let span = entry.map(|entry| entry.node.span);
        span.filter(|span| !is_in_preset(*span))
            .unwrap_or(self.place.span)
    }

    /// Points a diagnostic at a key of the layer, with what led there.
    pub fn point(&self, diagnostic: Diagnostic, key: &str) -> Diagnostic {
        let span = self.span(key);
        let mut diagnostic = diagnostic.at(span);
        for used in self.place.uses.iter().filter(|used| **used != span) {
            diagnostic = diagnostic.related(*used, "used here");
        }
        match self.place.preset {
            Some(preset) => diagnostic.note(format!("`{}` is a layer of the preset `{preset}`; `runner describe --as-layers` prints them all", self.name)),
            None => diagnostic,
        }
    }
}

/// Layers under a name, with parameters.
struct Block {
    name: String,
    parameters: Arguments,
    layers: Vec<Node>,
}

/// What a list of layers sees.
#[derive(Clone)]
struct Scope {
    /// What names start with.
    prefix: String,
    /// The outputs that can be named.
    names: Vec<(String, Source)>,
    /// What comes into the block.
    inputs: Vec<Source>,
    /// The output of the layer before.
    previous: Source,
    arguments: Arguments,
    uses: Vec<Span>,
    depth: usize,
}

/// The layers of a model: `model` holds `layers` and `blocks`, `arguments` the values of its
/// parameters. For a preset, `preset` is its name with the place that asks for it.
pub fn expand(
    model: &Table,
    arguments: Arguments,
    preset: Option<(&'static str, Span)>,
    findings: &mut Findings,
) -> Vec<LayerSpec> {
    let mut expander = Expander {
        findings,
        blocks: Vec::new(),
        layers: Vec::new(),
        preset,
        is_full: false,
    };
    if let Some(entry) = model.get("blocks") {
        expander.read_blocks(entry);
    }
    let mut scope = Scope {
        prefix: String::new(),
        names: Vec::new(),
        inputs: vec![Source::Items],
        previous: Source::Items,
        arguments,
        uses: Vec::new(),
        depth: 0,
    };
    if let Some(entry) = model.get("layers") {
        match &entry.node.value {
            Value::Array(layers) if !layers.is_empty() => {
                expander.list(layers, "model.layers", &mut scope);
            }
            Value::Array(_) => expander.refuse(
                Diagnostic::error("out-of-range", "`model.layers` has no layers")
                    .at(entry.node.span)
                    .help("add `[[model.layers]]` with a `type`, such as \"linear\""),
            ),
            other => expander.refuse(not_layers("model.layers", entry.node.span, other)),
        }
    }
    expander.refuse_unused(scope.previous);
    expander.layers
}

fn not_layers(path: &str, span: Span, found: &Value) -> Diagnostic {
    let message = format!("`{path}` must be a list of layers, found {}", found.kind());
    Diagnostic::error("wrong-type", message)
        .at(span)
        .help("write `[[model.layers]]` for each layer, or a list such as `layers = [{ type = \"relu\" }]`")
}

struct Expander<'a> {
    findings: &'a mut Findings,
    blocks: Vec<Block>,
    layers: Vec<LayerSpec>,
    preset: Option<(&'static str, Span)>,
    /// Whether too many layers were already reported.
    is_full: bool,
}

/// The keys that every layer may have, apart from `type`.
struct Common {
    name: Option<String>,
    inputs: Vec<String>,
    freeze: bool,
}

impl Common {
    fn decode(s: &mut Section<'_>) -> Self {
        let common = Self {
            name: s
                .field("name", Kind::Slug, "What other layers, patterns and reports call it.")
                .optional(),
            inputs: s
                .field(
                    "inputs",
                    Kind::list(Kind::Text, 1),
                    "Names of the layers whose outputs it takes; the layer before when not written. `input` is what comes into the block, `previous` the layer before.",
                )
                .optional()
                .unwrap_or_default(),
            freeze: s
                .field("freeze", Kind::Bool, "Whether its weights stay as they are.")
                .or(false),
        };
        let repeat = Kind::Int(0, MAX_LAYERS as i64);
        let _: Option<usize> = s
            .field(
                "repeat",
                repeat,
                "How many copies stand one after the other.",
            )
            .optional();
        let _: Option<bool> = s
            .field(
                "when",
                Kind::Bool,
                "Whether the layer is there; for blocks.",
            )
            .optional();
        common
    }
}

/// The keys of a layer of the file, for the schema.
pub fn decode_layer(s: &mut Section<'_>) -> LayerKind {
    Common::decode(s);
    LayerKind::decode(s)
}

impl Expander<'_> {
    fn refuse(&mut self, mut diagnostic: Diagnostic) {
        if let Some((preset, place)) = self.preset
            && diagnostic.span.is_none_or(is_in_preset)
        {
            diagnostic = diagnostic
                .at(place)
                .note(format!("in a layer of the preset `{preset}`"));
        }
        self.findings.diagnostics.push(diagnostic);
        self.findings.poisoned.push("model".into());
    }

    fn read_blocks(&mut self, entry: &Entry) {
        let help = "write `[model.blocks.<name>]` with `parameters = { channels = 64 }` and `layers = […]`";
        let Value::Table(blocks) = &entry.node.value else {
            let message = format!(
                "`model.blocks` must be a table of blocks, found {}",
                entry.node.value.kind()
            );
            return self.refuse(
                Diagnostic::error("wrong-type", message)
                    .at(entry.node.span)
                    .help(help),
            );
        };
        for block in &blocks.entries {
            let name = &block.key;
            let path = format!("model.blocks.{name}");
            if name == "sequence" || LayerType::ALL.iter().any(|(_, known, _)| known == name) {
                let message = format!("the block `{name}` has the name of a layer type");
                self.refuse(
                    Diagnostic::error("contradiction", message)
                        .at(block.key_span)
                        .help("choose another name"),
                );
                continue;
            }
            let Value::Table(table) = &block.node.value else {
                let message = format!(
                    "`{path}` must be a table, found {}",
                    block.node.value.kind()
                );
                self.refuse(
                    Diagnostic::error("wrong-type", message)
                        .at(block.node.span)
                        .help(help),
                );
                continue;
            };
            let unknown = table
                .entries
                .iter()
                .find(|e| !["parameters", "layers"].contains(&e.key.as_str()));
            if let Some(unknown) = unknown {
                let message = format!("unknown key `{}` in `{path}`", unknown.key);
                self.refuse(
                    Diagnostic::error("unknown-key", message)
                        .at(unknown.key_span)
                        .help("the keys here are `parameters`, `layers`"),
                );
            }
            let parameters = match table.get("parameters").map(|entry| &entry.node) {
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
                    let help =
                        "write each parameter with its default: `parameters = { channels = 64 }`";
                    self.refuse(
                        Diagnostic::error("wrong-type", message)
                            .at(node.span)
                            .help(help),
                    );
                    continue;
                }
            };
            let layers = match table.get("layers") {
                Some(Entry {
                    node:
                        Node {
                            value: Value::Array(layers),
                            ..
                        },
                    ..
                }) => layers.clone(),
                Some(entry) => {
                    let path = format!("{path}.layers");
                    self.refuse(not_layers(&path, entry.node.span, &entry.node.value));
                    continue;
                }
                None => {
                    let message = format!("the block `{name}` has no `layers`");
                    self.refuse(
                        Diagnostic::error("missing-key", message)
                            .at(block.key_span)
                            .help(help),
                    );
                    continue;
                }
            };
            self.blocks.push(Block {
                name: name.clone(),
                parameters,
                layers,
            });
        }
    }

    fn list(&mut self, layers: &[Node], path: &str, scope: &mut Scope) {
        for (at, node) in layers.iter().enumerate() {
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

    /// A layer as often as `repeat` or `for_each` say.
    fn copies(
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
        let several = rounds.len() > 1;
        for (at, round) in rounds.into_iter().enumerate() {
            if self.layers.len() >= MAX_LAYERS {
                let message = format!("the network has more than {MAX_LAYERS} layers");
                if !self.is_full {
                    self.is_full = true;
                    self.refuse(
                        Diagnostic::error("out-of-range", message)
                            .at(span)
                            .help("lower a `repeat`"),
                    );
                }
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
        let message = format!("`{path}.for_each` must be a table of one name with a list");
        self.refuse(Diagnostic::error("wrong-type", message).at(node.span).help(
            "for example: `for_each = { width = [64, 128] }`, and then `${width}` in the layer",
        ));
        None
    }

    fn one(
        &mut self,
        table: &Table,
        span: Span,
        path: &str,
        siblings: &[Node],
        copy: Option<usize>,
        scope: &mut Scope,
    ) {
        let mut table = match substitute_table(table, &scope.arguments) {
            Ok(table) => table,
            Err(diagnostic) => return self.refuse(*diagnostic),
        };
        if let Some(Value::Bool(false)) = table.get("when").map(|entry| &entry.node.value) {
            return;
        }
        table.entries.retain(|entry| entry.key != "for_each");
        let Some(kind) = self.type_of(&table, span, path) else {
            return;
        };
        let block = self.blocks.iter().position(|block| block.name == kind);
        let is_group = kind == "sequence" || block.is_some();
        let mut own = table.clone();
        if is_group {
            // What is left are the keys that every layer may have.
            let common = ["type", "name", "inputs", "repeat", "when", "freeze"];
            own.entries
                .retain(|entry| common.contains(&entry.key.as_str()));
        }
        let num_before = self.findings.diagnostics.0.len();
        let decode = |s: &mut Section<'_>| {
            let common = Common::decode(s);
            let kind = match is_group {
                true => {
                    let _: String = s.field("type", Kind::Text, "").required();
                    None
                }
                false => Some(LayerKind::decode(s)),
            };
            (common, kind)
        };
        let (common, decoded) = read_at(&own, path.to_owned(), span, self.findings, decode);
        if self.findings.diagnostics.0.len() > num_before {
            self.findings.poisoned.push("model".into());
            self.place_in_user_file(num_before);
        }
        let Some(inputs) = self.inputs(&common, &table, siblings, scope) else {
            return;
        };
        let Some(local) = self.local_name(&common, &table, &kind, copy, scope) else {
            return;
        };
        let output = match decoded {
            Some(layer) => {
                let place = Place {
                    span: match (is_in_preset(span), self.preset) {
                        (true, Some((_, place))) => place,
                        _ => table.get("type").map_or(span, |entry| {
                            match is_in_preset(entry.node.span) {
                                true => span,
                                false => entry.node.span,
                            }
                        }),
                    },
                    uses: scope.uses.clone(),
                    preset: self.preset.map(|(name, _)| name),
                };
                self.layers.push(LayerSpec {
                    name: self.unique(&format!("{}{local}", scope.prefix), common.name.is_some()),
                    kind: layer,
                    inputs,
                    freeze: common.freeze,
                    table: own,
                    place,
                });
                Source::Layer(self.layers.len() - 1)
            }
            None => {
                let first = self.layers.len();
                let output = match block {
                    Some(block) => self.block(block, &table, span, &local, inputs, scope),
                    None => self.sequence(
                        &table,
                        span,
                        path,
                        common.name.as_ref().map(|_| local.as_str()),
                        inputs,
                        scope,
                    ),
                };
                if common.freeze {
                    self.layers[first..]
                        .iter_mut()
                        .for_each(|layer| layer.freeze = true);
                }
                output
            }
        };
        scope.previous = output;
        if let Some(name) = common.name {
            if copy.is_some() {
                scope
                    .names
                    .push((format!("{name}{}", copy.unwrap_or(1)), output));
            }
            scope.names.push((name, output));
        }
    }

    /// Findings of a preset's layer are shown where the file asks for the preset.
    fn place_in_user_file(&mut self, first: usize) {
        let Some((preset, place)) = self.preset else {
            return;
        };
        for diagnostic in &mut self.findings.diagnostics.0[first..] {
            if diagnostic.span.is_none_or(is_in_preset) {
                diagnostic.span = Some(place);
                diagnostic
                    .notes
                    .push(format!("in a layer of the preset `{preset}`"));
            }
        }
    }

    fn type_of(&mut self, table: &Table, span: Span, path: &str) -> Option<String> {
        let blocks = || self.blocks.iter().map(|block| block.name.as_str());
        let known = || {
            let types = LayerType::ALL.iter().map(|(_, name, _)| *name);
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
                match synonym(name).or_else(|| nearest(name, known())) {
                    Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                    None => diagnostic.help(
                        "README.md lists the layer types; a block of `[model.blocks]` is one too",
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
            None => Diagnostic::error("missing-key", format!("missing key `type` in `{path}`"))
                .at(span)
                .help("add `type = …`, for example `type = \"linear\"`"),
        };
        self.refuse(diagnostic);
        None
    }

    fn inputs(
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
            let number = name
                .strip_prefix("input")
                .and_then(|number| number.parse::<usize>().ok());
            let found = match name.as_str() {
                "input" => scope.inputs.first(),
                "previous" => Some(&scope.previous),
                name => {
                    let named = scope.names.iter().rev().find(|(known, _)| known == name);
                    let numbered =
                        number.and_then(|number| scope.inputs.get(number.wrapping_sub(1)));
                    named.map(|(_, source)| source).or(numbered)
                }
            };
            match found {
                Some(source) => inputs.push(*source),
                None => {
                    let diagnostic = Diagnostic::error(
                        "unknown-value",
                        format!("there is no layer `{name}` before this one"),
                    )
                    .at(node.span);
                    let is_named = |node: &Node| match &node.value {
                        Value::Table(table) => {
                            matches!(table.get("name").map(|e| &e.node.value), Some(Value::Str(known)) if known == name)
                        }
                        _ => false,
                    };
                    let names = || scope.names.iter().map(|(name, _)| name.as_str());
                    let later = siblings.iter().any(is_named);
                    let near = nearest(name, names().chain(RESERVED));
                    self.refuse(match (later, near) {
                        (true, _) => diagnostic.help(
                            "a layer can only take outputs of earlier ones: move that layer up",
                        ),
                        (_, Some(near)) => diagnostic.help(format!("did you mean `{near}`?")),
                        _ => {
                            let mut names: Vec<_> = names()
                                .chain(RESERVED)
                                .map(|name| format!("`{name}`"))
                                .collect();
                            names.dedup();
                            diagnostic.help(format!(
                                "give that layer a `name`; known here are {}",
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

    /// The name inside the block: as written, or the type with a number behind it.
    fn local_name(
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
        if RESERVED.contains(&name.as_str()) {
            let message = format!("`{name}` cannot be a layer's name");
            let note = "`input` is what comes into the block, `previous` the layer before";
            self.refuse(
                Diagnostic::error("contradiction", message)
                    .at(span)
                    .note(note)
                    .help("choose another name"),
            );
            return None;
        }
        match copy {
            Some(copy) => Some(format!("{name}{copy}")),
            None if scope.names.iter().any(|(known, _)| known == name) => {
                let message = format!("there are two layers `{name}`");
                self.refuse(
                    Diagnostic::error("repeated-value", message)
                        .at(span)
                        .help("choose another name for one of them"),
                );
                None
            }
            None => Some(name.clone()),
        }
    }

    /// `base` if it was written and is free, else with the first free number behind it.
    fn unique(&self, base: &str, written: bool) -> String {
        let taken = |name: &str| self.layers.iter().any(|layer| layer.name == name);
        if written && !taken(base) {
            return base.to_owned();
        }
        let mut numbered = (1 + written as usize..).map(|number| format!("{base}_{number}"));
        numbered.find(|name| !taken(name)).unwrap_or_default()
    }

    fn sequence(
        &mut self,
        table: &Table,
        span: Span,
        path: &str,
        name: Option<&str>,
        inputs: Vec<Source>,
        scope: &Scope,
    ) -> Source {
        let known = [
            "type", "name", "inputs", "repeat", "when", "freeze", "layers",
        ];
        self.refuse_other_keys(table, &known, "a `sequence`");
        let layers = match table.get("layers") {
            Some(Entry {
                node:
                    Node {
                        value: Value::Array(layers),
                        ..
                    },
                ..
            }) => layers.clone(),
            Some(entry) => {
                self.refuse(not_layers(
                    &format!("{path}.layers"),
                    entry.node.span,
                    &entry.node.value,
                ));
                Vec::new()
            }
            None => {
                let message = format!("missing key `layers` in `{path}` (type `sequence`)");
                self.refuse(
                    Diagnostic::error("missing-key", message)
                        .at(span)
                        .help("add `layers = […]`, for example `layers = [{ type = \"relu\" }]`"),
                );
                Vec::new()
            }
        };
        let mut inner = Scope {
            // Layers of a sequence without a name are named as if they stood outside.
            prefix: match name {
                Some(name) => format!("{}{name}.", scope.prefix),
                None => scope.prefix.clone(),
            },
            previous: inputs[0],
            inputs,
            ..scope.clone()
        };
        self.list(&layers, &format!("{path}.layers"), &mut inner);
        inner.previous
    }

    fn block(
        &mut self,
        at: usize,
        table: &Table,
        span: Span,
        local: &str,
        inputs: Vec<Source>,
        scope: &Scope,
    ) -> Source {
        let block = &self.blocks[at];
        let (name, layers, mut arguments) = (
            block.name.clone(),
            block.layers.clone(),
            block.parameters.clone(),
        );
        let used = table.get("type").map_or(span, |entry| entry.node.span);
        if scope.depth >= MAX_DEPTH {
            self.refuse(
                Diagnostic::error("contradiction", format!("the block `{name}` uses itself"))
                    .at(used)
                    .help("a block can only use other blocks"),
            );
            return inputs[0];
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
        let group = self.unique_group(&format!("{}{local}", scope.prefix), named);
        let mut uses = scope.uses.clone();
        if !is_in_preset(used) {
            uses.push(used);
        }
        let mut inner = Scope {
            prefix: format!("{group}."),
            names: Vec::new(),
            previous: inputs[0],
            inputs,
            arguments,
            uses,
            depth: scope.depth + 1,
        };
        self.list(&layers, &format!("model.blocks.{name}.layers"), &mut inner);
        inner.previous
    }

    fn unique_group(&self, base: &str, written: bool) -> String {
        let taken = |name: &str| {
            let prefix = format!("{name}.");
            self.layers
                .iter()
                .any(|layer| layer.name.starts_with(&prefix))
        };
        if written && !taken(base) {
            return base.to_owned();
        }
        let mut numbered = (1 + written as usize..).map(|number| format!("{base}_{number}"));
        numbered.find(|name| !taken(name)).unwrap_or_default()
    }

    fn refuse_other_keys(&mut self, table: &Table, known: &[&str], place: &str) {
        for entry in table
            .entries
            .iter()
            .filter(|entry| !known.contains(&entry.key.as_str()))
        {
            let message = format!("unknown key `{}` in {place}", entry.key);
            let diagnostic = Diagnostic::error("unknown-key", message).at(entry.key_span);
            self.refuse(match nearest(&entry.key, known.iter().copied()) {
                Some(near) => diagnostic.help(format!("did you mean `{near}`?")),
                None => {
                    let known: Vec<_> = known.iter().map(|key| format!("`{key}`")).collect();
                    diagnostic.help(format!("the keys here are {}", known.join(", ")))
                }
            });
        }
    }

    /// A layer whose output nobody takes is a mistake in `inputs`.
    fn refuse_unused(&mut self, output: Source) {
        if !self.findings.is_poisoned("model") {
            let mut used = vec![false; self.layers.len()];
            for source in self
                .layers
                .iter()
                .flat_map(|layer| &layer.inputs)
                .chain([&output])
            {
                if let Source::Layer(at) = source {
                    used[*at] = true;
                }
            }
            let unused = used.iter().position(|used| !used);
            if let Some(layer) = unused.map(|at| &self.layers[at]) {
                let message = format!("nothing takes the output of the layer `{}`", layer.name);
                let diagnostic = layer.point(Diagnostic::error("contradiction", message), "type");
                self.refuse(
                    diagnostic.help("name it in the `inputs` of a later layer, or remove it"),
                );
            }
        }
    }
}

/// What other libraries call a layer.
fn synonym(name: &str) -> Option<&'static str> {
    const SYNONYMS: &[(&str, &str)] = &[
        ("dense", "linear"),
        ("fc", "linear"),
        ("fully_connected", "linear"),
        ("conv", "conv2d"),
        ("convolution", "conv2d"),
        ("deconv", "conv_transpose2d"),
        ("maxpool", "max_pool2d"),
        ("max_pool", "max_pool2d"),
        ("avgpool", "avg_pool2d"),
        ("avg_pool", "avg_pool2d"),
        ("global_avg_pool", "adaptive_avg_pool2d"),
        ("batchnorm", "batch_norm"),
        ("batchnorm2d", "batch_norm"),
        ("bn", "batch_norm"),
        ("layernorm", "layer_norm"),
        ("attention", "multi_head_attention"),
        ("mha", "multi_head_attention"),
        ("swish", "silu"),
        ("upsample", "interpolate2d"),
        ("concatenate", "concat"),
        ("cat", "concat"),
        ("residual", "add"),
        ("view", "reshape"),
        ("transpose", "permute"),
        ("sequential", "sequence"),
    ];
    let found = SYNONYMS
        .iter()
        .find(|(theirs, _)| *theirs == name.to_lowercase());
    found.map(|(_, ours)| *ours)
}
