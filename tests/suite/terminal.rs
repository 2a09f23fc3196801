//! A terminal for tests: the program on a pseudo-terminal, its screen emulated.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a test waits for an event.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program on a terminal.
pub struct Terminal {
    child: Child,
    control: File,
    bytes: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    sent: Vec<u8>,
}

/// A program that has ended.
pub struct Ended {
    pub code: Option<i32>,
    /// Whether the terminal is in its original state.
    pub is_as_before: bool,
    /// The last screen.
    pub shown: String,
    /// Everything that was sent to the terminal.
    pub sent: Vec<u8>,
}

impl Terminal {
    /// Starts a command on a terminal with a number of columns and lines.
    pub fn start(mut command: Command, columns: u16, lines: u16) -> Self {
        let (mut control, mut terminal) = (-1, -1);
        let null = std::ptr::null_mut();
        // SAFETY: both numbers are written when it returns 0, and the rest is left to the system.
        let opened =
            unsafe { libc::openpty(&mut control, &mut terminal, null, null.cast(), null.cast()) };
        assert_eq!(opened, 0, "a pseudo-terminal");
        // SAFETY: both were just opened, and have no other owner.
        let (control, terminal) =
            unsafe { (File::from_raw_fd(control), OwnedFd::from_raw_fd(terminal)) };
        let copy = || Stdio::from(terminal.try_clone().unwrap());
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm-256color");
        }
        command.stdin(copy()).stdout(copy()).stderr(copy());
        // SAFETY: all of these may be called between `fork` and `exec`.
        unsafe {
            command.pre_exec(|| {
                // A test process in the background ignores some of them, and its children would too.
                for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTSTP] {
                    libc::signal(signal, libc::SIG_DFL);
                }
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let at_first = Self::size_of(columns, lines);
        // SAFETY: the structure is valid during the call.
        unsafe { libc::ioctl(control.as_raw_fd(), libc::TIOCSWINSZ, &at_first) };
        let child = command.spawn().expect("the program starts");
        drop(command);
        drop(terminal);
        let (sender, bytes) = channel();
        let mut reader = control.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            // An error is the end: nothing has the terminal open any more.
            while let Ok(num @ 1..) = reader.read(&mut piece) {
                if sender.send(piece[..num].to_vec()).is_err() {
                    break;
                }
            }
        });
        let (lines, columns) = (lines.try_into().unwrap(), columns.try_into().unwrap());
        Self {
            child,
            control,
            bytes,
            screen: vt100::Parser::new(lines, columns, 1000),
            sent: Vec::new(),
        }
    }

    fn size_of(columns: u16, lines: u16) -> libc::winsize {
        libc::winsize {
            ws_row: lines,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        }
    }

    /// The content of the screen.
    pub fn shown(&self) -> String {
        self.screen.screen().contents()
    }

    /// Reads until the screen is as expected.
    pub fn until(&mut self, what: &str, is_wanted: impl Fn(&str) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !is_wanted(&self.shown()) {
            match self.bytes.recv_timeout(Duration::from_millis(100)) {
                Ok(bytes) => self.take(&bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("it ended before {what}:\n{}", self.shown())
                }
            }
            assert!(Instant::now() < end, "not {what}:\n{}", self.shown());
        }
    }

    /// Reads until a text is on the screen.
    pub fn until_shown(&mut self, text: &str) {
        self.until(text, |shown| shown.contains(text));
    }

    fn take(&mut self, bytes: &[u8]) {
        self.sent.extend_from_slice(bytes);
        self.screen.process(bytes);
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) {
        self.control.write_all(keys.as_bytes()).unwrap();
    }

    /// Gives the terminal another size.
    pub fn resize(&mut self, columns: u16, lines: u16) {
        let size = Self::size_of(columns, lines);
        // SAFETY: the structure is valid during the call.
        unsafe { libc::ioctl(self.control.as_raw_fd(), libc::TIOCSWINSZ, &size) };
        let (lines, columns) = (lines.try_into().unwrap(), columns.try_into().unwrap());
        self.screen.screen_mut().set_size(lines, columns);
    }

    /// Whether keys are echoed and wait for a newline, as a shell's user expects.
    pub fn is_as_before(&self) -> bool {
        let mut settings = std::mem::MaybeUninit::uninit();
        // SAFETY: initialized by the call if it returns 0, and only used then.
        let settings = unsafe {
            let got = libc::tcgetattr(self.control.as_raw_fd(), settings.as_mut_ptr());
            assert_eq!(got, 0);
            settings.assume_init()
        };
        settings.c_lflag & (libc::ICANON | libc::ECHO) == libc::ICANON | libc::ECHO
    }

    /// Reads the rest, until the program has ended and its terminal is closed.
    pub fn end(mut self) -> Ended {
        let end = Instant::now() + PATIENCE;
        while let Ok(bytes) = self
            .bytes
            .recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            self.take(&bytes);
        }
        let code = self.child.wait().unwrap().code();
        Ended {
            code,
            is_as_before: self.is_as_before(),
            shown: self.shown(),
            sent: self.sent,
        }
    }
}
