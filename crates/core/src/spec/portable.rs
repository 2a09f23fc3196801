//! Names that differ between systems.

/// Whether Windows reserves a file name for a device, with any extension, or would shorten it.
pub fn is_reserved(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end();
    let stem = stem.to_ascii_lowercase();
    let numbered = |start| {
        let digit = stem.strip_prefix(start);
        digit.is_some_and(|digit| digit.chars().count() == 1)
    };
    ["con", "prn", "aux", "nul", "conin$", "conout$"].contains(&stem.as_str())
        || numbered("com")
        || numbered("lpt")
        || name.ends_with(['.', ' '])
}

/// A key that is equal for names that are the same file on case-insensitive systems.
pub fn folded(name: &str) -> String {
    name.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_windows_are_reserved() {
        for name in ["con", "NUL.txt", "com1", "aux.weight=1-s1", "a.", "a "] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["cone", "base-s1", "con=1-s1", "com", "com12", "a.b"] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
