//! `[strategy] type = "adversarial"`: two networks that train against each other.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::section::Section;

/// The name by which layers take what an item is generated for.
pub const CONDITION: &str = "condition";

/// The settings of `[strategy] type = "adversarial"` (Goodfellow et al., 2014). The loss is that of `[loss]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdversarialSpec {
    /// The block of the network that makes items from noise.
    pub generator: String,
    /// The block of the network that scores items.
    pub discriminator: String,
    /// Updates of the discriminator for each one of the generator.
    pub discriminator_steps: usize,
    /// Whether both networks also get the target of each item.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub conditional: bool,
}

impl AdversarialSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let mut name = |key, usual: &str, doc| s.field(key, Kind::Text, doc).or(usual.to_owned());
        Self {
            generator: name(
                "generator",
                "generator",
                "The name of the block that makes an item from noise: the output of a layer `noise`.",
            ),
            discriminator: name(
                "discriminator",
                "discriminator",
                "The name of the block that gives an item one score; its input is the output of the generator.",
            ),
            discriminator_steps: s
                .field(
                    "discriminator_steps",
                    Kind::at_least(1),
                    "Updates of the discriminator, each with a batch of its own, for each update of the generator; a step of the training is one of the discriminator's.",
                )
                .or(1),
            conditional: s
                .field(
                    "conditional",
                    Kind::Bool,
                    "Whether items are generated for a target, such as a class (Mirza and Osindero, 2014): layers of both networks take it by the name `condition`.",
                )
                .or(false),
        }
    }
}
