//! Reusable scratch memory of a thread.

use std::cell::RefCell;
use std::mem::MaybeUninit;

use rayon::prelude::*;

thread_local! {
    static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Calls with `len` arbitrary numbers, which belong to this thread until it returns.
pub fn with<R>(len: usize, call: impl FnOnce(&mut [f32]) -> R) -> R {
    SCRATCH.with(|scratch| {
        // If it is already in use, which only a nested call could cause, another one is allocated.
        let Ok(mut scratch) = scratch.try_borrow_mut() else {
            return call(&mut vec![0.0; len]);
        };
        if scratch.len() < len {
            scratch.resize(len, 0.0);
        }
        call(&mut scratch[..len])
    })
}

/// Memory that several threads write to, at disjoint positions.
#[derive(Clone, Copy)]
pub struct Shared(*mut f32, usize);

// SAFETY: the pointer is only used within the unsafe methods, whose callers keep threads apart.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    pub fn new(values: &mut [MaybeUninit<f32>]) -> Self {
        Self(values.as_mut_ptr().cast(), values.len())
    }

    /// The elements of a slice, which must not be used while this exists.
    pub fn of(values: &mut [f32]) -> Self {
        Self(values.as_mut_ptr(), values.len())
    }

    /// The address of an existing element.
    pub fn at(self, place: usize) -> *mut f32 {
        assert!(place < self.1);
        self.0.wrapping_add(place)
    }

    /// Writes values to positions starting at `from`.
    ///
    /// # Safety Nothing else accesses these positions in the meantime.
    #[inline(always)]
    pub unsafe fn write(self, from: usize, values: &[f32]) {
        assert!(from <= self.1 && values.len() <= self.1 - from);
        // SAFETY: the positions are within the memory; the caller guarantees the rest.
        unsafe {
            let to = self.0.add(from);
            let len = values.len();
            // Usually few, so that calling `memcpy` would take longer; it loads many from far memory at once. The last
            // chunk overlaps the one before.
            macro_rules! chunks {
                ($step:literal) => {{
                    let put = |at: usize| {
                        let chunk: &[f32; $step] =
                            values[at..at + $step].try_into().expect("equal lengths");
                        to.add(at).cast::<[f32; $step]>().write_unaligned(*chunk);
                    };
                    for at in 0..len / $step {
                        put(at * $step);
                    }
                    put(len - $step);
                }};
            }
            match len {
                256.. => to.copy_from_nonoverlapping(values.as_ptr(), len),
                16.. => chunks!(16),
                8.. => chunks!(8),
                _ => {
                    for (at, value) in values.iter().enumerate() {
                        to.add(at).write(*value);
                    }
                }
            }
        }
    }

    /// Some positions, to be written to.
    ///
    /// # Safety Nothing else accesses these positions while the slice lives.
    pub unsafe fn part<'a>(self, from: usize, len: usize) -> &'a mut [MaybeUninit<f32>] {
        assert!(from <= self.1 && len <= self.1 - from);
        // SAFETY: the positions are within the memory, and need not be initialized; the caller guarantees the rest.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(from).cast(), len) }
    }

    /// Fills some positions with a value, and returns them as a slice.
    ///
    /// # Safety Nothing else accesses these positions while the slice lives.
    #[inline(always)]
    pub unsafe fn filled<'a>(self, from: usize, len: usize, value: f32) -> &'a mut [f32] {
        assert!(from <= self.1 && len <= self.1 - from);
        // SAFETY: the positions are within the memory, and initialized before they become a slice; the caller
        // guarantees the rest.
        unsafe {
            let first = self.0.add(from);
            for at in 0..len {
                first.add(at).write(value);
            }
            std::slice::from_raw_parts_mut(first, len)
        }
    }
}

/// A vector of `len` numbers, each written by `write`.
///
/// # Safety `write` writes every position.
pub unsafe fn written(len: usize, write: impl FnOnce(Shared)) -> Vec<f32> {
    let mut values = Vec::with_capacity(len);
    write(Shared::new(&mut values.spare_capacity_mut()[..len]));
    // SAFETY: the capacity is sufficient, and everything is written.
    unsafe { values.set_len(len) };
    values
}

/// Numbers that a task changes one by one: they stay in the innermost cache.
pub const PIECE: usize = 1 << 12;

/// A copy of numbers, changed on several threads: each piece of [`PIECE`] numbers by its position among them.
pub fn changed_copy(x: &[f32], change: impl Fn(usize, &mut [f32]) + Sync) -> Vec<f32> {
    let mut values = Vec::with_capacity(x.len());
    let to = &mut values.spare_capacity_mut()[..x.len()];
    let pieces = to.par_chunks_mut(PIECE).zip(x.par_chunks(PIECE));
    let pieces = pieces.enumerate();
    pieces.for_each(|(at, (to, x))| change(at, copied(to, x)));
    // SAFETY: the pieces cover all elements.
    unsafe { values.set_len(x.len()) };
    values
}

/// Initializes memory with `from`, and returns it as a slice.
pub fn copied<'a>(to: &'a mut [MaybeUninit<f32>], from: &[f32]) -> &'a mut [f32] {
    assert_eq!(to.len(), from.len());
    // SAFETY: uninitialized elements have the same layout, and all are written before the slice of numbers exists; both
    // slices have the same length, and one is borrowed mutably.
    unsafe {
        std::ptr::copy_nonoverlapping(from.as_ptr(), to.as_mut_ptr().cast(), from.len());
        std::slice::from_raw_parts_mut(to.as_mut_ptr().cast(), to.len())
    }
}
