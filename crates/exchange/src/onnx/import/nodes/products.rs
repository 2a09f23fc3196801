//! Products with matrices.

use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::model::layer_spec::Source;
use runner_core::spec::model::parametrization::Parametrization;

use crate::onnx::import::attributes::{flag, float};
use crate::onnx::import::constant::Constant;
use crate::onnx::import::reader::{Live, Reader};
use crate::onnx::import::refused::Read;
use crate::onnx::import::view::View;
use crate::onnx::messages::NodeProto;
use runner_core::spec::model::activation::Activation;

impl Reader<'_> {
    pub(super) fn gemm(&mut self, node: &NodeProto) -> Read {
        let (alpha, beta) = (float(node, "alpha", 1.0), float(node, "beta", 1.0));
        if self.constant(node, 0).is_some() || (self.constant(node, 1).is_none()) {
            return self.live_gemm(node, alpha, beta);
        }
        let mut live = self.live(node, 0)?;
        if live.view.rank() != 2 {
            return Err(format!("its input has {} axes", live.view.rank()).into());
        }
        if flag(node, "transA") {
            live.view = live.view.permuted(&[1, 0]);
        }
        let weight = self.weight(node, 1)?;
        if weight.shape.len() != 2 {
            return Err("its weights are not a matrix".into());
        }
        // Rows are outputs, as in PyTorch.
        let turned;
        let weight = if flag(node, "transB") {
            weight.as_ref()
        } else {
            turned = weight.permuted(&[1, 0]);
            &turned
        };
        let out = weight.shape[0];
        let bias = self.constant(node, 2);
        let bias = match bias {
            Some(bias) if [out, 1].contains(&bias.len()) => {
                let values = bias.floats();
                let at = |at: usize| values[if values.len() == 1 { 0 } else { at }] * beta as f32;
                Some((0..out).map(at).collect())
            }
            Some(_) => return Err("its bias does not have one value for each output".into()),
            None if node.input.get(2).is_some_and(|name| !name.is_empty()) => {
                return Err("its bias is computed from the inputs of the graph".into());
            }
            None => None,
        };
        let name = self.name_of(node, 1, "linear");
        let (source, view) = self.linear(&name, &live, weight, alpha as f32, bias)?;
        self.put(node, source, view)
    }

    /// A product of two values plus a third.
    fn live_gemm(&mut self, node: &NodeProto, alpha: f64, beta: f64) -> Read {
        let (mut a, mut b) = (self.live(node, 0)?, self.live(node, 1)?);
        for (live, name) in [(&mut a, "transA"), (&mut b, "transB")] {
            if live.view.rank() != 2 {
                return Err("its inputs are not matrices".into());
            }
            if flag(node, name) {
                live.view = live.view.permuted(&[1, 0]);
            }
        }
        let (source, view) = self.product(&a, &b)?;
        let scale = |factor: f64| Activation::Scale {
            factor,
            offset: 0.0,
        };
        let source = self.activated(scale(alpha), source)?;
        let mut product = Live { source, view };
        if let Some(added) = self.constant(node, 2) {
            let values = added
                .floats()
                .iter()
                .map(|value| value * beta as f32)
                .collect();
            let added = Constant::floats_of(added.shape.clone(), values);
            if added.single() != Some(0.0) {
                let front = self.front(&product, None)?;
                let parameter = self.parameter(&added, &front, "bias")?;
                let source = self
                    .builder
                    .plain(LayerKind::Add, &[front.source, parameter])?;
                product.view = self.back(&front, source)?;
                product.source = source;
            }
        } else if node.input.get(2).is_some_and(|name| !name.is_empty()) {
            let mut added = self.live(node, 2)?;
            added.source = self.activated(scale(beta), added.source)?;
            let (source, view) = self.pair(LayerKind::Add, &product, &added)?;
            product = Live { source, view };
        }
        self.put(node, product.source, product.view)
    }

    pub(super) fn matmul(&mut self, node: &NodeProto) -> Read {
        if let Some(weight) = self.constant(node, 1) {
            let live = self.live(node, 0)?;
            if weight.shape.len() != 2 {
                return self.with_matrices(node, &live, &weight);
            }
            let name = self.name_of(node, 1, "linear");
            let turned = weight.permuted(&[1, 0]);
            let (source, view) = self.linear(&name, &live, &turned, 1.0, None)?;
            return self.put(node, source, view);
        }
        if let Some(weight) = self.constant(node, 0) {
            // A X is the transpose of X' A'.
            let mut live = self.live(node, 1)?;
            let rank = live.view.rank();
            if weight.shape.len() != 2 || rank < 2 {
                return Err("its first input is a constant that is not a matrix".into());
            }
            let mut order: Vec<usize> = (0..rank).collect();
            order.swap(rank - 2, rank - 1);
            live.view = live.view.permuted(&order);
            let name = self.name_of(node, 0, "linear");
            let (source, view) = self.linear(&name, &live, &weight, 1.0, None)?;
            return self.put(node, source, view.permuted(&order));
        }
        let (a, b) = (self.live(node, 0)?, self.live(node, 1)?);
        let (source, view) = self.product(&a, &b)?;
        self.put(node, source, view)
    }

    /// A product with several constant matrices.
    fn with_matrices(&mut self, node: &NodeProto, live: &Live, weight: &Constant) -> Read {
        let front = self.front(live, None)?;
        let name = self.name_of(node, 1, "matrices");
        let parameter = self.parameter(weight, &front, &name)?;
        let source = self
            .builder
            .plain(LayerKind::Matmul, &[front.source, parameter])?;
        let view = self.back(&front, source)?;
        self.put(node, source, view)
    }

    /// The matrix products of two values along their last two axes.
    pub(super) fn product(&mut self, a: &Live, b: &Live) -> Read<(Source, View)> {
        let rank = a.view.rank().max(b.view.rank());
        if a.view.rank().min(b.view.rank()) < 2 {
            return Err("its inputs are not matrices".into());
        }
        let (a, b) = (Self::lifted(a, rank), Self::lifted(b, rank));
        let is_outer = |live: &Live| live.view.batch_axis().is_none_or(|at| at + 2 < rank);
        if a.view.batch_axis() != b.view.batch_axis() || !is_outer(&a) {
            return Err("the batch is not before the matrix axes in both of its inputs".into());
        }
        let (front_a, front_b) = (self.front(&a, None)?, self.front(&b, None)?);
        if front_a.places != front_b.places {
            return Err("its inputs mix the batch with other axes in different ways".into());
        }
        let inputs = [front_a.source, front_b.source];
        let source = self.builder.plain(LayerKind::Matmul, &inputs)?;
        let view = self.back(&front_a, source)?;
        Ok((source, view))
    }

    /// An affine map of the last axis by weights [outputs, inputs].
    pub(super) fn linear(
        &mut self,
        name: &str,
        live: &Live,
        weight: &Constant,
        factor: f32,
        bias: Option<Vec<f32>>,
    ) -> Read<(Source, View)> {
        let shape = live.view.shape();
        if shape.last() != Some(&weight.shape[1]) {
            return Err(format!(
                "it multiplies {shape:?} with a matrix of {} rows",
                weight.shape[1]
            )
            .into());
        }
        let front = self.front(live, Some(1))?;
        if front.places.last() == Some(&None) || front.is_batch(shape.len() - 1) {
            return Err("its last axis is the batch".into());
        }
        let out = weight.shape[0];
        let kind = LayerKind::Linear {
            out_features: Some(out),
            bias: bias.is_some(),
            initializer: None,
            parametrization: Parametrization::None,
        };
        let source = self.builder.add(name, kind, &[front.source])?;
        let mut values = weight.floats().to_vec();
        if factor != 1.0 {
            values.iter_mut().for_each(|value| *value *= factor);
        }
        self.builder
            .give(source, "weight", weight.shape.clone(), values);
        if let Some(bias) = bias {
            self.builder.give(source, "bias", vec![out], bias);
        }
        let view = self.back(&front, source)?;
        let source = self.recognized_attention(source)?;
        Ok((source, view))
    }
}
