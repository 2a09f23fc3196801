//! The weights of a graph by PyTorch's names, even if its operators are unsupported.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use prost::Message;
use runner_core::data::DataError;

use super::attributes::{flag, module_name, operator};
use super::constant::Constant;
use super::nodes::{RECURRENT_PATHS, gates, stacked};
use super::tensor;
use crate::onnx::messages::{ModelProto, NodeProto};
use crate::tensors::{NamedTensor, TensorError, Tensors};

/// The float tensors of an ONNX file: those of layers with the names and layouts of PyTorch, others unchanged. External
/// data is read only from inside `folder`; its files are returned too.
pub fn weights(bytes: &[u8], folder: &Path) -> Result<(Tensors, Vec<PathBuf>), DataError> {
    let model = ModelProto::decode(bytes)
        .map_err(|e| DataError::new(format!("it is not a valid ONNX file: {e}")))?;
    let graph = model
        .graph
        .ok_or_else(|| DataError::new("it is not an ONNX file: it has no graph"))?;
    let mut constants: BTreeMap<String, Rc<Constant>> = BTreeMap::new();
    let mut beside = BTreeSet::new();
    for initializer in &graph.initializer {
        let name = initializer.name.clone().unwrap_or_default();
        if let Some(place) = tensor::location(initializer) {
            beside.insert(folder.join(place));
        }
        let constant = tensor::constant(initializer, Some(folder)).map_err(|reason| {
            DataError::new(format!("its tensor `{name}` cannot be read: {reason}"))
        })?;
        constants.insert(name, Rc::new(constant));
    }
    // Equal tensors are stored once, with aliases for their other names.
    for node in graph
        .node
        .iter()
        .filter(|node| operator(node) == "Identity")
    {
        if let (Some(from), Some(to)) = (node.input.first(), node.output.first())
            && let Some(constant) = constants.get(from).cloned()
        {
            constants.insert(to.clone(), constant);
        }
    }
    let mut found = Found {
        constants,
        used: BTreeSet::new(),
        tensors: Tensors::new(),
        names: BTreeSet::new(),
    };
    for node in &graph.node {
        found.of_node(node).map_err(told)?;
    }
    for initializer in &graph.initializer {
        found
            .of_rest(initializer.name.as_deref().unwrap_or_default())
            .map_err(told)?;
    }
    Ok((found.tensors, beside.into_iter().collect()))
}

fn told(error: TensorError) -> DataError {
    DataError::new(error.to_string())
}

struct Found {
    constants: BTreeMap<String, Rc<Constant>>,
    /// Initializers that are already used.
    used: BTreeSet<String>,
    tensors: Tensors,
    names: BTreeSet<String>,
}

impl Found {
    fn of_node(&mut self, node: &NodeProto) -> Result<(), TensorError> {
        let is_turned = match operator(node) {
            "MatMul" => true,
            "Gemm" => !flag(node, "transB"),
            _ => false,
        };
        let slots: &[(usize, &str)] = match operator(node) {
            "Conv"
            | "ConvTranspose"
            | "Gemm"
            | "LayerNormalization"
            | "InstanceNormalization"
            | "GroupNormalization" => &[(1, "weight"), (2, "bias")],
            "BatchNormalization" => &[
                (1, "weight"),
                (2, "bias"),
                (3, "running_mean"),
                (4, "running_var"),
            ],
            "MatMul" | "PRelu" | "RMSNormalization" => &[(1, "weight")],
            "Gather" => &[(0, "weight")],
            "LSTM" | "GRU" | "RNN" => return self.of_recurrent(node),
            _ => return Ok(()),
        };
        for (at, path) in slots {
            let Some(input) = node.input.get(*at) else {
                continue;
            };
            let Some(constant) = self.constants.get(input).cloned() else {
                continue;
            };
            if constant.is_integer() {
                continue;
            }
            self.used.insert(input.clone());
            let name = if is_plain(input) && input.contains('.') {
                input.clone()
            } else {
                match module_name(node, *at) {
                    Some(module) => format!("{module}.{path}"),
                    None => input.clone(),
                }
            };
            let is_matrix = constant.shape.len() == 2 && *at == 1;
            let constant = if is_turned && is_matrix {
                Rc::new(constant.permuted(&[1, 0]))
            } else {
                constant
            };
            // Slopes of channels are followed by axes of size 1.
            let shape = if operator(node) == "PRelu" {
                vec![constant.len()]
            } else {
                constant.shape.clone()
            };
            self.add(name, shape, &constant.floats())?;
        }
        Ok(())
    }

    fn of_recurrent(&mut self, node: &NodeProto) -> Result<(), TensorError> {
        let (_, order) = gates(operator(node));
        let get = |at: usize| Some(Rc::clone(self.constants.get(node.input.get(at)?)?));
        let (Some(w), Some(r), bias) = (get(1), get(2), get(3)) else {
            return Ok(());
        };
        let [directions, rows, width] = w.shape[..] else {
            return Ok(());
        };
        let hidden = rows / order.len();
        let fits = r.shape == [directions, rows, hidden]
            && hidden * order.len() == rows
            && directions <= 2;
        if !fits
            || bias
                .as_ref()
                .is_some_and(|bias| bias.shape != [directions, 2 * rows])
        {
            return Ok(());
        }
        self.used.extend(node.input.iter().skip(1).take(3).cloned());
        let module = module_name(node, usize::MAX).unwrap_or_else(|| operator(node).to_lowercase());
        for (direction, paths) in RECURRENT_PATHS.iter().enumerate().take(directions) {
            let part = |constant: &Constant, columns: usize, first: usize| {
                stacked(
                    constant,
                    order,
                    [direction, directions],
                    [hidden, columns, first],
                )
            };
            self.add(
                format!("{module}.{}", paths[0]),
                vec![rows, width],
                &part(&w, width, 0),
            )?;
            self.add(
                format!("{module}.{}", paths[1]),
                vec![rows, hidden],
                &part(&r, hidden, 0),
            )?;
            if let Some(bias) = &bias {
                self.add(
                    format!("{module}.{}", paths[2]),
                    vec![rows],
                    &part(bias, 1, 0),
                )?;
                self.add(
                    format!("{module}.{}", paths[3]),
                    vec![rows],
                    &part(bias, 1, rows),
                )?;
            }
        }
        Ok(())
    }

    /// Parameters outside of layers, such as position tables; unnamed ones are skipped.
    fn of_rest(&mut self, name: &str) -> Result<(), TensorError> {
        if self.used.contains(name) || !is_plain(name) {
            return Ok(());
        }
        let Some(constant) = self.constants.get(name).cloned() else {
            return Ok(());
        };
        if constant.is_integer() || constant.shape.is_empty() {
            return Ok(());
        }
        self.add(name.to_owned(), constant.shape.clone(), &constant.floats())
    }

    /// Weights that several nodes share are one tensor.
    fn add(&mut self, name: String, shape: Vec<usize>, values: &[f32]) -> Result<(), TensorError> {
        if self.names.insert(name.clone()) {
            self.tensors
                .push(NamedTensor::from_f32s(name, shape, values))?;
        }
        Ok(())
    }
}

/// Whether a name is that of a parameter, and not of a value that an exporter computed.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('/')
        && !name.contains(':')
        && name.parse::<u64>().is_err()
}
