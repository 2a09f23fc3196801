//! A tensor whose rank is known at run time, on top of Burn's tensors whose rank is a constant.

use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};

use crate::finite::is_finite;
use crate::function::Combine;
use crate::message::Nodes;
use crate::numeric;
use runner_core::spec::backend::{Arithmetic, Kernels};

/// A float tensor of rank 1 to 5, or tokens.
#[derive(Clone, Debug)]
pub enum DynTensor {
    /// Rank 1.
    R1(Tensor<1>),
    /// Rank 2.
    R2(Tensor<2>),
    /// Rank 3.
    R3(Tensor<3>),
    /// Rank 4.
    R4(Tensor<4>),
    /// Rank 5.
    R5(Tensor<5>),
    /// Tokens, \[batch, length\].
    Tokens(Tensor<2, Int>),
    /// The named inputs of a network, with the same batch; none of them consists of parts.
    Parts(Vec<DynTensor>),
    /// Nodes of a graph: the items of a network, and never the output of a layer.
    Nodes(Box<Nodes>),
}

/// Applies a function that keeps the rank to the inner tensor of numbers.
#[macro_export]
macro_rules! map_rank {
    ($value:expr, $tensor:ident => $result:expr) => {
        match $value {
            $crate::tensor::DynTensor::R1($tensor) => $crate::tensor::DynTensor::R1($result),
            $crate::tensor::DynTensor::R2($tensor) => $crate::tensor::DynTensor::R2($result),
            $crate::tensor::DynTensor::R3($tensor) => $crate::tensor::DynTensor::R3($result),
            $crate::tensor::DynTensor::R4($tensor) => $crate::tensor::DynTensor::R4($result),
            $crate::tensor::DynTensor::R5($tensor) => $crate::tensor::DynTensor::R5($result),
            $crate::tensor::DynTensor::Tokens(_) => panic!("tokens where numbers are needed"),
            $crate::tensor::DynTensor::Parts(_) | $crate::tensor::DynTensor::Nodes(_) => {
                panic!("parts or nodes where a tensor is needed")
            }
        }
    };
}
pub use map_rank;

/// The planner has checked all shapes: another rank here is a bug.
macro_rules! rank_getter {
    ($name:ident, $variant:ident, $rank:literal) => {
        #[doc = concat!("The tensor, which has rank ", $rank, ".")]
        pub fn $name(self) -> Tensor<$rank> {
            match self {
                DynTensor::$variant(tensor) => tensor,
                other => panic!(
                    concat!("rank ", $rank, " was planned, found {:?}"),
                    other.dims()
                ),
            }
        }
    };
}

impl DynTensor {
    /// Whether all numbers are finite.
    pub fn is_finite(&self) -> bool {
        match self.clone() {
            DynTensor::R1(tensor) => is_finite(tensor),
            DynTensor::R2(tensor) => is_finite(tensor),
            DynTensor::R3(tensor) => is_finite(tensor),
            DynTensor::R4(tensor) => is_finite(tensor),
            DynTensor::R5(tensor) => is_finite(tensor),
            DynTensor::Tokens(_) => true,
            DynTensor::Parts(parts) => parts.iter().all(DynTensor::is_finite),
            DynTensor::Nodes(nodes) => is_finite(nodes.features),
        }
    }

    /// The named inputs of a network, or the only one.
    pub fn into_parts(self) -> Vec<Self> {
        match self {
            DynTensor::Parts(parts) => parts,
            single => vec![single],
        }
    }

    /// A named input of a network, or the only one.
    pub fn part(&self, at: Option<usize>) -> Self {
        match (self, at) {
            (DynTensor::Parts(parts), Some(at)) => parts[at].clone(),
            // Layers compute all nodes.
            (DynTensor::Nodes(nodes), _) => DynTensor::R2(nodes.features.clone()),
            (single, _) => single.clone(),
        }
    }

    /// What [`DynTensor::into_parts`] gives, back together.
    pub fn of_parts(mut parts: Vec<Self>, are_named: bool) -> Self {
        if are_named {
            DynTensor::Parts(parts)
        } else {
            parts.swap_remove(0)
        }
    }

    /// A tensor of `values` with `shape` on `device`, in the device's own precision.
    ///
    /// # Panics
    /// If the shape has no or more than 5 dimensions, or does not fit the number of values.
    pub fn from_values(values: Vec<f32>, shape: &[usize], device: &Device) -> Self {
        Self::from_data(TensorData::new(values, shape.to_vec()), device)
    }

