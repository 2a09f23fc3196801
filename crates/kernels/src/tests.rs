//! The kernels compared with plain loops in double precision.

use proptest::prelude::*;
use rayon::ThreadPoolBuilder;

use super::*;

/// Calls with each pair of an output and an input position, the weight's position between them, and the output channel.
fn for_each_term<const D: usize>(
    geometry: &Geometry<D>,
    mut term: impl FnMut(usize, usize, usize),
) {
    let geometry = geometry.volume();
    let inputs = geometry.group_inputs();
    let place = |axis: usize, window: usize, tap: usize| {
        let at = window * geometry.stride[axis] + tap * geometry.dilation[axis];
        let at = at.checked_sub(geometry.padding[axis].0)?;
        (at < geometry.input[axis]).then_some(at)
    };
    let split = |at: usize, [_, height, width]: [usize; 3]| {
        [at / width / height, at / width % height, at % width]
    };
    for output in 0..geometry.num_outputs() {
        let (area, taps) = (geometry.area_out(), geometry.taps());
        let window = split(output % area, geometry.output());
        let channel = output / area % geometry.outputs;
        let item = output / area / geometry.outputs;
        let group = channel / geometry.group_outputs();
        for weight in 0..inputs * taps {
            let tap = split(weight % taps, geometry.kernel);
            let seen = [0, 1, 2].map(|axis| place(axis, window[axis], tap[axis]));
            let [Some(z), Some(y), Some(x)] = seen else {
                continue;
            };
            let [depth, height, width] = geometry.input;
            let from = item * geometry.inputs + group * inputs + weight / taps;
            let input = ((from * depth + z) * height + y) * width + x;
            term(output, input, channel * inputs * taps + weight);
        }
    }
}

/// The results of a convolution and its backward passes for these operands.
struct Plain {
    output: Vec<f64>,
    input: Vec<f64>,
    weight: Vec<f64>,
    bias: Vec<f64>,
}

struct Operands {
    x: Vec<f32>,
    weight: Vec<f32>,
    bias: Vec<f32>,
    gradient: Vec<f32>,
}

impl Operands {
    fn new<const D: usize>(geometry: &Geometry<D>, seed: u64) -> Self {
        Self {
            x: numbers(geometry.num_inputs(), seed),
            weight: numbers(geometry.num_weights(), seed + 1),
            bias: numbers(geometry.outputs, seed + 2),
            gradient: numbers(geometry.num_outputs(), seed + 3),
        }
    }
}

/// Numbers between -0.5 and 0.5.
pub fn numbers(num: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761) + 1;
    let next = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    (0..num).map(next).collect()
}

fn plain<const D: usize>(geometry: &Geometry<D>, operands: &Operands) -> Plain {
    let area = geometry.area_out();
    let of = |values: &[f32], at: usize| f64::from(values[at]);
    let channel = |at: usize| at / area % geometry.outputs;
    let mut plain = Plain {
        output: (0..geometry.num_outputs())
            .map(|at| of(&operands.bias, channel(at)))
            .collect(),
        input: vec![0.0; geometry.num_inputs()],
        weight: vec![0.0; geometry.num_weights()],
        bias: vec![0.0; geometry.outputs],
    };
    for_each_term(geometry, |output, input, weight| {
        plain.output[output] += of(&operands.x, input) * of(&operands.weight, weight);
        plain.input[input] += of(&operands.gradient, output) * of(&operands.weight, weight);
        plain.weight[weight] += of(&operands.gradient, output) * of(&operands.x, input);
    });
    for at in 0..geometry.num_outputs() {
        plain.bias[channel(at)] += of(&operands.gradient, at);
    }
    plain
}

/// The output and the gradients of input, weights and bias.
fn ours<const D: usize>(geometry: &Geometry<D>, operands: &Operands) -> [Vec<f32>; 4] {
    let Operands {
        x,
        weight,
        bias,
        gradient,
    } = operands;
    [
        forward(geometry, x, weight, Some(bias)),
        backward_input(geometry, gradient, weight),
        backward_weight(geometry, x, gradient),
        backward_bias(geometry, gradient),
    ]
}

/// The largest difference relative to the largest number, but at least to 0.1: rounding is relative to the sums.
fn distance(ours: &[f32], plain: &[f64]) -> f64 {
    assert_eq!(ours.len(), plain.len());
    let largest = plain
        .iter()
        .fold(0.1f64, |most, value| most.max(value.abs()));
    let differences = ours
        .iter()
        .zip(plain)
        .map(|(ours, plain)| (f64::from(*ours) - plain).abs());
    differences.fold(0.0, f64::max) / largest
}

fn assert_right<const D: usize>(geometry: &Geometry<D>) {
    for arithmetic in [Arithmetic::Fast, Arithmetic::Portable] {
        assert_one_right(&Geometry {
            arithmetic,
            ..*geometry
        });
    }
}

