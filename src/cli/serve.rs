//! `runner serve`: the reports of a results tree in a browser, updated live, or predictions of a trained network.

use super::output::Output;
use super::{FAILED, OK, ServeArgs};
use crate::model;
use crate::ops::{self, Content, Serve, Stop};
use crate::service;

/// Serves until the process is told to end.
pub fn serve(args: &ServeArgs, output: &mut Output) -> u8 {
    let options = Serve {
        folder: args.folder.clone(),
        content: if args.predict {
            Content::Predictions {
                model: model::Options {
                    trial: args.trial.clone(),
                    device: args.device,
                    ..model::Options::default()
                },
                service: service::Options {
                    name: args.name.clone(),
                    max_batch: args.max_batch,
                    max_waiting: args.max_waiting,
                },
            }
        } else {
            Content::Reports
        },
        listen: args.listen,
        port: args.port,
        token: args.token.clone(),
    };
    let serving = match ops::serve(&options, &ops::quiet) {
        Ok(serving) => serving,
        Err(error) => return output.fail(&error),
    };
    let address = serving.address();
    output.print(&format!("http://{address}/"));
    if output.has_failed() {
        // Without output, nobody would know the address.
        return FAILED;
    }
    if args.listen.is_unspecified() {
        output.say(&format!(
            "on this machine that is http://localhost:{0}/, and from elsewhere http://NAME-OF-THIS-MACHINE:{0}/",
            address.port()
        ));
    }
    if args.token.is_some() {
        output.say("the token is required: open the address once with `?token=TOKEN` at the end, and the browser keeps a cookie");
    }
    output.say(&format!("serving {}; press Ctrl-C to stop", serving.what()));
    if !args.listen.is_loopback() {
        output.say("note: the connection, including the token, is not encrypted");
    }
    stop_at_signal(serving.stop());
    match serving.run() {
        Ok(()) => OK,
        Err(error) => output.fail(&error),
    }
}

/// The first Ctrl-C or SIGTERM lets open requests end, the second ends the process.
#[cfg(unix)]
fn stop_at_signal(stop: Stop) {
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::low_level::emulate_default_handler;

    let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else {
        return;
    };
    std::thread::spawn(move || {
        let mut is_first = true;
        for signal in signals.forever() {
            if is_first {
                stop.stop();
            } else {
                let _ = emulate_default_handler(signal);
            }
            is_first = false;
        }
    });
}

/// Elsewhere Ctrl-C ends the process.
#[cfg(not(unix))]
fn stop_at_signal(_: Stop) {}
