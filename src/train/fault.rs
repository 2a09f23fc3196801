//! Faults that are injected at a named moment of a run, for tests and for `runner prove`.

use runner_core::diagnostic::Reason;
use std::fmt;
use std::str::FromStr;

/// A moment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The data is being loaded.
    Loading,
    /// The epoch begins, counted from 1.
    Epoch(usize),
    /// Before an update, counted from 1 over the whole training.
    Training(usize),
    /// A batch of the epoch's validation was computed.
    Validating(usize),
    /// One of the three files of a checkpoint at this step is on disk.
    Checkpointing(usize),
    /// The best weights are evaluated on the test split.
    Evaluating,
    /// Before the thread that prefetches batches gathers a piece, counted from 1 over all passes over the split.
    Gathering(Gathered, usize),
}

/// A split whose batches are gathered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gathered {
    /// The train split.
    Train,
    /// The valid split.
    Valid,
    /// The test split.
    Test,
}

impl Gathered {
    fn of(split: &str) -> Self {
        match split {
            "train" => Self::Train,
            "valid" => Self::Valid,
            _ => Self::Test,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Valid => "valid",
            Self::Test => "test",
        }
    }
}

impl Phase {
    /// The moment before a piece of a split is gathered.
    pub fn gathering(split: &str, piece: usize) -> Self {
        Self::Gathering(Gathered::of(split), piece)
    }
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// A panic.
    Panic,
    /// The process is killed, as by `kill -9`.
    Kill,
    /// The process hangs.
    Hang,
    /// Memory leaks, at this moment and at each later one of the phase.
    Leak,
    /// Much memory is allocated, and the process hangs.
    Swell,
    /// More memory is requested than any machine has.
    Exhaust,
    /// The thread that gathers batches ends without an error.
    Short,
    /// A native library writes to standard output in the middle of a line, bytes that are not text.
    Print,
}

/// The size of a leak.
const LEAKED_BYTES: usize = 8 << 20;
/// The size of a single allocation.
const SWELLED_BYTES: usize = 64 << 20;

/// A fault to inject, written `PHASE:NUMBER=KIND`, such as `training:57=kill` or `loading=hang`. An epoch's number
/// alone is a panic at its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When.
    pub phase: Phase,
    /// What.
    pub kind: FaultKind,
}

impl Fault {
    fn is_at(&self, phase: Phase) -> bool {
        let is_same = std::mem::discriminant(&self.phase) == std::mem::discriminant(&phase);
        match self.kind {
            FaultKind::Leak => is_same && phase >= self.phase,
            _ => phase == self.phase,
        }
    }

    /// Whether it occurs while batches of a split are gathered.
    pub fn is_in_gathering(&self, split: &str) -> bool {
        matches!(self.phase, Phase::Gathering(of, _) if of == Gathered::of(split))
    }

    /// Whether the gathering thread must end at this moment.
    pub fn is_short(&self, phase: Phase) -> bool {
        self.kind == FaultKind::Short && self.is_at(phase)
    }

    /// Triggers, if this is the moment.
    ///
    /// # Panics If the fault is a panic.
    pub fn reach(fault: Option<&Self>, phase: Phase) {
        let Some(fault) = fault.filter(|fault| fault.is_at(phase)) else {
            return;
        };
        match fault.kind {
            FaultKind::Leak => lose(LEAKED_BYTES),
            FaultKind::Swell => {
                lose(SWELLED_BYTES);
                hang()
            }
            FaultKind::Panic => panic!("injected fault in {phase}"),
            FaultKind::Kill => {
                #[cfg(unix)]
                let _ = signal_hook::low_level::raise(signal_hook::consts::SIGKILL);
                std::process::abort()
            }
            FaultKind::Hang => {
                tracing::warn!("injected hang in {phase}");
                hang()
            }
            FaultKind::Exhaust => exhaust(),
            FaultKind::Print => print_bytes(),
            // Ending without an error is up to the gathering thread.
            FaultKind::Short => {}
        }
    }
}

/// As a network of an absurd size would.
fn exhaust() {
    const BYTES: usize = 1 << 50;
    std::hint::black_box(Vec::<u8>::with_capacity(std::hint::black_box(BYTES)));
}

/// Bypasses Rust's standard output, as a driver does.
fn print_bytes() {
    const BYTES: &[u8] = b"{\"event\":\xff\xfe a driver's banner without a newline";
    #[cfg(unix)]
    // SAFETY: the buffer has the given length and is valid during the call.
    unsafe {
        libc::write(libc::STDOUT_FILENO, BYTES.as_ptr().cast(), BYTES.len());
    }
    #[cfg(not(unix))]
    let _ = BYTES;
}

/// Touched, so that it is memory and not just an address.
fn lose(bytes: usize) {
    std::mem::forget(std::hint::black_box(vec![1u8; bytes]));
}

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Phase::Loading => write!(f, "loading"),
            Phase::Epoch(epoch) => write!(f, "epoch {epoch}"),
            Phase::Training(step) => write!(f, "step {step}"),
            Phase::Validating(epoch) => write!(f, "the validation of epoch {epoch}"),
            Phase::Checkpointing(step) => write!(f, "the checkpoint of step {step}"),
            Phase::Evaluating => write!(f, "the evaluation"),
            Phase::Gathering(split, piece) => {
                write!(f, "gathering piece {piece} of {}", split.name())
            }
        }
    }
}

impl FromStr for Fault {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Reason> {
        if let Ok(epoch) = text.parse() {
            return Ok(Self {
                phase: Phase::Epoch(epoch),
                kind: FaultKind::Panic,
            });
        }
        let parsed = text.split_once('=').and_then(|(phase, kind)| {
            let (name, number) = phase.split_once(':').unwrap_or((phase, "0"));
            let number = number.parse().ok()?;
            let phase = match name {
                "loading" => Phase::Loading,
                "epoch" => Phase::Epoch(number),
                "training" => Phase::Training(number),
                "validating" => Phase::Validating(number),
                "checkpointing" => Phase::Checkpointing(number),
                "evaluating" => Phase::Evaluating,
                _ => Phase::gathering(name.strip_prefix("gathering_")?, number),
            };
            let kind = match kind {
                "panic" => FaultKind::Panic,
                "kill" => FaultKind::Kill,
                "hang" => FaultKind::Hang,
                "leak" => FaultKind::Leak,
                "swell" => FaultKind::Swell,
                "exhaust" => FaultKind::Exhaust,
                "short" => FaultKind::Short,
                "print" => FaultKind::Print,
                _ => return None,
            };
            Some(Self { phase, kind })
        });
        parsed.ok_or_else(|| {
            Reason(format!(
                "invalid fault `{text}`: use an epoch, or `PHASE:NUMBER=KIND` with a phase of loading, epoch, training, validating, checkpointing, evaluating, gathering_train, gathering_valid, gathering_test and a kind of panic, kill, hang, leak, swell, exhaust, short, print"
            ))
        })
    }
}
