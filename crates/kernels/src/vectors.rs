//! Loops compiled for several kinds of processors, selected at run time.
//!
//! The compiler uses the widest vector registers that a function may use. The results are bitwise equal for all of
//! them: sums are not reordered, and multiply-adds are not fused.

/// Wraps a function compiled for this processor. It must be `#[inline(always)]`, as must be everything that it calls in
/// loops. Generic parameters stand in brackets.
macro_rules! vectorized {
    (
        $(#[$meta:meta])* $visibility:vis fn $name:ident $([$($generic:tt)*])? =
            $function:ident($($argument:ident: $type:ty),* $(,)?);
    ) => {
        $(#[$meta])*
        #[allow(clippy::too_many_arguments, reason = "a function like this takes slices")]
        $visibility fn $name$(<$($generic)*>)?($($argument: $type),*) {
            #[cfg(target_arch = "x86_64")]
            {
                #[allow(clippy::too_many_arguments, reason = "as above")]
                #[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
                fn v4$(<$($generic)*>)?($($argument: $type),*) {
                    $function($($argument),*)
                }
                #[allow(clippy::too_many_arguments, reason = "as above")]
                #[target_feature(enable = "avx2")]
                fn v3$(<$($generic)*>)?($($argument: $type),*) {
                    $function($($argument),*)
                }
                use $crate::arithmetic::{Instructions, instructions};
                match instructions() {
                    // SAFETY: the processor has these instructions.
                    Instructions::Avx512 => return unsafe { v4($($argument),*) },
                    // SAFETY: the processor has these instructions.
                    Instructions::Avx2 => return unsafe { v3($($argument),*) },
                    Instructions::Baseline => {}
                }
            }
            // All other kinds of processors in use have the same vectors.
            $function($($argument),*)
        }
    };
}
pub(super) use vectorized;
