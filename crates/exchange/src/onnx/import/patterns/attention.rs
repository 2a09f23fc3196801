//! Multi-head attention, which exporters decompose into matrix products.

use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::model::layer_spec::Source;

use crate::onnx::import::builder::Weights;
use crate::onnx::import::reader::Reader;
use crate::onnx::import::refused::Read;

/// The number added to masked scores is at most this.
const MASKED: f32 = -1e9;

/// PyTorch's names of the matrices of queries, keys and values, if their widths differ.
const IN_PROJ: [&str; 3] = ["q_proj_weight", "k_proj_weight", "v_proj_weight"];

/// One of queries, keys and values: rows of a linear layer over a sequence.
struct Projection {
    input: Source,
    /// Features of the input.
    wide: usize,
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Reader<'_> {
    /// The same source, or the attention whose last linear layer it is.
    pub(in crate::onnx::import) fn recognized_attention(&mut self, output: Source) -> Read<Source> {
        let Some((kind, inputs, weights)) = self.attention(output) else {
            return Ok(output);
        };
        let name = self.builder.name(output).to_owned();
        // `attn.out_proj` is the attention `attn`.
        let name = match name.rsplit_once('.') {
            Some((outer, _)) => outer.to_owned(),
            None => kind.type_name(),
        };
        let source = self.builder.add(&name, kind, &inputs)?;
        for (path, (shape, values)) in weights {
            self.builder.give(source, path, shape, values);
        }
        Ok(source)
    }

    fn attention(&self, output: Source) -> Option<(LayerKind, Vec<Source>, Weights)> {
        let (LayerKind::Linear { .. }, [rows]) = self.builder.layer(output)? else {
            return None;
        };
        let [length, width] = self.builder.dims(*rows)[..] else {
            return None;
        };
        let context = self.turned(self.reshaped_from(*rows)?, &[1, 0, 2])?;
        let (LayerKind::Matmul, [shares, values]) = self.builder.layer(context)? else {
            return None;
        };
        let (LayerKind::Activation(Activation::Softmax), [scores]) = self.builder.layer(*shares)?
        else {
            return None;
        };
        let (scores, is_causal) = self.unmasked(*scores)?;
        let (mut factor, product) = self.factor_of(scores);
        let (LayerKind::Matmul, [queries, keys]) = self.builder.layer(product)? else {
            return None;
        };
        let mut projections = Vec::new();
        let num_heads = self.builder.dims(context)[0];
        for (source, order) in [
            (*queries, [1, 0, 2]),
            (*keys, [1, 2, 0]),
            (*values, [1, 0, 2]),
        ] {
            let (own, projection) = self.projection(source, &order, [num_heads, width])?;
            factor *= own;
            projections.push(projection);
        }
        let [query, key, value] = projections.try_into().ok()?;
        let size = (width / num_heads) as f64;
        if !super::is_near(factor, 1.0 / size.sqrt()) || query.wide != width {
            return None;
        }
        let [of_keys, of_values] = [&key, &value].map(|part| self.builder.dims(part.input)[0]);
        if of_keys != of_values {
            return None;
        }
        if is_causal && self.builder.dims(key.input)[0] != length {
            return None;
        }
        let mut inputs = vec![query.input, key.input, value.input];
        if key.input == value.input {
            inputs.truncate(if query.input == key.input { 1 } else { 2 });
        }
        let kind = LayerKind::MultiHeadAttention {
            num_heads,
            dropout: 0.0,
            causal: is_causal,
            initializer: None,
        };
        Some((
            kind,
            inputs,
            self.attention_weights(output, width, [query, key, value])?,
        ))
    }

    fn attention_weights(
        &self,
        output: Source,
        width: usize,
        parts: [Projection; 3],
    ) -> Option<Weights> {
        let own = self.builder.weights(output)?;
        let (_, out) = own
            .get("weight")
            .filter(|(shape, _)| *shape == [width, width])?;
        let bias = own
            .get("bias")
            .map_or_else(|| vec![0.0; width], |(_, values)| values.clone());
        let mut weights = Weights::new();
        let joined = |of: fn(&Projection) -> &Vec<f32>| {
            parts.iter().flat_map(of).copied().collect::<Vec<f32>>()
        };
        if parts.iter().all(|part| part.wide == width) {
            weights.insert(
                "in_proj_weight",
                (vec![3 * width, width], joined(|part| &part.weight)),
            );
        } else {
            for (name, part) in IN_PROJ.into_iter().zip(&parts) {
                weights.insert(name, (vec![width, part.wide], part.weight.clone()));
            }
        }
        weights.insert("in_proj_bias", (vec![3 * width], joined(|part| &part.bias)));
        weights.insert("out_proj.weight", (vec![width, width], out.clone()));
        weights.insert("out_proj.bias", (vec![width], bias));
        Some(weights)
    }

