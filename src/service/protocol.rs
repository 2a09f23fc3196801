//! Requests and responses as JSON: rows, and the tensors of the Open Inference Protocol, version 2.
//!
//! An input tensor stands for a column of the data: its first dimension is the number of items, and the others are the
//! shape of the column's values. Values are in units of the data; the transforms of the run are applied here.

#[cfg(test)]
mod tests;
mod unique;

use std::path::Path;

use runner_core::data::records::{Column, ColumnKind};
use runner_core::diagnostic::Reason;
use runner_core::predict::Prediction;
use runner_core::show::listed;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use crate::model::Model;

/// The inputs and outputs of a model.
#[derive(Debug)]
pub(super) struct Metadata {
    inputs: Vec<Column>,
    outputs: Vec<Output>,
}

/// An output tensor.
#[derive(Debug)]
struct Output {
    name: &'static str,
    datatype: &'static str,
    /// Without the dimension of items.
    shape: Vec<usize>,
}

/// A request for some outputs.
#[derive(Debug)]
pub(super) struct Call {
    id: Option<String>,
    /// The names of the requested outputs; empty for all.
    outputs: Vec<String>,
}

impl Metadata {
    fn input_names(&self) -> String {
        listed(self.inputs.iter().map(|column| &column.name))
    }

    /// Those of a model.
    pub fn of(model: &Model) -> Self {
        Self {
            inputs: model.incoming(Path::new("the request")).columns(),
            outputs: outputs(model),
        }
    }

    /// The answer to `GET /v2/models/NAME`.
    pub fn json(&self, name: &str) -> Value {
        let tensor = |name: &str, datatype: &str, shape: &[usize]| {
            let sizes = shape.iter().map(|size| json!(size));
            let shape: Vec<Value> = std::iter::once(json!(-1)).chain(sizes).collect();
            json!({ "name": name, "datatype": datatype, "shape": shape })
        };
        let inputs = self.inputs.iter();
        let inputs: Vec<Value> = inputs
            .map(|column| tensor(&column.name, datatype(&column.kind), &column.shape))
            .collect();
        let outputs = self.outputs.iter();
        let outputs: Vec<Value> = outputs
            .map(|output| tensor(output.name, output.datatype, &output.shape))
            .collect();
        json!({ "name": name, "versions": [], "platform": "runner", "inputs": inputs, "outputs": outputs })
    }
}

fn datatype(kind: &ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Bytes => "UINT8",
        ColumnKind::Numbers => "FP32",
        ColumnKind::Doubles => "FP64",
        ColumnKind::Whole => "INT64",
        ColumnKind::Categories { .. } | ColumnKind::Text => "BYTES",
    }
}

fn outputs(model: &Model) -> Vec<Output> {
    use runner_core::spec::task::TaskKind;
    let meaning = model.meaning();
    let shape = meaning.shape();
    let num_names = meaning.names().len();
    let output = |name, datatype, shape: &[usize]| Output {
        name,
        datatype,
        shape: shape.to_vec(),
    };
    let next_token = || {
        vec![
            output("token", "BYTES", &[]),
            output("id", "INT64", &[]),
            output("probability", "FP32", &[]),
        ]
    };
    match meaning.task() {
        TaskKind::Classification => vec![
            output("class", "BYTES", &[]),
            output("index", "INT64", &[]),
            output("probabilities", "FP32", &[num_names]),
        ],
        TaskKind::MultiLabel => vec![output("probabilities", "FP32", &[num_names])],
        TaskKind::Regression if meaning.has_deviations() => vec![
            output("values", "FP64", &shape),
            output("deviations", "FP64", &shape),
        ],
        TaskKind::Regression => vec![output("values", "FP64", &shape)],
        TaskKind::Segmentation => vec![output("classes", "INT64", &shape)],
        TaskKind::Autoencoding | TaskKind::Generation => vec![output("values", "FP32", &shape)],
        TaskKind::NextToken | TaskKind::MaskedToken => next_token(),
    }
}

