//! Vector registers of the processors in use, for loops whose accumulators have to stay in them.
//!
//! `vectors.rs` leaves vectorization to the compiler, which is enough if each number is used once. A matrix product
//! only reaches the processor's peak rate if a tile of its result stays in registers, so it is written explicitly here.

/// A vector register of 32-bit numbers.
///
/// # Safety
/// All functions are only called on processors that have the register's instructions.
pub unsafe trait Lanes: Copy {
    /// Numbers in a register.
    const NUM: usize;

    /// The same number in all lanes.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn splat(value: f32) -> Self;

    /// Loads the numbers at an address.
    ///
    /// # Safety
    /// As the trait says; all lanes can be read.
    unsafe fn load(from: *const f32) -> Self;

    /// Stores the numbers at an address.
    ///
    /// # Safety
    /// As the trait says; all lanes can be written.
    unsafe fn store(self, to: *mut f32);

    /// `self + other`.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn plus(self, other: Self) -> Self;

    /// `self * other`.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn times(self, other: Self) -> Self;

    /// `self + a * b`, fused if the processor supports it.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn plus_product(self, a: Self, b: Self) -> Self;

    /// The sum of all lanes, by repeated halving.
    ///
    /// # Safety
    /// As the trait says.
    unsafe fn sum(self) -> f32;

    /// The sums of the lanes of four registers.
    ///
    /// # Safety
    /// As the trait says.
    #[inline(always)]
    unsafe fn sums(four: [Self; 4]) -> [f32; 4] {
        // SAFETY: as the trait says.
        four.map(|register| unsafe { register.sum() })
    }
}

/// The fallback for any processor.
#[cfg_attr(target_feature = "simd128", allow(dead_code, reason = "not needed"))]
#[derive(Clone, Copy)]
pub struct Plain([f32; 4]);

// SAFETY: these are numbers in memory.
unsafe impl Lanes for Plain {
    const NUM: usize = 4;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        Self([value; 4])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller guarantees the lanes.
        Self(unsafe { from.cast::<[f32; 4]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller guarantees the lanes.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] + other.0[at]))
    }

    #[inline(always)]
    unsafe fn times(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] * other.0[at]))
    }

    #[inline(always)]
    unsafe fn plus_product(self, a: Self, b: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at] + a.0[at] * b.0[at]))
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        let [a, b, c, d] = self.0;
        (a + c) + (b + d)
    }
}

/// The same register, with each product and each sum rounded by itself.
#[derive(Clone, Copy)]
pub struct Rounded<L>(L);

// SAFETY: as that of the register.
unsafe impl<L: Lanes> Lanes for Rounded<L> {
    const NUM: usize = L::NUM;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: as the trait says.
        Self(unsafe { L::splat(value) })
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: as the trait says.
        Self(unsafe { L::load(from) })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: as the trait says.
        unsafe { self.0.store(to) }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        // SAFETY: as the trait says.
        Self(unsafe { self.0.plus(other.0) })
    }

    #[inline(always)]
    unsafe fn times(self, other: Self) -> Self {
        // SAFETY: as the trait says.
        Self(unsafe { self.0.times(other.0) })
    }

    #[inline(always)]
    unsafe fn plus_product(self, a: Self, b: Self) -> Self {
        // SAFETY: as the trait says.
        unsafe { self.plus(a.times(b)) }
    }

    /// In the same order for all widths: the halves of a register are added like two registers of half the width.
    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        let mut lanes = [0.0; 16];
        // SAFETY: as the trait says; no register has more lanes.
        unsafe { self.store(lanes.as_mut_ptr()) };
        let mut half = L::NUM / 2;
        while half > 0 {
            for at in 0..half {
                lanes[at] += lanes[at + half];
            }
            half /= 2;
        }
        lanes[0]
    }
}

/// Two registers as one of twice the width.
#[derive(Clone, Copy)]
pub struct Joined<L>([L; 2]);

// SAFETY: as that of the registers.
unsafe impl<L: Lanes> Lanes for Joined<L> {
    const NUM: usize = 2 * L::NUM;

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        // SAFETY: as the trait says.
        Self([unsafe { L::splat(value) }; 2])
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: as the trait says, for all lanes.
        Self(unsafe { [L::load(from), L::load(from.add(L::NUM))] })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        let [low, high] = self.0;
        // SAFETY: as the trait says, for all lanes.
        unsafe {
            low.store(to);
            high.store(to.add(L::NUM));
        }
    }

    #[inline(always)]
    unsafe fn plus(self, other: Self) -> Self {
        let ([a, b], [c, d]) = (self.0, other.0);
        // SAFETY: as the trait says.
        Self(unsafe { [a.plus(c), b.plus(d)] })
    }

    #[inline(always)]
    unsafe fn times(self, other: Self) -> Self {
        let ([a, b], [c, d]) = (self.0, other.0);
        // SAFETY: as the trait says.
        Self(unsafe { [a.times(c), b.times(d)] })
    }

    #[inline(always)]
    unsafe fn plus_product(self, a: Self, b: Self) -> Self {
        let ([x, y], [a, c], [b, d]) = (self.0, a.0, b.0);
        // SAFETY: as the trait says.
        Self(unsafe { [x.plus_product(a, b), y.plus_product(c, d)] })
    }

    #[inline(always)]
    unsafe fn sum(self) -> f32 {
        let [low, high] = self.0;
        // SAFETY: as the trait says.
        unsafe { low.plus(high).sum() }
    }
}

