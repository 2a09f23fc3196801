//! Summaries of an experiment's runs, with shared values.
//!
//! Reading plan and events of ten thousand runs takes seconds, and most runs have not changed since the last read. So
//! what was read is cached in a file (`saved.rs`) with the stamps of the source files. It is derived: a run is re-read
//! if a stamp differs, or does not prove that the file is unchanged, and everything is re-read if there is any doubt
//! about the cache itself. The result is the same as without the cache.

mod saved;

use std::io;
use std::time::SystemTime;

use super::entry::{DataUsed, Read, RunEntry, State};
use super::labels;
use super::settings::Settings;
use super::{Begun, Environment, ExperimentFolder, Look, RunFolder, in_parallel, written};
use crate::plan::{Plan, RunPlan};
use crate::stamp::{Stamp, nanos};
use saved::{Saved, Stamps};

/// An experiment's plan and the state of its runs. Lists, reports and comparisons are based on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Index {
    /// The plan, without its runs.
    pub plan: Plan,
    /// The settings that all runs share, by key of the experiment file; each run has the others.
    pub settings: Settings,
    /// The runs in the order of the plan.
    pub runs: Vec<RunEntry>,
    /// The data sets that they use.
    pub data: Vec<DataUsed>,
    /// Their environments, without clocks and digests of data.
    pub environments: Vec<Environment>,
    /// Findings while derived files were rewritten, as text; not cached.
    pub mended: Vec<String>,
    /// The analyses that were looked at; not cached.
    pub looks: Vec<Look>,
}

impl Index {
    /// Reads an experiment's folder, and writes nothing there except its cache. `None` if the folder has no plan.
    pub fn read(folder: &ExperimentFolder) -> io::Result<Option<Self>> {
        Self::open(folder, false, SystemTime::now())
    }

    /// Reads an experiment's folder, and rewrites derived files of its runs that were lost, damaged or never written.
    /// `None` if it has no plan.
    pub fn mend(folder: &ExperimentFolder) -> io::Result<Option<Self>> {
        Self::open(folder, true, SystemTime::now())
    }

    /// The same as [`Index::read`], only from plan and events.
    pub fn read_anew(folder: &ExperimentFolder) -> io::Result<Option<Self>> {
        let time_ns = nanos(SystemTime::now());
        let built = build(folder, false, time_ns)?;
        Ok(built.map(|mut saved| {
            folder.attach_jobs(&mut saved.index.runs);
            saved.index
        }))
    }

    /// The same as [`Index::read_anew`] for a folder in memory, where there are neither clocks nor jobs.
    pub fn in_memory(folder: &ExperimentFolder) -> io::Result<Option<Self>> {
        Ok(build(folder, false, 0)?.map(|saved| saved.index))
    }

    /// Like [`Index::read`] and [`Index::mend`] at a given time: files that changed shortly before it are not
    /// considered unchanged. For tests, which cannot wait.
    #[doc(hidden)]
    pub fn open(
        folder: &ExperimentFolder,
        mend: bool,
        time: SystemTime,
    ) -> io::Result<Option<Self>> {
        let time_ns = nanos(time);
        let plan = Stamp::of(&folder.plan_json());
        let known = match (Saved::read(folder), plan) {
            (Some(known), Ok(Some(plan))) if known.is_of(&plan) => {
                known.refresh(folder, mend, time_ns)?
            }
            _ => None,
        };
        let (mut saved, is_new) = match known {
            Some(refreshed) => refreshed,
            None => match build(folder, mend, time_ns)? {
                Some(built) => (built, true),
                None => return Ok(None),
            },
        };
        if is_new && let Err(e) = saved.write(folder) {
            // A read-only folder works as well, only more slowly.
            tracing::info!("{} is not saved: {e}", folder.index_jsonl().display());
        }
        saved.index.looks = folder.read_looks()?;
        labels::attach(&folder.read_labels()?, saved.index.runs.iter_mut());
        folder.attach_jobs(&mut saved.index.runs);
        Ok(Some(saved.index))
    }
}

/// Reads everything. `None` if the folder has no plan.
fn build(folder: &ExperimentFolder, mend: bool, time_ns: i64) -> io::Result<Option<Saved>> {
    let stamp = Stamp::of(&folder.plan_json()).ok().flatten();
    let Some(mut plan) = folder.read_plan()? else {
        return Ok(None);
    };
    let runs = std::mem::take(&mut plan.runs);
    let begun = folder.begun();
    let rows = in_parallel(&runs, |run| Row::read(run, folder, &begun, mend));
    let (settings, own) = written::settings(&runs);
    let (mut data, mut environments) = (Numbers::default(), Numbers::default());
    let mut entries = Vec::with_capacity(rows.len());
    let mut stamps = Vec::with_capacity(rows.len());
    let mut mended = Vec::new();
    for (row, own) in rows.into_iter().zip(own) {
        mended.extend(row.read.mended);
        let mut entry = row.read.entry;
        entry.settings = own;
        entry.data = data.number(row.read.data);
        entry.environment = row.read.environment.map(|it| environments.number(it));
        entries.push(entry);
        stamps.push(row.stamps);
    }
    let index = Index {
        plan,
        settings,
        runs: entries,
        data: data.all,
        environments: environments.all,
        mended,
        looks: folder.read_looks()?,
    };
    Ok(Some(Saved {
        time_ns,
        plan: stamp,
        index,
        stamps,
    }))
}

