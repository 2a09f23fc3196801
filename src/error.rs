//! The errors of operations in [`ops`](crate::ops), and their exit codes.

use std::fmt;
use std::io;
use std::path::Path;

use runner_core::diagnostic::{Diagnostic, Diagnostics, Sources};
use runner_core::record::capsule::CapsuleError;
use runner_core::record::{
    OTHER_FORMAT_REMEDY, RunFolder, experiment_remedy, has_damaged_content, is_other_format,
    is_unwritable, remedy,
};
use runner_core::show::plain_io_error;

/// Success.
pub const OK: u8 = 0;
/// The request is valid, but could not be carried out.
pub const FAILED: u8 = 1;
/// The experiment file or the request is invalid.
pub const WRONG: u8 = 2;
/// Stopped by the user.
pub const INTERRUPTED: u8 = 130;

/// Why an operation failed.
///
/// ```
/// use burn_runner::diagnostic::Diagnostic;
/// use burn_runner::error::Error;
///
/// let error = Error::refused(Diagnostic::error("usage", "there is no trial `x`"));
/// assert_eq!(error.exit_code(), 2);
/// assert_eq!(error.to_string(), "there is no trial `x`");
/// ```
#[derive(Debug)]
pub enum Error {
    /// The experiment file is invalid, or cannot be carried out here.
    Experiment {
        /// The texts that the diagnostics point into.
        sources: Sources,
        /// Everything that is wrong.
        diagnostics: Diagnostics,
    },
    /// The request is invalid, or something that it names is missing or unusable.
    Refused(Box<Diagnostic>),
    /// The request is valid, but could not be carried out.
    Failed(Box<Diagnostic>),
    /// The user stopped it before it had an outcome.
    Interrupted(String),
}

impl Error {
    /// An invalid request.
    pub fn refused(diagnostic: Diagnostic) -> Self {
        Self::Refused(Box::new(diagnostic))
    }

    /// A request that could not be carried out.
    pub fn failed(diagnostic: Diagnostic) -> Self {
        Self::Failed(Box::new(diagnostic))
    }

    /// An invalid experiment file.
    pub fn experiment(sources: &Sources, diagnostics: Diagnostics) -> Self {
        Self::Experiment {
            sources: sources.clone(),
            diagnostics,
        }
    }

    /// A file or folder cannot be written.
    pub fn unwritable(path: &Path, error: &io::Error) -> Self {
        Self::refused(unwritable(path, error).help(if is_full(error) {
            "free some space on this disk"
        } else {
            "make it writable"
        }))
    }

    /// The same of a folder of results that the command line can choose.
    pub fn unwritable_results(path: &Path, error: &io::Error) -> Self {
        if has_damaged_content(error) {
            // What a report is made of, and not its place.
            let diagnostic = Diagnostic::error("results", plain_io_error(error));
            return Self::refused(diagnostic.help(experiment_remedy(error)));
        }
        Self::refused(unwritable(path, error).help(if is_full(error) {
            "free some space on this disk, or use a folder on another one with `--results DIR`"
        } else {
            "use another folder with `--results DIR`, or make this one writable"
        }))
    }

    /// The content of a run's folder cannot be read.
    pub fn unreadable(error: &io::Error, folder: &RunFolder) -> Self {
        let diagnostic = Diagnostic::error("results", plain_io_error(error));
        let place = folder.0.display();
        Self::refused(if is_other_format(error) {
            diagnostic
                .help("to keep both, use another folder with `--results DIR`, or another `experiment.name`")
                .help(format!("or move that run elsewhere to train it again: mv '{place}' ELSEWHERE"))
        } else {
            diagnostic.help(remedy(error))
        })
    }

    /// A capsule cannot be packed or unpacked.
    pub fn capsule(error: &CapsuleError) -> Self {
        Self::refused(Diagnostic {
            notes: error.notes.clone(),
            helps: error.helps.clone(),
            ..Diagnostic::error("results", error.message.clone())
        })
    }

    /// The same, for a valid request that could not be carried out.
    pub fn into_failed(self) -> Self {
        match self {
            Self::Refused(diagnostic) => Self::Failed(diagnostic),
            other => other,
        }
    }

    /// The exit code of a program that ends with this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Experiment { .. } | Self::Refused(_) => WRONG,
            Self::Failed(_) => FAILED,
            Self::Interrupted(_) => INTERRUPTED,
        }
    }

    /// The diagnostics with their positions in the experiment file, as the program prints them.
    pub fn render(&self, color: bool) -> String {
        match self {
            Self::Experiment {
                sources,
                diagnostics,
            } => diagnostics.render(sources, color),
            Self::Refused(diagnostic) | Self::Failed(diagnostic) => {
                diagnostic.render(&Sources::default(), color)
            }
            Self::Interrupted(message) => message.clone(),
        }
    }
}

/// The first message, without its place and help.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = match self {
            Self::Experiment { diagnostics, .. } => {
                let first = diagnostics.0.first();
                first.map_or("", |diagnostic| &diagnostic.message)
            }
            Self::Refused(diagnostic) | Self::Failed(diagnostic) => &diagnostic.message,
            Self::Interrupted(message) => message,
        };
        f.write_str(message)
    }
}

impl std::error::Error for Error {}

/// The refusal of results that cannot be read.
pub(crate) fn unreadable(error: &io::Error) -> Diagnostic {
    let diagnostic = Diagnostic::error("results", plain_io_error(error));
    diagnostic.help(if is_other_format(error) {
        OTHER_FORMAT_REMEDY
    } else {
        remedy(error)
    })
}

fn unwritable(path: &Path, error: &io::Error) -> Diagnostic {
    let message = if is_unwritable(error) {
        error.to_string()
    } else {
        format!(
            "cannot write `{}`: {}",
            path.display(),
            plain_io_error(error)
        )
    };
    Diagnostic::error("results", message)
}

/// Whether a disk has no space left.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_tells_its_message_its_places_and_its_exit_code() {
        let mut sources = Sources::default();
        sources.add("x.toml", "a = 1\n");
        let wrong = || Diagnostic::error("unknown-key", "there is no key `a`");
        let experiment = Error::experiment(&sources, Diagnostics(vec![wrong()]));
        let cases = [
            (experiment, WRONG),
            (Error::refused(wrong()), WRONG),
            (Error::failed(wrong()), FAILED),
        ];
        for (error, code) in cases {
            assert_eq!(error.exit_code(), code);
            assert_eq!(error.to_string(), "there is no key `a`");
            assert!(error.render(false).starts_with("error: "));
        }
        let stopped = Error::Interrupted("stopped".into());
        assert_eq!(stopped.exit_code(), INTERRUPTED);
        assert_eq!(stopped.render(false), "stopped");
    }
}
