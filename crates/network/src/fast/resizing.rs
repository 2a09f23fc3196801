//! Operations that give each plane of \[items, channels, ..\] another size, and are linear in it.

use std::fmt::Debug;

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::tensor::{Shape, Tensor};

use super::operation::{Back, Operation, apply_1, contiguous, numbers, sizes, tensor};
use super::resized;

/// The computation.
pub trait Resizing: Clone + Debug + Send + 'static {
    /// Height and width of the output.
    fn size(&self) -> [usize; 2];

    /// The output.
    fn output(&self, x: &[f32]) -> Vec<f32>;

    /// The gradient of the input.
    fn of_input(&self, gradient: &[f32]) -> Vec<f32>;
}

/// The operand is the input.
#[derive(Clone, Debug)]
struct Resized<R>(R);

impl<R: Resizing> Operation<1> for Resized<R> {
    /// The input's shape.
    type Kept = Shape;

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn forward(&self, [x]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<Shape>) {
        let x = contiguous(x);
        let output = tensor(self.0.output(numbers(&x)), with_size(&x, self.0.size()));
        (output, is_kept.then(|| x.shape()))
    }

    fn backward(&self, back: Back<Shape, 1>) -> [Option<FlexTensor>; 1] {
        let input = self.0.of_input(numbers(&back.gradient));
        [Some(tensor(input, back.kept))]
    }
}

/// The output for a tensor that is computed here.
pub fn resize<const D: usize>(x: &Tensor<D>, resizing: impl Resizing) -> Tensor<D> {
    apply_1(x.clone(), Resized(resizing))
}

/// The shape with the same items and channels and another height and width.
pub fn with_size(x: &FlexTensor, plane: [usize; 2]) -> Shape {
    let sizes = sizes(x);
    Shape::from(resized(&sizes, sizes[1], &plane))
}
