//! The operations compared with Burn's, through tensors.

use burn::tensor::module::{
    adaptive_avg_pool2d, avg_pool2d, conv_transpose2d, conv1d, conv2d, conv3d, max_pool1d,
    max_pool2d,
};
use burn::tensor::ops::{AvgPoolOptions, ConvOptions, ConvTransposeOptions, MaxPoolOptions};
use burn::tensor::{Device, Tensor, TensorData, activation};
use proptest::prelude::*;

use crate::fast::{self, pool::max_pool};
use runner_core::spec::backend::Arithmetic;

fn convolution<const D: usize, const N: usize>(
    x: &Tensor<D>,
    weight: &Tensor<D>,
    bias: Option<&Tensor<1>>,
    options: &ConvOptions<N>,
) -> Option<Tensor<D>> {
    fast::convolution::convolution(x, weight, bias, options, Arithmetic::Fast)
}

/// Numbers between -0.5 and 0.5 that depend on the seed.
fn numbers(num: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761) + 1;
    let next = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    (0..num).map(next).collect()
}

fn random<const D: usize>(dims: [usize; D], seed: u64, device: &Device) -> Tensor<D> {
    let values = numbers(dims.iter().product(), seed);
    Tensor::from_data(TensorData::new(values, dims), device)
}

fn values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().try_into_vec().expect("numbers")
}

fn assert_near(what: &str, ours: &[f32], theirs: &[f32]) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let largest = theirs
        .iter()
        .fold(1e-3f32, |most, value| most.max(value.abs()));
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        assert!(
            (ours - theirs).abs() <= 1e-5 * largest,
            "{what} at {at}: {ours} and {theirs}"
        );
    }
}

/// The output of a function of tensors, and its gradients with respect to them.
macro_rules! traced {
    ($function:expr, $($tensor:expr),+) => {{
        let inputs = ($($tensor.clone().require_grad()),+,);
        let output = $function(&inputs);
        let along = random(output.dims(), 4, &output.device());
        let gradients = (output.clone() * along).sum().backward();
        (values(output), traced!(@each inputs, gradients, $($tensor),+))
    }};
    (@each $inputs:ident, $gradients:ident, $a:expr) => {
        vec![values($inputs.0.grad(&$gradients).expect("a gradient"))]
    };
    (@each $inputs:ident, $gradients:ident, $a:expr, $b:expr) => {
        vec![
            values($inputs.0.grad(&$gradients).expect("a gradient")),
            values($inputs.1.grad(&$gradients).expect("a gradient")),
        ]
    };
    (@each $inputs:ident, $gradients:ident, $a:expr, $b:expr, $c:expr) => {
        vec![
            values($inputs.0.grad(&$gradients).expect("a gradient")),
            values($inputs.1.grad(&$gradients).expect("a gradient")),
            values($inputs.2.grad(&$gradients).expect("a gradient")),
        ]
    };
}

type Axis = (usize, usize, usize, usize, usize, usize);

