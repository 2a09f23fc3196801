//! The layer compared with what defines it.

use burn::tensor::{Device, Tensor, TensorData};

use crate::average::reference;

/// Numbers in a fixed disorder.
fn numbers(num: usize, seed: f32) -> Vec<f32> {
    (0..num).map(|at| (seed + 1.7 * at as f32).sin()).collect()
}

/// Averages, and the gradients of `x` and of the decays for given gradients of the averages.
type Results = [Vec<f32>; 3];

fn results(
    average: fn(Tensor<3>, Tensor<1>) -> Tensor<3>,
    shape: [usize; 3],
    device: &Device,
) -> Results {
    let num = shape.iter().product();
    let tensor = |seed| Tensor::<3>::from_data(TensorData::new(numbers(num, seed), shape), device);
    let decays = numbers(shape[2], 0.4).into_iter().map(|x| 0.5 + 0.45 * x);
    let data = TensorData::new(decays.collect::<Vec<_>>(), [shape[2]]);
    let decays = Tensor::<1>::from_data(data, device).require_grad();
    let x = tensor(0.1).require_grad();
    let averages = average(x.clone(), decays.clone());
    let gradients = (averages.clone() * tensor(2.3)).sum().backward();
    let values = |data: TensorData| data.iter::<f32>().collect::<Vec<_>>();
    [
        values(averages.into_data()),
        values(x.grad(&gradients).unwrap().into_data()),
        values(decays.grad(&gradients).unwrap().into_data()),
    ]
}

/// By the definition, in 64 bits, with derivatives in forward mode.
fn by_definition([batch, length, channels]: [usize; 3]) -> Results {
    let num = batch * length * channels;
    let wide = |numbers: Vec<f32>| numbers.into_iter().map(f64::from).collect::<Vec<_>>();
    let (x, weights) = (wide(numbers(num, 0.1)), wide(numbers(num, 2.3)));
    let decays = wide(
        numbers(channels, 0.4)
            .into_iter()
            .map(|x| 0.5 + 0.45 * x)
            .collect(),
    );
    let mut averages = vec![0.0; num];
    let mut of_x = vec![0.0; num];
    let mut of_decays = vec![0.0; channels];
    for row in 0..batch * channels {
        let (item, channel) = (row / channels, row % channels);
        let at = |step: usize| (item * length + step) * channels + channel;
        let decay = decays[channel];
        let (mut average, mut slope) = (0.0, 0.0);
        for step in 0..length {
            slope = average - x[at(step)] + decay * slope;
            average = decay * average + (1.0 - decay) * x[at(step)];
            averages[at(step)] = average;
            of_decays[channel] += weights[at(step)] * slope;
            let later = (step..length).map(|to| weights[at(to)] * decay.powi((to - step) as i32));
            of_x[at(step)] = (1.0 - decay) * later.sum::<f64>();
        }
    }
    let narrow = |values: Vec<f64>| values.into_iter().map(|x| x as f32).collect();
    [narrow(averages), narrow(of_x), narrow(of_decays)]
}

/// Asserts that two results differ by no more than rounding.
fn assert_close(found: &Results, expected: &Results, what: &str) {
    for (name, (found, expected)) in ["averages", "of_x", "of_decays"]
        .iter()
        .zip(found.iter().zip(expected))
    {
        assert_eq!(found.len(), expected.len(), "{what}: {name}");
        let largest = expected.iter().fold(1.0_f32, |all, x| all.max(x.abs()));
        for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
            let error = (found - expected).abs() / largest;
            assert!(
                error < 1e-5,
                "{what}: {name}[{at}] is {found}, not {expected}"
            );
        }
    }
}

/// \[batch, length, channels\]: sizes of one, no multiples of what threads are grouped by, and more than a group.
const SHAPES: [[usize; 3]; 6] = [
    [1, 1, 1],
    [1, 7, 1],
    [5, 1, 3],
    [3, 13, 5],
    [2, 64, 33],
    [67, 3, 11],
];

#[test]
fn the_reference_is_the_definition() {
    for shape in SHAPES {
        let found = results(reference, shape, &Device::flex().autodiff());
        assert_close(&found, &by_definition(shape), &format!("{shape:?}"));
    }
}

#[cfg(feature = "wgpu")]
#[test]
fn the_kernel_is_the_reference() {
    use burn::tensor::DeviceKind;
    let device = Device::wgpu(DeviceKind::DefaultDevice).autodiff();
    for shape in SHAPES {
        let kernel = results(crate::operation::average, shape, &device);
        let what = format!("{shape:?}");
        assert_close(&kernel, &results(reference, shape, &device), &what);
        assert_close(&kernel, &by_definition(shape), &what);
    }
}

/// A transposed tensor has other strides, and a kernel must not read it as if it were contiguous.
#[cfg(feature = "wgpu")]
#[test]
fn the_kernel_reads_tensors_of_any_layout() {
    use burn::tensor::DeviceKind;
    let device = Device::wgpu(DeviceKind::DefaultDevice).autodiff();
    let swapped = |x: Tensor<3>, decays: Tensor<1>| {
        crate::operation::average(x.swap_dims(1, 2), decays).swap_dims(1, 2)
    };
    let by_reference =
        |x: Tensor<3>, decays: Tensor<1>| reference(x.swap_dims(1, 2), decays).swap_dims(1, 2);
    // As many steps as channels, so that the decays fit both ways.
    let shape = [3, 5, 5];
    let kernel = results(swapped, shape, &device);
    assert_close(&kernel, &results(by_reference, shape, &device), "swapped");
}
