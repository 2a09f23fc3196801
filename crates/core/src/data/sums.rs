//! Checksums of a cached file, one per MiB: CRC-32C, which detects every flipped bit and runs at memory speed.

use rayon::prelude::*;

/// Bytes per sum.
const BLOCK: usize = 1 << 20;

/// The sums of data as it is written.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    done: Vec<u32>,
    sum: u32,
    filled: usize,
}

impl Sums {
    /// Includes the following bytes.
    pub fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at((BLOCK - self.filled).min(bytes.len()));
            self.sum = crc32c::crc32c_append(self.sum, now);
            self.filled += now.len();
            if self.filled == BLOCK {
                self.done.push(self.sum);
                (self.sum, self.filled) = (0, 0);
            }
            bytes = later;
        }
    }

    /// The sums of all blocks.
    pub fn end(mut self) -> Vec<u32> {
        if self.filled > 0 {
            self.done.push(self.sum);
        }
        self.done
    }
}

/// The start of the first block whose sum differs, if any. Blocks are read on all threads.
pub fn first_damage(bytes: &[u8], sums: &[u32]) -> Option<usize> {
    if bytes.len().div_ceil(BLOCK) != sums.len() {
        return Some(0);
    }
    let blocks = bytes.par_chunks(BLOCK).zip(sums).enumerate();
    let wrong = blocks.filter(|(_, (block, sum))| crc32c::crc32c(block) != **sum);
    wrong.map(|(at, _)| at * BLOCK).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_pieces_are_those_of_the_whole_and_every_flipped_bit_is_found() {
        let mut bytes: Vec<u8> = (0..2 * BLOCK + 77)
            .map(|at| (at * 31 % 251) as u8)
            .collect();
        for piece in [1, 1000, BLOCK, 3 * BLOCK] {
            let mut sums = Sums::default();
            bytes.chunks(piece).for_each(|piece| sums.add(piece));
            let sums = sums.end();
            assert_eq!((sums.len(), first_damage(&bytes, &sums)), (3, None));
            for at in [0, BLOCK - 1, BLOCK, 2 * BLOCK + 76] {
                bytes[at] ^= 4;
                assert_eq!(first_damage(&bytes, &sums), Some(at / BLOCK * BLOCK));
                bytes[at] ^= 4;
            }
            assert_eq!(first_damage(&bytes[1..], &sums), Some(0));
            assert_eq!(first_damage(&bytes[..BLOCK], &sums), Some(0));
        }
        assert_eq!(first_damage(&[], &Sums::default().end()), None);
    }
}
