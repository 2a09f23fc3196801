//! An example input of a network with its output, to compare other programs with.
//!
//! If a run's data consists of rows or texts, the example starts from such rows, generated from the transforms; the
//! run's own data is not needed.

use std::path::Path;

use burn::tensor::{Device, TensorData};
use serde_json::{Map, Value, json};

use super::ExportError;
use super::tensors::named;
use crate::model::Model;
use runner_core::check::network::{Network, Shape};
use runner_core::data::Transforms;
use runner_core::data::encode::{Form, InputEncoder, Scaling};
use runner_core::data::records::ColumnKind;
use runner_core::spec::data::Format;
use runner_exchange::state::StateDict;
use runner_exchange::tensors::{NamedTensor, Tensors};
use runner_exchange::write;
use runner_network::batch;
use runner_network::graph::Graph;
use runner_network::tensor::DynTensor;

/// The number of items: more than one, so that mixing up the batch is detected.
const BATCH: usize = 3;

/// Items with the network's outputs.
#[derive(Debug)]
pub struct Example {
    /// The rows of data that the input was computed from.
    pub rows: Option<Value>,
    /// Each named input, or the only one, which has no name.
    inputs: Vec<(Option<String>, TensorData)>,
    output: TensorData,
}

impl Example {
    /// The example of a network: numbers between -2 and 2, or consecutive tokens. If the output for these is not
    /// finite, such as roots of negative numbers, numbers between 0 and 2.
    pub fn of(network: &Network, graph: &Graph, device: &Device) -> Self {
        let of_numbers = |number: fn(f32) -> f32| {
            let inputs: Vec<TensorData> = match network.parts.as_slice() {
                [] => vec![example_of(&network.items, number)],
                parts => (parts.iter())
                    .map(|part| example_of(&part.shape, number))
                    .collect(),
            };
            let put = |data: &TensorData| DynTensor::from_data(data.clone(), device);
            let items = inputs.iter().map(put).collect();
            let output = graph.forward(DynTensor::of_parts(items, !network.parts.is_empty()));
            Self {
                rows: None,
                inputs: names(network).into_iter().zip(inputs).collect(),
                output: output.into_data(),
            }
        };
        let example = of_numbers(|number| number);
        if example.is_finite() {
            example
        } else {
            of_numbers(f32::abs)
        }
    }

    fn is_finite(&self) -> bool {
        self.output.iter::<f64>().all(f64::is_finite)
    }

    /// The example of a run, starting from rows if its data has rows.
    pub fn of_model(model: &Model) -> Self {
        let (network, graph) = (&model.plan().network, model.network().graph());
        let from_rows = || {
            let files = model.plan().data.files();
            let has_lists = files
                .is_some_and(|files| matches!(files.format, Format::JsonLines | Format::Parquet));
            let rows = rows(model.transforms(), has_lists)?;
            let texts: Vec<String> = rows.iter().map(|(object, _)| object.to_string()).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let incoming = model.incoming(Path::new("example"));
            let piece = incoming.read_objects(&texts).ok()?;
            let num = piece.split.num_items();
            let places: Vec<u32> = (0..num as u32).collect();
            let served = model.served(&piece.split, &places);
            let plan = &model.plan().data.input;
            let input = batch::inputs(served.values, num, plan, model.device());
            let output = graph.forward(input.clone()).into_data();
            let shown = rows.into_iter().map(|(_, shown)| shown).collect();
            Some(Self {
                rows: Some(Value::Array(shown)),
                inputs: names(network)
                    .into_iter()
                    .zip(input.into_parts().into_iter().map(DynTensor::into_data))
                    .collect(),
                output,
            })
        };
        from_rows().unwrap_or_else(|| Self::of(network, graph, model.device()))
    }

    /// `{"input": …, "output": …}` as nested lists, with `input_<name>` for each named input.
    ///
    /// # Errors
    /// If the network's output contains infinity or NaN.
    pub fn to_json(&self) -> Result<Vec<u8>, ExportError> {
        if !self.is_finite() {
            return Err(ExportError::Example);
        }
        let mut example = Tensors::new();
        for (name, input) in &self.inputs {
            let name = match name {
                Some(name) => format!("input_{name}"),
                None => "input".to_owned(),
            };
            example.push(if input.dtype().is_int() {
                let shape = input.shape().to_vec();
                let tokens: Vec<i64> = input.iter::<i64>().collect();
                NamedTensor::from_i64s(name, shape, &tokens)
            } else {
                named(name, input.clone())?
            })?;
        }
        example.push(named("output".into(), self.output.clone())?)?;
        let mut json = Vec::new();
        write::flat(&example, &mut json)?;
        if let Some(rows) = &self.rows {
            let rest = json.split_off(1);
            json.extend_from_slice(format!("\n\"rows\":{rows},").as_bytes());
            json.extend(rest);
        }
        Ok(json)
    }
}

/// The name of each input in Python; a single one has none.
fn names(network: &Network) -> Vec<Option<String>> {
    match network.parts.as_slice() {
        [] => vec![None],
        _ => StateDict::of(network)
            .inputs
            .into_iter()
            .map(Some)
            .collect(),
    }
}

/// Numbers between -2 and 2, or consecutive tokens.
fn example_of(shape: &Shape, number: fn(f32) -> f32) -> TensorData {
    let dims = [&[BATCH], shape.dims.as_slice()].concat();
    let places = 0..dims.iter().product::<usize>();
    match shape.vocabulary {
        Some(vocabulary) => {
            let tokens = places.map(|at| (at % vocabulary) as i64);
            TensorData::new(tokens.collect::<Vec<i64>>(), dims)
        }
        None => {
            let values = places.map(|at| number((2.0 * (1.0 + 0.7 * at as f64).sin()) as f32));
            TensorData::new(values.collect::<Vec<f32>>(), dims)
        }
    }
}

