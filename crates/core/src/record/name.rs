//! Names from foreign files that become paths: those of a capsule's entries, and those of runs, trials and experiments
//! in a results tree. A valid name is the same file below a folder on every system.

use std::io;
use std::path::Path;

use crate::plan::{Plan, RunPlan};
use crate::spec::is_odd as is_unseen;

use crate::spec::portable::is_reserved;

/// The maximum length in bytes of a name with its folders.
const MAX_NAME: usize = 1024;
/// The maximum length in bytes of a part of a name; file systems accept no more.
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
            // On other systems these names are ordinary, and `con` may well be a class.
            _ if cfg!(windows) && is_reserved(part) => {
                return Some(format!("has the part `{part}`, a device of this system"));
            }
            _ => {}
        }
    }
    None
}

/// Whether a text is a valid folder name.
pub fn is_plain(name: &str) -> bool {
    wrong(name).is_none() && !name.contains('/')
}

/// Refuses a plan whose names lead out of its folder: `plan.json` may come from anyone.
pub fn check_plan(path: &Path, plan: &Plan) -> io::Result<()> {
    check(path, "experiment", &plan.experiment)?;
    plan.runs.iter().try_for_each(|run| check_run(path, run))
}

/// Refuses a run whose names lead out of its folder: `run.toml` may come from anyone.
pub fn check_run(path: &Path, run: &RunPlan) -> io::Result<()> {
    check(path, "experiment", &run.experiment)?;
    check(path, "trial", &run.trial)?;
    check(path, "run", &run.id)?;
    for (what, hash) in [
        ("fingerprint", Some(run.fingerprint.as_str())),
        ("digest of the data", run.data.content_digest()),
    ] {
        // They are parts of names too.
        let hash = hash.unwrap_or_default();
        if !hash.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let what = format!("the {what} {} is not a hash", shown(hash));
            return Err(refused(path, &what));
        }
    }
    Ok(())
}

/// Refuses one name that becomes a folder.
pub fn check(path: &Path, what: &str, name: &str) -> io::Result<()> {
    match wrong(name) {
        None if !name.contains('/') => Ok(()),
        None => Err(refused(
            path,
            &format!(
                "the name of the {what} {} has the character `/`",
                shown(name)
            ),
        )),
        Some(why) => Err(refused(
            path,
            &format!("the name of the {what} {} {why}", shown(name)),
        )),
    }
}

/// The file is not read further. The owner of the folder must know that this is not an accident.
fn refused(path: &Path, what: &str) -> io::Error {
    io::Error::other(format!(
        "`{}` is refused: {what}, and would lead out of the results folder; runner never writes such a name: do not use this folder, and ask where it comes from",
        path.display()
    ))
}

/// A name for a message.
pub fn shown(name: &str) -> String {
    format!("`{}`", plain(name, 100))
}

/// Foreign text for display: on one line, shortened, and without terminal control characters.
pub fn plain(text: &str, max_chars: usize) -> String {
    let short: String = text.chars().take(max_chars).collect();
    let end = if short.len() < text.len() { "…" } else { "" };
    let mut plain = String::new();
    for c in short.chars() {
        if is_odd(c) && c != '\\' && c != ':' {
            plain.extend(c.escape_unicode())
        } else {
            plain.push(c)
        }
    }
    plain + end
}

/// Characters that separate, are invisible, or change the direction of text.
fn is_odd(c: char) -> bool {
    is_unseen(c) || matches!(c, '\\' | ':' | '\u{fffd}')
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