/// Size, kernel, stride, padding before and after, dilation of an axis on which a window fits.
fn axes() -> impl Strategy<Value = Axis> {
    (
        1..12usize,
        1..4usize,
        1..3usize,
        0..3usize,
        0..3usize,
        1..3usize,
    )
        .prop_filter(
            "no window fits",
            |(size, kernel, _, before, after, dilation)| {
                size + before + after > dilation * (kernel - 1)
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn convolutions_are_burns(
        (items, groups, inputs, outputs) in (1..4usize, 1..4usize, 1..5usize, 1..5usize),
        y in axes(),
        x in axes(),
        has_bias in any::<bool>(),
        is_checkpointing in any::<bool>(),
    ) {
        let device = Device::flex().autodiff();
        let device = if is_checkpointing { device.gradient_checkpointing() } else { device };
        let image = random([items, groups * inputs, y.0, x.0], 1, &device);
        let weight = random([groups * outputs, inputs, y.1, x.1], 2, &device);
        let bias = random([groups * outputs], 3, &device);
        let options = ConvOptions::new_with_padding([y.2, x.2], [(y.3, y.4), (x.3, x.4)], [y.5, x.5], groups);
        let (ours, theirs) = if has_bias { (
            traced!(|(x, w, b): &(Tensor<4>, Tensor<4>, Tensor<1>)| convolution(x, w, Some(b), &options).expect("ours"), image, weight, bias),
            traced!(|(x, w, b): &(Tensor<4>, Tensor<4>, Tensor<1>)| conv2d(x.clone(), w.clone(), Some(b.clone()), options.clone()), image, weight, bias),
        ) } else { (
            traced!(|(x, w): &(Tensor<4>, Tensor<4>)| convolution(x, w, None, &options).expect("ours"), image, weight),
            traced!(|(x, w): &(Tensor<4>, Tensor<4>)| conv2d(x.clone(), w.clone(), None, options.clone()), image, weight),
        ) };
        assert_near("output", &ours.0, &theirs.0);
        for (at, (ours, theirs)) in ours.1.iter().zip(&theirs.1).enumerate() {
            assert_near(&format!("gradient {at}"), ours, theirs);
        }
        let line = random([items, groups * inputs, x.0], 1, &device);
        let weight = random([groups * outputs, inputs, x.1], 2, &device);
        let options = ConvOptions::new_with_padding([x.2], [(x.3, x.4)], [x.5], groups);
        let ours = traced!(|(x, w, b): &(Tensor<3>, Tensor<3>, Tensor<1>)| convolution(x, w, Some(b), &options).expect("ours"), line, weight, bias);
        let theirs = traced!(|(x, w, b): &(Tensor<3>, Tensor<3>, Tensor<1>)| conv1d(x.clone(), w.clone(), Some(b.clone()), options.clone()), line, weight, bias);
        assert_near("output", &ours.0, &theirs.0);
        // Burn 0.22.1 computes a wrong gradient of these weights: it is also computed for taps beyond the kernel if the
        // last window ends before the input does, and added to the correct ones without being cropped.
        let left_over = (x.0 + x.3 + x.4 - x.5 * (x.1 - 1) - 1) % x.2;
        let is_spoilt = groups > 1 && left_over > 0;
        for (at, (ours, theirs)) in ours.1.iter().zip(&theirs.1).enumerate() {
            if at != 1 || !is_spoilt {
                assert_near(&format!("gradient {at}"), ours, theirs);
            }
        }
    }

    /// Burn's have equal padding before and after.
    #[test]
    fn convolutions_of_volumes_are_burns(
        (items, groups, inputs, outputs) in (1..3usize, 1..3usize, 1..4usize, 1..4usize),
        z in axes(),
        y in axes(),
        x in axes(),
    ) {
        let device = Device::flex().autodiff();
        let volume = random([items, groups * inputs, z.0, y.0, x.0], 1, &device);
        let weight = random([groups * outputs, inputs, z.1, y.1, x.1], 2, &device);
        let bias = random([groups * outputs], 3, &device);
        let padding = [z, y, x].map(|axis| axis.3.max(axis.4));
        let options = ConvOptions::new([z.2, y.2, x.2], padding, [z.5, y.5, x.5], groups);
        let ours = traced!(|(x, w, b): &(Tensor<5>, Tensor<5>, Tensor<1>)| convolution(x, w, Some(b), &options).expect("ours"), volume, weight, bias);
        let theirs = traced!(|(x, w, b): &(Tensor<5>, Tensor<5>, Tensor<1>)| conv3d(x.clone(), w.clone(), Some(b.clone()), options.clone()), volume, weight, bias);
        assert_near("output", &ours.0, &theirs.0);
        for (at, (ours, theirs)) in ours.1.iter().zip(&theirs.1).enumerate() {
            assert_near(&format!("gradient {at}"), ours, theirs);
        }
    }

    /// Bitwise equal, since only gradients of overlapping windows are added.
    #[test]
    fn max_pooling_is_burns(items in 1..4usize, channels in 1..5usize, y in axes(), x in axes()) {
        let device = Device::flex().autodiff();
        let options = MaxPoolOptions::new([y.1, x.1])
            .with_stride([y.2, x.2])
            .with_padding_pairs([(y.3, y.4), (x.3, x.4)]);
        // Rounded, so that there are equal numbers in a window.
        let image = (random([items, channels, y.0, x.0], 1, &device) * 6.0).round();
        let line = (random([items, channels, x.0], 1, &device) * 6.0).round();
        if max_pool(&image, &options).is_some() {
            let ours = traced!(|(x,): &(Tensor<4>,)| max_pool(x, &options).expect("ours"), image);
            let theirs = traced!(|(x,): &(Tensor<4>,)| max_pool2d(x.clone(), options.clone()), image);
            prop_assert_eq!(&ours.0, &theirs.0);
            assert_near("gradient", &ours.1[0], &theirs.1[0]);
        }
        let options = MaxPoolOptions::new([x.1]).with_stride([x.2]).with_padding_pairs([(x.3, x.4)]);
        if max_pool(&line, &options).is_some() {
            let ours = traced!(|(x,): &(Tensor<3>,)| max_pool(x, &options).expect("ours"), line);
            let theirs = traced!(|(x,): &(Tensor<3>,)| max_pool1d(x.clone(), options.clone()), line);
            prop_assert_eq!(&ours.0, &theirs.0);
            assert_near("gradient", &ours.1[0], &theirs.1[0]);
        }
    }
}

/// Inputs recomputed in the backward pass give the same bits.
#[test]
fn gradient_checkpointing_changes_no_bit() {
    let of = |device: &Device| {
        let options = ConvOptions::new([1, 1], [1, 1], [1, 1], 1);
        let image = random([3, 4, 10, 10], 1, device);
        let first = random([6, 4, 3, 3], 2, device);
        let second = random([5, 6, 3, 3], 5, device);
        traced!(
            |(x, a, b): &(Tensor<4>, Tensor<4>, Tensor<4>)| {
                let x = activation::relu(convolution(x, a, None, &options).expect("ours"));
                let x = activation::relu(convolution(&x, b, None, &options).expect("ours"));
                max_pool(&x, &MaxPoolOptions::new([2, 2])).expect("ours")
            },
            image,
            first,
            second
        )
    };
    let device = Device::flex().autodiff();
    let (kept, anew) = (of(&device), of(&device.clone().gradient_checkpointing()));
    assert!(kept == anew);
}

/// A view is made contiguous before the computation, and a constant has no gradient.
#[test]
fn views_and_constants() {
    let device = Device::flex().autodiff();
    let options = ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
    let turned = random([2, 5, 6, 3], 1, &device).permute([0, 3, 1, 2]);
    let weight = random([4, 3, 2, 2], 2, &device).require_grad();
    let ours = convolution(&turned, &weight, None, &options).expect("ours");
    let theirs = conv2d(turned.clone(), weight.clone(), None, options.clone());
    assert_near("output", &values(ours.clone()), &values(theirs.clone()));
    let gradients = ours.sum().backward();
    let expected = theirs.sum().backward();
    let of = |gradients| values(weight.grad(gradients).expect("a gradient"));
    assert_near("weight", &of(&gradients), &of(&expected));
    assert!(turned.grad(&gradients).is_none());
    // Without autodiff at all.
    let plain = Device::flex();
    let ours = convolution(
        &random([2, 3, 5, 6], 1, &plain),
        &random([4, 3, 2, 2], 2, &plain),
        None,
        &options,
    );
    assert_eq!(ours.expect("ours").dims(), [2, 4, 4, 5]);
}

/// Cases left to Burn: other precisions, and windows that do not fit, with the same result as before.
#[test]
fn the_rest_is_burns() {
    use burn::tensor::DType;
    let device = Device::flex();
    let options = ConvOptions::new([1, 1], [0, 0], [1, 1], 1);
    let (image, weight) = (
        random([1, 1, 4, 4], 1, &device),
        random([1, 1, 3, 3], 2, &device),
    );
    let [double, weight_double] = [&image, &weight].map(|tensor| tensor.clone().cast(DType::F64));
    assert!(convolution(&double, &weight_double, None, &options).is_none());
    assert!(
        convolution(
            &image.clone().slice([0..1, 0..1, 0..2, 0..2]),
            &weight,
            None,
            &options
        )
        .is_none()
    );
    assert!(max_pool(&double, &MaxPoolOptions::new([2, 2])).is_none());
    assert!(convolution(&image, &weight, None, &options).is_some());
}

type Function = Box<dyn Fn(Tensor<4>) -> Tensor<4>>;

/// Layers that Burn computes because runner has no kernels for them, by name.
fn left_to_burn() -> Vec<(&'static str, Function)> {
    let pool = || MaxPoolOptions::new([3, 3]).with_stride([2, 2]);
    let average = |counts: bool| AvgPoolOptions {
        kernel_size: [3, 2],
        stride: [2, 1],
        padding: [(1, 1), (1, 0)],
        count_include_pad: counts,
        ceil_mode: counts,
    };
    let weight = |dims: [usize; 4]| random(dims, 8, &Device::default());
    vec![
        (
            "dilated",
            Box::new(move |x| {
                max_pool2d(
                    x,
                    pool()
                        .with_padding_pairs([(2, 2), (2, 2)])
                        .with_dilation([2, 2]),
                )
            }),
        ),
        (
            "ceil mode",
            Box::new(move |x| {
                max_pool2d(
                    x,
                    pool()
                        .with_padding_pairs([(1, 1), (1, 1)])
                        .with_ceil_mode(true),
                )
            }),
        ),
        ("average", Box::new(move |x| avg_pool2d(x, average(false)))),
        (
            "average with padding",
            Box::new(move |x| avg_pool2d(x, average(true))),
        ),
        ("adaptive", Box::new(|x| adaptive_avg_pool2d(x, [3, 2]))),
        (
            "transposed",
            Box::new(move |x| {
                let options = ConvTransposeOptions::new([2, 1], [1, 1], [1, 0], [1, 2], 1);
                conv_transpose2d(x, weight([2, 3, 3, 2]), None, options)
            }),
        ),
        (
            "convolution",
            Box::new(move |x| {
                conv2d(
                    x,
                    weight([3, 2, 3, 3]),
                    None,
                    ConvOptions::new([2, 1], [1, 2], [1, 2], 1),
                )
            }),
        ),
    ]
}

#[test]
fn what_is_left_to_burn_passes_on_what_is_no_number() {
    let device = Device::default();
    let x: Tensor<4> = random([1, 2, 6, 7], 1, &device);
    for (what, function) in left_to_burn() {
        let before = values(function(x.clone()));
        for place in [0, 8, 40, 41, 83] {
            let with = |value: f32| {
                let mut x = values(x.clone());
                x[place] = value;
                let data = TensorData::new(x, [1, 2, 6, 7]);
                values(function(Tensor::from_data(data, &device)))
            };
            // A large number affects the same outputs as a NaN.
            let seen = with(1e6);
            let spoilt = with(f32::NAN);
            for (at, ((before, seen), spoilt)) in before.iter().zip(&seen).zip(&spoilt).enumerate()
            {
                assert_eq!(before != seen, spoilt.is_nan(), "{what}, {at} by {place}");
            }
        }
    }
}

#[test]
fn windows_of_negative_infinity_have_gradients_within_the_input() {
    let device = Device::default().autodiff();
    for (what, function) in left_to_burn().into_iter().take(2) {
        let x = Tensor::<4>::full([1, 2, 6, 7], f32::NEG_INFINITY, &device).require_grad();
        let output = function(x.clone());
        let num = output.dims().iter().product::<usize>() as f32;
        let gradients = output.sum().backward();
        let gradient = values(x.grad(&gradients).expect("a gradient"));
        assert_eq!(gradient.iter().sum::<f32>(), num, "{what}");
    }
}