fn assert_one_right<const D: usize>(geometry: &Geometry<D>) {
    let operands = Operands::new(geometry, 1);
    let plain = plain(geometry, &operands);
    let [output, input, weight, bias] = ours(geometry, &operands);
    for (what, ours, plain) in [
        ("output", output, plain.output),
        ("input", input, plain.input),
        ("weight", weight, plain.weight),
        ("bias", bias, plain.bias),
    ] {
        let distance = distance(&ours, &plain);
        assert!(
            distance < 1e-5,
            "{what} of {geometry:?} is off by {distance:e}"
        );
    }
}

fn square(
    items: usize,
    channels: [usize; 3],
    size: usize,
    kernel: usize,
    padding: usize,
) -> Geometry {
    let [inputs, outputs, groups] = channels;
    Geometry {
        items,
        inputs,
        outputs,
        groups,
        input: [size; 2],
        kernel: [kernel; 2],
        stride: [1, 1],
        padding: [(padding, padding); 2],
        dilation: [1, 1],
        arithmetic: Arithmetic::Fast,
    }
}

fn geometries() -> impl Strategy<Value = Geometry> {
    let axis = || {
        (
            1..14usize,
            1..5usize,
            1..4usize,
            0..4usize,
            0..4usize,
            1..3usize,
        )
    };
    // Depthwise convolutions are a special case, so they are always included.
    let outputs = prop_oneof![3 => 1..7usize, 1 => 14..17usize];
    let inputs = prop_oneof![2 => Just(1), 2 => 1..7usize, 1 => 12..20usize];
    let channels = (1..5usize, inputs, outputs);
    (1..4usize, channels, axis(), axis(), any::<bool>())
        .prop_map(|(items, (groups, inputs, outputs), y, x, is_flat)| {
            let y = if is_flat { (1, 1, 1, 0, 0, 1) } else { y };
            Geometry {
                items,
                inputs: groups * inputs,
                outputs: groups * outputs,
                groups,
                input: [y.0, x.0 * 3],
                kernel: [y.1, x.1],
                stride: [y.2, x.2],
                padding: [(y.3, y.4), (x.3, x.4)],
                dilation: [y.5, x.5],
                arithmetic: Arithmetic::Fast,
            }
        })
        .prop_filter("no window fits", Geometry::is_sound)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "takes hours there")]
    fn kernels_are_plain_loops(geometry in geometries()) {
        assert_right(&geometry);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes hours there")]
    fn kernels_of_volumes_are_plain_loops(geometry in volumes()) {
        assert_right(&geometry);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes hours there")]
    fn pooling_picks_the_largest_of_each_window(mut geometry in geometries()) {
        geometry.outputs = geometry.inputs;
        geometry.groups = geometry.inputs;
        geometry.dilation = [1, 1];
        for (padding, kernel) in geometry.padding.iter_mut().zip(geometry.kernel) {
            *padding = (padding.0.min(kernel - 1), padding.1.min(kernel - 1));
        }
        prop_assume!(can_pool(&geometry));
        let operands = Operands::new(&geometry, 3);
        let mut largest = vec![(f32::NEG_INFINITY, 0); geometry.num_outputs()];
        for_each_term(&geometry, |output, input, _| {
            if operands.x[input] > largest[output].0 {
                largest[output] = (operands.x[input], input);
            }
        });
        let (values, chosen) = max_pool(&geometry, &operands.x);
        let expected: Vec<f32> = largest.iter().map(|(value, _)| *value).collect();
        prop_assert_eq!(values, expected);
        let mut expected = vec![0.0f32; geometry.num_inputs()];
        for ((_, input), gradient) in largest.iter().zip(&operands.gradient) {
            expected[*input] += gradient;
        }
        prop_assert_eq!(max_pool_backward(&geometry, &operands.gradient, &chosen), expected);
    }
}

/// Sizes that are split into several panels of positions and channels.
#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn panels_are_put_together() {
    assert_right(&square(1, [300, 20, 1], 6, 3, 1));
    assert_right(&square(2, [3, 70, 1], 41, 3, 0));
    assert_right(&square(17, [2, 50, 2], 9, 1, 0));
    assert_right(&square(2, [5, 49, 1], 40, 1, 0));
    assert_right(&square(1, [40, 8, 1], 12, 11, 5));
    assert_right(&square(2, [24, 24, 24], 33, 7, 3));
    assert_right(&square(2, [16, 64, 16], 19, 3, 1));
    let strided = Geometry {
        stride: [2, 2],
        ..square(2, [200, 150, 1], 5, 3, 1)
    };
    assert_right(&strided);
}

