//! The sizes of a convolution or pooling, and the output positions that a tap reaches.

use std::ops::Range;

use super::arithmetic::Arithmetic;

/// A convolution along `D` axes, at most three: (depth, height and) width.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry<const D: usize = 2> {
    /// Items of the batch.
    pub items: usize,
    /// Channels of the input.
    pub inputs: usize,
    /// Channels of the output.
    pub outputs: usize,
    /// Number of channel groups.
    pub groups: usize,
    /// Sizes of the input.
    pub input: [usize; D],
    /// Sizes of the kernel.
    pub kernel: [usize; D],
    /// Strides.
    pub stride: [usize; D],
    /// Zero padding before and after the input.
    pub padding: [(usize, usize); D],
    /// Dilation.
    pub dilation: [usize; D],
    /// How products and sums are rounded.
    pub arithmetic: Arithmetic,
}

/// A convolution along three axes, as which all are computed: one of fewer has a depth (and height) of 1.
pub type Volume = Geometry<3>;

impl<const D: usize> Geometry<D> {
    /// The same along three axes.
    pub fn volume(&self) -> Volume {
        Volume {
            items: self.items,
            inputs: self.inputs,
            outputs: self.outputs,
            groups: self.groups,
            input: along_three(self.input, 1),
            kernel: along_three(self.kernel, 1),
            stride: along_three(self.stride, 1),
            padding: along_three(self.padding, (0, 0)),
            dilation: along_three(self.dilation, 1),
            arithmetic: self.arithmetic,
        }
    }

    /// Sizes of the output; 0 if no window fits.
    pub fn output(&self) -> [usize; D] {
        std::array::from_fn(|axis| {
            if self.kernel[axis] == 0 || self.stride[axis] == 0 {
                return 0;
            }
            let (before, after) = self.padding[axis];
            let extent = self.dilation[axis] * (self.kernel[axis] - 1) + 1;
            match (self.input[axis] + before + after).checked_sub(extent) {
                Some(room) => room / self.stride[axis] + 1,
                None => 0,
            }
        })
    }

    /// Positions of a channel of the input.
    pub fn area_in(&self) -> usize {
        self.input.iter().product()
    }

    /// Positions of a channel of the output.
    pub fn area_out(&self) -> usize {
        self.output().iter().product()
    }

    /// Taps of a kernel in one channel.
    pub fn taps(&self) -> usize {
        self.kernel.iter().product()
    }

    /// Channels of the input in a group.
    pub fn group_inputs(&self) -> usize {
        self.inputs / self.groups
    }

    /// Channels of the output in a group.
    pub fn group_outputs(&self) -> usize {
        self.outputs / self.groups
    }

    /// Elements of the input.
    pub fn num_inputs(&self) -> usize {
        self.items * self.inputs * self.area_in()
    }

    /// Elements of the output.
    pub fn num_outputs(&self) -> usize {
        self.items * self.outputs * self.area_out()
    }

    /// Elements of the weights.
    pub fn num_weights(&self) -> usize {
        self.outputs * self.group_inputs() * self.taps()
    }

    /// Whether there is something to compute, and groups divide the channels evenly.
    pub fn is_sound(&self) -> bool {
        let sizes = [
            self.items,
            self.inputs,
            self.outputs,
            self.groups,
            self.taps(),
        ];
        let steps = self.stride.iter().chain(&self.dilation);
        sizes.iter().chain(steps).all(|size| *size > 0)
            && self.inputs.is_multiple_of(self.groups)
            && self.outputs.is_multiple_of(self.groups)
            && self.area_in() > 0
            && self.area_out() > 0
    }

    /// # Panics If the sizes do not define a valid convolution.
    pub fn check(&self, inputs: usize, weights: usize, outputs: usize) {
        assert!(self.is_sound(), "{self:?} does not define a convolution");
        assert_eq!(
            inputs,
            self.num_inputs(),
            "elements of the input of {self:?}"
        );
        assert_eq!(
            weights,
            self.num_weights(),
            "elements of the weights of {self:?}"
        );
        assert_eq!(
            outputs,
            self.num_outputs(),
            "elements of the output of {self:?}"
        );
    }

    /// Whether each output position sees only the input position at the same place.
    pub fn is_pointwise(&self) -> bool {
        self.kernel == [1; D] && self.stride == [1; D] && self.padding == [(0, 0); D]
    }

    /// Positions of the input along an axis that windows see at a distance from their start, were there windows without
    /// end: the first window that does, the position that it sees, and how many windows do.
    pub fn seen(&self, axis: usize, distance: usize) -> (usize, usize, usize) {
        let (stride, before) = (self.stride[axis], self.padding[axis].0);
        let first = before.saturating_sub(distance).div_ceil(stride);
        let from = first * stride + distance - before;
        let num = self.input[axis].saturating_sub(from).div_ceil(stride);
        (first, from, num)
    }

    /// The output positions along an axis whose tap is inside the input, and the input position of the first one.
    pub fn reach(&self, axis: usize, tap: usize) -> (Range<usize>, usize) {
        let (first, from, seen) = self.seen(axis, tap * self.dilation[axis]);
        let num = self.output()[axis];
        (first.min(num)..(first + seen).min(num), from)
    }
}

/// All places within sizes along three axes, those along the last one next to each other.
pub fn places([depth, height, width]: [usize; 3]) -> impl DoubleEndedIterator<Item = [usize; 3]> {
    (0..depth).flat_map(move |z| (0..height).flat_map(move |y| (0..width).map(move |x| [z, y, x])))
}

/// The sizes of the last axes, after `one` for each that there is not.
fn along_three<T: Copy, const D: usize>(sizes: [T; D], one: T) -> [T; 3] {
    const { assert!(D > 0 && D <= 3) };
    std::array::from_fn(|axis| (axis + D).checked_sub(3).map_or(one, |at| sizes[at]))
}
