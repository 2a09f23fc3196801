//! Portable operations of networks outside of layers with kernels: sums and repetition along an axis, and products of
//! matrices.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};
use runner_kernels::matmul::Matmul;
use runner_kernels::{Arithmetic, axis_sums};

use super::operation::{Back, Operation, apply_1, apply_2, contiguous, numbers, sizes, tensor};

/// Sizes before an axis, along it and behind it.
fn around(sizes: &[usize], axis: usize) -> [usize; 3] {
    let product = |sizes: &[usize]| sizes.iter().product();
    [
        product(&sizes[..axis]),
        sizes[axis],
        product(&sizes[axis + 1..]),
    ]
}

/// The numbers of \[outer, 1, inner\] so many times along the middle axis.
fn repeated(values: &[f32], [outer, len, inner]: [usize; 3]) -> Vec<f32> {
    let mut repeated = Vec::with_capacity(outer * len * inner);
    if inner > 0 {
        for row in values.chunks_exact(inner) {
            for _ in 0..len {
                repeated.extend_from_slice(row);
            }
        }
    }
    repeated
}

/// The sum along an axis, which keeps a size of 1.
#[derive(Clone, Debug)]
struct Sum(usize);

impl Operation<1> for Sum {
    /// The shape of the operand.
    type Kept = Shape;

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn forward(&self, [x]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<Shape>) {
        let (x, shape) = (contiguous(x.clone()), x.shape());
        let mut summed = sizes(&x);
        let sums = axis_sums(numbers(&x), around(&summed, self.0));
        summed[self.0] = 1;
        (tensor(sums, Shape::from(summed)), is_kept.then_some(shape))
    }

    fn backward(&self, back: Back<Shape, 1>) -> [Option<FlexTensor>; 1] {
        let of_sums: Vec<usize> = back.kept.iter().copied().collect();
        let values = repeated(numbers(&back.gradient), around(&of_sums, self.0));
        [Some(tensor(values, back.kept))]
    }
}

/// A size of 1 along an axis repeated so many times.
#[derive(Clone, Debug)]
struct Repeat(usize, usize);

impl Operation<1> for Repeat {
    type Kept = ();

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn forward(&self, [x]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<()>) {
        let x = contiguous(x);
        let mut grown = sizes(&x);
        grown[self.0] = self.1;
        let values = repeated(numbers(&x), around(&grown, self.0));
        (tensor(values, Shape::from(grown)), is_kept.then_some(()))
    }

    fn backward(&self, back: Back<(), 1>) -> [Option<FlexTensor>; 1] {
        let mut sizes = sizes(&back.gradient);
        let sums = axis_sums(numbers(&back.gradient), around(&sizes, self.0));
        sizes[self.0] = 1;
        [Some(tensor(sums, Shape::from(sizes)))]
    }
}

/// Products of matrices along the last two axes.
#[derive(Clone, Debug)]
struct Products(Matmul);

impl Operation<2> for Products {
    /// The shapes of the operands.
    type Kept = [Shape; 2];

    fn asks_for(&self, [left, right]: [bool; 2]) -> [bool; 2] {
        [right, left]
    }

    fn forward(
        &self,
        operands: [FlexTensor; 2],
        is_kept: bool,
    ) -> (FlexTensor, Option<Self::Kept>) {
        let [a, b] = operands.map(contiguous);
        let mut product = sizes(&a);
        if let Some(columns) = product.last_mut() {
            *columns = self.0.columns;
        }
        let values = self.0.forward(numbers(&a), numbers(&b));
        let kept = is_kept.then(|| [a.shape(), b.shape()]);
        (tensor(values, Shape::from(product)), kept)
    }

    fn backward(&self, mut back: Back<Self::Kept, 2>) -> [Option<FlexTensor>; 2] {
        std::array::from_fn(|at| {
            if !back.wants[at] {
                return None;
            }
            let other = back.operand(1 - at);
            let (other, gradient) = (numbers(&other), numbers(&back.gradient));
            let values = match at {
                0 => self.0.backward_left(gradient, other),
                _ => self.0.backward_right(other, gradient),
            };
            Some(tensor(values, back.kept[at].clone()))
        })
    }
}

/// The sum along an axis, which keeps a size of 1.
pub fn sum<const D: usize>(x: Tensor<D>, axis: usize) -> Tensor<D> {
    apply_1(x, Sum(axis))
}

/// Broadcasts sizes of 1 to those of a shape of the same rank.
pub fn expand<const D: usize>(x: Tensor<D>, shape: &[usize]) -> Tensor<D> {
    let dims = x.dims();
    let stretched = (0..D).filter(|axis| dims[*axis] != shape[*axis]);
    stretched.fold(x, |x, axis| apply_1(x, Repeat(axis, shape[axis])))
}

/// The product of matrices along the last two axes, with equal sizes along all others.
pub fn matmul<const D: usize>(a: Tensor<D>, b: Tensor<D>) -> Tensor<D> {
    let (of_a, of_b) = (a.dims(), b.dims());
    let sizes = Matmul {
        batch: of_a[..D - 2].iter().product(),
        rows: of_a[D - 2],
        terms: of_a[D - 1],
        columns: of_b[D - 1],
        arithmetic: Arithmetic::Portable,
    };
    apply_2((a, b), Products(sizes))
}
