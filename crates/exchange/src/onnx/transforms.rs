//! The transforms of a run's data as operators: from data to the network's input, and from its output to probabilities,
//! names and units.

use super::lacking::{Lacking, unless_lacking};
use super::messages::tensor_proto::DataType;
use super::nonlinear::undone;
use super::{Attribute, Element, Graph, INPUT, OUTPUT};
use crate::marks::Marks;
use runner_core::data::Transforms;
use runner_core::data::encode::{
    Feature, Form, Indexed, InputEncoder, Nonlinear, Scaling, TargetEncoder, broadcast,
};
use runner_core::data::records::ColumnKind;

const CLASS: &str = "class";
const PROBABILITIES: &str = "probabilities";
const DEVIATION: &str = "deviation";
/// The names of outputs.
const OUTPUTS: [&str; 4] = [CLASS, PROBABILITIES, OUTPUT, DEVIATION];

/// The output of a graph for an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A probability for each class, of which one is correct.
    Classes,
    /// A probability for each token, at each position.
    Tokens,
    /// A probability for each label.
    Labels,
    /// Numbers in the scale that the network was trained in.
    Numbers,
    /// Rates of counts: the exponential of the output, or its softplus.
    Rates {
        /// Whether the network outputs logarithms.
        is_log: bool,
    },
    /// For each number a mean, and all variances before softplus after all means.
    Gaussian,
}

/// The operators from untransformed data to items.
pub struct Encoded {
    /// The name of the network's input, or of each named input.
    pub items: Vec<String>,
    /// Whether each item lacks a value that it needs, \[batch, 1\], if that is possible.
    pub lacking: Option<String>,
}

/// Adds inputs for untransformed data, and the operators that convert it to items.
///
/// # Errors
/// If there are no operators for it, with the reason.
pub fn encode(
    graph: &mut Graph,
    transforms: &Transforms,
    marks: Marks<'_>,
) -> Result<Encoded, String> {
    graph.begin("/encode");
    let mut lacking = Lacking::default();
    let mut items = Vec::new();
    match &transforms.input {
        InputEncoder::Inputs { inputs } => {
            for input in inputs {
                // An array is a value of its column.
                let first = input.encoder.columns().first().copied();
                let column = first.and_then(|at| transforms.columns.get(at));
                let name = column.map_or(INPUT, |column| &column.name);
                let source = Source { transforms, marks };
                items.push(one(graph, source, &input.encoder, name, &mut lacking)?);
            }
        }
        input => {
            let source = Source { transforms, marks };
            items.push(one(graph, source, input, INPUT, &mut lacking)?);
        }
    }
    let lacking = lacking.joined(graph);
    Ok(Encoded { items, lacking })
}

/// The data that operators are added for.
#[derive(Clone, Copy)]
struct Source<'a> {
    transforms: &'a Transforms,
    marks: Marks<'a>,
}

/// The output of a network.
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// Its name.
    pub output: &'a str,
    /// Its sizes for an item; of the targets, where values are converted to their units.
    pub shape: &'a [usize],
    /// Whether each item lacks a value that it needs, if that is possible.
    pub lacking: Option<&'a str>,
}

fn refuse_output(name: &str) -> Result<(), String> {
    if OUTPUTS.contains(&name) {
        return Err(format!(
            "a column has the name `{name}`, like an output of the graph"
        ));
    }
    Ok(())
}

