//! Which names a capsule may hold: those that are the same file below a folder on every system.

use crate::spec::portable::is_reserved;

/// The most bytes of a name with its folders.
const MAX_NAME: usize = 1024;
/// The most bytes of a part of a name; file systems take no more.
const MAX_PART: usize = 255;

/// What is wrong with the name of an entry, as the end of a sentence.
pub fn wrong(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("has no name".into());
    }
    if name.len() > MAX_NAME {
        return Some(format!("has a name of more than {MAX_NAME} bytes"));
    }
    let bytes = name.as_bytes();
    if name.starts_with(['/', '\\']) {
        return Some("is an absolute path".into());
    }
    if bytes.get(1) == Some(&b':') && bytes[0].is_ascii_alphabetic() {
        return Some("is a path on a drive".into());
    }
    if let Some(odd) = name.chars().find(|c| is_odd(*c)) {
        return Some(format!("has the character `{}`", odd.escape_unicode()));
    }
    for part in name.split('/') {
        match part {
            "" => return Some("has an empty part".into()),
            "." | ".." => return Some(format!("has the part `{part}`")),
            _ if part.len() > MAX_PART => {
                return Some(format!("has a part of more than {MAX_PART} bytes"));
            }
            // On other systems these are names like others, and `con` may well be a class.
            _ if cfg!(windows) && is_reserved(part) => {
                return Some(format!("has the part `{part}`, a device of this system"));
            }
            _ => {}
        }
    }
    None
}

/// Whether a text can be the name of one folder.
pub fn is_plain(name: &str) -> bool {
    wrong(name).is_none() && !name.contains('/')
}

/// A name for a message.
pub fn shown(name: &str) -> String {
    format!("`{}`", plain(name, 100))
}

/// A text of somebody else's that can be printed: on one line, not long, and without what a terminal
/// would obey.
pub fn plain(text: &str, max_chars: usize) -> String {
    let short: String = text.chars().take(max_chars).collect();
    let end = if short.len() < text.len() { "…" } else { "" };
    let mut plain = String::new();
    for c in short.chars() {
        match is_odd(c) && c != '\\' && c != ':' {
            true => plain.extend(c.escape_unicode()),
            false => plain.push(c),
        }
    }
    plain + end
}

/// Characters that separate, that cannot be seen, or that turn the direction of a text.
fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\\' | ':'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fffd}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_files_below_a_folder() {
        for name in [
            "run/run.toml",
            "data/path/1/.masks/ä b.png",
            "a=1,b-s2",
            "...",
        ] {
            assert_eq!(wrong(name), None, "{name}");
        }
        for name in [
            "",
            "/a",
            "a//b",
            "a/",
            "../a",
            "a/./b",
            "C:/a",
            "a\\b",
            "a\nb",
            "a\u{202e}b",
        ] {
            assert!(wrong(name).is_some(), "{name:?}");
        }
        assert!(wrong(&"a".repeat(256)).is_some() && wrong(&"a/".repeat(600)).is_some());
        assert!(is_plain("a=1-s1") && !is_plain("a/b") && !is_plain(".."));
    }
}
