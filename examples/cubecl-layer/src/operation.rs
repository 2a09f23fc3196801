//! The moving average as an operation of Burn's backends: its place in the graph of autodiff, and its routes to the
//! kernels.

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::fusion::custom::TensorSpec;
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, Backend, Dispatch, DispatchDevice, TensorMetadata, backend_extension,
};
use burn::tensor::{Device, Shape, Tensor};

/// The forward pass. `backend_extension` implements it for the tensors that programs have (`Dispatch`), and for
/// backends that put off operations in order to fuse them (`Fusion`), which must know the shape of the output before.
#[backend_extension(Cube, Fusion, Autodiff)]
pub trait AverageOps: Backend {
    /// The averages of \[batch, length, channels\] with the decays of the channels.
    #[fusion(dtype = x, shape = x)]
    fn average(x: FloatTensor<Self>, decays: FloatTensor<Self>) -> FloatTensor<Self>;
}

/// The backward pass, which has no gradients of its own.
#[backend_extension(Cube, Fusion)]
pub trait AverageGradientOps: Backend {
    /// The gradients of the sequences, and of the decays for each item, from those of the averages.
    #[fusion(meta = |_gradient, x, _averages, _decays| (x.clone(), of_items(x)))]
    fn average_gradients(
        gradient: FloatTensor<Self>,
        x: FloatTensor<Self>,
        averages: FloatTensor<Self>,
        decays: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>);
}

/// \[batch, channels\].
fn of_items(x: &TensorSpec) -> TensorSpec {
    TensorSpec::new(Shape::from([x.shape[0], x.shape[2]]), x.dtype)
}

/// Whether a device has the kernels.
pub fn has_kernel(device: &Device) -> bool {
    match device.as_dispatch() {
        DispatchDevice::Autodiff(device) => matches!(**device, DispatchDevice::Cube(_)),
        device => matches!(device, DispatchDevice::Cube(_)),
    }
}

/// The moving averages, by the kernel.
pub fn average(x: Tensor<3>, decays: Tensor<1>) -> Tensor<3> {
    Tensor::from_dispatch(Dispatch::average(x.into_dispatch(), decays.into_dispatch()))
}

/// The node of the operation in the graph.
#[derive(Debug)]
struct AverageBackward;

impl<B: AverageOps + AverageGradientOps, C: CheckpointStrategy> AverageOps for Autodiff<B, C> {
    fn average(x: FloatTensor<Self>, decays: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [x.node(), decays.node()];
        let prepared = Backward::<B, 2>::prepare::<C>(AverageBackward, nodes).compute_bound();
        match prepared.stateful() {
            OpsKind::Tracked(mut prepared) => {
                let places = [prepared.checkpoint(&x), prepared.checkpoint(&decays)];
                let averages = B::average(x.into_primitive(), decays.into_primitive());
                prepared.finish((places, averages.clone()), averages)
            }
            OpsKind::UnTracked(prepared) => {
                prepared.finish(B::average(x.into_primitive(), decays.into_primitive()))
            }
        }
    }
}

impl<B: AverageGradientOps> Backward<B, 2> for AverageBackward {
    /// The places of the operands, and the averages.
    type State = ([NodeId; 2], FloatTensor<B>);

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        gradients: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let gradient = gradients.consume::<B>(&ops.node);
        let (places, averages) = ops.state;
        let [x, decays]: [FloatTensor<B>; 2] =
            places.map(|place| checkpointer.retrieve_node_output(place));
        let channels = decays.shape();
        let (of_x, of_decays) = B::average_gradients(gradient, x, averages, decays);
        let [x, decays] = ops.parents;
        if let Some(node) = x {
            gradients.register::<B>(node.id, of_x);
        }
        if let Some(node) = decays {
            let sum = B::float_reshape(B::float_sum_dim(of_decays, 0), channels);
            gradients.register::<B>(node.id, sum);
        }
    }
}
