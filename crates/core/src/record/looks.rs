//! Which analyses of an experiment were looked at: testing again and again as seeds are added finds differences that do
//! not exist, so each look is counted.

use std::io;

use serde::{Deserialize, Serialize};

use super::{ExperimentFolder, RunEntry, State, format, unwritable, write_json};
use crate::plan::FORMAT;

/// An analysis that was looked at: the runs that its verdicts are about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// Each completed run as `<id>@<fingerprint>`, sorted.
    pub runs: Vec<String>,
    /// The part of the level that it had, all of it without planned looks. Not known of a look by a program that did not
    /// record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// `looks.json`.
#[derive(Serialize, Deserialize)]
struct File {
    format: u32,
    looks: Vec<Look>,
}

impl Look {
    /// The analysis of some runs, of those that are completed, with that many planned looks.
    pub fn at(runs: &[RunEntry], planned: Option<usize>) -> Self {
        let completed = runs.iter().filter(|run| run.state == State::Completed);
        let mut runs: Vec<String> = completed.map(Self::name).collect();
        runs.sort();
        Self {
            runs,
            share: Some(1.0 / planned.unwrap_or(1) as f64),
        }
    }

    /// The name of a run, with what it is besides: other work under the same name is another run.
    pub fn name(run: &RunEntry) -> String {
        Self::name_of(&run.id, &run.fingerprint)
    }

    /// The same of an id and a fingerprint.
    pub fn name_of(id: &str, fingerprint: &str) -> String {
        let start: String = fingerprint.chars().take(8).collect();
        format!("{id}@{start}")
    }
}

impl ExperimentFolder {
    /// The recorded looks, oldest first.
    pub fn read_looks(&self) -> io::Result<Vec<Look>> {
        let file: Option<File> = format::read_json(&self.looks_json())?;
        Ok(file.map_or_else(Vec::new, |file| file.looks))
    }

    /// Records a look, unless the same runs were looked at before with as much of the level.
    pub fn record_look(&self, look: Look) -> io::Result<()> {
        let mut looks = self.read_looks()?;
        match looks.iter_mut().find(|known| known.runs == look.runs) {
            Some(known) if known.share >= look.share => return Ok(()),
            Some(known) => known.share = look.share,
            None => looks.push(look),
        }
        let file = File {
            format: FORMAT,
            looks,
        };
        let path = self.looks_json();
        write_json(&path, &file).map_err(|e| unwritable(&path, e))
    }
}
