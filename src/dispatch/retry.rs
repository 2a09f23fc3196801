//! A run over all its attempts: after a failure, its plan decides whether another follows.

use std::time::{Duration, Instant};

use super::admission::Admission;
use super::cancel::{Cancel, Reason, Urgency, Waited};
use super::hardware::{Hardware, Misfit};
use super::{Settings, Task, child};
use runner_core::event::{Adjustment, Attempts, Change, Event, FailureClass, Outcome};
use runner_core::plan::{Basis, RunPlan};
use runner_core::show::show_duration;
use runner_core::spec::failure::Then;

/// Signals that terminate a process.
const SIGHUP: i32 = 1;
const SIGTERM: i32 = 15;

/// Makes attempts at a task until it is completed, stopped, or failed for good.
pub fn run(
    run: usize,
    task: &Task,
    settings: &Settings,
    (cancel, admission): (&Cancel, &Admission),
    send: &dyn Fn(Event),
) {
    if let Some(reason) = &task.plan.skip {
        let reason = reason.clone();
        return send(ended(Outcome::Skipped { reason }));
    }
    let limit = task.plan.time_limit_secs;
    let limit = limit.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
    let mut course = Course {
        run,
        task,
        hardware: &settings.hardware,
        cancel,
        send,
        deadline: limit.map(|limit| Instant::now() + limit),
        attempts: task.attempts.clone(),
    };
    let mut is_first = true;
    loop {
        if let Some(class) = course.attempts.failed
            && !course.goes_on_after(class, is_first)
        {
            return;
        }
        is_first = false;
        let Some(plan) = course.made_to_fit() else {
            return;
        };
        let card = course.wait_for_room(&plan, admission);
        match cancel.urgency_of(run) {
            Urgency::None => {}
            // Only an individual stop is reported; a stop of everything leaves runs that were not started unchanged.
            _ if cancel.urgency() == Urgency::None => {
                return course.observe(ended(Outcome::Interrupted));
            }
            _ => return,
        }
        course.report_forecast(&plan);
        let adjustments = course.attempts.adjustments.clone();
        let deadline = course.deadline;
        child::run(
            run,
            task,
            (
                plan.device,
                course.hardware.visible(plan.device, &card),
                &adjustments,
            ),
            deadline,
            settings,
            cancel,
            &mut |event| course.observe_worker(event),
        );
        if course.attempts.failed.is_none() {
            return;
        }
    }
}

/// A run and its attempts.
struct Course<'a> {
    run: usize,
    task: &'a Task,
    hardware: &'a Hardware,
    cancel: &'a Cancel,
    send: &'a dyn Fn(Event),
    /// The time limit.
    deadline: Option<Instant>,
    attempts: Attempts,
}

