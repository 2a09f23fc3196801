//! A zstd file without compression (RFC 8878), for programs without the library: a frame of raw blocks.

/// The magic number, a descriptor that promises neither size nor sum, and a window of 128 KiB.
const HEAD: [u8; 6] = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 7 << 3];
/// The most bytes of a block.
const BLOCK: usize = 128 << 10;

/// The bytes as a zstd file.
pub(super) fn zstd_of(bytes: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(bytes.len() + bytes.len() / BLOCK * 3 + 16);
    stored.extend(HEAD);
    // An empty frame has an empty block.
    let mut rest = bytes;
    loop {
        let (block, after) = rest.split_at(rest.len().min(BLOCK));
        // The last bit of the header says that it is the last block; the next two that it is raw.
        let head = (block.len() as u32) << 3 | u32::from(after.is_empty());
        stored.extend(&head.to_le_bytes()[..3]);
        stored.extend(block);
        if after.is_empty() {
            return stored;
        }
        rest = after;
    }
}

#[cfg(all(test, feature = "native"))]
mod tests {
    use super::*;

    #[test]
    fn the_library_reads_what_is_stored() {
        for num in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7] {
            let bytes: Vec<u8> = (0..num).map(|at| (at * at % 251) as u8).collect();
            let stored = zstd_of(&bytes);
            assert_eq!(
                zstd::decode_all(stored.as_slice()).unwrap(),
                bytes,
                "{num} bytes"
            );
        }
    }
}
