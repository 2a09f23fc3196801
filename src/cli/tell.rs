//! The display of operations' progress and errors.

use std::sync::{Mutex, Once, PoisonError};

use super::follow::{Following, look};
use super::output::Output;
use super::signals::listen_for_signals;
use super::{Logging, SpecArgs};
use crate::dispatch::Cancel;
use crate::error::Error;
use crate::ops::{Experiment, Program, Progress, Training};
use runner_core::diagnostic::{Diagnostic, Sources};
use runner_core::event::Event;
use runner_core::plan::RunPlan;
use runner_report::console::{Board, Console, Fetching, Mode, eprint_in_color};

/// Shows the progress of operations: sentences, warnings, bars, and the board of a training.
pub struct Teller {
    mode: Mode,
    /// How the board is displayed.
    board_mode: Mode,
    /// Whether the events of runs are printed as JSON.
    json: bool,
    cancel: Cancel,
    listens: Once,
    shown: Mutex<Shown>,
}

/// What is on the screen.
#[derive(Default)]
struct Shown {
    /// The bar, and whether it is that of a download.
    bar: Option<(bool, Fetching)>,
    following: Option<Following>,
}

impl Teller {
    /// With `--quiet`, without steps, bars and a board.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            board_mode: mode,
            json: false,
            cancel: Cancel::default(),
            listens: Once::new(),
            shown: Mutex::default(),
        }
    }

    /// Signals and keys cancel the operation through this.
    pub fn with_cancel(mut self, cancel: &Cancel) -> Self {
        self.cancel = cancel.clone();
        self
    }

    /// The board is displayed differently from the rest.
    pub fn with_board(mut self, mode: Mode) -> Self {
        self.board_mode = mode;
        self
    }

    /// The events of runs are printed as JSON.
    pub fn with_events(mut self, json: bool) -> Self {
        self.json = json;
        self
    }

    /// Shows something.
    pub fn tell(&self, progress: Progress<'_>) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = &mut *shown;
        match progress {
            Progress::Advanced(what, done, total) => {
                return shown.advance(self.mode, false, what, done, Some(total));
            }
            Progress::Downloaded(file, received, total) => {
                return shown.advance(self.mode, true, file, received, total);
            }
            // Text replaces the bar.
            _ => shown.bar = None,
        }
        match progress {
            Progress::Step(text) if self.mode == Mode::Normal => Output.say(text),
            Progress::Note(text) => Output.say(&format!("note: {text}")),
            Progress::Waiting(text) => Output.say(&format!("waiting: {text}")),
            Progress::Warnings(sources, diagnostics) => {
                let text = diagnostics.render(sources, Output::color());
                eprint_in_color(text.trim_end());
            }
            Progress::Warning(diagnostic) => {
                let text = diagnostic.render(&Sources::default(), Output::color());
                eprint_in_color(text.trim_end());
            }
            Progress::MayCancel => {
                let listen = || listen_for_signals(self.cancel.clone());
                self.listens.call_once(listen);
            }
            Progress::Training(training) => shown.following = Some(self.follow(training)),
            Progress::Recorded(plan, event) if self.json => {
                Output.print(&json_line(plan, event));
            }
            Progress::Failed(error) => {
                if let Some(following) = &mut shown.following {
                    following.console.make_way();
                }
                Output.fail(error);
            }
            Progress::Event {
                run,
                plan,
                event,
                record,
            } => {
                if let Some(following) = &mut shown.following {
                    following.console.observe((0, run), plan, event, record);
                }
            }
            Progress::Tick => {
                if let Some(following) = &mut shown.following {
                    following.tick(&self.cancel);
                }
            }
            Progress::Trained => {
                if let Some(mut following) = shown.following.take() {
                    following.console.close();
                }
            }
            _ => {}
        }
    }

    fn follow(&self, training: &Training<'_>) -> Following {
        let mut board = Board::new(training.experiment, training.runs, Some(training.jobs));
        for (row, step) in board.rows.iter_mut().zip(training.steps) {
            // If all results exist, there is nothing to wait for.
            row.step = (*step).min(row.num_steps);
        }
        // Events that are printed to the same terminal would overwrite the board.
        let has_data = self.json && Output::is_terminal();
        let look = look(self.board_mode, has_data, true);
        Following::new(Console::new(vec![board], look), &self.cancel)
    }
}

impl Shown {
    fn advance(
        &mut self,
        mode: Mode,
        is_download: bool,
        what: &str,
        done: u64,
        total: Option<u64>,
    ) {
        if !matches!(&self.bar, Some((known, _)) if *known == is_download) {
            // The previous one is removed first.
            self.bar = None;
        }
        let (_, bar) = self.bar.get_or_insert_with(|| {
            let bar = if is_download {
                Fetching::download(mode)
            } else {
                Fetching::decoding(mode)
            };
            (is_download, bar)
        });
        bar.show(what, done, total);
    }
}

fn json_line(plan: &RunPlan, event: &Event) -> String {
    let mut line = serde_json::json!({ "run": plan.id });
    if let (Some(line), Ok(serde_json::Value::Object(event))) =
        (line.as_object_mut(), serde_json::to_value(event))
    {
        line.extend(event);
    }
    line.to_string()
}

impl Output {
    /// Reports why an operation failed, and returns the exit code.
    pub fn fail(&mut self, error: &Error) -> u8 {
        let text = error.render(Self::color());
        if !text.is_empty() {
            self.show(&text);
        }
        error.exit_code()
    }

    /// Reports an error without a position in a text, and returns the exit code.
    pub fn refuse(&mut self, diagnostic: Diagnostic) -> u8 {
        self.fail(&Error::refused(diagnostic))
    }
}

/// This program, whose workers use its log level.
pub fn this_program(logging: Option<&Logging>) -> Program {
    let mut arguments = Vec::new();
    if let Some(logging) = logging {
        arguments.extend(vec!["-v".to_owned(); logging.verbose.into()]);
        if let Some(filter) = &logging.log {
            arguments.extend(["--log".to_owned(), filter.clone()]);
        }
    }
    Program {
        path: std::env::current_exe().ok(),
        arguments,
    }
}

impl SpecArgs {
    /// The experiments of the arguments.
    pub fn experiment(&self) -> Experiment {
        Experiment {
            set: self.set.clone(),
            program: this_program(None),
            ..Experiment::new(&self.spec)
        }
    }
}

impl Experiment {
    /// The same, whose workers use the log level of this program.
    pub(super) fn logging(mut self, logging: &Logging) -> Self {
        self.program = this_program(Some(logging));
        self
    }
}
