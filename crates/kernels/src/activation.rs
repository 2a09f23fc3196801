//! Element-wise activation functions and their gradients.
//!
//! For functions whose derivative is a function of their output, the output is kept for the backward pass, otherwise
//! the input. Where a derivative is 0, the gradient is 0 even if the incoming gradient is infinite; NaN stays NaN in
//! both directions.

#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::functions::{
    erf, exp, exp_m1, gelu_slope, ln, ln_1p, normal_below, sigmoid, tanh, within,
};
use super::scratch::{PIECE, changed_copy};
use super::vectors::vectorized;

const FRAC_2_SQRT_PI: f32 = std::f32::consts::FRAC_2_SQRT_PI;
/// The root of 2 / pi, for the tanh form of GELU (Hendrycks and Gimpel, 2016).
const GELU_SCALE: f32 = 0.797_884_6;
const GELU_CUBE: f32 = 0.044_715;
/// Constants of Klambauer et al., 2017.
const SELU_ALPHA: f32 = 1.673_263_2;
const SELU_SCALE: f32 = 1.050_701;

/// An element-wise function, as documented by PyTorch under the same name.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(
    missing_docs,
    reason = "parameters have the names that they have there"
)]
pub enum Activation {
    Relu,
    LeakyRelu {
        negative_slope: f32,
    },
    /// As [`Activation::Threshold`] with a value of 0.
    ThresholdedRelu {
        alpha: f32,
    },
    Gelu,
    GeluTanh,
    Silu,
    Mish,
    Elu {
        alpha: f32,
    },
    Celu {
        alpha: f32,
    },
    Selu,
    Tanh,
    Sigmoid,
    LogSigmoid,
    Softplus {
        beta: f32,
        threshold: f32,
    },
    Softsign,
    Tanhshrink,
    /// `alpha x + beta` between 0 and 1.
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    HardSwish,
    /// Also `relu6`, between 0 and 6.
    Hardtanh {
        min: f32,
        max: f32,
    },
    HardShrink {
        lambda: f32,
    },
    SoftShrink {
        lambda: f32,
    },
    /// Numbers beyond `lambda`, moved toward zero by `bias`.
    Shrink {
        lambda: f32,
        bias: f32,
    },
    Threshold {
        threshold: f32,
        value: f32,
    },
    Exp,
    Erf,
    /// The natural logarithm.
    Log,
}

impl Activation {
    /// Whether the backward pass needs the output instead of the input.
    pub fn keeps_output(self) -> bool {
        match self {
            Activation::Relu | Activation::Tanh | Activation::Sigmoid | Activation::Exp => true,
            Activation::Hardtanh { min, max } => min < max,
            _ => false,
        }
    }

    /// Applies the function in place.
    pub fn apply(self, values: &mut [f32]) {
        let pieces = values.par_chunks_mut(PIECE);
        pieces.for_each(|piece| apply_to_piece(self, piece));
    }

    /// Applies the function to each number.
    pub fn forward(self, x: &[f32]) -> Vec<f32> {
        changed_copy(x, |_, piece| apply_to_piece(self, piece))
    }

    /// Multiplies each gradient by the derivative; `seen` is the function's input or output: see
    /// [`Activation::keeps_output`].
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn backward(self, seen: &[f32], gradient: &mut [f32]) {
        assert_eq!(seen.len(), gradient.len());
        let pieces = gradient.par_chunks_mut(PIECE).zip(seen.par_chunks(PIECE));
        pieces.for_each(|(gradient, seen)| backward_of_piece(self, seen, gradient));
    }
}

vectorized! {
    pub(crate) fn apply_to_piece = apply_now(which: Activation, values: &mut [f32]);
}

vectorized! {
    pub(crate) fn backward_of_piece = backward_now(which: Activation, seen: &[f32], gradient: &mut [f32]);
}

/// A loop that replaces each number; a macro, because a closure would not inherit the function's target features.
macro_rules! each {
    ($values:expr, $x:ident => $result:expr) => {
        for value in $values {
            let $x = *value;
            *value = $result;
        }
    };
}

