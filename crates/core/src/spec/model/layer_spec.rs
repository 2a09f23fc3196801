//! A single layer of a network, with what its messages need.

use super::layer::LayerKind;
use super::preset::is_in_preset;
use crate::diagnostic::{Diagnostic, Span};
use crate::spec::document::Table;

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
