//! The results tree on disk. This module owns every path in it.
//!
//! ```text
//! results/<experiment>/
//!   experiment.toml        the input file, byte for byte
//!   resolved.toml          all layers in one file, if there are several
//!   plan.json              every run, resolved
//!   labels.json            tags and notes of runs
//!   looks.json             the analyses whose verdicts were looked at, by their runs
//!   kernels/               on CubeCL's backends: the kernels that were selected by timing, for all runs, and compiled ones
//!   .lock                  held by the `runner run` that writes here, whom it names
//!   .labels.lock           held while labels are changed
//!   launch/                jobs of a cluster (`submission.rs`) and which of them may write to which run (`lease.rs`)
//!   runs/<trial>-s<seed>/  of runs that have begun (`begun.rs`)
//!     .lock                held by the worker
//!     run.toml             the run, resolved and self-contained
//!     lineage/             <n>.toml: of a copy in population-based training, the runs that it begins as copies of
//!     environment.json     versions, host, device, data digests, clock
//!     transforms.json      how items become numbers: what was measured on the train split
//!     events.jsonl         what happened, append-only: the source of truth
//!     progress.json        while it is trained: where it is, for those who watch; no part of the record
//!     metrics.csv          one line for each epoch, derived
//!     summary.json         the outcome, derived; absent while the run is incomplete
//!     evaluation.json      what the best weights get wrong on the valid split: confusions, mistakes, residuals, samples
//!     weights.json         how the weights are distributed before training, in the best epoch and at the end
//!     predictions/         <split>.csv, .jsonl, .npy or .parquet, as `[predictions]` asks for
//!     samples/             epoch-<n>.png: what a generator makes of the same noise after each epoch
//!     run.log              the worker's log
//!     trace/               losses.f64 and digests.csv: the loss of each update, the weights' digests; on demand
//!                          gradient_norms.f64
//!     checkpoints/         model-<step>.bpk, optimizer-<step>.bpk, scheduler-<step>.bpk, and
//!                          checkpoint-<step>.json, which makes the three of them complete
//!     model/               initial.bpk, final.bpk, best.bpk by the objective, ema.bpk or swa.bpk if weights are averaged, teacher.bpk if there is a teacher
//!   replaced/<run>@<fingerprint>/   runs that were other work under the same name
//!   report.html report.md report.csv report.json
//!   tensorboard/<run>/       TensorBoard's event files, once they are asked for
//! ```
//!
//! A file that is not appended to is written under a temporary name and renamed, so that a kill at any moment leaves
//! the old or the new one. Files that numbers are read from reveal later changes: files that are written at once end
//! with a seal (`seal.rs`), each event has a sum over everything before it (`log.rs`), and the last events of a run
//! contain the digests of its other files (`files.rs`).

mod answer;
mod begun;
mod build;
mod calibrations;
pub mod capsule;
mod collector;
mod constrained;
mod damage;
mod entry;
mod environment;
pub mod evaluation;
mod experiment_folder;
mod files;
mod fold;
mod fork;
mod format;
mod git;
mod history;
mod in_memory;
mod index;
mod labels;
mod lease;
mod lineage;
mod links;
mod lock;
mod log;
mod looks;
mod name;
mod parallel;
mod plan_file;
mod resume;
mod run_folder;
mod seal;
mod settings;
mod status;
mod submission;
mod submitted;
mod tail;
mod times;
mod trace;
mod traded;
mod unfinished;
pub mod weights;
mod write;
mod written;

pub use answer::{Answered, PATIENCE, answer, answer_with_errors};
pub use begun::Begun;
pub use build::{known_build, look_at_this_build, take_known_build, this_build, use_program};
pub use calibrations::Calibrations;
pub use collector::{Collector, Recorded};
pub use damage::{
    LABELS_REMEDY, experiment_remedy, file_remedy, has_damaged_content, is_damaged, remedy,
};
pub use entry::{DataUsed, MemoryUse, OTHER_FORMAT_REMEDY, PLAN_REMEDY, RunEntry, State};
pub use environment::{
    Environment, INSTRUCTIONS, KERNELS, OPERATING_SYSTEM, PROCESSOR, available_memory, total_memory,
};
pub use experiment_folder::ExperimentFolder;
pub use fold::{RunRecord, Summary};
pub use fork::{NotForked, fork};
pub use format::is_other_format;
pub use git::commits_between;
pub use history::{Earlier, Generation};
pub use in_memory::{files_of, sealed};
pub use index::Index;
pub use labels::{Label, LabelError, Labels};
pub use lease::{Alive, BEAT, Held, Lease, Leased, PATIENCE as LEASE_PATIENCE, Tenant};
pub use links::refuse_links;
pub use lock::{Holder, Lock, Locked, has_no_locks, process_exists};
pub use looks::Look;
pub use parallel::in_parallel;
pub use plan_file::PlanFile;
pub use resume::{
    BadCheckpoint, CHECKPOINT_PARTS, Checkpoints, Rejected, ResumePoint, Sidecar, part_sum,
};
pub use run_folder::RunFolder;
pub use seal::{SealState, check_seal, json as sealed_json, seal_state};
pub use settings::{Changed, Settings, changed, is_guard, settings};
pub use status::{Status, leftovers, resume_point, status, statuses};
pub use submission::{Job, JobState, JobStates, Submission};
pub use tail::{News, Tail};
pub use times::Times;
pub use trace::{Digests, NORMS_FILE, OPTIMIZER, TRACE_FILES, Trace, TraceSums, TraceWriter};
pub use unfinished::{remove_temporary, remove_unfinished_in, temporary_prefix};
pub use write::{
    is_unwritable, sync_file, sync_files, sync_folder, unwritable, write_json, write_json_synced,
    write_synced, write_whole, write_whole_by,
};

use std::fs;
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::spec::plain_file;

/// Gives a file a correct seal, or a log correct sums, for its current content. For tests that change files on purpose.
#[doc(hidden)]
pub fn reseal(path: &Path) -> io::Result<()> {
    let text = plain_file::read_text(path)?;
    let text = match path.extension() {
        Some(extension) if extension == "jsonl" => log::renewed(&text),
        _ => seal::renewed(&text),
    };
    fs::write(path, text)
}

/// The folder of this user's cache for this program.
#[cfg(feature = "native")]
pub fn cache_folder() -> std::path::PathBuf {
    let caches = dirs::cache_dir().unwrap_or_else(std::env::temp_dir);
    caches.join("burn-runner")
}

/// The part of it with decoded data.
#[cfg(feature = "native")]
pub fn decoded_folder() -> std::path::PathBuf {
    cache_folder().join(crate::data::DECODED)
}

/// Milliseconds since 1970.
pub fn unix_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}
