//! Documents in an item of running text that are kept apart: which layers treat each of them on its own.

use serde::{Deserialize, Serialize};

use super::{Layer, Network};
use crate::data::DataPlan;
use crate::spec::data::DocumentPositions;
use crate::spec::model::layer::{LayerKind, Norm};

/// The documents in an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Documents {
    /// The token that ends a document.
    pub end: u32,
    /// How positions are counted.
    #[serde(default, skip_serializing_if = "DocumentPositions::is_restarting")]
    pub positions: DocumentPositions,
}

impl Documents {
    /// Those of some data, if they are kept apart.
    pub fn of(data: &DataPlan) -> Option<Self> {
        let tokens = &data.files()?.tokens;
        Some(Self {
            end: data.noticed.document_end?,
            positions: tokens.document_positions,
        })
    }
}

/// The documents in the items of a network, if a layer treats each on its own.
pub(super) fn needed(network: &Network, layer: &Layer) -> Option<Documents> {
    let documents = network.items.documents?;
    let is_needed = match layer.kind {
        LayerKind::MultiHeadAttention { .. }
        | LayerKind::GroupedAttention(_)
        | LayerKind::TransformerEncoder(_) => true,
        LayerKind::PositionEmbedding { .. } | LayerKind::PositionalEncoding { .. } => {
            documents.positions.is_restarting()
        }
        _ => false,
    };
    is_needed.then_some(documents)
}

/// Whether rotations depend on the length of a sequence.
fn scales_by_length(kind: &LayerKind) -> bool {
    let LayerKind::GroupedAttention(attention) = kind else {
        return false;
    };
    let rotary = attention.rotary.as_ref();
    rotary.is_some_and(|rotary| rotary.form().depends_on_length())
}

/// Why a layer would mix the documents of an item, if it would.
pub fn mixes_documents(layer: &Layer, documents: Documents) -> Option<&'static str> {
    let is_restarting = documents.positions.is_restarting();
    match &layer.kind {
        LayerKind::MultiHeadAttention { .. } | LayerKind::GroupedAttention(_) => {
            if layer.values().len() > 1 {
                Some("attends to another input")
            } else {
                (is_restarting && scales_by_length(&layer.kind))
                    .then_some("scales rotations by the length of the item")
            }
        }
        LayerKind::RotaryEncoding { .. } if is_restarting => {
            Some("counts positions from the start of the item")
        }
        LayerKind::Recurrent(_) => Some("carries its state from one document to the next"),
        LayerKind::Linear { .. }
        | LayerKind::Dropout { .. }
        | LayerKind::StochasticDepth { .. }
        | LayerKind::GaussianNoise { .. }
        | LayerKind::Embedding { .. }
        | LayerKind::PositionalEncoding { .. }
        | LayerKind::PositionEmbedding { .. }
        | LayerKind::RotaryEncoding { .. }
        | LayerKind::Activation(_)
        | LayerKind::Prelu {
            per_channel: false, ..
        }
        | LayerKind::Swiglu { .. }
        | LayerKind::Identity
        | LayerKind::Add
        | LayerKind::Multiply
        | LayerKind::PaddingMask { .. }
        | LayerKind::TransformerEncoder(_)
        | LayerKind::Norm(Norm::Layer { .. } | Norm::Rms { .. }) => None,
        _ => Some("computes with several positions at once"),
    }
}
