//! Matrix products by the crate `gemm`, which selects its kernels for the processor at run time.

use gemm::{Parallelism, gemm};

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
    [m, n, k]: [usize; 3],
    to: *mut f32,
    pitch: usize,
    adds: bool,
    lhs: Matrix,
    rhs: Matrix,
) {
    if m > 0 && n > 0 && k > 0 {
        assert!((m - 1) * lhs.row + (k - 1) * lhs.column < lhs.values.len());
        assert!((k - 1) * rhs.row + (n - 1) * rhs.column < rhs.values.len());
    }
    let rhs = (rhs.values.as_ptr(), rhs.row, rhs.column);
    // SAFETY: both operands are within their slices, as was just asserted; the caller guarantees `to`.
    unsafe { product_with([m, n, k], to, pitch, adds, lhs, rhs) }
}

/// The same, with the address of the right operand and the strides of its rows and columns.
///
/// # Safety
/// As for [`product`]; also, all elements of the operands must be readable.
pub unsafe fn product_with(
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
    // SAFETY: the caller guarantees all elements.
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
