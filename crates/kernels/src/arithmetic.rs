//! How products and sums are rounded, and the widest vectors that are used.

use std::sync::atomic::{AtomicU8, Ordering};

/// How products and sums of products are rounded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arithmetic {
    /// As the processor does it fastest: a product and a sum rounded once where it can fuse them, in the order of its
    /// vector registers.
    #[default]
    Fast,
    /// The same bits on every processor: each product and each sum rounded separately, in an order that depends only on sizes.
    Portable,
}

/// Vector instructions of x86-64, from few to many. Other processors have one kind each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Instructions {
    /// What every x86-64 processor has.
    Baseline = 1,
    /// AVX2 and FMA.
    Avx2 = 2,
    /// AVX-512 (F, BW, DQ and VL).
    Avx512 = 3,
}

impl Instructions {
    /// All, from few to many.
    pub const ALL: [Self; 3] = [Self::Baseline, Self::Avx2, Self::Avx512];

    /// The name: `baseline`, `avx2` or `avx512`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

/// The instructions that are used; 0 before the first use.
static USED: AtomicU8 = AtomicU8::new(0);

/// The instructions that kernels use: the best that this processor has, or what [`limit`] has set.
#[inline]
pub fn instructions() -> Instructions {
    match USED.load(Ordering::Relaxed) {
        1 => Instructions::Baseline,
        2 => Instructions::Avx2,
        3 => Instructions::Avx512,
        _ => {
            let best = best();
            USED.store(best as u8, Ordering::Relaxed);
            best
        }
    }
}

/// Lets kernels of this process use no better instructions than these; returns what they use then. For proofs that
/// results do not depend on it: products that are not portable change their last digits. Those of the crate `gemm`, which
/// computes products that are not portable, are not limited.
pub fn limit(most: Instructions) -> Instructions {
    let used = best().min(most);
    USED.store(used as u8, Ordering::Relaxed);
    used
}

/// The best instructions of this processor.
fn best() -> Instructions {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::is_x86_feature_detected as has;
        let has_avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq");
        let has_avx2 = has!("avx2") && has!("fma");
        if has_avx2 && has_avx512 && has!("avx512vl") {
            return Instructions::Avx512;
        }
        if has_avx2 {
            return Instructions::Avx2;
        }
    }
    Instructions::Baseline
}
