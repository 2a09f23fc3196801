//! The `runner` program, which trains each run in a separate process.

use std::path::{Path, PathBuf};

use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{ExperimentFolder, known_build};

/// The `runner` program and the arguments of its workers. Without a path, drivers are queried for their devices in this
/// process, and nothing can be trained.
///
/// ```
/// use burn_runner::ops::Program;
///
/// let program = Program::at("target/release/runner");
/// assert!(program.arguments.is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The path of its file.
    pub path: Option<PathBuf>,
    /// Arguments for every worker, such as `-v`.
    pub arguments: Vec<String>,
}

impl Program {
    /// The program in a file.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Some(path.into()),
            arguments: Vec::new(),
        }
    }

    /// The path of its file.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if it is unknown.
    pub(crate) fn find(&self) -> Result<&Path, Error> {
        self.path.as_deref().ok_or_else(|| {
            let diagnostic = Diagnostic::error("internal", "cannot find the runner program");
            Error::refused(diagnostic.help("name its file as `Program::at(PATH)`"))
        })
    }

    /// The arguments of every worker, including the build of this program.
    pub(crate) fn worker_arguments(&self) -> Vec<String> {
        let mut arguments = self.arguments.clone();
        arguments.extend(build_argument());
        arguments
    }
}

/// The argument that makes the runs of an experiment share their selected kernels.
pub(crate) fn kernels_argument(folder: &ExperimentFolder) -> [String; 2] {
    let kernels = folder.kernels();
    let kernels = std::path::absolute(&kernels).unwrap_or(kernels);
    ["--kernels".to_owned(), kernels.display().to_string()]
}

/// The argument that passes the build of this program to a worker, so that it need not read its file.
pub(crate) fn build_argument() -> Vec<String> {
    let known = known_build().map(|known| ["--build".to_owned(), known]);
    known.into_iter().flatten().collect()
}

/// The threads of this machine.
pub(crate) fn num_cores() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}
