//! The kernels as operations of Burn's backend `flex`, with their backward pass in its autodiff.

use std::sync::Arc;

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, Backend, Dispatch, DispatchDevice, Flex, TensorMetadata, backend_extension,
};
use burn::tensor::ops::{ConvOptions, MaxPoolOptions};
use burn::tensor::{Bytes, DType, Device, Shape, Tensor};

use runner_kernels::{self as kernels, Geometry};

/// Convolutions and pooling, of tensors \[items, channels, width\] or \[items, channels, height, width\].
#[backend_extension(Flex, Autodiff)]
pub trait ConvolutionOps: Backend {
    /// A convolution.
    fn convolution(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        geometry: Geometry,
    ) -> FloatTensor<Self>;

    /// A convolution with a bias for each output channel.
    fn biased_convolution(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        geometry: Geometry,
    ) -> FloatTensor<Self>;

    /// The maximum of each window.
    fn largest_of_windows(x: FloatTensor<Self>, geometry: Geometry) -> FloatTensor<Self>;
}

/// Whether these operations support a tensor.
fn is_ours<const D: usize>(tensor: &Tensor<D>) -> bool {
    let device: Device = tensor.device();
    let is_flex = match device.as_dispatch() {
        DispatchDevice::Autodiff(device) => matches!(**device, DispatchDevice::Flex(_)),
        device => matches!(device, DispatchDevice::Flex(_)),
    };
    is_flex && tensor.dtype() == DType::F32
}

/// A convolution, if it is supported here.
pub fn convolution<const D: usize, const N: usize>(
    x: &Tensor<D>,
    weight: &Tensor<D>,
    bias: Option<&Tensor<1>>,
    options: &ConvOptions<N>,
) -> Option<Tensor<D>> {
    let (sizes, kernel) = (x.dims(), weight.dims());
    let geometry = Geometry {
        items: sizes[0],
        inputs: sizes[1],
        outputs: kernel[0],
        groups: options.groups,
        input: plane(&sizes[2..], 1),
        kernel: plane(&kernel[2..], 1),
        stride: plane(&options.stride, 1),
        padding: plane(&options.padding, (0, 0)),
        dilation: plane(&options.dilation, 1),
    };
    let fits = geometry.is_sound()
        && kernel[1] == geometry.group_inputs()
        && bias.is_none_or(|bias| bias.dims() == [geometry.outputs]);
    if !fits || !is_ours(x) || !is_ours(weight) {
        return None;
    }
    let (x, weight) = (x.clone().into_dispatch(), weight.clone().into_dispatch());
    Some(Tensor::from_dispatch(match bias {
        None => Dispatch::convolution(x, weight, geometry),
        Some(bias) => {
            let bias = bias.clone().into_dispatch();
            Dispatch::biased_convolution(x, weight, bias, geometry)
        }
    }))
}

/// The maximum of each window, if it is supported here.
pub fn max_pool<const D: usize, const N: usize>(
    x: &Tensor<D>,
    options: &MaxPoolOptions<N>,
) -> Option<Tensor<D>> {
    let sizes = x.dims();
    let geometry = Geometry {
        items: sizes[0],
        inputs: sizes[1],
        outputs: sizes[1],
        groups: sizes[1],
        input: plane(&sizes[2..], 1),
        kernel: plane(&options.kernel_size, 1),
        stride: plane(&options.stride, 1),
        padding: plane(&options.padding, (0, 0)),
        dilation: plane(&options.dilation, 1),
    };
    if !kernels::can_pool(&geometry) || !is_ours(x) {
        return None;
    }
    let pooled = Dispatch::largest_of_windows(x.clone().into_dispatch(), geometry);
    Some(Tensor::from_dispatch(pooled))
}

/// Sizes along height and width, of one or two axes.
fn plane<T: Copy>(sizes: &[T], one: T) -> [T; 2] {
    match *sizes {
        [width] => [one, width],
        [height, width] => [height, width],
        _ => panic!("convolutions here have one or two dimensions"),
    }
}

/// A tensor of items and channels with as many axes as `like`.
fn planes(values: Vec<f32>, geometry: &Geometry, rank: usize) -> FlexTensor {
    let [height, width] = geometry.output();
    let sizes = [geometry.items, geometry.outputs, height, width];
    let shape = match rank {
        3 => Shape::from([sizes[0], sizes[1], width]),
        _ => Shape::from(sizes),
    };
    tensor(values, shape)
}

fn tensor(values: Vec<f32>, shape: Shape) -> FlexTensor {
    FlexTensor::new(
        Bytes::from_elems(values),
        Layout::contiguous(shape),
        DType::F32,
    )
}

/// The numbers of a contiguous tensor.
fn numbers(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice().expect("a contiguous tensor of f32")
}

