//! ONNX graphs as networks of layers: what `runner import onnx` writes.
//!
//! Constants are folded, operators become layers, and unsupported nodes are listed. The first axis of the inputs is the
//! batch; it may be moved and merged with other axes inside the graph, as long as its items are not mixed. A graph that
//! mixes them is read as a function of whole inputs: then an item is the complete input of the graph.

mod attributes;
mod builder;
mod constant;
mod fold;
mod inputs;
mod nodes;
mod patterns;
mod reader;
mod refused;
mod tensor;
mod text;
mod view;
mod weights;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use prost::Message;
use runner_core::check::network::Network;
use runner_core::data::DataError;
use runner_core::diagnostic::counted;
use runner_core::show::listed;

use crate::onnx::messages::{GraphProto, ModelProto, NodeProto};
use crate::tensors::Tensors;
use attributes::{described, has_graphs};
use builder::{Builder, fits_memory};
use inputs::Inputs;
use reader::{Reader, Value};
pub use weights::weights;

/// The maximum number of nodes that a message lists.
const SHOWN: usize = 12;
/// The supported versions of ONNX's operators.
const OPSETS: std::ops::RangeInclusive<i64> = 6..=26;

/// What to import from a file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Sizes of inputs by name, which replace those in the file.
    pub shapes: BTreeMap<String, Vec<usize>>,
    /// The output of the network, if the graph has several.
    pub output: Option<String>,
}

/// A graph as a network.
#[derive(Debug)]
pub struct Imported {
    /// Its layers, one per line, in the syntax of an experiment file.
    pub lines: Vec<String>,
    /// The same, laid out.
    pub network: Network,
    /// The weights, as PyTorch names and lays them out.
    pub tensors: Tensors,
    /// The inputs of the graph that make up an item, in order.
    pub inputs: Vec<String>,
    /// Notices for the user, as sentences.
    pub notes: Vec<String>,
}

/// The network of an ONNX file. Constants in other files are read only from inside `folder`.
pub fn import(
    bytes: &[u8],
    folder: Option<&Path>,
    options: &Options,
) -> Result<Imported, DataError> {
    let model = ModelProto::decode(bytes)
        .map_err(|e| DataError::new(format!("it is not a valid ONNX file: {e}")))?;
    let opset = opset(&model)?;
    let graph = model
        .graph
        .ok_or_else(|| DataError::new("it is not an ONNX file: it has no graph"))?;
    let constants = constants(&graph, folder)?;
    let output = output(&graph, options)?;
    let nodes = sorted(&graph, &constants, &output)?;
    let nested = nodes.iter().filter(|node| has_graphs(node));
    let nested = nested.map(|node| {
        let node = described(node);
        format!("{node}: it contains graphs of its own, which are not supported")
    });
    let nested: Vec<String> = nested.collect();
    if !nested.is_empty() {
        return Err(refusal(&nested));
    }
    let inputs = Inputs::of(&graph, &nodes, &constants, options)?;
    let mut refused = None;
    for has_batch in [true, false] {
        if has_batch && !inputs.have_batch() || !has_batch && inputs.is_open && inputs.have_batch()
        {
            continue;
        }
        let mut found = constants.clone();
        let items = inputs.items(has_batch);
        if let Err(much) = fits_memory(&items.dims) {
            refused
                .get_or_insert_with(|| DataError::new(format!("its input is too large: {much}")));
            continue;
        }
        let mut builder = Builder::new(items);
        inputs
            .place(&mut builder, &mut found, has_batch)
            .map_err(|refused| DataError::new(inputs.shown(&refused.to_string())))?;
        let batch = has_batch.then_some(inputs.batch);
        let is_of_integers = inputs.is_of_integers();
        let mut reader = Reader::new(builder, found, &graph, batch, opset, folder, is_of_integers);
        let mut wrong = reader.read(&nodes);
        if wrong.is_empty() {
            match reader.finish(&output) {
                Ok(built) => {
                    return Ok(Imported {
                        lines: built.lines,
                        network: built.network,
                        tensors: built.tensors,
                        inputs: inputs.names(),
                        notes: inputs.notes(has_batch),
                    });
                }
                Err(reason) => wrong.push(reason.to_string()),
            }
        }
        // The first interpretation is the intended one.
        refused.get_or_insert_with(|| {
            let wrong: Vec<String> = wrong.iter().map(|line| inputs.shown(line)).collect();
            refusal(&wrong)
        });
    }
    Err(refused.unwrap_or_else(|| DataError::new("its inputs have no axis of a batch")))
}

