//! PyTorch's tensors as JSON: nested lists under PyTorch's names.

use std::collections::BTreeSet;
use std::io::Write;

use serde_json::{Value, json};

use super::WriteError;
use crate::tensors::{Dtype, NamedTensor, Tensors};

/// The additional information in the full format.
#[derive(Clone, Debug)]
pub struct Whole {
    /// The kind of network.
    pub model_type: String,
    /// Its layers.
    pub architecture: Value,
    /// The origin of the weights.
    pub metadata: Value,
}

/// Writes tensors as one object, names joined by `_`: `{"fc1_weight": [[…], …], "fc1_bias": […], …}`.
pub fn flat(tensors: &Tensors, mut to: impl Write) -> Result<(), WriteError> {
    weights(tensors, &mut to)?;
    Ok(to.write_all(b"\n")?)
}

/// Writes tensors as `weights` of an object with `model_type`, `framework`, `architecture` and `metadata`.
pub fn whole(tensors: &Tensors, about: &Whole, mut to: impl Write) -> Result<(), WriteError> {
    let texts = [
        ("model_type", json!(about.model_type)),
        ("framework", json!("pytorch")),
        ("architecture", about.architecture.clone()),
        ("metadata", about.metadata.clone()),
    ];
    to.write_all(b"{")?;
    for (key, value) in texts {
        write!(to, "{}:{value},", json!(key))?;
    }
    to.write_all(b"\"weights\":")?;
    weights(tensors, &mut to)?;
    Ok(to.write_all(b"}\n")?)
}

fn weights(tensors: &Tensors, to: &mut impl Write) -> Result<(), WriteError> {
    let mut names = BTreeSet::new();
    to.write_all(b"{")?;
    for (at, tensor) in tensors.iter().enumerate() {
        let name = tensor.name().replace('.', "_");
        let before = if at > 0 { "," } else { "" };
        write!(to, "{before}\n{}:", json!(name))?;
        if !names.insert(name.clone()) {
            return Err(WriteError::Repeated { name });
        }
        values(tensor, to)?;
    }
    Ok(to.write_all(b"\n}")?)
}

fn values(tensor: &NamedTensor, to: &mut impl Write) -> Result<(), WriteError> {
    let numbers = tensor.to_f64s();
    if !numbers.iter().all(|number| number.is_finite()) {
        return Err(WriteError::NotFinite {
            name: tensor.name().to_owned(),
        });
    }
    let is_double = tensor.dtype() == Dtype::F64;
    let number = |at: usize, to: &mut dyn Write| {
        // The shortest digits that parse to the same number.
        if !tensor.dtype().is_float() {
            write!(to, "{}", numbers[at])
        } else if is_double {
            write!(to, "{:?}", numbers[at])
        } else {
            write!(to, "{:?}", numbers[at] as f32)
        }
    };
    let shape = tensor.shape();
    // How many values there are in a list of each depth.
    let sizes: Vec<usize> = (0..shape.len())
        .map(|axis| shape[axis..].iter().product())
        .collect();
    if numbers.is_empty() {
        let depth = shape.len().max(1);
        return Ok(write!(to, "{}{}", "[".repeat(depth), "]".repeat(depth))?);
    }
    for at in 0..numbers.len() {
        if at > 0 {
            to.write_all(b",")?;
        }
        for _ in sizes.iter().filter(|size| at.is_multiple_of(**size)) {
            to.write_all(b"[")?;
        }
        number(at, to)?;
        for _ in sizes.iter().filter(|size| (at + 1).is_multiple_of(**size)) {
            to.write_all(b"]")?;
        }
    }
    Ok(())
}
