//! Stop requests to a worker: its leash, which is its standard input, and signals.
//!
//! The leash is watched from the worker's very start, before it waits for anything, by an independent thread. Training
//! stops between two updates and saves a checkpoint. While the process that holds the leash is alive, it decides how
//! long that may take: a user presses Ctrl-C again, a time limit kills after [`GRACE`]. A worker whose runner is gone
//! terminates itself if it has not reached such a point after [`GRACE`], or has not ended [`SAVING`] after that, so
//! that a hanging worker does not keep a run locked.

use std::io::BufRead;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::FAILED;
use crate::dispatch::{GRACE, HOLDER};
use crate::train::Interrupter;

/// How long a worker without a runner may take to save its checkpoint.
const SAVING: Duration = Duration::from_secs(60);

/// How often the runner is checked.
const TICK: Duration = Duration::from_millis(50);

/// The stop requests to a worker.
#[derive(Clone)]
pub struct Leash(Arc<Told>);

struct Told {
    /// Stops the training.
    interrupter: Interrupter,
    is_closed: AtomicBool,
    /// The received signal; 0 for none.
    signal: AtomicI32,
    /// Set by the training when it has noticed.
    has_stopped: Arc<AtomicBool>,
    holder: Option<u32>,
}

impl Leash {
    /// Watches from now on. If the holder is not given, it is the parent.
    pub fn watch() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "said by the runner that started this worker"
        )]
        let holder = std::env::var(HOLDER).ok();
        let leash = Self(Arc::new(Told {
            interrupter: Interrupter::new(),
            is_closed: AtomicBool::new(false),
            signal: AtomicI32::new(0),
            has_stopped: Arc::default(),
            holder: holder.and_then(|pid| pid.parse().ok()).or_else(parent),
        }));
        let watched = leash.clone();
        thread::spawn(move || watched.wait());
        leash.listen();
        leash
    }

    /// The handle that stops the training.
    pub fn interrupter(&self) -> Interrupter {
        self.0.interrupter.clone()
    }

    /// Must be set when the training has stopped and is saving a checkpoint.
    pub fn has_stopped(&self) -> Arc<AtomicBool> {
        self.0.has_stopped.clone()
    }

    /// Whether the worker must stop.
    pub fn is_told(&self) -> bool {
        self.0.is_closed.load(Ordering::Acquire) || self.0.signal.load(Ordering::Acquire) != 0
    }

    /// The signal that requested the stop, if it was not the leash.
    pub fn signal(&self) -> Option<i32> {
        let signal = self.0.signal.load(Ordering::Acquire);
        (signal != 0 && !self.0.is_closed.load(Ordering::Acquire)).then_some(signal)
    }

    /// Waits for the end of standard input, and then for the end of the process if nothing else does.
    fn wait(&self) {
        let mut bytes = Vec::new();
        while std::io::stdin()
            .lock()
            .read_until(b'\n', &mut bytes)
            .is_ok_and(|read| read > 0)
        {
            bytes.clear();
        }
        self.0.is_closed.store(true, Ordering::Release);
        self.0.interrupter.stop(Some("asked to stop"));
        while !self.is_orphan() {
            thread::sleep(TICK);
        }
        let orphaned = Instant::now();
        let mut stopped = None;
        loop {
            if self.0.has_stopped.load(Ordering::Acquire) {
                stopped.get_or_insert_with(Instant::now);
            }
            let is_over = match stopped {
                None => orphaned.elapsed() > GRACE,
                Some(stopped) => stopped.elapsed() > SAVING,
            };
            if is_over {
                log_briefly("the runner is gone, and this worker hangs: it terminates itself");
                return leave(FAILED);
            }
            thread::sleep(TICK);
        }
    }

    fn is_orphan(&self) -> bool {
        self.0.holder.is_none() || parent() != self.0.holder
    }

    /// A first signal stops the training like the leash; a second one ends the process. An ignored signal, as under
    /// `nohup`, stays ignored.
    #[cfg(unix)]
    fn listen(&self) {
        use signal_hook::consts::{SIGHUP, SIGTERM};
        use signal_hook::low_level::emulate_default_handler;

        let wanted = [SIGTERM, SIGHUP].into_iter();
        let wanted = wanted.filter(|signal| !is_ignored(*signal));
        let Ok(mut signals) = signal_hook::iterator::Signals::new(wanted) else {
            return;
        };
        let told = self.0.clone();
        thread::spawn(move || {
            for signal in signals.forever() {
                if told.signal.swap(signal, Ordering::AcqRel) != 0 {
                    let _ = emulate_default_handler(signal);
                }
                told.interrupter.stop(Some("terminated by a signal"));
            }
        });
    }

    #[cfg(not(unix))]
    fn listen(&self) {}
}

/// Logs, unless the hanging thread holds the log.
fn log_briefly(text: &'static str) {
    let (sender, logged) = mpsc::channel();
    thread::spawn(move || {
        tracing::error!("{text}");
        let _ = sender.send(());
    });
    let _ = logged.recv_timeout(Duration::from_secs(1));
}

/// Ends the process without waiting for its threads.
pub fn leave(code: u8) {
    #[cfg(unix)]
    signal_hook::low_level::exit(code.into());
    #[cfg(not(unix))]
    #[expect(clippy::disallowed_methods, reason = "a thread may never end")]
    std::process::exit(code.into());
}

/// The process that started this one, or has adopted it.
#[cfg(unix)]
fn parent() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

/// Elsewhere it is unknown; the leash is closed when its holder ends.
#[cfg(not(unix))]
fn parent() -> Option<u32> {
    None
}

/// Whether a signal is ignored, as it may be when a process is started.
#[cfg(unix)]
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: a structure of numbers and flags, which may be all zeros, and which is valid during the call.
    unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut now) == 0
            && now.sa_sigaction == libc::SIG_IGN
    }
}
