//! Ends runs from outside: for the user, for a time limit, or because another run has failed.
//!
//! A worker is first asked to stop, by closing its leash. For a time limit, it is killed if it has not ended after
//! [`GRACE`].

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, ChildStdin, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use runner_core::event::FailureClass;

/// How long a worker may take to stop after a time limit.
pub const GRACE: Duration = Duration::from_secs(10);

/// How often the clock is checked.
const TICK: Duration = Duration::from_millis(50);

/// How urgently everything must end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Not at all.
    #[default]
    None,
    /// Runs save a checkpoint and stop; no run starts.
    Graceful,
    /// Runs are killed.
    AtOnce,
}

/// Why everything must end.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// The user requested it.
    User,
    /// The experiment exceeded its time limit.
    TimeLimit,
    /// A run has failed, by its index among those dispatched, and its plan says to stop then.
    Failure {
        /// The run.
        run: usize,
        /// The class of the failure.
        class: FailureClass,
    },
    /// Events cannot be recorded.
    NotRecorded,
}

/// Ends runs from outside.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes threads that wait for time to pass.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    urgency: Urgency,
    reason: Option<Reason>,
    running: Vec<Option<Running>>,
    /// Runs that exceeded their time limit.
    late: BTreeSet<usize>,
    /// Runs that the user ends individually, and how urgently.
    stopped: BTreeMap<usize, Urgency>,
    /// Active runs continue, and no other starts.
    starts_no_more: bool,
    /// Nothing is left to watch.
    is_over: bool,
}

/// A worker's process. Its standard input is a leash: when it closes, the worker stops gracefully, also if this program
/// was killed.
struct Running {
    child: Child,
    leash: Option<ChildStdin>,
    /// The time limit of the run.
    deadline: Option<Instant>,
    /// When it is killed if it is still running.
    kill_at: Option<Instant>,
    is_killed: bool,
}

/// How a worker's process ended.
pub(super) struct Ended {
    pub(super) status: Option<ExitStatus>,
    /// This program killed it.
    pub(super) is_killed: bool,
}

/// How the delay before a retry ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// The delay is over.
    Through,
    /// The run must end, or everything must.
    Cancelled,
    /// The run exceeded its time limit.
    Late,
}

impl Cancel {
    /// Ends all runs, with at least this urgency. The first reason is kept, unless the user gives one.
    pub fn cancel(&self, urgency: Urgency, reason: Reason) {
        let mut state = self.lock();
        state.urgency = state.urgency.max(urgency);
        if state.reason.is_none() || reason == Reason::User {
            state.reason = Some(reason);
        }
        // Only the user can escalate; nothing else will.
        let kill_at = (state.reason != Some(Reason::User)).then(|| Instant::now() + GRACE);
        for running in state.running.iter_mut().flatten() {
            running.leash = None;
            running.kill_at = running.kill_at.or(kill_at);
            if urgency == Urgency::AtOnce {
                running.kill();
            }
        }
        self.0.changed.notify_all();
    }

    /// Ends one run for the user without affecting the others: it saves a checkpoint and stops. The second time, it is
    /// killed. Returns its urgency.
    pub fn stop(&self, run: usize) -> Urgency {
        let mut state = self.lock();
        let urgency = match state.stopped.get(&run) {
            None => Urgency::Graceful,
            Some(_) => Urgency::AtOnce,
        };
        state.stopped.insert(run, urgency);
        if let Some(running) = state.running.get_mut(run).and_then(Option::as_mut) {
            running.leash = None;
            if urgency == Urgency::AtOnce {
                running.kill();
            }
        }
        self.0.changed.notify_all();
        urgency
    }

    /// Lets the active runs finish, including their retries, and starts no other.
    pub fn start_no_more(&self) {
        self.lock().starts_no_more = true;
    }

    /// Whether a waiting run may start.
    pub fn may_start(&self) -> bool {
        let state = self.lock();
        state.urgency == Urgency::None && !state.starts_no_more
    }

    /// The current urgency of everything.
    pub fn urgency(&self) -> Urgency {
        self.lock().urgency
    }

    /// The urgency of a run: with everything, or individually.
    pub(super) fn urgency_of(&self, run: usize) -> Urgency {
        self.lock().urgency_of(run)
    }

    /// Why not everything was trained that could have been, if there is a reason.
    pub fn reason(&self) -> Option<Reason> {
        let state = self.lock();
        let by_user = state.starts_no_more || !state.stopped.is_empty();
        state.reason.clone().or(by_user.then_some(Reason::User))
    }

    pub(super) fn expect(&self, num_runs: usize) {
        let mut state = self.lock();
        // An earlier dispatch may have used the same canceller.
        state.is_over = false;
        state.running.clear();
        state.running.resize_with(num_runs, || None);
        state.late.clear();
    }

