//! Names as parts of URLs.

/// A name as part of a URL.
pub fn encoded(name: &str) -> String {
    let bytes = name.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'=' | b',' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    bytes.collect()
}

/// The name in a part of a URL; unchanged if it is invalid.
pub fn decoded(part: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = part.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = (*first == b'%').then(|| after.get(..2)).flatten();
        let byte = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        if let Some(byte) = byte {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| part.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_survive_addresses() {
        for name in ["iris", "iris csv/ü%", "100%", "a%zz"] {
            assert_eq!(decoded(&encoded(name)), name);
        }
        assert_eq!(decoded("%"), "%");
        assert_eq!(decoded("%ff"), "%ff");
    }
}