/// Gradients of weights have tiles of 1 to 4 registers of outputs and of 3 to 8 terms, and divide channels if there are
/// many weights.
#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn tiles_of_weights_are_put_together() {
    for (inputs, outputs, groups) in [
        (20, 16, 1),
        (17, 30, 1),
        (18, 48, 2),
        (19, 64, 1),
        (21, 110, 1),
    ] {
        for (kernel, stride) in [(3, 1), (2, 2), (3, 2)] {
            let geometry = Geometry {
                stride: [stride; 2],
                ..square(5, [groups * inputs, groups * outputs, groups], 9, kernel, 1)
            };
            assert_right(&geometry);
        }
    }
    // More positions than are multiplied at once, more weights than fill a task, and two groups of channels.
    assert_right(&square(1, [10, 110, 1], 30, 3, 1));
    assert_right(&square(3, [350, 340, 1], 3, 3, 1));
    assert_right(&square(20, [130, 140, 2], 4, 3, 0));
}

/// Items whose results are small are side by side: as many as fit, and fewer in the last planes.
#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn small_items_are_put_side_by_side() {
    for (items, size, stride, groups) in
        [(35, 4, 1, 1), (50, 3, 2, 2), (33, 5, 3, 1), (64, 3, 1, 2)]
    {
        let geometry = Geometry {
            stride: [stride, 1],
            ..square(items, [6, 10, groups], size, 3, stride - 1)
        };
        assert_right(&geometry);
    }
}

fn volumes() -> impl Strategy<Value = Geometry<3>> {
    let axis = || {
        (
            1..8usize,
            1..4usize,
            1..4usize,
            0..3usize,
            0..3usize,
            1..3usize,
        )
    };
    let channels = (1..4usize, prop_oneof![Just(1), 1..5usize], 1..10usize);
    (1..4usize, channels, axis(), axis(), axis())
        .prop_map(|(items, (groups, inputs, outputs), z, y, x)| Geometry {
            items,
            inputs: groups * inputs,
            outputs: groups * outputs,
            groups,
            input: [z.0, y.0, x.0],
            kernel: [z.1, y.1, x.1],
            stride: [z.2, y.2, x.2],
            padding: [(z.3, z.4), (y.3, y.4), (x.3, x.4)],
            dilation: [z.5, y.5, x.5],
            arithmetic: Arithmetic::Fast,
        })
        .prop_filter("no window fits", Geometry::is_sound)
}

/// Volumes of which only some slabs are copied at a time, with and without strides, groups and registers of outputs.
#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn large_volumes_are_put_together() {
    for (channels, stride, kernel) in [
        ([24, 40, 1], [1, 1, 1], [3, 3, 3]),
        ([20, 12, 2], [2, 2, 2], [3, 3, 3]),
        ([40, 9, 1], [3, 1, 2], [4, 2, 3]),
        ([24, 24, 24], [1, 1, 1], [3, 3, 3]),
        ([24, 24, 24], [2, 1, 2], [3, 3, 3]),
    ] {
        let [inputs, outputs, groups] = channels;
        assert_right(&Geometry {
            items: 2,
            inputs,
            outputs,
            groups,
            input: [13, 25, 24],
            kernel,
            stride,
            padding: [(2, 1), (1, 1), (0, 2)],
            dilation: [1, 1, 1],
            arithmetic: Arithmetic::Fast,
        });
    }
}

/// Sizes that tiles of 2x2 outputs do not fill, with all paddings, and several panels.
#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn tiles_are_put_together() {
    for padding in 0..3 {
        for size in [9, 10, 13, 24, 41] {
            assert_right(&square(2, [32, 24, 1], size, 3, padding));
        }
    }
    let wide = Geometry {
        input: [5, 70],
        padding: [(0, 1), (2, 0)],
        ..square(1, [32, 48, 2], 1, 3, 0)
    };
    assert_right(&wide);
    assert_right(&square(1, [128, 128, 1], 12, 3, 1));
}

