//! Runs of earlier settings that an experiment's folder still has: those that others replaced, those that the plan no
//! longer has, and those whose folder the plan means for other work.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::entry::Read;
use super::settings::{Changed, changed, is_guard};
use super::{ExperimentFolder, Index, RunEntry, RunFolder, State, format, labels, written};
use crate::plan::{Plan, RunPlan};

/// A run of earlier settings.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// Its folder.
    pub folder: RunFolder,
    /// What is known of it, with all its settings, its generation and what changed since.
    pub entry: RunEntry,
}

/// A run's generation, and what its settings were instead of the planned ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generation {
    /// From 1 for the oldest.
    pub number: usize,
    /// The settings that differ from the plan, as text; empty for the runs of the plan.
    pub changed: String,
}

impl ExperimentFolder {
    /// The folders of runs that are not those of the plan, by name; damaged ones too.
    pub fn earlier_folders(&self, plan: &[RunPlan]) -> Vec<RunFolder> {
        let planned: BTreeMap<&str, &RunPlan> =
            plan.iter().map(|run| (run.id.as_str(), run)).collect();
        let is_other = |folder: &RunFolder, id: &str| match planned.get(id) {
            None => true,
            Some(run) => folder.run_toml().exists() && !folder.holds(run).unwrap_or(true),
        };
        let runs = self.run_ids().into_iter();
        let runs = runs.map(|id| (self.run(&id), id));
        let others = runs.filter(|(folder, id)| is_other(folder, id));
        let others = others.map(|(folder, _)| folder);
        self.replaced().into_iter().chain(others).collect()
    }

    /// The folders of runs that were replaced, by name.
    fn replaced(&self) -> Vec<RunFolder> {
        let entries = fs::read_dir(self.0.join("replaced")).into_iter().flatten();
        let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        all.retain(|path| RunFolder(path.clone()).run_toml().exists());
        all.sort();
        all.into_iter().map(RunFolder).collect()
    }

    /// The runs of earlier settings, by generation and name. Those with the same changes are of one generation; that
    /// whose last event is oldest is the first. Folders that cannot be read are left out.
    pub fn earlier(&self, plan: &Plan) -> Vec<Earlier> {
        let read = |folder: RunFolder| {
            let run = folder.read_plan().ok().flatten()?;
            let mut entry = Read::of(&run, &folder, false).entry;
            entry.settings = written::of(&run);
            // The index has no data of runs that are not the plan's.
            entry.data = usize::MAX;
            entry.generation.changed = since(&run, plan);
            Some(Earlier { folder, entry })
        };
        let folders = self.earlier_folders(&plan.runs).into_iter();
        let mut all: Vec<Earlier> = folders.filter_map(read).collect();
        let mut newest: BTreeMap<String, u64> = BTreeMap::new();
        for earlier in &all {
            let last = newest
                .entry(earlier.entry.generation.changed.clone())
                .or_default();
            *last = (*last).max(earlier.entry.last_event_ms.unwrap_or(0));
        }
        let mut order: Vec<(u64, String)> = newest.into_iter().map(|(key, at)| (at, key)).collect();
        order.sort();
        for earlier in &mut all {
            let changed = &earlier.entry.generation.changed;
            let at = order.iter().position(|(_, key)| key == changed);
            earlier.entry.generation.number = at.unwrap_or(0) + 1;
        }
        all.sort_by(|a, b| {
            let key = |it: &Earlier| (it.entry.generation.number, it.entry.id.clone());
            key(a).cmp(&key(b))
        });
        all
    }

    /// The index of an experiment with its runs of earlier settings, which come first.
    pub fn with_earlier(&self, mut index: Index) -> io::Result<Index> {
        let Some(plan) = self.read_plan()? else {
            return Ok(index);
        };
        let earlier = self.earlier(&plan).into_iter();
        let mut earlier: Vec<RunEntry> = earlier.map(|run| run.entry).collect();
        let newest = earlier.iter().map(|run| run.generation.number).max();
        for run in &mut index.runs {
            run.generation.number = newest.unwrap_or(0) + 1;
        }
        labels::attach(&self.read_labels()?, earlier.iter_mut());
        earlier.append(&mut index.runs);
        index.runs = earlier;
        Ok(index)
    }

