//! Networks without their transforms: raw arrays in, outputs of layers and gradients out.

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::GradientsParams;
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_runner::Model;
use burn_runner::data::{TargetPlan, Values};
use burn_runner::spec::model::layer::LayerKind;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use runner_network::batch;
use runner_network::leaves;
use runner_network::map_rank;
use runner_network::network::Network;
use runner_network::paths::Paths;
use runner_network::targets::Targets;
use runner_network::tensor::DynTensor;

use crate::border::{self, Array, Failure, compute, wrong};
use crate::models::model_of;

/// The items of a raw array, [batch, item shape]: numbers as 32-bit or 64-bit floats, tokens as 32-bit integers.
fn inputs(network: &Model, array: &Array) -> Result<TensorData, Failure> {
    let plan = network.plan();
    if plan.network.graph.is_some() {
        return Err(wrong(
            "the items are the nodes of a graph, which an array does not have",
            "predict the nodes of a split with `runner predict --split`",
        ));
    }
    let expected = &plan.network.items.dims;
    let may_be_shorter = network.is_of_running_text();
    let fits = match array.shape.split_first() {
        Some((_, [length])) if may_be_shorter => expected.len() == 1 && *length <= expected[0],
        Some((_, rest)) => rest == expected.as_slice(),
        None => false,
    };
    if !fits {
        let shape: Vec<String> = expected.iter().map(usize::to_string).collect();
        let message = format!(
            "the array has the shape {:?}, but the network takes items of shape {expected:?}",
            array.shape
        );
        let help = format!("use an array of shape (N, {})", shape.join(", "));
        return Err(wrong(message, &help));
    }
    if array.shape[0] == 0 || array.shape.contains(&0) {
        return Err(wrong(
            "the array has no items",
            "use an array with at least one item",
        ));
    }
    let Some(num) = plan
        .data
        .input
        .vocabulary
        .filter(|_| plan.data.input.parts.is_empty())
    else {
        return data(array);
    };
    let tokens = copied(array, i64::from_le_bytes);
    if let Some(token) = tokens
        .iter()
        .find(|token| !(0..num as i64).contains(*token))
    {
        let help = format!("use integers from 0 to {}", num - 1);
        return Err(wrong(format!("there is no token {token}"), &help));
    }
    let tokens: Vec<i32> = tokens.into_iter().map(|token| token as i32).collect();
    Ok(TensorData::new(tokens, array.shape.clone()))
}

/// The items of a raw array on a device. Those of named inputs are rows with the values of each, one after the other.
fn items(network: &Model, array: &Array, device: &Device) -> Result<DynTensor, Failure> {
    let data = inputs(network, array)?;
    let plan = &network.plan().data.input;
    if plan.parts.is_empty() {
        return Ok(DynTensor::from_data(data, device));
    }
    let rows: Vec<f32> = data.iter::<f32>().collect();
    let mut from = 0;
    for part in &plan.parts {
        let own = from..from + part.size();
        from = own.end;
        let last = part
            .vocabulary
            .map_or(f32::INFINITY, |num| (num - 1) as f32);
        let values = rows
            .chunks_exact(plan.shape[0])
            .flat_map(|row| &row[own.clone()]);
        let is_index = |value: &&f32| (0.0..=last).contains(*value) && value.fract() == 0.0;
        let mut wrong_ones = values.filter(|value| !is_index(value));
        if let (Some(num), Some(value)) = (part.vocabulary, wrong_ones.next()) {
            let message = format!("{value} is not an index of the input `{}`", part.name);
            return Err(wrong(
                message,
                &format!("use integers from 0 to {}", num - 1),
            ));
        }
    }
    let num = array.shape[0];
    Ok(batch::inputs(Values::Floats(rows), num, plan, device))
}

