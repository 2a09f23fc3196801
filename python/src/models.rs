//! Trained networks: opened, their weights, and predictions.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use burn_runner::Model;
use burn_runner::data::encode::InputEncoder;
use burn_runner::data::incoming::{ArrayLayout, Element, Incoming, Piece};
use burn_runner::data::{DataError, TargetPlan};
use burn_runner::exchange::state::StateDict;
use burn_runner::exchange::tensors::Tensors;
use burn_runner::model::{Options, Weights, refusal};
use burn_runner::ops::export::{cast, export_pytorch_of, tensors};
use burn_runner::predict::Prediction;
use burn_runner::spec::section::Choice;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use runner_network::digest;
use serde_json::json;

use crate::border::{self, Array, Failure, compute, wrong};

const MODEL: &std::ffi::CStr = c"burn_runner.model";

/// A model that any number of threads use.
pub type Shared = Arc<Model>;

/// The model in a capsule.
pub fn model_of(capsule: &Bound<'_, PyAny>) -> PyResult<Shared> {
    border::kept(capsule, MODEL)
}

fn bad(error: &DataError) -> Failure {
    refusal(error).into()
}

/// `open_model(path, device, weights, trial) -> (model, json)`
pub fn open(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    type Given = (String, Option<String>, Option<String>, Option<String>);
    let (path, device, weights, trial): Given = args.extract()?;
    let (model, about) = compute(py, || {
        let device = device.map(|name| {
            name.parse()
                .map_err(|reason: burn_runner::diagnostic::Reason| {
                    wrong(reason.to_string(), "use a device of `runner devices`")
                })
        });
        let weights = weights.map(|name| {
            let mut all = Weights::ALL.into_iter();
            all.find(|weights| weights.name() == name).ok_or_else(|| {
                let help = "use `best`, `final`, `ema` or `initial`";
                wrong(format!("there are no weights `{name}`"), help)
            })
        });
        let options = Options {
            device: device.transpose()?,
            weights: weights.transpose()?,
            trial,
            max_unpacked: None,
        };
        let model = Model::open(path.as_ref(), &options)?.predicting()?;
        let about = about(&model);
        Ok((Arc::new(model), about.to_string()))
    })?;
    let model = border::keep(py, model, MODEL)?;
    Ok((model, about).into_pyobject(py)?.into_any().unbind())
}

fn about(model: &Model) -> serde_json::Value {
    let (plan, transforms, meaning) = (model.plan(), model.transforms(), model.meaning());
    let input = match &transforms.input {
        InputEncoder::Features { .. } => "features",
        InputEncoder::Array { .. } => "array",
        InputEncoder::Tokens { .. } => "tokens",
        InputEncoder::Text { .. } => "text",
        InputEncoder::Stream { .. } => "stream",
        InputEncoder::Indices { .. } => "tokens",
        InputEncoder::Inputs { .. } => "inputs",
    };
    let columns = model.incoming(Path::new("")).columns();
    let columns = columns.iter().map(
        |column| json!({ "name": column.name, "shape": column.shape, "kind": column.kind.show() }),
    );
    let layers = plan.network.layers.iter();
    let layers = layers.map(|layer| json!({ "name": layer.name, "shape": layer.shape }));
    let kind = model.incoming(Path::new("")).kind_of_run();
    let target = match &plan.data.target {
        TargetPlan::None => "none",
        TargetPlan::Class { .. } | TargetPlan::Classes { .. } => "classes",
        TargetPlan::Labels { .. } | TargetPlan::Values { .. } => "values",
    };
    json!({
        "experiment": plan.experiment,
        "run": plan.id,
        "folder": model.found().folder.0,
        "why": model.found().why,
        "weights": model.weights(),
        "device": plan.device.to_string(),
        "precision": plan.precision.name(),
        "task": plan.task.kind.name(),
        "input": input,
        "data_type": kind.map(|kind| kind.name()),
        "columns": columns.collect::<Vec<_>>(),
        "input_shape": plan.network.items.dims,
        "item_shape": plan.data.input.shape,
        "inputs": plan.data.input.parts,
        "target": target,
        "names": meaning.names(),
        "has_probabilities": meaning.has_probabilities(),
        "layers": layers.collect::<Vec<_>>(),
        "num_parameters": plan.network.num_parameters,
    })
}