    /// Registers a worker.
    pub(super) fn hold(&self, run: usize, mut child: Child, deadline: Option<Instant>) {
        let mut state = self.lock();
        // Handles a cancellation between the check and the start.
        let urgency = state.urgency_of(run);
        let leash = child.stdin.take().filter(|_| urgency == Urgency::None);
        let is_pressed = state.reason.as_ref().is_some_and(|r| *r != Reason::User);
        let mut running = Running {
            child,
            leash,
            deadline,
            kill_at: is_pressed.then(|| Instant::now() + GRACE),
            is_killed: false,
        };
        if urgency == Urgency::AtOnce {
            running.kill();
        }
        state.running[run] = Some(running);
    }

    /// Whether a run exceeded its time limit.
    pub(super) fn is_late(&self, run: usize) -> bool {
        self.lock().late.contains(&run)
    }

    /// Waits for a worker that has closed its output. It stays registered until it has ended, so that it can still be
    /// killed.
    pub(super) fn wait(&self, run: usize) -> Ended {
        let mut pause = Duration::from_millis(1);
        loop {
            let mut state = self.lock();
            let Some(running) = &mut state.running[run] else {
                return Ended {
                    status: None,
                    is_killed: false,
                };
            };
            let status = running.child.try_wait();
            if !matches!(status, Ok(None)) {
                let ended = Ended {
                    status: status.ok().flatten(),
                    is_killed: running.is_killed,
                };
                state.running[run] = None;
                return ended;
            }
            drop(state);
            std::thread::sleep(pause);
            pause = (pause * 2).min(TICK);
        }
    }

    /// Waits before a retry.
    pub(super) fn pause(&self, run: usize, time: Duration, deadline: Option<Instant>) -> Waited {
        let until = Instant::now() + time;
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            if state.urgency_of(run) != Urgency::None {
                return Waited::Cancelled;
            }
            if deadline.is_some_and(|deadline| now >= deadline) {
                return Waited::Late;
            }
            if now >= until {
                return Waited::Through;
            }
            let end = deadline.map_or(until, |deadline| deadline.min(until));
            state = self.sleep(state, end - now);
        }
    }

    /// Checks the clock until all runs have ended: stops runs that exceed their time limit, and everything if the
    /// experiment does.
    pub(super) fn watch(&self, mut experiment: Option<Instant>) {
        loop {
            let now = Instant::now();
            if experiment.is_some_and(|deadline| now >= deadline) {
                experiment = None;
                match self.urgency() {
                    Urgency::None => self.cancel(Urgency::Graceful, Reason::TimeLimit),
                    _ => {
                        let mut state = self.lock();
                        let running = state.running.iter_mut().flatten();
                        running.for_each(|r| r.kill_at = r.kill_at.or(Some(now + GRACE)));
                    }
                }
            }
            let mut state = self.lock();
            if state.is_over {
                return;
            }
            let State { running, late, .. } = &mut *state;
            for (run, running) in running.iter_mut().enumerate() {
                let Some(running) = running else { continue };
                let is_late = running.deadline.is_some_and(|deadline| now >= deadline);
                if is_late && running.kill_at.is_none() {
                    late.insert(run);
                    running.leash = None;
                    running.kill_at = Some(now + GRACE);
                }
                if running.kill_at.is_some_and(|kill_at| now >= kill_at) {
                    running.kill();
                }
            }
            drop(self.sleep(state, TICK));
        }
    }

    /// Ends the watch when dropped, also by a panic.
    pub(super) fn while_watched(&self) -> impl Drop {
        struct Ends(Cancel);
        impl Drop for Ends {
            fn drop(&mut self) {
                self.0.lock().is_over = true;
                self.0.0.changed.notify_all();
            }
        }
        Ends(self.clone())
    }

    fn sleep<'a>(&'a self, state: MutexGuard<'a, State>, time: Duration) -> MutexGuard<'a, State> {
        let slept = self.0.changed.wait_timeout(state, time);
        slept.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn urgency_of(&self, run: usize) -> Urgency {
        let alone = self.stopped.get(&run).copied();
        self.urgency.max(alone.unwrap_or_default())
    }
}

impl Running {
    /// Kills the worker and all processes that it has started. If it has already ended, there is nothing to kill.
    fn kill(&mut self) {
        self.leash = None;
        if self.is_killed {
            return;
        }
        self.is_killed = true;
        #[cfg(unix)]
        if let Ok(id) = libc::pid_t::try_from(self.child.id()) {
            // SAFETY: `kill` takes no pointers. The worker leads its own process group, and is not waited for while it
            // is registered: so the number still means this group.
            unsafe { libc::kill(-id, libc::SIGKILL) };
        }
        let _ = self.child.kill();
    }
}
