//! Seals: checksums at the end of each file that is written at once and that numbers are read from.
//!
//! A JSON file ends with a key `"seal"`, a TOML file with a comment `# seal: …`: 16 hexadecimal digits of the sha256 of
//! the file without it. It detects damage and edits; it is not a signature, and anyone can compute it. Files of plans
//! before format 3 have none.

use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::damage::damaged;
use crate::hash::hex;

/// The first format whose files are sealed and whose events are chained.
pub const FIRST_SEALED: u32 = 3;

/// Digits of a seal.
const NUM_DIGITS: usize = 16;

/// Why a changed file is not accepted.
pub(super) const EDITED: &str =
    "it was changed after it was written (its seal does not match its content)";

/// Why a file without its seal is not accepted.
const NO_SEAL: &str = "it was changed after it was written (its seal is missing)";

/// Whether a file is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealState {
    /// It is.
    Intact,
    /// It was changed by an edit or by damage.
    Edited,
    /// It has no seal and needs none: it was written before seals existed.
    Unsealed,
}

/// The forms of a seal at the end of a file: what precedes its digits, what follows them, and which of that belongs to
/// the unsealed file.
const ENDINGS: [(&str, &str, &str); 3] = [
    (",\n  \"seal\": \"", "\"\n}\n", "\n}\n"),
    (",\"seal\":\"", "\"}\n", "}\n"),
    ("# seal: ", "\n", ""),
];

/// The JSON text of an object, with a final line break, with its seal. Other values have no place for one and are
/// unchanged.
pub fn json(mut text: String) -> String {
    for (before, behind, rest) in &ENDINGS[..2] {
        if let Some(head) = text.strip_suffix(rest).map(str::len)
            && head > 1
        {
            let seal = seal_of(&text);
            // In place: the plan of an experiment can be very long.
            text.truncate(head);
            text.extend([before, seal.as_str(), behind]);
            return text;
        }
    }
    text
}

/// The text of a TOML file with its seal.
pub(super) fn toml(text: String) -> String {
    let (before, behind, _) = ENDINGS[2];
    let seal = seal_of(&text);
    format!("{text}{before}{seal}{behind}")
}

/// The text without its seal, in two parts, and the seal.
fn split(text: &str) -> Option<([&str; 2], &str)> {
    ENDINGS.iter().find_map(|(before, behind, rest)| {
        let head = text.strip_suffix(behind)?;
        let (head, seal) = head.split_at_checked(head.len().checked_sub(NUM_DIGITS)?)?;
        Some(([head.strip_suffix(before)?, rest], seal))
    })
}

fn seal_of(text: &str) -> String {
    seal_of_parts([text, ""])
}

fn seal_of_parts(parts: [&str; 2]) -> String {
    let mut sum = Sha256::new();
    parts.iter().for_each(|part| sum.update(part));
    hex(&sum.finalize()[..NUM_DIGITS / 2])
}

/// Whether the seal of a text is correct, if it has one.
fn is_intact(text: &str) -> Option<bool> {
    split(text).map(|(parts, seal)| seal_of_parts(parts) == seal)
}

/// The state of a file of a format.
pub fn seal_state(text: &str, format: u64) -> SealState {
    match is_intact(text) {
        Some(true) => SealState::Intact,
        None if format < u64::from(FIRST_SEALED) => SealState::Unsealed,
        _ => SealState::Edited,
    }
}

/// Refuses a text with an incorrect seal, whatever its format claims to be; returns whether it has one. Texts can be
/// long, so this is done once.
pub(super) fn refuse_broken(path: &Path, text: &str) -> io::Result<bool> {
    match is_intact(text) {
        Some(false) => Err(damaged(path, EDITED)),
        sealed => Ok(sealed.is_some()),
    }
}

/// Refuses a text of a format without a seal if that format has one.
pub(super) fn refuse_unsealed(path: &Path, is_sealed: bool, format: u64) -> io::Result<()> {
    if is_sealed || format < u64::from(FIRST_SEALED) {
        return Ok(());
    }
    Err(damaged(path, NO_SEAL))
}

/// Refuses a changed text of a format.
pub fn check_seal(path: &Path, text: &str, format: u64) -> io::Result<()> {
    let is_sealed = refuse_broken(path, text)?;
    refuse_unsealed(path, is_sealed, format)
}

/// The text with a correct seal, if it has one. For tests that change files on purpose.
pub(super) fn renewed(text: &str) -> String {
    match split(text).map(|(parts, _)| parts.concat()) {
        Some(text) if text.ends_with("}\n") => json(text),
        Some(text) => toml(text),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_cut_of_a_sealed_file_is_seen() {
        let texts = [
            json("{\n  \"format\": 3,\n  \"a\": 1.5\n}\n".into()),
            json("{\"format\":3,\"a\":[1,2]}\n".into()),
            toml("format = 3\n\n[a]\nb = 1\n".into()),
        ];
        for text in texts {
            assert_eq!(seal_state(&text, 3), SealState::Intact, "{text}");
            assert_eq!(renewed(&text), text);
            for at in 0..text.len() {
                let cut = &text[..at];
                assert_eq!(seal_state(cut, 3), SealState::Edited, "{cut}");
                for bit in 0..8 {
                    let mut bytes = text.clone().into_bytes();
                    bytes[at] ^= 1 << bit;
                    let Ok(flipped) = String::from_utf8(bytes) else {
                        continue;
                    };
                    assert_eq!(seal_state(&flipped, 3), SealState::Edited, "{flipped}");
                }
            }
        }
    }

    #[test]
    fn only_old_files_need_no_seal() {
        let old = "{\n  \"format\": 2\n}\n";
        assert_eq!(seal_state(old, 2), SealState::Unsealed);
        assert_eq!(seal_state(old, 3), SealState::Edited);
        let path = Path::new("plan.json");
        assert!(check_seal(path, old, 2).is_ok());
        // A seal counts whatever the format says: one flipped bit makes a 2 of a 3.
        let sealed = json("{\n  \"format\": 3\n}\n".into()).replace('3', "2");
        let error = check_seal(path, &sealed, 2).unwrap_err().to_string();
        assert!(error.contains("its seal does not match"), "{error}");
    }
}
