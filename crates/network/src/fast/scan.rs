//! Linear recurrences.

use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};
use runner_kernels::scan::{self, Scan};

use super::operation::{Back, Operation, apply_2, contiguous, numbers, tensor};

impl Operation<2> for Scan {
    /// The states, for the gradient of factors.
    type Kept = FlexTensor;

    fn asks_for(&self, _: [bool; 2]) -> [bool; 2] {
        [true, false]
    }

    fn forward(
        &self,
        operands: [FlexTensor; 2],
        is_kept: bool,
    ) -> (FlexTensor, Option<FlexTensor>) {
        let [factors, updates] = operands.map(contiguous);
        let states = scan::scan(*self, numbers(&factors), numbers(&updates));
        let states = tensor(states, shape(*self));
        let kept = is_kept.then(|| states.clone());
        (states, kept)
    }

    fn backward(&self, mut back: Back<FlexTensor, 2>) -> [Option<FlexTensor>; 2] {
        let factors = back.operand(0);
        let states = contiguous(back.kept);
        let gradient = numbers(&back.gradient);
        let both = scan::scan_backward(*self, numbers(&factors), numbers(&states), gradient);
        both.map(|values| Some(tensor(values, shape(*self))))
    }
}

fn shape(scan: Scan) -> Shape {
    Shape::from([scan.items, scan.length, scan.columns])
}

/// The states over \[items, length, columns\] of tensors that are computed here.
pub fn scan(factors: Tensor<3>, updates: Tensor<3>, is_reverse: bool) -> Tensor<3> {
    let [items, length, columns] = updates.dims();
    let scan = Scan {
        items,
        length,
        columns,
        is_reverse,
    };
    apply_2((factors, updates), scan)
}
