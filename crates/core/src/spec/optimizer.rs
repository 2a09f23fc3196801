//! `[optimizer]`: how the loss is minimized.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::method::{Method, Role};
use super::section::Section;

/// The `[optimizer]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OptimizerSpec {
    /// Before the scheduler.
    pub learning_rate: f64,
    /// The update rule.
    #[serde(flatten)]
    pub method: Method,
    /// Gradient clipping.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<ClipSpec>,
    /// Settings for groups of parameters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<GroupSpec>,
}

/// The `[optimizer.clip]` table: one of its keys.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClipSpec {
    /// The largest absolute value of an element.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// The largest norm of the gradient of one parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub norm: Option<f64>,
    /// The largest norm of all gradients together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub global_norm: Option<f64>,
}

/// A table of `[[optimizer.groups]]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupSpec {
    /// Patterns over the paths of parameters.
    pub parameters: Vec<String>,
    /// Overrides the optimizer's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_decay: Option<f64>,
    /// Factor of the learning rate.
    pub learning_rate_factor: f64,
    /// Whether they are frozen.
    pub freeze: bool,
}

impl OptimizerSpec {
    /// The settings that Burn stores as 32-bit numbers, by their keys below `optimizer`.
    pub fn settings(&self) -> Vec<(String, f64, Role)> {
        let own = self.method.settings().into_iter();
        let mut settings = vec![("learning_rate".to_owned(), self.learning_rate, Role::Scale)];
        settings.extend(own.map(|(key, value, role)| (key.to_owned(), value, role)));
        for (at, group) in self.groups.iter().enumerate() {
            let decay = group.weight_decay.unwrap_or(0.0);
            settings.push((format!("groups[{at}].weight_decay"), decay, Role::Scale));
        }
        let clip = self.clip.clone().unwrap_or_default();
        let limits = [
            ("clip.value", clip.value),
            ("clip.norm", clip.norm),
            ("clip.global_norm", clip.global_norm),
        ];
        let limits = limits.map(|(key, limit)| (key.to_owned(), limit.unwrap_or(0.0), Role::Scale));
        settings.extend(limits);
        settings
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let doc = "Learning rate, before the scheduler.";
        Self {
            // First, since messages about the other keys name the type.
            method: Method::decode(s),
            learning_rate: s
                .field("learning_rate", Kind::positive(), doc)
                .required(),
            clip: s.optional_table(
                "clip",
                "How gradients are clipped before the update: one of the keys.",
                ClipSpec::decode,
            ),
            groups: s.tables(
                "groups",
                "Settings for groups of parameters. If a parameter is in several groups, only the last one applies, with all of its keys.",
                false,
                GroupSpec::decode,
            ),
        }
    }
}

impl ClipSpec {
    fn decode(s: &mut Section<'_>) -> Self {
        let value = "Each element of a gradient is clamped to plus or minus this value.";
        let norm = "The gradient of a parameter is scaled down to this norm if its norm is larger.";
        let global_norm = "All gradients are scaled down together if the norm over all of them is larger (Pascanu et al., 2013).";
        let mut limit = |key, doc| s.field(key, Kind::positive(), doc).optional();
        Self {
            value: limit("value", value),
            norm: limit("norm", norm),
            global_norm: limit("global_norm", global_norm),
        }
    }
}

/// Patterns over the paths of parameters.
pub(super) fn patterns() -> Kind {
    let list = Kind::List {
        item: Box::new(Kind::Pattern),
        min_items: 1,
        unique: true,
    };
    Kind::Either(Box::new(Kind::Pattern), Box::new(list))
}

impl GroupSpec {
    fn decode(s: &mut Section<'_>) -> Self {
        Self {
            parameters: s
                .field(
                    "parameters",
                    patterns(),
                    "The parameters, by path, such as \"linear_1.weight\" or \"*.bias\"; `*` matches any text, `?` one character.",
                )
                .required(),
            weight_decay: s
                .field(
                    "weight_decay",
                    Kind::non_negative(),
                    "Weight decay for this group, overriding the optimizer's.",
                )
                .optional(),
            learning_rate_factor: s
                .field(
                    "learning_rate_factor",
                    Kind::positive(),
                    "Factor that multiplies the learning rate.",
                )
                .or(1.0),
            freeze: s
                .field(
                    "freeze",
                    Kind::Bool,
                    "Whether these parameters are frozen.",
                )
                .or(false),
        }
    }
}
