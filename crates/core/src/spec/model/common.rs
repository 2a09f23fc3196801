//! The keys of every layer.

use super::expand::MAX_LAYERS;
use super::layer::LayerKind;
use crate::spec::kind::Kind;
use crate::spec::section::Section;

/// The keys of every layer, except `type`.
pub(super) struct Common {
    pub(super) name: Option<String>,
    pub(super) inputs: Vec<String>,
    pub(super) freeze: bool,
    /// The layer or block that is computed again.
    pub(super) share: Option<String>,
}

impl Common {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let common = Self {
            name: s
                .field("name", Kind::Slug, "The name of the layer in other layers, patterns and reports.")
                .optional(),
            inputs: s
                .field(
                    "inputs",
                    Kind::list(Kind::Text, 1),
                    "Names of the input layers; the preceding layer when not set. `input` is the input of the block, `previous` the preceding layer.",
                )
                .optional()
                .unwrap_or_default(),
            freeze: s
                .field("freeze", Kind::Bool, "Whether its weights are frozen.")
                .or(false),
            share: s
                .field(
                    "share",
                    Kind::Text,
                    "Instead of `type`: the name of an earlier layer or block that is computed again, with the same weights.",
                )
                .optional(),
        };
        let repeat = Kind::Int(0, MAX_LAYERS as i64);
        let _: Option<usize> = s
            .field("repeat", repeat, "Number of consecutive copies.")
            .optional();
        let _: Option<bool> = s
            .field(
                "when",
                Kind::Bool,
                "Whether to include the layer; for blocks.",
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
