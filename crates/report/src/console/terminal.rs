//! Terminal settings: single keys without waiting for a newline, always restored.
//!
//! Keys that send signals (Ctrl-C, Ctrl-Z, Ctrl-\) keep their usual meaning. The settings are restored when this is
//! dropped, also by a panic, and before the process is stopped or ended by a signal. After a stop,
//! [`Terminal::is_ours`] applies them again. Only the foreground process changes them: the system would stop any other.

#[cfg(unix)]
pub use unix::Terminal;

/// Elsewhere there are no keys.
#[cfg(not(unix))]
pub struct Terminal;

#[cfg(not(unix))]
impl Terminal {
    pub fn open() -> Option<Self> {
        None
    }

    pub fn is_ours(&mut self) -> (bool, bool) {
        (false, false)
    }

    pub fn keys(&mut self) -> Vec<Key> {
        Vec::new()
    }

    pub fn has_keys(&self) -> bool {
        false
    }
}

/// A recognized key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code, reason = "there are no keys"))]
pub enum Key {
    /// The run above.
    Up,
    /// The run below.
    Down,
    /// Any printable character.
    Char(char),
}

/// The keys in terminal input; anything else is skipped.
#[cfg(any(unix, test))]
pub fn keys(bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    let mut rest = bytes;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            // An escape sequence: `ESC [` or `ESC O`, parameters, and a letter.
            (0x1b, [b'[' | b'O', sequence @ ..]) => {
                let end = sequence.iter().position(|b| (0x40..=0x7e).contains(b));
                match end.map(|at| sequence[at]) {
                    Some(b'A') => keys.push(Key::Up),
                    Some(b'B') => keys.push(Key::Down),
                    _ => {}
                }
                rest = end.map_or(&[], |at| &sequence[at + 1..]);
            }
            (b' '..=b'~', _) => keys.push(Key::Char(char::from(*first))),
            _ => {}
        }
    }
    keys
}

#[cfg(unix)]
mod unix {
    use std::io::IsTerminal;
    use std::mem::MaybeUninit;

    use libc::{SIGHUP, SIGQUIT, SIGTSTP, c_int};

    use super::Key;

    /// Standard input, for keys, and standard error, for the board.
    const INPUT: i32 = 0;
    const OUTPUT: i32 = 2;

    /// The disabled settings: line buffering and echo.
    const LINES: libc::tcflag_t = libc::ICANON | libc::ECHO;

    /// The terminal of the board.
    pub struct Terminal {
        /// The original settings; none if keys come from elsewhere.
        found: Option<libc::termios>,
        /// The original signal handlers.
        handlers: Vec<(c_int, libc::sigaction)>,
    }

    impl Terminal {
        /// The terminal behind standard error, if it is one. Keys are read if standard input is one too, with the usual
        /// settings of a shell.
        pub fn open() -> Option<Self> {
            if !std::io::stderr().is_terminal() {
                return None;
            }
            let found = std::io::stdin().is_terminal().then(settings).flatten();
            let mut terminal = Self {
                found: found.filter(|found| found.c_lflag & LINES == LINES),
                handlers: Vec::new(),
            };
            if terminal.found.is_some() {
                for signal in [SIGHUP, SIGQUIT, SIGTSTP] {
                    let before = handle(signal);
                    terminal
                        .handlers
                        .extend(before.map(|before| (signal, before)));
                }
            }
            Some(terminal)
        }

        /// Whether this process may draw and read keys, and whether it just became allowed to: at first, and after it
        /// was stopped or in the background.
        pub fn is_ours(&mut self) -> (bool, bool) {
            if !is_in_foreground() {
                return (false, false);
            }
            let Some(found) = &self.found else {
                return (true, false);
            };
            let is_taken = settings().is_some_and(|now| now.c_lflag & LINES == 0);
            if !is_taken {
                let mut single = *found;
                single.c_lflag &= !LINES;
                single.c_cc[libc::VMIN] = 0;
                single.c_cc[libc::VTIME] = 0;
                set(&single);
            }
            (true, !is_taken)
        }

        /// Whether keys can be read.
        pub fn has_keys(&self) -> bool {
            self.found.is_some()
        }

