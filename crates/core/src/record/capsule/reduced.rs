//! What a capsule omits about its author: paths of this machine and its name.
//!
//! Packed data is where the capsule has it, so its roots and the cache become paths in the capsule. Data that is not
//! packed stays where it was, below `~` if that is the home folder: the recipient finds it in their own home folder.
//! Remaining references to this machine are reported to the user.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::super::{Environment, RunFolder, run_folder::run_toml, write::json_text};
use super::manifest::{DataRoot, FileSum};
use super::write::Source;
use crate::plan::RunPlan;
use crate::plan::constant::ConstantPlan;
use crate::plan::init::{AdapterInit, InitPlan};
use crate::plan::teacher::TeacherPlan;
use crate::spec::plain_file;

/// The home folder of any user in a path.
const HOME: &str = "~";

/// The maximum size in bytes of a file that is searched for names of this machine.
const MAX_LOOKED_AT: u64 = 64 << 20;

/// The text of `run.toml` without paths of this machine; `None` if there are none.
pub(super) fn run(plan: &RunPlan, roots: &[DataRoot]) -> std::io::Result<Option<String>> {
    let has_weights = plan.init.is_some() || plan.teacher.is_some() || !plan.constants.is_empty();
    if plan.data.roots().is_empty() && !has_weights {
        return Ok(None);
    }
    // The initial weights are among the run's files; their origin is identified by their digest.
    let init = plan.init.clone().map(reduced);
    let constants = plan.constants.iter().map(|constant| ConstantPlan {
        path: file_name(&constant.path),
        ..constant.clone()
    });
    // So are those of the teacher.
    let teacher = plan.teacher.clone().map(|teacher| TeacherPlan {
        weights: reduced(teacher.weights),
        ..teacher
    });
    let place = |key: &str, number: usize| {
        let root = roots.iter().find(|r| r.key == key && r.number == number)?;
        Some(PathBuf::from(match &root.packed {
            Some(packed) => packed.clone(),
            None => below_home(&root.original),
        }))
    };
    let plan = RunPlan {
        data: plan.data.clone().relocated(&place, Path::new("cache")),
        init,
        constants: constants.collect(),
        teacher,
        ..plan.clone()
    };
    run_toml(&plan).map(Some)
}

/// The source of weights without its folder.
fn reduced(init: InitPlan) -> InitPlan {
    InitPlan {
        path: file_name(&init.path),
        adapter: init.adapter.map(|adapter| AdapterInit {
            path: file_name(&adapter.path),
            ..adapter
        }),
        ..init
    }
}

fn file_name(path: &Path) -> PathBuf {
    path.file_name().map_or_else(PathBuf::new, PathBuf::from)
}

/// The text of `environment.json` without the name of the machine; `None` if it is missing or unreadable.
pub(super) fn environment(folder: &RunFolder) -> std::io::Result<Option<String>> {
    let Ok(Some(there)) = folder.read_environment() else {
        return Ok(None);
    };
    let reduced = Environment {
        host: String::new(),
        data_notice: there.data_notice.as_deref().map(without_home),
        ..there
    };
    json_text(&reduced).map(Some)
}

/// The place of data, as far as others need to know it: only its name if it is packed.
pub(super) fn original(root: &DataRoot) -> String {
    let name = Path::new(&root.original).file_name();
    match (&root.packed, name) {
        (Some(_), Some(name)) => name.to_string_lossy().into_owned(),
        (Some(_), None) => String::new(),
        (None, _) => below_home(&root.original),
    }
}

/// A path with `~` for the home folder of this user.
pub(super) fn expanded(path: &str) -> Option<PathBuf> {
    let rest = path.strip_prefix(HOME)?.strip_prefix('/')?;
    Some(dirs::home_dir()?.join(rest))
}

fn below_home(path: &str) -> String {
    let inner = dirs::home_dir().and_then(|home| {
        let inner = Path::new(path).strip_prefix(home).ok()?;
        Some(inner.to_string_lossy().replace('\\', "/"))
    });
    inner.map_or_else(|| path.to_owned(), |inner| format!("{HOME}/{inner}"))
}

fn without_home(text: &str) -> String {
    match dirs::home_dir() {
        Some(home) if home.parent().is_some() => text.replace(&*home.to_string_lossy(), HOME),
        _ => text.to_owned(),
    }
}

/// Remaining references to this machine in the run's files, such as in the message of a failure: sentences for the
/// user. Data is packed unchanged, and not searched.
pub(super) fn still_named(sources: &BTreeMap<String, (Source, FileSum)>) -> Vec<String> {
    let host = sysinfo::System::host_name().unwrap_or_default();
    let home = dirs::home_dir().filter(|home| home.parent().is_some());
    let home = home.map(|home| home.to_string_lossy().into_owned());
    let mut named = Vec::new();
    for (path, (source, sum)) in sources {
        let is_text = ["json", "jsonl", "toml", "csv"]
            .iter()
            .any(|end| path.ends_with(end));
        if !path.starts_with("run/") || !is_text || sum.bytes > MAX_LOOKED_AT {
            continue;
        }
        let bytes = match source {
            Source::Bytes(bytes) => bytes.clone(),
            Source::File(path) => plain_file::read_whole(path).unwrap_or_default(),
        };
        let text = String::from_utf8_lossy(&bytes);
        if has_word(&text, &host) {
            named.push(format!(
                "`{path}` contains the name of this machine, `{host}`"
            ));
        }
        if home.as_ref().is_some_and(|home| text.contains(home)) {
            named.push(format!("`{path}` contains your home folder"));
        }
    }
    named
}

/// Whether a name occurs as a separate word: short names are parts of many words.
fn has_word(text: &str, word: &str) -> bool {
    let is_end = |c: Option<char>| !c.is_some_and(|c| c.is_alphanumeric() || "-_".contains(c));
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            is_end(text[..at].chars().next_back()) && is_end(text[at + word.len()..].chars().next())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_home_folder_are_anybodys() {
        let Some(home) = dirs::home_dir() else { return };
        let path = home.join("data/x.csv");
        let shown = below_home(&path.to_string_lossy());
        assert_eq!(shown, "~/data/x.csv");
        assert_eq!(expanded(&shown), Some(path));
        assert_eq!(below_home("/elsewhere/x.csv"), "/elsewhere/x.csv");
        assert_eq!(expanded("/elsewhere/x.csv"), None);
        assert_eq!(expanded("~other/x.csv"), None);
    }

    #[test]
    fn names_are_found_as_words() {
        assert!(has_word("on vm: it broke", "vm") && has_word("\"vm\"", "vm"));
        assert!(!has_word("an svm, vms and vm-2", "vm") && !has_word("a", ""));
    }
}
