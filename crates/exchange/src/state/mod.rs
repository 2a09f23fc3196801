//! The tensors of a layer in Burn's module and in PyTorch's.
//!
//! An [`Entry`] is one tensor of PyTorch's state dict with the Burn tensors that it consists of; a network has
//! [`StateDict::entries`] for all of its layers.

mod entries;
pub mod names;

use std::error::Error;
use std::fmt;

use crate::tensors::{NamedTensor, TensorError, Tensors};
use runner_core::check::network::Network;

/// A PyTorch tensor with the Burn tensors that it consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name in PyTorch's state dict, such as `lstm_1.weight_ih_l0`.
    pub torch: String,
    /// Names as `<layer>.<path in Burn's module>`. Several are stacked along the first axis, in this order.
    pub burn: Vec<String>,
    /// Whether rows and columns are exchanged: Burn multiplies by \[inputs, outputs\], PyTorch by
    /// \[outputs, inputs\].
    pub is_transposed: bool,
    /// The number of its axes in PyTorch: axes of size 1 follow those of Burn's.
    pub rank: Option<usize>,
    /// Whether it follows from the layer's settings, such as the sines of a positional encoding.
    pub is_constant: bool,
}

impl Entry {
    /// The PyTorch tensor for Burn's tensors, which are in the order of [`Entry::burn`].
    ///
    /// # Panics
    /// If their shapes are not those of the layer.
    pub fn to_torch(&self, burn: &[&NamedTensor]) -> NamedTensor {
        let turned = |tensor: &NamedTensor| {
            if self.is_transposed {
                tensor.transposed()
            } else {
                tensor.clone()
            }
        };
        let parts: Vec<NamedTensor> = burn.iter().copied().map(turned).collect();
        match <[NamedTensor; 1]>::try_from(parts) {
            Ok([one]) => match self.rank {
                Some(rank) => {
                    let mut shape = one.shape().to_vec();
                    shape.resize(rank, 1);
                    let reshaped = one.reshaped(shape).expect("the values are as many");
                    reshaped.named(&self.torch)
                }
                None => one.named(&self.torch),
            },
            Err(parts) => NamedTensor::stacked(&self.torch, &parts),
        }
    }
}

/// The names of a network's layers in PyTorch, and their tensors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDict {
    /// The name of each layer as an attribute of a Python class, all different.
    pub modules: Vec<String>,
    /// The name of each named input as a parameter of a Python function, different from those of layers.
    pub inputs: Vec<String>,
    /// All tensors of the state dict, in the order of the layers.
    pub entries: Vec<Entry>,
}

impl StateDict {
    /// The layout of a network.
    pub fn of(network: &Network) -> Self {
        let layers = network.layers.iter().map(|layer| layer.name.as_str());
        let parts = network.parts.iter().map(|part| part.name.as_str());
        let mut modules = names::identifiers(layers.chain(parts));
        let inputs = modules.split_off(network.layers.len());
        let entries = network.layers.iter().zip(&modules);
        let entries = entries.flat_map(|(layer, module)| entries::of(layer, module));
        Self {
            entries: entries.collect(),
            modules,
            inputs,
        }
    }

    /// PyTorch's state dict of all of Burn's tensors.
    ///
    /// # Errors
    /// If one is missing.
    pub fn to_torch(&self, burn: &Tensors) -> Result<Tensors, StateError> {
        let mut torch = Tensors::new();
        for entry in &self.entries {
            let parts = entry.burn.iter().map(|name| {
                let found = burn.get(name);
                found.ok_or_else(|| StateError::Missing { name: name.clone() })
            });
            let parts = parts.collect::<Result<Vec<_>, _>>()?;
            torch.push(entry.to_torch(&parts))?;
        }
        Ok(torch)
    }
}

/// Why tensors do not have the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StateError {
    /// There is no tensor of that name.
    Missing {
        /// The name.
        name: String,
    },
    /// A name came twice.
    Tensor(TensorError),
}

impl From<TensorError> for StateError {
    fn from(error: TensorError) -> Self {
        Self::Tensor(error)
    }
}

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { name } => write!(f, "there is no tensor `{name}`"),
            Self::Tensor(error) => error.fmt(f),
        }
    }
}

impl Error for StateError {}

#[cfg(test)]
mod tests;