/// Rows of a plain request: one object, a list of objects, or a list under `rows`.
pub(super) fn rows(body: &[u8]) -> Result<Vec<String>, Reason> {
    let parsed = unique::read(body)?;
    let rows = match parsed {
        Value::Array(rows) => rows,
        Value::Object(mut object) => match object.remove("rows") {
            Some(Value::Array(rows)) if object.is_empty() => rows,
            Some(Value::Array(_)) => {
                return Err(format!(
                    "unknown keys next to `rows`: {}",
                    object.keys().cloned().collect::<Vec<_>>().join(", ")
                )
                .into());
            }
            Some(rows) => {
                object.insert("rows".into(), rows);
                vec![Value::Object(object)]
            }
            None => vec![Value::Object(object)],
        },
        _ => {
            return Err(
                "expected a JSON object, a list of objects, or `rows` with such a list".into(),
            );
        }
    };
    for (at, row) in rows.iter().enumerate() {
        if !row.is_object() {
            return Err(format!("item {} is not a JSON object", at + 1).into());
        }
    }
    Ok(rows.iter().map(Value::to_string).collect())
}

impl Call {
    /// Reads a request; returns its rows as JSON objects.
    pub fn parse(body: &[u8], metadata: &Metadata) -> Result<(Self, Vec<String>), Reason> {
        let parsed = unique::read(body)?;
        let given = parsed.get("inputs").and_then(Value::as_array);
        let given = given.ok_or("`inputs` must be a list of tensors")?;
        if given.is_empty() {
            return Err(format!("`inputs` is empty; it takes {}", metadata.input_names()).into());
        }
        let mut rows: Vec<Map<String, Value>> = Vec::new();
        for (at, input) in given.iter().enumerate() {
            let name = input.get("name").and_then(Value::as_str);
            let name = name.ok_or_else(|| format!("input {} has no `name`", at + 1))?;
            let column = metadata.inputs.iter().find(|column| column.name == name);
            let column = column.ok_or_else(|| {
                format!(
                    "the model has no input `{name}`; its inputs are {}",
                    metadata.input_names()
                )
            })?;
            let values = tensor(input, column)?;
            if at == 0 {
                rows.resize_with(values.len(), Map::new);
            }
            if values.len() != rows.len() {
                return Err(format!(
                    "input `{name}` has {} items, and the inputs before it have {}",
                    values.len(),
                    rows.len()
                )
                .into());
            }
            for (row, value) in rows.iter_mut().zip(values) {
                if row.insert(name.to_owned(), value).is_some() {
                    return Err(format!("input `{name}` occurs twice").into());
                }
            }
        }
        let call = Self {
            id: parsed.get("id").and_then(Value::as_str).map(str::to_owned),
            outputs: requested(&parsed, metadata)?,
        };
        let rows = rows.into_iter().map(|row| Value::Object(row).to_string());
        Ok((call, rows.collect()))
    }

    /// The answer as JSON.
    pub fn answer(&self, name: &str, metadata: &Metadata, predictions: &[Prediction]) -> String {
        let outputs = metadata.outputs.iter();
        let wanted = outputs.filter(|output| {
            self.outputs.is_empty() || self.outputs.iter().any(|name| name == output.name)
        });
        let outputs = wanted.map(|output| {
            let mut shape = vec![predictions.len()];
            shape.extend(&output.shape);
            Tensor {
                name: output.name,
                datatype: output.datatype,
                shape,
                data: predictions
                    .iter()
                    .map(|prediction| data(prediction, output.name))
                    .collect(),
            }
        });
        text(&Answered {
            model_name: name,
            outputs: outputs.collect(),
            id: self.id.as_deref(),
        })
    }
}

/// Serializes: single-precision numbers in their shortest form, and `null` for non-finite numbers.
fn text(value: &impl Serialize) -> String {
    // Strings and numbers can always be serialized.
    serde_json::to_string(value).unwrap_or_default()
}

/// The plain answer as JSON.
pub(super) fn plain(predictions: &[Prediction]) -> String {
    #[derive(Serialize)]
    struct Plain<'a> {
        predictions: &'a [Prediction],
    }
    text(&Plain { predictions })
}

#[derive(Serialize)]
struct Answered<'a> {
    model_name: &'a str,
    outputs: Vec<Tensor<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
}

/// An output tensor with its values.
#[derive(Serialize)]
struct Tensor<'a> {
    name: &'static str,
    datatype: &'static str,
    shape: Vec<usize>,
    #[serde(serialize_with = "flat")]
    data: Vec<Data<'a>>,
}

