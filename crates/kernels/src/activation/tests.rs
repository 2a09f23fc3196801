//! Functions and derivatives compared with 64-bit computations, and the handling of infinity and NaN.

use proptest::prelude::*;

use super::*;
use crate::tests::numbers;

/// A function and its definition in 64 bits.
type Case = (Activation, fn(f64) -> f64);

/// Every function.
fn all() -> Vec<Case> {
    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }
    fn elu(x: f64, alpha: f64) -> f64 {
        if x > 0.0 { x } else { alpha * x.exp_m1() }
    }
    fn shrink(x: f64, lambda: f64, bias: f64) -> f64 {
        if x > lambda {
            x - bias
        } else if x < -lambda {
            x + bias
        } else {
            0.0
        }
    }
    let all: Vec<Case> = vec![
        (Activation::Relu, |x| x.max(0.0)),
        (
            Activation::LeakyRelu {
                negative_slope: 0.25,
            },
            |x| if x < 0.0 { 0.25 * x } else { x },
        ),
        (Activation::ThresholdedRelu { alpha: 0.5 }, |x| {
            if x > 0.5 { x } else { 0.0 }
        }),
        // In 64 bits, the error function is the integral of its density.
        (Activation::Gelu, |x| {
            let steps = 2000;
            let step = x / f64::from(steps);
            let density = |at: f64| (-0.5 * at * at).exp() / std::f64::consts::TAU.sqrt();
            let middles = (0..steps).map(|at| density((f64::from(at) + 0.5) * step));
            x * (0.5 + middles.sum::<f64>() * step)
        }),
        (Activation::GeluTanh, |x| {
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
            0.5 * x * (1.0 + inner.tanh())
        }),
        (Activation::Silu, |x| x * sigmoid(x)),
        (Activation::Mish, |x| x * x.exp().ln_1p().tanh()),
        (Activation::Elu { alpha: 1.5 }, |x| elu(x, 1.5)),
        (Activation::Celu { alpha: 0.5 }, |x| elu(x / 0.5, 1.0) * 0.5),
        (Activation::Selu, |x| {
            1.050_700_987_355_480_5 * elu(x, 1.673_263_242_354_377_2)
        }),
        (Activation::Tanh, f64::tanh),
        (Activation::Exp, f64::exp),
        (Activation::Erf, |x| {
            let steps = 2000;
            let step = x / f64::from(steps);
            let density = |at: f64| (-at * at).exp() * std::f64::consts::FRAC_2_SQRT_PI;
            let middles = (0..steps).map(|at| density((f64::from(at) + 0.5) * step));
            middles.sum::<f64>() * step
        }),
        (Activation::Sigmoid, sigmoid),
        (Activation::LogSigmoid, |x| -(-x).exp().ln_1p()),
        (
            Activation::Softplus {
                beta: 2.0,
                threshold: 20.0,
            },
            |x| (2.0 * x).exp().ln_1p() / 2.0,
        ),
        (Activation::Softsign, |x| x / (1.0 + x.abs())),
        (Activation::Tanhshrink, |x| x - x.tanh()),
        (
            Activation::HardSigmoid {
                alpha: 0.2,
                beta: 0.5,
            },
            |x| (0.2 * x + 0.5).clamp(0.0, 1.0),
        ),
        (Activation::HardSwish, |x| {
            x * (x / 6.0 + 0.5).clamp(0.0, 1.0)
        }),
        (
            Activation::Hardtanh {
                min: -1.5,
                max: 0.5,
            },
            |x| x.clamp(-1.5, 0.5),
        ),
        (Activation::HardShrink { lambda: 0.5 }, |x| {
            shrink(x, 0.5, 0.0)
        }),
        (Activation::SoftShrink { lambda: 0.5 }, |x| {
            shrink(x, 0.5, 0.5)
        }),
        (
            Activation::Shrink {
                lambda: 0.5,
                bias: 0.25,
            },
            |x| shrink(x, 0.5, 0.25),
        ),
        (
            Activation::Threshold {
                threshold: 0.25,
                value: -1.0,
            },
            |x| if x > 0.25 { x } else { -1.0 },
        ),
    ];
    all
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    /// Outputs are close to the definition, and gradients to its finite differences, except near a kink.
    #[test]
    fn functions_and_derivatives_are_those_of_the_definition(len in 0usize..70, seed in 0u64..1 << 32) {
        let x: Vec<f32> = numbers(len, seed).iter().map(|x| 8.0 * x).collect();
        let gradient = numbers(len, seed ^ 1);
        for (which, exact) in all() {
            let y = which.forward(&x);
            let mut in_place = x.clone();
            which.apply(&mut in_place);
            prop_assert_eq!(&y, &in_place);
            let mut found = gradient.clone();
            which.backward(if which.keeps_output() { &y } else { &x }, &mut found);
            for at in 0..len {
                let at_x = f64::from(x[at]);
                let wanted = exact(at_x);
                prop_assert!((f64::from(y[at]) - wanted).abs() < 1e-6 * (1.0 + at_x.abs()), "{:?} of {}", which, at_x);
                let step = 1e-4;
                let sides = [exact(at_x + step) - wanted, wanted - exact(at_x - step)].map(|d| d / step);
                // Half of what the two sides differ by, at most, is the error that a kink between them makes.
                if (sides[0] - sides[1]).abs() < 1e-3 {
                    let wanted = (sides[0] + sides[1]) / 2.0 * f64::from(gradient[at]);
                    prop_assert!((f64::from(found[at]) - wanted).abs() < 1e-3, "{:?} at {}: {} for {}", which, at_x, found[at], wanted);
                }
            }
        }
    }
}

