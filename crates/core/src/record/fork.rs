//! The beginning of a run that continues a copy of another one.

use std::fmt;
use std::io;
use std::path::Path;

use serde_json::json;

use super::{
    BadCheckpoint, CHECKPOINT_PARTS, Checkpoints, NORMS_FILE, RunFolder, RunRecord, Sidecar,
    TRACE_FILES, sync_file, write_json_synced, write_whole_by,
};
use crate::plan::RunPlan;
use crate::show::plain_io_error;
use crate::spec::plain_file;

/// Why a run cannot begin as a copy.
#[derive(Debug)]
pub enum NotForked {
    /// The state of the other run is missing or damaged.
    Bad(BadCheckpoint),
    /// A file cannot be read or written.
    Io(io::Error),
}

impl fmt::Display for NotForked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bad(reason) => write!(f, "{reason}"),
            Self::Io(e) => f.write_str(&plain_io_error(e)),
        }
    }
}

impl std::error::Error for NotForked {}

impl From<BadCheckpoint> for NotForked {
    fn from(reason: BadCheckpoint) -> Self {
        Self::Bad(reason)
    }
}

impl From<io::Error> for NotForked {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Copies the state of a run at which `plan` begins into its folder, so that it resumes from there. A kill at any moment
/// leaves no state, or all of it.
///
/// # Errors
///
/// If the run has no such state.
pub fn fork(
    (source, of): (&RunFolder, &RunPlan),
    (folder, plan): (&RunFolder, &RunPlan),
) -> Result<(), NotForked> {
    let step = plan.first_step();
    let record = RunRecord::read_for(source, of)?;
    let checkpoints = Checkpoints {
        folder: source,
        plan: of,
        adjustments: &record.attempts.adjustments,
        data_digests: None,
    };
    if !record.attempts.adjustments.is_empty() {
        // Its state would not be that of its plan.
        return Err(BadCheckpoint::OtherPast.into());
    }
    let (sidecar, best) = checkpoints.with_best(step)?;
    folder.check_links()?;
    let steps = [step].into_iter().chain(best.as_ref().map(|(at, _)| *at));
    for step in steps {
        for part in CHECKPOINT_PARTS {
            let to = folder.checkpoint_part(part, step);
            copy(&source.checkpoint_part(part, step), &to)?;
        }
    }
    for (from, to) in [source.model("initial"), source.model("teacher")]
        .iter()
        .zip([folder.model("initial"), folder.model("teacher")])
        .filter(|(from, _)| from.exists())
    {
        copy(from, &to)?;
    }
    let norms = Some(NORMS_FILE).filter(|file| source.0.join(file).exists());
    for file in TRACE_FILES.into_iter().chain(norms) {
        copy(&source.0.join(file), &folder.0.join(file))?;
    }
    // A checkpoint is only valid together with that of its best epoch, which therefore comes last.
    let mut state = sidecar.state.clone();
    if let Some(state) = state.as_object_mut() {
        // The other run was trained in that time.
        state.insert("wall_secs".into(), json!(0.0));
    }
    let begun = sidecar.restated(plan, state);
    write_json_synced(&folder.checkpoint_json(step), &begun)?;
    if let Some((step, sidecar)) = best {
        let state = sidecar.state.clone();
        let restated: Sidecar = sidecar.restated(plan, state);
        write_json_synced(&folder.checkpoint_json(step), &restated)?;
    }
    Ok(())
}

/// Copies a file, which is on disk afterwards.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut file = plain_file::open(from)?;
    write_whole_by(to, |out| io::copy(&mut file, out).map(|_| ()))?;
    sync_file(to)
}
