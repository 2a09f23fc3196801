//! The kernels with infinities and NaN. Defined behavior: padding consists of zeros that take part, so that a NaN
//! weight also affects positions next to the border; sums follow IEEE 754 in any order; and the maximum of a window is
//! that of PyTorch, where NaN exceeds everything and infinities are ordinary numbers.

use crate::Arithmetic;
use proptest::prelude::*;

use super::tests::numbers;
use super::*;

/// Calls with the output position, the input position if it is inside, the weight position, and the output channel.
fn for_each_term(geometry: &Geometry, mut term: impl FnMut(usize, Option<usize>, usize, usize)) {
    let [height, width] = geometry.output();
    let (inputs, [tall, wide]) = (geometry.group_inputs(), geometry.kernel);
    let place = |axis: usize, window: usize, tap: usize| {
        let at = window * geometry.stride[axis] + tap * geometry.dilation[axis];
        let at = at.checked_sub(geometry.padding[axis].0)?;
        (at < geometry.input[axis]).then_some(at)
    };
    for output in 0..geometry.num_outputs() {
        let (row, column) = (output / width % height, output % width);
        let channel = output / (height * width) % geometry.outputs;
        let item = output / (height * width) / geometry.outputs;
        let group = channel / geometry.group_outputs();
        for weight in 0..inputs * tall * wide {
            let (y, x) = (weight / wide % tall, weight % wide);
            let from = item * geometry.inputs + group * inputs + weight / (tall * wide);
            let inside = place(0, row, y).zip(place(1, column, x));
            let input = inside.map(|(y, x)| (from * geometry.input[0] + y) * geometry.input[1] + x);
            term(
                output,
                input,
                channel * inputs * tall * wide + weight,
                channel,
            );
        }
    }
}

/// A few of the numbers are infinite or NaN; others are small, so that no sum overflows.
fn with_specials(num: usize, seed: u64, every: usize) -> Vec<f32> {
    let specials = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY];
    let chances = numbers(num, seed + 77);
    let values = numbers(num, seed).into_iter().zip(chances);
    let pick = |(value, chance): (f32, f32)| {
        let drawn = ((chance + 0.5) * (3 * every) as f32) as usize;
        specials.get(drawn).copied().unwrap_or(value)
    };
    values.map(pick).collect()
}

struct Case {
    x: Vec<f32>,
    weight: Vec<f32>,
    gradient: Vec<f32>,
}

impl Case {
    /// Specials in one operand at a time, and in all.
    fn all(geometry: &Geometry, seed: u64) -> [Self; 4] {
        [0, 1, 2, 3].map(|which| {
            let of = |at: usize, num: usize| {
                let every = if which == at || which == 3 {
                    9
                } else {
                    usize::MAX / 9
                };
                with_specials(num, seed + at as u64, every)
            };
            Self {
                x: of(0, geometry.num_inputs()),
                weight: of(1, geometry.num_weights()),
                gradient: of(2, geometry.num_outputs()),
            }
        })
    }

    /// The output and the gradients of input and weights by plain loops.
    fn plain(&self, geometry: &Geometry) -> [Vec<f64>; 3] {
        let mut output = vec![0.0; geometry.num_outputs()];
        let mut input = vec![0.0; geometry.num_inputs()];
        let mut weight = vec![0.0; geometry.num_weights()];
        for_each_term(geometry, |to, from, tap, _| {
            let x = from.map_or(0.0, |from| f64::from(self.x[from]));
            let (w, g) = (f64::from(self.weight[tap]), f64::from(self.gradient[to]));
            output[to] += x * w;
            weight[tap] += g * x;
            if let Some(from) = from {
                input[from] += g * w;
            }
        });
        [output, input, weight]
    }

    fn ours(&self, geometry: &Geometry) -> [Vec<f32>; 3] {
        [
            forward(geometry, &self.x, &self.weight, None),
            backward_input(geometry, &self.gradient, &self.weight),
            backward_weight(geometry, &self.x, &self.gradient),
        ]
    }
}

/// The same infinity, both NaN, or similar numbers.
fn is_same(ours: f32, plain: f64) -> bool {
    let ours = f64::from(ours);
    if plain.is_finite() {
        (ours - plain).abs() < 1e-4
    } else {
        ours == plain || ours.is_nan() && plain.is_nan()
    }
}

