//! `[model]`: the network.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::section::{Choice, Section};

/// The `[model]` table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ModelSpec {
    /// Linear layers with an activation between them.
    Mlp {
        /// Widths of the hidden layers.
        hidden: Vec<usize>,
        /// Between the layers.
        activation: Activation,
        /// Probability that a hidden value is dropped in training.
        dropout: f64,
    },
    /// Convolutions with an activation each, one max-pooling, and linear layers.
    Cnn {
        /// Channels of each convolution.
        channels: Vec<usize>,
        /// Side of the square kernels.
        kernel_size: usize,
        /// What surrounds the image.
        padding: Padding,
        /// Side of the max-pooling after the last convolution; 1 for none.
        pool_size: usize,
        /// Widths of the linear layers before the output.
        hidden: Vec<usize>,
        /// After each layer.
        activation: Activation,
        /// Probability that a value of a linear layer is dropped in training.
        dropout: f64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ModelKind {
    Mlp,
    Cnn,
}

impl Choice for ModelKind {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (
            ModelKind::Mlp,
            "mlp",
            "Linear layers with an activation between them.",
        ),
        (
            ModelKind::Cnn,
            "cnn",
            "Convolutions with an activation each, one max-pooling, and linear layers.",
        ),
    ];
}

/// An activation function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// max(x, 0)
    Relu,
    /// x Φ(x)
    Gelu,
    /// x σ(x)
    Silu,
    /// tanh(x)
    Tanh,
    /// 1 / (1 + exp(-x))
    Sigmoid,
}

impl Choice for Activation {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Activation::Relu, "relu", "max(x, 0)"),
        (
            Activation::Gelu,
            "gelu",
            "x times the normal distribution function of x",
        ),
        (Activation::Silu, "silu", "x times sigmoid(x)"),
        (Activation::Tanh, "tanh", "tanh(x)"),
        (Activation::Sigmoid, "sigmoid", "1 / (1 + exp(-x))"),
    ];
}

/// What surrounds an image under a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Padding {
    /// Nothing: the image shrinks by the kernel's size less one.
    Valid,
    /// Zeros: the image keeps its size.
    Same,
}

impl Choice for Padding {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (
            Padding::Valid,
            "valid",
            "Nothing: the image shrinks by the kernel's size less one.",
        ),
        (Padding::Same, "same", "Zeros: the image keeps its size."),
    ];
}

fn widths(min_items: usize) -> Kind {
    Kind::List {
        item: Box::new(Kind::Int(1, 1 << 20)),
        min_items,
        unique: false,
    }
}

impl ModelSpec {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let activation = |s: &mut Section<'_>| {
            s.choice("activation", "The activation function.", Activation::Relu)
        };
        let dropout = |s: &mut Section<'_>| {
            s.field(
                "dropout",
                Kind::fraction(),
                "Probability that a value of a linear layer is dropped in training.",
            )
            .or(0.0)
        };
        s.variant("The network.", None, |s, kind| match kind {
            ModelKind::Mlp => ModelSpec::Mlp {
                hidden: s
                    .field(
                        "hidden",
                        widths(0),
                        "Widths of the hidden layers; an empty list makes a linear model.",
                    )
                    .or(vec![128]),
                activation: activation(s),
                dropout: dropout(s),
            },
            ModelKind::Cnn => ModelSpec::Cnn {
                channels: s
                    .field("channels", widths(1), "Channels of each convolution.")
                    .or(vec![32, 64]),
                kernel_size: s
                    .field(
                        "kernel_size",
                        Kind::Int(1, 64),
                        "Side of the square kernels.",
                    )
                    .or(3),
                padding: s.choice("padding", "What surrounds the image.", Padding::Valid),
                pool_size: s
                    .field(
                        "pool_size",
                        Kind::Int(1, 64),
                        "Side of the max-pooling after the last convolution; 1 for none.",
                    )
                    .or(2),
                hidden: s
                    .field(
                        "hidden",
                        widths(0),
                        "Widths of the linear layers before the output.",
                    )
                    .or(vec![128]),
                activation: activation(s),
                dropout: dropout(s),
            },
        })
    }
}
