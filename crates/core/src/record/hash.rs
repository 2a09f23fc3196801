//! sha256 of texts and files, as hexadecimal digits.

use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// A digest's digits.
pub fn hex(digest: impl AsRef<[u8]>) -> String {
    let bytes = digest.as_ref().iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

/// Of what a reader gives.
pub fn sha256_of(mut source: impl Read) -> io::Result<String> {
    let mut sum = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok(hex(sum.finalize())),
            Ok(read) => sum.update(&buffer[..read]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}
