//! `runner serve`: the reports of a results tree in a browser, while it grows.

use std::io::ErrorKind;
use std::net::SocketAddr;

use super::experiment::refuse;
use super::output::Output;
use super::{FAILED, ServeArgs, WRONG};
use runner_core::diagnostic::Diagnostic;
use runner_core::spec::document::plain_io_error;
use runner_report::serve::{Server, check_token};

/// Serves until the process is ended.
pub fn serve(args: &ServeArgs, output: &mut Output) -> u8 {
    let wrong = |message: String| Diagnostic::error("usage", message);
    if let Some(token) = &args.token
        && let Err(reason) = check_token(token)
    {
        let diagnostic = wrong(format!("`--token` is none: {reason}"));
        return refuse(diagnostic.help("`openssl rand -hex 16` makes one"), output);
    }
    if !args.listen.is_loopback() && args.token.is_none() {
        let message = format!("others can reach {}, and there is no token", args.listen);
        let diagnostic = wrong(message)
            .help("give `--token TOKEN`; `openssl rand -hex 16` makes one")
            .help("or leave `--listen` out, and reach it through `ssh -L`, which also encrypts");
        return refuse(diagnostic, output);
    }
    let server = Server::bind(&args.folder, args.listen, args.port, args.token.as_deref());
    let bound = server.and_then(|server| Ok((server.address()?, server)));
    let (address, server) = match bound {
        Ok(bound) => bound,
        Err(e) => {
            let address = SocketAddr::new(args.listen, args.port);
            let (reason, help) = match e.kind() {
                ErrorKind::AddrInUse => (
                    format!("another program has the port {}", args.port),
                    "choose another with `--port`, or leave it out for one that is free",
                ),
                ErrorKind::AddrNotAvailable => (
                    format!("this machine has no address {}", args.listen),
                    "give one of its own with `--listen`; 0.0.0.0 is all of them",
                ),
                ErrorKind::PermissionDenied if args.port > 0 => (
                    format!("the port {} is not for everybody", args.port),
                    "choose one above 1023 with `--port`",
                ),
                ErrorKind::NotFound => (
                    "there is no such folder".to_owned(),
                    "give a results folder, or make one with `runner run`",
                ),
                _ => (
                    plain_io_error(&e),
                    "give a results folder, and a port that is free (`--port 0` finds one)",
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
        // Nobody could know where it listens.
        return FAILED;
    }
    if args.listen.is_unspecified() {
        output.say(&format!(
            "that is on this machine http://localhost:{0}/, and from elsewhere http://NAME-OF-THIS-MACHINE:{0}/",
            address.port()
        ));
    }
    if args.token.is_some() {
        output.say("it asks for the token: open the address once with `?token=TOKEN` behind it, and the browser keeps a cookie");
    }
    output.say(&format!(
        "serving the reports of {}; Ctrl-C ends it",
        args.folder.display()
    ));
    if !args.listen.is_loopback() {
        output.say("note: what is sent is not encrypted, and neither is the token");
    }
    server.serve()
}
