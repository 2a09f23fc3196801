//! `.index.jsonl`: a cached index, and the proof that it is up to date.
//!
//! The first line has the version of this file, that of the program and the sha256 of the rest; the second has shared
//! values; then one line per run. It is written atomically, so that one of two concurrent writers wins, and outdated
//! content is detected by its stamps.

use std::io::{self, Write};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::super::name;
use super::super::settings::Settings;
use super::super::{
    DataUsed, Environment, ExperimentFolder, RunEntry, RunFolder, TRACE_FILES, write_whole,
};
use super::Index;
use crate::plan::Plan;
use crate::spec::plain_file;
use crate::stamp::Stamp;

/// The version of this file. It must change whenever its content or the way it is derived changes.
const FORMAT: u32 = 5;

/// An index with the stamps of its source files.
pub(super) struct Saved {
    /// When the read began, in nanoseconds since 1970.
    pub time_ns: i64,
    /// That of `plan.json`.
    pub plan: Option<Stamp>,
    /// The index.
    pub index: Index,
    /// Those of each run; none for one that must always be re-read.
    pub stamps: Vec<Option<Stamps>>,
}

/// The stamps of a run's files, none for missing ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamps {
    /// `run.toml`, `events.jsonl`, `environment.json` and the two files of the trace.
    read: [Option<Stamp>; 5],
    /// `summary.json` and `metrics.csv`, which are only read to repair them; none if they were not.
    derived: Option<[Option<Stamp>; 2]>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    runner: String,
    sha256: String,
}

#[derive(Serialize, Deserialize)]
struct Shared<P, S, D, E> {
    time_ns: i64,
    num_runs: usize,
    stamp: Option<Stamp>,
    plan: P,
    settings: S,
    data: D,
    environments: E,
}

#[derive(Serialize, Deserialize)]
struct Line<E> {
    stamps: Option<Stamps>,
    run: E,
}

impl Saved {
    /// Reads the cache; `None` if there is none, or if it is invalid.
    pub fn read(folder: &ExperimentFolder) -> Option<Self> {
        let text = plain_file::read_whole(&folder.index_jsonl()).ok()?;
        let (head, body) = split_line(&text)?;
        let head: Head = serde_json::from_slice(head).ok()?;
        let is_ours = head.format == FORMAT && head.runner == env!("CARGO_PKG_VERSION");
        if !is_ours || head.sha256 != sum(body) {
            return None;
        }
        let (shared, lines) = split_line(body)?;
        let shared: Shared<Plan, Settings, Vec<DataUsed>, Vec<Environment>> =
            serde_json::from_slice(shared).ok()?;
        let lines: Vec<&[u8]> = lines.split(|b| *b == b'\n').collect();
        let lines = lines.par_iter().filter(|line| !line.is_empty());
        let lines: Vec<Line<RunEntry>> = lines
            .map(|line| serde_json::from_slice(line).ok())
            .collect::<Option<_>>()?;
        let (stamps, runs): (Vec<_>, Vec<_>) = lines
            .into_iter()
            .map(|line| (line.stamps, line.run))
            .unzip();
        let numbers_are_known = runs.iter().all(|run: &RunEntry| {
            run.data < shared.data.len()
                && run
                    .environment
                    .is_none_or(|it| it < shared.environments.len())
        });
        // Whoever wrote the file also wrote the sum in its head: names are checked wherever they enter.
        let path = folder.index_jsonl();
        let names = runs.iter().flat_map(|run| [&run.id, &run.trial]);
        let are_names = names
            .chain([&shared.plan.experiment])
            .all(|name| name::check(&path, "run", name).is_ok());
        (runs.len() == shared.num_runs && numbers_are_known && are_names).then_some(Self {
            time_ns: shared.time_ns,
            plan: shared.stamp,
            stamps,
            index: Index {
                plan: shared.plan,
                settings: shared.settings,
                runs,
                data: shared.data,
                environments: shared.environments,
                mended: Vec::new(),
                looks: Vec::new(),
            },
        })
    }

    /// Whether it belongs to a plan with this stamp.
    pub fn is_of(&self, plan: &Stamp) -> bool {
        self.plan == Some(*plan) && plan.is_settled_at(self.time_ns)
    }

    /// Writes it.
    pub fn write(&self, folder: &ExperimentFolder) -> io::Result<()> {
        let index = &self.index;
        let mut body = serde_json::to_vec(&Shared {
            time_ns: self.time_ns,
            num_runs: index.runs.len(),
            stamp: self.plan,
            plan: &index.plan,
            settings: &index.settings,
            data: &index.data,
            environments: &index.environments,
        })?;
        body.push(b'\n');
        let rows: Vec<_> = index.runs.iter().zip(&self.stamps).collect();
        let lines: Vec<serde_json::Result<Vec<u8>>> = rows
            .par_iter()
            .map(|(run, stamps)| {
                let stamps = **stamps;
                serde_json::to_vec(&Line { stamps, run })
            })
            .collect();
        for line in lines {
            body.write_all(&line?)?;
            body.push(b'\n');
        }
        let mut text = serde_json::to_vec(&Head {
            format: FORMAT,
            runner: env!("CARGO_PKG_VERSION").into(),
            sha256: sum(&body),
        })?;
        text.push(b'\n');
        text.extend(body);
        write_whole(&folder.index_jsonl(), &text)
    }
}

impl Stamps {
    /// Those of a run that has not begun.
    pub fn none(with_derived: bool) -> Self {
        Self {
            read: [None; 5],
            derived: with_derived.then_some([None; 2]),
        }
    }

    /// Those of a run's files now; of derived ones on demand.
    pub fn of(folder: &RunFolder, with_derived: bool) -> io::Result<Self> {
        let [losses, digests] = TRACE_FILES.map(|name| folder.0.join(name));
        let read = [
            folder.run_toml(),
            folder.events_jsonl(),
            folder.environment_json(),
            losses,
            digests,
        ];
        let [a, b, c, d, e] = read.map(|path| Stamp::of(&path));
        let derived = if with_derived {
            let [a, b] = [folder.summary_json(), folder.metrics_csv()].map(|path| Stamp::of(&path));
            Some([a?, b?])
        } else {
            None
        };
        Ok(Self {
            read: [a?, b?, c?, d?, e?],
            derived,
        })
    }

    /// Whether the files are unchanged since they were read.
    pub fn hold(&self, folder: &RunFolder, with_derived: bool, time_ns: i64) -> bool {
        let Ok(now) = Self::of(folder, with_derived) else {
            return false;
        };
        now.read == self.read
            && (!with_derived || now.derived == self.derived)
            && now.are_settled_at(time_ns)
    }

    /// Whether the files were last changed long before a given time.
    pub fn are_settled_at(&self, time_ns: i64) -> bool {
        let derived = self.derived.iter().flatten();
        let mut stamps = self.read.iter().chain(derived).flatten();
        stamps.all(|stamp| stamp.is_settled_at(time_ns))
    }
}

/// The first line, and what follows it.
fn split_line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|b| *b == b'\n')?;
    Some((&text[..at], &text[at + 1..]))
}

fn sum(body: &[u8]) -> String {
    let bytes = Sha256::digest(body);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
