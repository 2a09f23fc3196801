//! `runner serve`: the reports of a results tree in a browser, updated live.

use std::io::ErrorKind;
use std::net::SocketAddr;

use super::experiment::refuse;
use super::output::Output;
use super::{FAILED, ServeArgs, WRONG};
use runner_core::diagnostic::Diagnostic;
use runner_core::spec::document::plain_io_error;
use runner_http::{Limits, Server, check_token};
use runner_report::serve::Reports;

/// Serves until the process is ended.
pub fn serve(args: &ServeArgs, output: &mut Output) -> u8 {
    let wrong = |message: String| Diagnostic::error("usage", message);
    if let Some(token) = &args.token
        && let Err(reason) = check_token(token)
    {
        let diagnostic = wrong(format!("invalid `--token`: {reason}"));
        return refuse(
            diagnostic.help("`openssl rand -hex 16` generates one"),
            output,
        );
    }
    if !args.listen.is_loopback() && args.token.is_none() {
        let message = format!(
            "other machines can reach {}, but there is no token",
            args.listen
        );
        let diagnostic = wrong(message)
            .help("set `--token TOKEN`; `openssl rand -hex 16` generates one")
            .help("or remove `--listen`, and connect through `ssh -L`, which also encrypts");
        return refuse(diagnostic, output);
    }
    let bound = Reports::of(&args.folder).and_then(|reports| {
        let token = args.token.as_deref();
        let server = Server::bind(args.listen, args.port, token, Limits::default())?;
        Ok((server.address()?, server, reports))
    });
    let (address, server, reports) = match bound {
        Ok(bound) => bound,
        Err(e) => {
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
                    plain_io_error(&e),
                    "use a results folder, and a free port (`--port 0` finds one)",
                ),
            };
            let message = format!(
                "cannot serve `{}` at {address}: {reason}",
                args.folder.display()
            );
            refuse(Diagnostic::error("results", message).help(help), output);
            return WRONG;
        }
    };
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
    output.say(&format!(
        "serving the reports of {}; press Ctrl-C to stop",
        args.folder.display()
    ));
    if !args.listen.is_loopback() {
        output.say("note: the connection, including the token, is not encrypted");
    }
    match server.serve(reports) {
        Ok(()) => 0,
        Err(e) => {
            let message = format!("cannot serve: {}", plain_io_error(&e));
            refuse(Diagnostic::error("results", message), output);
            FAILED
        }
    }
}