impl Saved {
    /// The same, re-reading those runs that may have changed, with whether it should be saved. `None` if it does not
    /// belong to the plan after all.
    fn refresh(
        mut self,
        folder: &ExperimentFolder,
        mend: bool,
        time_ns: i64,
    ) -> io::Result<Option<(Self, bool)>> {
        let known: Vec<_> = self.index.runs.iter().zip(&self.stamps).collect();
        let begun = folder.begun();
        let are_same = in_parallel(&known, |(entry, stamps)| {
            if !begun.may_have(&entry.id) {
                return **stamps == Some(Stamps::none(mend));
            }
            let there = folder.run(&entry.id);
            stamps.is_some_and(|stamps| stamps.hold(&there, mend, self.time_ns))
                && entry.state != State::Running
                && !(entry.state == State::Incomplete && may_be_alive(&there))
        });
        if are_same.iter().all(|is_same| *is_same) {
            return Ok(Some((self, false)));
        }
        let Some(plan) = folder.read_plan()? else {
            return Ok(None);
        };
        let ids = plan.runs.iter().map(|run| &run.id);
        if !ids.eq(self.index.runs.iter().map(|entry| &entry.id)) {
            return Ok(None);
        }
        let others = plan.runs.iter().zip(&are_same);
        let others: Vec<&RunPlan> = others.filter(|(_, same)| !**same).map(|(r, _)| r).collect();
        let mut rows = in_parallel(&others, |run| Row::read(run, folder, &begun, mend)).into_iter();
        let (mut data, mut environments) = (Numbers::default(), Numbers::default());
        let mut is_worth = false;
        let entries = self.index.runs.iter_mut().zip(&mut self.stamps);
        for ((entry, stamps), is_same) in entries.zip(are_same) {
            if is_same {
                entry.data = data.renumber(entry.data, &self.index.data);
                entry.environment = entry
                    .environment
                    .map(|it| environments.renumber(it, &self.index.environments));
            } else {
                let Some(row) = rows.next() else { continue };
                self.index.mended.extend(row.read.mended);
                let settings = std::mem::take(&mut entry.settings);
                *entry = row.read.entry;
                entry.settings = settings;
                entry.data = data.number(row.read.data);
                entry.environment = row.read.environment.map(|it| environments.number(it));
                is_worth |= row.stamps.is_some_and(|it| it.are_settled_at(time_ns));
                *stamps = row.stamps;
            }
        }
        self.index.data = data.all;
        self.index.environments = environments.all;
        self.time_ns = time_ns;
        Ok(Some((self, is_worth)))
    }
}

/// Whether a worker has the run, or whether that is unknown.
fn may_be_alive(folder: &RunFolder) -> bool {
    !matches!(folder.lock_to_read(), Ok(Some(_)))
}

/// The content of a run's folder, with the stamps of the files from before the read.
struct Row {
    read: Read,
    /// None if it must always be re-read.
    stamps: Option<Stamps>,
}

impl Row {
    fn read(run: &RunPlan, folder: &ExperimentFolder, begun: &Begun, mend: bool) -> Self {
        if !begun.may_have(&run.id) {
            return Self {
                read: Read::planned(run),
                stamps: Some(Stamps::none(mend)),
            };
        }
        let folder = &folder.run(&run.id);
        let stamps = Stamps::of(folder, mend);
        let read = Read::of(run, folder, mend);
        let stamps = stamps.ok().filter(|_| read.is_sure);
        Self { read, stamps }
    }
}

/// Values that many runs share, numbered in order of first occurrence.
struct Numbers<T> {
    all: Vec<T>,
    /// By previous number.
    known: Vec<Option<usize>>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            known: Vec::new(),
        }
    }
}

impl<T: PartialEq + Clone> Numbers<T> {
    fn number(&mut self, value: T) -> usize {
        let known = self.all.iter().position(|known| *known == value);
        known.unwrap_or_else(|| {
            self.all.push(value);
            self.all.len() - 1
        })
    }

    fn renumber(&mut self, at: usize, before: &[T]) -> usize {
        self.known.resize(before.len(), None);
        if let Some(number) = self.known[at] {
            return number;
        }
        let number = self.number(before[at].clone());
        self.known[at] = Some(number);
        number
    }
}
