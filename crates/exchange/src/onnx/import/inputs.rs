//! The inputs of a graph.

use std::collections::BTreeMap;

use runner_core::check::network::Shape;
use runner_core::data::DataError;
use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::model::layer_spec::Source;

use super::Options;
use super::attributes::operator;
use super::builder::Builder;
use super::reader::{Live, Value};
use super::refused::Read;
use super::view::View;
use crate::onnx::messages::tensor_proto::DataType;
use crate::onnx::messages::{
    GraphProto, NodeProto, ValueInfoProto, tensor_shape_proto, type_proto,
};

/// The placeholder for a dynamic batch size: a prime that is unlikely to occur in a network, so that it can be
/// recognized in sizes that graphs compute from it.
const OPEN: [usize; 3] = [3607, 3613, 3617];

/// An input of a graph.
struct Input {
    name: String,
    /// All sizes; that of the batch may be dynamic.
    shape: Vec<usize>,
    /// Whether its values are declared as integers.
    is_integer: bool,
    /// For tokens, the size of the vocabulary.
    vocabulary: Option<usize>,
}

/// The inputs of a graph, which become one item.
pub struct Inputs {
    all: Vec<Input>,
    /// The size of the batch in the graph.
    pub batch: usize,
    /// Whether that size is open, so that the first axis can only be a batch.
    pub is_open: bool,
}

impl Inputs {
    /// The inputs that nodes use.
    pub fn of(
        graph: &GraphProto,
        nodes: &[&NodeProto],
        constants: &BTreeMap<String, Value>,
        options: &Options,
    ) -> Result<Self, DataError> {
        let name = |input: &&ValueInfoProto| input.name.clone().unwrap_or_default();
        let given: Vec<&ValueInfoProto> = graph
            .input
            .iter()
            .filter(|input| !constants.contains_key(&name(input)))
            .collect();
        if let Some(unknown) = options
            .shapes
            .keys()
            .find(|key| !given.iter().any(|input| name(input) == **key))
        {
            let names: Vec<String> = given
                .iter()
                .map(|input| format!("`{}`", name(input)))
                .collect();
            return Err(DataError::new(format!("it has no input `{unknown}`"))
                .note(format!("its inputs are {}", names.join(", "))));
        }
        let is_used = |input: &&&ValueInfoProto| {
            let name = name(input);
            let is_output = graph
                .output
                .iter()
                .any(|output| output.name.as_deref() == Some(&name));
            is_output || nodes.iter().any(|node| node.input.contains(&name))
        };
        let mut all = Vec::new();
        for input in given.iter().filter(is_used) {
            all.push(Input::of(input, nodes, constants, options)?);
        }
        if all.is_empty() {
            return Err(DataError::new("its output does not depend on an input"));
        }
        let mut inputs = Self {
            all,
            batch: 1,
            is_open: false,
        };
        inputs.fill_batch();
        if inputs.all.len() > 1 && inputs.all.iter().any(|input| input.vocabulary.is_some()) {
            let names: Vec<_> = inputs
                .all
                .iter()
                .map(|input| format!("`{}`", input.name))
                .collect();
            let message = format!(
                "it takes tokens in addition to other inputs: {}",
                names.join(", ")
            );
            return Err(DataError::new(message)
                .help("export the part of the model that takes only the tokens"));
        }
        for input in &inputs.all {
            let num = input
                .shape
                .iter()
                .try_fold(1_usize, |num, size| num.checked_mul(*size));
            if num.is_none_or(|num| num as u64 > 1 << 40) || input.shape.contains(&0) {
                let shape = inputs.shown(&format!("{:?}", input.shape));
                let message = format!("its input `{}` has the shape {shape}", input.name);
                return Err(DataError::new(message).help(format!(
                    "set a different one with `--shape {}=…`",
                    input.name
                )));
            }
        }
        Ok(inputs)
    }

    /// Replaces a dynamic batch size, which is 0 so far, by a unique one.
    fn fill_batch(&mut self) {
        let sizes: Vec<usize> = self
            .all
            .iter()
            .flat_map(|input| input.shape.iter().copied())
            .collect();
        let is_free = |size: &&usize| {
            !sizes
                .iter()
                .any(|other| *other > 0 && other.is_multiple_of(**size))
        };
        let open = OPEN.iter().find(is_free).copied().unwrap_or(OPEN[0]);
        for input in &mut self.all {
            if let Some(first) = input.shape.first_mut()
                && *first == 0
            {
                *first = open;
                self.is_open = true;
            }
        }
        self.batch = self.all[0].shape.first().copied().unwrap_or(1);
    }