/// The operators of one input; `name` is that of its array.
fn one(
    graph: &mut Graph,
    source: Source<'_>,
    input: &InputEncoder,
    name: &str,
    lacking: &mut Lacking,
) -> Result<String, String> {
    let Source { transforms, marks } = source;
    match input {
        InputEncoder::Features {
            features,
            normalize,
            window: None,
        } => {
            let mut parts = Vec::with_capacity(features.len());
            for feature in features {
                refuse_output(&feature.name)?;
                parts.push(column(graph, source, feature, lacking));
            }
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            let items = graph.node("Concat", &parts, &[Attribute::Int("axis", 1)]);
            Ok(if *normalize {
                unit_length(graph, &items, 1)
            } else {
                items
            })
        }
        InputEncoder::Array {
            column,
            shape,
            scaling,
            axis,
            normalize,
            ..
        } => {
            refuse_output(name)?;
            graph.input(name, Element::F32, shape);
            let column = transforms.columns.get(*column);
            let missing = column.map_or_else(Vec::new, |column| marks.elements(&column.name));
            let is_missing = missing_elements(graph, name, &missing);
            if column.is_some_and(|column| marks.is_needed(&column.name)) {
                lacking.add(graph, &is_missing, shape);
            }
            let sizes = broadcast(shape, scaling, *axis);
            let items = array(graph, name, &is_missing, &sizes, scaling);
            Ok(if *normalize {
                unit_length(graph, &items, shape.len())
            } else {
                items
            })
        }
        InputEncoder::Tokens { shape, shift, .. } => {
            refuse_output(name)?;
            graph.input(name, Element::I64, shape);
            let shift = graph.integers(&[i64::from(*shift)]);
            Ok(graph.node("Add", &[name, &shift], &[]))
        }
        InputEncoder::Indices { columns } => {
            let mut parts = Vec::with_capacity(columns.len());
            for of in columns {
                refuse_output(&of.name)?;
                parts.push(index(graph, source, of, lacking));
            }
            let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
            Ok(graph.node("Concat", &parts, &[Attribute::Int("axis", 1)]))
        }
        InputEncoder::Inputs { .. } => Err("an input contains inputs".into()),
        InputEncoder::Features { .. } => Err("items are windows of rows".into()),
        InputEncoder::Text { .. } | InputEncoder::Stream { .. } => {
            Err("texts are tokenized, and ONNX has no operator for that".into())
        }
    }
}

/// A column of rows, [batch, width].
fn column(
    graph: &mut Graph,
    source: Source<'_>,
    feature: &Feature,
    lacking: &mut Lacking,
) -> String {
    let Source { transforms, marks } = source;
    let is_needed = marks.is_needed(&feature.name);
    let names: &[String] = match transforms.columns.get(feature.column).map(|c| &c.kind) {
        Some(ColumnKind::Categories { names }) => names,
        _ => &[],
    };
    let name = feature.name.as_str();
    match &feature.form {
        Form::Numbers {
            fill,
            clip,
            scaling,
        } => {
            graph.input(name, Element::F32, &[fill.len()]);
            let mut value = cast(graph, name, DataType::Double);
            let mut is_missing = graph.node("IsNaN", &[&value], &[]);
            // Inputs are 32-bit floats.
            for mark in marks.numbers(name) {
                let mark = doubles(graph, &[f64::from(mark as f32)]);
                let is_mark = graph.node("Equal", &[&value, &mark], &[]);
                is_missing = graph.node("Or", &[&is_missing, &is_mark], &[]);
            }
            if is_needed {
                lacking.add(graph, &is_missing, &[fill.len()]);
            }
            let fill = doubles(graph, fill);
            value = graph.node("Where", &[&is_missing, &fill, &value], &[]);
            if let Some([low, high]) = clip {
                let (low, high) = (doubles(graph, &[*low]), doubles(graph, &[*high]));
                value = graph.node("Max", &[&value, &low], &[]);
                value = graph.node("Min", &[&value, &high], &[]);
            }
            let shifts = doubles(graph, &each(scaling, |scaling| scaling.shift));
            let factors = doubles(graph, &each(scaling, |scaling| scaling.factor));
            value = graph.node("Sub", &[&value, &shifts], &[]);
            value = graph.node("Mul", &[&value, &factors], &[]);
            cast(graph, &value, DataType::Float)
        }
        Form::OneHot {
            places,
            width,
            fill,
        } => {
            graph.input(name, Element::Text, &[1]);
            let place = |place: Option<usize>| place.map_or(-1, |place| place as i64);
            let keys = keys(names, marks, name);
            if is_needed {
                lacking.add_texts(graph, name, &keys[names.len()..]);
            }
            let fills = vec![place(*fill); keys.len() - names.len()];
            let all = places.iter().map(|at| place(*at)).chain(fills);
            let settings = [
                Attribute::Texts("keys_strings", keys),
                Attribute::Ints("values_int64s", all.collect()),
                Attribute::Int("default_int64", -1),
            ];
            let place = graph.node("LabelEncoder", &[name], &settings);
            let places: Vec<i64> = (0..*width as i64).collect();
            let places = graph.integers(&places);
            let is_it = graph.node("Equal", &[&place, &places], &[]);
            cast(graph, &is_it, DataType::Float)
        }
        Form::Ordinal {
            numbers,
            fill,
            scaling,
        } => {
            graph.input(name, Element::Text, &[1]);
            let scaled = |number: f64| ((number - scaling.shift) * scaling.factor) as f32;
            let keys = keys(names, marks, name);
            if is_needed {
                lacking.add_texts(graph, name, &keys[names.len()..]);
            }
            let fills = vec![*fill; keys.len() - names.len()];
            let all = numbers.iter().chain(&fills).map(|number| scaled(*number));
            let settings = [
                Attribute::Texts("keys_strings", keys),
                Attribute::Floats("values_floats", all.collect()),
                Attribute::Float("default_float", f64::NAN),
            ];
            let number = graph.node("LabelEncoder", &[name], &settings);
            // The run refuses unknown categories.
            let is_unknown = graph.node("IsNaN", &[&number], &[]);
            lacking.add(graph, &is_unknown, &[1]);
            number
        }
    }
}

