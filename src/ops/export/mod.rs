//! Trained networks in the formats of other programs.

mod adapter;
mod asked;
mod bpk;
mod example;
mod hub;
mod run;
mod tensors;

use std::fmt;
use std::io;
use std::path::Path;

use burn::tensor::Device;

pub use adapter::{ExportAdapter, export_adapter};
pub use asked::{ExportOnnx, ExportPytorch, ExportWeights, Exported, Format, Naming, Numbers};
pub use hub::{ExportHub, export_hub};
pub(super) use run::open;
pub use run::{export_onnx, export_pytorch, export_pytorch_of, export_weights};
pub use runner_exchange::torch::About;
pub use tensors::tensors;

use crate::error::Error;
use crate::ops::place::unwritten;
use example::Example;
use runner_core::check::network::Network;
use runner_core::diagnostic::Diagnostic;
use runner_core::show::plain_io_error;
use runner_exchange::error::Unsupported;
use runner_exchange::onnx::{self, Graph as OnnxGraph, OnnxError};
use runner_exchange::state::{StateDict, StateError};
use runner_exchange::tensors::{Dtype, TensorError, Tensors};
use runner_exchange::torch::model_py;
use runner_exchange::write::{self, WriteError};
use runner_network::graph::Graph;

/// Why a network was not exported.
#[derive(Debug)]
pub enum ExportError {
    /// The other program has no counterpart of a layer.
    Unsupported(Unsupported),
    /// The format does not support this.
    Format(String),
    /// The output for the example of a file in Python contains infinity or NaN.
    Example,
    /// The run's transforms cannot be part of a graph.
    Transforms(String),
    /// The disk.
    Io(io::Error),
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(unsupported) => unsupported.fmt(f),
            Self::Format(reason) => f.write_str(reason),
            Self::Example => f.write_str(
                "the network's output for the example that belongs to the file is infinite or NaN",
            ),
            Self::Transforms(reason) => {
                write!(f, "the transforms cannot be part of the graph: {reason}")
            }
            Self::Io(error) => f.write_str(&plain_io_error(error)),
        }
    }
}

impl std::error::Error for ExportError {}

impl From<Unsupported> for ExportError {
    fn from(unsupported: Unsupported) -> Self {
        Self::Unsupported(unsupported)
    }
}

impl From<OnnxError> for ExportError {
    fn from(error: OnnxError) -> Self {
        match error {
            OnnxError::Unsupported(unsupported) => Self::Unsupported(unsupported),
            other => Self::Format(other.to_string()),
        }
    }
}

impl From<WriteError> for ExportError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Io(error) => Self::Io(error),
            other => Self::Format(other.to_string()),
        }
    }
}

impl From<StateError> for ExportError {
    fn from(error: StateError) -> Self {
        Self::Format(error.to_string())
    }
}

impl From<TensorError> for ExportError {
    fn from(error: TensorError) -> Self {
        Self::Format(error.to_string())
    }
}

impl From<io::Error> for ExportError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Why an operation that writes to a destination failed.
pub(super) fn failed(place: &Path, error: &ExportError) -> Error {
    let shown = place.display();
    Error::refused(match error {
        ExportError::Io(error) => return unwritten(place, error),
        ExportError::Unsupported(unsupported) => {
            let message = format!("`{shown}` is not written: {unsupported}");
            Diagnostic::error("export", message).help(
                "change the layer and train again, or export only the weights with `runner export weights`",
            )
        }
        ExportError::Format(reason) => {
            let message = format!("`{shown}` is not written: {reason}");
            Diagnostic::error("export", message)
                .help("choose another format or type of numbers; `runner export weights --help` lists them")
        }
        ExportError::Example => {
            let message = format!("`{shown}` is not written: {error}");
            Diagnostic::error("export", message)
                .help("export only the weights with `runner export weights`, or the network with `runner export onnx`")
        }
        ExportError::Transforms(_) => {
            let message = format!("`{shown}` is not written: {error}");
            Diagnostic::error("export", message)
                .help("omit `--with-transforms`; `runner export pytorch` writes them as Python")
        }
    })
}

/// The tensors converted to a type; integers are not converted.
pub fn cast(tensors: Tensors, dtype: Dtype) -> Result<Tensors, TensorError> {
    let mut cast = Tensors::new();
    for tensor in tensors {
        cast.push(if tensor.dtype().is_float() {
            tensor.cast(dtype)
        } else {
            tensor
        })?;
    }
    Ok(cast)
}

/// The files of a network as PyTorch source code.
#[derive(Debug)]
pub struct Pytorch {
    /// `model.py`.
    pub source: String,
    /// `weights.safetensors`, of 32-bit floats.
    pub weights: Vec<u8>,
    /// `example.json`.
    pub example: Vec<u8>,
    /// The tensors of the weights.
    pub tensors: Tensors,
}

impl Pytorch {
    /// The files by their names.
    pub fn files(&self) -> [(&str, &[u8]); 3] {
        [
            ("model.py", self.source.as_bytes()),
            ("weights.safetensors", &self.weights),
            ("example.json", &self.example),
        ]
    }
}

/// A network as PyTorch source code, its weights, and an example with the output of `graph` on `device`; without data
/// transforms, which a network alone does not have.
///
/// # Errors
/// If PyTorch has no counterpart of a layer, or the network's output contains infinity or NaN.
pub fn pytorch(
    network: &Network,
    graph: &Graph,
    device: &Device,
    about: &About,
) -> Result<Pytorch, ExportError> {
    let example = Example::of(network, graph, device);
    pytorch_with(network, graph, &example, about)
}

fn pytorch_with(
    network: &Network,
    graph: &Graph,
    example: &Example,
    about: &About,
) -> Result<Pytorch, ExportError> {
    let state = StateDict::of(network);
    let source = model_py(network, &state, about)?;
    let tensors = cast(state.to_torch(&tensors(graph)?)?, Dtype::F32)?;
    let mut weights = Vec::new();
    write::safetensors(&tensors, &mut weights)?;
    Ok(Pytorch {
        source,
        weights,
        example: example.to_json()?,
        tensors,
    })
}

/// The bytes of an ONNX file with an input `input` of items and an output `output` of the network's results.
///
/// # Errors
/// If ONNX has no operators for a layer.
pub fn onnx_model(network: &Network, graph: &Graph) -> Result<Vec<u8>, ExportError> {
    Ok(onnx::file(network, &tensors(graph)?)?)
}

/// Adds a network to a graph; returns its output for its inputs, and the shape of an item of that.
fn onnx_network(
    made: &mut OnnxGraph,
    network: &Network,
    graph: &Graph,
    items: &[String],
) -> Result<(String, Vec<usize>), ExportError> {
    let state = StateDict::of(network);
    let given = onnx::network(made, network, &state, &tensors(graph)?, items)?;
    let last = network.layers.last();
    let shape = last.map_or(&network.items.dims, |last| &last.shape);
    Ok((given, shape.clone()))
}
