//! Operations of Burn's backend `flex` with custom backward passes, each a type that implements [`Operation`].
//!
//! Burn requires a backend trait with a method for each operation, implemented for the backend and for its autodiff.
//! Here it has one generic method for each number of operands, so that an operation only defines its computation: see
//! `activation.rs` for the smallest one.

use std::fmt::Debug;

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::retro_forward::RetroForward;
use burn::backend::autodiff::checkpoint::state::BackwardStates;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::flex::{FlexTensor, Layout};
use burn::backend::tensor::FloatTensor;
use burn::backend::{
    Autodiff, Backend, Dispatch, DispatchDevice, Flex, TensorMetadata, backend_extension,
};
use burn::tensor::{Bytes, DType, Device, Shape, Tensor};

/// An operation on `N` tensors of 32-bit floats.
pub trait Operation<const N: usize>: Clone + Debug + Send + 'static {
    /// The values that the forward pass keeps for the backward pass, in addition to operands.
    type Kept: Clone + Debug + Send + 'static;

    /// The operands that the backward pass needs to compute the gradients of tracked ones.
    fn asks_for(&self, is_tracked: [bool; N]) -> [bool; N];

    /// Whether gradient checkpointing recomputes it instead of keeping its output. Then nothing else may be kept.
    fn is_cheap(&self) -> bool {
        false
    }

    /// The output and, if `is_kept`, the values to keep.
    fn forward(&self, operands: [FlexTensor; N], is_kept: bool)
    -> (FlexTensor, Option<Self::Kept>);

    /// The requested gradients of the operands.
    fn backward(&self, back: Back<Self::Kept, N>) -> [Option<FlexTensor>; N];
}

/// The inputs of an operation's backward pass.
#[derive(Debug)]
pub struct Back<K, const N: usize> {
    /// The kept values.
    pub kept: K,
    /// The requested operands.
    pub operands: [Option<FlexTensor>; N],
    /// The gradient of its output.
    pub gradient: FlexTensor,
    /// Which gradients are requested.
    pub wants: [bool; N],
}

impl<K, const N: usize> Back<K, N> {
    /// A requested operand, contiguous.
    ///
    /// # Panics
    /// If it was not requested.
    pub fn operand(&mut self, at: usize) -> FlexTensor {
        contiguous(self.operands[at].take().expect("asked for"))
    }
}

/// Operations by the number of their operands.
#[backend_extension(Flex, Autodiff)]
pub trait KernelOps: Backend {
    /// One operand.
    fn kernel_1<O: Operation<1>>(a: FloatTensor<Self>, operation: O) -> FloatTensor<Self>;

    /// Two operands.
    fn kernel_2<O: Operation<2>>(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        operation: O,
    ) -> FloatTensor<Self>;

    /// Three operands.
    fn kernel_3<O: Operation<3>>(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        operation: O,
    ) -> FloatTensor<Self>;

    /// Four operands.
    fn kernel_4<O: Operation<4>>(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        d: FloatTensor<Self>,
        operation: O,
    ) -> FloatTensor<Self>;
}

impl KernelOps for Flex {
    fn kernel_1<O: Operation<1>>(a: FlexTensor, operation: O) -> FlexTensor {
        operation.forward([a], false).0
    }

    fn kernel_2<O: Operation<2>>(a: FlexTensor, b: FlexTensor, operation: O) -> FlexTensor {
        operation.forward([a, b], false).0
    }

    fn kernel_3<O: Operation<3>>(
        a: FlexTensor,
        b: FlexTensor,
        c: FlexTensor,
        operation: O,
    ) -> FlexTensor {
        operation.forward([a, b, c], false).0
    }

    fn kernel_4<O: Operation<4>>(
        a: FlexTensor,
        b: FlexTensor,
        c: FlexTensor,
        d: FlexTensor,
        operation: O,
    ) -> FlexTensor {
        operation.forward([a, b, c, d], false).0
    }
}

impl<C: CheckpointStrategy> KernelOps for Autodiff<Flex, C> {
    fn kernel_1<O: Operation<1>>(a: FloatTensor<Self>, operation: O) -> FloatTensor<Self> {
        tracked::<C, O, 1>([a], operation)
    }

    fn kernel_2<O: Operation<2>>(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        operation: O,
    ) -> FloatTensor<Self> {
        tracked::<C, O, 2>([a, b], operation)
    }

    fn kernel_3<O: Operation<3>>(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        operation: O,
    ) -> FloatTensor<Self> {
        tracked::<C, O, 3>([a, b, c], operation)
    }

    fn kernel_4<O: Operation<4>>(
        a: FloatTensor<Self>,
        b: FloatTensor<Self>,
        c: FloatTensor<Self>,
        d: FloatTensor<Self>,
        operation: O,
    ) -> FloatTensor<Self> {
        tracked::<C, O, 4>([a, b, c, d], operation)
    }
}

/// An operation in the graph.
fn tracked<C: CheckpointStrategy, O: Operation<N>, const N: usize>(
    operands: [FloatTensor<Autodiff<Flex, C>>; N],
    operation: O,
) -> FloatTensor<Autodiff<Flex, C>> {
    let nodes = operands.each_ref().map(|operand| operand.node());
    let prepared = WayBack(operation.clone()).prepare::<C>(nodes);
    let prepared = if operation.is_cheap() {
        let again = Again {
            operation: operation.clone(),
            operands: operands.each_ref().map(|operand| operand.id()),
        };
        prepared
            .memory_bound()
            .retro_forward(again)
            .parents(&operands)
    } else {
        prepared.compute_bound()
    };
    match prepared.stateful() {
        OpsKind::Tracked(mut prepared) => {
            let is_tracked = operands.each_ref().map(|operand| operand.is_tracked());
            let is_asked = operation.asks_for(is_tracked);
            let places =
                std::array::from_fn(|at| is_asked[at].then(|| prepared.checkpoint(&operands[at])));
            let operands = operands.map(|operand| operand.into_parts().0);
            let (output, kept) = operation.forward(operands, true);
            let kept = kept.expect("kept when asked for");
            prepared.finish((places, kept), output)
        }
        OpsKind::UnTracked(prepared) => {
            let operands = operands.map(|operand| operand.into_parts().0);
            prepared.finish(operation.forward(operands, false).0)
        }
    }
}