/// `state_dict(model, "pytorch" or "burn") -> [(name, shape, dtype, block)]`
pub fn state_dict(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (capsule, names): (Bound<'_, PyAny>, String) = args.extract()?;
    let model = model_of(&capsule)?;
    let named: Tensors = compute(py, || {
        let failed = |e: String| wrong(e, "use `names=\"burn\"`");
        let burn = tensors(model.network().graph()).map_err(|e| failed(e.to_string()))?;
        let named = if names == "burn" {
            burn
        } else {
            let state = StateDict::of(&model.plan().network);
            state.to_torch(&burn).map_err(|e| failed(e.to_string()))?
        };
        // NumPy has no 16-bit brain floats.
        cast(named, burn_runner::exchange::tensors::Dtype::F32).map_err(|e| failed(e.to_string()))
    })?;
    let each = named.iter().map(|tensor| {
        let block = border::block(py, tensor.bytes());
        (tensor.name(), tensor.shape().to_vec(), block)
    });
    let each: Vec<_> = each.collect();
    Ok(each.into_pyobject(py)?.into_any().unbind())
}

/// `write_pytorch(model, folder)`: writes the network as source code of PyTorch into a new folder.
pub fn write_pytorch(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (capsule, folder): (Bound<'_, PyAny>, String) = args.extract()?;
    let model = model_of(&capsule)?;
    compute(py, || Ok(export_pytorch_of(&model, folder.as_ref())?))?;
    Ok(py.None())
}

/// `weights_digest(model) -> str`
pub fn weights_digest(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (capsule,): (Bound<'_, PyAny>,) = args.extract()?;
    let model = model_of(&capsule)?;
    let digest = compute(py, || Ok(digest::weights_digest(model.network())))?;
    Ok(digest.into_pyobject(py)?.into_any().unbind())
}

/// Predictions as arrays.
#[derive(Default)]
struct Predicted {
    kind: &'static str,
    num: usize,
    /// The shape of one item's values.
    shape: Vec<usize>,
    index: Vec<u32>,
    probabilities: Vec<f32>,
    values: Vec<f64>,
    deviations: Vec<f64>,
    texts: Vec<String>,
    ids: Vec<String>,
}

impl Predicted {
    fn add(&mut self, prediction: Prediction) {
        self.num += 1;
        match prediction {
            Prediction::Class {
                index,
                probabilities,
                ..
            } => {
                self.kind = "class";
                self.index.push(index as u32);
                self.shape = vec![probabilities.len()];
                self.probabilities.extend(probabilities);
            }
            Prediction::Labels { probabilities, .. } => {
                self.kind = "labels";
                self.shape = vec![probabilities.len()];
                self.probabilities.extend(probabilities);
            }
            Prediction::Values { values, deviations } => {
                self.kind = "values";
                self.shape = vec![values.len()];
                self.values.extend(values);
                self.deviations.extend(deviations);
            }
            Prediction::Classes { shape, classes } => {
                self.kind = "classes";
                self.shape = shape;
                self.index.extend(classes);
            }
            Prediction::Item { shape, values } => {
                self.kind = "item";
                self.shape = shape;
                self.values.extend(values.into_iter().map(f64::from));
            }
            Prediction::NextToken {
                token,
                id,
                probability,
                ..
            } => {
                self.kind = "token";
                self.index.push(id);
                self.probabilities.push(probability);
                self.texts.push(token);
            }
        }
    }

    fn piece(&mut self, model: &Model, piece: &Piece, batch_size: usize) {
        self.ids.extend(piece.ids.iter().cloned());
        for (numbers, num) in model.activated_piece(piece, batch_size) {
            for prediction in model.decided(&numbers, num) {
                self.add(prediction);
            }
        }
    }

    fn python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let all = PyDict::new(py);
        all.set_item("kind", self.kind)?;
        all.set_item("num", self.num)?;
        all.set_item("shape", self.shape)?;
        all.set_item("index", border::numbers(py, &self.index))?;
        all.set_item("probabilities", border::numbers(py, &self.probabilities))?;
        all.set_item("values", border::numbers(py, &self.values))?;
        all.set_item("deviations", border::numbers(py, &self.deviations))?;
        all.set_item("texts", self.texts)?;
        all.set_item("ids", self.ids)?;
        Ok(all.into_any().unbind())
    }
}

fn layout(dtype: &str) -> Result<ArrayLayout, Failure> {
    let element = match dtype {
        "bool" => Element::Bool,
        "uint8" => Element::Unsigned(1),
        "uint16" => Element::Unsigned(2),
        "uint32" => Element::Unsigned(4),
        "uint64" => Element::Unsigned(8),
        "int8" => Element::Signed(1),
        "int16" => Element::Signed(2),
        "int32" => Element::Signed(4),
        "int64" => Element::Signed(8),
        "float16" => Element::Float(2),
        "float32" => Element::Float(4),
        "float64" => Element::Float(8),
        other => {
            let help = "convert it, for example with `x.astype(\"float32\")`";
            return Err(wrong(
                format!("arrays of `{other}` are not supported"),
                help,
            ));
        }
    };
    Ok(ArrayLayout {
        element,
        big_endian: false,
    })
}

/// Predicts the items of an array.
fn of_array(model: &Model, array: &Array, batch_size: usize) -> Result<Predicted, Failure> {
    let mut predicted = Predicted::default();
    let incoming = Incoming {
        shown: Some("the array"),
        ..model.incoming(Path::new("the array"))
    };
    let read = incoming.read_array(
        layout(&array.dtype)?,
        &array.shape,
        array.bytes(),
        &mut |piece| {
            predicted.piece(model, &piece, batch_size);
            ControlFlow::Continue(())
        },
    );
    read.map_err(|e| bad(&e))?;
    // Their numbers follow from their order.
    predicted.ids.clear();
    Ok(predicted)
}

/// `predict_array(model, array, batch size) -> dict`
pub fn predict_array(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (capsule, array, size): (Bound<'_, PyAny>, Bound<'_, PyAny>, usize) = args.extract()?;
    let (model, array) = (model_of(&capsule)?, Array::of(&array)?);
    compute(py, || of_array(&model, &array, size))?.python(py)
}

/// `predict_rows(model, [JSON object], batch size) -> dict`
pub fn predict_rows(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (capsule, rows, size): (Bound<'_, PyAny>, Vec<String>, usize) = args.extract()?;
    let model = model_of(&capsule)?;
    let predicted = compute(py, || {
        let mut predicted = Predicted::default();
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let piece = model.incoming(Path::new("the data")).read_objects(&rows);
        predicted.piece(&model, &piece.map_err(|e| bad(&e))?, size);
        Ok(predicted)
    })?;
    predicted.python(py)
}

/// `predict_path(model, path, batch size, skip bad items) -> dict`
pub fn predict_path(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let (capsule, path, size, skips): (Bound<'_, PyAny>, String, usize, bool) = args.extract()?;
    let model = model_of(&capsule)?;
    let predicted = compute(py, || {
        let mut predicted = Predicted::default();
        let incoming = Incoming {
            skips_bad: skips,
            ..model.incoming(path.as_ref())
        };
        let read = incoming.read(&mut |piece| {
            predicted.piece(&model, &piece, size);
            ControlFlow::Continue(())
        });
        read.map_err(|e| bad(&e))?;
        Ok(predicted)
    })?;
    predicted.python(py)
}

/// `time_predictions(model, array, batch size, repeats) -> seconds`: the fastest pass over an array without Python, for
/// measurements.
pub fn time_predictions(py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    type Given<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, usize, usize);
    let (capsule, array, size, repeats): Given<'_> = args.extract()?;
    let (model, array) = (model_of(&capsule)?, Array::of(&array)?);
    let seconds = compute(py, || {
        let mut fastest = f64::INFINITY;
        for _ in 0..repeats {
            let started = Instant::now();
            std::hint::black_box(of_array(&model, &array, size)?);
            fastest = fastest.min(started.elapsed().as_secs_f64());
        }
        Ok(fastest)
    })?;
    Ok(seconds.into_pyobject(py)?.into_any().unbind())
}
