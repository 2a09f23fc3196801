//! The inner loops: tiles of sums that stay in registers.
//!
//! Portable sums have the same order with all registers: sums of tiles follow their terms, and lanes are added as if
//! each register had 16 of them.

use crate::arithmetic::Arithmetic;
use crate::dense::REGISTER;
use crate::lanes::{Joined, Lanes, Rounded};

/// The maximum number of outputs of a tile.
pub const WIDEST: usize = 8;
/// The maximum number of outputs of a tile with 16 registers. In a browser, there are 15, and a product that is not fused
/// takes one of them.
const NARROWEST: usize = if cfg!(target_feature = "simd128") {
    4
} else {
    6
};
/// Terms of a tile of gradients of weights, likewise.
pub const TAPS: usize = if cfg!(target_feature = "simd128") {
    4
} else {
    6
};

/// A piece of work for the registers of a processor.
pub trait Tiled {
    /// Whether it adds up the lanes of a register, so that the order of a sum depends on their number.
    const ADDS_LANES: bool;

    /// Runs it, with tiles of sums in as many registers as there are: 4 parts for 32 registers, 2 for 16.
    ///
    /// # Safety
    /// The processor must support the registers' instructions.
    unsafe fn run<L: Lanes>(self, parts: usize);
}

/// Runs a piece of work with the widest registers of this processor.
pub fn run<T: Tiled>(arithmetic: Arithmetic, work: T) {
    #[cfg(target_arch = "x86_64")]
    {
        use crate::arithmetic::{Instructions, instructions};
        use crate::lanes::{Avx2, Avx512};
        #[target_feature(enable = "avx512f")]
        fn v4<T: Tiled>(arithmetic: Arithmetic, work: T) {
            // SAFETY: this function is only called on such a processor.
            unsafe {
                match arithmetic {
                    Arithmetic::Fast => work.run::<Avx512>(4),
                    Arithmetic::Portable => work.run::<Rounded<Avx512>>(4),
                }
            }
        }
        #[target_feature(enable = "avx2,fma")]
        fn v3<T: Tiled>(arithmetic: Arithmetic, work: T) {
            // SAFETY: this function is only called on such a processor.
            unsafe {
                match arithmetic {
                    Arithmetic::Fast => work.run::<Avx2>(2),
                    Arithmetic::Portable if T::ADDS_LANES => {
                        work.run::<Joined<Rounded<Avx2>>>(1);
                    }
                    Arithmetic::Portable => work.run::<Rounded<Avx2>>(2),
                }
            }
        }
        match instructions() {
            // SAFETY: the processor has these instructions.
            Instructions::Avx512 => return unsafe { v4(arithmetic, work) },
            // SAFETY: the processor has these instructions.
            Instructions::Avx2 => return unsafe { v3(arithmetic, work) },
            Instructions::Baseline => {}
        }
    }
    #[cfg(target_arch = "aarch64")]
    use crate::lanes::Neon as Widest;
    #[cfg(not(any(target_arch = "aarch64", target_feature = "simd128")))]
    use crate::lanes::Plain as Widest;
    #[cfg(target_feature = "simd128")]
    use crate::lanes::Simd128 as Widest;
    let parts = if cfg!(target_arch = "aarch64") { 4 } else { 2 };
    // SAFETY: every processor of this kind has these instructions.
    unsafe {
        match arithmetic {
            Arithmetic::Fast => work.run::<Widest>(parts),
            Arithmetic::Portable if T::ADDS_LANES => {
                work.run::<Joined<Joined<Rounded<Widest>>>>(1);
            }
            Arithmetic::Portable => work.run::<Rounded<Widest>>(parts),
        }
    }
}

/// Sums of all terms for `num` positions of some outputs.
pub struct Rows<'a> {
    pub planes: &'a [f32],
    pub offsets: &'a [usize],
    /// By term and output.
    pub weights: &'a [f32],
    /// The initial value of each output's sum.
    pub start: &'a [f32],
    pub num: usize,
    /// By output and position.
    pub sums: &'a mut [f32],
}

impl Tiled for Rows<'_> {
    const ADDS_LANES: bool = false;

    #[inline(always)]
    unsafe fn run<L: Lanes>(self, parts: usize) {
        let wide = self.start.len();
        let last = self.offsets.iter().max().copied().unwrap_or(0);
        assert!(self.num.is_multiple_of(L::NUM) && last + self.num <= self.planes.len());
        assert!(self.weights.len() == wide * self.offsets.len());
        assert!(self.sums.len() == wide * self.num);
        let has_room = parts >= 4;
        let narrow = if has_room {
            WIDEST
        } else {
            // As few tiles as possible, of equal width.
            wide.div_ceil(wide.div_ceil(NARROWEST).max(1)).max(1)
        };
        for first in (0..wide).step_by(narrow) {
            // SAFETY: the bounds were just checked, and the caller guarantees the processor's features.
            unsafe {
                match narrow.min(wide - first) {
                    1 => self.tiles::<L, 1>(first, has_room),
                    2 => self.tiles::<L, 2>(first, has_room),
                    3 => self.tiles::<L, 3>(first, has_room),
                    4 => self.tiles::<L, 4>(first, has_room),
                    5 => self.tiles::<L, 5>(first, has_room),
                    6 => self.tiles::<L, 6>(first, has_room),
                    7 => self.tiles::<L, 7>(first, has_room),
                    _ => self.tiles::<L, 8>(first, has_room),
                }
            }
        }
    }
}

