//! Weight files for other programs.

mod json;
mod npz;
mod safetensors;
mod torch;

pub use json::{Whole, flat, whole};
pub use npz::npz;
pub use safetensors::{safetensors, safetensors_about};
pub use torch::torch;

use std::error::Error;
use std::fmt;
use std::io;

use crate::tensors::Dtype;

/// Why a file was not written.
#[derive(Debug)]
pub enum WriteError {
    /// The disk, or another writer.
    Io(io::Error),
    /// The format does not support such values.
    Dtype {
        /// The format.
        format: &'static str,
        /// The type of the values.
        dtype: Dtype,
    },
    /// The format does not support infinity or NaN.
    NotFinite {
        /// The tensor that has one.
        name: String,
    },
    /// Two tensors have the same name in the format.
    Repeated {
        /// The name.
        name: String,
    },
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Dtype { format, dtype } => write!(f, "{format} does not support {dtype}"),
            Self::NotFinite { name } => write!(
                f,
                "tensor `{name}` has values that are infinite or NaN, which JSON does not support"
            ),
            Self::Repeated { name } => write!(f, "two tensors would be named `{name}`"),
        }
    }
}

impl Error for WriteError {}

#[cfg(test)]
mod tests;
