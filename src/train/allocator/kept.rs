//! Freed large blocks, kept for the next request of their size.
//!
//! Training requests the same sizes at every step. Getting their pages from the system each time takes as long as a
//! small convolution; leaving them to a general allocator makes a process use two to four times the live memory, and
//! never the same twice. With this cache, live and kept memory stay within 1.5 times the live peak.

/// The smallest block that is kept.
pub const LARGE: usize = 64 << 10;

/// Maximum number of kept blocks: a search visits all of them.
const MOST: usize = 512;

/// A block that was not requested while this many others were is freed: some ten steps of a deep network.
const PATIENCE: u64 = 4096;

/// The allocated size of a large block: up to an eighth more than requested, so that similar sizes share blocks.
pub const fn rounded(size: usize) -> usize {
    let step = 1 << (size.ilog2() - 3);
    size.next_multiple_of(step)
}

/// Blocks, the oldest first.
pub struct Kept {
    blocks: [Block; MOST],
    num: usize,
    bytes: u64,
    /// Blocks requested so far.
    asked: u64,
}

#[derive(Clone, Copy)]
struct Block {
    address: usize,
    size: usize,
    /// When it was freed.
    at: u64,
}

impl Kept {
    /// None yet.
    pub const fn new() -> Self {
        let none = Block {
            address: 0,
            size: 0,
            at: 0,
        };
        Self {
            blocks: [none; MOST],
            num: 0,
            bytes: 0,
            asked: 0,
        }
    }

    /// The address of the most recently freed block of a size.
    pub fn take(&mut self, size: usize) -> Option<usize> {
        self.asked += 1;
        let held = &self.blocks[..self.num];
        let at = held.iter().rposition(|block| block.size == size)?;
        Some(self.remove(at).address)
    }

    /// Keeps a block.
    pub fn put(&mut self, address: usize, size: usize, free: impl FnMut(usize, usize)) {
        if self.num == MOST {
            self.shrink_to(self.bytes - self.blocks[0].size as u64, free);
        }
        self.blocks[self.num] = Block {
            address,
            size,
            at: self.asked,
        };
        self.num += 1;
        self.bytes += size as u64;
    }

    /// Frees the oldest blocks until at most this many bytes are left, none of which are too old.
    pub fn shrink_to(&mut self, bytes: u64, mut free: impl FnMut(usize, usize)) {
        while self.num > 0 && (self.bytes > bytes || self.asked - self.blocks[0].at > PATIENCE) {
            let oldest = self.remove(0);
            free(oldest.address, oldest.size);
        }
    }

    fn remove(&mut self, at: usize) -> Block {
        let block = self.blocks[at];
        self.blocks.copy_within(at + 1..self.num, at);
        self.num -= 1;
        self.bytes -= block.size as u64;
        block
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn freed(kept: &mut Kept, bytes: u64) -> Vec<usize> {
        let mut freed = Vec::new();
        kept.shrink_to(bytes, |address, _| freed.push(address));
        freed
    }

    #[test]
    fn sizes_are_rounded_up_by_an_eighth_at_most() {
        for size in [
            LARGE,
            LARGE + 1,
            100_000,
            1 << 20,
            (1 << 20) + 1,
            123_456_789,
        ] {
            let made = rounded(size);
            assert!(size <= made && made - size <= size / 8, "{size} {made}");
            assert_eq!(rounded(made), made);
        }
    }

    #[test]
    fn the_newest_block_of_a_size_is_taken_and_the_oldest_is_given_back() {
        let mut kept = Kept::new();
        for (address, size) in [(1, 100), (2, 200), (3, 100), (4, 300)] {
            kept.put(address, size, |_, _| panic!("there is room"));
        }
        assert_eq!(kept.take(100), Some(3));
        assert_eq!(kept.take(150), None);
        assert_eq!(freed(&mut kept, 500), [1]);
        assert_eq!(freed(&mut kept, 499), [2]);
        assert_eq!(kept.take(300), Some(4));
        assert_eq!((kept.num, kept.bytes), (0, 0));
    }

    #[test]
    fn what_waits_in_vain_is_given_back() {
        let mut kept = Kept::new();
        kept.put(1, 100, |_, _| {});
        for _ in 0..PATIENCE {
            kept.take(50);
        }
        kept.put(2, 100, |_, _| {});
        assert_eq!(freed(&mut kept, 1000), [0; 0]);
        kept.take(50);
        assert_eq!(freed(&mut kept, 1000), [1]);
    }

    #[test]
    fn a_full_table_gives_back_its_oldest_block() {
        let mut kept = Kept::new();
        let mut freed = Vec::new();
        for address in 1..=MOST + 2 {
            kept.put(address, 10, |address, _| freed.push(address));
        }
        assert_eq!((freed, kept.bytes), (vec![1, 2], 10 * MOST as u64));
    }
}
