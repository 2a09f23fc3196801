//! A layer or a group of layers, once its copies are known.

use super::common::Common;
use super::expand::{Expander, Part, Scope};
use super::layer::LayerKind;
use super::layer_spec::{LayerSpec, MaskKey, Place, Source, Weights};
use super::preset::is_in_preset;
use crate::diagnostic::{Diagnostic, Span};
use crate::spec::document::{Node, Table, Value};
use crate::spec::expression::substitute_table;
use crate::spec::kind::Kind;
use crate::spec::section::{Choice, Section, read_at};

impl Expander<'_> {
    pub(super) fn one(
        &mut self,
        table: &Table,
        span: Span,
        path: &str,
        siblings: &[Node],
        copy: Option<usize>,
        scope: &mut Scope,
    ) {
        let written_when = table.get("when").map(|entry| entry.node.span);
        let mut table = match substitute_table(table, &scope.arguments) {
            Ok(table) => table,
            Err(diagnostic) => return self.refuse(*diagnostic),
        };
        if self.is_grown(&table, span) {
            return;
        }
        match self.is_absent(&table, written_when.unwrap_or(span), path) {
            Some(false) => {}
            Some(true) => return scope.leave_out(&table),
            None => return,
        }
        table.entries.retain(|entry| entry.key != "for_each");
        if let Some(entry) = table.get("share") {
            return self.share(entry, &table, path, siblings, copy, scope);
        }
        let Some(kind) = self.type_of(&table, span, path) else {
            return;
        };
        let block = self.blocks.iter().position(|block| block.name == kind);
        let is_group = kind == "sequence" || block.is_some();
        let (common, decoded, own) = self.decode(&table, span, path, is_group);
        let Some(inputs) = self.inputs(&common, &table, siblings, scope) else {
            return;
        };
        let group = (kind.as_str(), block);
        if is_group && self.refuse_inputs(group, inputs.len(), &table, span) {
            return;
        }
        let keys: &[_] = if is_group { &[] } else { MaskKey::ALL };
        let Some(masks) = self.masks(&table, keys, scope) else {
            return;
        };
        let Some(local) = self.local_name(&common, &table, &kind, copy, scope) else {
            return;
        };
        let first = self.layers.len();
        let prefix = format!("{}{local}", scope.prefix);
        let (prefix, output) = match decoded {
            Some(layer) => {
                let name = self.unique(&prefix, common.name.is_some());
                let weights = match self.tied(&table, scope) {
                    Ok(weights) => weights,
                    Err(diagnostic) => return self.refuse(*diagnostic),
                };
                let freeze = common.freeze || layer.is_constant();
                self.layers.push(LayerSpec {
                    name: name.clone(),
                    kind: layer,
                    inputs: {
                        let masks = masks.iter().map(|(_, source)| *source);
                        inputs.iter().copied().chain(masks).collect()
                    },
                    masks: masks.iter().map(|(key, _)| *key).collect(),
                    freeze,
                    weights,
                    place: self.place_of(&table, span, scope),
                    table: own,
                });
                (name, Source::Layer(first))
            }
            None => {
                let (prefix, output) = match block {
                    Some(block) => self.block(block, &table, span, &local, inputs.clone(), scope),
                    None => {
                        let name = common.name.as_ref().map(|_| local.as_str());
                        let output = self.sequence(&table, span, path, name, inputs.clone(), scope);
                        (format!("{prefix}."), output)
                    }
                };
                if common.freeze {
                    self.freeze(first, &table, span);
                }
                (prefix, output)
            }
        };
        let part = Part {
            layers: first..self.layers.len(),
            prefix,
            inputs,
            output,
        };
        scope.follow(common.name, copy, part);
    }

    /// Freezes all layers of a group, from the first one on.
    fn freeze(&mut self, first: usize, table: &Table, span: Span) {
        let owner = |layer: &LayerSpec| layer.weights.map(Weights::owner);
        let foreign = self.layers[first..].iter();
        let mut foreign = foreign.filter(|layer| owner(layer).is_some_and(|owner| owner < first));
        if let Some(layer) = foreign.next() {
            let owner = owner(layer).map_or("", |owner| &self.layers[owner].name);
            let message = format!(
                "`freeze` has no effect on `{}`, whose weights are those of `{owner}`",
                layer.name
            );
            let span = table.get("freeze").map_or(span, |entry| entry.node.span);
            let help = format!(
                "freeze `{owner}`, or move `{}` out of the group",
                layer.name
            );
            let diagnostic = Diagnostic::error("contradiction", message).at(span);
            return self.refuse(diagnostic.help(help));
        }
        for layer in &mut self.layers[first..] {
            layer.freeze = true;
        }
    }

    /// Whether `when` removes a layer; `None` if its value was refused.
    fn is_absent(&mut self, table: &Table, span: Span, path: &str) -> Option<bool> {
        let Some(entry) = table.get("when") else {
            return Some(false);
        };
        // The value may come from elsewhere, but the mistake is here.
        let node = Node {
            span,
            ..entry.node.clone()
        };
        let wrong = Kind::Bool.check(&format!("{path}.when"), &node);
        if wrong.is_empty() {
            return Some(entry.node.value == Value::Bool(false));
        }
        wrong
            .into_iter()
            .for_each(|diagnostic| self.refuse(diagnostic));
        None
    }

    /// The keys of every layer, those of its own type unless it is a group, and the table of both.
    fn decode(
        &mut self,
        table: &Table,
        span: Span,
        path: &str,
        is_group: bool,
    ) -> (Common, Option<LayerKind>, Table) {
        let mut own = table.clone();
        if is_group {
            // The remaining keys are those of every layer.
            let common = ["type", "name", "inputs", "repeat", "when", "freeze"];
            own.entries
                .retain(|entry| common.contains(&entry.key.as_str()));
        }
        let num_before = self.findings.diagnostics.num_found();
        let first_new = self.findings.diagnostics.0.len();
        let decode = |s: &mut Section<'_>| {
            let common = Common::decode(s);
            let kind = if is_group {
                let _: String = s.field("type", Kind::Text, "").required();
                None
            } else {
                Some(LayerKind::decode(s))
            };
            (common, kind)
        };
        let (common, decoded) = read_at(&own, path.to_owned(), span, self.findings, decode);
        if self.findings.diagnostics.num_found() > num_before {
            self.findings.poisoned.push("model".into());
            self.place_in_user_file(first_new);
        }
        (common, decoded, own)
    }

    /// Where messages about a layer point.
    pub(super) fn place_of(&self, table: &Table, span: Span, scope: &Scope) -> Place {
        Place {
            span: match (is_in_preset(span), self.preset) {
                (true, Some((_, place))) => place,
                _ => table.get("type").map_or(span, |entry| {
                    if is_in_preset(entry.node.span) {
                        span
                    } else {
                        entry.node.span
                    }
                }),
            },
            uses: scope.uses.clone(),
            preset: self.preset.map(|(name, _)| name),
        }
    }

    /// Findings in a preset's layer are shown where the file requests the preset.
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
        let missing = || {
            let message = format!("missing key `layers` in `{path}` (type `sequence`)");
            Diagnostic::error("missing-key", message)
                .at(span)
                .help("add `layers = […]`, for example `layers = [{ type = \"relu\" }]`")
        };
        let layers = self.layers_of(table, path, missing).unwrap_or_default();
        let mut inner = Scope {
            // Unnamed layers of a sequence are named as if they were outside it.
            prefix: match name {
                Some(name) => format!("{}{name}.", scope.prefix),
                None => scope.prefix.clone(),
            },
            previous: inputs[0],
            input: inputs[0],
            ..scope.clone()
        };
        self.list(&layers, &format!("{path}.layers"), &mut inner);
        inner.previous
    }
}