impl ConvolutionOps for Flex {
    fn convolution(x: FlexTensor, weight: FlexTensor, geometry: Geometry) -> FlexTensor {
        let (x, weight) = (x.to_contiguous(), weight.to_contiguous());
        let values = kernels::forward(&geometry, numbers(&x), numbers(&weight), None);
        planes(values, &geometry, x.shape().num_dims())
    }

    fn biased_convolution(
        x: FlexTensor,
        weight: FlexTensor,
        bias: FlexTensor,
        geometry: Geometry,
    ) -> FlexTensor {
        let (x, weight, bias) = (
            x.to_contiguous(),
            weight.to_contiguous(),
            bias.to_contiguous(),
        );
        let bias = Some(numbers(&bias));
        let values = kernels::forward(&geometry, numbers(&x), numbers(&weight), bias);
        planes(values, &geometry, x.shape().num_dims())
    }

    fn largest_of_windows(x: FlexTensor, geometry: Geometry) -> FlexTensor {
        let x = x.to_contiguous();
        let (values, _) = kernels::max_pool(&geometry, numbers(&x));
        planes(values, &geometry, x.shape().num_dims())
    }
}

/// The backward pass of a convolution, whose parents are the input, the weights and with `N = 3` the bias.
#[derive(Debug)]
struct Convolution<const N: usize>;

impl<const N: usize> Backward<Flex, N> for Convolution<N> {
    /// Saved input and weights; one that only the gradient of a constant would need is not saved.
    type State = (Option<NodeId>, Option<NodeId>, [Shape; 2], Geometry);

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let gradient = numbers(&gradient);
        let (x, weight, [x_shape, weight_shape], geometry) = ops.state;
        let mut kept = |node: Option<NodeId>| {
            let node = node.expect("kept for the other's gradient");
            let tensor: FlexTensor = checkpointer.retrieve_node_output(node);
            tensor.to_contiguous()
        };
        if let Some(node) = &ops.parents[0] {
            let weight = kept(weight);
            let values = kernels::backward_input(&geometry, gradient, numbers(&weight));
            grads.register::<Flex>(node.id, tensor(values, x_shape));
        }
        if let Some(node) = &ops.parents[1] {
            let x = kept(x);
            let values = kernels::backward_weight(&geometry, numbers(&x), gradient);
            grads.register::<Flex>(node.id, tensor(values, weight_shape));
        }
        if let Some(node) = ops.parents.get(2).and_then(Option::as_ref) {
            let values = kernels::backward_bias(&geometry, gradient);
            grads.register::<Flex>(node.id, tensor(values, Shape::from([geometry.outputs])));
        }
    }
}

/// The backward pass of pooling: the chosen tap of each window.
#[derive(Debug)]
struct Largest;

impl Backward<Flex, 1> for Largest {
    type State = (Arc<Vec<u8>>, Shape, Geometry);

    fn backward(
        self,
        ops: Ops<Self::State, 1>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let (chosen, shape, geometry) = ops.state;
        if let [Some(node)] = &ops.parents {
            let values = kernels::max_pool_backward(&geometry, numbers(&gradient), &chosen);
            grads.register::<Flex>(node.id, tensor(values, shape));
        }
    }
}

impl<C: CheckpointStrategy> ConvolutionOps for Autodiff<Flex, C> {
    fn convolution(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        geometry: Geometry,
    ) -> FloatTensor<Self> {
        let shapes = [x.primitive().shape(), weight.primitive().shape()];
        let output = Flex::convolution(x.primitive().clone(), weight.primitive().clone(), geometry);
        let prepared = Convolution::<2>.prepare::<C>([x.node(), weight.node()]);
        match prepared.compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let x_kept = weight.is_tracked().then(|| prep.checkpoint(&x));
                let weight_kept = x.is_tracked().then(|| prep.checkpoint(&weight));
                prep.finish((x_kept, weight_kept, shapes, geometry), output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn biased_convolution(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        geometry: Geometry,
    ) -> FloatTensor<Self> {
        let shapes = [x.primitive().shape(), weight.primitive().shape()];
        let output = Flex::biased_convolution(
            x.primitive().clone(),
            weight.primitive().clone(),
            bias.primitive().clone(),
            geometry,
        );
        let prepared = Convolution::<3>.prepare::<C>([x.node(), weight.node(), bias.node()]);
        match prepared.compute_bound().stateful() {
            OpsKind::Tracked(mut prep) => {
                let x_kept = weight.is_tracked().then(|| prep.checkpoint(&x));
                let weight_kept = x.is_tracked().then(|| prep.checkpoint(&weight));
                prep.finish((x_kept, weight_kept, shapes, geometry), output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn largest_of_windows(x: FloatTensor<Self>, geometry: Geometry) -> FloatTensor<Self> {
        let primitive = x.primitive().to_contiguous();
        let shape = primitive.shape();
        let (values, chosen) = kernels::max_pool(&geometry, numbers(&primitive));
        let output = planes(values, &geometry, shape.num_dims());
        match Largest.prepare::<C>([x.node()]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((Arc::new(chosen), shape, geometry), output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }
}
