//! Git information about a checkout, queried so that the checkout itself runs nothing.
//!
//! A repository's configuration can name programs that `git status` runs: `core.fsmonitor`, content filters, hooks,
//! transports for missing objects. A cloned or unpacked folder is not trusted with that. Whatever can be turned off is
//! turned off for the call; if the repository itself configures filters, whose names are arbitrary, it is not checked
//! for changes at all. The user's configuration for all repositories stays in effect. Limits: git still parses the
//! index, changes inside submodules are not detected, and for a repository with its own filters it is unknown whether
//! it has changes.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::answer;

/// Time limit for git: a checkout on a slow disk is no reason to wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// Settings that override those of the checkout.
const SETTINGS: [&str; 8] = [
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.hooksPath=/dev/null",
    "core.sshCommand=false",
    "core.pager=cat",
    "diff.external=",
    "credential.helper=",
    "protocol.allow=never",
];

/// The commit of a checkout and whether it has changes, each if known.
pub fn state(folder: &Path) -> (Option<String>, Option<bool>) {
    let commit = ask(folder, &["rev-parse", "--verify", "HEAD"]).filter(|commit| is_commit(commit));
    if commit.is_none() || has_filters(folder) {
        return (commit, None);
    }
    let changes = ask(
        folder,
        &[
            "status",
            "--porcelain",
            "--ignore-submodules=dirty",
            "--no-renames",
        ],
    );
    (commit, changes.map(|changes| !changes.is_empty()))
}

/// How many commits one commit has that the other does not, in the repository around a folder.
pub fn commits_between(folder: &Path, from: &str, to: &str) -> Option<usize> {
    // Records may come from anyone: a text that is not a commit could be an option.
    if !is_commit(from) || !is_commit(to) {
        return None;
    }
    let range = format!("{from}..{to}");
    ask(folder, &["rev-list", "--count", &range, "--"])?
        .parse()
        .ok()
}

/// Whether a text is the full name of a commit.
fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether the checkout itself, rather than the user, configures programs that `git status` would run on its files;
/// assumed if git is too old to tell.
fn has_filters(folder: &Path) -> bool {
    let Some(listed) = ask(
        folder,
        &["config", "--show-scope", "--name-only", "--null", "--list"],
    ) else {
        return true;
    };
    // Scope and key alternate.
    let words: Vec<&str> = listed.split('\0').collect();
    words.chunks_exact(2).any(|pair| {
        let key = pair[1].to_ascii_lowercase();
        matches!(pair[0], "local" | "worktree") && key.starts_with("filter.")
    })
}

/// The output of a git command; `None` if it fails or does not end in time.
fn ask(folder: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    command.arg("--no-pager").arg("-C").arg(folder);
    for setting in SETTINGS {
        command.args(["-c", setting]);
    }
    command
        .args(arguments)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env_remove("GIT_EXTERNAL_DIFF");
    let (status, text) = answer(command, PATIENCE).ok()??;
    status.success().then(|| text.trim().to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn git(folder: &Path, arguments: &[&str]) {
        let mut command = Command::new("git");
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
        command.arg("-C").arg(folder).args(identity).args(arguments);
        assert!(command.output().unwrap().status.success(), "{arguments:?}");
    }

    /// A repository with a commit, and a program that creates a file next to it when it runs.
    fn repository(place: &Path) -> (std::path::PathBuf, std::path::PathBuf) {
        let (folder, trap) = (place.join("checkout"), place.join("trap"));
        fs::create_dir(&folder).unwrap();
        let script = format!("#!/bin/sh\ntouch '{}'\ncat\n", place.join("ran").display());
        fs::write(&trap, script).unwrap();
        fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
        git(&folder, &["init", "-q"]);
        fs::write(folder.join("a.toml"), "a").unwrap();
        git(&folder, &["add", "a.toml"]);
        git(&folder, &["commit", "-q", "-m", "a"]);
        (folder, trap)
    }

    #[test]
    fn nothing_that_a_checkout_configures_is_run() {
        let place = tempfile::tempdir().unwrap();
        let (folder, trap) = repository(place.path());
        let trap = trap.to_str().unwrap();
        let (commit, is_changed) = state(&folder);
        assert!(commit.is_some_and(|commit| is_commit(&commit)));
        assert_eq!(is_changed, Some(false));
        for key in [
            "core.fsmonitor",
            "core.pager",
            "diff.external",
            "core.sshCommand",
        ] {
            git(&folder, &["config", key, trap]);
        }
        let hook = folder.join(".git/hooks/post-index-change");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::copy(trap, hook).unwrap();
        fs::write(folder.join("a.toml"), "b").unwrap();
        assert_eq!(state(&folder).1, Some(true));
        assert!(!place.path().join("ran").exists());
        // A filter has an arbitrary name, and git runs it to compare contents.
        git(&folder, &["config", "core.fsmonitor", "false"]);
        git(&folder, &["config", "filter.evil=x.clean", trap]);
        fs::write(folder.join(".git/info/attributes"), "* filter=evil=x\n").unwrap();
        let (commit, is_changed) = state(&folder);
        assert!(commit.is_some());
        assert_eq!(is_changed, None);
        assert!(!place.path().join("ran").exists());
    }

    #[test]
    fn records_give_git_no_options() {
        let place = tempfile::tempdir().unwrap();
        let (folder, _) = repository(place.path());
        let commit = state(&folder).0.unwrap();
        assert_eq!(commits_between(&folder, &commit, &commit), Some(0));
        for wrong in ["--all", "HEAD", "", "--output=x", &commit[..39]] {
            assert_eq!(commits_between(&folder, wrong, &commit), None, "{wrong}");
            assert_eq!(commits_between(&folder, &commit, wrong), None, "{wrong}");
        }
    }
}