#[inline(always)]
fn apply_now(which: Activation, values: &mut [f32]) {
    match which {
        Activation::Relu => each!(values, x => if x <= 0.0 { 0.0 } else { x }),
        Activation::LeakyRelu { negative_slope } => {
            each!(values, x => if x < 0.0 { x * negative_slope } else { x });
        }
        Activation::ThresholdedRelu { alpha } => {
            each!(values, x => if x <= alpha { 0.0 } else { x });
        }
        Activation::Gelu => each!(values, x => x * normal_below(x)),
        Activation::GeluTanh => {
            each!(values, x => 0.5 * x * (1.0 + tanh(GELU_SCALE * (x + GELU_CUBE * (x * x * x)))));
        }
        Activation::Silu => each!(values, x => x * sigmoid(x)),
        Activation::Mish => each!(values, x => x * tanh_of_softplus(x)),
        Activation::Elu { alpha } => {
            each!(values, x => if x > 0.0 { x } else { alpha * exp_m1(x) });
        }
        Activation::Celu { alpha } => {
            each!(values, x => if x > 0.0 { x } else { alpha * exp_m1(x / alpha) });
        }
        Activation::Selu => {
            each!(values, x => SELU_SCALE * if x > 0.0 { x } else { SELU_ALPHA * exp_m1(x) });
        }
        Activation::Tanh => each!(values, x => tanh(x)),
        Activation::Sigmoid => each!(values, x => sigmoid(x)),
        Activation::LogSigmoid => {
            each!(values, x => (if x > 0.0 { 0.0 } else { x }) - ln_1p(exp(-x.abs())));
        }
        Activation::Softplus { beta, threshold } => each!(values, x => {
            let scaled = x * beta;
            let above = if scaled < 0.0 { 0.0 } else { scaled };
            let value = (above + ln_1p(exp(-scaled.abs()))) / beta;
            if scaled > threshold { x } else { value }
        }),
        Activation::Softsign => each!(values, x => x / (1.0 + x.abs())),
        Activation::Tanhshrink => each!(values, x => x - tanh(x)),
        Activation::HardSigmoid { alpha, beta } => {
            each!(values, x => within(alpha * x + beta, 0.0, 1.0));
        }
        Activation::HardSwish => each!(values, x => x * within(x / 6.0 + 0.5, 0.0, 1.0)),
        Activation::Hardtanh { min, max } => each!(values, x => within(x, min, max)),
        Activation::HardShrink { lambda } => {
            each!(values, x => if x.abs() <= lambda { 0.0 } else { x });
        }
        Activation::SoftShrink { lambda } => {
            each!(values, x => if x.abs() <= lambda { 0.0 } else { x - lambda.copysign(x) });
        }
        Activation::Shrink { lambda, bias } => {
            each!(values, x => if x.abs() <= lambda { 0.0 } else { x - signed(bias, x) });
        }
        Activation::Threshold { threshold, value } => {
            each!(values, x => if x <= threshold { value } else { x });
        }
        Activation::Exp => each!(values, x => exp(x)),
        Activation::Erf => each!(values, x => erf(x)),
        Activation::Log => each!(values, x => ln(x)),
    }
}

/// `bias` with the sign of x.
#[inline(always)]
fn signed(bias: f32, x: f32) -> f32 {
    if x < 0.0 { -bias } else { bias }
}

/// With e = exp(x), tanh(ln(1 + e)) is n / (n + 2) for n = e (e + 2).
#[inline(always)]
fn tanh_of_softplus(x: f32) -> f32 {
    let e = exp(if x > 20.0 { 20.0 } else { x });
    let n = e * (e + 2.0);
    n / (n + 2.0)
}

/// The same for gradients, with the kept value for each.
macro_rules! scale {
    ($seen:expr, $gradient:expr, ($s:ident, $g:ident) => $result:expr) => {
        for (seen, gradient) in $seen.iter().zip($gradient) {
            let ($s, $g) = (*seen, *gradient);
            *gradient = $result;
        }
    };
}