impl Rows<'_> {
    /// All positions of `N` outputs starting at `first`, in tiles that leave registers for inputs and a weight: of 16, a
    /// tile takes at most 12, or the compiler keeps sums on the stack.
    #[inline(always)]
    unsafe fn tiles<L: Lanes, const N: usize>(&self, first: usize, has_room: bool) {
        let mut at = 0;
        macro_rules! by {
            ($registers:literal) => {
                while at + $registers * L::NUM <= self.num {
                    self.tile::<L, N, $registers>(first, at);
                    at += $registers * L::NUM;
                }
            };
        }
        // SAFETY: the caller has checked the bounds.
        unsafe {
            // Few outputs leave registers for more positions, whose sums are independent.
            match (has_room, N) {
                (true, 1 | 2) => by!(6),
                (true, _) => by!(3),
                (false, 1) => by!(6),
                (false, 2) => by!(4),
                (false, 3) => by!(3),
                (false, _) => by!(2),
            }
            by!(2);
            by!(1);
        }
    }

    /// `M` registers of positions starting at `at`, for `N` outputs starting at `first`.
    #[inline(always)]
    unsafe fn tile<L: Lanes, const N: usize, const M: usize>(&self, first: usize, at: usize) {
        let wide = self.start.len();
        // SAFETY: the caller has checked the bounds.
        unsafe {
            let mut sums: [[L; M]; N] =
                std::array::from_fn(|output| [L::splat(self.start[first + output]); M]);
            let mut weights = self.weights.as_ptr().add(first);
            let from = self.planes.as_ptr().add(at);
            for offset in self.offsets {
                let from = from.add(*offset);
                let x: [L; M] = std::array::from_fn(|part| L::load(from.add(part * L::NUM)));
                for output in 0..N {
                    let weight = L::splat(*weights.add(output));
                    for part in 0..M {
                        sums[output][part] = sums[output][part].plus_product(x[part], weight);
                    }
                }
                weights = weights.add(wide);
            }
            for output in 0..N {
                let to = self
                    .sums
                    .as_ptr()
                    .cast_mut()
                    .add((first + output) * self.num + at);
                for part in 0..M {
                    sums[output][part].store(to.add(part * L::NUM));
                }
            }
        }
    }
}

/// Products of the gradients of outputs with the input of each term, over all positions of some slabs of items.
pub struct ByPosition<'a> {
    pub planes: &'a [f32],
    /// Where each slab begins.
    pub starts: &'a [usize],
    /// By slab, output and position.
    pub gradients: &'a [f32],
    pub outputs: usize,
    /// Positions of an output in a slab.
    pub num: usize,
    /// Of all terms, padded to fill a tile.
    pub offsets: &'a [usize],
    pub terms: usize,
    /// By output and term; results are added to it.
    pub sums: &'a mut [f32],
}

impl Tiled for ByPosition<'_> {
    const ADDS_LANES: bool = true;

    #[inline(always)]
    unsafe fn run<L: Lanes>(mut self, parts: usize) {
        let last = |of: &[usize]| of.iter().max().copied().unwrap_or(0);
        let past = last(self.starts) + last(self.offsets) + self.num;
        assert!(self.num.is_multiple_of(L::NUM) && past <= self.planes.len());
        assert!(self.starts.len() * self.outputs * self.num <= self.gradients.len());
        assert!(
            self.sums.len() == self.outputs * self.terms && self.offsets.len().is_multiple_of(TAPS)
        );
        for first in (0..self.outputs).step_by(parts) {
            // SAFETY: the bounds were just checked, and the caller guarantees the processor's features.
            unsafe {
                match parts.min(self.outputs - first) {
                    1 => self.tiles::<L, 1>(first),
                    2 => self.tiles::<L, 2>(first),
                    3 => self.tiles::<L, 3>(first),
                    _ => self.tiles::<L, 4>(first),
                }
            }
        }
    }
}

