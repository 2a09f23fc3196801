//! The positions of items that a loss and its metrics leave out.

use burn::tensor::Tensor;

use crate::masks::padded;
use crate::numeric::sum_axis;
use crate::targets::Targets;
use runner_core::spec::backend::Arithmetic;

/// Which positions of items count.
#[derive(Clone, Debug)]
pub struct Padding {
    /// \[items, positions\]: 0 for those that do not.
    mask: Tensor<2>,
}

impl Padding {
    /// Of a mask, \[items, positions\].
    pub fn new(mask: Tensor<2>) -> Self {
        Self { mask }
    }

    /// Outputs, \[items, values\], with the targets at padding: there, they have no error and no gradient.
    pub fn filled(&self, outputs: Tensor<2>, targets: &Targets) -> Tensor<2> {
        let Targets::Values(values) = targets else {
            return outputs;
        };
        let [items, positions] = self.mask.dims();
        let size = outputs.dims()[1] / positions;
        let padding = padded(&self.mask).reshape([items, positions, 1]);
        let padding = padding.expand([items, positions, size]);
        let padding = padding.reshape([items, positions * size]);
        outputs.mask_where(padding, values.clone())
    }

    /// An output, \[items, positions, values\], with 0 at padding.
    pub fn cleared(&self, output: Tensor<3>) -> Tensor<3> {
        let [items, positions, _] = output.dims();
        let padding = padded(&self.mask).reshape([items, positions, 1]);
        let padding = padding.expand(output.dims());
        output.mask_fill(padding, 0.0)
    }

    /// The factors, \[items\], that make means over all positions means over those that count; 0 for an item without
    /// any.
    pub fn factors(&self, arithmetic: Arithmetic) -> Tensor<1> {
        let positions = self.mask.dims()[1] as f64;
        let num = sum_axis(arithmetic, self.mask.clone(), 1);
        let has_any = num.clone().greater_elem(0.0).float().cast(num.dtype());
        let factors = has_any.mul_scalar(positions) / num.clamp_min(1.0);
        factors.squeeze_dim(1)
    }

    /// That of the items from a position on.
    pub fn narrow(&self, from: usize, num: usize) -> Self {
        Self {
            mask: self.mask.clone().narrow(0, from, num),
        }
    }

    /// The same, detached from the graph.
    pub fn without_autodiff(self) -> Self {
        Self {
            mask: self.mask.without_autodiff(),
        }
    }
}
