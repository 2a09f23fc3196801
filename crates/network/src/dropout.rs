//! Dropout, by runner's kernel where there is one, otherwise by Burn's.

use burn::nn::DropoutConfig;
#[cfg(feature = "flex")]
use burn::tensor::Device;
use burn::tensor::{Distribution, Tensor};

#[cfg(feature = "flex")]
use crate::fast::operation::is_ours;
use crate::tensor::DynTensor;
use runner_core::spec::backend::Kernels;

/// In training, zeroes numbers with a probability, and scales the others up.
pub fn dropped<const D: usize>(x: Tensor<D>, probability: f64, is_fast: bool) -> Tensor<D> {
    if probability == 0.0 || !x.device().is_autodiff() {
        return x;
    }
    #[cfg(feature = "flex")]
    if is_fast && is_ours(&x) {
        let seed = seed(&x.device());
        return crate::fast::dropout::dropped(x, seed, probability);
    }
    let _ = is_fast;
    DropoutConfig::new(probability).init().forward(x)
}

/// Whether the kernel computes the dropouts of a layer with such an output.
pub fn has_kernel(kernels: Kernels, output: &DynTensor) -> bool {
    #[cfg(feature = "flex")]
    return kernels.is_fast()
        && match output {
            DynTensor::R1(x) => is_ours(x),
            DynTensor::R2(x) => is_ours(x),
            DynTensor::R3(x) => is_ours(x),
            DynTensor::R4(x) => is_ours(x),
            DynTensor::R5(x) => is_ours(x),
            _ => false,
        };
    #[cfg(not(feature = "flex"))]
    {
        let _ = (kernels, output);
        false
    }
}

/// The numbers that make a seed: whole ones below 2 to the 24, which a float holds.
pub const SEED: (usize, Distribution) = (2, Distribution::Uniform(0.0, 16_777_216.0));

/// Draws the seed of a dropout.
#[cfg(feature = "flex")]
fn seed(device: &Device) -> u64 {
    let (num, distribution) = SEED;
    let drawn = Tensor::<1>::random([num], distribution, device).into_data();
    drawn
        .iter::<f32>()
        .fold(0, |seed, number| (seed << 24) | number as u64)
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;

    #[test]
    fn a_gradient_is_dropped_where_its_number_was() {
        let _generator = crate::testing::generator();
        let device = Device::flex().autodiff();
        device.seed(7);
        for is_fast in [true, false] {
            let x = Tensor::<2>::ones([50, 1000], &device).require_grad();
            let y = dropped(x.clone(), 0.25, is_fast);
            let gradient = x.grad(&y.clone().sum().backward()).unwrap();
            assert_eq!(gradient.into_data(), y.clone().into_data());
            let kept = y.into_data().iter::<f32>().filter(|y| *y != 0.0).count();
            // 37,500 are expected, with a standard deviation of 97.
            assert!((37_000..38_000).contains(&kept), "{kept}");
        }
        let x = Tensor::<2>::ones([5, 5], &Device::flex());
        assert_eq!(dropped(x.clone(), 0.5, true).into_data(), x.into_data());
    }
}
