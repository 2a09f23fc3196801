//! Whether the numbers of a tensor are finite.

use burn::tensor::Tensor;

/// Whether all numbers of a tensor are finite. A tensor that cannot be read counts as finite.
pub fn is_finite<const D: usize>(tensor: Tensor<D>) -> bool {
    let data = tensor.try_into_data();
    data.is_ok_and(|data| data.iter::<f64>().all(f64::is_finite))
}
