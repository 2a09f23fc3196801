//! Following runs while they are trained: events, keys and signals come together on one thread, which writes and
//! prints.

use std::sync::mpsc::{Receiver, RecvTimeoutError};

use crate::dispatch::{Cancel, Observed, Reason, Urgency};
use runner_report::console::{Command, Console, Look, Mode, TICK};

/// How things are shown here: no board where the terminal cannot draw one (`TERM=dumb`) or data goes to it as well,
/// and no colours when `NO_COLOR` is set to anything (<https://no-color.org>).
pub fn look(mode: Mode, has_data_on_terminal: bool, may_change: bool) -> Look {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    Look {
        mode,
        may_draw: !is_dumb && !has_data_on_terminal,
        color: !no_color,
        may_change,
    }
}

/// Takes events until the last run has ended, and does what keys and signals ask for meanwhile.
pub fn follow(
    receiver: Receiver<Observed>,
    console: &mut Console,
    cancel: &Cancel,
    mut take: impl FnMut(&mut Console, Observed),
) {
    let mut urgency = cancel.urgency();
    loop {
        let is_over = match receiver.recv_timeout(TICK) {
            Ok(observed) => {
                take(console, observed);
                false
            }
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        for command in console.tick() {
            obey(command, console, cancel);
        }
        if urgency != cancel.urgency() {
            urgency = cancel.urgency();
            if cancel.reason() == Some(Reason::User) {
                say(urgency, console);
            }
            let boards = console.boards_mut().iter_mut();
            boards.for_each(|board| board.starts_no_more = true);
        }
        if is_over {
            return console.close();
        }
    }
}

fn say(urgency: Urgency, console: &mut Console) {
    match urgency {
        Urgency::None => {}
        Urgency::Graceful => console
            .tell("stopping: running runs save a checkpoint; press Ctrl-C again to stop at once"),
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
                    format!("{id}: stopping, it saves a checkpoint; press s again to stop at once")
                }
            });
        }
        Command::StartNoMore => {
            cancel.start_no_more();
            console.line("no run is started any more; those under way come to their end");
        }
        Command::Quit => cancel.cancel(Urgency::Graceful, Reason::User),
    }
}