/// Nodes that no layer computes.
fn refusal(refused: &[String]) -> DataError {
    let mut error = DataError::new(format!(
        "it has {} that cannot be converted to layers",
        counted(refused.len(), "node")
    ));
    for line in refused.iter().take(SHOWN) {
        error = error.note(line);
    }
    if refused.len() > SHOWN {
        error = error.note(format!("and {} more", refused.len() - SHOWN));
    }
    error
}

/// The version of ONNX's own operators.
fn opset(model: &ModelProto) -> Result<i64, DataError> {
    let own = |domain: Option<&str>| matches!(domain.unwrap_or_default(), "" | "ai.onnx");
    let sets = model
        .opset_import
        .iter()
        .filter(|set| own(set.domain.as_deref()));
    let Some(version) = sets.filter_map(|set| set.version).max() else {
        return Err(DataError::new(
            "it is not an ONNX file: it does not declare its operator sets",
        ));
    };
    if OPSETS.contains(&version) {
        return Ok(version);
    }
    let message = format!(
        "it uses version {version} of ONNX's operators, but only versions {} to {} are supported",
        OPSETS.start(),
        OPSETS.end()
    );
    Err(DataError::new(message).help("export the model again with `opset_version=18`, or convert it with `onnx.version_converter`"))
}

/// The constants of a graph.
fn constants(
    graph: &GraphProto,
    folder: Option<&Path>,
) -> Result<BTreeMap<String, Value>, DataError> {
    if !graph.sparse_initializer.is_empty() {
        return Err(DataError::new(
            "it has sparse tensors, which are not supported",
        ));
    }
    let mut values = BTreeMap::new();
    for tensor in &graph.initializer {
        let name = tensor.name.clone().unwrap_or_default();
        let constant = tensor::constant(tensor, folder).map_err(|reason| {
            DataError::new(format!("its tensor `{name}` cannot be read: {reason}"))
        })?;
        if values
            .insert(name.clone(), Value::Constant(Rc::new(constant)))
            .is_some()
        {
            return Err(DataError::new(format!("it has two tensors `{name}`")));
        }
    }
    Ok(values)
}

/// The output of the network.
fn output(graph: &GraphProto, options: &Options) -> Result<String, DataError> {
    let names: Vec<String> = graph
        .output
        .iter()
        .filter_map(|output| output.name.clone())
        .collect();
    let list = listed(&names);
    match (&options.output, names.as_slice()) {
        (Some(wanted), names) if names.contains(wanted) => Ok(wanted.clone()),
        (Some(wanted), _) => Err(DataError::new(format!("it has no output `{wanted}`"))
            .note(format!("its outputs are {list}"))),
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(DataError::new("it has no outputs")),
        (None, [first, ..]) => {
            let message = format!(
                "it has {}, but a network has only one: {list}",
                counted(names.len(), "output")
            );
            Err(DataError::new(message).help(format!("choose one with `--output {first}`")))
        }
    }
}

/// The nodes that an output needs, each after those that it uses.
fn sorted<'a>(
    graph: &'a GraphProto,
    constants: &BTreeMap<String, Value>,
    output: &str,
) -> Result<Vec<&'a NodeProto>, DataError> {
    let mut made: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, node) in graph.node.iter().enumerate() {
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            if constants.contains_key(name) || made.insert(name, at).is_some() {
                return Err(DataError::new(format!("two nodes compute `{name}`")));
            }
        }
    }
    let mut order = Vec::new();
    let (mut done, mut open) = (BTreeSet::new(), BTreeSet::new());
    let mut stack: Vec<(usize, bool)> = made
        .get(output)
        .map(|at| (*at, false))
        .into_iter()
        .collect();
    while let Some((at, is_left)) = stack.pop() {
        if is_left {
            open.remove(&at);
            if done.insert(at) {
                order.push(&graph.node[at]);
            }
            continue;
        }
        if done.contains(&at) || !open.insert(at) {
            continue;
        }
        stack.push((at, true));
        for name in &graph.node[at].input {
            if let Some(from) = made.get(name.as_str()) {
                if open.contains(from) {
                    return Err(DataError::new(format!(
                        "its nodes form a cycle through `{name}`"
                    )));
                }
                stack.push((*from, false));
            }
        }
    }
    Ok(order)
}
