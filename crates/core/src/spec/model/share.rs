//! Layers with the weights of earlier ones: `share` computes a layer or block again, `tie` uses a transposed matrix.

use super::common::Common;
use super::expand::{Expander, MAX_LAYERS, Part, Scope};
use super::layer::LayerKind;
use super::layer_spec::{LayerSpec, MaskKey, Place, Source, Weights};
use crate::diagnostic::{Diagnostic, Span, nearest};
use crate::spec::document::{Entry, Node, Table, Value};
use crate::spec::section::{Choice, read_at};

/// The keys beside `share`: all others are those of the other layer.
const KEYS: [&str; 6] = ["share", "name", "inputs", "repeat", "when", "for_each"];

impl Expander<'_> {
    /// Adds the layers of an earlier layer or block again, with other inputs and the same weights.
    pub(super) fn share(
        &mut self,
        entry: &Entry,
        table: &Table,
        path: &str,
        siblings: &[Node],
        copy: Option<usize>,
        scope: &mut Scope,
    ) {
        let span = entry.node.span;
        let num_before = self.findings.diagnostics.num_found();
        let own = Table {
            entries: (table.entries.iter())
                .filter(|entry| KEYS.contains(&entry.key.as_str()))
                .cloned()
                .collect(),
        };
        let common = read_at(&own, path.to_owned(), span, self.findings, Common::decode);
        if self.findings.diagnostics.num_found() > num_before {
            return self.findings.poisoned.push("model".into());
        }
        let Some(named) = common.share.clone() else {
            return;
        };
        let part = self.earlier(&named, scope);
        let is_own = |key: &str| {
            let is_mask = |layer: &LayerSpec| layer.masks.iter().any(|mask| mask.name() == key);
            let single = part.as_ref().filter(|part| !part.is_group());
            KEYS.contains(&key)
                || single.is_some_and(|part| is_mask(&self.layers[part.layers.start]))
        };
        if let Some(other) = table.entries.iter().find(|entry| !is_own(&entry.key)) {
            let message = format!(
                "`{}` has no effect beside `share`: type and keys are those of `{named}`",
                other.key
            );
            let diagnostic = Diagnostic::error("contradiction", message).at(other.key_span);
            return self.refuse(diagnostic.help(if other.key == "freeze" {
                format!("set `freeze` at `{named}`")
            } else {
                format!(
                    "remove `{}`, or remove `share` for separate weights",
                    other.key
                )
            }));
        }
        let Some(part) = part else {
            let diagnostic = self.unknown("share", &named, span, scope);
            return self.refuse(diagnostic);
        };
        let Some(inputs) = self.inputs(&common, table, siblings, scope) else {
            return;
        };
        if inputs.len() != part.inputs.len() {
            let num = part.inputs.len();
            let several = if num == 1 { "" } else { "s" };
            let message = format!(
                "`{named}` takes {num} input{several}, found {}",
                inputs.len()
            );
            let span = table.get("inputs").map_or(span, |entry| entry.node.span);
            let help = format!("list {num} of them in `inputs`");
            let diagnostic = Diagnostic::error("shape", message).at(span);
            return self.refuse(diagnostic.help(help));
        }
        if part.is_group() && self.refuse_merged(&part, &inputs, &named, table, span) {
            return;
        }
        let Some(masks) = self.masks_again(&part, &inputs, &named, table, scope) else {
            return;
        };
        let Some(local) = self.local_name(&common, table, &named, copy, scope) else {
            return;
        };
        let base = format!("{}{local}", scope.prefix);
        if common.name.is_none() {
            // Numbers begin at 2.
            self.names.insert(base.clone());
        }
        let mut prefix = self.unique(&base, true);
        if part.is_group() {
            prefix.push('.');
        }
        if self.layers.len() + part.layers.len() > MAX_LAYERS {
            return self.refuse_size(span);
        }
        let place = self.place_of(table, span, scope);
        let new = self.again(&part, &inputs, &masks, &prefix, &place);
        scope.follow(common.name, copy, new);
    }

    /// Refuses other inputs for a block that took the same layer twice: its layers no longer say which of both inputs
    /// they take.
    fn refuse_merged(
        &mut self,
        part: &Part,
        inputs: &[Source],
        named: &str,
        table: &Table,
        span: Span,
    ) -> bool {
        let pairs = || part.inputs.iter().zip(inputs);
        let mut all = pairs();
        let is_merged =
            all.any(|(old, new)| pairs().any(|(other, given)| other == old && given != new));
        if is_merged {
            let message = format!(
                "`{named}` was used with one layer for two of its inputs, and cannot be shared with two layers"
            );
            let span = table.get("inputs").map_or(span, |entry| entry.node.span);
            let help = format!(
                "put `{{ type = \"identity\" }}` with a `name` before `{named}`, and use it as one of its inputs"
            );
            let diagnostic = Diagnostic::error("shape", message).at(span);
            self.refuse(diagnostic.help(help));
        }
        is_merged
    }

    /// The masks of a layer that is computed again: those that its table names, and otherwise those of its first use, which
    /// are refused for another sequence. None for a group, whose masks are among its layers.
    fn masks_again(
        &mut self,
        part: &Part,
        inputs: &[Source],
        named: &str,
        table: &Table,
        scope: &Scope,
    ) -> Option<Vec<Source>> {
        let layers = &self.layers[part.layers.clone()];
        let span = table.get("share").map(|entry| entry.node.span)?;
        let refused = |message: String| Diagnostic::error("contradiction", message).at(span);
        if part.is_group() {
            let is_outside = |source: &Source| {
                let is_inside = matches!(source, Source::Layer(at) if part.layers.contains(at));
                !is_inside && !part.inputs.contains(source)
            };
            if layers.iter().flat_map(LayerSpec::masks).any(is_outside)
                && (0..inputs.len()).any(|at| !self.is_same_sequence(part, inputs, at))
            {
                let message = format!(
                    "a layer of `{named}` has a mask from outside of it, which is not one of this input"
                );
                self.refuse(refused(message).help(format!(
                    "make the mask in a block, from the input of `{named}`, or pass it as a second input"
                )));
                return None;
            }
            return Some(Vec::new());
        }
        let layer = layers[0].clone();
        let mut masks = Vec::new();
        for (key, source) in layer.masks.iter().zip(layer.masks()) {
            if table.get(key.name()).is_some() {
                let given = self.masks(table, &[(*key, key.name(), "")], scope)?;
                // One that `when` removes masks nothing, which the layer cannot do once more.
                masks.push(given.first().map_or(*source, |(_, source)| *source));
                continue;
            }
            // Those of attention belong to what is attended to.
            let of_second = *key == MaskKey::MemoryMask
                || matches!(layer.kind, LayerKind::MultiHeadAttention { .. }) && inputs.len() > 1;
            if !self.is_same_sequence(part, inputs, usize::from(of_second)) {
                let message = format!(
                    "the `{}` of `{named}` is of another sequence than this input",
                    key.name()
                );
                self.refuse(refused(message).help(format!(
                    "add `{}` here, with a `padding_mask` of this input, or the same one if it has the same padding",
                    key.name()
                )));
                return None;
            }
            masks.push(*source);
        }
        Some(masks)
    }

    /// Whether an input of a second use is that of the first one, or comes from what the first one computed.
    fn is_same_sequence(&self, part: &Part, inputs: &[Source], at: usize) -> bool {
        let Some(input) = inputs.get(at) else {
            return true;
        };
        if part.inputs.get(at) == Some(input) {
            return true;
        }
        let mut open = vec![*input];
        while let Some(source) = open.pop() {
            match source {
                Source::Layer(at) if part.layers.contains(&at) => return true,
                // Inputs of a layer come before it.
                Source::Layer(at) if at > part.layers.start => {
                    open.extend_from_slice(self.layers[at].values());
                }
                _ => {}
            }
        }
        false
    }

    /// Copies layers, with names that begin with `prefix`.
    fn again(
        &mut self,
        part: &Part,
        inputs: &[Source],
        masks: &[Source],
        prefix: &str,
        place: &Place,
    ) -> Part {
        let first = self.layers.len();
        let moved = |source: &Source| {
            let input = part.inputs.iter().position(|input| input == source);
            match (input, source) {
                (Some(input), _) => inputs[input],
                (None, Source::Layer(at)) if part.layers.contains(at) => {
                    Source::Layer(first + at - part.layers.start)
                }
                (None, source) => *source,
            }
        };
        for at in part.layers.clone() {
            let layer = self.layers[at].clone();
            let name = match layer.name.strip_prefix(&part.prefix) {
                Some("") => prefix.to_owned(),
                inner => {
                    let name = format!("{prefix}{}", inner.unwrap_or(&layer.name));
                    self.unique(&name, true)
                }
            };
            let owner = match layer.weights {
                Some(Weights::Shared(owner)) => owner,
                _ => at,
            };
            let value = Value::Str(self.layers[owner].name.clone());
            let entry = Entry {
                key: "share".to_owned(),
                key_span: place.span,
                node: Node {
                    span: place.span,
                    value,
                },
            };
            self.layers.push(LayerSpec {
                name,
                inputs: if part.is_group() {
                    layer.inputs.iter().map(moved).collect()
                } else {
                    inputs.iter().chain(masks).copied().collect()
                },
                weights: Some(Weights::Shared(owner)),
                table: Table {
                    entries: vec![entry],
                },
                place: place.clone(),
                ..layer
            });
        }
        Part {
            layers: first..self.layers.len(),
            prefix: prefix.to_owned(),
            inputs: inputs.to_vec(),
            output: moved(&part.output),
        }
    }

    /// The layer whose matrix a linear layer uses, if its table has `tie`.
    pub(super) fn tied(
        &self,
        table: &Table,
        scope: &Scope,
    ) -> Result<Option<Weights>, Box<Diagnostic>> {
        let Some(entry) = table.get("tie") else {
            return Ok(None);
        };
        let (Value::Str(name), span) = (&entry.node.value, entry.node.span) else {
            return Ok(None); // It was refused.
        };
        let wrong = |message: String, span: Span, help: &str| {
            let diagnostic = Diagnostic::error("contradiction", message);
            Err(Box::new(diagnostic.at(span).help(help)))
        };
        if let Some(initializer) = table.get("initializer") {
            return wrong(
                format!(
                    "`initializer` has no effect beside `tie`: the weights are those of `{name}`"
                ),
                initializer.key_span,
                "move it to that layer",
            );
        }
        if let Some(entry) = (table.get("parametrization"))
            .filter(|entry| !matches!(&entry.node.value, Value::Str(value) if value == "none"))
        {
            return wrong(
                format!(
                    "`parametrization` has no effect beside `tie`: the weights are those of `{name}`"
                ),
                entry.key_span,
                "move it to that layer",
            );
        }
        let Some(part) = self.earlier(name, scope) else {
            return Err(Box::new(self.unknown("tie", name, span, scope)));
        };
        let mut owner = part.layers.start;
        if let Some(Weights::Shared(first)) = self.layers.get(owner).and_then(|layer| layer.weights)
        {
            owner = first;
        }
        let Some(layer) = self.layers.get(owner).filter(|_| !part.is_group()) else {
            return wrong(
                format!("`{name}` is a group of layers, which has no single matrix"),
                span,
                "name an `embedding` or `linear` layer inside it, as `runner describe` prints it",
            );
        };
        match (&layer.kind, layer.weights) {
            (LayerKind::Embedding { .. } | LayerKind::Linear { .. }, None) => {
                Ok(Some(Weights::Tied(owner)))
            }
            (LayerKind::Linear { .. }, Some(_)) => wrong(
                format!("`{name}` is itself tied to `{}`", self.owner_name(layer)),
                span,
                "name a layer that has weights",
            ),
            (kind, _) => wrong(
                format!(
                    "`{name}` is a `{}`, which has no matrix to transpose",
                    kind.type_name()
                ),
                span,
                "name an `embedding` or `linear` layer",
            ),
        }
    }

    fn owner_name(&self, layer: &LayerSpec) -> &str {
        layer
            .weights
            .map_or("", |weights| &self.layers[weights.owner()].name)
    }

    /// A layer or block by its name here, or a layer by its name in the whole network.
    pub(super) fn earlier(&self, name: &str, scope: &Scope) -> Option<Part> {
        let by_full_name = || {
            let at = self.layers.iter().position(|layer| layer.name == name)?;
            Some(Part {
                layers: at..at + 1,
                prefix: name.to_owned(),
                inputs: self.layers[at].values().to_vec(),
                output: Source::Layer(at),
            })
        };
        scope.part(name).cloned().or_else(by_full_name)
    }

    pub(super) fn unknown(&self, key: &str, name: &str, span: Span, scope: &Scope) -> Diagnostic {
        let message = format!("`{key}` names `{name}`, but no layer before this one has this name");
        let diagnostic = Diagnostic::error("unknown-value", message).at(span);
        let names = || scope.names.iter().map(|(name, _)| name.as_str());
        let full = self.layers.iter().map(|layer| layer.name.as_str());
        diagnostic.help(match nearest(name, names().chain(full)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "give the layer a `name`, and put it before this one".to_owned(),
        })
    }
}
