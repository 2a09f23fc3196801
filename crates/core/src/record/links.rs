//! Symbolic links in a results tree, which may come from anyone: nothing is written through a link that leads out of
//! it.
//!
//! Files that are written at once are renamed into place, which replaces a link. This module covers what would be
//! followed: folders, and files that are appended to or locked. The results folder and the experiment's folder
//! themselves may be links, since the user names them.

use std::fs;
use std::io;
use std::path::Path;

use super::{ExperimentFolder, RunFolder, unwritable};
use crate::spec::plain_file;

/// The entries of a run's folder that are written to by following names.
const OF_RUN: [&str; 13] = [
    ".lock",
    "events.jsonl",
    "run.log",
    "trace",
    "trace/losses.f64",
    "trace/gradient_norms.f64",
    "trace/digests.csv",
    "checkpoints",
    "model",
    "predictions",
    "samples",
    "kernels",
    "lineage",
];

/// Refuses names below a folder that are links out of it.
pub fn refuse_links(root: &Path, names: &[&str]) -> io::Result<()> {
    names
        .iter()
        .try_for_each(|name| refuse_link(root, &root.join(name)))
}

/// Refuses a path that is a link out of a folder; a broken link may lead out.
fn refuse_link(root: &Path, path: &Path) -> io::Result<()> {
    let Ok(target) = fs::read_link(path) else {
        // Opening a pipe without a reader would block.
        return plain_file::refuse_special(path).map_err(|e| unwritable(path, e));
    };
    let leads_inside = match (root.canonicalize(), path.canonicalize()) {
        (Ok(root), Ok(real)) => real.starts_with(root),
        _ => false,
    };
    if leads_inside {
        return Ok(());
    }
    let reason = format!(
        "it is a link to `{}`, which is outside `{}`; replace the link with a file or folder",
        target.display(),
        root.display()
    );
    Err(unwritable(path, io::Error::other(reason)))
}

impl ExperimentFolder {
    /// Refuses to write into folders that are links out of this one.
    pub fn check_links(&self) -> io::Result<()> {
        refuse_links(
            &self.0,
            &[
                ".lock",
                "runs",
                "replaced",
                "kernels",
                "tensorboard",
                "reproduced",
            ],
        )
    }
}

impl RunFolder {
    /// Refuses to write into the folder when it or something in it is a link out of its experiment's folder.
    pub fn check_links(&self) -> io::Result<()> {
        let runs = self.0.parent().filter(|runs| runs.ends_with("runs"));
        if let Some(experiment) = runs.and_then(Path::parent) {
            refuse_link(experiment, runs.unwrap_or(experiment))?;
            refuse_link(experiment, &self.0)?;
        }
        // Nothing is in a folder that does not exist yet, and an experiment may have very many runs.
        let is_missing = |e: io::Error| e.kind() == io::ErrorKind::NotFound;
        if fs::symlink_metadata(&self.0).is_err_and(is_missing) {
            return Ok(());
        }
        refuse_links(&self.0, &OF_RUN)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_out_of_the_tree_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let (tree, away) = (place.path().join("tree"), place.path().join("away"));
        fs::create_dir_all(tree.join("runs/a/model")).unwrap();
        fs::create_dir(&away).unwrap();
        let run = ExperimentFolder(tree.clone()).run("a");
        assert!(run.check_links().is_ok());
        // Links within the experiment's folder are the owner's choice.
        symlink(tree.join("runs/a/model"), tree.join("runs/a/checkpoints")).unwrap();
        assert!(run.check_links().is_ok());
        for (name, target) in [
            ("runs/a/events.jsonl", away.join("bashrc")),
            ("runs/a/trace", away.clone()),
            ("runs/a/run.log", "/dev/full".into()),
        ] {
            symlink(&target, tree.join(name)).unwrap();
            let message = run.check_links().unwrap_err().to_string();
            assert!(
                message.contains("is a link to") && message.contains(name),
                "{message}"
            );
            fs::remove_file(tree.join(name)).unwrap();
        }
        symlink(&away, tree.join("runs/b")).unwrap();
        assert!(
            ExperimentFolder(tree.clone())
                .run("b")
                .check_links()
                .is_err()
        );
        symlink(&away, tree.join("tensorboard")).unwrap();
        assert!(ExperimentFolder(tree).check_links().is_err());
    }
}