/// The derivatives that PyTorch has where there are none.
#[test]
fn kinks_have_the_slopes_of_pytorch() {
    let kinks: [(Activation, &[(f32, f32)]); 7] = [
        (Activation::Relu, &[(0.0, 0.0)]),
        (
            Activation::LeakyRelu {
                negative_slope: 0.25,
            },
            &[(0.0, 0.25)],
        ),
        (Activation::Elu { alpha: 1.5 }, &[(0.0, 1.5)]),
        (Activation::Selu, &[(0.0, SELU_SCALE * SELU_ALPHA)]),
        (
            Activation::Hardtanh {
                min: -1.0,
                max: 1.0,
            },
            &[(-1.0, 0.0), (1.0, 0.0)],
        ),
        (Activation::HardSwish, &[(-3.0, 0.0), (3.0, 1.0)]),
        (
            Activation::SoftShrink { lambda: 0.5 },
            &[(-0.5, 0.0), (0.5, 0.0)],
        ),
    ];
    for (function, slopes) in kinks {
        for (x, slope) in slopes {
            let mut gradient = [1.0];
            function.backward(&[*x], &mut gradient);
            assert_eq!(gradient, [*slope], "{function:?} at {x}");
        }
    }
}

#[test]
fn long_slices_are_computed_as_short_ones() {
    let x = numbers(3 * PIECE + 5, 3);
    for (which, _) in all() {
        let whole = which.forward(&x);
        for (at, piece) in x.chunks(1001).enumerate() {
            let short = which.forward(piece);
            assert_eq!(short, whole[at * 1001..][..piece.len()], "{which:?}");
        }
    }
}

#[test]
fn nan_stays_and_infinities_end_where_values_are_cut_off() {
    for (which, exact) in all() {
        let x = [f32::NAN, f32::INFINITY, 1.0, f32::NEG_INFINITY];
        let y = which.forward(&x);
        assert!(y[0].is_nan() && y[2].is_finite(), "{which:?}: {y:?}");
        // Beyond the range of the 64-bit definition, only NaN is checked.
        if ![
            Activation::Gelu,
            Activation::Mish,
            Activation::Silu,
            Activation::GeluTanh,
        ]
        .contains(&which)
            && !matches!(
                which,
                Activation::Softsign | Activation::Softplus { .. } | Activation::HardSwish
            )
        {
            for at in [1, 3] {
                let wanted = exact(f64::from(x[at])) as f32;
                assert!(
                    y[at] == wanted || wanted.is_nan(),
                    "{which:?} of {}: {}",
                    x[at],
                    y[at]
                );
            }
        }
        let seen = if which.keeps_output() {
            &y
        } else {
            &x.to_vec()
        };
        let mut gradient = [1.0; 4];
        which.backward(seen, &mut gradient);
        // The derivative of the exponential is infinite where it is.
        let ends = which == Activation::Exp || gradient[1].is_finite();
        assert!(
            ends && gradient[2].is_finite() && gradient[3].is_finite(),
            "{which:?}: {gradient:?}"
        );
    }
    let mut gradient = [f32::INFINITY, f32::NAN, f32::INFINITY];
    Activation::Relu.backward(&[0.0, 0.0, 2.0], &mut gradient);
    assert_eq!(gradient, [0.0, 0.0, f32::INFINITY]);
}