    /// Data on a device: integer tokens, or numbers in the device's precision.
    ///
    /// # Panics If it has no or more than 5 dimensions, or if tokens do not have 2.
    pub fn from_data(data: TensorData, device: &Device) -> Self {
        if data.dtype().is_int() {
            return DynTensor::Tokens(Tensor::from_data(data, device));
        }
        match data.shape().len() {
            1 => DynTensor::R1(Tensor::from_data(data, device)),
            2 => DynTensor::R2(Tensor::from_data(data, device)),
            3 => DynTensor::R3(Tensor::from_data(data, device)),
            4 => DynTensor::R4(Tensor::from_data(data, device)),
            5 => DynTensor::R5(Tensor::from_data(data, device)),
            rank => panic!("tensors have 1 to 5 dimensions, found {rank}"),
        }
    }

    rank_getter!(r2, R2, 2);
    rank_getter!(r3, R3, 3);
    rank_getter!(r4, R4, 4);
    rank_getter!(r5, R5, 5);

    /// The tokens.
    pub fn tokens(self) -> Tensor<2, Int> {
        match self {
            DynTensor::Tokens(tensor) => tensor,
            other => panic!("tokens were planned, found {:?}", other.dims()),
        }
    }

    /// \[batch, ..\] to \[batch, product\].
    pub fn flatten(self) -> Tensor<2> {
        match self {
            DynTensor::R1(t) => t.unsqueeze_dim(1),
            DynTensor::R2(t) => t,
            DynTensor::R3(t) => t.flatten(1, 2),
            DynTensor::R4(t) => t.flatten(1, 3),
            DynTensor::R5(t) => t.flatten(1, 4),
            DynTensor::Tokens(t) => t.float(),
            DynTensor::Parts(parts) => {
                let flat = parts.into_iter().map(DynTensor::flatten);
                Tensor::cat(flat.collect(), 1)
            }
            DynTensor::Nodes(nodes) => nodes.items(),
        }
    }

    /// The sizes, including the batch; of several named inputs those of their values one after the other.
    pub fn dims(&self) -> Vec<usize> {
        match self {
            DynTensor::R1(t) => t.dims().to_vec(),
            DynTensor::R2(t) => t.dims().to_vec(),
            DynTensor::R3(t) => t.dims().to_vec(),
            DynTensor::R4(t) => t.dims().to_vec(),
            DynTensor::R5(t) => t.dims().to_vec(),
            DynTensor::Tokens(t) => t.dims().to_vec(),
            DynTensor::Parts(parts) => {
                let sizes = |part: &DynTensor| part.dims()[1..].iter().product::<usize>();
                vec![parts[0].dims()[0], parts.iter().map(sizes).sum()]
            }
            DynTensor::Nodes(nodes) => nodes.dims().to_vec(),
        }
    }

    /// The device.
    pub fn device(&self) -> Device {
        match self {
            DynTensor::R1(t) => t.device(),
            DynTensor::R2(t) => t.device(),
            DynTensor::R3(t) => t.device(),
            DynTensor::R4(t) => t.device(),
            DynTensor::R5(t) => t.device(),
            DynTensor::Tokens(t) => t.device(),
            DynTensor::Parts(parts) => parts[0].device(),
            DynTensor::Nodes(nodes) => nodes.features.device(),
        }
    }

    /// The numbers, read back from their device.
    pub fn into_data(self) -> TensorData {
        match self {
            DynTensor::R1(t) => t.into_data(),
            DynTensor::R2(t) => t.into_data(),
            DynTensor::R3(t) => t.into_data(),
            DynTensor::R4(t) => t.into_data(),
            DynTensor::R5(t) => t.into_data(),
            DynTensor::Tokens(t) => t.into_data(),
            DynTensor::Parts(_) | DynTensor::Nodes(_) => self.flatten().into_data(),
        }
    }

    /// The items at some positions along the first axis, in that order.
    pub fn select(self, places: Tensor<1, Int>) -> Self {
        match self {
            DynTensor::Tokens(t) => DynTensor::Tokens(t.select(0, places)),
            DynTensor::Parts(parts) => {
                let parts = parts.into_iter().map(|part| part.select(places.clone()));
                DynTensor::Parts(parts.collect())
            }
            DynTensor::Nodes(nodes) => DynTensor::Nodes(Box::new(nodes.select(places))),
            numbers => {
                let shape = [&places.dims()[..], &numbers.dims()[1..]].concat();
                DynTensor::R2(picked(numbers.flatten(), places)).reshape(&shape)
            }
        }
    }