impl ByPosition<'_> {
    /// All terms of `N` outputs from `first` on.
    #[inline(always)]
    unsafe fn tiles<L: Lanes, const N: usize>(&mut self, first: usize) {
        for term in (0..self.offsets.len()).step_by(TAPS) {
            let offsets = &self.offsets[term..][..TAPS];
            // SAFETY: the caller has checked the bounds.
            unsafe {
                let mut sums = [[L::splat(0.0); TAPS]; N];
                for (slab, start) in self.starts.iter().enumerate() {
                    let seen = self.planes.as_ptr().add(*start);
                    let seen: [*const f32; TAPS] =
                        std::array::from_fn(|tap| seen.add(offsets[tap]));
                    let place = (slab * self.outputs + first) * self.num;
                    let gradient = self.gradients.as_ptr().add(place);
                    for at in (0..self.num).step_by(L::NUM) {
                        let of: [L; N] = std::array::from_fn(|output| {
                            L::load(gradient.add(output * self.num + at))
                        });
                        for tap in 0..TAPS {
                            let x = L::load(seen[tap].add(at));
                            for output in 0..N {
                                sums[output][tap] = sums[output][tap].plus_product(x, of[output]);
                            }
                        }
                    }
                }
                let num = TAPS.min(self.terms - term);
                for tap in 0..num {
                    let four = std::array::from_fn(|output| sums[output.min(N - 1)][tap]);
                    for (output, sum) in L::sums(four).into_iter().take(N).enumerate() {
                        self.sums[(first + output) * self.terms + term + tap] += sum;
                    }
                }
            }
        }
    }
}

/// Gradients that all terms are multiplied by before those of the next places: they stay in the second cache.
const CACHED: usize = 1 << 16;

/// The same at some places, where a register holds several outputs: sums have the order of places.
pub struct ByOutput<'a> {
    pub planes: &'a [f32],
    pub places: &'a [usize],
    /// By place and output.
    pub gradients: &'a [f32],
    /// Outputs, in whole registers of any kind.
    pub wide: usize,
    /// Of all terms.
    pub offsets: &'a [usize],
    /// By term and output; results are added to it.
    pub sums: &'a mut [f32],
}

impl Tiled for ByOutput<'_> {
    const ADDS_LANES: bool = false;

    #[inline(always)]
    unsafe fn run<L: Lanes>(mut self, parts: usize) {
        let last = |of: &[usize]| of.iter().max().copied().unwrap_or(0);
        assert!(last(self.offsets) + last(self.places) < self.planes.len());
        assert!(self.wide.is_multiple_of(REGISTER));
        assert!(self.places.len() * self.wide <= self.gradients.len());
        assert!(self.sums.len() == self.offsets.len() * self.wide);
        let registers = self.wide / L::NUM;
        let at_once = (CACHED / self.wide).max(1);
        let (places, gradients) = (self.places, self.gradients);
        let gradients = gradients.chunks(at_once * self.wide);
        for (places, gradients) in places.chunks(at_once).zip(gradients) {
            (self.places, self.gradients) = (places, gradients);
            let mut first = 0;
            while first < registers {
                // As few tiles as possible, of nearly equal width.
                let rest = registers - first;
                let width = rest.div_ceil(rest.div_ceil(parts));
                // SAFETY: the bounds were just checked, and the caller guarantees the processor's features.
                unsafe {
                    match width {
                        1 => self.tiles::<L, 1, 8, 4>(first * L::NUM),
                        2 if parts < 4 => self.tiles::<L, 2, TAPS, 3>(first * L::NUM),
                        2 => self.tiles::<L, 2, 8, 4>(first * L::NUM),
                        3 => self.tiles::<L, 3, 8, 4>(first * L::NUM),
                        _ => self.tiles::<L, 4, 6, 3>(first * L::NUM),
                    }
                }
                first += width;
            }
        }
    }
}

impl ByOutput<'_> {
    /// All terms of `N` registers of outputs: `T` at a time, and then at most `R`.
    #[inline(always)]
    unsafe fn tiles<L: Lanes, const N: usize, const T: usize, const R: usize>(
        &mut self,
        first: usize,
    ) {
        let terms = self.offsets.len();
        let mut term = 0;
        // SAFETY: the caller has checked the bounds.
        unsafe {
            while term + R < terms {
                self.tile::<L, N, T>(first, term);
                term += T;
            }
            while term < terms {
                self.tile::<L, N, R>(first, term);
                term += R;
            }
        }
    }

    #[inline(always)]
    unsafe fn tile<L: Lanes, const N: usize, const T: usize>(&mut self, first: usize, term: usize) {
        let terms = T.min(self.offsets.len() - term);
        // SAFETY: the caller has checked the bounds.
        unsafe {
            // Terms after the last one see what it sees.
            let seen: [*const f32; T] = std::array::from_fn(|at| {
                let offset = self.offsets[term + at.min(terms - 1)];
                self.planes.as_ptr().add(offset)
            });
            let mut sums = [[L::splat(0.0); N]; T];
            let mut gradients = self.gradients.as_ptr().add(first);
            for place in self.places {
                let of: [L; N] = std::array::from_fn(|part| L::load(gradients.add(part * L::NUM)));
                for at in 0..T {
                    let x = L::splat(*seen[at].add(*place));
                    for part in 0..N {
                        sums[at][part] = sums[at][part].plus_product(x, of[part]);
                    }
                }
                gradients = gradients.add(self.wide);
            }
            for at in 0..terms {
                let to = self.sums[(term + at) * self.wide + first..].as_mut_ptr();
                for part in 0..N {
                    let to = to.add(part * L::NUM);
                    L::load(to).plus(sums[at][part]).store(to);
                }
            }
        }
    }
}
