//! Shape inference: the layers of a model with all sizes filled in, without a device.

use serde::{Deserialize, Serialize};

use crate::spec::model::{Activation, ModelSpec, Padding};

/// A network as an ordered list of layers whose sizes are known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Numbers that training changes.
    pub num_parameters: u64,
    /// Values that one item's forward pass keeps for the backward pass.
    pub activations_per_item: u64,
    /// The layers in order.
    pub layers: Vec<Layer>,
}

/// One layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Layer {
    /// \[batch, inputs\] to \[batch, outputs\], with a bias.
    Linear {
        /// Width of its input.
        inputs: usize,
        /// Width of its output.
        outputs: usize,
    },
    /// \[batch, in_channels, height, width\] to \[batch, out_channels, ..\], with a bias.
    Conv2d {
        /// Channels of its input.
        in_channels: usize,
        /// Channels of its output.
        out_channels: usize,
        /// Side of the square kernel.
        kernel_size: usize,
        /// What surrounds the image.
        padding: Padding,
    },
    /// The largest value of each square of an image.
    MaxPool2d {
        /// Side of the square, and step between squares.
        size: usize,
    },
    /// A function of each value.
    Activation {
        /// Which.
        function: Activation,
    },
    /// Values are dropped in training, the others scaled up.
    Dropout {
        /// Probability to be dropped.
        probability: f64,
    },
    /// \[batch, ..\] to \[batch, product\].
    Flatten,
}

impl Network {
    /// The name of each layer: its type with its number among those of that type.
    pub fn layer_names(&self) -> Vec<String> {
        let mut counts = std::collections::BTreeMap::new();
        let name = |layer: &Layer| {
            let kind = match layer {
                Layer::Linear { .. } => "linear",
                Layer::Conv2d { .. } => "conv2d",
                Layer::MaxPool2d { .. } => "max_pool2d",
                Layer::Activation { .. } => "activation",
                Layer::Dropout { .. } => "dropout",
                Layer::Flatten => "flatten",
            };
            let count = counts.entry(kind).or_insert(0);
            *count += 1;
            format!("{kind}{count}")
        };
        self.layers.iter().map(name).collect()
    }

    /// The path of each parameter: its layer's name and where it is in the layer.
    pub fn parameter_paths(&self) -> Vec<String> {
        let names = self.layer_names();
        let layers = self.layers.iter().zip(names);
        let trained = layers
            .filter(|(layer, _)| matches!(layer, Layer::Linear { .. } | Layer::Conv2d { .. }));
        trained
            .flat_map(|(_, name)| [format!("{name}.weight"), format!("{name}.bias")])
            .collect()
    }
}

/// Why a model does not fit its data.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeError {
    /// The key of `[model]` to point at.
    pub key: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

/// Lays out a model for items of a shape and a number of outputs.
pub fn expand(
    model: &ModelSpec,
    item_shape: &[usize],
    num_outputs: usize,
) -> Result<Network, ShapeError> {
    let mut builder = Builder {
        shape: item_shape.to_vec(),
        network: Network {
            num_parameters: 0,
            activations_per_item: 0,
            layers: Vec::new(),
        },
    };
    match model {
        ModelSpec::Mlp {
            hidden,
            activation,
            dropout,
        } => builder.dense(hidden, *activation, *dropout, num_outputs),
        ModelSpec::Cnn {
            channels,
            kernel_size,
            padding,
            pool_size,
            hidden,
            activation,
            dropout,
        } => {
            if item_shape.len() != 3 {
                return Err(ShapeError {
                    key: "type",
                    message: format!(
                        "`cnn` needs images of shape [channels, height, width], and the items have shape {item_shape:?}"
                    ),
                    help: "use `type = \"mlp\"`, or a data set of images".into(),
                });
            }
            for out_channels in channels {
                builder.conv(*out_channels, *kernel_size, *padding)?;
                builder.activation(*activation);
            }
            builder.pool(*pool_size)?;
            builder.dense(hidden, *activation, *dropout, num_outputs);
        }
    }
    Ok(builder.network)
}

