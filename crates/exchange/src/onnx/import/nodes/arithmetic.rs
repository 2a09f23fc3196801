//! Sums, products and other binary operations.

use std::rc::Rc;

use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::{LayerKind, Norm, Pairwise};
use runner_core::spec::model::layer_spec::Source;

use super::choices::masked_numbers;
use crate::onnx::import::attributes::{digits, operator};
use crate::onnx::import::constant::{Constant, broadcast};
use crate::onnx::import::reader::{Live, Reader};
use crate::onnx::import::refused::Read;
use crate::onnx::import::view::View;
use crate::onnx::messages::NodeProto;

impl Reader<'_> {
    pub(super) fn arithmetic(&mut self, node: &NodeProto) -> Read {
        let op = operator(node);
        if node.input.len() > 2 && op != "Pow" || op == "Mean" {
            return self.several(node, op);
        }
        if node.input.len() == 1 {
            return self.pass(node);
        }
        match (self.constant(node, 0), self.constant(node, 1)) {
            (Some(constant), None) => self.with_constant(node, op, 1, &constant, true),
            (None, Some(constant)) => self.with_constant(node, op, 0, &constant, false),
            _ => {
                let (a, b) = (self.live(node, 0)?, self.live(node, 1)?);
                let kind = joined(op)
                    .ok_or_else(|| "both its inputs depend on those of the graph".to_owned())?;
                let (source, view) = self.pair(kind, &a, &b)?;
                self.put(node, source, view)
            }
        }
    }

    /// More than two inputs, one after the other, or their mean.
    fn several(&mut self, node: &NodeProto, op: &str) -> Read {
        let kind = joined(op).ok_or("it has more than two inputs")?;
        let mut sum: Option<Live> = None;
        for at in 0..node.input.len() {
            let other = self.live(node, at)?;
            sum = Some(match sum {
                None => other,
                Some(sum) => {
                    let (source, view) = self.pair(kind.clone(), &sum, &other)?;
                    Live { source, view }
                }
            });
        }
        let mut sum = sum.ok_or("it has no inputs")?;
        if op == "Mean" {
            let mean = Activation::Scale {
                factor: 1.0 / node.input.len() as f64,
                offset: 0.0,
            };
            sum.source = self.activated(mean, sum.source)?;
        }
        self.put(node, sum.source, sum.view)
    }

    /// An element-wise layer of two values.
    pub fn pair(&mut self, kind: LayerKind, a: &Live, b: &Live) -> Read<(Source, View)> {
        let is_same =
            a.view == b.view && self.builder.dims(a.source) == self.builder.dims(b.source);
        if is_same {
            let source = self.joined(kind, a.source, b.source)?;
            return Ok((source, a.view.clone()));
        }
        let rank = a.view.rank().max(b.view.rank());
        let (a, b) = (Self::lifted(a, rank), Self::lifted(b, rank));
        if a.view.batch_axis() != b.view.batch_axis() {
            return Err("the batches of its inputs are in different axes".into());
        }
        broadcast(&a.view.shape(), &b.view.shape())?;
        let (front_a, front_b) = (self.front(&a, None)?, self.front(&b, None)?);
        if front_a.places != front_b.places {
            return Err("its inputs mix the batch with other axes in different ways".into());
        }
        let source = self.joined(kind, front_a.source, front_b.source)?;
        let view = self.back(&front_a, source)?;
        Ok((source, view))
    }

    fn joined(&mut self, kind: LayerKind, a: Source, b: Source) -> Read<Source> {
        match self.recognized_join(&kind, a, b)? {
            Some(found) => Ok(found),
            None => self.builder.plain(kind, &[a, b]),
        }
    }

    /// An operation with a constant, which is the first operand if `is_first`.
    fn with_constant(
        &mut self,
        node: &NodeProto,
        op: &str,
        at: usize,
        constant: &Rc<Constant>,
        is_first: bool,
    ) -> Read {
        let live = self.live(node, at)?;
        let shape = broadcast(&live.view.shape(), &constant.shape)?;
        if let Some(value) = constant.single()
            && shape.len() == live.view.rank()
            && shape == live.view.shape()
        {
            if let Some(function) = of_number(op, digits(value), is_first)? {
                let mut source = live.source;
                for function in function {
                    source = self.activated(function, source)?;
                }
                return self.put(node, source, live.view);
            }
        } else if self.folded_into_weights(node, op, &live, constant, is_first)? {
            return Ok(());
        }
        let kind = joined(op).ok_or_else(|| match constant.single() {
            Some(_) => "there is no layer for it with a constant as this operand".to_owned(),
            None => format!("its constant of shape {:?} is not a scalar", constant.shape),
        })?;
        let live = Self::lifted(&live, shape.len());
        let front = self.front(&live, None)?;
        let name = parameter_name(node, 1 - at);
        // Masks of attention may be minus infinity, which no weight is.
        let parameter = if op == "Add" && !constant.is_integer() {
            self.parameter(&masked_numbers(constant), &front, &name)?
        } else {
            self.parameter(constant, &front, &name)?
        };
        let inputs = if is_first {
            [parameter, front.source]
        } else {
            [front.source, parameter]
        };
        let source = self.builder.plain(kind, &inputs)?;
        let view = self.back(&front, source)?;
        self.put(node, source, view)
    }

    /// A constant along the axis of a layer's biases is folded into its weights, if nothing else uses the layer.
    fn folded_into_weights(
        &mut self,
        node: &NodeProto,
        op: &str,
        live: &Live,
        constant: &Constant,
        is_first: bool,
    ) -> Read<bool> {
        if (is_first && matches!(op, "Sub" | "Div")) || !self.is_alone(live.source) {
            return Ok(false);
        }
        let dims = self.builder.dims(live.source).to_vec();
        let place = match self.builder.layer(live.source) {
            Some((
                LayerKind::Linear { .. } | LayerKind::Norm(Norm::Layer { .. } | Norm::Rms { .. }),
                _,
            )) => dims.len() - 1,
            Some((LayerKind::Conv(_) | LayerKind::Norm(Norm::Batch { .. }), _)) => 0,
            // Only the output projection of attention can absorb it.
            Some((LayerKind::MultiHeadAttention { .. }, _)) if matches!(op, "Add" | "Sub") => {
                dims.len() - 1
            }
            _ => return Ok(false),
        };
        // The axis of the value that corresponds to this axis of the layer.
        let is_own = live.view.factors().len() == dims.len() + 1;
        let axis = live
            .view
            .axes()
            .iter()
            .position(|axis| axis[..] == [place + 1]);
        let (true, Some(axis)) = (is_own, axis) else {
            return Ok(false);
        };
        let Some(skip) = live.view.rank().checked_sub(constant.shape.len()) else {
            return Ok(false);
        };
        let num = dims[place];
        // A larger size would repeat the layer's single output.
        let fits = |(at, size): (usize, &usize)| *size == 1 || at + skip == axis && *size == num;
        if !constant.shape.iter().enumerate().all(fits) {
            return Ok(false);
        }
        let values = constant.floats();
        let by = |at: usize| values[if values.len() == 1 { 0 } else { at }];
        let by: Vec<f32> = match op {
            "Add" | "Mul" => (0..num).map(by).collect(),
            "Sub" => (0..num).map(|at| -by(at)).collect(),
            "Div" => (0..num).map(|at| 1.0 / by(at)).collect(),
            _ => return Ok(false),
        };
        let has_shift = !matches!(
            self.builder.layer(live.source),
            Some((LayerKind::Norm(Norm::Rms { .. }), _))
        );
        if matches!(op, "Add" | "Sub") {
            if !has_shift {
                return Ok(false);
            }
            self.shift(live.source, &by);
        } else {
            self.stretch(live.source, &by);
        }
        self.put(node, live.source, live.view.clone())?;
        Ok(true)
    }

    /// Adds to the biases of a layer.
    fn shift(&mut self, source: Source, by: &[f32]) {
        self.builder.change(source, |kind, weights| {
            let path = match kind {
                LayerKind::MultiHeadAttention { .. } => "out_proj.bias",
                _ => "bias",
            };
            match kind {
                LayerKind::Linear { bias, .. } | LayerKind::Norm(Norm::Layer { bias, .. }) => {
                    *bias = true;
                }
                LayerKind::Conv(conv) => conv.bias = true,
                _ => {}
            }
            let zeros = || (vec![by.len()], vec![0.0; by.len()]);
            let (_, values) = weights.entry(path).or_insert_with(zeros);
            values
                .iter_mut()
                .zip(by)
                .for_each(|(value, by)| *value += by);
        });
    }

    /// Multiplies the outputs of a layer.
    fn stretch(&mut self, source: Source, by: &[f32]) {
        self.builder.change(source, |_, weights| {
            for (path, (_, values)) in weights.iter_mut() {
                if matches!(*path, "weight" | "bias") {
                    let each = (values.len() / by.len()).max(1);
                    values
                        .iter_mut()
                        .enumerate()
                        .for_each(|(at, value)| *value *= by[at / each]);
                }
            }
        });
    }
}