fn geometries() -> impl Strategy<Value = Geometry> {
    // Inputs below the kernel, strides beyond the input.
    let axis = || {
        (
            1..7usize,
            1..5usize,
            prop_oneof![1..4usize, Just(29)],
            0..4usize,
            0..4usize,
            1..3usize,
        )
    };
    // Up to more than a tile of registers.
    let num = || prop_oneof![4 => 1..4usize, 1 => 7..12usize, 1 => 14..17usize];
    let channels = (1..4usize, num(), num());
    (1..3usize, channels, axis(), axis())
        .prop_map(|(items, (groups, inputs, outputs), y, x)| Geometry {
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
        })
        .prop_filter("no window fits", Geometry::is_sound)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(miri, ignore = "takes hours there")]
    fn sums_are_those_of_plain_loops(geometry in geometries(), seed in 0..1000u64) {
        for (which, case) in Case::all(&geometry, seed).iter().enumerate() {
            let results = case.ours(&geometry).into_iter().zip(case.plain(&geometry));
            for ((ours, plain), what) in results.zip(["output", "input", "weight"]) {
                for (at, (ours, plain)) in ours.iter().zip(&plain).enumerate() {
                    prop_assert!(is_same(*ours, *plain), "{} {} of case {}: {} and {}", what, at, which, ours, plain);
                }
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes hours there")]
    fn the_largest_of_a_window_is_that_of_pytorch(
        mut geometry in geometries(),
        drawn in prop::collection::vec(0..6usize, 1..40),
    ) {
        geometry.outputs = geometry.inputs;
        geometry.groups = geometry.inputs;
        geometry.dilation = [1, 1];
        for (padding, kernel) in geometry.padding.iter_mut().zip(geometry.kernel) {
            *padding = (padding.0.min(kernel - 1), padding.1.min(kernel - 1));
        }
        prop_assume!(can_pool(&geometry));
        // Mostly negative infinity, so that whole windows consist of it.
        let values = [f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0, f32::INFINITY];
        let x: Vec<f32> = drawn.iter().cycle().take(geometry.num_inputs()).map(|at| values[*at]).collect();
        let gradient = numbers(geometry.num_outputs(), 5);
        let mut largest: Vec<Option<usize>> = vec![None; geometry.num_outputs()];
        for_each_term(&geometry, |output, input, _, _| {
            let Some(input) = input else { return };
            let is_larger = largest[output].is_none_or(|at| x[input] > x[at] || x[input].is_nan());
            if is_larger {
                largest[output] = Some(input);
            }
        });
        let largest: Vec<usize> = largest.into_iter().map(|at| at.expect("it overlaps the input")).collect();
        let (found, chosen) = max_pool(&geometry, &x);
        let bits = |value: f32| if value.is_nan() { None } else { Some(value.to_bits()) };
        for (found, at) in found.iter().zip(&largest) {
            prop_assert_eq!(bits(*found), bits(x[*at]));
        }
        let mut expected = vec![0.0f32; geometry.num_inputs()];
        for (at, gradient) in largest.iter().zip(&gradient) {
            expected[*at] += gradient;
        }
        prop_assert_eq!(max_pool_backward(&geometry, &gradient, &chosen), expected);
    }
}

/// The first tap of these windows is in the padding, which is not part of the input: its gradient used to be written
/// before the input, or to the end of the row above.
#[test]
fn a_window_of_negative_infinity_chooses_a_place_of_the_input() {
    let geometry = Geometry {
        items: 1,
        inputs: 1,
        outputs: 1,
        groups: 1,
        input: [2, 2],
        kernel: [3, 3],
        stride: [1, 1],
        padding: [(1, 1), (1, 1)],
        dilation: [1, 1],
        arithmetic: Arithmetic::Fast,
    };
    let (largest, chosen) = max_pool(&geometry, &[f32::NEG_INFINITY; 4]);
    assert_eq!(largest, [f32::NEG_INFINITY; 4]);
    let gradient = max_pool_backward(&geometry, &[1.0, 2.0, 4.0, 8.0], &chosen);
    assert_eq!(gradient, [15.0, 0.0, 0.0, 0.0]);
}
