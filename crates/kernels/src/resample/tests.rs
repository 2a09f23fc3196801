//! Resampling compared with the values that PyTorch gives, and gradients with slopes.

use proptest::prelude::*;

use super::{Method, Resample};
use crate::tests::numbers;

fn line(method: Method, aligns_corners: bool, output: usize) -> Vec<f32> {
    let resample = Resample {
        planes: 1,
        input: [1, 4],
        output: [1, output],
        method,
        aligns_corners,
    };
    resample.forward(&[1.0, 5.0, 2.0, -3.0])
}

/// Of `torch.nn.functional.interpolate`, for images of one row.
#[test]
fn values_are_those_of_pytorch() {
    for (method, aligns_corners, output, expected) in [
        (
            Method::Nearest,
            false,
            6,
            &[1.0, 1.0, 5.0, 2.0, 2.0, -3.0][..],
        ),
        (Method::Nearest, false, 3, &[1.0, 5.0, 2.0]),
        (Method::Linear, false, 6, &[1.0, 3.0, 4.5, 2.5, -0.5, -3.0]),
        (
            Method::Linear,
            true,
            7,
            &[1.0, 3.0, 5.0, 3.5, 2.0, -0.5, -3.0],
        ),
        (Method::Linear, false, 2, &[3.0, -0.5]),
        (Method::Linear, true, 1, &[1.0]),
        (
            Method::Cubic,
            true,
            7,
            &[1.0, 3.28125, 5.0, 4.34375, 2.0, -0.78125, -3.0],
        ),
        (
            Method::Cubic,
            false,
            5,
            &[0.757, 4.214751, 4.34375, 0.274252, -3.30375],
        ),
    ] {
        let found = line(method, aligns_corners, output);
        let is_near = |(found, expected): (&f32, &f32)| (found - expected).abs() < 1e-5;
        let are_near = found.len() == expected.len() && found.iter().zip(expected).all(is_near);
        assert!(are_near, "{method:?} {aligns_corners} {output}: {found:?}");
    }
}

fn resamples() -> impl Strategy<Value = Resample> {
    let method = prop_oneof![
        Just(Method::Nearest),
        Just(Method::Linear),
        Just(Method::Cubic)
    ];
    let size = || prop::array::uniform2(1..12usize);
    (1..6usize, size(), size(), method, any::<bool>()).prop_map(
        |(planes, input, output, method, aligns_corners)| Resample {
            planes,
            input,
            output,
            method,
            aligns_corners,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// The output is linear in the input: its product with a gradient is that of the input with the input's gradient.
    #[test]
    #[cfg_attr(miri, ignore = "takes hours there")]
    fn the_backward_pass_is_the_transposed_one(resample in resamples(), seed in 0..1000u64) {
        let [area_in, area] = [resample.input, resample.output].map(|size| size[0] * size[1]);
        let x = numbers(resample.planes * area_in, seed);
        let gradient = numbers(resample.planes * area, seed + 1);
        let product = |a: &[f32], b: &[f32]| -> f64 {
            a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        let forward = product(&resample.forward(&x), &gradient);
        let backward = product(&x, &resample.backward(&gradient));
        prop_assert!((forward - backward).abs() < 1e-4, "{forward} and {backward}");
    }

    /// Weights add up to one.
    #[test]
    #[cfg_attr(miri, ignore = "takes hours there")]
    fn a_constant_stays_what_it_is(resample in resamples()) {
        let x = vec![1.5; resample.planes * resample.input[0] * resample.input[1]];
        for value in resample.forward(&x) {
            prop_assert!((value - 1.5).abs() < 1e-5);
        }
    }
}