    /// The same on the device without autodiff.
    pub fn without_autodiff(self) -> Self {
        match self {
            DynTensor::Tokens(t) => DynTensor::Tokens(t.without_autodiff()),
            DynTensor::Parts(parts) => {
                let parts = parts.into_iter().map(Self::without_autodiff);
                DynTensor::Parts(parts.collect())
            }
            DynTensor::Nodes(nodes) => DynTensor::Nodes(Box::new(nodes.without_autodiff())),
            numbers => map_rank!(numbers, t => t.without_autodiff()),
        }
    }

    /// The same numbers without their way back, whose gradients are kept in a backward pass; tokens have none.
    pub(crate) fn as_leaf(&self) -> Self {
        match self.clone() {
            DynTensor::Tokens(t) => DynTensor::Tokens(t),
            numbers => map_rank!(numbers, t => t.detach().require_grad()),
        }
    }

    /// Its gradient without autodiff, if it has one.
    pub(crate) fn gradient(&self, gradients: &Gradients) -> Option<Self> {
        Some(match self {
            DynTensor::R1(t) => DynTensor::R1(t.grad(gradients)?),
            DynTensor::R2(t) => DynTensor::R2(t.grad(gradients)?),
            DynTensor::R3(t) => DynTensor::R3(t.grad(gradients)?),
            DynTensor::R4(t) => DynTensor::R4(t.grad(gradients)?),
            DynTensor::R5(t) => DynTensor::R5(t.grad(gradients)?),
            DynTensor::Tokens(_) | DynTensor::Parts(_) | DynTensor::Nodes(_) => return None,
        })
    }

    /// The sum of its products with constants without autodiff: a number with these gradients. None if there is no
    /// backward pass to it.
    pub(crate) fn weighted(&self, by: &Self) -> Option<Tensor<1>> {
        macro_rules! sum {
            ($($rank:ident),+) => {
                match (self, by) {
                    $((DynTensor::$rank(t), DynTensor::$rank(by)) => {
                        t.is_tracked().then(|| t.clone().mul(by.clone().autodiff()).sum())
                    })+
                    _ => None,
                }
            };
        }
        sum!(R1, R2, R3, R4, R5)
    }

    /// The sum of two tensors of the same shape.
    pub(crate) fn plus(self, other: Self) -> Self {
        macro_rules! sum {
            ($($rank:ident),+) => {
                match (self, other) {
                    $((DynTensor::$rank(a), DynTensor::$rank(b)) => DynTensor::$rank(a.add(b)),)+
                    (a, b) => panic!("{:?} plus {:?}", a.dims(), b.dims()),
                }
            };
        }
        sum!(R1, R2, R3, R4, R5)
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims().len()
    }

    /// The same numbers in a different shape.
    ///
    /// # Panics
    /// If the shape has no or more than 5 dimensions, or does not fit the number of values.
    pub fn reshape(self, shape: &[usize]) -> Self {
        match self {
            DynTensor::R1(t) => reshaped(t, shape),
            DynTensor::R2(t) => reshaped(t, shape),
            DynTensor::R3(t) => reshaped(t, shape),
            DynTensor::R4(t) => reshaped(t, shape),
            DynTensor::R5(t) => reshaped(t, shape),
            DynTensor::Tokens(t) => reshaped(t.float(), shape),
            DynTensor::Parts(_) | DynTensor::Nodes(_) => reshaped(self.flatten(), shape),
        }
    }

    /// Axes in a different order: the old axis of each new one.
    pub fn permute(self, axes: &[isize]) -> Self {
        map_rank!(self, t => {
            let order = std::array::from_fn(|at| axes[at]);
            t.permute(order)
        })
    }

    /// Broadcasts sizes of 1 to those of a shape of the same rank.
    pub fn expand(self, shape: &[usize], arithmetic: Arithmetic) -> Self {
        map_rank!(self, t => {
            let shape: [usize; _] = std::array::from_fn(|at| shape[at]);
            numeric::expand(arithmetic, t, shape)
        })
    }

    /// Broadcasts sizes of 1 in both to those of the other, along the axes before `past`.
    fn stretched(self, other: Self, past: usize, arithmetic: Arithmetic) -> (Self, Self) {
        let (a, b) = (self.dims(), other.dims());
        let of = |own: &[usize]| {
            let sizes = a.iter().zip(&b).zip(own).enumerate();
            let sizes = sizes.map(|(at, ((a, b), own))| if at < past { *a.max(b) } else { *own });
            sizes.collect::<Vec<_>>()
        };
        let (to_a, to_b) = (of(&a), of(&b));
        (
            self.expand(&to_a, arithmetic),
            other.expand(&to_b, arithmetic),
        )
    }

