//! The folder of an experiment.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Lock, Locked, RunFolder, format, lock, name};
use crate::plan::{Plan, quoted};

/// The folder of one experiment.
#[derive(Clone, Debug, Default)]
pub struct ExperimentFolder(pub PathBuf);

impl ExperimentFolder {
    /// The experiments of a path, sorted: the folder of one, or those in a results folder.
    pub fn all(path: &Path) -> Vec<Self> {
        let one = Self(path.to_owned());
        if one.plan_json().exists() {
            return vec![one];
        }
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        let mut all: Vec<_> = entries.map(|entry| Self(entry.path())).collect();
        all.retain(|experiment| experiment.plan_json().exists());
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    /// The copy of the input.
    pub fn experiment_toml(&self) -> PathBuf {
        self.0.join("experiment.toml")
    }

    /// The input with the files that it extends, its edits and its environment variables.
    pub fn resolved_toml(&self) -> PathBuf {
        self.0.join("resolved.toml")
    }

    /// Every run, resolved.
    pub fn plan_json(&self) -> PathBuf {
        self.0.join("plan.json")
    }

    /// The state of plan and runs, cached for later reads.
    pub fn index_jsonl(&self) -> PathBuf {
        self.0.join(".index.jsonl")
    }

    /// The analyses that were looked at.
    pub fn looks_json(&self) -> PathBuf {
        self.0.join("looks.json")
    }

    /// The tags and notes of runs.
    pub fn labels_json(&self) -> PathBuf {
        self.0.join("labels.json")
    }

    /// The kernels that CubeCL selected by timing, for all runs.
    pub fn kernels(&self) -> PathBuf {
        self.0.join("kernels")
    }

    /// A report, by file extension.
    pub fn report(&self, extension: &str) -> PathBuf {
        self.0.join(format!("report.{extension}"))
    }

    /// TensorBoard's event files, one folder per run.
    pub fn tensorboard(&self) -> PathBuf {
        self.0.join("tensorboard")
    }

    /// The folders of all runs that have begun.
    pub(super) fn runs(&self) -> PathBuf {
        self.0.join("runs")
    }

    /// The folder of a run.
    pub fn run(&self, id: &str) -> RunFolder {
        RunFolder(self.runs().join(id))
    }

    /// Moves the content of a run's folder aside, since another run of that name will be created, and returns the new
    /// place.
    pub fn replace(&self, id: &str) -> io::Result<PathBuf> {
        self.check_links()?;
        let there = self.run(id);
        let plan = there.read_plan().ok().flatten();
        let fingerprint = plan.map_or("unknown".into(), |plan| plan.fingerprint);
        let aside = self.0.join("replaced");
        fs::create_dir_all(&aside)?;
        let name = format!("{id}@{}", &fingerprint[..8.min(fingerprint.len())]);
        let mut place = aside.join(&name);
        for number in 2.. {
            if !place.exists() {
                break;
            }
            place = aside.join(format!("{name}.{number}"));
        }
        fs::rename(&there.0, &place)?;
        Ok(place)
    }

    /// The ids of the runs with a folder, sorted.
    pub fn run_ids(&self) -> Vec<String> {
        let entries = fs::read_dir(self.runs()).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| match entry.file_type() {
            Ok(kind) if !kind.is_symlink() => kind.is_dir(),
            _ => entry.path().is_dir(),
        });
        let mut ids: Vec<_> = folders
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect();
        ids.sort();
        ids
    }

    /// Reads the plan, if the folder has one.
    pub fn read_plan(&self) -> io::Result<Option<Plan>> {
        let path = self.plan_json();
        let plan = format::read_json(&path)?;
        if let Some(plan) = &plan {
            name::check_plan(&path, plan)?;
        }
        Ok(plan)
    }

    /// The command that continues the experiment of a plan in this folder.
    pub fn command(&self, plan: &Plan) -> String {
        let command = plan.command();
        let results = self.0.parent().map(|path| path.to_string_lossy());
        match results.as_deref() {
            None | Some("results") => command,
            Some("") => command + " --results .",
            Some(path) => format!("{command} --results {}", quoted(path)),
        }
    }

    /// Takes the folder's lock, if it is free.
    pub fn lock(&self) -> io::Result<Locked> {
        Lock::take(&self.0)
    }

    /// Whether a `runner run` writes to the folder.
    pub fn is_in_use(&self) -> bool {
        lock::is_held(&self.0)
    }

    /// Takes the folder's lock as soon as it is free.
    pub fn wait_for_lock(&self) -> io::Result<Lock> {
        Lock::wait_for(&self.0)
    }
}
