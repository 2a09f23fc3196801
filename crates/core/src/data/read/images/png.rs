//! The content of a PNG before a decoder converts it to colors.
//!
//! The decoder replaces palette indices by their colors. In masks, the indices are the classes.

use flate2::Crc;

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// The offsets of bit depth and color type: after the signature, the length and name of the first chunk, width and
/// height.
const DEPTH: usize = 24;
const COLOURS: usize = 25;
const PALETTE: u8 = 3;
const GRAY: u8 = 0;
/// The first chunk, followed by its checksum.
const HEADER: std::ops::Range<usize> = 12..29;

/// The same file with shades of gray instead of a palette; `None` if it has no palette, or is damaged.
pub fn palette_as_gray(bytes: &[u8]) -> Option<Vec<u8>> {
    let is_whole = bytes.starts_with(SIGNATURE)
        && bytes.get(12..16) == Some(b"IHDR")
        && bytes.get(COLOURS) == Some(&PALETTE)
        && bytes.get(29..33)? == sum(&bytes[HEADER]);
    if !is_whole {
        return None;
    }
    let mut gray = bytes[..33].to_vec();
    gray[COLOURS] = GRAY;
    let header = sum(&gray[HEADER]);
    gray[29..33].copy_from_slice(&header);
    let mut rest = &bytes[33..];
    // Length, name, content and checksum of each; only chunks that are valid for grayscale.
    while let [a, b, c, d, name @ ..] = rest {
        let len = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        let end = len.saturating_add(12).min(rest.len());
        if [&b"IDAT"[..], b"IEND", b"eXIf"]
            .iter()
            .any(|kept| name.starts_with(kept))
        {
            gray.extend_from_slice(&rest[..end]);
        }
        rest = &rest[end..];
    }
    Some(gray)
}

/// The factor of the decoder for shades of gray: it spreads values of fewer than 8 bits over 0 to 255.
pub fn step(bytes: &[u8]) -> u8 {
    match bytes.get(DEPTH) {
        Some(1) => 255,
        Some(2) => 85,
        Some(4) => 17,
        _ => 1,
    }
}

fn sum(bytes: &[u8]) -> [u8; 4] {
    let mut sum = Crc::new();
    sum.update(bytes);
    sum.sum().to_be_bytes()
}