/// Every gradient is the slope of the plain loop along some direction, as differences in double precision find it.
#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn gradients_are_slopes() {
    for groups in [1, 4] {
        let geometry = Geometry {
            stride: [2, 1],
            dilation: [1, 2],
            ..square(2, [4, 8, groups], 9, 3, 2)
        };
        let operands = Operands::new(&geometry, 5);
        let [_, input, weight, bias] = ours(&geometry, &operands);
        let loss = |x: &[f64], weight: &[f64], bias: &[f64]| {
            let area = geometry.area_out();
            let of = |at: usize| f64::from(operands.gradient[at]);
            let mut sum = 0.0;
            for_each_term(&geometry, |output, input, at| {
                sum += of(output) * x[input] * weight[at]
            });
            (0..geometry.num_outputs()).fold(sum, |sum, at| {
                sum + of(at) * bias[at / area % geometry.outputs]
            })
        };
        let doubled = |values: &[f32]| values.iter().map(|v| f64::from(*v)).collect::<Vec<_>>();
        let at = [
            doubled(&operands.x),
            doubled(&operands.weight),
            doubled(&operands.bias),
        ];
        for (which, gradient) in [input, weight, bias].iter().enumerate() {
            let direction = doubled(&numbers(gradient.len(), 11));
            let moved = |by: f64| {
                let mut at = at.clone();
                for (value, along) in at[which].iter_mut().zip(&direction) {
                    *value += by * along;
                }
                loss(&at[0], &at[1], &at[2])
            };
            let slope = (moved(1e-3) - moved(-1e-3)) / 2e-3;
            let along: f64 = doubled(gradient)
                .iter()
                .zip(&direction)
                .map(|(g, d)| g * d)
                .sum();
            assert!(
                (slope - along).abs() < 1e-5 * slope.abs().max(1.0),
                "{slope} and {along}"
            );
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes hours there")]
fn bits_do_not_depend_on_threads() {
    for geometry in [
        square(7, [20, 30, 1], 13, 3, 1),
        square(1, [64, 64, 1], 20, 3, 0),
        square(6, [96, 160, 1], 4, 3, 1),
        square(5, [16, 32, 16], 18, 3, 1),
        square(9, [12, 50, 2], 10, 1, 0),
    ] {
        let operands = Operands::new(&geometry, 7);
        let with = |threads: usize| {
            let pool = ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("threads");
            pool.install(|| ours(&geometry, &operands).map(|values| bits(&values)))
        };
        let alone = with(1);
        for threads in [2, 3, 8] {
            assert!(with(threads) == alone, "{threads} threads, {geometry:?}");
        }
        // Several at once share the threads.
        let runs: Vec<_> = (0..4).map(|_| ()).collect();
        std::thread::scope(|scope| {
            let runs: Vec<_> = runs.iter().map(|()| scope.spawn(|| with(2))).collect();
            for run in runs {
                assert!(run.join().expect("no panic") == alone);
            }
        });
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn what_is_no_number_is_passed_on() {
    let geometry = square(1, [1, 1, 1], 4, 2, 0);
    let mut x = numbers(16, 1);
    x[5] = f32::NAN;
    let output = forward(&geometry, &x, &numbers(4, 2), None);
    let pooled = max_pool(&geometry, &x).0;
    for (at, (output, pooled)) in output.iter().zip(&pooled).enumerate() {
        let sees_it = [0, 1, 3, 4].contains(&at);
        assert_eq!(
            (output.is_nan(), pooled.is_nan()),
            (sees_it, sees_it),
            "{at}"
        );
    }
}

/// A small convolution of each kind, which Miri can check in minutes.
#[test]
fn a_small_product_is_a_plain_loop() {
    assert_right(&Geometry {
        stride: [1, 2],
        ..square(2, [2, 3, 1], 3, 2, 1)
    });
    assert_right(&square(1, [2, 3, 1], 3, 1, 0));
}

#[test]
fn a_small_depthwise_convolution_is_a_plain_loop() {
    assert_right(&Geometry {
        stride: [1, 2],
        input: [2, 17],
        kernel: [2, 2],
        ..square(1, [2, 2, 2], 1, 1, 0)
    });
}

#[test]
fn a_small_direct_convolution_is_a_plain_loop() {
    assert_right(&Geometry {
        input: [5, 9],
        padding: [(1, 0), (0, 1)],
        ..square(1, [3, 9, 1], 1, 3, 0)
    });
}

/// Taps that are in the padding for every window.
#[test]
fn taps_that_see_nothing_are_passed_over() {
    let geometry = Geometry {
        input: [1, 1],
        padding: [(0, 0), (2, 1)],
        kernel: [1, 3],
        ..square(1, [2, 2, 2], 1, 1, 0)
    };
    assert_right(&geometry);
    let (values, chosen) = max_pool(&geometry, &[1.0, -2.0]);
    assert_eq!(values, [1.0, 1.0, -2.0, -2.0]);
    let gradient = max_pool_backward(&geometry, &[1.0, 2.0, 3.0, 4.0], &chosen);
    assert_eq!(gradient, [3.0, 7.0]);
}

#[test]
#[should_panic(expected = "does not define a convolution")]
fn a_window_that_fits_nowhere_is_refused() {
    let geometry = square(1, [1, 1, 1], 2, 3, 0);
    forward(&geometry, &[0.0; 4], &[0.0; 9], None);
}

#[test]
#[should_panic(expected = "elements of the input")]
fn operands_of_other_sizes_are_refused() {
    forward(&square(1, [1, 1, 1], 4, 3, 0), &[0.0; 15], &[0.0; 9], None);
}
