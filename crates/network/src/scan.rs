//! Linear recurrences as a layer: the first input times the state before, plus the second.

use burn::tensor::Tensor;

use crate::tensor::DynTensor;
use runner_core::spec::backend::Kernels;

/// The states over axis 1 of two inputs of the same shape.
pub fn states(
    factors: DynTensor,
    updates: DynTensor,
    is_reverse: bool,
    kernels: Kernels,
) -> DynTensor {
    let dims = updates.dims();
    let columns = dims[2..].iter().product();
    let flat = [dims[0], dims[1], columns];
    let [factors, updates] = [factors, updates].map(|tensor| tensor.reshape(&flat).r3());
    DynTensor::R3(scanned(factors, updates, is_reverse, kernels)).reshape(&dims)
}

fn scanned(
    factors: Tensor<3>,
    updates: Tensor<3>,
    is_reverse: bool,
    kernels: Kernels,
) -> Tensor<3> {
    #[cfg(feature = "flex")]
    if kernels.is_fast() && crate::fast::operation::is_ours(&updates) {
        return crate::fast::scan::scan(factors, updates, is_reverse);
    }
    let _ = kernels;
    if is_reverse {
        let [factors, updates] = [factors, updates].map(|tensor| tensor.flip([1]));
        doubled(factors, updates).flip([1])
    } else {
        doubled(factors, updates)
    }
}

/// The states by a parallel scan (Hillis and Steele, 1986): each pass adds to the sums of n steps those of the n steps
/// before, times the product of the factors in between.
fn doubled(mut factors: Tensor<3>, mut states: Tensor<3>) -> Tensor<3> {
    let length = states.dims()[1];
    let mut done = 1;
    while done < length {
        let others = length - done;
        let (first, later) = (
            |tensor: &Tensor<3>, num: usize| tensor.clone().narrow(1, 0, num),
            |tensor: &Tensor<3>| tensor.clone().narrow(1, done, others),
        );
        let moved = later(&states) + later(&factors) * first(&states, others);
        states = Tensor::cat(vec![first(&states, done), moved], 1);
        if 2 * done < length {
            let product = later(&factors) * first(&factors, others);
            factors = Tensor::cat(vec![first(&factors, done), product], 1);
        }
        done *= 2;
    }
    states
}
