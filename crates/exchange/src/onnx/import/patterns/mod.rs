//! Layers that exporters decompose: activation functions and norms. They are recognized when their last step is added,
//! and earlier steps are removed at the end if nothing else uses them.

mod attention;

use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::{LayerKind, Norm, Pairwise, Reduction};
use runner_core::spec::model::layer_spec::Source;

use super::reader::Reader;
use crate::onnx::import::refused::Read;

/// Constants are compared with those of the papers up to the precision of 32-bit floats.
fn is_near(value: f64, wanted: f64) -> bool {
    (value - wanted).abs() <= 1e-5 * wanted.abs().max(1e-3)
}

impl Reader<'_> {
    /// The input of an activation function.
    fn function_of(&self, source: Source) -> Option<(&Activation, Source)> {
        match self.builder.layer(source)? {
            (LayerKind::Activation(function), [input]) => Some((function, *input)),
            _ => None,
        }
    }

    /// `factor x + offset` that gives a source, with x; 1 and 0 if there is none.
    fn scaled(&self, source: Source) -> (f64, f64, Source) {
        match self.function_of(source) {
            Some((Activation::Scale { factor, offset }, input)) => (*factor, *offset, input),
            _ => (1.0, 0.0, source),
        }
    }

    /// log(1 + exp(beta x)) / beta: beta and x.
    pub(super) fn softplus_of(&self, source: Source) -> Option<(f64, Source)> {
        let (below, shift, soft) = self.scaled(source);
        let (Activation::Softplus { beta: 1.0, .. }, inner) = self.function_of(soft)? else {
            return None;
        };
        let (beta, offset, x) = self.scaled(inner);
        let fits = shift == 0.0 && offset == 0.0 && is_near(below * beta, 1.0);
        fits.then_some((beta, x))
    }

    /// What a layer computes; equal for two layers that compute the same.
    pub(super) fn layer_of(&self, source: Source) -> Option<(LayerKind, Vec<Source>)> {
        let (kind, inputs) = self.builder.layer(source)?;
        Some((kind.clone(), inputs.to_vec()))
    }

    /// A layer that is a function of an earlier layer: the pattern completed by `function`.
    pub(super) fn recognized_function(
        &mut self,
        function: &Activation,
        input: Source,
    ) -> Read<Option<Source>> {
        // x relu6(x + 3) / 6.
        if let Activation::Scale {
            factor,
            offset: 0.0,
        } = function
            && is_near(*factor, 1.0 / 6.0)
            && let Some((LayerKind::Multiply, [a, b])) = self.builder.layer(input)
        {
            for (x, clipped) in [(*a, *b), (*b, *a)] {
                if self.is_shifted_relu6(clipped, x) {
                    let kind = LayerKind::Activation(Activation::HardSwish);
                    return self.builder.plain(kind, &[x]).map(Some);
                }
            }
        }
        // relu6(x + 3) / 6.
        if let Activation::Scale {
            factor,
            offset: 0.0,
        } = function
            && is_near(*factor, 1.0 / 6.0)
            && let Some((Activation::Relu6, shifted)) = self.function_of(input)
            && let (1.0, 3.0, x) = self.scaled(shifted)
        {
            let sigmoid = Activation::HardSigmoid {
                alpha: 1.0 / 6.0,
                beta: 0.5,
            };
            return self
                .builder
                .plain(LayerKind::Activation(sigmoid), &[x])
                .map(Some);
        }
        Ok(None)
    }

    fn is_shifted_relu6(&self, source: Source, x: Source) -> bool {
        let Some((Activation::Relu6, shifted)) = self.function_of(source) else {
            return false;
        };
        self.scaled(shifted) == (1.0, 3.0, x)
    }

    /// A layer of two values that is a function of a single one.
    pub(super) fn recognized_join(
        &mut self,
        kind: &LayerKind,
        a: Source,
        b: Source,
    ) -> Read<Option<Source>> {
        match kind {
            LayerKind::Multiply => {
                for (x, gate) in [(a, b), (b, a)] {
                    if let Some(function) = self.gated(x, gate) {
                        return self
                            .builder
                            .plain(LayerKind::Activation(function), &[x])
                            .map(Some);
                    }
                    if let Some((function, input, factor)) = self.gelu(x, gate) {
                        let source = self
                            .builder
                            .plain(LayerKind::Activation(function), &[input])?;
                        let scale = Activation::Scale {
                            factor,
                            offset: 0.0,
                        };
                        return self.activated(scale, source).map(Some);
                    }
                    if let Some((input, epsilon)) = self.rms(x, gate) {
                        return self.norm(input, Norm::Rms { epsilon }).map(Some);
                    }
                    if let Some(input) = self.glu(x, gate) {
                        return self
                            .builder
                            .plain(LayerKind::Activation(Activation::Glu), &[input])
                            .map(Some);
                    }
                }
                Ok(None)
            }
            LayerKind::Pairwise {
                operation: Pairwise::Divide,
            } => {
                if let Some(input) = self.softsign(a, b) {
                    return self
                        .builder
                        .plain(LayerKind::Activation(Activation::Softsign), &[input])
                        .map(Some);
                }
                if let Some((input, epsilon)) = self.layer_norm_of(a, b) {
                    return self
                        .norm(
                            input,
                            Norm::Layer {
                                epsilon,
                                bias: false,
                            },
                        )
                        .map(Some);
                }
                match self
                    .root(b, 0.5)
                    .filter(|(squares, _)| self.is_square_of(*squares, a) && self.is_by_row(b, a))
                {
                    Some((_, epsilon)) => self.norm(a, Norm::Rms { epsilon }).map(Some),
                    None => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// x times a function of x.
    fn gated(&self, x: Source, gate: Source) -> Option<Activation> {
        let (function, input) = self.function_of(gate)?;
        match function {
            Activation::Sigmoid if input == x => Some(Activation::Silu),
            Activation::HardSigmoid { alpha, beta }
                if input == x && is_near(*alpha, 1.0 / 6.0) && is_near(*beta, 0.5) =>
            {
                Some(Activation::HardSwish)
            }
            Activation::Tanh => match self.function_of(input)? {
                (Activation::Softplus { beta: 1.0, .. }, inner) if inner == x => {
                    Some(Activation::Mish)
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// x (1 + erf(x / √2)) or its tanh approximation, with the remaining factor.
    fn gelu(&self, x: Source, gate: Source) -> Option<(Activation, Source, f64)> {
        let (before, shift, input) = self.scaled(x);
        // The gate is f + f erf(..).
        let (factor, offset, curve) = self.scaled(gate);
        if shift != 0.0 || !is_near(offset, factor) || factor == 1.0 && offset != 1.0 {
            return None;
        }
        let left = before * factor / 0.5;
        match self.function_of(curve)? {
            (Activation::Erf, inner) => {
                let is_root = self.scaled(inner);
                let fits = is_near(is_root.0, std::f64::consts::FRAC_1_SQRT_2)
                    && is_root.1 == 0.0
                    && is_root.2 == input;
                fits.then_some((Activation::Gelu, input, left))
            }
            (Activation::Tanh, inner) => {
                let (root, shift, sum) = self.scaled(inner);
                let (LayerKind::Add, [a, b]) = self.builder.layer(sum)? else {
                    return None;
                };
                let is_cubic = |source: Source| match self.monomial(source, input, 0) {
                    Some((factor, power)) => is_near(factor, 0.044_715) && power == 3.0,
                    None => false,
                };
                let has_both = (*a == input && is_cubic(*b)) || (*b == input && is_cubic(*a));
                let is_root = is_near(root, (2.0 / std::f64::consts::PI).sqrt()) && shift == 0.0;
                (has_both && is_root).then_some((Activation::GeluTanh, input, left))
            }
            _ => None,
        }
    }

    /// A factor and a power, if a source is a power of x: nested products, in any order.
    fn monomial(&self, source: Source, x: Source, depth: usize) -> Option<(f64, f64)> {
        const MOST: usize = 6;
        if source == x {
            return Some((1.0, 1.0));
        }
        if depth > MOST {
            return None;
        }
        match self.builder.layer(source)? {
            (LayerKind::Activation(Activation::Power { exponent }), [input]) => {
                let (factor, power) = self.monomial(*input, x, depth + 1)?;
                Some((factor.powf(*exponent), power * exponent))
            }
            (
                LayerKind::Activation(Activation::Scale {
                    factor,
                    offset: 0.0,
                }),
                [input],
            ) => {
                let (inner, power) = self.monomial(*input, x, depth + 1)?;
                Some((factor * inner, power))
            }
            (LayerKind::Multiply, [a, b]) => {
                let (a, b) = (
                    self.monomial(*a, x, depth + 1)?,
                    self.monomial(*b, x, depth + 1)?,
                );
                Some((a.0 * b.0, a.1 + b.1))
            }
            _ => None,
        }
    }

    fn is_square_of(&self, source: Source, x: Source) -> bool {
        self.monomial(source, x, 0) == Some((1.0, 2.0))
    }

    /// The first half of the last axis, gated by the second.
    fn glu(&self, x: Source, gate: Source) -> Option<Source> {
        let (Activation::Sigmoid, gate) = self.function_of(gate)? else {
            return None;
        };
        let part = |source: Source| match self.builder.layer(source)? {
            (
                LayerKind::Slice {
                    axis,
                    start,
                    end: Some(end),
                },
                [input],
            ) => Some((*input, *axis, *start, *end)),
            _ => None,
        };
        let (first, second) = (part(x)?, part(gate)?);
        let dims = self.builder.dims(first.0);
        let half = *dims.last()? as i64 / 2;
        let last = dims.len() as i64 - 1;
        let is_glu =
            first == (second.0, last, 0, half) && second == (first.0, last, half, 2 * half);
        is_glu.then_some(first.0)
    }

    fn softsign(&self, x: Source, below: Source) -> Option<Source> {
        let (1.0, 1.0, absolute) = self.scaled(below) else {
            return None;
        };
        match self.function_of(absolute)? {
            (Activation::Abs, input) if input == x => Some(x),
            _ => None,
        }
    }

    /// The input of the mean over the last axis that gives a source, whether the axis is kept or not.
    fn mean_of(&self, source: Source) -> Option<Source> {
        let (kind, inputs) = self.builder.layer(source)?;
        let (kind, inputs) = match kind {
            LayerKind::Reshape { .. } => self.builder.layer(*inputs.first()?)?,
            _ => (kind, inputs),
        };
        let LayerKind::Reduce {
            operation: Reduction::Mean,
            axis,
        } = kind
        else {
            return None;
        };
        let input = *inputs.first()?;
        (*axis as usize + 1 == self.builder.dims(input).len()).then_some(input)
    }

    /// The input of (mean + epsilon) to a power: the values, and epsilon.
    fn root(&self, source: Source, exponent: f64) -> Option<(Source, f64)> {
        // The axis of the mean may be restored after the root.
        let inner = match self.builder.layer(source)? {
            (LayerKind::Reshape { .. }, [inner]) => *inner,
            _ => source,
        };
        let (Activation::Power { exponent: found }, sum) = self.function_of(inner)? else {
            return None;
        };
        let (factor, epsilon, mean) = self.scaled(sum);
        let epsilon = super::attributes::digits(epsilon as f32);
        let fits = *found == exponent && factor == 1.0 && epsilon > 0.0;
        Some((self.mean_of(mean)?, epsilon)).filter(|_| fits)
    }

    fn rms(&self, x: Source, factor: Source) -> Option<(Source, f64)> {
        let found = self.root(factor, -0.5).or_else(|| {
            // 1 / √(..), whose axis may be restored at the end.
            let inner = match self.builder.layer(factor)? {
                (LayerKind::Reshape { .. }, [inner]) => *inner,
                _ => factor,
            };
            match self.function_of(inner)? {
                (Activation::Power { exponent: -1.0 }, root) => self.root(root, 0.5),
                _ => None,
            }
        });
        found
            .filter(|(squares, _)| self.is_square_of(*squares, x) && self.is_by_row(factor, x))
            .map(|(_, epsilon)| (x, epsilon))
    }

    /// (x - mean) / √(variance + ε).
    fn layer_norm_of(&self, difference: Source, root: Source) -> Option<(Source, f64)> {
        let (
            LayerKind::Pairwise {
                operation: Pairwise::Subtract,
            },
            [x, mean],
        ) = self.builder.layer(difference)?
        else {
            return None;
        };
        let (squares, epsilon) = self.root(root, 0.5)?;
        let is_by_row = self.is_by_row(*mean, *x) && self.is_by_row(root, *x);
        let fits =
            is_by_row && self.mean_of(*mean) == Some(*x) && self.is_square_of(squares, difference);
        fits.then_some((*x, epsilon))
    }

    /// Whether a source has one number for each row of the last axis of x, and meets it there.
    fn is_by_row(&self, source: Source, x: Source) -> bool {
        let (dims, whole) = (self.builder.dims(source), self.builder.dims(x));
        match (whole.split_last(), dims.split_last()) {
            (Some((_, rows)), Some((1, own))) => own == rows,
            // Items of one axis have one number.
            (Some((_, [])), None) => true,
            _ => false,
        }
    }

    /// A norm over the last axis, without a scale yet.
    fn norm(&mut self, input: Source, norm: Norm) -> Read<Source> {
        let width = self.builder.dims(input).last().copied().unwrap_or(1);
        let source = self.builder.plain(LayerKind::Norm(norm), &[input])?;
        self.builder
            .give(source, "weight", vec![width], vec![1.0; width]);
        Ok(source)
    }
}
