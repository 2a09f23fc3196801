//! Building graphs node by node.

use std::collections::BTreeSet;

use super::messages::attribute_proto::AttributeType;
use super::messages::tensor_proto::DataType;
use super::messages::tensor_shape_proto::{Dimension, dimension};
use super::messages::{
    AttributeProto, GraphProto, NodeProto, TensorProto, TensorShapeProto, TypeProto,
    ValueInfoProto, type_proto,
};
use crate::tensors::{Dtype, NamedTensor};

/// The types of a graph's inputs and outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// 32-bit floats.
    F32,
    /// 64-bit integers.
    I64,
    /// Texts.
    Text,
}

/// An attribute of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Attribute<'a> {
    /// An integer.
    Int(&'a str, i64),
    /// A number.
    Float(&'a str, f64),
    /// A string.
    Text(&'a str, &'a str),
    /// Integers.
    Ints(&'a str, Vec<i64>),
    /// Numbers.
    Floats(&'a str, Vec<f32>),
    /// Texts.
    Texts(&'a str, Vec<&'a str>),
}

impl Attribute<'_> {
    fn message(&self) -> AttributeProto {
        let of = |name: &str, kind: AttributeType| AttributeProto {
            name: Some(name.to_owned()),
            r#type: Some(kind.into()),
            ..AttributeProto::default()
        };
        match self {
            Self::Int(name, value) => AttributeProto {
                i: Some(*value),
                ..of(name, AttributeType::Int)
            },
            Self::Float(name, value) => AttributeProto {
                f: Some(*value as f32),
                ..of(name, AttributeType::Float)
            },
            Self::Text(name, value) => AttributeProto {
                s: Some(value.as_bytes().to_vec()),
                ..of(name, AttributeType::String)
            },
            Self::Ints(name, values) => AttributeProto {
                ints: values.clone(),
                ..of(name, AttributeType::Ints)
            },
            Self::Floats(name, values) => AttributeProto {
                floats: values.clone(),
                ..of(name, AttributeType::Floats)
            },
            Self::Texts(name, values) => AttributeProto {
                strings: values.iter().map(|text| text.as_bytes().to_vec()).collect(),
                ..of(name, AttributeType::Strings)
            },
        }
    }
}

/// The set of operators for tables.
pub const ML_DOMAIN: &str = "ai.onnx.ml";

/// A graph that is being built.
#[derive(Debug, Default)]
pub struct Graph {
    graph: GraphProto,
    prefix: String,
    number: usize,
    /// The names of constants.
    constants: BTreeSet<String>,
}

impl Graph {
    /// An empty graph with a name.
    pub fn new(name: &str) -> Self {
        Self {
            graph: GraphProto {
                name: Some(name.to_owned()),
                ..GraphProto::default()
            },
            ..Self::default()
        }
    }

    /// The prefix of the names of following nodes and constants.
    pub fn begin(&mut self, prefix: &str) {
        prefix.clone_into(&mut self.prefix);
        self.number = 0;
    }

    fn name(&mut self, what: &str) -> String {
        self.number += 1;
        match self.prefix.as_str() {
            "" => format!("{what}_{}", self.number),
            prefix => format!("{prefix}/{what}_{}", self.number),
        }
    }

    /// Adds a node; returns the name of its output.
    pub fn node(
        &mut self,
        operator: &str,
        inputs: &[&str],
        attributes: &[Attribute<'_>],
    ) -> String {
        let output = self.name(operator);
        self.place(operator, inputs, std::slice::from_ref(&output), attributes);
        output
    }

    /// Adds a node with several outputs, which get names if they are used (`is_used`).
    pub fn nodes<const N: usize>(
        &mut self,
        operator: &str,
        inputs: &[&str],
        is_used: [bool; N],
        attributes: &[Attribute<'_>],
    ) -> [String; N] {
        let outputs = is_used.map(|used| {
            if used {
                self.name(operator)
            } else {
                String::new()
            }
        });
        self.place(operator, inputs, &outputs, attributes);
        outputs
    }

    fn place(
        &mut self,
        operator: &str,
        inputs: &[&str],
        outputs: &[String],
        attributes: &[Attribute<'_>],
    ) {
        let name = outputs.iter().find(|name| !name.is_empty());
        // The only operator outside of ONNX's default set.
        let domain = (operator == "LabelEncoder").then(|| ML_DOMAIN.to_owned());
        self.graph.node.push(NodeProto {
            domain,
            name: name.cloned(),
            op_type: Some(operator.to_owned()),
            input: inputs.iter().map(|name| (*name).to_owned()).collect(),
            output: outputs.to_vec(),
            attribute: attributes.iter().map(Attribute::message).collect(),
            ..NodeProto::default()
        });
    }

    /// Adds a constant with its own name. The same constant is added once.
    ///
    /// # Panics
    /// If its type is neither float nor 64-bit integer nor boolean.
    pub fn constant(&mut self, tensor: NamedTensor) -> String {
        let data_type = match tensor.dtype() {
            Dtype::F32 => DataType::Float,
            Dtype::F64 => DataType::Double,
            Dtype::I64 => DataType::Int64,
            Dtype::Bool => DataType::Bool,
            other => panic!("graphs have no constants of {other}"),
        };
        let name = tensor.name().to_owned();
        if self.constants.insert(name.clone()) {
            self.graph.initializer.push(TensorProto {
                name: Some(name.clone()),
                dims: tensor.shape().iter().map(|size| *size as i64).collect(),
                data_type: Some(data_type.into()),
                raw_data: Some(tensor.into_bytes()),
                ..TensorProto::default()
            });
        }
        name
    }

    /// Numbers with a shape, which is empty for a scalar.
    pub fn numbers(&mut self, shape: &[usize], values: &[f32]) -> String {
        let name = self.name("constant");
        self.constant(NamedTensor::from_f32s(name, shape.to_vec(), values))
    }

    /// A list of 64-bit floats, as their bytes.
    pub fn doubles(&mut self, num: usize, bytes: Vec<u8>) -> String {
        let name = self.name("constant");
        let tensor = NamedTensor::new(name, vec![num], Dtype::F64, bytes);
        self.constant(tensor.expect("8 bytes for each number"))
    }

    /// One number.
    pub fn number(&mut self, value: f64) -> String {
        self.numbers(&[], &[value as f32])
    }

    /// A list of integers.
    pub fn integers(&mut self, values: &[i64]) -> String {
        let name = self.name("constant");
        self.constant(NamedTensor::from_i64s(name, vec![values.len()], values))
    }

    /// One integer.
    pub fn integer(&mut self, value: i64) -> String {
        let name = self.name("constant");
        self.constant(NamedTensor::from_i64s(name, Vec::new(), &[value]))
    }

    /// A list of texts.
    pub fn texts(&mut self, values: &[&str]) -> String {
        let name = self.name("constant");
        self.graph.initializer.push(TensorProto {
            name: Some(name.clone()),
            dims: vec![values.len() as i64],
            data_type: Some(DataType::String.into()),
            string_data: values.iter().map(|text| text.as_bytes().to_vec()).collect(),
            ..TensorProto::default()
        });
        name
    }

    /// The same values with these sizes after the batch.
    pub fn reshape(&mut self, value: &str, dims: &[usize]) -> String {
        // 0 keeps the size of the first axis.
        let sizes = dims.iter().map(|size| *size as i64);
        let shape: Vec<i64> = [0].into_iter().chain(sizes).collect();
        let shape = self.integers(&shape);
        self.node("Reshape", &[value, &shape], &[])
    }

    /// A range of an axis, which counts the batch.
    pub fn slice(&mut self, value: &str, axis: i64, from: i64, to: i64) -> String {
        let [from, to, axis] = [from, to, axis].map(|at| self.integers(&[at]));
        self.node("Slice", &[value, &from, &to, &axis], &[])
    }

    /// Axes in a different order.
    pub fn transpose(&mut self, value: &str, axes: &[i64]) -> String {
        self.node(
            "Transpose",
            &[value],
            &[Attribute::Ints("perm", axes.to_vec())],
        )
    }

    /// A value with the batch axis before the shape of an item.
    pub fn input(&mut self, name: &str, element: Element, dims: &[usize]) {
        self.graph.input.push(value(name, element, dims));
    }

    /// Makes a value an output with a name.
    pub fn output(&mut self, from: &str, name: &str, element: Element, dims: &[usize]) {
        let is_input = self
            .graph
            .input
            .iter()
            .any(|input| input.name.as_deref() == Some(from));
        let is_output = self
            .graph
            .output
            .iter()
            .any(|output| output.name.as_deref() == Some(from));
        if is_input || is_output {
            self.place("Identity", &[from], &[name.to_owned()], &[]);
        } else {
            for node in &mut self.graph.node {
                let values = node.input.iter_mut().chain(&mut node.output);
                for value in values.filter(|value| *value == from) {
                    name.clone_into(value);
                }
            }
        }
        self.graph.output.push(value(name, element, dims));
    }

    /// Whether there is an operator that the usual version of the operators lacks.
    pub fn has_newer(&self) -> bool {
        let mut nodes = self.graph.node.iter();
        nodes.any(|node| node.op_type.as_deref() == Some("DeformConv"))
    }

    /// Whether there is an operator for tables.
    pub fn has_tables(&self) -> bool {
        self.graph.node.iter().any(|node| node.domain.is_some())
    }

    /// The finished graph.
    pub fn finish(self) -> GraphProto {
        self.graph
    }
}

fn value(name: &str, element: Element, dims: &[usize]) -> ValueInfoProto {
    let data_type = match element {
        Element::F32 => DataType::Float,
        Element::I64 => DataType::Int64,
        Element::Text => DataType::String,
    };
    let sizes = dims
        .iter()
        .map(|size| dimension::Value::DimValue(*size as i64));
    let batch = dimension::Value::DimParam("batch".into());
    let dimensions = [batch].into_iter().chain(sizes).map(|value| Dimension {
        value: Some(value),
        ..Dimension::default()
    });
    let tensor = type_proto::Tensor {
        elem_type: Some(data_type.into()),
        shape: Some(TensorShapeProto {
            dim: dimensions.collect(),
        }),
    };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto {
            value: Some(type_proto::Value::TensorType(tensor)),
            ..TypeProto::default()
        }),
        ..ValueInfoProto::default()
    }
}