/// Rows as JSON objects, each with the input of `encode` in the exported file; `None` if the data has no rows, or rows
/// with arrays in files that have no lists.
fn rows(transforms: &Transforms, has_lists: bool) -> Option<Vec<(Value, Value)>> {
    let is_of_rows = match &transforms.input {
        InputEncoder::Features { window, .. } => window.is_none(),
        InputEncoder::Indices { .. } | InputEncoder::Stream { .. } => false,
        _ => true,
    };
    let is_list = |input: &InputEncoder| {
        matches!(
            input,
            InputEncoder::Tokens { .. } | InputEncoder::Array { .. }
        )
    };
    let row = |row: usize| {
        let mut object = Map::new();
        for input in transforms.input.branches() {
            if is_list(input) && !has_lists {
                return None;
            }
            add_cells(&mut object, transforms, input, row)?;
        }
        let shown = match &transforms.input {
            InputEncoder::Features { .. } | InputEncoder::Inputs { .. } => {
                Value::Object(object.clone())
            }
            // `encode` takes the texts, tokens or arrays themselves.
            _ => object.values().next()?.clone(),
        };
        Some((Value::Object(object), shown))
    };
    (0..BATCH)
        .filter(|_| is_of_rows)
        .map(row)
        .collect::<Option<Vec<_>>>()
        .filter(|rows| !rows.is_empty())
}

/// Adds the cells of a row that an input is made of.
fn add_cells(
    object: &mut Map<String, Value>,
    transforms: &Transforms,
    input: &InputEncoder,
    row: usize,
) -> Option<()> {
    let names = |column: usize| match &transforms.columns.get(column)?.kind {
        ColumnKind::Categories { names } => Some(names.as_slice()),
        _ => Some(&[] as &[String]),
    };
    let category = |names: &[String], at: usize| Some(json!(names.get(at % names.len().max(1))?));
    match input {
        InputEncoder::Features { features, .. } => {
            for (at, feature) in features.iter().enumerate() {
                let value = cell(&feature.form, names(feature.column)?, row + at)?;
                object.insert(feature.name.clone(), value);
            }
        }
        InputEncoder::Indices { columns } => {
            for (at, of) in columns.iter().enumerate() {
                let value = match names(of.column)? {
                    [] => json!((row + at) % (of.num - 1)),
                    names => category(names, row + at)?,
                };
                object.insert(of.name.clone(), value);
            }
        }
        InputEncoder::Text {
            column, tokenizer, ..
        } => {
            let text = match tokenizer.tokens.len() {
                0 => {
                    let vocabulary = tokenizer.vocabulary() as i32;
                    let usual = (0..vocabulary).filter(|token| tokenizer.is_text(*token));
                    let some: Vec<i32> = usual.skip(300 + row).take(5 + row).collect();
                    tokenizer.decode(&some)
                }
                _ => {
                    let words = tokenizer.tokens.iter().skip(row).take(5 + row);
                    words.cloned().collect::<Vec<_>>().join(" ")
                }
            };
            object.insert(transforms.columns.get(*column)?.name.clone(), json!(text));
        }
        InputEncoder::Tokens {
            column,
            shape,
            vocabulary,
            shift,
        } => {
            let num = vocabulary.checked_sub(*shift as usize)?.max(1);
            // Shorter lists, if the data has some.
            let shape = match shape.as_slice() {
                [length] if *shift > 0 => vec![(2 + row).min(*length)],
                _ => shape.clone(),
            };
            let tokens = nested(&shape, &|at| json!((at * 7 + row) % num))?;
            object.insert(transforms.columns.get(*column)?.name.clone(), tokens);
        }
        InputEncoder::Array {
            column,
            shape,
            scaling,
            ..
        } => {
            let column = transforms.columns.get(*column)?;
            // Images are files.
            if column.kind == ColumnKind::Bytes {
                return None;
            }
            let number = |at: usize| near(scaling.get(at).or(scaling.first()), row + at);
            let array = nested(shape, &number)?;
            object.insert(column.name.clone(), array);
        }
        _ => return None,
    }
    Some(())
}

/// Nested lists of a shape; `None` if they are too long for an example.
fn nested(shape: &[usize], value: &dyn Fn(usize) -> Value) -> Option<Value> {
    const MOST: usize = 1024;
    let num: usize = shape.iter().product();
    if num > MOST {
        return None;
    }
    let mut lists: Vec<Value> = (0..num).map(value).collect();
    for size in shape.iter().rev() {
        lists = lists
            .chunks((*size).max(1))
            .map(|list| json!(list))
            .collect();
    }
    lists.pop()
}

/// A number near the middle of those with a scaling.
fn near(scaling: Option<&Scaling>, number: usize) -> Value {
    let wave = (1.0 + 0.7 * number as f64).sin();
    let value = match scaling {
        Some(Scaling { shift, factor }) if *factor != 0.0 => shift + wave / factor,
        Some(Scaling { shift, .. }) => *shift,
        None => wave,
    };
    json!(value as f32)
}

/// A value of a column: near its middle, or one of its categories.
fn cell(form: &Form, names: &[String], number: usize) -> Option<Value> {
    match form {
        Form::Numbers { fill, scaling, .. } => {
            let value = |at: usize| near(scaling.get(at).or(scaling.first()), number + at);
            match fill.len() {
                1 => Some(value(0)),
                several => Some((0..several).map(value).collect()),
            }
        }
        Form::OneHot { .. } | Form::Ordinal { .. } => {
            Some(json!(names.get(number % names.len().max(1))?))
        }
    }
}