fn data(array: &Array) -> Result<TensorData, Failure> {
    let dtype = match array.dtype.as_str() {
        "float32" => DType::F32,
        "float64" => DType::F64,
        "int32" => DType::I32,
        "int64" => DType::I64,
        other => return Err(wrong(format!("arrays of `{other}` are not supported"), "")),
    };
    Ok(match dtype {
        DType::F32 => TensorData::new(copied(array, f32::from_le_bytes), array.shape.clone()),
        DType::F64 => TensorData::new(copied(array, f64::from_le_bytes), array.shape.clone()),
        DType::I32 => TensorData::new(copied(array, i32::from_le_bytes), array.shape.clone()),
        _ => TensorData::new(copied(array, i64::from_le_bytes), array.shape.clone()),
    })
}

fn copied<T, const N: usize>(array: &Array, read: fn([u8; N]) -> T) -> Vec<T> {
    let (values, _) = array.bytes().as_chunks::<N>();
    values.iter().map(|bytes| read(*bytes)).collect()
}

/// Numbers that are read back from a device.
enum Numbers {
    Single(Vec<f32>),
    Double(Vec<f64>),
}

fn read(data: TensorData) -> (Vec<usize>, Numbers) {
    let shape = data.shape().to_vec();
    let numbers = match data.dtype() {
        DType::F64 => Numbers::Double(data.iter::<f64>().collect()),
        _ => Numbers::Single(data.iter::<f32>().collect()),
    };
    (shape, numbers)
}

fn python(py: Python<'_>, (shape, numbers): (Vec<usize>, Numbers)) -> PyResult<Py<PyAny>> {
    let (dtype, block) = match numbers {
        Numbers::Single(numbers) => ("float32", border::numbers(py, &numbers)),
        Numbers::Double(numbers) => ("float64", border::numbers(py, &numbers)),
    };
    Ok((shape, dtype, block).into_pyobject(py)?.into_any().unbind())
}

/// `forward(model, array, names of layers) -> [(name, (shape, dtype, block))]`: the named outputs, and the network's
/// own without a name.
pub fn forward(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (capsule, array, names): (Bound<'_, PyAny>, Bound<'_, PyAny>, Vec<String>) =
        args.extract()?;
    let (model, array) = (model_of(&capsule)?, Array::of(&array)?);
    let found = compute(py, || {
        let graph = model.network().graph();
        let known: Vec<&str> = graph.layers().map(|(_, plan)| plan.name.as_str()).collect();
        if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
            let message = format!("the network has no layer `{name}`");
            return Err(wrong(message, &format!("its layers: {}", known.join(", "))));
        }
        let items = items(&model, &array, model.device())?;
        let mut found = Vec::new();
        let output = graph.outputs(items, |at, output| {
            if names.iter().any(|name| name == graph.name(at)) {
                found.push((graph.name(at).to_owned(), output.clone()));
            }
        });
        found.push((String::new(), output));
        let found = found.into_iter();
        Ok(found
            .map(|(name, output)| (name, read(output.into_data())))
            .collect::<Vec<_>>())
    })?;
    let found = found.into_iter();
    let found = found.map(|(name, output)| Ok((name, python(py, output)?)));
    let found = found.collect::<PyResult<Vec<_>>>()?;
    Ok(found.into_pyobject(py)?.into_any().unbind())
}

/// Tracks the gradients of every parameter, also of frozen layers.
struct Track;

impl ModuleMapper for Track {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let tensor = param.val();
        // A move to a device with autodiff keeps a tensor without it as it is.
        let tensor = if tensor.device().is_autodiff() {
            tensor
        } else {
            Tensor::from_inner(tensor)
        };
        Param::initialized(param.id, tensor.require_grad())
    }
}