    /// The matrix product with a tensor of the same rank, with broadcasting of sizes of 1 before the last two axes.
    pub fn matmul(self, other: Self, arithmetic: Arithmetic) -> Self {
        let outer = self.rank() - 2;
        match self.stretched(other, outer, arithmetic) {
            (DynTensor::R3(a), DynTensor::R3(b)) => {
                DynTensor::R3(numeric::matmul(arithmetic, a, b))
            }
            (DynTensor::R4(a), DynTensor::R4(b)) => {
                DynTensor::R4(numeric::matmul(arithmetic, a, b))
            }
            (DynTensor::R5(a), DynTensor::R5(b)) => {
                DynTensor::R5(numeric::matmul(arithmetic, a, b))
            }
            (a, b) => panic!(
                "matrices were planned, found {:?} and {:?}",
                a.dims(),
                b.dims()
            ),
        }
    }

    /// An element-wise function of two tensors of the same rank, with broadcasting of sizes of 1.
    pub fn combine(self, other: Self, operation: Combine, arithmetic: Arithmetic) -> Self {
        let rank = self.rank();
        let (this, other) = match operation {
            Combine::Maximum | Combine::Minimum => self.stretched(other, rank, arithmetic),
            // The backward pass sums over broadcast axes.
            _ if arithmetic.is_portable() => self.stretched(other, rank, arithmetic),
            _ => (self, other),
        };
        macro_rules! with {
            ($($variant:ident)+) => {
                match (this, other) {
                    $((DynTensor::$variant(a), DynTensor::$variant(b)) => {
                        DynTensor::$variant(match operation {
                            Combine::Add => a + b,
                            Combine::Multiply => a * b,
                            Combine::Subtract => a - b,
                            Combine::Divide => a / b,
                            Combine::Maximum => a.max_pair(b),
                            Combine::Minimum => a.min_pair(b),
                        })
                    })+
                    (a, b) => panic!("equal ranks were planned, found {:?} and {:?}", a.dims(), b.dims()),
                }
            };
        }
        with!(R1 R2 R3 R4 R5)
    }

    /// Concatenates tensors of the same rank along an axis.
    pub fn cat(tensors: Vec<Self>, axis: usize, kernels: Kernels) -> Self {
        macro_rules! with {
            ($($variant:ident)+) => {
                match &tensors[0] {
                    $(DynTensor::$variant(_) => {
                        let each = tensors.into_iter().map(|tensor| match tensor {
                            DynTensor::$variant(tensor) => tensor,
                            other => panic!("equal ranks were planned, found {:?}", other.dims()),
                        });
                        DynTensor::$variant(cat(each.collect(), axis, kernels))
                    })+
                    DynTensor::Tokens(_) | DynTensor::Parts(_) | DynTensor::Nodes(_) => {
                        panic!("tokens where numbers are needed")
                    }
                }
            };
        }
        with!(R1 R2 R3 R4 R5)
    }
}

/// Concatenates tensors, by runner's kernel if supported.
fn cat<const D: usize>(tensors: Vec<Tensor<D>>, axis: usize, kernels: Kernels) -> Tensor<D> {
    #[cfg(feature = "flex")]
    if kernels.is_fast() {
        return crate::fast::join::along(tensors, axis)
            .unwrap_or_else(|tensors| Tensor::cat(tensors, axis));
    }
    let _ = kernels;
    Tensor::cat(tensors, axis)
}

/// The rows of a table at some places.
fn picked(table: Tensor<2>, places: Tensor<1, Int>) -> Tensor<2> {
    #[cfg(feature = "flex")]
    if let Some(rows) = crate::fast::embedding::rows(table.clone(), &places) {
        return rows;
    }
    table.select(0, places)
}

fn reshaped<const D: usize>(tensor: Tensor<D>, shape: &[usize]) -> DynTensor {
    match *shape {
        [a] => DynTensor::R1(tensor.reshape([a])),
        [a, b] => DynTensor::R2(tensor.reshape([a, b])),
        [a, b, c] => DynTensor::R3(tensor.reshape([a, b, c])),
        [a, b, c, d] => DynTensor::R4(tensor.reshape([a, b, c, d])),
        [a, b, c, d, e] => DynTensor::R5(tensor.reshape([a, b, c, d, e])),
        _ => panic!("tensors have 1 to 5 dimensions, found {}", shape.len()),
    }
}
