//! A single layer of a network, with the information for its messages.

use serde::{Deserialize, Serialize};

use super::layer::LayerKind;
use super::preset::is_in_preset;
use crate::diagnostic::{Diagnostic, Span};
use crate::spec::document::Table;
use crate::spec::section::choices;

/// A single layer with its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSpec {
    /// Its name, unique in the network.
    pub name: String,
    /// Its function.
    pub kind: LayerKind,
    /// The sources of its inputs, in order, then those of its masks.
    pub inputs: Vec<Source>,
    /// The keys of its masks: the last inputs.
    pub masks: Vec<MaskKey>,
    /// Whether its weights are frozen.
    pub freeze: bool,
    /// The layer whose weights it uses, if it has none of its own.
    pub weights: Option<Weights>,
    /// Its table with resolved parameters, for messages and `--as-layers`.
    pub table: Table,
    /// Its place: in the file, or where the file requests the preset.
    pub place: Place,
}

choices! {
    /// The keys that name a mask: a layer with a number for each position.
    #[derive(Serialize, Deserialize, PartialOrd, Ord)]
    #[serde(rename_all = "snake_case")]
    pub enum MaskKey {
        Mask "mask" "The positions that take part.",
        MemoryMask "memory_mask" "The positions of the second input that take part.",
    }
}

/// The source of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The items.
    Items,
    /// A named input, by its index.
    Part(usize),
    /// The output of a layer, by its index.
    Layer(usize),
}

/// An earlier layer whose weights a layer uses, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weights {
    /// The same layer computed again: all weights are those of the other.
    Shared(usize),
    /// A linear layer with the transposed matrix of an embedding or of another linear layer, and a bias of its own.
    Tied(usize),
}

impl Weights {
    /// The layer that has the weights.
    pub fn owner(self) -> usize {
        match self {
            Self::Shared(owner) | Self::Tied(owner) => owner,
        }
    }
}

/// A place in the file, and the blocks and preset that lead to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// The place to point at.
    pub span: Span,
    /// Uses of the blocks around the layer, outermost first.
    pub uses: Vec<Span>,
    /// The preset of the layer.
    pub preset: Option<&'static str>,
}

impl LayerSpec {
    /// The sources of its inputs without masks.
    pub fn values(&self) -> &[Source] {
        &self.inputs[..self.inputs.len() - self.masks.len()]
    }

    /// The sources of its masks.
    pub fn masks(&self) -> &[Source] {
        &self.inputs[self.inputs.len() - self.masks.len()..]
    }

    /// The place to point at for a key of the layer.
    pub fn span(&self, key: &str) -> Span {
        let entry = self.table.get(key);
        let span = entry.map(|entry| entry.node.span);
        span.filter(|span| !is_in_preset(*span))
            .unwrap_or(self.place.span)
    }

    /// Points a diagnostic at a key of the layer, with the blocks and preset that lead there.
    pub fn point(&self, diagnostic: Diagnostic, key: &str) -> Diagnostic {
        let span = self.span(key);
        let mut diagnostic = diagnostic.at(span);
        for used in self.place.uses.iter().filter(|used| **used != span) {
            diagnostic = diagnostic.related(*used, "used here");
        }
        match self.place.preset {
            Some(preset) => diagnostic.note(format!("`{}` is a layer of the preset `{preset}`; to change more than its values, use its layers as `runner describe --as-layers` prints them", self.name)),
            None => diagnostic,
        }
    }
}