fn targets(model: &Model, inputs: &DynTensor, array: &Array) -> Result<Targets, Failure> {
    let num = inputs.dims()[0];
    let target = &model.plan().data.target;
    if matches!(target, TargetPlan::None) {
        return Ok(Targets::Values(inputs.clone().flatten()));
    }
    let size = match target {
        TargetPlan::Class { .. } => 1,
        other => other.size(),
    };
    let values: usize = array.shape.iter().product();
    if values != num * size {
        let message = format!(
            "the targets have the shape {:?}, but {num} items need {size} values each",
            array.shape
        );
        return Err(wrong(message, "use an array with the targets of each item"));
    }
    let device = inputs.device();
    let mut given = array.clone();
    given.shape = vec![num, size];
    let data = data(&given)?;
    Ok(match target {
        TargetPlan::Class { num_classes } | TargetPlan::Classes { num_classes, .. } => {
            let outside = |class: i64| class < -1 || class >= *num_classes as i64;
            if let Some(class) = data.iter::<i64>().find(|class| outside(*class)) {
                let message = format!("the class {class} is unknown");
                let help = format!("classes are numbers from 0 to {}", num_classes - 1);
                return Err(wrong(message, &help));
            }
            Targets::Classes(Tensor::from_data(data, &device))
        }
        _ => Targets::Values(Tensor::from_data(data, &device)),
    })
}

/// `gradients(model, inputs, targets) -> (loss, gradient of the inputs or None, [(name, (shape, dtype, block))])`
pub fn gradients(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (capsule, x, y): (Bound<'_, PyAny>, Bound<'_, PyAny>, Bound<'_, PyAny>) = args.extract()?;
    let (model, x, y) = (model_of(&capsule)?, Array::of(&x)?, Array::of(&y)?);
    let (loss, of_inputs, of_parameters) = compute(py, || {
        let device = model.device().clone().autodiff();
        let network: Network = model.network().valid().fork(&device).map(&mut Track);
        let items = items(&model, &x, &device)?;
        let targets = targets(&model, &items, &y)?;
        let items = match items {
            other @ (DynTensor::Tokens(_) | DynTensor::Parts(_) | DynTensor::Nodes(_)) => other,
            numbers => map_rank!(numbers, tensor => tensor.require_grad()),
        };
        // A layer of dropout has no state that says that it is not trained.
        let outputs =
            network
                .graph()
                .outputs_by(items.clone(), |_, layer, plan, mut inputs| {
                    match (&plan.kind, inputs.pop()) {
                        (LayerKind::Dropout { .. }, Some(input)) => input,
                        (_, last) => {
                            inputs.extend(last);
                            layer.forward(plan, inputs)
                        }
                    }
                });
        let loss = network.losses(outputs, &targets).mean();
        let value = loss.clone().into_data().iter::<f64>().next();
        let all = loss.backward();
        let of_inputs = match &items {
            DynTensor::R1(tensor) => tensor.grad(&all).map(Tensor::into_data),
            DynTensor::R2(tensor) => tensor.grad(&all).map(Tensor::into_data),
            DynTensor::R3(tensor) => tensor.grad(&all).map(Tensor::into_data),
            DynTensor::R4(tensor) => tensor.grad(&all).map(Tensor::into_data),
            DynTensor::R5(tensor) => tensor.grad(&all).map(Tensor::into_data),
            DynTensor::Tokens(_) | DynTensor::Parts(_) | DynTensor::Nodes(_) => None,
        };
        let paths = Paths::new(model.plan());
        let gradients = GradientsParams::from_grads(all, &network);
        let mut found = Vec::new();
        leaves::each(&network, |leaf| {
            let gradient = leaf.gradient(&gradients);
            found.extend(gradient.map(|gradient| (paths.of(leaf.path), read(gradient))));
        });
        Ok((value.unwrap_or(f64::NAN), of_inputs.map(read), found))
    })?;
    let of_inputs = of_inputs.map(|gradient| python(py, gradient)).transpose()?;
    let each = of_parameters.into_iter();
    let each = each.map(|(name, gradient)| Ok((name, python(py, gradient)?)));
    let each = each.collect::<PyResult<Vec<_>>>()?;
    Ok((loss, of_inputs, each)
        .into_pyobject(py)?
        .into_any()
        .unbind())
}
