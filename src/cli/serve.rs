//! `runner serve`: the reports of a results tree in a browser, while it grows.

use std::net::SocketAddr;

use super::experiment::refuse;
use super::output::Output;
use super::{ServeArgs, WRONG};
use crate::diagnostic::Diagnostic;
use crate::serve::{Server, check_token};
use crate::spec::document::plain_io_error;

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
            let message = format!(
                "cannot serve `{}` at {address}: {}",
                args.folder.display(),
                plain_io_error(&e)
            );
            let diagnostic = Diagnostic::error("results", message);
            refuse(
                diagnostic
                    .help("give a results folder, and a port that is free (`--port 0` finds one)"),
                output,
            );
            return WRONG;
        }
    };
    output.print(&format!("http://{address}/"));
    output.say(&format!(
        "serving the reports of {}; Ctrl-C ends it",
        args.folder.display()
    ));
    if !args.listen.is_loopback() {
        output.say("note: what is sent is not encrypted, and neither is the token");
    }
    server.serve()
}
