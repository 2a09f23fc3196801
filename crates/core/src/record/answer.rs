//! External programs, which may never answer.

use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum time for an answer of a driver.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Interval between checks whether a program has ended.
const TICK: Duration = Duration::from_millis(10);

/// Runs a program to its end, and returns its exit status and standard output; none if it does not end in time, in
/// which case it is killed.
pub fn answer(
    mut command: Command,
    patience: Duration,
) -> io::Result<Option<(ExitStatus, String)>> {
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut output = child.stdout.take();
    // Read concurrently, so that a program with much output can end.
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        let read = output.as_mut().map(|output| output.read_to_end(&mut text));
        read.transpose().map(|_| text)
    });
    loop {
        if let Some(status) = child.try_wait()? {
            let text = reader.join().unwrap_or_else(|_| Ok(Vec::new()))?;
            return Ok(Some((status, String::from_utf8_lossy(&text).into_owned())));
        }
        if started.elapsed() > patience {
            // Its children may keep its output open: the reader is not awaited.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        thread::sleep(TICK);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn who_does_not_answer_is_killed() {
        let (status, text) = answer(shell("echo yes"), PATIENCE).unwrap().unwrap();
        assert!(status.success());
        assert_eq!(text, "yes\n");
        let silent = answer(shell("exec sleep 600"), Duration::ZERO).unwrap();
        assert!(silent.is_none());
    }
}
