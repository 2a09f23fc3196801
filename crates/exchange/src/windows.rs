//! What a pooling sees of an axis, in numbers that no other program reads differently: how windows at the ends count
//! is where programs disagree.

use runner_core::check::network::Layer;
use runner_core::check::network::windows::padding;
use runner_core::spec::model::layer::Pool;

/// An axis that windows slide along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Places of a window.
    pub kernel: usize,
    /// Step between windows.
    pub stride: usize,
    /// Step inside a window.
    pub dilation: usize,
    /// Zeros before and behind, as the layer's settings say.
    pub padding: (usize, usize),
    size: usize,
    num: usize,
}

impl Axis {
    /// The axes of a pooling.
    pub fn of(pool: &Pool, layer: &Layer) -> Vec<Self> {
        let sizes = layer.inputs[0].shape.dims[1..].iter();
        let axes = sizes.zip(&layer.shape[1..]).enumerate();
        let axis = |(at, (size, num)): (usize, (&usize, &usize))| {
            let (kernel, dilation) = (pool.kernel_size[at], pool.dilation[at]);
            let extent = dilation * (kernel - 1) + 1;
            Self {
                kernel,
                stride: pool.stride[at],
                dilation,
                padding: padding(&pool.padding, at, *size, extent, pool.stride[at]),
                size: *size,
                num: *num,
            }
        };
        axes.map(axis).collect()
    }

    /// From the first to the last place of a window.
    pub fn extent(&self) -> usize {
        self.dilation * (self.kernel - 1) + 1
    }

    /// Zeros before and behind for which there are as many windows without rounding up.
    pub fn exact_padding(&self) -> (usize, usize) {
        let reached = (self.num - 1) * self.stride + self.extent();
        let before = self.padding.0;
        (before, reached.saturating_sub(self.size + before))
    }

    /// What each window's mean over all of its places is multiplied by, so that only those count that should: the
    /// padding too or not, and never what is behind the padding.
    pub fn corrections(&self, counts_padding: bool) -> Vec<f32> {
        let (before, behind) = if counts_padding { self.padding } else { (0, 0) };
        let windows = 0..self.num;
        let counted = windows.map(|window| {
            let start = (window * self.stride) as i64 - self.padding.0 as i64;
            let end = start + self.kernel as i64;
            end.min((self.size + behind) as i64) - start.max(-(before as i64))
        });
        counted
            .map(|counted| self.kernel as f32 / counted.max(1) as f32)
            .collect()
    }
}
