//! Element-wise functions.

use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::model::layer_spec::Source;

use crate::onnx::import::attributes::{digits, flag, float, operator, rounded, text};
use crate::onnx::import::reader::{Live, Reader};
use crate::onnx::import::refused::Read;
use crate::onnx::messages::NodeProto;

impl Reader<'_> {
    /// The function of an operator, if it is an element-wise one.
    pub(super) fn function(&self, node: &NodeProto) -> Read<Option<Activation>> {
        let number = |name: &str, usual: f64| float(node, name, usual);
        let scale = |factor: f64| Activation::Scale {
            factor,
            offset: 0.0,
        };
        Ok(Some(match operator(node) {
            "Relu" => Activation::Relu,
            "LeakyRelu" => Activation::LeakyRelu {
                negative_slope: number("alpha", 0.01),
            },
            "ThresholdedRelu" => Activation::ThresholdedRelu {
                alpha: number("alpha", 1.0),
            },
            "Gelu" if text(node, "approximate").as_deref() == Some("tanh") => Activation::GeluTanh,
            "Gelu" => Activation::Gelu,
            "Mish" => Activation::Mish,
            "Elu" => Activation::Elu {
                alpha: number("alpha", 1.0),
            },
            "Celu" => Activation::Celu {
                alpha: number("alpha", 1.0),
            },
            "Selu" => {
                let [alpha, gamma] = [number("alpha", 1.673_263_2), number("gamma", 1.050_701)];
                if (alpha - 1.673_263_2).abs() > 1e-4 || (gamma - 1.050_701).abs() > 1e-4 {
                    return Err("its `alpha` and `gamma` differ from those of the paper".into());
                }
                Activation::Selu
            }
            "Tanh" => Activation::Tanh,
            "Sigmoid" => Activation::Sigmoid,
            "Softplus" => Activation::Softplus {
                beta: 1.0,
                threshold: 20.0,
            },
            "Softsign" => Activation::Softsign,
            "HardSigmoid" => hard_sigmoid(number("alpha", 0.2), number("beta", 0.5)),
            "HardSwish" => Activation::HardSwish,
            "Swish" if number("alpha", 1.0) == 1.0 => Activation::Silu,
            "Shrink" => Activation::Shrink {
                lambda: number("lambd", 0.5),
                bias: number("bias", 0.0),
            },
            "Clip" => return self.clip(node).map(Some),
            "Exp" => Activation::Exp,
            "Abs" => Activation::Abs,
            "Erf" => Activation::Erf,
            "Neg" => scale(-1.0),
            "Sqrt" => Activation::Power { exponent: 0.5 },
            "Reciprocal" => Activation::Power { exponent: -1.0 },
            _ => return Ok(None),
        }))
    }

    fn clip(&self, node: &NodeProto) -> Read<Activation> {
        const LIMIT: f64 = f32::MAX as f64;
        let bound = |name: &str, at: usize, usual: f64| match self.constant(node, at) {
            Some(bound) => bound.single().map(digits),
            None if node.input.get(at).is_some_and(|name| !name.is_empty()) => None,
            None => Some(float(node, name, usual)),
        };
        let (Some(min), Some(max)) = (bound("min", 1, -LIMIT), bound("max", 2, LIMIT)) else {
            return Err("its bounds are computed from the inputs of the graph".into());
        };
        Ok(match (min, max) {
            (0.0, 6.0) => Activation::Relu6,
            (0.0, max) if max >= LIMIT => Activation::Relu,
            (min, max) => Activation::Hardtanh {
                min: min.max(-LIMIT),
                max: max.min(LIMIT),
            },
        })
    }

    /// Applies a function to the first input of a node, regardless of its axes.
    pub(super) fn apply(&mut self, node: &NodeProto, function: Activation) -> Read {
        let live = self.live(node, 0)?;
        let source = self.activated(function, live.source)?;
        self.put(node, source, live.view)
    }

    /// A function of a layer's output; consecutive scales are merged, and those without an effect are omitted.
    pub fn activated(&mut self, function: Activation, source: Source) -> Read<Source> {
        let mut input = source;
        let mut function = function;
        if let Activation::Scale { factor, offset } = function
            && let Some((
                LayerKind::Activation(Activation::Scale {
                    factor: before,
                    offset: shift,
                }),
                [inner],
            )) = self.builder.layer(source)
        {
            input = *inner;
            function = Activation::Scale {
                factor: factor * before,
                offset: factor * shift + offset,
            };
        }
        if let Activation::Scale {
            factor,
            offset: 0.0,
        } = function
            && (factor - 1.0).abs() < 1e-7
        {
            return Ok(input);
        }
        if let Some((function, input)) = self.clipped_root(&function, input)? {
            let function = LayerKind::Activation(function);
            return self.builder.plain(function, &[input]);
        }
        if let Some(found) = self.recognized_function(&function, input)? {
            return Ok(found);
        }
        self.builder
            .plain(LayerKind::Activation(function), &[input])
    }

    /// max(√x, a) as √(max(x, a²)): the root of 0 has no finite derivative, which a clip behind it multiplies by 0 and
    /// thereby makes NaN. Vectors divided by their length end like this.
    fn clipped_root(
        &mut self,
        function: &Activation,
        input: Source,
    ) -> Read<Option<(Activation, Source)>> {
        /// Squares below this are not normal numbers in 32 bits.
        const LEAST: f64 = 1.2e-38;
        const LIMIT: f64 = f32::MAX as f64;
        let Activation::Hardtanh { min, max } = *function else {
            return Ok(None);
        };
        let root = match self.builder.layer(input) {
            Some((LayerKind::Activation(Activation::Power { exponent: 0.5 }), [inner])) => *inner,
            _ => return Ok(None),
        };
        if min <= 0.0 || min * min < LEAST || max < min {
            return Ok(None);
        }
        let clip = Activation::Hardtanh {
            min: rounded(min * min),
            max: (max * max).min(LIMIT),
        };
        let source = self.activated(clip, root)?;
        Ok(Some((Activation::Power { exponent: 0.5 }, source)))
    }

    pub(super) fn greater(&mut self, node: &NodeProto) -> Read {
        let live = self.live(node, 0)?;
        match self.constant(node, 1).and_then(|number| number.single()) {
            Some(number) => self.put_above(node, live, digits(number)),
            None => Err("it does not compare with a scalar".into()),
        }
    }

    /// A value where it is above a threshold, and a constant elsewhere; or a softplus, which is linear there.
    pub(super) fn threshold(&mut self, node: &NodeProto) -> Read {
        let other = || "it selects from values that are not constant".to_owned();
        let (compared, threshold) = self.above(node, 0).ok_or_else(other)?;
        let live = self.live(node, 1)?;
        if let Some(value) = self.constant(node, 2).and_then(|value| value.single()) {
            if (compared.source, &compared.view) != (live.source, &live.view) {
                return Err(other().into());
            }
            let value = digits(value);
            let function = if value == 0.0 {
                Activation::ThresholdedRelu { alpha: threshold }
            } else {
                Activation::Threshold { threshold, value }
            };
            let source = self.activated(function, live.source)?;
            return self.put(node, source, live.view);
        }
        let soft = self.live(node, 2)?;
        if let (0.0, Some(negative_slope)) = (threshold, self.slope(&soft, &live))
            && (compared.source, &compared.view) == (live.source, &live.view)
        {
            let function = Activation::LeakyRelu { negative_slope };
            let source = self.activated(function, live.source)?;
            return self.put(node, source, live.view);
        }
        let (beta, source) = self.softplus_of(soft.source).ok_or_else(other)?;
        let scaled = self.activated(
            Activation::Scale {
                factor: beta,
                offset: 0.0,
            },
            live.source,
        )?;
        let is_same = source == live.source && soft.view == live.view && compared.view == live.view;
        if !is_same || self.layer_of(compared.source) != self.layer_of(scaled) {
            return Err(other().into());
        }
        let source = self.activated(Activation::Softplus { beta, threshold }, live.source)?;
        self.put(node, source, live.view)
    }

    /// The factor between a value and another one, if there is one.
    fn slope(&self, scaled: &Live, value: &Live) -> Option<f64> {
        match self.layer_of(scaled.source)? {
            (
                LayerKind::Activation(Activation::Scale {
                    factor,
                    offset: 0.0,
                }),
                inputs,
            ) if inputs == [value.source] && scaled.view == value.view => Some(factor),
            _ => None,
        }
    }

    /// Operators that pass a value on unchanged.
    pub(super) fn pass(&mut self, node: &NodeProto) -> Read {
        let Live { source, view } = self.live(node, 0)?;
        match self.cast_type(node).unwrap_or(1) {
            1 | 10 | 11 | 16 => {}
            9 => return Err("it turns numbers into booleans".into()),
            // Only items are known to be integers already.
            6 | 7 | 12 | 13 if source == Source::Items && self.is_of_integers => {}
            _ => return Err("it rounds numbers to integers".into()),
        }
        self.put_at(node, 0, source, view)
    }

    pub(super) fn dropout(&mut self, node: &NodeProto) -> Read {
        if self.is_used(node, 1) {
            return Err("its mask is used".into());
        }
        let live = self.live(node, 0)?;
        let ratio = match self.constant(node, 1).and_then(|ratio| ratio.single()) {
            Some(ratio) => digits(ratio),
            None => float(node, "ratio", 0.5),
        };
        if flag(node, "is_test") || !(0.0..1.0).contains(&ratio) || ratio == 0.0 {
            return self.put_at(node, 0, live.source, live.view);
        }
        let kind = LayerKind::Dropout { probability: ratio };
        let source = self.builder.plain(kind, &[live.source])?;
        self.put(node, source, live.view)
    }
}

/// A hard sigmoid, with a slope as close to one sixth as possible.
fn hard_sigmoid(alpha: f64, beta: f64) -> Activation {
    let is_sixth = (alpha - 1.0 / 6.0).abs() < 1e-6;
    Activation::HardSigmoid {
        alpha: if is_sixth { 1.0 / 6.0 } else { alpha },
        beta,
    }
}