struct Builder {
    /// Shape of one item at this point.
    shape: Vec<usize>,
    network: Network,
}

impl Builder {
    fn push(&mut self, layer: Layer, shape: Vec<usize>, num_parameters: usize) {
        self.network.num_parameters += num_parameters as u64;
        // Flattening shares its input's memory; every other layer keeps an output of its own.
        if layer != Layer::Flatten {
            self.network.activations_per_item += shape.iter().product::<usize>() as u64;
        }
        self.network.layers.push(layer);
        self.shape = shape;
    }

    fn activation(&mut self, function: Activation) {
        self.push(Layer::Activation { function }, self.shape.clone(), 0);
    }

    fn conv(
        &mut self,
        out_channels: usize,
        kernel_size: usize,
        padding: Padding,
    ) -> Result<(), ShapeError> {
        let (channels, height, width) = (self.shape[0], self.shape[1], self.shape[2]);
        if padding == Padding::Valid && kernel_size > height.min(width) {
            return Err(ShapeError {
                key: "kernel_size",
                message: format!(
                    "a kernel of {kernel_size}x{kernel_size} does not fit the {height}x{width} image that reaches convolution {}",
                    1 + self.num_convs()
                ),
                help: "use a smaller `kernel_size`, fewer `channels`, or `padding = \"same\"`"
                    .into(),
            });
        }
        if padding == Padding::Same && kernel_size.is_multiple_of(2) {
            return Err(ShapeError {
                key: "kernel_size",
                message: format!("`padding = \"same\"` needs an odd kernel, found {kernel_size}"),
                help: format!("write {} or {}", kernel_size - 1, kernel_size + 1),
            });
        }
        let shrink = if padding == Padding::Valid {
            kernel_size - 1
        } else {
            0
        };
        let layer = Layer::Conv2d {
            in_channels: channels,
            out_channels,
            kernel_size,
            padding,
        };
        let num_parameters = channels * out_channels * kernel_size * kernel_size + out_channels;
        self.push(
            layer,
            vec![out_channels, height - shrink, width - shrink],
            num_parameters,
        );
        Ok(())
    }

    fn num_convs(&self) -> usize {
        let layers = self.network.layers.iter();
        layers
            .filter(|layer| matches!(layer, Layer::Conv2d { .. }))
            .count()
    }

    fn pool(&mut self, size: usize) -> Result<(), ShapeError> {
        let (channels, height, width) = (self.shape[0], self.shape[1], self.shape[2]);
        if size == 1 {
            return Ok(());
        }
        if size > height.min(width) {
            return Err(ShapeError {
                key: "pool_size",
                message: format!(
                    "a pooling of {size}x{size} does not fit the {height}x{width} image that reaches it"
                ),
                help: format!("write a `pool_size` of at most {}", height.min(width)),
            });
        }
        self.push(
            Layer::MaxPool2d { size },
            vec![channels, height / size, width / size],
            0,
        );
        Ok(())
    }

    fn dense(
        &mut self,
        hidden: &[usize],
        activation: Activation,
        dropout: f64,
        num_outputs: usize,
    ) {
        if self.shape.len() > 1 {
            self.push(Layer::Flatten, vec![self.shape.iter().product()], 0);
        }
        for width in hidden {
            self.linear(*width);
            self.activation(activation);
            if dropout > 0.0 {
                let layer = Layer::Dropout {
                    probability: dropout,
                };
                self.push(layer, self.shape.clone(), 0);
            }
        }
        self.linear(num_outputs);
    }

    fn linear(&mut self, outputs: usize) {
        let inputs = self.shape[0];
        self.push(
            Layer::Linear { inputs, outputs },
            vec![outputs],
            inputs * outputs + outputs,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mlp_of_the_main_job_has_the_known_size() {
        let model = ModelSpec::Mlp {
            hidden: vec![128],
            activation: Activation::Relu,
            dropout: 0.0,
        };
        assert_eq!(
            expand(&model, &[1, 28, 28], 10).unwrap().num_parameters,
            101_770
        );
    }
}