    /// The input of the reshape that gives a source.
    fn reshaped_from(&self, source: Source) -> Option<Source> {
        match self.builder.layer(source)? {
            (LayerKind::Reshape { .. } | LayerKind::Flatten { .. }, [inner]) => Some(*inner),
            _ => None,
        }
    }

    /// The input of the permutation with this order that gives a source.
    fn turned(&self, source: Source, order: &[i64]) -> Option<Source> {
        match self.builder.layer(source)? {
            (LayerKind::Permute { axes }, [inner]) if axes == order => Some(*inner),
            _ => None,
        }
    }

    /// A factor that a source is multiplied by.
    fn factor_of(&self, source: Source) -> (f64, Source) {
        match self.scaled(source) {
            (factor, 0.0, inner) => (factor, inner),
            _ => (1.0, source),
        }
    }

    /// Scores without the mask added to them, and whether it is causal.
    fn unmasked(&self, source: Source) -> Option<(Source, bool)> {
        let Some((LayerKind::Add, [a, b])) = self.builder.layer(source) else {
            return Some((source, false));
        };
        let is_parameter = |source: Source| {
            matches!(
                self.builder.layer(source),
                Some((LayerKind::Parameter { .. }, _))
            )
        };
        let (scores, mask) = if is_parameter(*b) { (*a, *b) } else { (*b, *a) };
        let (shape, values) = self.builder.weights(mask)?.get("value")?;
        let [rows, columns] = *shape.last_chunk::<2>()?;
        let is_single = shape[..shape.len() - 2].iter().all(|size| *size == 1);
        let mut places = values.iter().enumerate();
        let is_causal = rows == columns
            && is_single
            && places.all(|(at, value)| {
                let is_later = at % columns > at / columns;
                if is_later {
                    *value <= MASKED
                } else {
                    *value == 0.0
                }
            });
        is_causal.then_some((scores, true))
    }

    /// Rows of a linear layer as heads in an order of axes: their factor, and the layer.
    fn projection(
        &self,
        source: Source,
        order: &[i64],
        [num_heads, width]: [usize; 2],
    ) -> Option<(f64, Projection)> {
        let (outer, source) = self.factor_of(source);
        let heads = [num_heads, width / num_heads];
        // Heads and features of keys move together, and are split afterwards.
        let inner = if order == [1, 2, 0] {
            if self.builder.dims(source).get(..2) != Some(&heads) {
                return None;
            }
            self.turned(self.reshaped_from(source)?, &[1, 0])?
        } else {
            let cut = self.turned(source, order)?;
            if self.builder.dims(cut).get(1..) != Some(&heads) {
                return None;
            }
            self.reshaped_from(cut)?
        };
        let (factor, rows) = self.factor_of(inner);
        let (first, linear) = match self.builder.layer(rows)? {
            (
                LayerKind::Slice {
                    axis: 1,
                    start,
                    end: Some(end),
                },
                [linear],
            ) if end - start == width as i64 => (*start as usize, *linear),
            _ => (0, rows),
        };
        let (LayerKind::Linear { .. }, [input]) = self.builder.layer(linear)? else {
            return None;
        };
        let [_, wide] = self.builder.dims(*input)[..] else {
            return None;
        };
        let weights = self.builder.weights(linear)?;
        let (shape, weight) = weights.get("weight")?;
        if rows == linear && shape[0] != width {
            return None;
        }
        let bias = weights
            .get("bias")
            .map(|(_, values)| values[first..first + width].to_vec());
        let projection = Projection {
            input: *input,
            wide,
            weight: weight[first * wide..(first + width) * wide].to_vec(),
            bias: bias.unwrap_or_else(|| vec![0.0; width]),
        };
        Some((outer * factor, projection))
    }
}
