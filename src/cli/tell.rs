//! What operations tell while they work, and why they have no outcome, for people.

use std::sync::{Mutex, PoisonError};

use super::SpecArgs;
use super::output::Output;
use crate::error::Error;
use crate::ops::{Experiment, Progress};
use runner_core::diagnostic::Diagnostic;
use runner_report::console::{Fetching, Mode, eprint_in_color, eprintln_lossy};

/// Shows the progress of operations: sentences, warnings and bars.
pub struct Teller {
    mode: Mode,
    /// The bar on the screen, and whether it is that of a download.
    bar: Mutex<Option<(bool, Fetching)>>,
}

impl Teller {
    /// Without steps and bars where somebody asked for quiet.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            bar: Mutex::new(None),
        }
    }

    /// Shows something.
    pub fn tell(&self, progress: Progress<'_>) {
        match progress {
            Progress::Step(text) => {
                self.clear();
                if self.mode == Mode::Normal {
                    eprintln_lossy(text);
                }
            }
            Progress::Note(text) => {
                self.clear();
                eprintln_lossy(&format!("note: {text}"));
            }
            Progress::Warnings(sources, diagnostics) => {
                self.clear();
                let text = diagnostics.render(sources, Output::color());
                eprint_in_color(text.trim_end());
            }
            Progress::Advanced(what, done, total) => self.advance(false, what, done, Some(total)),
            Progress::Downloaded(file, received, total) => {
                self.advance(true, file, received, total);
            }
        }
    }

    fn advance(&self, is_download: bool, what: &str, done: u64, total: Option<u64>) {
        let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        if bar.as_ref().is_none_or(|(known, _)| *known != is_download) {
            // The one before is removed first.
            *bar = None;
            let new = if is_download {
                Fetching::download(self.mode)
            } else {
                Fetching::decoding(self.mode)
            };
            *bar = Some((is_download, new));
        }
        if let Some((_, bar)) = bar.as_ref() {
            bar.show(what, done, total);
        }
    }

    /// Removes the bar, so that something else can be written.
    fn clear(&self) {
        *self.bar.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Output {
    /// Shows why an operation has no outcome, and returns the exit code.
    pub fn fail(&mut self, error: &Error) -> u8 {
        self.show(&error.render(Self::color()));
        error.exit_code()
    }

    /// Shows a refusal that has no place in a text, and returns the exit code.
    pub fn refuse(&mut self, diagnostic: Diagnostic) -> u8 {
        self.fail(&Error::refused(diagnostic))
    }
}

impl SpecArgs {
    /// What the arguments name.
    pub fn experiment(&self) -> Experiment {
        Experiment {
            path: self.spec.clone(),
            set: self.set.clone(),
        }
    }
}