/// The index of a category, [batch, 1].
fn index(graph: &mut Graph, source: Source<'_>, of: &Indexed, lacking: &mut Lacking) -> String {
    let Source { transforms, marks } = source;
    let is_needed = marks.is_needed(&of.name);
    let Some(ColumnKind::Categories { names }) = transforms.columns.get(of.column).map(|c| &c.kind)
    else {
        graph.input(&of.name, Element::I64, &[1]);
        let first = graph.integers(&[of.first as i64 + 1]);
        let mut value = graph.node("Add", &[&of.name, &first], &[]);
        let fill = graph.integers(&[(of.first + of.fill) as i64]);
        let numbers = marks.numbers(&of.name).into_iter();
        for mark in numbers.filter(|mark| mark.fract() == 0.0) {
            let mark = graph.integers(&[mark as i64]);
            let is_mark = graph.node("Equal", &[&of.name, &mark], &[]);
            value = graph.node("Where", &[&is_mark, &fill, &value], &[]);
            if is_needed {
                lacking.add(graph, &is_mark, &[1]);
            }
        }
        return value;
    };
    graph.input(&of.name, Element::Text, &[1]);
    let keys = keys(names, marks, &of.name);
    if is_needed {
        lacking.add_texts(graph, &of.name, &keys[names.len()..]);
    }
    let fills = vec![of.fill; keys.len() - names.len()];
    let all = of.indices.iter().chain(&fills);
    let settings = [
        Attribute::Texts("keys_strings", keys),
        Attribute::Ints(
            "values_int64s",
            all.map(|index| (of.first + index) as i64).collect(),
        ),
        Attribute::Int("default_int64", of.first as i64),
    ];
    graph.node("LabelEncoder", &[&of.name], &settings)
}

/// The names of categories, then the texts that mean missing, of which the empty one always does.
fn keys<'a>(names: &'a [String], marks: Marks<'a>, column: &str) -> Vec<&'a str> {
    let mut texts = marks.texts(column);
    texts.insert("");
    texts.retain(|text| !names.iter().any(|name| name == text));
    names.iter().map(String::as_str).chain(texts).collect()
}

fn each(scaling: &[Scaling], part: fn(&Scaling) -> f64) -> Vec<f64> {
    scaling.iter().map(part).collect()
}

