//! AdaGrad.

use super::{Each, penalized};

/// A step of AdaGrad (Duchi et al., 2011), which keeps the sum of squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaGrad {
    /// The learning rate of the step.
    pub rate: f32,
    /// Added to the root of the sum of squares.
    pub epsilon: f32,
    /// The L2 penalty.
    pub penalty: f32,
}

impl Each<1> for AdaGrad {
    #[inline(always)]
    fn next(&self, weight: f32, [sum]: [f32; 1], gradient: f32) -> (f32, [f32; 1]) {
        let gradient = penalized(gradient, weight, self.penalty);
        let sum = sum + gradient * gradient;
        let update = gradient / (sum.sqrt() + self.epsilon);
        (weight - update * self.rate, [sum])
    }
}