/// The values of an item in an output.
enum Data<'a> {
    Text(&'a str),
    Integer(u64),
    Integers(&'a [u32]),
    Single(f32),
    Singles(&'a [f32]),
    Doubles(&'a [f64]),
    Nothing,
}

/// One list of the values of all items.
fn flat<S: Serializer>(data: &[Data<'_>], serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(None)?;
    for item in data {
        match item {
            Data::Text(text) => list.serialize_element(text)?,
            Data::Integer(number) => list.serialize_element(number)?,
            Data::Integers(all) => all.iter().try_for_each(|it| list.serialize_element(it))?,
            Data::Single(number) => list.serialize_element(number)?,
            Data::Singles(all) => all.iter().try_for_each(|it| list.serialize_element(it))?,
            Data::Doubles(all) => all.iter().try_for_each(|it| list.serialize_element(it))?,
            Data::Nothing => {}
        }
    }
    list.end()
}

/// The names of the requested outputs.
fn requested(parsed: &Value, metadata: &Metadata) -> Result<Vec<String>, Reason> {
    let Some(list) = parsed.get("outputs") else {
        return Ok(Vec::new());
    };
    let list = list.as_array().ok_or("`outputs` must be a list")?;
    let names = list.iter().map(|output| {
        let name = output.get("name").and_then(Value::as_str);
        let name = name.ok_or("an output has no `name`")?;
        if metadata.outputs.iter().any(|known| known.name == name) {
            return Ok(name.to_owned());
        }
        let known = metadata
            .outputs
            .iter()
            .map(|output| format!("`{}`", output.name));
        let known: Vec<String> = known.collect();
        Err(Reason(format!(
            "the model has no output `{name}`; its outputs are {}",
            known.join(", ")
        )))
    });
    names.collect()
}

/// The values of an input tensor, one per item.
fn tensor(input: &Value, column: &Column) -> Result<Vec<Value>, Reason> {
    let name = &column.name;
    let given = input.get("datatype").and_then(Value::as_str);
    let is_text = datatype(&column.kind) == "BYTES";
    // Categories may be numbers in the data.
    let fits = match given.ok_or_else(|| format!("input `{name}` has no `datatype`"))? {
        "BYTES" => is_text,
        "BOOL" | "UINT8" | "UINT16" | "UINT32" | "UINT64" | "INT8" | "INT16" | "INT32"
        | "INT64" | "FP16" | "BF16" | "FP32" | "FP64" => !matches!(column.kind, ColumnKind::Text),
        other => return Err(format!("input `{name}` has the unknown datatype `{other}`").into()),
    };
    if !fits {
        return Err(format!(
            "input `{name}` has the datatype `{}`, but the column needs `{}`",
            given.unwrap_or_default(),
            datatype(&column.kind)
        )
        .into());
    }
    let shape = input.get("shape").and_then(Value::as_array);
    let shape = shape.ok_or_else(|| format!("input `{name}` has no `shape`"))?;
    let sizes: Option<Vec<usize>> = shape
        .iter()
        .map(|size| size.as_u64().and_then(|size| usize::try_from(size).ok()))
        .collect();
    let sizes =
        sizes.ok_or_else(|| format!("the shape of input `{name}` is not a list of sizes"))?;
    let (num_items, rest) = sizes
        .split_first()
        .ok_or_else(|| format!("the shape of input `{name}` has no dimension of items"))?;
    // A column of scalars may be sent as `[N]` or `[N, 1]`.
    if rest != column.shape && !(column.shape.is_empty() && rest == [1]) {
        return Err(format!(
            "input `{name}` has items of shape {rest:?}, but the column has {:?}",
            column.shape
        )
        .into());
    }
    let data = input.get("data").and_then(Value::as_array);
    let data = data.ok_or_else(|| format!("input `{name}` has no list `data`"))?;
    let mut flat = Vec::new();
    if data.iter().any(Value::is_array) {
        if !nested_values(data, &sizes, &mut flat) {
            let message = format!(
                "the nested lists in `data` of input `{name}` do not have the shape {sizes:?}"
            );
            return Err(message.into());
        }
    } else {
        flat.clone_from(data);
    }
    let size: usize = column.shape.iter().product();
    if num_items.checked_mul(size) != Some(flat.len()) {
        return Err(format!(
            "input `{name}` has {} values in `data`, but its shape {sizes:?} needs {}",
            flat.len(),
            num_items.saturating_mul(size)
        )
        .into());
    }
    let kind = given.unwrap_or_default();
    if let Some((least, most)) = range(kind)
        && let Some(at) = flat
            .iter()
            .position(|value| !value.is_null() && !is_within(value, least, most))
    {
        return Err(format!(
            "input `{name}` has the datatype `{kind}`, but value {} of its `data` is {}, which is not an integer from {least} to {most}",
            at + 1,
            flat[at]
        )
        .into());
    }
    if column.shape.is_empty() {
        return Ok(flat);
    }
    Ok(flat
        .chunks(size.max(1))
        .map(|item| nested(item, &column.shape))
        .collect())
}

/// The least and the greatest integer of a datatype; none for other datatypes.
fn range(datatype: &str) -> Option<(i128, i128)> {
    Some(match datatype {
        "BOOL" => (0, 1),
        "UINT8" => (0, u8::MAX.into()),
        "UINT16" => (0, u16::MAX.into()),
        "UINT32" => (0, u32::MAX.into()),
        "UINT64" => (0, u64::MAX.into()),
        "INT8" => (i8::MIN.into(), i8::MAX.into()),
        "INT16" => (i16::MIN.into(), i16::MAX.into()),
        "INT32" => (i32::MIN.into(), i32::MAX.into()),
        "INT64" => (i64::MIN.into(), i64::MAX.into()),
        _ => return None,
    })
}

/// Whether a value is an integer of a range; 1.0 is one, and `true` is 1.
fn is_within(value: &Value, least: i128, most: i128) -> bool {
    let whole = |number: f64| (number.fract() == 0.0).then_some(number as i128);
    let integer = match value {
        Value::Bool(value) => Some(i128::from(*value)),
        Value::Number(number) => {
            let signed = number.as_i64().map(i128::from);
            let unsigned = || number.as_u64().map(i128::from);
            signed.or_else(unsigned).or_else(|| whole(number.as_f64()?))
        }
        _ => None,
    };
    integer.is_some_and(|integer| (least..=most).contains(&integer))
}

/// Adds the values of nested lists, row by row; false if they do not have the shape.
fn nested_values(data: &[Value], shape: &[usize], flat: &mut Vec<Value>) -> bool {
    let Some((first, rest)) = shape.split_first() else {
        return false;
    };
    data.len() == *first
        && data.iter().all(|item| match item {
            Value::Array(items) => nested_values(items, rest, flat),
            value => {
                flat.push(value.clone());
                rest.is_empty()
            }
        })
}

/// The values of an item as nested lists.
fn nested(values: &[Value], shape: &[usize]) -> Value {
    match shape {
        [] | [_] => Value::Array(values.to_vec()),
        [first, rest @ ..] => {
            let size = values.len() / (*first).max(1);
            Value::Array(
                values
                    .chunks(size.max(1))
                    .map(|part| nested(part, rest))
                    .collect(),
            )
        }
    }
}

/// The values of a prediction in an output.
fn data<'a>(prediction: &'a Prediction, name: &str) -> Data<'a> {
    match (prediction, name) {
        (Prediction::Class { class, .. }, "class") => Data::Text(class),
        (Prediction::Class { index, .. }, "index") => Data::Integer(*index as u64),
        (
            Prediction::Class { probabilities, .. } | Prediction::Labels { probabilities, .. },
            "probabilities",
        ) => Data::Singles(probabilities),
        (Prediction::Values { values, .. }, "values") => Data::Doubles(values),
        (Prediction::Values { deviations, .. }, "deviations") => Data::Doubles(deviations),
        (Prediction::Classes { classes, .. }, "classes") => Data::Integers(classes),
        (Prediction::Item { values, .. }, "values") => Data::Singles(values),
        (Prediction::NextToken { token, .. }, "token") => Data::Text(token),
        (Prediction::NextToken { id, .. }, "id") => Data::Integer(u64::from(*id)),
        (Prediction::NextToken { probability, .. }, "probability") => Data::Single(*probability),
        _ => Data::Nothing,
    }
}
