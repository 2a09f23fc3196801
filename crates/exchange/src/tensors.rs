//! Named tensors, as in weight files.

mod dtype;
mod named;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

pub use dtype::Dtype;
pub use named::NamedTensor;

/// Why bytes are not a valid tensor, or tensors not a valid set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorError {
    /// The shape needs more bytes than a machine can address.
    TooLarge {
        /// The tensor's name.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
    },
    /// The number of bytes does not match the shape and the type.
    Size {
        /// The tensor's name.
        name: String,
        /// Its shape.
        shape: Vec<usize>,
        /// The type of its values.
        dtype: Dtype,
        /// Bytes that there are.
        found: usize,
    },
    /// Two tensors have the same name.
    Repeated {
        /// The name.
        name: String,
    },
}

impl fmt::Display for TensorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge { name, shape } => {
                write!(
                    f,
                    "tensor `{name}` of shape {shape:?} is larger than any memory"
                )
            }
            Self::Size {
                name,
                shape,
                dtype,
                found,
            } => write!(
                f,
                "tensor `{name}` of shape {shape:?} and type {dtype} has {found} bytes, which does not match"
            ),
            Self::Repeated { name } => write!(f, "two tensors are named `{name}`"),
        }
    }
}

impl Error for TensorError {}

/// Tensors in the order of their file, each name once.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tensors {
    all: Vec<NamedTensor>,
    places: BTreeMap<String, usize>,
}

impl Tensors {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor at the end.
    ///
    /// # Errors
    /// If there already is one with that name.
    pub fn push(&mut self, tensor: NamedTensor) -> Result<(), TensorError> {
        let name = tensor.name().to_owned();
        if self.places.contains_key(&name) {
            return Err(TensorError::Repeated { name });
        }
        self.places.insert(name, self.all.len());
        self.all.push(tensor);
        Ok(())
    }

    /// The tensor with a name.
    pub fn get(&self, name: &str) -> Option<&NamedTensor> {
        self.places.get(name).map(|at| &self.all[*at])
    }

    /// The tensors in order.
    pub fn iter(&self) -> std::slice::Iter<'_, NamedTensor> {
        self.all.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Bytes of all values.
    pub fn num_bytes(&self) -> usize {
        self.iter().map(|tensor| tensor.bytes().len()).sum()
    }

    /// The total number of values.
    pub fn num_values(&self) -> usize {
        self.iter().map(NamedTensor::num_values).sum()
    }
}

impl IntoIterator for Tensors {
    type Item = NamedTensor;
    type IntoIter = std::vec::IntoIter<NamedTensor>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.into_iter()
    }
}

impl<'a> IntoIterator for &'a Tensors {
    type Item = &'a NamedTensor;
    type IntoIter = std::slice::Iter<'a, NamedTensor>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests;