pub(super) fn doubles(graph: &mut Graph, values: &[f64]) -> String {
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    graph.doubles(values.len(), bytes.collect())
}

pub(super) fn cast(graph: &mut Graph, value: &str, to: DataType) -> String {
    let to = i64::from(i32::from(to));
    graph.node("Cast", &[value], &[Attribute::Int("to", to)])
}

/// Where elements of an array are missing.
fn missing_elements(graph: &mut Graph, name: &str, missing: &[f32]) -> String {
    let mut is_missing = graph.node("IsNaN", &[name], &[]);
    for mark in missing {
        let mark = graph.number(f64::from(*mark));
        let is_mark = graph.node("Equal", &[name, &mark], &[]);
        is_missing = graph.node("Or", &[&is_missing, &is_mark], &[]);
    }
    is_missing
}

/// (value - shift) * factor in 32-bit floats, as runner serves arrays; missing values are 0. Scalings have the shape.
fn array(
    graph: &mut Graph,
    name: &str,
    is_missing: &str,
    shape: &[usize],
    scaling: &[Scaling],
) -> String {
    let zero = graph.number(0.0);
    let value = graph.node("Where", &[is_missing, &zero, name], &[]);
    let mut constant = |part: fn(&Scaling) -> f64| {
        let values: Vec<f32> = scaling.iter().map(|one| part(one) as f32).collect();
        graph.numbers(shape, &values)
    };
    let (shift, factor) = (constant(|one| one.shift), constant(|one| one.factor));
    let value = graph.node("Sub", &[&value, &shift], &[]);
    graph.node("Mul", &[&value, &factor], &[])
}

/// Items of `rank` axes normalized to length 1, unless all values are 0.
fn unit_length(graph: &mut Graph, items: &str, rank: usize) -> String {
    let axes: Vec<i64> = (1..=rank as i64).collect();
    let axes = graph.integers(&axes);
    let length = graph.node("ReduceL2", &[items, &axes], &[]);
    let zero = graph.number(0.0);
    let has_length = graph.node("Greater", &[&length, &zero], &[]);
    let scaled = graph.node("Div", &[items, &length], &[]);
    graph.node("Where", &[&has_length, &scaled, items], &[])
}

/// Adds outputs for a network's output of a given shape: `probabilities` and the name of the most probable `class`, or
/// `output` in the units of the data. Those of items that lack a value are NaN, and the empty text.
///
/// # Errors
/// If there are no operators for it, with the reason.
pub fn decode(
    graph: &mut Graph,
    transforms: &Transforms,
    meaning: Meaning,
    names: &[String],
    given: &Given<'_>,
) -> Result<(), String> {
    graph.begin("/decode");
    let Given {
        output: given,
        shape,
        lacking,
    } = *given;
    let nan = |graph: &mut Graph, value: &str| {
        let nan = graph.number(f64::NAN);
        unless_lacking(graph, lacking, value, &nan, shape)
    };
    // The items of an autoencoder are its targets.
    let items = match transforms.target {
        TargetEncoder::None => transforms.input.scalings(shape.iter().product()),
        _ => None,
    };
    match (meaning, &transforms.target) {
        (Meaning::Classes, target) => {
            let softmax = graph.node("Softmax", &[given], &[Attribute::Int("axis", 1)]);
            if matches!(target, TargetEncoder::Class { .. }) && shape.len() == 1 {
                let settings = [Attribute::Int("axis", 1), Attribute::Int("keepdims", 0)];
                let place = graph.node("ArgMax", &[given], &settings);
                let texts: Vec<&str> = names.iter().map(String::as_str).collect();
                let texts = graph.texts(&texts);
                let mut name = graph.node("Gather", &[&texts, &place], &[]);
                if lacking.is_some() {
                    let none = graph.texts(&[""]);
                    name = unless_lacking(graph, lacking, &name, &none, &[]);
                }
                graph.output(&name, CLASS, Element::Text, &[]);
            }
            let softmax = nan(graph, &softmax);
            graph.output(&softmax, PROBABILITIES, Element::F32, shape);
        }
        (Meaning::Tokens, _) => {
            let softmax = graph.node("Softmax", &[given], &[Attribute::Int("axis", -1)]);
            let softmax = nan(graph, &softmax);
            graph.output(&softmax, PROBABILITIES, Element::F32, shape);
        }
        (Meaning::Labels, _) => {
            let sigmoid = graph.node("Sigmoid", &[given], &[]);
            let sigmoid = nan(graph, &sigmoid);
            graph.output(&sigmoid, PROBABILITIES, Element::F32, shape);
        }
        (
            meaning,
            target @ TargetEncoder::Values {
                shape, nonlinear, ..
            },
        ) => {
            let units = target.units(&transforms.columns);
            let scalings: Vec<Scaling> = units.iter().map(|unit| unit.scaling).collect();
            let given = Given {
                output: given,
                shape,
                lacking,
            };
            values(graph, meaning, &scalings, nonlinear, &given);
        }
        (meaning, _) => match items {
            Some(scalings) => {
                let given = Given {
                    output: given,
                    shape,
                    lacking,
                };
                values(graph, meaning, &scalings, &[], &given);
            }
            None => {
                let output = nan(graph, given);
                graph.output(&output, OUTPUT, Element::F32, shape);
            }
        },
    }
    Ok(())
}

