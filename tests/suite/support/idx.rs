//! Files in the format of MNIST.

use std::io::Write;

/// A file of bytes: `magic` is the number of its `sizes`, where it is not made wrong on purpose.
pub fn file(magic: u8, sizes: &[u32], values: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, magic];
    bytes.extend(sizes.iter().flat_map(|size| size.to_be_bytes()));
    bytes.extend(values);
    bytes
}

/// The same, packed.
pub fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