    /// Their names.
    pub fn names(&self) -> Vec<String> {
        self.all.iter().map(|input| input.name.clone()).collect()
    }

    /// Whether an item is a single input of integers.
    pub fn is_of_integers(&self) -> bool {
        matches!(self.all.as_slice(), [only] if only.is_integer)
    }

    /// A message, in whose shapes the placeholder for the size of the batch is `batch`.
    pub fn shown(&self, message: &str) -> String {
        if !self.is_open {
            return message.to_owned();
        }
        let size = |text: &str| match text.trim().parse::<usize>() {
            Ok(size) if size == self.batch => Some("batch".to_owned()),
            Ok(size) if size > 0 && size.is_multiple_of(self.batch) => {
                Some(format!("batch * {}", size / self.batch))
            }
            Ok(size) => Some(size.to_string()),
            Err(_) => None,
        };
        let mut parts = message.split_inclusive('[');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let list = part.split_once(']').and_then(|(list, rest)| {
                let sizes: Option<Vec<String>> = list.split(',').map(size).collect();
                Some((sizes?.join(", "), rest))
            });
            match list {
                Some((list, rest)) => text += &format!("{list}]{rest}"),
                None => text += part,
            }
        }
        text
    }

    /// Whether the first axis of all of them can be the batch.
    pub fn have_batch(&self) -> bool {
        let has = |input: &Input| input.shape.len() > 1 && input.shape[0] == self.batch;
        self.all.iter().all(has)
    }

    /// The items of a network: its only input, or the values of all inputs in one row.
    pub fn items(&self, has_batch: bool) -> Shape {
        let first = usize::from(has_batch);
        match self.all.as_slice() {
            [only] => Shape {
                dims: if only.shape.len() > first {
                    only.shape[first..].to_vec()
                } else {
                    vec![1]
                },
                padding: None,
                documents: None,
                vocabulary: only.vocabulary,
            },
            several => {
                let num = several
                    .iter()
                    .map(|input| input.shape[first..].iter().product::<usize>());
                Shape::numbers(&[num.sum()])
            }
        }
    }

    /// Adds the inputs to the values of a graph.
    pub fn place(
        &self,
        builder: &mut Builder,
        values: &mut BTreeMap<String, Value>,
        has_batch: bool,
    ) -> Read {
        let batch = has_batch.then_some(self.batch);
        let mut start = 0;
        for input in &self.all {
            let dims = input
                .shape
                .get(usize::from(has_batch)..)
                .unwrap_or_default();
            let mut source = Source::Items;
            if self.all.len() > 1 {
                let num: usize = dims.iter().product();
                let kind = LayerKind::Slice {
                    axis: 0,
                    start: start as i64,
                    end: Some((start + num) as i64),
                };
                start += num;
                source = builder.add(&input.name, kind, &[source])?;
                if dims.len() > 1 {
                    let shape = dims.iter().map(|size| *size as i64).collect();
                    source = builder.plain(LayerKind::Reshape { shape }, &[source])?;
                }
            }
            let live = Live {
                source,
                view: View::fresh(batch, dims),
            };
            values.insert(input.name.clone(), Value::Live(live));
        }
        Ok(())
    }

    /// A description of an item, if it is not obvious.
    pub fn notes(&self, has_batch: bool) -> Vec<String> {
        let mut notes = Vec::new();
        let shapes = self.all.iter().map(|input| {
            let shape = input
                .shape
                .get(usize::from(has_batch)..)
                .unwrap_or_default();
            format!("`{}` {shape:?}", input.name)
        });
        let shapes = shapes.collect::<Vec<_>>();
        if shapes.len() > 1 {
            notes.push(format!(
                "an item contains the values of all inputs in one row: {}",
                shapes.join(", ")
            ));
        }
        if !has_batch {
            notes.push("the first axis of the inputs is not a batch: an item is a complete input of the graph".into());
        }
        notes
    }
}

