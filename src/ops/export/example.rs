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
use runner_core::check::network::Network;
use runner_core::data::Transforms;
use runner_core::data::encode::{Form, InputEncoder, Scaling};
use runner_core::data::records::ColumnKind;
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
    input: TensorData,
    output: TensorData,
}

impl Example {
    /// The example of a network: numbers between -2 and 2, or consecutive tokens.
    pub fn of(network: &Network, graph: &Graph, device: &Device) -> Self {
        let shape = [&[BATCH], network.items.dims.as_slice()].concat();
        let places = 0..shape.iter().product::<usize>();
        let input = match network.items.vocabulary {
            Some(vocabulary) => {
                let tokens = places.map(|at| (at % vocabulary) as i64);
                TensorData::new(tokens.collect::<Vec<i64>>(), shape)
            }
            None => {
                let values = places.map(|at| (2.0 * (1.0 + 0.7 * at as f64).sin()) as f32);
                TensorData::new(values.collect::<Vec<f32>>(), shape)
            }
        };
        let output = graph.forward(DynTensor::from_data(input.clone(), device));
        Self {
            rows: None,
            input,
            output: output.into_data(),
        }
    }

    /// The example of a run, starting from rows if its data has rows.
    pub fn of_model(model: &Model) -> Self {
        let (network, graph) = (&model.plan().network, model.network().graph());
        let from_rows = || {
            let rows = rows(model.transforms())?;
            let texts: Vec<String> = rows.iter().map(|(object, _)| object.to_string()).collect();
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let incoming = model.incoming(Path::new("example"));
            let piece = incoming.read_objects(&texts).ok()?;
            let num = piece.split.num_items();
            let places: Vec<u32> = (0..num as u32).collect();
            let served = piece.split.serve(&places, None);
            let input = batch::inputs(served.values, num, &network.items.dims, model.device());
            let output = graph.forward(input.clone()).into_data();
            let shown = rows.into_iter().map(|(_, shown)| shown).collect();
            Some(Self {
                rows: Some(Value::Array(shown)),
                input: input.into_data(),
                output,
            })
        };
        from_rows().unwrap_or_else(|| Self::of(network, graph, model.device()))
    }

    /// `{"input": …, "output": …}` as nested lists.
    ///
    /// # Errors
    /// If the network's output contains infinity or NaN.
    pub fn to_json(&self) -> Result<Vec<u8>, ExportError> {
        let input = self.input.clone();
        let input = if input.dtype().is_int() {
            let shape = input.shape().to_vec();
            let tokens: Vec<i64> = input.iter::<i64>().collect();
            NamedTensor::from_i64s("input", shape, &tokens)
        } else {
            named("input".into(), input)?
        };
        let mut example = Tensors::new();
        example.push(input)?;
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

/// Rows as JSON objects, each with the input of `encode` in the exported file; `None` if the data has no rows.
fn rows(transforms: &Transforms) -> Option<Vec<(Value, Value)>> {
    let rows = 0..BATCH;
    match &transforms.input {
        InputEncoder::Features {
            features,
            window: None,
            ..
        } => rows
            .map(|row| {
                let mut object = Map::new();
                for (at, feature) in features.iter().enumerate() {
                    let names: &[String] = match &transforms.columns.get(feature.column)?.kind {
                        ColumnKind::Categories { names } => names,
                        _ => &[],
                    };
                    let value = cell(&feature.form, names, row + at)?;
                    object.insert(feature.name.clone(), value);
                }
                let object = Value::Object(object);
                Some((object.clone(), object))
            })
            .collect(),
        InputEncoder::Text {
            column, tokenizer, ..
        } => rows
            .map(|row| {
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
                let name = &transforms.columns.get(*column)?.name;
                Some((json!({ name: text }), json!(text)))
            })
            .collect(),
        _ => None,
    }
}

/// A value of a column: near its middle, or one of its categories.
fn cell(form: &Form, names: &[String], number: usize) -> Option<Value> {
    match form {
        Form::Numbers { fill, scaling, .. } => {
            let value = |at: usize| {
                let Scaling { shift, factor } = *scaling.get(at).or(scaling.first())?;
                let wave = (1.0 + 0.7 * (number + at) as f64).sin();
                let value = if factor == 0.0 {
                    shift
                } else {
                    shift + wave / factor
                };
                Some(json!(value as f32))
            };
            match fill.len() {
                1 => value(0),
                several => (0..several)
                    .map(value)
                    .collect::<Option<Vec<_>>>()
                    .map(Value::Array),
            }
        }
        Form::OneHot { .. } | Form::Ordinal { .. } => {
            Some(json!(names.get(number % names.len().max(1))?))
        }
    }
}
