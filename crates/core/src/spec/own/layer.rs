//! Layer types of the program.

use std::any::Any;

use serde::{Deserialize, Serialize};

use super::{Entry, OrOwn, Part, Parts, REMEDY, Settings};
use crate::spec::model::layer::LayerType;
use crate::spec::section::Section;

/// Sizes of an item, without the batch.
pub type Dims = Vec<usize>;

/// A layer type of the program.
#[derive(Clone, Copy)]
pub struct OwnLayer {
    /// Its name and keys.
    pub entry: Entry,
    /// The least and the greatest number of inputs.
    pub num_inputs: (usize, usize),
    /// The shape of its output for the shapes of its inputs.
    pub output: fn(&Settings, &[Dims]) -> Result<Dims, Unfit>,
    /// The path of each parameter inside the layer, with its number of elements.
    pub parameters: fn(&Settings, &[Dims]) -> Vec<Parameter>,
    /// Multiply-adds of one item's forward pass.
    pub multiply_adds: fn(&Settings, &[Dims]) -> u64,
    /// Values of one item that the backward pass needs.
    pub kept_values: fn(&Settings, &[Dims], &Dims) -> u64,
    /// Small networks of it.
    pub examples: &'static [LayerExample],
    /// What the crate of networks builds it with.
    pub module: &'static (dyn Any + Send + Sync),
}

/// The shape of numeric items without the batch, or nothing for 6 tokens out of 7; and layers over them as in an
/// experiment file, the one that the example is of last.
pub type LayerExample = (&'static [usize], &'static str);

impl Part for OwnLayer {
    const KIND: &'static str = "layer type";

    fn of(parts: &Parts) -> &[Self] {
        &parts.layers
    }

    fn entry(&self) -> &Entry {
        &self.entry
    }
}

/// A layer type, built in or of the program.
pub type AnyLayer = OrOwn<LayerType, OwnLayer>;

/// Why a layer does not fit its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Unfit {
    /// The key of the layer to point at; `type` for none in particular.
    pub key: &'static str,
    /// What is wrong, as a continuation of the layer's name, such as "needs an even number of features, got 3".
    pub message: String,
    /// What to do about it.
    pub help: String,
}

impl Unfit {
    /// A layer that does not fit.
    pub fn new(key: &'static str, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            key,
            message: message.into(),
            help: help.into(),
        }
    }
}

/// A parameter of an own layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its path inside the layer, such as `linear.weight`.
    pub path: String,
    /// Its number of elements.
    pub count: u64,
}

/// A layer of an own type: its type, and its settings as decoded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Own {
    /// The `type` in the file.
    pub layer: String,
    /// Its settings.
    pub settings: Settings,
    /// Its parameters, once its inputs are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
}

/// What follows from the settings of a layer and the shapes of its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The shape of its output.
    pub shape: Dims,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Multiply-adds of one item's forward pass.
    pub multiply_adds: u64,
    /// Values of one item that the backward pass needs.
    pub kept_values: u64,
}

impl Own {
    pub(in crate::spec) fn decode(s: &mut Section<'_>, part: &OwnLayer) -> Self {
        Self {
            layer: part.entry.name.to_owned(),
            settings: part.decode(s),
            parameters: Vec::new(),
        }
    }

    /// Its part, if this program has it.
    pub fn part(&self) -> Option<&'static OwnLayer> {
        OwnLayer::named(&self.layer)
    }

    /// Why this program cannot compute it, if it cannot.
    pub fn missing(&self) -> Option<String> {
        OwnLayer::missing(&self.layer)
    }

    /// Why this program cannot compute a planned layer: it does not have the part, or another one of that name.
    pub fn unusable(&self, inputs: &[Dims], shape: &Dims) -> Option<String> {
        if let Some(missing) = self.missing() {
            return Some(missing);
        }
        let name = &self.layer;
        match self.plan(inputs) {
            Err(unfit) => Some(format!("a layer of the type `{name}` {}", unfit.message)),
            Ok(planned) if planned.shape != *shape || planned.parameters != self.parameters => {
                Some(format!(
                    "the layer type `{name}` of this program is not the one that trained the run: its shape or parameters differ"
                ))
            }
            Ok(_) => None,
        }
    }

    /// What follows from the shapes of its inputs.
    ///
    /// # Errors
    /// If it does not fit them, or its part panicked.
    pub fn plan(&self, inputs: &[Dims]) -> Result<Planned, Unfit> {
        let part = self
            .part()
            .ok_or_else(|| Unfit::new("type", self.missing().unwrap_or_default(), REMEDY))?;
        let plan = || {
            let shape = (part.output)(&self.settings, inputs)?;
            if shape.is_empty() || shape.contains(&0) {
                let message =
                    format!("would output {shape:?}, but every item needs at least one value");
                return Err(Unfit::new("type", message, REMEDY));
            }
            Ok(Planned {
                parameters: (part.parameters)(&self.settings, inputs),
                multiply_adds: (part.multiply_adds)(&self.settings, inputs),
                kept_values: (part.kept_values)(&self.settings, inputs, &shape),
                shape,
            })
        };
        let when = format!("for inputs {inputs:?}");
        OwnLayer::guarded(&self.layer, &when, plan).unwrap_or_else(|panicked| {
            let message = format!("cannot be planned: {panicked}");
            Err(Unfit::new("type", message, REMEDY))
        })
    }
}