/// Adds the operators that bring values to the units of the targets. `shape` is that of the targets of an item.
fn values(
    graph: &mut Graph,
    meaning: Meaning,
    scalings: &[Scaling],
    nonlinear: &[Nonlinear],
    given: &Given<'_>,
) {
    let Given {
        output: given,
        shape,
        lacking,
    } = *given;
    let size: usize = shape.iter().product();
    // A target that was constant in training is predicted as that constant.
    let (factors, shifts): (Vec<f64>, Vec<f64>) = scalings
        .iter()
        .map(|&Scaling { shift, factor }| (if factor == 0.0 { 0.0 } else { 1.0 / factor }, shift))
        .unzip();
    let value = cast(graph, given, DataType::Double);
    let (means, variances) = match meaning {
        Meaning::Gaussian => {
            let flat = graph.reshape(&value, &[2 * size]);
            let part = |graph: &mut Graph, start: usize| {
                graph.slice(&flat, 1, start as i64, (start + size) as i64)
            };
            let raw = part(graph, size);
            (part(graph, 0), Some(graph.node("Softplus", &[&raw], &[])))
        }
        Meaning::Rates { is_log } => {
            let operator = if is_log { "Exp" } else { "Softplus" };
            let rates = graph.node(operator, &[&value], &[]);
            (graph.reshape(&rates, &[size]), None)
        }
        _ => (graph.reshape(&value, &[size]), None),
    };
    let shaped = |graph: &mut Graph, value: &str, name: &str| {
        let value = cast(graph, value, DataType::Float);
        let value = graph.reshape(&value, shape);
        let nan = graph.number(f64::NAN);
        let value = unless_lacking(graph, lacking, &value, &nan, shape);
        graph.output(&value, name, Element::F32, shape);
    };
    let (by, shifts) = (doubles(graph, &factors), doubles(graph, &shifts));
    let means = graph.node("Mul", &[&means, &by], &[]);
    let means = graph.node("Add", &[&means, &shifts], &[]);
    let means = undone(graph, nonlinear, means);
    shaped(graph, &means, OUTPUT);
    if let Some(variances) = variances {
        let sizes: Vec<f64> = factors.iter().map(|factor| factor.abs()).collect();
        let sizes = doubles(graph, &sizes);
        let deviations = graph.node("Sqrt", &[&variances], &[]);
        let deviations = graph.node("Mul", &[&deviations, &sizes], &[]);
        shaped(graph, &deviations, DEVIATION);
    }
}
