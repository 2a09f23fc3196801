//! Convolutions along one to three axes, and max pooling along one or two, with runner's kernels if available, otherwise
//! with Burn's.
//!
//! The modules here have the parameters of Burn's, so that a checkpoint does not depend on the kernels that
//! wrote it.

#[cfg(all(test, feature = "flex"))]
mod tests;

use burn::module::{Module, Param};
use burn::nn::conv::{Conv1dConfig, Conv2dConfig, Conv3dConfig};
use burn::tensor::module::{conv1d, conv2d, conv3d, max_pool1d, max_pool2d};
use burn::tensor::ops::{ConvOptions, MaxPoolOptions};
use burn::tensor::{Device, Tensor};

#[cfg(feature = "flex")]
use crate::fast::{convolution::convolution, pool::max_pool};
use runner_core::spec::backend::{Arithmetic, Kernels};

macro_rules! modules {
    ($($(#[$doc:meta])* $name:ident, $config:ident, $conv:ident, $dims:literal, $rank:literal;)+) => {$(
        $(#[$doc])*
        #[derive(Module, Debug)]
        pub struct $name {
            /// \[outputs, inputs / groups, kernel\].
            pub weight: Param<Tensor<$rank>>,
            /// \[outputs\].
            pub bias: Option<Param<Tensor<1>>>,
            /// Number of channel groups.
            pub groups: usize,
            #[module(skip)]
            options: ConvOptions<$dims>,
            #[module(skip)]
            computed: (Kernels, Arithmetic),
        }

        impl $name {
            /// A convolution with Burn's configuration, except for its padding, and uninitialized weights.
            pub fn new(
                config: &$config,
                options: ConvOptions<$dims>,
                computed: (Kernels, Arithmetic),
                device: &Device,
            ) -> Self {
                let conv = config.init(device);
                Self {
                    weight: conv.weight,
                    bias: conv.bias,
                    groups: options.groups,
                    options,
                    computed,
                }
            }

            /// \[items, inputs, ..\] to \[items, outputs, ..\].
            pub fn forward(&self, x: Tensor<$rank>) -> Tensor<$rank> {
                let weight = self.weight.val();
                let bias = self.bias.as_ref().map(|bias| bias.val());
                #[cfg(feature = "flex")]
                if self.computed.0 == Kernels::Fast
                    && let Some(output) =
                        convolution(&x, &weight, bias.as_ref(), &self.options, self.computed.1)
                {
                    return output;
                }
                $conv(x, weight, bias, self.options.clone())
            }
        }
    )+};
}

modules! {
    /// A one-dimensional convolution.
    Conv1d, Conv1dConfig, conv1d, 1, 3;
    /// A two-dimensional convolution.
    Conv2d, Conv2dConfig, conv2d, 2, 4;
    /// A three-dimensional convolution.
    Conv3d, Conv3dConfig, conv3d, 3, 5;
}

macro_rules! pooled {
    ($name:ident, $pool:ident, $dims:literal, $rank:literal) => {
        /// The maximum of each window.
        pub fn $name(
            x: Tensor<$rank>,
            options: MaxPoolOptions<$dims>,
            kernels: Kernels,
        ) -> Tensor<$rank> {
            #[cfg(feature = "flex")]
            if kernels == Kernels::Fast
                && !options.ceil_mode
                && let Some(output) = max_pool(&x, &options)
            {
                return output;
            }
            let _ = kernels;
            $pool(x, options)
        }
    };
}

pooled!(pooled1d, max_pool1d, 1, 3);
pooled!(pooled2d, max_pool2d, 2, 4);
