//! What a killed process began under a temporary name is removed by the next command, and what is being written is not.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use burn_runner::record::temporary_prefix;

use super::edit::Edit;
use super::support::{IRIS, completed, folder_with, goes_on, run};

/// The number of a process that has ended.
fn ended() -> u32 {
    let mut child = Command::new("true").stdout(Stdio::null()).spawn().unwrap();
    child.wait().unwrap();
    child.id()
}

/// Files as a process of this number would begin them.
fn begun(process: u32, folders: &[PathBuf]) -> Vec<PathBuf> {
    let name = temporary_prefix();
    let name = name.edit(
        &format!("-{}-", std::process::id()),
        &format!("-{process}-"),
    );
    let paths = folders.iter().map(|folder| {
        fs::create_dir_all(folder).unwrap();
        let path = folder.join(format!("{name}aB3dE6"));
        fs::write(&path, "half of a file").unwrap();
        path
    });
    paths.collect()
}

fn all_exist(paths: &[PathBuf]) -> bool {
    paths.iter().all(|path| path.exists())
}

fn any_exists(paths: &[PathBuf]) -> bool {
    paths.iter().any(|path| path.exists())
}

fn folders(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
    let experiment = folder.join("results/spec");
    names.iter().map(|name| experiment.join(name)).collect()
}

#[test]
fn what_killed_processes_began_is_removed() {
    let folder = completed(IRIS, &[]);
    let own = folders(folder.path(), &["", "launch"]);
    let of_runs = folders(folder.path(), &["runs/base-s1", "runs/base-s1/model"]);
    let by_nobody = begun(ended(), &own);
    let by_this = begun(std::process::id(), &[own.clone(), of_runs.clone()].concat());
    goes_on(folder.path());
    assert!(!any_exists(&by_nobody) && all_exist(&by_this));
    // A run that is completed is not written any more, except by the command that cleans.
    let by_nobody = begun(ended(), &of_runs);
    let clean = |arguments: &[&str]| {
        let all = [&["clean", "--keep", "1"], arguments].concat();
        let (code, _, said) = run(folder.path(), &all);
        assert_eq!(code, 0, "{said}");
        said
    };
    let said = clean(&[]);
    let wanted = "would remove 2 unfinished files of processes that were killed";
    assert!(said.contains(wanted), "{said}");
    assert!(all_exist(&by_nobody));
    assert!(clean(&["--yes"]).contains("removed 2 unfinished files"));
    assert!(!any_exists(&by_nobody) && all_exist(&by_this));
    assert!(clean(&["--yes"]).contains("nothing to remove"));
}

#[test]
fn a_run_that_goes_on_begins_without_unfinished_files() {
    let folder = folder_with(IRIS);
    let fault = [
        "run",
        "spec.toml",
        "--quiet",
        "--inject-fault",
        "*@training:20=kill",
    ];
    assert_eq!(run(folder.path(), &fault).0, 1);
    let names = [
        "runs/base-s1",
        "runs/base-s1/checkpoints",
        "runs/base-s1/trace",
    ];
    let places = folders(folder.path(), &names);
    // Whatever the process: this run has one writer, and that is the new one.
    let left = [begun(ended(), &places), begun(std::process::id(), &places)].concat();
    goes_on(folder.path());
    assert!(!any_exists(&left));
}
