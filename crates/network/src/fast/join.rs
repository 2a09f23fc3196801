//! Concatenation of tensors along an axis.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};
use runner_kernels::concat::{join, part};

use super::operation::{
    Back, Operation, apply_2, apply_3, apply_4, contiguous, is_ours, numbers, sizes, tensor,
};

/// The operands are joined along an axis.
#[derive(Clone, Debug)]
struct Join {
    axis: usize,
}

impl<const N: usize> Operation<N> for Join {
    /// The sizes of the operands.
    type Kept = [Vec<usize>; N];

    fn asks_for(&self, _: [bool; N]) -> [bool; N] {
        [false; N]
    }

    fn forward(
        &self,
        operands: [FlexTensor; N],
        is_kept: bool,
    ) -> (FlexTensor, Option<[Vec<usize>; N]>) {
        let operands = operands.map(contiguous);
        let all = operands.each_ref().map(sizes);
        let widths = all.each_ref().map(|sizes| width(sizes, self.axis));
        let rows = all[0][..self.axis].iter().product();
        let parts: [(&[f32], usize); N] =
            std::array::from_fn(|at| (numbers(&operands[at]), widths[at]));
        let mut shape = all[0].clone();
        shape[self.axis] = all.iter().map(|sizes| sizes[self.axis]).sum();
        (
            tensor(join(&parts, rows), Shape::from(shape)),
            is_kept.then_some(all),
        )
    }

    fn backward(&self, back: Back<[Vec<usize>; N], N>) -> [Option<FlexTensor>; N] {
        let widths = back.kept.each_ref().map(|sizes| width(sizes, self.axis));
        let whole = widths.iter().sum();
        let mut first = 0;
        let mut at = 0;
        back.kept.map(|sizes| {
            let (from, width, is_wanted) = (first, widths[at], back.wants[at]);
            first += width;
            at += 1;
            is_wanted.then(|| {
                let values = part(numbers(&back.gradient), whole, from, width);
                tensor(values, Shape::from(sizes))
            })
        })
    }
}

/// The contiguous numbers of each operand.
fn width(sizes: &[usize], axis: usize) -> usize {
    sizes[axis..].iter().product()
}

/// Concatenates tensors, if this is supported here; otherwise returns the tensors unchanged.
pub fn along<const D: usize>(
    mut tensors: Vec<Tensor<D>>,
    axis: usize,
) -> Result<Tensor<D>, Vec<Tensor<D>>> {
    let is_any = |tensor: &Tensor<D>| is_ours(tensor) && tensor.shape().num_elements() > 0;
    if tensors.len() < 2 || !tensors.iter().all(is_any) {
        return Err(tensors);
    }
    // An operation has at most four operands.
    while tensors.len() > 4 {
        let rest = tensors.split_off(4);
        let first = at_most_four(tensors, axis);
        tensors = [first].into_iter().chain(rest).collect();
    }
    Ok(at_most_four(tensors, axis))
}

fn at_most_four<const D: usize>(tensors: Vec<Tensor<D>>, axis: usize) -> Tensor<D> {
    let operation = Join { axis };
    let mut tensors = tensors.into_iter();
    let mut next = || tensors.next();
    match (next(), next(), next(), next()) {
        (Some(a), Some(b), Some(c), Some(d)) => apply_4((a, b, c, d), operation),
        (Some(a), Some(b), Some(c), None) => apply_3((a, b, c), operation),
        (Some(a), Some(b), None, None) => apply_2((a, b), operation),
        _ => unreachable!("two to four are joined at a time"),
    }
}
