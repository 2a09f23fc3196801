//! ONNX graphs (<https://onnx.ai/onnx/repo-docs/IR.html>).
//!
//! [`model`] writes a network as operators of version 18 of ONNX's set, which every recent runtime supports. Weights
//! are 32-bit floats, and the batch can have any size. [`import`] reads graphs of other programs.

mod build;
pub mod import;
mod lacking;
mod layers;
#[allow(missing_docs, reason = "the names are those of ONNX's specification")]
#[allow(clippy::all, reason = "the file is generated")]
#[rustfmt::skip]
pub mod messages;
mod nonlinear;
pub mod transforms;

use std::error::Error;
use std::fmt;

use prost::Message;

use crate::error::Unsupported;
use crate::folded::folded;
use crate::state::StateDict;
use crate::tensors::{TensorError, Tensors};
pub use build::{Attribute, Element, Graph};
use layers::Scope;
use messages::{ModelProto, OperatorSetIdProto, StringStringEntryProto};
use runner_core::check::network::{Network, Shape};
use runner_core::spec::model::layer_spec::Weights;

/// The version of ONNX's operators.
pub const OPSET: i64 = 18;
/// The same of a file with deformable convolutions.
const DEFORM_OPSET: i64 = 19;
/// The corresponding version of its operators for tables.
const ML_OPSET: i64 = 3;
/// The corresponding version of the file format.
const IR_VERSION: i64 = 8;
/// The maximum size of a protobuf message.
pub const MAX_BYTES: usize = i32::MAX as usize;

/// The name of the input of a graph.
pub const INPUT: &str = "input";
/// The name of the output.
pub const OUTPUT: &str = "output";

/// Why there is no graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnnxError {
    /// ONNX has no operators for a layer.
    Unsupported(Unsupported),
    /// A layer's tensor is missing.
    Missing {
        /// Its name.
        name: String,
    },
    /// An input has the name of the output.
    Name {
        /// The name.
        name: String,
    },
    /// Two tensors have the same name.
    Tensor(TensorError),
    /// The weights do not fit a file.
    TooLarge {
        /// Bytes of the file.
        bytes: usize,
    },
}

impl fmt::Display for OnnxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(unsupported) => unsupported.fmt(f),
            Self::Missing { name } => write!(f, "there is no tensor `{name}`"),
            Self::Name { name } => {
                write!(
                    f,
                    "an input has the name `{name}`, like the output of the graph"
                )
            }
            Self::Tensor(error) => error.fmt(f),
            Self::TooLarge { bytes } => write!(
                f,
                "the model has {bytes} bytes, but an ONNX file can have at most {MAX_BYTES}"
            ),
        }
    }
}

impl Error for OnnxError {}

impl From<TensorError> for OnnxError {
    fn from(error: TensorError) -> Self {
        Self::Tensor(error)
    }
}

/// Adds a network to a graph; returns the name of its output for its named inputs, or the only one.
///
/// # Errors
/// If ONNX has no operators for a layer, or a tensor is missing. Tensors have Burn's names.
pub fn network(
    graph: &mut Graph,
    network: &Network,
    state: &StateDict,
    burn: &Tensors,
    items: &[String],
) -> Result<String, OnnxError> {
    let burn = &*folded(network, burn)?;
    let mut outputs: Vec<String> = Vec::with_capacity(network.layers.len());
    for (at, (layer, module)) in network.layers.iter().zip(&state.modules).enumerate() {
        let inputs = layer.inputs.iter().map(|input_of| match input_of.layer {
            Some(from) => outputs[from].clone(),
            None => items[input_of.part.unwrap_or(0)].clone(),
        });
        let inputs: Vec<String> = inputs.collect();
        graph.begin(module);
        let owner = match layer.weights {
            Some(Weights::Shared(owner)) => owner,
            _ => at,
        };
        let matrix = match network.layers[owner].weights {
            Some(Weights::Tied(tied)) => Some((&*network.layers[tied].name, &*state.modules[tied])),
            _ => None,
        };
        let mut scope = Scope {
            graph,
            layer,
            owner: &network.layers[owner].name,
            module: &state.modules[owner],
            matrix,
            burn,
        };
        outputs.push(layers::output(&mut scope, &inputs)?);
    }
    graph.begin("");
    Ok(outputs.pop().unwrap_or_else(|| items[0].clone()))
}

/// The bytes of a file with an input `input` of items, or one for each named input, and an output `output` of the
/// network's results. Tensors have Burn's names.
///
/// # Errors
/// If ONNX has no operators for a layer, or a tensor is missing.
pub fn file(of: &Network, burn: &Tensors) -> Result<Vec<u8>, OnnxError> {
    let mut graph = Graph::new("network");
    let single = [(INPUT, &of.items)];
    let parts: Vec<(&str, &Shape)> = match of.parts.as_slice() {
        [] => single.to_vec(),
        parts => parts
            .iter()
            .map(|part| (&*part.name, &part.shape))
            .collect(),
    };
    for (name, shape) in &parts {
        let element = match shape.vocabulary {
            Some(_) => Element::I64,
            None => Element::F32,
        };
        if *name == OUTPUT {
            return Err(OnnxError::Name {
                name: (*name).to_owned(),
            });
        }
        graph.input(name, element, &shape.dims);
    }
    let items: Vec<String> = parts.iter().map(|(name, _)| (*name).to_owned()).collect();
    let given = network(&mut graph, of, &StateDict::of(of), burn, &items)?;
    let shape = of.layers.last().map_or(&of.items.dims, |last| &last.shape);
    graph.output(&given, OUTPUT, Element::F32, shape);
    Ok(to_bytes(&model(graph, &[])?))
}

/// A model with a graph and metadata.
///
/// # Errors
/// If it does not fit a file.
pub fn model(graph: Graph, metadata: &[(String, String)]) -> Result<ModelProto, OnnxError> {
    let entry = |(key, value): &(String, String)| StringStringEntryProto {
        key: Some(key.clone()),
        value: Some(value.clone()),
    };
    let set = |domain: &str, version: i64| OperatorSetIdProto {
        domain: Some(domain.to_owned()),
        version: Some(version),
    };
    let version = if graph.has_newer() {
        DEFORM_OPSET
    } else {
        OPSET
    };
    let mut sets = vec![set("", version)];
    if graph.has_tables() {
        sets.push(set(build::ML_DOMAIN, ML_OPSET));
    }
    let model = ModelProto {
        ir_version: Some(IR_VERSION),
        producer_name: Some("burn-runner".into()),
        producer_version: Some(env!("CARGO_PKG_VERSION").into()),
        opset_import: sets,
        metadata_props: metadata.iter().map(entry).collect(),
        graph: Some(graph.finish()),
        ..ModelProto::default()
    };
    match model.encoded_len() {
        bytes if bytes > MAX_BYTES => Err(OnnxError::TooLarge { bytes }),
        _ => Ok(model),
    }
}

/// The bytes of a file.
pub fn to_bytes(model: &ModelProto) -> Vec<u8> {
    model.encode_to_vec()
}
