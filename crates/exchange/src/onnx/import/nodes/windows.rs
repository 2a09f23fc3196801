//! Convolutions and pooling.

use runner_core::spec::kind::Padding;
use runner_core::spec::model::grid::{GridMode, GridPadding, GridSample};
use runner_core::spec::model::layer::{
    Conv, ConvTranspose, DeformConv, LayerKind, PadMode, Pool, Reduction, Unfold,
};
use runner_core::spec::model::parametrization::Parametrization;

use crate::onnx::import::attributes::{flag, int, ints, operator, sizes, text};
use crate::onnx::import::constant::Constant;
use crate::onnx::import::reader::{Live, Reader};
use crate::onnx::import::refused::Read;
use crate::onnx::messages::NodeProto;

/// Zero padding as a file has it: one number for all dimensions if they are equal, and none for 0.
fn zeros(pads: Vec<usize>) -> Padding {
    match pads.as_slice() {
        pads if pads.iter().all(|pad| *pad == 0) => Padding::Valid,
        [first, rest @ ..] if rest.iter().all(|pad| pad == first) => Padding::Zeros(vec![*first]),
        _ => Padding::Zeros(pads),
    }
}

/// The sizes of a window.
struct Window {
    kernel: Vec<usize>,
    stride: Vec<usize>,
    dilation: Vec<usize>,
    /// Padding before and after each dimension.
    pads: Vec<[usize; 2]>,
}

impl Window {
    fn read(node: &NodeProto, kernel: Vec<usize>, input: &[usize]) -> Read<Self> {
        let dims = kernel.len();
        let (stride, dilation) = (
            sizes(node, "strides", dims)?,
            sizes(node, "dilations", dims)?,
        );
        let extent = |at: usize| {
            dilation[at]
                .saturating_mul(kernel[at] - 1)
                .saturating_add(1)
        };
        let kind = text(node, "auto_pad").unwrap_or_default();
        let pads: Vec<[usize; 2]> = match kind.as_str() {
            "SAME_UPPER" | "SAME_LOWER" => {
                let pair = |at: usize| {
                    let wanted = (input[at].div_ceil(stride[at]) - 1) * stride[at];
                    let missing = wanted.saturating_add(extent(at)).saturating_sub(input[at]);
                    let (less, more) = (missing / 2, missing - missing / 2);
                    if kind == "SAME_UPPER" {
                        [less, more]
                    } else {
                        [more, less]
                    }
                };
                (0..dims).map(pair).collect()
            }
            "VALID" => vec![[0, 0]; dims],
            _ => match ints(node, "pads") {
                None => vec![[0, 0]; dims],
                Some(pads) => {
                    let pads = pads
                        .iter()
                        .map(|pad| usize::try_from(*pad).ok().filter(|pad| *pad < 1 << 24));
                    let pads = pads
                        .collect::<Option<Vec<_>>>()
                        .filter(|pads| pads.len() == 2 * dims);
                    let pads = pads.ok_or("its `pads` are negative, or do not cover each side")?;
                    (0..dims).map(|at| [pads[at], pads[dims + at]]).collect()
                }
            },
        };
        for at in 0..dims {
            if extent(at)
                > input[at]
                    .saturating_add(pads[at][0])
                    .saturating_add(pads[at][1])
            {
                return Err(format!(
                    "its window of {} is larger than its input of {}",
                    extent(at),
                    input[at]
                )
                .into());
            }
        }
        Ok(Self {
            kernel,
            stride,
            dilation,
            pads,
        })
    }

    /// The padding if it is the same on both sides.
    fn even(&self) -> Option<Vec<usize>> {
        let even = self
            .pads
            .iter()
            .map(|[before, after]| (before == after).then_some(*before));
        even.collect()
    }

    /// Windows along each dimension.
    fn num_windows(&self, input: &[usize]) -> Vec<usize> {
        let num = |at: usize| {
            let extent = self.dilation[at] * (self.kernel[at] - 1) + 1;
            let [before, after] = self.pads[at];
            (input[at] + before + after - extent) / self.stride[at] + 1
        };
        (0..self.kernel.len()).map(num).collect()
    }