        /// The keys that were pressed since the last call. Does not wait.
        pub fn keys(&mut self) -> Vec<Key> {
            let mut bytes = [0; 64];
            if self.found.is_none() || !has_input() {
                return Vec::new();
            }
            // SAFETY: the buffer is valid during the call, and has the given length.
            let num = unsafe { libc::read(INPUT, bytes.as_mut_ptr().cast(), bytes.len()) };
            match usize::try_from(num) {
                Ok(num) => super::keys(&bytes[..num]),
                Err(_) => Vec::new(),
            }
        }
    }

    impl Drop for Terminal {
        fn drop(&mut self) {
            for (signal, before) in self.handlers.drain(..) {
                // SAFETY: restores the previous handler as it was returned.
                unsafe { libc::sigaction(signal, &before, std::ptr::null_mut()) };
            }
            if let Some(found) = &self.found
                && is_in_foreground()
            {
                set(found);
            }
        }
    }

    /// Makes a signal restore the terminal before it takes effect, and returns its previous handler. A signal that is
    /// ignored, as under `nohup`, stays so, and so does a handled one: a closed terminal lets runs save a checkpoint.
    fn handle(signal: c_int) -> Option<libc::sigaction> {
        // SAFETY: a structure of numbers and flags, which may be all zeros; both are valid during the calls.
        unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = give_back as extern "C" fn(c_int) as libc::sighandler_t;
            ours.sa_flags = libc::SA_RESTART;
            let is_known = libc::sigaction(signal, std::ptr::null(), &mut before) == 0;
            let is_default = before.sa_sigaction == libc::SIG_DFL;
            (is_known && is_default && libc::sigaction(signal, &ours, std::ptr::null_mut()) == 0)
                .then_some(before)
        }
    }

    /// A signal handler. It does not use the original settings, so that no state is shared with it: keys were only read
    /// if line buffering was on.
    extern "C" fn give_back(signal: c_int) {
        if is_in_foreground()
            && let Some(mut now) = settings()
        {
            now.c_lflag |= LINES;
            now.c_cc[libc::VMIN] = 1;
            set(&now);
        }
        // SAFETY: `tcgetattr`, `tcsetattr`, `tcgetpgrp`, `getpgrp`, `signal` and `raise` may be called in a handler
        // (POSIX.1-2017, 2.4.3). Nothing is allocated, locked or awaited.
        unsafe {
            match signal {
                SIGTSTP => libc::raise(libc::SIGSTOP),
                _ => {
                    libc::signal(signal, libc::SIG_DFL);
                    libc::raise(signal)
                }
            };
        }
    }

    fn settings() -> Option<libc::termios> {
        let mut settings = MaybeUninit::uninit();
        // SAFETY: initialized by the call if it returns 0, and only used then.
        unsafe {
            (libc::tcgetattr(INPUT, settings.as_mut_ptr()) == 0).then(|| settings.assume_init())
        }
    }

    fn set(settings: &libc::termios) {
        // SAFETY: the settings are complete, and came from `tcgetattr`.
        unsafe { libc::tcsetattr(INPUT, libc::TCSANOW, settings) };
    }

    /// Whether this process is in the foreground of the terminal. Without a controlling terminal it cannot be stopped
    /// for that.
    fn is_in_foreground() -> bool {
        // SAFETY: both take no pointers.
        let (front, own) = unsafe { (libc::tcgetpgrp(OUTPUT), libc::getpgrp()) };
        front == -1 || front == own
    }

    fn has_input() -> bool {
        let mut input = libc::pollfd {
            fd: INPUT,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one structure, as the count says.
        let ready = unsafe { libc::poll(&mut input, 1, 0) };
        ready > 0 && input.revents & libc::POLLIN != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_among_sequences() {
        let sent = b"\x1b[A\x1bOBs\x1b[1;5A\x1b[15~q\x1b\x03\xc3\xa4?";
        let char = Key::Char;
        assert_eq!(
            keys(sent),
            [Key::Up, Key::Down, char('s'), Key::Up, char('q'), char('?')]
        );
        assert_eq!(keys(b"\x1b["), []);
        assert_eq!(keys(b""), []);
    }
}
