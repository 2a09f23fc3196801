//! What the tests of several modules need.

use std::fs;
use std::path::Path;

use rand::RngExt;
use rand::rngs::ChaCha8Rng;

/// Writes a file as a new one. Writing over an existing file waits for the disk on some file systems (ext4), which adds
/// up in a test that damages a file thousands of times.
pub fn rewrite(path: &Path, bytes: impl AsRef<[u8]>) {
    let _ = fs::remove_file(path);
    fs::write(path, bytes).expect("a writable folder");
}

/// A file with one to three bytes replaced at random.
pub fn damaged(bytes: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = bytes.to_owned();
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..bytes.len());
        bytes[at] = rng.random();
    }
    bytes
}
