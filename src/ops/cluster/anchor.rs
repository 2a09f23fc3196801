//! The folder of a run through an open directory, so that it stays the same folder when it is renamed.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use runner_core::plan::RunPlan;
use runner_core::record::{ExperimentFolder, Lease, RunFolder, Submission};

/// A leased run.
pub(super) enum Opened {
    /// Its plan, and its folder.
    Run(Box<RunPlan>, Anchor),
    /// Why it cannot be trained.
    Not(String),
}

/// The plan of a run of a submission, and whether it has begun.
pub(super) fn plan_of(
    folder: &RunFolder,
    submitted: impl FnOnce() -> io::Result<Option<RunPlan>>,
) -> io::Result<Result<RunPlan, String>> {
    let (there, submitted) = (folder.read_plan()?, submitted()?);
    Ok(match (there, submitted) {
        (Some(there), Some(submitted)) if there.fingerprint != submitted.fingerprint => {
            Err("its folder has a run with other settings than those that were submitted".into())
        }
        (Some(there), _) => Ok(there),
        (None, Some(submitted)) if submitted.fork.is_none() => Ok(submitted),
        (None, Some(_)) => Err("the copy that it begins as is gone".into()),
        (None, None) => Err("it has no run.toml".into()),
    })
}

/// Opens the folder of a leased run, which is created if the run has not begun.
pub(super) fn open(
    folder: &ExperimentFolder,
    submission: &Submission,
    (run, lease): (&str, &Lease),
) -> io::Result<Opened> {
    let there = folder.run(run);
    there.check_links()?;
    std::fs::create_dir_all(&there.0)?;
    let anchor = Anchor::open(&there)?;
    if !lease.is_current()? {
        return Ok(Opened::Not("another process has taken it".into()));
    }
    // Its last holder may have begun it in the meantime.
    let plan = plan_of(&anchor.folder, || folder.read_submitted(submission, run))?;
    Ok(match plan {
        Ok(plan) => Opened::Run(Box::new(plan), anchor),
        Err(reason) => Opened::Not(reason),
    })
}

/// An open folder, inherited by the processes that this one starts.
pub(super) struct Anchor {
    /// Keeps the number valid.
    _opened: File,
    /// The folder, by the number of the open directory.
    pub(super) folder: RunFolder,
}

impl Anchor {
    #[cfg(target_os = "linux")]
    pub(super) fn open(folder: &RunFolder) -> io::Result<Self> {
        use std::os::fd::AsRawFd;

        #[expect(clippy::disallowed_methods, reason = "a folder")]
        let opened = File::open(&folder.0)?;
        let number = opened.as_raw_fd();
        // SAFETY: changes only a flag of a descriptor that is open during the call.
        if unsafe { libc::fcntl(number, libc::F_SETFD, 0) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let path = PathBuf::from(format!("/proc/self/fd/{number}"));
        Ok(Self {
            _opened: opened,
            folder: RunFolder(path),
        })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn open(folder: &RunFolder) -> io::Result<Self> {
        let _ = (folder, PathBuf::new(), File::options());
        let reason = "jobs of a cluster can only train on Linux";
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }
}
