//! `runner parity-exec`: the worker. Computes on both devices in this process and sends the results on standard output,
//! one JSON object per line.

use std::io::BufRead;

use super::super::channel::Channel;
use super::super::exec::caught;
use super::super::output::Output;
use super::super::{FAILED, INTERRUPTED, OK, ParityExecArgs};
use crate::ops::examples;
use crate::train::parity::{Pair, train_in_lock_step, try_examples};
use runner_core::diagnostic::{Diagnostic, Reason};
use runner_core::parity::{Example, Outcome, Said};
use runner_core::record::RunFolder;
use runner_core::show::plain_io_error;
use runner_core::spec::backend::Precision;

/// Trains the run of a folder in lockstep, or without one compares the examples. A panic ends it with a message.
pub fn parity_exec(args: &ParityExecArgs) -> u8 {
    let channel = Channel::open();
    let say = |said: &Said| channel.say(said);
    hang_on_leash();
    let mut pair = Pair {
        reference: args.devices[0],
        device: args.devices[1],
        precision: Precision::F32,
        wrong: args.inject_error.clone(),
    };
    let mut began = 0;
    let mut note = |said: Said| {
        if let Said::Began { number, .. } = &said {
            began = *number;
        }
        say(&said);
    };
    let Some(folder) = &args.folder else {
        let mut examples = match examples(&args.only) {
            Ok(examples) => examples,
            Err(Reason(reason)) => return no_run(&reason),
        };
        examples.retain(|(number, _)| *number >= args.from);
        let ended = caught(|| try_examples(&examples, &pair, &mut note));
        let Err(Reason(reason)) = ended else {
            return OK;
        };
        match examples.into_iter().find(|(number, _)| *number == began) {
            // The device may be lost: the rest is left to another process.
            Some((number, example)) => say(&Said::Tried(Example {
                number,
                kind: example.kind(),
                layers: example.layers,
                outcome: Outcome::Failed { reason },
            })),
            None => say(&Said::Failed { reason }),
        }
        return FAILED;
    };
    let plan = match RunFolder(folder.clone()).read_plan() {
        Ok(Some(plan)) => plan,
        Ok(None) => return no_run(&format!("`{}` has no run.toml", folder.display())),
        Err(e) => return no_run(&plain_io_error(&e)),
    };
    pair.precision = plan.precision;
    match caught(|| train_in_lock_step(&plan, &pair, args.steps, &mut note)) {
        Ok(()) => OK,
        Err(Reason(reason)) => {
            say(&Said::Failed { reason });
            FAILED
        }
    }
}

fn no_run(reason: &str) -> u8 {
    Output.refuse(Diagnostic::error("results", reason))
}

/// Ends the process when standard input closes, as it does when its parent is gone.
fn hang_on_leash() {
    std::thread::spawn(|| {
        let mut line = String::new();
        while std::io::stdin()
            .lock()
            .read_line(&mut line)
            .is_ok_and(|read| read > 0)
        {}
        #[expect(clippy::disallowed_methods, reason = "the parent process is gone")]
        std::process::exit(INTERRUPTED.into());
    });
}
