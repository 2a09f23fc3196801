//! External programs, which may never answer.

use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum time for an answer of a driver.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Interval between checks whether a program has ended.
const TICK: Duration = Duration::from_millis(10);

/// What a program has written is read within this time after it has ended.
const MOMENT: Duration = Duration::from_secs(2);

/// What a program said.
#[derive(Debug, Default)]
pub struct Answered {
    /// How it ended; none if it did not in time, in which case it was killed.
    pub status: Option<ExitStatus>,
    /// Its standard output.
    pub output: String,
    /// Its standard error.
    pub errors: String,
}

/// Runs a program to its end, and returns its exit status and standard output; none if it does not end in time, in
/// which case it is killed.
pub fn answer(command: Command, patience: Duration) -> io::Result<Option<(ExitStatus, String)>> {
    let answered = answer_with_errors(command, patience)?;
    Ok(answered.status.map(|status| (status, answered.output)))
}

/// Runs a program to its end, or until the time is over; with what it wrote until then.
pub fn answer_with_errors(mut command: Command, patience: Duration) -> io::Result<Answered> {
    let started = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    // Read concurrently, so that a program with much output can end.
    let (output, errors) = (
        Heard::of(child.stdout.take()),
        Heard::of(child.stderr.take()),
    );
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if started.elapsed() > patience {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        thread::sleep(TICK);
    };
    // Its children may keep the output open, such as a job that `submit` starts in the background: they are not awaited.
    let moment = status.map_or(Duration::ZERO, |_| MOMENT);
    Ok(Answered {
        status,
        output: output.text(moment),
        errors: errors.text(moment),
    })
}

/// What is read from a pipe by another thread.
struct Heard {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: thread::JoinHandle<()>,
}

impl Heard {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes: Arc<Mutex<Vec<u8>>> = Arc::default();
        let heard = bytes.clone();
        let reader = thread::spawn(move || {
            let mut part = [0; 1 << 16];
            let Some(mut pipe) = pipe else { return };
            while let Ok(num) = pipe.read(&mut part) {
                if num == 0 {
                    return;
                }
                let lock = heard.lock();
                let mut heard = lock.unwrap_or_else(PoisonError::into_inner);
                heard.extend_from_slice(&part[..num]);
            }
        });
        Self { bytes, reader }
    }

    fn text(self, moment: Duration) -> String {
        let started = Instant::now();
        while !self.reader.is_finished() && started.elapsed() < moment {
            thread::sleep(TICK);
        }
        let heard = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&heard).into_owned()
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
        // Its child has the output, and does not end.
        let child = answer(shell("sleep 600 & echo $!"), PATIENCE);
        let (status, child) = child.unwrap().unwrap();
        assert!(status.success());
        let end = format!("kill {child}");
        let (status, _) = answer(shell(&end), PATIENCE).unwrap().unwrap();
        assert!(status.success());
        let script = "echo no >&2; echo much; exit 3";
        let refused = answer_with_errors(shell(script), PATIENCE).unwrap();
        let code = refused.status.and_then(|status| status.code());
        assert_eq!(code, Some(3));
        assert_eq!(
            (refused.output, refused.errors),
            ("much\n".into(), "no\n".into())
        );
    }
}
