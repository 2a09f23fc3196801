//! Layer types of a program that uses runner as a library.
//!
//! A program installs its parts once, before anything is read ([`install`]). They are decoded, explained, planned and
//! recorded as the built-in types are. The functions of a part are its author's code: a panic in one of them becomes a
//! message that names the part.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::section::{Section, Types};
use crate::diagnostic::{Diagnostic, Reason};

/// The settings of a layer, as its part serializes them.
pub type Settings = Map<String, Json>;

/// Sizes of an item, without the batch.
pub type Dims = Vec<usize>;

/// A layer type of the program.
#[derive(Clone, Copy)]
pub struct OwnLayer {
    /// The `type` in the file.
    pub name: &'static str,
    /// Its meaning, as one sentence.
    pub doc: &'static str,
    /// The least and the greatest number of inputs.
    pub num_inputs: (usize, usize),
    /// Reads its keys.
    pub decode: fn(&mut Section<'_>) -> Settings,
    /// The shape of its output for the shapes of its inputs.
    pub output: fn(&Settings, &[Dims]) -> Result<Dims, Unfit>,
    /// The path of each parameter inside the layer, with its number of elements.
    pub parameters: fn(&Settings, &[Dims]) -> Vec<Parameter>,
    /// Multiply-adds of one item's forward pass.
    pub multiply_adds: fn(&Settings, &[Dims]) -> u64,
    /// Values of one item that the backward pass needs.
    pub kept_values: fn(&Settings, &[Dims], &Dims) -> u64,
    /// What the crate of networks builds it with.
    pub module: &'static (dyn Any + Send + Sync),
}

impl fmt::Debug for OwnLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnLayer({})", self.name)
    }
}

impl PartialEq for OwnLayer {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

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

static LAYERS: OnceLock<Vec<OwnLayer>> = OnceLock::new();

/// The installed layer types.
pub fn layers() -> &'static [OwnLayer] {
    LAYERS.get().map_or(&[], Vec::as_slice)
}

/// Installs the layer types of the program, once, before any file is read.
///
/// # Errors
/// If a name cannot be a type, is taken, or something was installed before.
pub fn install(parts: Vec<OwnLayer>) -> Result<(), Reason> {
    let built_in = super::model::layer::built_in_types();
    let mut taken: Vec<&str> = built_in.chain(["sequence", "layers"]).collect();
    for part in &parts {
        let name = part.name;
        let is_word = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !is_word {
            return Err(Reason(format!(
                "`{name}` cannot be the name of a layer type: use lowercase letters, digits and `_`, such as \"my_layer\""
            )));
        }
        if taken.contains(&name) {
            return Err(Reason(format!(
                "there already is a layer type `{name}`: choose another name"
            )));
        }
        taken.push(name);
    }
    LAYERS
        .set(parts)
        .map_err(|_| Reason("the parts of this program were already installed".into()))
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
    pub(super) fn decode(s: &mut Section<'_>, part: &OwnLayer) -> Self {
        let decoded = catch_unwind(AssertUnwindSafe(|| (part.decode)(s)));
        let settings = decoded.unwrap_or_else(|payload| {
            let message = panicked(part.name, "while reading its keys", &*payload);
            if let Some((span, findings)) = s.reading() {
                let wrong = Diagnostic::error("own-part", message).at(span);
                findings.diagnostics.push(wrong.help(REMEDY));
            }
            Settings::new()
        });
        Self {
            layer: part.name.to_owned(),
            // TOML, the format of plans, has no null.
            settings: settings
                .into_iter()
                .filter(|(_, value)| !value.is_null())
                .collect(),
            parameters: Vec::new(),
        }
    }

    /// Its part, if this program has it.
    pub fn part(&self) -> Option<&'static OwnLayer> {
        layers().iter().find(|part| part.name == self.layer)
    }

    /// Why this program cannot compute it, if it cannot.
    pub fn missing(&self) -> Option<String> {
        self.part().is_none().then(|| {
            format!(
                "the layer type `{}` is not part of this program",
                self.layer
            )
        })
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
        catch_unwind(AssertUnwindSafe(plan)).unwrap_or_else(|payload| {
            let what = format!("for inputs {inputs:?}");
            let message = format!(
                "cannot be planned: {}",
                panicked(part.name, &what, &*payload)
            );
            Err(Unfit::new("type", message, REMEDY))
        })
    }
}

const REMEDY: &str = "correct the part in the source of this program";

/// The message about a panic in a part.
pub fn panicked(name: &str, when: &str, payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or(payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a panic without a message");
    format!("the layer type `{name}` of this program panicked {when}: {text}")
}

/// A layer type, built in or of the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnyLayer {
    /// Built in.
    BuiltIn(super::model::layer::LayerType),
    /// Of the program.
    Own(&'static OwnLayer),
}

impl Types for AnyLayer {
    fn all() -> Vec<(Self, &'static str, &'static str)> {
        let built_in = super::model::layer::LayerType::all().into_iter();
        let built_in = built_in.map(|(layer, name, doc)| (Self::BuiltIn(layer), name, doc));
        let own = layers()
            .iter()
            .map(|part| (Self::Own(part), part.name, part.doc));
        built_in.chain(own).collect()
    }
}