/// The graph's name for a constant, if it is PyTorch's name of a parameter.
fn parameter_name(node: &NodeProto, at: usize) -> String {
    let name = node.input.get(at).map(String::as_str).unwrap_or_default();
    let is_plain = !name.is_empty()
        && !name.starts_with('/')
        && !name.contains(':')
        && name.parse::<u64>().is_err();
    if is_plain {
        name.to_owned()
    } else {
        "parameter".to_owned()
    }
}

/// The layer that joins two values.
fn joined(op: &str) -> Option<LayerKind> {
    let operation = match op {
        "Add" | "Sum" | "Mean" => return Some(LayerKind::Add),
        "Mul" => return Some(LayerKind::Multiply),
        "Sub" => Pairwise::Subtract,
        "Div" => Pairwise::Divide,
        "Max" => Pairwise::Maximum,
        "Min" => Pairwise::Minimum,
        _ => return None,
    };
    Some(LayerKind::Pairwise { operation })
}

/// An operation with one number, as a sequence of functions.
fn of_number(op: &str, value: f64, is_first: bool) -> Read<Option<Vec<Activation>>> {
    const LIMIT: f64 = f32::MAX as f64;
    let scale = |factor: f64, offset: f64| Activation::Scale { factor, offset };
    if !value.is_finite() {
        return Err(format!("its constant is {value}").into());
    }
    Ok(Some(match (op, is_first) {
        ("Add" | "Sum", _) => vec![scale(1.0, value)],
        ("Sub", false) => vec![scale(1.0, -value)],
        ("Sub", true) => vec![scale(-1.0, value)],
        ("Mul", _) => vec![scale(value, 0.0)],
        ("Div", false) if value != 0.0 => vec![scale(1.0 / value, 0.0)],
        ("Div", true) => vec![Activation::Power { exponent: -1.0 }, scale(value, 0.0)],
        ("Pow", false) => vec![Activation::Power { exponent: value }],
        ("Max", _) if value == 0.0 => vec![Activation::Relu],
        ("Max", _) => vec![Activation::Hardtanh {
            min: value,
            max: LIMIT,
        }],
        ("Min", _) => vec![Activation::Hardtanh {
            min: -LIMIT,
            max: value,
        }],
        _ => return Ok(None),
    }))
}
