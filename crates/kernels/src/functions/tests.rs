//! Errors of the functions compared with 64-bit results, over a sample of all floats, by class.

use super::*;

/// The distance of two numbers in floats; very large if only one of them is NaN.
fn ulps(ours: f32, exact: f64) -> f64 {
    if exact.is_nan() || ours.is_nan() {
        return if exact.is_nan() == ours.is_nan() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    let rounded = exact as f32;
    if rounded == ours {
        return 0.0;
    }
    if rounded.is_infinite() || ours.is_infinite() {
        // One place beyond the largest float is infinity.
        let order = |x: f32| f64::from(x.abs().to_bits());
        return (order(rounded) - order(ours)).abs();
    }
    let place = f64::from(f32::from_bits(rounded.abs().to_bits().max(1)));
    let next = f64::from(f32::from_bits(rounded.abs().to_bits() + 1));
    (f64::from(ours) - exact).abs() / (next - place)
}

/// Every 197th float of both signs: all exponents, subnormals too, and the special ones.
fn floats() -> impl Iterator<Item = f32> {
    let sizes = (0..=f32::INFINITY.to_bits()).step_by(197);
    let special = [0.0, f32::MIN_POSITIVE, f32::MAX, f32::INFINITY, f32::NAN];
    let sizes = sizes.map(f32::from_bits).chain(special);
    sizes.flat_map(|size| [size, -size])
}

/// The class of a float, by which bounds are stated.
fn class(x: f32) -> &'static str {
    match x.abs() {
        size if !size.is_finite() => "special",
        size if size < f32::MIN_POSITIVE => "subnormal",
        size if size < 1e-4 => "tiny",
        size if size < 1.0 => "below 1",
        size if size < 128.0 => "usual",
        _ => "large",
    }
}

fn assert_within(name: &str, bound: f64, ours: fn(f32) -> f32, exact: fn(f64) -> f64) {
    assert_within_of(name, bound, ours, exact, |_| true);
}

fn assert_within_of(
    name: &str,
    bound: f64,
    ours: fn(f32) -> f32,
    exact: fn(f64) -> f64,
    is_meant: fn(f32) -> bool,
) {
    let mut worst = std::collections::BTreeMap::<&str, (f64, f32)>::new();
    for x in floats().filter(|x| is_meant(*x)) {
        let error = ulps(ours(x), exact(f64::from(x)));
        let entry = worst.entry(class(x)).or_insert((0.0, x));
        if error > entry.0 {
            *entry = (error, x);
        }
    }
    for (class, (error, at)) in worst {
        assert!(
            error <= bound,
            "{name} of {at:e} ({class}) is {error} ulp off"
        );
    }
}

/// The error function in 64 bits: the series of Abramowitz and Stegun 7.1.6, and the continued fraction 7.1.14 for the
/// complement.
fn exact_erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let size = x.abs();
    if size > 6.0 {
        return x.signum();
    }
    if size < 2.5 {
        let (mut term, mut sum) = (size, size);
        for n in 1..200 {
            term *= 2.0 * size * size / (2 * n + 1) as f64;
            sum += term;
        }
        let sum = sum * std::f64::consts::FRAC_2_SQRT_PI * (-size * size).exp();
        return sum.copysign(x);
    }
    let mut below = size;
    for n in (1..120).rev() {
        below = size + f64::from(n) / 2.0 / below;
    }
    let rest = (-size * size).exp() / below / std::f64::consts::PI.sqrt();
    (1.0 - rest).copysign(x)
}

#[test]
fn exponentials_are_within_their_bounds() {
    assert_within("exp", 1.0, exp, f64::exp);
    assert_within("exp_m1", 2.0, exp_m1, f64::exp_m1);
    assert_within("sigmoid", 2.0, sigmoid, |x| {
        let small = (-x.abs()).exp();
        if x < 0.0 {
            small / (1.0 + small)
        } else {
            1.0 / (1.0 + small)
        }
    });
}

#[test]
fn logarithms_are_within_their_bounds() {
    assert_within("ln", 1.0, ln, f64::ln);
    assert_within_of("ln_1p", 2.0, ln_1p, f64::ln_1p, |x| x >= 0.0 || x.is_nan());
}

#[test]
fn tanh_and_erf_are_within_their_bounds() {
    assert_within("tanh", 2.0, tanh, f64::tanh);
    assert_within("erf", 2.0, erf, exact_erf);
}

#[test]
fn the_normal_distribution_and_the_slope_of_gelu_are_within_their_bounds() {
    let exact_below = |x: f64| {
        // Without cancellation, the continued fraction of the complement.
        let size = x.abs();
        if size < 2.0 {
            return 0.5 + 0.5 * exact_erf(x * std::f64::consts::FRAC_1_SQRT_2);
        }
        let mut part = size;
        for n in (1..200).rev() {
            part = size + f64::from(n) / part;
        }
        let beyond = (-0.5 * size * size).exp() / part / std::f64::consts::TAU.sqrt();
        if x < 0.0 { beyond } else { 1.0 - beyond }
    };
    let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    for x in floats().filter(|x| x.is_finite()) {
        let at = f64::from(x);
        let below = exact_below(at);
        let found = f64::from(normal_below(x));
        assert!(
            (found - below).abs() <= 1.2e-7,
            "{x:e}: {found} for {below}"
        );
        let is_cut = x <= -NORMAL_END;
        assert!(is_cut || x >= 0.0 || (found - below).abs() <= 1e-5 * below);
        let slope = if at.abs() > 40.0 {
            below
        } else {
            below + at * density(at)
        };
        let found = f64::from(gelu_slope(x));
        assert!((found - slope).abs() <= 2e-7, "{x:e}: {found} for {slope}");
    }
    for function in [normal_below, gelu_slope] {
        assert!(function(f32::NAN).is_nan());
        assert_eq!(
            [-5.7, -f32::INFINITY, 5.7, f32::INFINITY].map(function),
            [0.0, 0.0, 1.0, 1.0]
        );
    }
}

#[test]
fn signs_of_zero_stay() {
    for function in [tanh, erf, exp_m1] {
        assert_eq!(function(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(function(0.0).to_bits(), 0.0f32.to_bits());
    }
}
