//! `runner serve`: the reports of a results tree in a browser, updated live, or predictions of a trained network.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use super::output::Output;
use super::{FAILED, OK, ServeArgs};
use crate::model::{self, Model};
use crate::service::{self, Predictions};
use runner_core::diagnostic::Diagnostic;
use runner_core::show::plain_io_error;
use runner_http::{Limits, Server, Service, Stop, check_token};
use runner_report::serve::Reports;

/// Serves until the process is told to end.
pub fn serve(args: &ServeArgs, output: &mut Output) -> u8 {
    if let Some(diagnostic) = misuse(args) {
        return output.refuse(diagnostic);
    }
    if args.predict {
        return predictions(args, output);
    }
    let bound = Reports::of(&args.folder).and_then(|reports| {
        let server = bind(args, Limits::default())?;
        Ok((server.address()?, server, reports))
    });
    match bound {
        Ok((address, server, reports)) => {
            let what = format!("the reports of {}", args.folder.display());
            listen(args, address, &what, server, reports, output)
        }
        Err(e) => output.refuse(not_bound(args, &e)),
    }
}

/// Serves predictions.
fn predictions(args: &ServeArgs, output: &mut Output) -> u8 {
    let options = model::Options {
        trial: args.trial.clone(),
        device: args.device,
        ..model::Options::default()
    };
    let model = match Model::open(&args.folder, &options) {
        Ok(model) => model,
        Err(diagnostic) => return output.refuse(*diagnostic),
    };
    let what = format!("predictions of {}", model.plan().id);
    let serving = service::Options {
        name: args.name.clone(),
        max_batch: args.max_batch,
        max_waiting: args.max_waiting,
    };
    let limits = Limits {
        connections: 256,
        body: service::MAX_BODY,
        bodies: 4 * service::MAX_BODY,
        time: Duration::from_secs(10),
        work: Duration::from_secs(60),
        idle: Some(Duration::from_secs(75)),
    };
    let bound = bind(args, limits).and_then(|server| {
        let service = Predictions::of(model, &serving)?;
        Ok((server.address()?, server, service))
    });
    match bound {
        Ok((address, server, service)) => {
            let what = format!("{what} as the model `{}`", service.name());
            listen(args, address, &what, server, service, output)
        }
        Err(e) => output.refuse(not_bound(args, &e)),
    }
}

fn bind(args: &ServeArgs, limits: Limits) -> io::Result<Server> {
    Server::bind(args.listen, args.port, args.token.as_deref(), limits)
}

/// Why a server may not be started like this.
fn misuse(args: &ServeArgs) -> Option<Diagnostic> {
    let wrong = |message: String| Diagnostic::error("usage", message);
    if let Some(token) = &args.token
        && let Err(reason) = check_token(token)
    {
        let diagnostic = wrong(format!("invalid `--token`: {reason}"));
        return Some(diagnostic.help("`openssl rand -hex 16` generates one"));
    }
    if !args.listen.is_loopback() && args.token.is_none() {
        let message = format!(
            "other machines can reach {}, but there is no token",
            args.listen
        );
        let diagnostic = wrong(message)
            .help("set `--token TOKEN`; `openssl rand -hex 16` generates one")
            .help("or remove `--listen`, and connect through `ssh -L`, which also encrypts");
        return Some(diagnostic);
    }
    None
}

/// Why a server cannot listen.
fn not_bound(args: &ServeArgs, e: &io::Error) -> Diagnostic {
    let address = SocketAddr::new(args.listen, args.port);
    let (reason, help) = match e.kind() {
        ErrorKind::AddrInUse => (
            format!("another program is using the port {}", args.port),
            "choose another with `--port`, or remove it for any free port",
        ),
        ErrorKind::AddrNotAvailable => (
            format!("this machine does not have the address {}", args.listen),
            "use one of its addresses with `--listen`; 0.0.0.0 means all of them",
        ),
        ErrorKind::PermissionDenied if args.port > 0 => (
            format!("the port {} needs special permissions", args.port),
            "choose one above 1023 with `--port`",
        ),
        ErrorKind::NotFound => (
            "the folder does not exist".to_owned(),
            "use a results folder, or create one with `runner run`",
        ),
        _ => (
            plain_io_error(e),
            "use a results folder, and a free port (`--port 0` finds one)",
        ),
    };
    let message = format!(
        "cannot serve `{}` at {address}: {reason}",
        args.folder.display()
    );
    Diagnostic::error("results", message).help(help)
}

/// Prints the address, and serves until a signal.
fn listen<S: Service>(
    args: &ServeArgs,
    address: SocketAddr,
    what: &str,
    server: Server,
    service: S,
    output: &mut Output,
) -> u8 {
    output.print(&format!("http://{address}/"));
    if output.has_failed() {
        // Nobody could learn its address.
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
    output.say(&format!("serving {what}; press Ctrl-C to stop"));
    if !args.listen.is_loopback() {
        output.say("note: the connection, including the token, is not encrypted");
    }
    stop_at_signal(server.stop());
    match server.serve(service) {
        Ok(()) => OK,
        Err(e) => {
            let message = format!("cannot serve: {}", plain_io_error(&e));
            output.refuse(Diagnostic::error("results", message));
            FAILED
        }
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
