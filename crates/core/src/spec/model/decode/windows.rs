//! The keys of layers with windows: convolutions and poolings.

use super::{MAX_SIZE, bias, channels, each, kernel, sizes};
use crate::spec::kind::{Kind, Padding};
use crate::spec::model::initializer::Initializer;
use crate::spec::model::layer::{Conv, ConvTranspose, DeformConv, Pool, Unfold};
use crate::spec::model::parametrization::Parametrization;
use crate::spec::section::Section;

impl Conv {
    pub(super) fn decode(s: &mut Section<'_>, dims: usize) -> Self {
        Self {
            dims,
            out_channels: channels(s),
            kernel_size: kernel(s, dims),
            stride: sizes(s, "stride", "Stride of the window.", dims),
            dilation: dilation(s, dims),
            groups: groups(s),
            padding: if dims == 1 {
                padding_in_time(s)
            } else {
                padding(s, dims)
            },
            bias: bias(s),
            initializer: Initializer::decode(s),
            parametrization: Parametrization::decode(s),
        }
    }
}

fn dilation(s: &mut Section<'_>, dims: usize) -> Vec<usize> {
    let doc = "Spacing between the elements of the kernel.";
    sizes(s, "dilation", doc, dims)
}

fn groups(s: &mut Section<'_>) -> usize {
    let doc = "Number of channel groups that are convolved separately.";
    s.field("groups", Kind::Int(1, MAX_SIZE), doc).or(1)
}

fn padding(s: &mut Section<'_>, dims: usize) -> Padding {
    let doc = "Zero padding: \"valid\" for none, \"same\" to keep the size (divided by the stride), or a number for each side.";
    s.field("padding", Kind::padding(dims), doc)
        .or(Padding::Valid)
}

/// The same for a convolution over time.
fn padding_in_time(s: &mut Section<'_>) -> Padding {
    let doc = "Zero padding: \"valid\" for none, \"same\" to keep the size (divided by the stride), \"causal\" to do so with zeros at the start only, or a number for each side.";
    s.field("padding", Kind::padding_in_time(), doc)
        .or(Padding::Valid)
}

impl ConvTranspose {
    pub(super) fn decode(s: &mut Section<'_>, dims: usize) -> Self {
        let paddings = |s: &mut Section<'_>, key, doc| {
            let sizes: Vec<usize> = s.field(key, Kind::sizes(0, dims), doc).or(vec![0]);
            each(sizes, dims)
        };
        Self {
            dims,
            out_channels: channels(s),
            kernel_size: kernel(s, dims),
            stride: sizes(s, "stride", "Upsampling factor.", dims),
            dilation: dilation(s, dims),
            groups: groups(s),
            padding: paddings(
                s,
                "padding",
                "Padding that is cropped from each side of the output.",
            ),
            output_padding: paddings(s, "output_padding", "Size added to one side of the output."),
            bias: bias(s),
            initializer: Initializer::decode(s),
            parametrization: Parametrization::decode(s),
        }
    }
}

impl DeformConv {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        Self {
            out_channels: channels(s),
            window: Unfold::decode(s),
            groups: groups(s),
            bias: bias(s),
            initializer: Initializer::decode(s),
        }
    }
}

impl Unfold {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        Self {
            kernel_size: kernel(s, 2),
            stride: sizes(s, "stride", "Stride of the window.", 2),
            dilation: dilation(s, 2),
            padding: {
                let doc =
                    "Zeros at each side of the image, one number or one for each of both axes.";
                let pads: Vec<usize> = s.field("padding", Kind::sizes(0, 2), doc).or(vec![0]);
                each(pads, 2)
            },
        }
    }
}

impl Pool {
    pub(super) fn decode(s: &mut Section<'_>, max: bool, dims: usize) -> Self {
        let kernel_size = kernel(s, dims);
        let doc = "Stride of the window; its size when not set.";
        let stride: Option<Vec<usize>> = s.field("stride", Kind::sizes(1, dims), doc).optional();
        Self {
            max,
            dims,
            stride: stride.map_or_else(|| kernel_size.clone(), |sizes| each(sizes, dims)),
            kernel_size,
            padding: padding(s, dims),
            dilation: if max {
                sizes(
                    s,
                    "dilation",
                    "Spacing between the elements of the window.",
                    dims,
                )
            } else {
                vec![1; dims]
            },
            ceil_mode: {
                let doc = "Whether to include a last, incomplete window.";
                s.field("ceil_mode", Kind::Bool, doc).or(false)
            },
            count_include_pad: if max {
                true
            } else {
                let doc = "Whether a mean includes the zero padding.";
                s.field("count_include_pad", Kind::Bool, doc).or(true)
            },
        }
    }
}