#[cfg(any(
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_feature = "simd128"
))]
macro_rules! registers {
    ($($(#[$doc:meta])* $name:ident($register:ty), $num:literal: $splat:ident, $load:ident, $store:ident, $plus:ident, $times:ident, $fused:expr, $sum:expr $(, $sums:expr)?;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name($register);

        // SAFETY: the caller of each function guarantees the processor's features.
        unsafe impl Lanes for $name {
            const NUM: usize = $num;

            #[inline(always)]
            unsafe fn splat(value: f32) -> Self {
                // SAFETY: as the trait says.
                Self(unsafe { $splat(value) })
            }

            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                // SAFETY: as the trait says.
                Self(unsafe { $load(from) })
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                // SAFETY: as the trait says.
                unsafe { $store(to, self.0) }
            }

            #[inline(always)]
            unsafe fn plus(self, other: Self) -> Self {
                // SAFETY: as the trait says.
                Self(unsafe { $plus(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn times(self, other: Self) -> Self {
                // SAFETY: as the trait says.
                Self(unsafe { $times(self.0, other.0) })
            }

            #[inline(always)]
            unsafe fn plus_product(self, a: Self, b: Self) -> Self {
                // SAFETY: as the trait says.
                Self(unsafe { $fused(self.0, a.0, b.0) })
            }

            #[inline(always)]
            unsafe fn sum(self) -> f32 {
                // SAFETY: as the trait says.
                unsafe { $sum(self.0) }
            }
            $(
                #[inline(always)]
                unsafe fn sums(four: [Self; 4]) -> [f32; 4] {
                    // SAFETY: as the trait says.
                    unsafe { $sums(four.map(|register| register.0)) }
                }
            )?
        }
    )+};
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Lanes;
    use std::arch::x86_64::*;

    #[inline]
    #[target_feature(enable = "avx2")]
    fn sum_of_8(values: __m256) -> f32 {
        let four = _mm_add_ps(
            _mm256_castps256_ps128(values),
            _mm256_extractf128_ps::<1>(values),
        );
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
    }

    /// Each step halves the numbers of two registers and puts the halves into one.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn sums_of_16([a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        let halves = |a, b| _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
        let (ab, cd) = (halves(a, b), halves(c, d));
        let low = _mm512_shuffle_ps::<0x44>(ab, cd);
        let all = _mm512_add_ps(low, _mm512_shuffle_ps::<0xee>(ab, cd));
        let two = _mm512_add_ps(all, _mm512_shuffle_f32x4::<0x4e>(all, all));
        let one = _mm512_add_ps(two, _mm512_shuffle_f32x4::<0xb1>(two, two));
        let mut sums = [0.0; 4];
        // SAFETY: there are four.
        unsafe { _mm_storeu_ps(sums.as_mut_ptr(), _mm512_castps512_ps128(one)) };
        sums
    }

    registers! {
        /// AVX-512.
        Avx512(__m512), 16: _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_add_ps, _mm512_mul_ps,
            |sum, a, b| _mm512_fmadd_ps(a, b, sum), |values| _mm512_reduce_add_ps(values), |four| sums_of_16(four);
        /// AVX2 with fused products.
        Avx2(__m256), 8: _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_add_ps, _mm256_mul_ps,
            |sum, a, b| _mm256_fmadd_ps(a, b, sum), |values| sum_of_8(values);
    }
}
#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};

#[cfg(target_arch = "aarch64")]
mod arm {
    use super::Lanes;
    use std::arch::aarch64::*;

    registers! {
        /// NEON, which all aarch64 processors have.
        Neon(float32x4_t), 4: vdupq_n_f32, vld1q_f32, vst1q_f32, vaddq_f32, vmulq_f32,
            |sum, a, b| vfmaq_f32(sum, a, b), |values| vaddvq_f32(values);
    }
}
#[cfg(target_arch = "aarch64")]
pub use arm::Neon;

#[cfg(target_feature = "simd128")]
#[allow(unused_unsafe, reason = "other processors' functions are unsafe")]
mod wasm {
    use super::Lanes;
    use std::arch::wasm32::*;

    unsafe fn load(from: *const f32) -> v128 {
        // SAFETY: the caller guarantees the lanes; addresses need not be aligned.
        unsafe { v128_load(from.cast()) }
    }

    unsafe fn store(to: *mut f32, values: v128) {
        // SAFETY: as above.
        unsafe { v128_store(to.cast(), values) }
    }

    /// In the order of [`super::Plain`].
    fn sum(values: v128) -> f32 {
        let (a, b) = (
            f32x4_extract_lane::<0>(values),
            f32x4_extract_lane::<1>(values),
        );
        let (c, d) = (
            f32x4_extract_lane::<2>(values),
            f32x4_extract_lane::<3>(values),
        );
        (a + c) + (b + d)
    }

    registers! {
        /// WebAssembly's vectors, which have no fused products.
        Simd128(v128), 4: f32x4_splat, load, store, f32x4_add, f32x4_mul,
            |sum, a, b| f32x4_add(sum, f32x4_mul(a, b)), |values| sum(values);
    }
}
#[cfg(target_feature = "simd128")]
pub use wasm::Simd128;
