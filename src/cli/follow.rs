//! Following runs while they are trained: a board, and what keys and signals ask for meanwhile.

use crate::dispatch::{Cancel, Reason, Urgency};
use runner_report::console::{Command, Console, Look, Mode};

/// The display options: no board if the terminal cannot draw one (`TERM=dumb`) or data is printed to it as well, and no
/// colors if `NO_COLOR` is set to anything (<https://no-color.org>).
#[expect(clippy::disallowed_methods, reason = "what the terminal can do")]
pub fn look(mode: Mode, has_data_on_terminal: bool, may_change: bool) -> Look {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    let no_color = super::output::is_without_color();
    Look {
        mode,
        may_draw: !is_dumb && !has_data_on_terminal,
        color: !no_color,
        may_change,
    }
}

/// The board of a training.
pub struct Following {
    /// Where it is shown.
    pub console: Console,
    /// How urgently the training was asked to end when that was last looked at.
    urgency: Urgency,
}

impl Following {
    /// Follows a training that ends by `cancel`.
    pub fn new(console: Console, cancel: &Cancel) -> Self {
        Self {
            console,
            urgency: cancel.urgency(),
        }
    }

    /// Does what keys ask for, and says what signals asked for.
    pub fn tick(&mut self, cancel: &Cancel) {
        for command in self.console.tick() {
            obey(command, &mut self.console, cancel);
        }
        if self.urgency != cancel.urgency() {
            self.urgency = cancel.urgency();
            if cancel.reason() == Some(Reason::User) {
                say(self.urgency, &mut self.console);
            }
            let boards = self.console.boards_mut().iter_mut();
            boards.for_each(|board| board.starts_no_more = true);
        }
    }
}

fn say(urgency: Urgency, console: &mut Console) {
    match urgency {
        Urgency::None => {}
        Urgency::Graceful => {
            console.tell("stopping: active runs save a checkpoint; press Ctrl-C again to kill them")
        }
        Urgency::AtOnce => console.tell("stopping at once"),
    }
}

fn obey(command: Command, console: &mut Console, cancel: &Cancel) {
    match command {
        Command::Stop(at, run) => {
            let id = console.boards()[at].rows[run].id.clone();
            console.line(&match cancel.stop(run) {
                Urgency::AtOnce => format!("{id}: stopping at once"),
                _ => {
                    format!(
                        "{id}: stopping after saving a checkpoint; press s again to stop at once"
                    )
                }
            });
        }
        Command::StartNoMore => {
            cancel.start_no_more();
            console.line("no more runs are started; active runs finish");
        }
        Command::Quit => cancel.cancel(Urgency::Graceful, Reason::User),
    }
}
