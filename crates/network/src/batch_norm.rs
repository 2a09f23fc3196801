//! Batch norm with running statistics as PyTorch has them: Burn keeps the variance of a batch's values, and PyTorch the
//! variance that it estimates for all (Ioffe and Szegedy, 2015, algorithm 2), which is larger by n / (n - 1).

use burn::nn::BatchNorm;
use burn::tensor::Tensor;
use burn::tensor::module::batch_norm_train;

/// Whether a batch's own statistics are used: a frozen norm uses the running ones.
pub fn is_training<const D: usize>(norm: &BatchNorm, x: &Tensor<D>) -> bool {
    x.device().is_autodiff() && norm.training.is_enabled()
}

/// \[items, channels, ..\] to the same.
pub fn forward<const D: usize>(norm: &BatchNorm, x: Tensor<D>) -> Tensor<D> {
    if !is_training(norm, &x) {
        return norm.forward(x);
    }
    let values = values_of_channel(&x);
    let result = batch_norm_train(x, norm.gamma.val(), norm.beta.val(), norm.epsilon);
    keep(norm, [result.mean, result.variance], values);
    result.output
}

/// Values of each channel.
pub fn values_of_channel<const D: usize>(x: &Tensor<D>) -> usize {
    let dims = x.dims();
    dims[0] * dims[2..].iter().product::<usize>()
}

/// Takes the mean and the variance of each channel's values into the running statistics. One value has no variance, and
/// changes nothing.
pub fn keep(norm: &BatchNorm, moments: [Tensor<1>; 2], values: usize) {
    if values < 2 {
        return;
    }
    let [mean, variance] = moments;
    let of_all = values as f64 / (values - 1) as f64;
    let running = [
        (&norm.running_mean, mean),
        (&norm.running_var, variance.mul_scalar(of_all)),
    ];
    for (running, new) in running {
        let device = new.device();
        let old = running.value().to_device(&device);
        let next = old
            .mul_scalar(1.0 - norm.momentum)
            .add(new.mul_scalar(norm.momentum));
        running.update(next.detach());
        // Until then, only a forward pass finds the new value, and an average of weights the one before.
        running.value_sync();
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::nn::BatchNormConfig;
    use burn::tensor::{Device, Tensor, TensorData};

    use super::forward;
    use crate::fast;
    use crate::testing::generator;

    /// `torch.nn.BatchNorm1d(2)` after a step in training over these values.
    #[test]
    fn running_statistics_are_those_of_pytorch() {
        let _generator = generator();
        let device = Device::flex().autodiff();
        let values = vec![1.0_f32, 10.0, 2.0, 30.0, 6.0, 80.0];
        let x = Tensor::<2>::from_data(TensorData::new(values, [3, 2]), &device);
        for is_fast in [false, true] {
            let norm = BatchNormConfig::new(2).init(&device);
            if is_fast {
                fast::norm::batch(&norm, &x, None).expect("computed by kernels");
            } else {
                forward(&norm, x.clone());
            }
            let read = |tensor: Tensor<1>| tensor.into_data().iter::<f64>().collect::<Vec<_>>();
            // As a visitor finds them, without another pass.
            let mean = read(norm.running_mean.value());
            let variance = read(norm.running_var.value());
            for (found, wanted) in mean.iter().zip([0.3, 4.0]) {
                assert!((found - wanted).abs() < 1e-6, "{mean:?}");
            }
            for (found, wanted) in variance.iter().zip([1.6, 130.9]) {
                assert!((found / wanted - 1.0).abs() < 1e-6, "{variance:?}");
            }
            // One item has no variance.
            forward(&norm, x.clone().narrow(0, 0, 1));
            assert_eq!(read(norm.running_var.value()), variance);
        }
    }
}