    /// Whether using the padding before an axis on both sides gives the same number of windows: then only neutral
    /// values differ. The number of windows may be rounded up.
    fn has_even_windows(&self, input: &[usize], rounds_up: bool) -> bool {
        let wanted = self.num_windows(input);
        (0..self.kernel.len()).all(|at| {
            let [before, _] = self.pads[at];
            let extent = self.dilation[at] * (self.kernel[at] - 1) + 1;
            let Some(room) = (input[at] + 2 * before).checked_sub(extent) else {
                return false;
            };
            if !rounds_up {
                return room / self.stride[at] + 1 == wanted[at];
            }
            let windows = room.div_ceil(self.stride[at]) + 1;
            let is_behind = (windows - 1) * self.stride[at] >= input[at] + before;
            windows - usize::from(is_behind) == wanted[at]
        })
    }

    /// Whether a single window covers the whole input.
    fn is_whole(&self, input: &[usize]) -> bool {
        let sees = |at: usize| {
            self.dilation[at] == 1
                && self.kernel[at] - self.kernel[at].min(self.pads[at][0]) >= input[at]
        };
        self.num_windows(input).iter().all(|num| *num == 1) && (0..self.kernel.len()).all(sees)
    }
}

impl Reader<'_> {
    pub(super) fn conv(&mut self, node: &NodeProto) -> Read {
        let live = self.live(node, 0)?;
        let (weight, groups) = self.kernel(node, &live)?;
        let window = Window::read(node, weight.shape[2..].to_vec(), &live.view.shape()[2..])?;
        let (live, pads) = match window.even() {
            Some(pads) => (live, pads),
            None => {
                let pairs = [&[[0, 0]; 2], window.pads.as_slice()].concat();
                let padded = self.padded(&live, &pairs, PadMode::Constant, 0.0)?;
                (padded, vec![0; window.kernel.len()])
            }
        };
        let front = self.images(&live)?;
        if weight.shape[1].checked_mul(groups) != Some(live.view.shape()[1]) {
            return Err(format!(
                "its weights of shape {:?} do not match {:?}",
                weight.shape,
                live.view.shape()
            )
            .into());
        }
        let out = weight.shape[0];
        let kind = LayerKind::Conv(Conv {
            dims: window.kernel.len(),
            out_channels: Some(out),
            kernel_size: window.kernel,
            stride: window.stride,
            dilation: window.dilation,
            groups,
            padding: zeros(pads),
            bias: self.constant(node, 2).is_some(),
            initializer: None,
            parametrization: Parametrization::None,
        });
        self.convolved(node, &front, kind, &weight, out)
    }

    /// Its inputs are the image, weights, offsets, biases, and weights of samples.
    pub(super) fn deform_conv(&mut self, node: &NodeProto) -> Read {
        let live = self.live(node, 0)?;
        let weight = self.weight(node, 1)?;
        let input = live.view.shape();
        let shapes = (weight.shape.as_slice(), input.as_slice());
        let ([out, of_group, rows, columns], [_, channels, height, width]) = shapes else {
            return Err(format!("its weights have the shape {:?}", weight.shape).into());
        };
        if weight.shape.contains(&0) {
            return Err("its weights are empty".into());
        }
        let (out, groups) = (*out, int(node, "group").unwrap_or(1));
        let groups = usize::try_from(groups).ok().filter(|groups| *groups > 0);
        let groups = groups.filter(|groups| groups.checked_mul(*of_group) == Some(*channels));
        let groups = groups.ok_or("its weights do not match its input")?;
        let window = Window::read(node, vec![*rows, *columns], &[*height, *width])?;
        let padding = window
            .even()
            .ok_or("it pads one side more than the other")?;
        let image = self.images(&live)?;
        let mut sources = vec![image.source];
        for at in [2, 4] {
            let is_given = node.input.get(at).is_some_and(|name| !name.is_empty());
            if at == 2 || is_given {
                let live = self.live(node, at)?;
                sources.push(self.images(&live)?.source);
            }
        }
        let num_offsets = self.builder.dims(sources[1]).first().copied();
        let sets = usize::try_from(int(node, "offset_group").unwrap_or(1)).ok();
        let wanted = sets.and_then(|sets| sets.checked_mul(2 * rows * columns));
        if num_offsets != wanted {
            return Err("its offsets do not match its groups of offsets".into());
        }
        let bias = self.constant(node, 3);
        if bias.is_none() && node.input.get(3).is_some_and(|name| !name.is_empty()) {
            return Err("its bias is computed from the inputs of the graph".into());
        }
        let kind = LayerKind::DeformConv2d(DeformConv {
            out_channels: Some(out),
            window: Unfold {
                kernel_size: window.kernel,
                stride: window.stride,
                dilation: window.dilation,
                padding,
            },
            groups,
            bias: bias.is_some(),
            initializer: None,
        });
        let name = self.name_of(node, 1, &kind.type_name());
        let source = self.put_layer_of(node, &image, &name, kind, &sources)?;
        let values = weight.floats().to_vec();
        self.builder
            .give(source, "weight", weight.shape.clone(), values);
        if let Some(bias) = bias {
            if bias.len() != out {
                return Err(format!("it has {} biases for {out} channels", bias.len()).into());
            }
            let values = bias.floats().to_vec();
            self.builder.give(source, "bias", vec![out], values);
        }
        Ok(())
    }

    /// Samples of images, without cubic curves and without reflection.
    pub(super) fn grid_sample(&mut self, node: &NodeProto) -> Read {
        let image = self.live(node, 0)?;
        let image = self.images(&image)?;
        let grid = self.live(node, 1)?;
        let grid = self.images(&grid)?;
        let mode = match text(node, "mode").as_deref().unwrap_or("linear") {
            "linear" | "bilinear" => GridMode::Linear,
            "nearest" => GridMode::Nearest,
            _ => return Err("it interpolates by cubic curves".into()),
        };
        let padding = match text(node, "padding_mode").as_deref().unwrap_or("zeros") {
            "zeros" => GridPadding::Zeros,
            "border" => GridPadding::Border,
            _ => return Err("it reflects what is outside of the image".into()),
        };
        let kind = LayerKind::GridSample(GridSample {
            mode,
            padding,
            align_corners: int(node, "align_corners").unwrap_or(0) != 0,
        });
        let sources = [image.source, grid.source];
        self.put_layer_of(node, &image, "grid_sample", kind, &sources)?;
        Ok(())
    }

    pub(super) fn conv_transpose(&mut self, node: &NodeProto) -> Read {
        let live = self.live(node, 0)?;
        let (weight, groups) = self.kernel(node, &live)?;
        let dims = weight.shape.len() - 2;
        if ints(node, "output_shape").is_some()
            || text(node, "auto_pad").is_some_and(|kind| kind != "NOTSET" && kind != "VALID")
        {
            return Err("its padding is derived from the size of its output".into());
        }
        // The window may be larger than the input, since it does not slide.
        let window = Window::read(
            node,
            weight.shape[2..].to_vec(),
            &vec![usize::MAX / 4; dims],
        )?;
        let pads = window
            .even()
            .ok_or("it crops more on one side than on the other")?;
        let more = match ints(node, "output_padding") {
            None => vec![0; dims],
            Some(more) => more
                .iter()
                .filter_map(|size| usize::try_from(*size).ok())
                .collect(),
        };
        if more.len() != dims || weight.shape[0] != live.view.shape()[1] {
            return Err(format!(
                "its weights of shape {:?} do not match {:?}",
                weight.shape,
                live.view.shape()
            )
            .into());
        }
        let out = weight.shape[1]
            .checked_mul(groups)
            .ok_or("it has too many groups")?;
        let kind = LayerKind::ConvTranspose(ConvTranspose {
            dims,
            out_channels: Some(out),
            kernel_size: window.kernel,
            stride: window.stride,
            dilation: window.dilation,
            groups,
            padding: pads,
            output_padding: more,
            bias: self.constant(node, 2).is_some(),
            initializer: None,
            parametrization: Parametrization::None,
        });
        let front = self.images(&live)?;
        self.convolved(node, &front, kind, &weight, out)
    }

    /// The weights of a convolution for its input, and its groups.
    fn kernel(&self, node: &NodeProto, live: &Live) -> Read<(std::rc::Rc<Constant>, usize)> {
        let weight = self.weight(node, 1)?;
        let dims = weight.shape.len().saturating_sub(2);
        if !(1..=3).contains(&dims) || live.view.rank() != dims + 2 || weight.shape.contains(&0) {
            return Err(format!(
                "its weights of shape {:?} do not match {:?}",
                weight.shape,
                live.view.shape()
            )
            .into());
        }
        if self.constant(node, 2).is_none()
            && node.input.get(2).is_some_and(|name| !name.is_empty())
        {
            return Err("its bias is computed from the inputs of the graph".into());
        }
        let groups = usize::try_from(int(node, "group").unwrap_or(1)).unwrap_or(0);
        if groups == 0 {
            return Err("its number of groups is not positive".into());
        }
        Ok((weight, groups))
    }

    fn convolved(
        &mut self,
        node: &NodeProto,
        front: &crate::onnx::import::reader::Front,
        kind: LayerKind,
        weight: &Constant,
        out: usize,
    ) -> Read {
        let name = self.name_of(node, 1, &kind.type_name());
        let source = self.put_layer(node, front, &name, kind)?;
        self.builder.give(
            source,
            "weight",
            weight.shape.clone(),
            weight.floats().to_vec(),
        );
        if let Some(bias) = self.constant(node, 2) {
            if bias.len() != out {
                return Err(format!("it has {} biases for {out} channels", bias.len()).into());
            }
            self.builder
                .give(source, "bias", vec![out], bias.floats().to_vec());
        }
        Ok(())
    }

    pub(super) fn pool(&mut self, node: &NodeProto) -> Read {
        if self.is_used(node, 1) {
            return Err("the indices of its maxima are used".into());
        }
        let mut live = self.live(node, 0)?;
        let is_max = operator(node) == "MaxPool";
        let dims = live.view.rank().saturating_sub(2);
        if !(1..=3).contains(&dims) || ints(node, "kernel_shape").is_none() {
            return Err(format!("its input has {} axes", live.view.rank()).into());
        }
        let kernel = sizes(node, "kernel_shape", dims)?;
        let input = live.view.shape()[2..].to_vec();
        let mut window = Window::read(node, kernel, &input)?;
        if !is_max && window.dilation.iter().any(|by| *by > 1) {
            return Err("it averages with dilation".into());
        }
        let counts = flag(node, "count_include_pad");
        let mut ceil_mode = flag(node, "ceil_mode");
        let pads = match window.even() {
            Some(pads) => pads,
            None if (is_max || !counts) && !ceil_mode && window.has_even_windows(&input, false) => {
                window.pads.iter().map(|[before, _]| *before).collect()
            }
            None if (is_max || !counts) && !ceil_mode && window.has_even_windows(&input, true) => {
                ceil_mode = true;
                window.pads.iter().map(|[before, _]| *before).collect()
            }
            None if !is_max && !counts && window.is_whole(&input) => {
                return self.mean_of_planes(node, &live, dims);
            }
            None if is_max || counts => {
                let pairs = [&[[0, 0]; 2], window.pads.as_slice()].concat();
                let value = if is_max { f64::from(f32::MIN) } else { 0.0 };
                live = self.padded(&live, &pairs, PadMode::Constant, value)?;
                vec![0; dims]
            }
            None => {
                return Err(
                    "it pads one side more than the other, and excludes the padding from its means"
                        .into(),
                );
            }
        };
        let has_padding = pads.iter().any(|pad| *pad > 0) || ceil_mode;
        let kind = LayerKind::Pool(Pool {
            max: is_max,
            dims,
            kernel_size: std::mem::take(&mut window.kernel),
            stride: window.stride,
            padding: zeros(pads),
            dilation: window.dilation,
            ceil_mode,
            count_include_pad: is_max || counts || !has_padding,
        });
        let front = self.images(&live)?;
        self.put_layer(node, &front, &kind.type_name(), kind)
            .map(drop)
    }

    /// One mean of each channel.
    fn mean_of_planes(&mut self, node: &NodeProto, live: &Live, dims: usize) -> Read {
        let front = self.images(live)?;
        let kind = LayerKind::AdaptiveAvgPool {
            dims,
            output_size: vec![1; dims],
        };
        self.put_layer(node, &front, &kind.type_name(), kind)
            .map(drop)
    }

    pub(super) fn global_pool(&mut self, node: &NodeProto) -> Read {
        let mut live = self.live(node, 0)?;
        let dims = live.view.rank().saturating_sub(2);
        if operator(node) == "GlobalAveragePool" && (1..=3).contains(&dims) {
            return self.mean_of_planes(node, &live, dims);
        }
        self.images(&live)?;
        for at in (2..live.view.rank()).rev() {
            let front = self.front(&live, None)?;
            let kind = LayerKind::Reduce {
                operation: if operator(node) == "GlobalMaxPool" {
                    Reduction::Max
                } else {
                    Reduction::Mean
                },
                axis: front.places[at].unwrap_or(0) as i64,
            };
            let source = self.builder.plain(kind, &[front.source])?;
            let view = self.back_without(front, at, source)?.unsqueezed(at);
            live = Live { source, view };
        }
        self.put(node, live.source, live.view)
    }
}
