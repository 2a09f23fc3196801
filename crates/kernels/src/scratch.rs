//! Memory that a thread uses again and again.

use std::cell::RefCell;

thread_local! {
    static SCRATCH: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Calls with `len` numbers of any value, which are this thread's until it returns.
pub fn with<R>(len: usize, call: impl FnOnce(&mut [f32]) -> R) -> R {
    SCRATCH.with(|scratch| {
        // Where it is in use already, which only a nested call could do, there is another one.
        let Ok(mut scratch) = scratch.try_borrow_mut() else {
            return call(&mut vec![0.0; len]);
        };
        if scratch.len() < len {
            scratch.resize(len, 0.0);
        }
        call(&mut scratch[..len])
    })
}

/// Memory that several threads write to, each other places.
#[derive(Clone, Copy)]
pub struct Shared(*mut f32, usize);

// SAFETY: the pointer is only used within the unsafe methods, whose callers keep threads apart.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    pub fn new(values: &mut [std::mem::MaybeUninit<f32>]) -> Self {
        Self(values.as_mut_ptr().cast(), values.len())
    }

    /// The place of an element that exists.
    pub fn at(self, place: usize) -> *mut f32 {
        assert!(place < self.1);
        self.0.wrapping_add(place)
    }

    /// Writes values to places from `from` on.
    ///
    /// # Safety
    /// Nothing else uses these places meanwhile.
    #[inline(always)]
    pub unsafe fn write(self, from: usize, values: &[f32]) {
        assert!(from <= self.1 && values.len() <= self.1 - from);
        // SAFETY: the places are within the memory; the caller answers for the rest.
        unsafe {
            let to = self.0.add(from);
            // Few as a rule, so that calling `memcpy` would take longer.
            let mut chunks = values.chunks_exact(8);
            let mut at = 0;
            for chunk in &mut chunks {
                to.add(at)
                    .cast::<[f32; 8]>()
                    .write_unaligned(chunk.try_into().expect("as many"));
                at += 8;
            }
            for value in chunks.remainder() {
                to.add(at).write(*value);
                at += 1;
            }
        }
    }

    /// Writes a value to some places, which are a slice then.
    ///
    /// # Safety
    /// Nothing else uses these places while the slice lives.
    #[inline(always)]
    pub unsafe fn filled<'a>(self, from: usize, len: usize, value: f32) -> &'a mut [f32] {
        assert!(from <= self.1 && len <= self.1 - from);
        // SAFETY: the places are within the memory, and initialized before there is a slice of them; the caller
        // answers for the rest.
        unsafe {
            let first = self.0.add(from);
            for at in 0..len {
                first.add(at).write(value);
            }
            std::slice::from_raw_parts_mut(first, len)
        }
    }
}

/// A vector of `len` numbers, each of which `write` has written.
///
/// # Safety
/// `write` writes every place.
pub unsafe fn written(len: usize, write: impl FnOnce(Shared)) -> Vec<f32> {
    let mut values = Vec::with_capacity(len);
    write(Shared::new(&mut values.spare_capacity_mut()[..len]));
    // SAFETY: the capacity is as large, and all is written.
    unsafe { values.set_len(len) };
    values
}