    /// How many runs of earlier settings there are.
    pub fn num_earlier(&self, index: &Index) -> usize {
        let planned: BTreeSet<&str> = index.runs.iter().map(|run| run.id.as_str()).collect();
        let ids = self.run_ids().into_iter();
        let gone = ids.filter(|id| !planned.contains(id.as_str())).count();
        // Only a run that has not started can have other work in its folder.
        let begun = self.begun();
        let is_new = |run: &&RunEntry| run.state == State::NotStarted && begun.may_have(&run.id);
        let new = index.runs.iter().filter(is_new);
        // Parsing ten thousand plans takes seconds.
        let line = |run: &RunEntry| format!("fingerprint = \"{}\"", run.fingerprint);
        let other = new.filter(|run| {
            let there = format::read(&self.run(&run.id).run_toml()).ok().flatten();
            there.is_some_and(|there| !there.contains(&line(run)))
        });
        self.replaced().len() + gone + other.count()
    }

    /// The folder of the experiment that a run's folder belongs to, if it is in one.
    pub fn of_run(run: &Path) -> Option<Self> {
        // It may not have begun.
        let run = run
            .canonicalize()
            .or_else(|_| std::path::absolute(run))
            .ok()?;
        let parent = run.parent()?;
        let name = parent.file_name()?;
        let folder = Self(parent.parent()?.to_owned());
        let is_its = ["runs", "replaced"].iter().any(|known| name == *known);
        (is_its && folder.plan_json().exists()).then_some(folder)
    }
}

/// What a run's settings were instead of those of the plan.
fn since(run: &RunPlan, plan: &Plan) -> String {
    let same = plan.runs.iter().find(|planned| planned.id == run.id);
    let trial = || plan.runs.iter().find(|planned| planned.trial == run.trial);
    let Some(now) = same.or_else(trial) else {
        let near = plan.runs.first();
        let others = near.map_or_else(String::new, |near| {
            differences(run, near, |key| !run.axes.contains_key(key))
        });
        let gone = "its trial is not in the plan".to_owned();
        return if others.is_empty() {
            gone
        } else {
            format!("{gone}; {others}")
        };
    };
    let differences = differences(run, now, |_| true);
    match (same.is_some(), differences.is_empty()) {
        (false, true) => "its seed is not in the plan".into(),
        (true, true) => "its data, its model or its format".into(),
        _ => differences,
    }
}

/// The keys that differ, with the earlier value.
fn differences(run: &RunPlan, now: &RunPlan, is_told: impl Fn(&str) -> bool) -> String {
    let keys = changed(run, now);
    // It follows the size of a batch unless it is set.
    let follows = keys.iter().any(|it| it.key == "train.batch_size");
    let keys = keys
        .into_iter()
        .filter(|it| !(follows && it.key == "train.micro_batch_size"));
    let keys = keys.filter(|it| it.key != "seed" && !is_guard(&it.key) && is_told(&it.key));
    let keys: Vec<Changed> = keys.collect();
    // Another type has other keys, which say nothing more.
    let is_of_type = |it: &Changed| {
        let table = it.key.rsplit_once('.').map_or("", |(table, _)| table);
        let of_table = format!("{table}.type");
        it.then.is_none() && it.key != of_table && keys.iter().any(|other| other.key == of_table)
    };
    let told = keys.iter().filter(|it| !is_of_type(it)).cloned();
    let told = told.map(|Changed { key, then, .. }| match then {
        Some(value) => format!("{key}={value}"),
        None => format!("no {key}"),
    });
    let network = run.network.change(&now.network).into_iter();
    let told: Vec<String> = told.chain(network).collect();
    told.join(", ")
}
