//! sha256 of texts and files, as hexadecimal digits.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// Lowercase hexadecimal digits of bytes.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The sha256 sum of everything that can be read, in hexadecimal digits; a large file needs little memory.
pub fn sha256_of(mut source: impl Read) -> io::Result<String> {
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok(hex(&sum.finalize())),
            Ok(read) => sum.update(&buffer[..read]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// The sha256 sum of bytes in hexadecimal digits.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}
