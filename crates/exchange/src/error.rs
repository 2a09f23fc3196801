//! Layers that another program cannot express.

use std::error::Error;
use std::fmt;

use runner_core::check::network::Layer;

/// A layer that cannot be expressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// Its name.
    pub layer: String,
    /// Its type.
    pub kind: String,
    /// Why not, as a continuation of "the layer".
    pub reason: String,
}

impl Unsupported {
    /// A layer that keeps the documents of an item apart.
    pub fn documents(layer: &Layer) -> Self {
        Self {
            layer: layer.name.clone(),
            kind: layer.kind.type_name(),
            reason: "keeps the documents of an item apart (`document_mask`), which exported programs do not; `export hub` and `export weights` write its weights".to_owned(),
        }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            layer,
            kind,
            reason,
        } = self;
        write!(f, "layer `{layer}` of type `{kind}` {reason}")
    }
}

impl Error for Unsupported {}
