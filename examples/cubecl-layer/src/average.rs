//! The moving average, by a kernel or by Burn's operations.

use burn::tensor::Tensor;

/// The moving averages of sequences \[batch, length, channels\], beginning at zero, with the decays of the channels.
///
/// On a GPU, one kernel computes all steps. Elsewhere, Burn's operations compute one after the other.
pub fn average(x: Tensor<3>, decays: Tensor<1>) -> Tensor<3> {
    #[cfg(feature = "wgpu")]
    if crate::operation::has_kernel(&x.device()) {
        return crate::operation::average(x, decays);
    }
    reference(x, decays)
}

/// The same by Burn's operations, which know their backward passes.
pub fn reference(x: Tensor<3>, decays: Tensor<1>) -> Tensor<3> {
    let [batch, length, channels] = x.dims();
    let decays = decays.reshape([1, 1, channels]);
    let mut state = Tensor::zeros([batch, 1, channels], &x.device());
    let mut states = Vec::with_capacity(length);
    for step in x.split(1, 1) {
        state = step.clone() + (state - step) * decays.clone();
        states.push(state.clone());
    }
    Tensor::cat(states, 1)
}
