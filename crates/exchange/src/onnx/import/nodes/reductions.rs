//! Operators along an axis.

use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::{LayerKind, Pairwise, Reduction};

use crate::onnx::import::attributes::{axes, axis, flag, int, operator};
use crate::onnx::import::reader::{Live, Reader};
use crate::onnx::import::refused::Read;
use crate::onnx::messages::NodeProto;

impl Reader<'_> {
    pub(super) fn softmax(&mut self, node: &NodeProto) -> Read {
        let mut live = self.live(node, 0)?;
        let (shape, rank) = (live.view.shape(), live.view.rank());
        // Before version 13, all axes from this one on are merged.
        let is_old = self.opset < 13;
        let at = self.axis(node, if is_old { 1 } else { -1 }, rank)?;
        let function = if operator(node) == "Softmax" {
            Activation::Softmax
        } else {
            Activation::LogSoftmax
        };
        let mut order: Vec<usize> = (0..rank).collect();
        if is_old {
            let sizes = [shape[..at].iter().product(), shape[at..].iter().product()];
            live.view = live
                .view
                .reshaped(&sizes)
                .ok_or("it mixes the batch with other axes")?;
        } else {
            order.swap(at, rank - 1);
            live.view = live.view.permuted(&order);
        }
        let Live { source, view, .. } = self.normalized(&live, function)?;
        let view = if is_old {
            view.reshaped(&shape)
                .ok_or("it mixes the batch with other axes")?
        } else {
            view.permuted(&order)
        };
        self.put(node, source, view)
    }

    /// A softmax of the last axis.
    pub(super) fn normalized(&mut self, live: &Live, function: Activation) -> Read<Live> {
        let front = self.front(live, Some(1))?;
        if front.places.last() == Some(&None) || front.is_batch(live.view.rank() - 1) {
            return Err("it normalizes along the batch".into());
        }
        let function = LayerKind::Activation(function);
        let source = self.builder.plain(function, &[front.source])?;
        Ok(Live {
            source,
            view: self.back(&front, source)?,
        })
    }

    pub(super) fn reduce(&mut self, node: &NodeProto) -> Read {
        let op = operator(node);
        let mut live = self.live(node, 0)?;
        let rank = live.view.rank();
        let list = self.list(node, "axes", 1).unwrap_or_default();
        // No axes are all axes.
        let list = match (list.is_empty(), flag(node, "noop_with_empty_axes")) {
            (false, _) => list,
            (true, false) => (0..rank as i64).collect(),
            (true, true) => return Err("it reduces nothing".into()),
        };
        let keeps = int(node, "keepdims").unwrap_or(1) != 0;
        let power = |exponent| Some(Activation::Power { exponent });
        let (before, operation, after) = match op {
            "ReduceMean" => (None, Reduction::Mean, None),
            "ReduceMax" => (None, Reduction::Max, None),
            "ReduceSum" => (None, Reduction::Sum, None),
            "ReduceMin" => {
                let negative = Activation::Scale {
                    factor: -1.0,
                    offset: 0.0,
                };
                (Some(negative.clone()), Reduction::Max, Some(negative))
            }
            "ReduceL1" => (Some(Activation::Abs), Reduction::Sum, None),
            "ReduceSumSquare" => (power(2.0), Reduction::Sum, None),
            "ReduceL2" => (power(2.0), Reduction::Sum, power(0.5)),
            _ => return Err("there is no layer for it".into()),
        };
        if let Some(before) = before {
            live.source = self.activated(before, live.source)?;
        }
        for at in axes(&list, rank)?.into_iter().rev() {
            live = self.reduced(&live, at, operation)?;
            if keeps {
                live.view = live.view.unsqueezed(at);
            }
        }
        if let Some(after) = after {
            live.source = self.activated(after, live.source)?;
        }
        self.put(node, live.source, live.view)
    }

    /// The sums up to each position of an axis.
    pub(super) fn cumulated(&mut self, node: &NodeProto) -> Read {
        let live = self.live(node, 0)?;
        let along = self.constant(node, 1).and_then(|along| along.single());
        let along = along.ok_or("its axis depends on the inputs of the graph")?;
        if flag(node, "exclusive") || flag(node, "reverse") {
            return Err("it is exclusive or goes backwards".into());
        }
        let at = axis(along as i64, live.view.rank())?;
        let front = self.front(&live, None)?;
        let place = front.places[at]
            .filter(|_| !front.is_batch(at))
            .ok_or("it sums along the batch")?;
        let axis = place as i64;
        let source = self
            .builder
            .plain(LayerKind::Cumsum { axis }, &[front.source])?;
        let view = self.back(&front, source)?;
        self.put(node, source, view)
    }

    /// An axis reduced to one number, which removes it.
    pub(super) fn reduced(&mut self, live: &Live, at: usize, operation: Reduction) -> Read<Live> {
        let front = self.front(live, None)?;
        let place = front.places[at]
            .filter(|_| !front.is_batch(at))
            .ok_or("it reduces the batch")?;
        let kind = LayerKind::Reduce {
            operation,
            axis: place as i64,
        };
        let source = self.builder.plain(kind, &[front.source])?;
        Ok(Live {
            source,
            view: self.back_without(front, at, source)?,
        })
    }

    /// log(exp(a) + exp(b) + …) along one axis: a less its logarithmic softmax.
    pub(super) fn log_sum_exp(&mut self, node: &NodeProto) -> Read {
        let mut live = self.live(node, 0)?;
        let rank = live.view.rank();
        let list = self.list(node, "axes", 1).unwrap_or_default();
        let [at] = axes(&list, rank)?[..] else {
            return Err("it reduces more than one axis at once".into());
        };
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(at, rank - 1);
        live.view = live.view.permuted(&order);
        let shares = self.normalized(&live, Activation::LogSoftmax)?;
        let (a, b) = (
            self.cut(&live, rank - 1, 0, 1)?,
            self.cut(&shares, rank - 1, 0, 1)?,
        );
        let less = LayerKind::Pairwise {
            operation: Pairwise::Subtract,
        };
        let (source, view) = self.pair(less, &a, &b)?;
        let view = view.permuted(&order);
        let keeps = int(node, "keepdims").unwrap_or(1) != 0;
        let view = if keeps { Some(view) } else { view.squeezed(at) };
        self.put(node, source, view.ok_or("it reduces the batch")?)
    }

    /// The product of the places of an axis, one after the other.
    pub(super) fn reduced_product(&mut self, node: &NodeProto) -> Read {
        const MOST: usize = 64;
        let mut live = self.live(node, 0)?;
        let rank = live.view.rank();
        let list = self.list(node, "axes", 1);
        let list = list.unwrap_or_else(|| (0..rank as i64).collect());
        let keeps = int(node, "keepdims").unwrap_or(1) != 0;
        for at in axes(&list, rank)?.into_iter().rev() {
            let size = live.view.shape()[at];
            if size > MOST {
                return Err(format!(
                    "it multiplies {size} values, and at most {MOST} are supported"
                )
                .into());
            }
            let mut all = self.cut(&live, at, 0, 1)?;
            for place in 1..size {
                let next = self.cut(&live, at, place, place + 1)?;
                let (source, view) = self.pair(LayerKind::Multiply, &all, &next)?;
                all = Live { source, view };
            }
            if !keeps {
                all.view = all.view.squeezed(at).ok_or("it reduces the batch")?;
            }
            live = all;
        }
        self.put(node, live.source, live.view)
    }

    /// Values divided by the root of their squares along an axis, or by the sum of their sizes.
    pub(super) fn unit_length(&mut self, node: &NodeProto) -> Read {
        let live = self.live(node, 0)?;
        let at = self.axis(node, -1, live.view.rank())?;
        let power = |exponent| Activation::Power { exponent };
        let (before, after) = match int(node, "p").unwrap_or(2) {
            1 => (Activation::Abs, None),
            2 => (power(2.0), Some(power(0.5))),
            other => return Err(format!("its `p` is {other}").into()),
        };
        let mut sizes = live.clone();
        sizes.source = self.activated(before, live.source)?;
        let mut sum = self.reduced(&sizes, at, Reduction::Sum)?;
        // Zeros stay zeros, and have a gradient: the root of 0 has none.
        let least = Activation::Hardtanh {
            min: 1e-38,
            max: f64::from(f32::MAX),
        };
        sum.source = self.activated(least, sum.source)?;
        if let Some(after) = after {
            sum.source = self.activated(after, sum.source)?;
        }
        sum.view = sum.view.unsqueezed(at);
        let divide = LayerKind::Pairwise {
            operation: Pairwise::Divide,
        };
        let (source, view) = self.pair(divide, &live, &sum)?;
        self.put(node, source, view)
    }
}
