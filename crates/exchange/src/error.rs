//! Layers that another program cannot express.

use std::error::Error;
use std::fmt;

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