#[inline(always)]
fn backward_now(which: Activation, seen: &[f32], gradient: &mut [f32]) {
    match which {
        Activation::Relu => scale!(seen, gradient, (y, g) => if y <= 0.0 { 0.0 } else { g }),
        Activation::LeakyRelu { negative_slope } => {
            // At zero as in PyTorch.
            scale!(seen, gradient, (x, g) => if x <= 0.0 { g * negative_slope } else { g });
        }
        Activation::ThresholdedRelu { alpha: threshold }
        | Activation::Threshold { threshold, .. } => {
            scale!(seen, gradient, (x, g) => if x <= threshold { 0.0 } else { g });
        }
        Activation::Gelu => scale!(seen, gradient, (x, g) => g * gelu_slope(x)),
        Activation::GeluTanh => scale!(seen, gradient, (x, g) => {
            let x = within(x, -20.0, 20.0);
            let square = x * x;
            let t = tanh(GELU_SCALE * (x + GELU_CUBE * (square * x)));
            let inner = GELU_SCALE * (1.0 + 3.0 * GELU_CUBE * square);
            g * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner)
        }),
        Activation::Silu => scale!(seen, gradient, (x, g) => {
            let x = within(x, -104.0, 104.0);
            let s = sigmoid(x);
            g * (s * (1.0 + x * (1.0 - s)))
        }),
        Activation::Mish => scale!(seen, gradient, (x, g) => {
            let x = within(x, -104.0, 104.0);
            let t = tanh_of_softplus(x);
            g * (t + x * sigmoid(x) * (1.0 - t * t))
        }),
        Activation::Elu { alpha } => {
            scale!(seen, gradient, (x, g) => if x > 0.0 { g } else { g * (alpha * exp(x)) });
        }
        Activation::Celu { alpha } => {
            scale!(seen, gradient, (x, g) => if x > 0.0 { g } else { g * exp(x / alpha) });
        }
        Activation::Selu => scale!(seen, gradient, (x, g) => {
            g * (SELU_SCALE * if x > 0.0 { 1.0 } else { SELU_ALPHA * exp(x) })
        }),
        Activation::Tanh => scale!(seen, gradient, (y, g) => g * (1.0 - y * y)),
        Activation::Sigmoid => scale!(seen, gradient, (y, g) => g * (y * (1.0 - y))),
        Activation::LogSigmoid => scale!(seen, gradient, (x, g) => g * sigmoid(-x)),
        Activation::Softplus { beta, threshold } => scale!(seen, gradient, (x, g) => {
            let scaled = x * beta;
            if scaled > threshold { g } else { g * sigmoid(scaled) }
        }),
        Activation::Softsign => scale!(seen, gradient, (x, g) => {
            let below = 1.0 + x.abs();
            g / (below * below)
        }),
        Activation::Tanhshrink => scale!(seen, gradient, (x, g) => {
            let t = tanh(x);
            g * (t * t)
        }),
        Activation::HardSigmoid { alpha, beta } => scale!(seen, gradient, (x, g) => {
            let value = alpha * x + beta;
            if (value <= 0.0) | (value >= 1.0) { 0.0 } else { g * alpha }
        }),
        Activation::HardSwish => scale!(seen, gradient, (x, g) => {
            let inside = g * (x / 3.0 + 0.5);
            let inside = if x >= 3.0 { g } else { inside };
            if x <= -3.0 { 0.0 } else { inside }
        }),
        Activation::Hardtanh { min, max } => {
            scale!(seen, gradient, (y, g) => if (y <= min) | (y >= max) { 0.0 } else { g });
        }
        Activation::HardShrink { lambda }
        | Activation::SoftShrink { lambda }
        | Activation::Shrink { lambda, .. } => {
            scale!(seen, gradient, (x, g) => if x.abs() <= lambda { 0.0 } else { g });
        }
        Activation::Exp => scale!(seen, gradient, (y, g) => g * y),
        // The density of the normal distribution with half its variance.
        Activation::Erf => scale!(seen, gradient, (x, g) => g * (FRAC_2_SQRT_PI * exp(-(x * x)))),
        Activation::Log => scale!(seen, gradient, (x, g) => g / x),
    }
}