impl Course<'_> {
    fn observe(&mut self, event: Event) {
        self.attempts.apply(&event);
        (self.send)(event);
    }

    /// The outcome of a worker; a stop by the run's time limit is reported as such. A signal to the worker that
    /// accompanies a stop of its runner, as at shutdown, is not a separate failure.
    fn observe_worker(&mut self, mut event: Event) {
        if let Event::RunFinished { outcome, .. } = &mut event
            && let Outcome::Failed {
                class: FailureClass::Killed,
                signal: Some(SIGHUP | SIGTERM),
                ..
            } = outcome
            && self.cancel.urgency_of(self.run) != Urgency::None
        {
            *outcome = Outcome::Interrupted;
        }
        if let Event::RunFinished { outcome, .. } = &mut event
            && *outcome == Outcome::Interrupted
            && self.cancel.is_late(self.run)
        {
            *outcome = timeout(&self.task.plan, &self.attempts);
        }
        self.observe(event);
    }

    /// The run after its adjustments.
    fn plan(&self) -> RunPlan {
        self.task.plan.adjusted(&self.attempts.adjustments)
    }

    /// Whether another attempt follows a failure, after its delay.
    fn goes_on_after(&mut self, class: FailureClass, is_first: bool) -> bool {
        if class == FailureClass::OutOfMemory
            && let Some(change) = self.plan().relief()
        {
            self.adjust(change, "it ran out of memory".into());
            return true;
        }
        let next = next(&self.task.plan, &self.attempts, class, is_first);
        // The time is over; if a retry is left, another job of the cluster makes it, with a new limit.
        if class == FailureClass::Timeout && !is_first {
            if next.is_none() || self.task.shown.is_none() {
                self.give_up();
            }
            return false;
        }
        let Some((wait, retry)) = next else {
            // A user retries it although no retry is left.
            if !is_first {
                self.give_up();
            }
            return is_first;
        };
        self.observe(retry);
        let outcome = match self.cancel.pause(self.run, wait, self.deadline) {
            Waited::Through => return true,
            Waited::Cancelled => Outcome::Interrupted,
            Waited::Late => timeout(&self.task.plan, &self.attempts),
        };
        self.observe(ended(outcome));
        self.give_up();
        false
    }

    /// The run, changed until it is no longer forecast to be too large; none if it certainly is and nothing is left to
    /// change.
    fn made_to_fit(&mut self) -> Option<RunPlan> {
        loop {
            let plan = self.plan();
            let Some(misfit) = self.hardware.misfit(&plan) else {
                return Some(plan);
            };
            let Misfit { reason, help, .. } = misfit;
            match misfit.change {
                Some(change) => self.adjust(change, reason),
                None if misfit.is_certain => {
                    let message = format!("it was not started: {reason}; {help}");
                    self.observe(ended(Outcome::failed(FailureClass::OutOfMemory, message)));
                    self.give_up();
                    return None;
                }
                None => return Some(plan),
            }
        }
    }

    /// Waits until the run fits next to the active ones, and returns its hardware. This does not count as its time.
    fn wait_for_room(&mut self, plan: &RunPlan, admission: &Admission) -> String {
        let since = Instant::now();
        let card = admission.change(self.run, self.hardware.claim(plan));
        self.deadline = self.deadline.map(|deadline| deadline + since.elapsed());
        card
    }

    /// Reports the expected memory of the attempt, if a measurement predicts it.
    fn report_forecast(&mut self, plan: &RunPlan) {
        let expected = self.hardware.expected(plan);
        if expected.basis != Basis::Counted {
            self.observe(Event::MemoryCalibrated {
                forecast_bytes: expected.bytes,
            });
        }
    }

    /// Changes the run from its newest checkpoint on.
    fn adjust(&mut self, change: Change, reason: String) {
        let adjustment = Adjustment {
            from_step: self.attempts.checkpoint_step,
            change,
        };
        self.observe(Event::RunAdjusted { adjustment, reason });
    }

    /// The run has ended for good: its plan may say that all others end too.
    fn give_up(&self) {
        let Some(class) = self.attempts.failed else {
            return;
        };
        let (run, cancel) = (self.run, self.cancel);
        let policy = self.task.plan.on_failure.get(&class);
        if policy.is_some_and(|policy| policy.then == Then::Stop)
            && cancel.urgency() == Urgency::None
        {
            cancel.cancel(Urgency::Graceful, Reason::Failure { run, class });
        }
    }
}

/// The retry that the plan grants after a failure, with its delay; none if no retry is left.
fn next(
    plan: &RunPlan,
    attempts: &Attempts,
    class: FailureClass,
    is_first: bool,
) -> Option<(Duration, Event)> {
    let policy = *plan.on_failure.get(&class)?;
    let num_before = attempts.num_retries(class);
    if num_before >= policy.retries {
        return None;
    }
    // A failure of an earlier command is long past: there is no delay.
    let wait = if is_first {
        Duration::ZERO
    } else {
        policy.wait(num_before)
    };
    let factor = policy.learning_rate_factor;
    let retry = Event::RunRetried {
        attempt: num_before + 1,
        class,
        after_secs: wait.as_secs_f64(),
        adjustment: factor.map(|learning_rate_factor| Adjustment {
            from_step: attempts.checkpoint_step,
            change: Change::LearningRateFactor(learning_rate_factor),
        }),
    };
    Some((wait, retry))
}

fn timeout(plan: &RunPlan, attempts: &Attempts) -> Outcome {
    let limit = plan.time_limit_secs.unwrap_or_default();
    let limit = show_duration(Duration::try_from_secs_f64(limit).unwrap_or_default());
    let kept = match attempts.checkpoint_step {
        0 => "no checkpoint was saved, so it will restart from the beginning".to_owned(),
        step => format!("its checkpoint of step {step} is kept, and it will resume from there"),
    };
    let message = format!(
        "the run exceeded its limit of {limit} (`limits.run`); {kept}: raise the limit, and run the command again"
    );
    Outcome::failed(FailureClass::Timeout, message)
}

fn ended(outcome: Outcome) -> Event {
    Event::RunFinished {
        outcome,
        wall_secs: 0.0,
        weights_digest: String::new(),
    }
}
