//! Matrix products: by the crate `gemm`, which selects its kernels for the processor at run time, or portable ones. These
//! are also the faster ones on WebAssembly, which has no fused products and where the tiles of `gemm` do not fit into the
//! registers of most processors.

mod portable;
#[cfg(test)]
mod tests;

use gemm::{Parallelism, gemm};

use super::arithmetic::Arithmetic;

/// A matrix within a slice: element (i, j) at `i * row + j * column`.
#[derive(Clone, Copy)]
pub struct Matrix<'a> {
    pub values: &'a [f32],
    pub row: usize,
    pub column: usize,
}

/// Computes `to[i + j * pitch] (+)= sum over k of lhs(i, k) rhs(k, j)`, for `m` x `n` elements and `k` terms, on this
/// thread.
///
/// # Safety All `m` x `n` elements of `to` must be writable, with no other access in the meantime; if `adds`, they are
/// initialized.
pub unsafe fn product(
    arithmetic: Arithmetic,
    [m, n, k]: [usize; 3],
    to: *mut f32,
    pitch: usize,
    adds: bool,
    lhs: Matrix,
    rhs: Matrix,
) {
    if m > 0 && n > 0 && k > 0 {
        assert!((k - 1) * rhs.row + (n - 1) * rhs.column < rhs.values.len());
    }
    let rhs = (rhs.values.as_ptr(), rhs.row, rhs.column);
    // SAFETY: the right operand is within its slice, as was just asserted; the caller guarantees `to`.
    unsafe { product_with(arithmetic, [m, n, k], to, pitch, adds, lhs, rhs) }
}

/// The same, with the address of the right operand and the strides of its rows and columns.
///
/// # Safety
/// As for [`product`]; also, all elements of the right operand must be readable.
pub unsafe fn product_with(
    arithmetic: Arithmetic,
    [m, n, k]: [usize; 3],
    to: *mut f32,
    pitch: usize,
    adds: bool,
    lhs: Matrix,
    (rhs, rhs_row, rhs_column): (*const f32, usize, usize),
) {
    if m == 0 || n == 0 {
        return;
    }
    assert!(k == 0 || (m - 1) * lhs.row + (k - 1) * lhs.column < lhs.values.len());
    if arithmetic == Arithmetic::Portable || cfg!(target_feature = "simd128") {
        // SAFETY: the left operand is within its slice; the caller guarantees the rest.
        return unsafe {
            portable::product([m, n, k], to, pitch, adds, lhs, (rhs, rhs_row, rhs_column))
        };
    }
    // SAFETY: as above.
    unsafe {
        gemm(
            m,
            n,
            k,
            to,
            pitch as isize,
            1,
            adds,
            lhs.values.as_ptr(),
            lhs.column as isize,
            lhs.row as isize,
            rhs,
            rhs_column as isize,
            rhs_row as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}