/// The backward pass of an operation.
#[derive(Debug)]
struct WayBack<O>(O);

impl<O: Operation<N>, const N: usize> Backward<Flex, N> for WayBack<O> {
    /// The operands and the kept values.
    type State = ([Option<NodeId>; N], O::Kept);

    fn backward(
        self,
        ops: Ops<Self::State, N>,
        grads: &mut Gradients,
        checkpointer: &mut Checkpointer,
    ) {
        let gradient = contiguous(grads.consume::<Flex>(&ops.node));
        let (places, kept) = ops.state;
        let back = Back {
            kept,
            operands: places.map(|place| place.map(|node| checkpointer.retrieve_node_output(node))),
            gradient,
            wants: ops.parents.each_ref().map(Option::is_some),
        };
        let gradients = self.0.backward(back);
        for (parent, gradient) in ops.parents.into_iter().zip(gradients) {
            if let (Some(parent), Some(gradient)) = (parent, gradient) {
                grads.register::<Flex>(parent.id, gradient);
            }
        }
    }
}

/// An operation that is recomputed in the backward pass, under gradient checkpointing.
#[derive(Debug)]
struct Again<O, const N: usize> {
    operation: O,
    operands: [NodeId; N],
}

impl<O: Operation<N>, const N: usize> RetroForward for Again<O, N> {
    fn forward(&self, states: &mut BackwardStates, out_node: NodeId) {
        let operands = self
            .operands
            .map(|node| states.get_state::<FlexTensor>(&node));
        states.save(out_node, self.operation.forward(operands, false).0);
    }
}

/// Whether a tensor is computed by these operations.
pub fn is_ours<const D: usize>(tensor: &Tensor<D>) -> bool {
    is_our_device(&tensor.device()) && tensor.dtype() == DType::F32
}

/// Whether a device supports these operations.
pub fn is_our_device(device: &Device) -> bool {
    match device.as_dispatch() {
        DispatchDevice::Autodiff(device) => matches!(**device, DispatchDevice::Flex(_)),
        device => matches!(device, DispatchDevice::Flex(_)),
    }
}

/// An operation on one tensor.
pub fn apply_1<const D: usize, const E: usize>(
    a: Tensor<D>,
    operation: impl Operation<1>,
) -> Tensor<E> {
    #[cfg(test)]
    super::count();
    Tensor::from_dispatch(Dispatch::kernel_1(a.into_dispatch(), operation))
}

/// An operation on two tensors.
pub fn apply_2<const A: usize, const B: usize, const E: usize>(
    (a, b): (Tensor<A>, Tensor<B>),
    operation: impl Operation<2>,
) -> Tensor<E> {
    #[cfg(test)]
    super::count();
    let (a, b) = (a.into_dispatch(), b.into_dispatch());
    Tensor::from_dispatch(Dispatch::kernel_2(a, b, operation))
}

/// An operation on three tensors.
pub fn apply_3<const A: usize, const B: usize, const C: usize, const E: usize>(
    (a, b, c): (Tensor<A>, Tensor<B>, Tensor<C>),
    operation: impl Operation<3>,
) -> Tensor<E> {
    #[cfg(test)]
    super::count();
    let (a, b, c) = (a.into_dispatch(), b.into_dispatch(), c.into_dispatch());
    Tensor::from_dispatch(Dispatch::kernel_3(a, b, c, operation))
}

/// An operation on four tensors.
pub fn apply_4<const A: usize, const B: usize, const C: usize, const D: usize, const E: usize>(
    (a, b, c, d): (Tensor<A>, Tensor<B>, Tensor<C>, Tensor<D>),
    operation: impl Operation<4>,
) -> Tensor<E> {
    #[cfg(test)]
    super::count();
    let (a, b) = (a.into_dispatch(), b.into_dispatch());
    let (c, d) = (c.into_dispatch(), d.into_dispatch());
    Tensor::from_dispatch(Dispatch::kernel_4(a, b, c, d, operation))
}

/// A contiguous tensor.
pub fn tensor(values: Vec<f32>, shape: Shape) -> FlexTensor {
    FlexTensor::new(
        Bytes::from_elems(values),
        Layout::contiguous(shape),
        DType::F32,
    )
}

/// Contiguous numbers, without others before or after them.
pub fn contiguous(tensor: FlexTensor) -> FlexTensor {
    let contiguous = tensor.to_contiguous();
    // The other handle would make it look shared.
    drop(tensor);
    contiguous
}

/// The numbers of a tensor that is contiguous.
pub fn numbers(tensor: &FlexTensor) -> &[f32] {
    tensor.as_slice().expect("a contiguous tensor of f32")
}

/// A tensor modified by `of`, in the same memory if it is not shared.
pub fn changed(mut tensor: FlexTensor, change: impl FnOnce(&mut [f32])) -> FlexTensor {
    tensor = contiguous(tensor);
    change(tensor.storage_mut());
    tensor
}

/// The sizes of a tensor.
pub fn sizes(tensor: &FlexTensor) -> Vec<usize> {
    let shape = tensor.shape();
    (0..shape.num_dims()).map(|axis| shape[axis]).collect()
}
