//! Programs that are looked at and interrupted while they run.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Starts a command that prints events, and reads them until one has `wanted` in it. Returns the events that follow.
pub fn started_until(
    command: &mut Command,
    wanted: &str,
) -> (Child, impl Iterator<Item = String> + use<>) {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    assert!(lines.any(|line| line.contains(wanted)), "no {wanted}");
    (child, lines)
}

/// Sends a signal, such as `-TERM`, to a process.
pub fn signal(name: &str, id: u32) {
    let status = Command::new("kill").args([name, &id.to_string()]).status();
    assert!(status.unwrap().success());
}
