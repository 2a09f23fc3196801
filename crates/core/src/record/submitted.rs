//! The plans of submitted runs, in one file: a job begins a run with what was submitted, whatever the experiment's plan has
//! become since, and reads only the plans of its own runs.
//!
//! Each line is sealed by itself; the submission has the place of each.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;

use super::damage::damaged;
use super::format::{parse_json, unreadable};
use super::{ExperimentFolder, Submission, in_parallel, name, seal, unwritable, write_whole_by};
use crate::plan::RunPlan;
use crate::spec::plain_file;

/// The longest plan of a run, in bytes.
const LONGEST: u64 = 1 << 28;

impl ExperimentFolder {
    fn submitted_jsonl(&self, key: &str) -> PathBuf {
        self.launch().join(format!("{key}.runs.jsonl"))
    }

    /// Writes the plans of a submission's runs, in the order of its jobs; returns the place of each.
    pub fn write_submitted(&self, key: &str, runs: &[&RunPlan]) -> io::Result<Vec<u64>> {
        let lines = in_parallel(runs, |run| -> io::Result<String> {
            Ok(seal::json(serde_json::to_string(run)? + "\n"))
        });
        let lines: Vec<String> = lines.into_iter().collect::<io::Result<_>>()?;
        let mut end = 0;
        let places = lines.iter().map(|line| {
            end += line.len() as u64;
            end - line.len() as u64
        });
        let places = places.collect();
        let path = self.submitted_jsonl(key);
        let write = |file: &mut BufWriter<&File>| {
            let mut lines = lines.iter();
            lines.try_for_each(|line| file.write_all(line.as_bytes()))
        };
        write_whole_by(&path, write).map_err(|e| unwritable(&path, e))?;
        Ok(places)
    }

    /// The plan of a submitted run; `None` if the submission is over, or of a version that wrote none.
    pub fn read_submitted(
        &self,
        submission: &Submission,
        run: &str,
    ) -> io::Result<Option<RunPlan>> {
        let path = self.submitted_jsonl(&submission.key);
        let at = submission
            .elements
            .iter()
            .flatten()
            .position(|it| it == run);
        let Some(place) = at.and_then(|at| submission.places.get(at)) else {
            return Ok(None);
        };
        let mut file = match plain_file::open(&path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            other => other.map_err(|e| unreadable(&path, &e))?,
        };
        let mut line = Vec::new();
        file.seek(SeekFrom::Start(*place))
            .and_then(|_| BufReader::new(file.take(LONGEST)).read_until(b'\n', &mut line))
            .map_err(|e| unreadable(&path, &e))?;
        let line = String::from_utf8(line).map_err(|_| damaged(&path, "it is not UTF-8"))?;
        let plan: RunPlan = parse_json(&path, &line)?;
        name::check_run(&path, &plan)?;
        if plan.id != run {
            let reason = format!("it has run `{}` where `{run}` should be", plan.id);
            return Err(damaged(&path, reason));
        }
        Ok(Some(plan))
    }

    /// Removes the plans of a submission that is over: its runs have begun, or are submitted again.
    pub fn forget_submitted(&self, key: &str) {
        let path = self.submitted_jsonl(key);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                tracing::info!("`{}` is not removed: {e}", path.display());
            }
            _ => {}
        }
    }
}