impl Input {
    fn of(
        input: &ValueInfoProto,
        nodes: &[&NodeProto],
        constants: &BTreeMap<String, Value>,
        options: &Options,
    ) -> Result<Self, DataError> {
        let name = input.name.clone().unwrap_or_default();
        let kind = input.r#type.as_ref().and_then(|kind| kind.value.as_ref());
        let Some(type_proto::Value::TensorType(tensor)) = kind else {
            return Err(DataError::new(format!(
                "its input `{name}` is not a tensor"
            )));
        };
        let element =
            DataType::try_from(tensor.elem_type.unwrap_or(0)).unwrap_or(DataType::Undefined);
        let is_integer = matches!(
            element,
            DataType::Int64
                | DataType::Int32
                | DataType::Uint8
                | DataType::Int8
                | DataType::Uint16
                | DataType::Int16
        );
        if !is_integer
            && !matches!(
                element,
                DataType::Float | DataType::Double | DataType::Float16
            )
        {
            let message = format!(
                "its input `{name}` is of type {}, which is not supported",
                element.as_str_name()
            );
            return Err(DataError::new(message));
        }
        let rank = tensor.shape.as_ref().map(|shape| shape.dim.len());
        let shape = match options.shapes.get(&name) {
            Some(shape) if rank.is_some_and(|rank| rank != shape.len()) => {
                let rank = rank.unwrap_or_default();
                let message = format!(
                    "its input `{name}` has {}, but `--shape` gives it {}",
                    counted_axes(rank),
                    counted_axes(shape.len())
                );
                let help = "give a size for each axis, the batch first";
                return Err(DataError::new(message).help(help));
            }
            Some(shape) => shape.clone(),
            None => Self::shape(&name, tensor)?,
        };
        Ok(Self {
            vocabulary: if is_integer {
                vocabulary(&name, nodes, constants)
            } else {
                None
            },
            is_integer,
            name,
            shape,
        })
    }

    /// The sizes in the file; 0 for a dynamic batch size.
    fn shape(name: &str, tensor: &type_proto::Tensor) -> Result<Vec<usize>, DataError> {
        use tensor_shape_proto::dimension::Value::{DimParam, DimValue};
        let dims = tensor.shape.as_ref().map(|shape| shape.dim.as_slice());
        let dims = dims.ok_or_else(|| {
            let message = format!("its input `{name}` has no shape");
            DataError::new(message).help(format!("give it one: `--shape {name}=1,3,224,224`"))
        })?;
        let mut shape = Vec::with_capacity(dims.len());
        for (at, dim) in dims.iter().enumerate() {
            let size = match &dim.value {
                Some(DimValue(size)) => usize::try_from(*size).ok().filter(|size| *size > 0),
                _ => None,
            };
            shape.push(match size {
                Some(size) => size,
                None if at == 0 => 0,
                None => {
                    let called = match &dim.value {
                        Some(DimParam(called)) if !called.is_empty() => format!(", `{called}`,"),
                        _ => String::new(),
                    };
                    let message =
                        format!("axis {at} of its input `{name}`{called} has no fixed size");
                    let sizes = (0..dims.len()).map(|at| match dims[at].value {
                        Some(DimValue(size)) if size > 0 => size.to_string(),
                        _ if at == 0 => "1".into(),
                        _ => "64".into(),
                    });
                    let sizes = sizes.collect::<Vec<_>>().join(",");
                    let error = DataError::new(message).help(format!(
                        "give the input a shape, such as `--shape {name}={sizes}`"
                    ));
                    // As recurrent modules of PyTorch have it by default.
                    let is_fixed_first = shape.first().is_some_and(|size| *size > 0);
                    return Err(if at == 1 && is_fixed_first {
                        error.note("axis 0 is taken as the batch; if that is axis 1, export the module with `batch_first=True`")
                    } else {
                        error
                    });
                }
            });
        }
        Ok(shape)
    }
}

fn counted_axes(num: usize) -> String {
    match num {
        1 => "1 axis".to_owned(),
        num => format!("{num} axes"),
    }
}

/// The number of rows of the table that an input indexes, if it does.
fn vocabulary(
    input: &str,
    nodes: &[&NodeProto],
    constants: &BTreeMap<String, Value>,
) -> Option<usize> {
    let mut names = vec![input];
    for node in nodes {
        let takes = |at: usize| {
            node.input
                .get(at)
                .is_some_and(|name| names.contains(&name.as_str()))
        };
        if operator(node) == "Gather" && takes(1) {
            let table = node.input.first()?;
            // The table may be renamed first.
            let made = nodes
                .iter()
                .find(|other| operator(other) == "Identity" && other.output.first() == Some(table));
            let table = made.and_then(|node| node.input.first()).unwrap_or(table);
            if let Some(Value::Constant(table)) = constants.get(table) {
                return table.shape.first().copied();
            }
        }
        if matches!(operator(node), "Cast" | "Identity" | "Reshape") && takes(0) {
            names.extend(node.output.first().map(String::as_str));
        }
    }
    None
}
