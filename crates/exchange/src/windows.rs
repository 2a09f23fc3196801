//! The windows of a pooling along an axis, in a form that all programs interpret alike: they disagree about windows at
//! the ends.

use runner_core::check::network::Layer;
use runner_core::check::network::windows::padding;
use runner_core::spec::model::layer::Pool;

/// An axis that windows slide along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The size of a window.
    pub kernel: usize,
    /// The stride between windows.
    pub stride: usize,
    /// The dilation inside a window.
    pub dilation: usize,
    /// Zeros before and after, as in the layer's settings.
    pub padding: (usize, usize),
    /// Positions, without padding.
    pub size: usize,
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

    /// The extent of a window, from its first to its last position.
    pub fn extent(&self) -> usize {
        self.dilation * (self.kernel - 1) + 1
    }

    /// The padding for which the number of windows needs no rounding up.
    pub fn exact_padding(&self) -> (usize, usize) {
        let reached = (self.num - 1) * self.stride + self.extent();
        let before = self.padding.0;
        (before, reached.saturating_sub(self.size + before))
    }

    /// The factor for each window's mean over all positions, so that only the right ones count: padding if set, and
    /// never positions beyond the padding.
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
