//! Operators along an axis.

use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::{LayerKind, Reduction};

use crate::onnx::import::attributes::{axes, int, operator};
use crate::onnx::import::reader::{Live, Read, Reader};
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
        let front = self.front(&live, Some(1))?;
        if front.places.last() == Some(&None) || front.is_batch(live.view.rank() - 1) {
            return Err("it normalizes along the batch".into());
        }
        let source = self
            .builder
            .plain(LayerKind::Activation(function), &[front.source])?;
        let view = self.back(&front, source)?;
        let view = if is_old {
            view.reshaped(&shape)
                .ok_or("it mixes the batch with other axes")?
        } else {
            view.permuted(&order)
        };
        self.put(node, source, view)
    }

    pub(super) fn reduce(&mut self, node: &NodeProto) -> Read {
        let op = operator(node);
        let mut live = self.live(node, 0)?;
        let rank = live.view.rank();
        let list = self
            .list(node, "axes", 1)
            .unwrap_or_else(|| (0..rank as i64).collect());
        let keeps = int(node, "keepdims").unwrap_or(1) != 0;
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
            _ => {
                let power = |exponent| Some(Activation::Power { exponent });
                (power(2.0), Reduction::Sum, power(0.5))
            }
        };
        if let Some(before) = before {
            live.source = self.activated(before, live.source)?;
        }
        for at in axes(&list, rank)?.into_iter().rev() {
            let front = self.front(&live, None)?;
            let place = front.places[at]
                .filter(|_| !front.is_batch(at))
                .ok_or("it reduces the batch")?;
            let kind = LayerKind::Reduce {
                operation,
                axis: place as i64,
            };
            let source = self.builder.plain(kind, &[front.source])?;
            let view = self.back_without(front, at, source)?;
            live = Live {
                source,
                view: if keeps { view.unsqueezed(at) } else { view },
                is_alone: true,
            };
        }
        if let Some(after) = after {
            live.source = self.activated(after, live.source)?;
        }
        self.put(node, live.source, live.view)
    }
}
