//! A run over all its attempts: when one fails, its plan says whether another follows.

use std::time::{Duration, Instant};

use super::admission::Admission;
use super::cancel::{Cancel, Reason, Urgency, Waited};
use super::hardware::Misfit;
use super::{Settings, Task, child};
use crate::event::{Adjustment, Attempts, Change, Event, FailureClass, Outcome};
use crate::plan::RunPlan;
use crate::spec::failure::Then;
use crate::spec::kind::show_duration;

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
    let started = Instant::now();
    let limit = task.plan.time_limit_secs;
    let limit = limit.and_then(|secs| Duration::try_from_secs_f64(secs).ok());
    let deadline = limit.map(|limit| started + limit);
    let mut attempts = task.attempts.clone();
    let observe = |attempts: &mut Attempts, event: Event| {
        attempts.apply(&event);
        send(event);
    };
    let mut is_first = true;
    loop {
        if let Some(class) = attempts.failed {
            let planned = task.plan.adjusted(&attempts.adjustments);
            let change = match class {
                FailureClass::OutOfMemory => planned.relief(),
                _ => None,
            };
            if let Some(change) = change {
                let adjusted = adjusted(&attempts, change, "it ran out of memory".into());
                observe(&mut attempts, adjusted);
            } else {
                match next(&task.plan, &attempts, class, is_first) {
                    Some((wait, retry)) => {
                        observe(&mut attempts, retry);
                        let outcome = match cancel.pause(run, wait, deadline) {
                            Waited::Through => None,
                            Waited::Cancelled => Some(Outcome::Interrupted),
                            Waited::Late => Some(timeout(&task.plan, &attempts)),
                        };
                        if let Some(outcome) = outcome {
                            observe(&mut attempts, ended(outcome));
                            return give_up(run, &task.plan, &attempts, cancel);
                        }
                    }
                    // The user has it tried again, although nothing is left of its retries.
                    None if is_first => {}
                    None => return give_up(run, &task.plan, &attempts, cancel),
                }
            }
        }
        is_first = false;
        // What is forecast not to fit is changed before it is tried.
        let plan = loop {
            let plan = task.plan.adjusted(&attempts.adjustments);
            match settings.hardware.misfit(&plan) {
                Some(Misfit {
                    change: Some(change),
                    reason,
                    ..
                }) => {
                    let adjusted = adjusted(&attempts, change, reason);
                    observe(&mut attempts, adjusted);
                }
                Some(Misfit {
                    is_certain: true,
                    reason,
                    ..
                }) => {
                    let failed = ended(too_large(&task.plan, &attempts, &reason));
                    observe(&mut attempts, failed);
                    return give_up(run, &task.plan, &attempts, cancel);
                }
                _ => break plan,
            }
        };
        admission.change(run, settings.hardware.claim(&plan));
        match cancel.urgency_of(run) {
            Urgency::None => {}
            // Only the stop of one run is told by it: a stop of everything leaves what was not started as it is.
            _ if cancel.urgency() == Urgency::None => {
                return observe(&mut attempts, ended(Outcome::Interrupted));
            }
            _ => return,
        }
        let adjustments = attempts.adjustments.clone();
        let mut pass_on = |mut event: Event| {
            if let Event::RunFinished { outcome, .. } = &mut event
                && *outcome == Outcome::Interrupted
                && cancel.is_late(run)
            {
                *outcome = timeout(&task.plan, &attempts);
            }
            observe(&mut attempts, event);
        };
        child::run(
            run,
            task,
            (plan.device, &adjustments),
            deadline,
            settings,
            cancel,
            &mut pass_on,
        );
        if attempts.failed.is_none() {
            return;
        }
    }
}

/// The retry that the plan grants after a failure, with the wait before it; none when there is no more.
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
    // A failure of an earlier command is long past: nothing is waited for.
    let wait = match is_first {
        true => Duration::ZERO,
        false => policy.wait(num_before),
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

/// A run has ended for good: its plan may say that all others end too.
fn give_up(run: usize, plan: &RunPlan, attempts: &Attempts, cancel: &Cancel) {
    let Some(class) = attempts.failed else {
        return;
    };
    let policy = plan.on_failure.get(&class);
    if policy.is_some_and(|policy| policy.then == Then::Stop) && cancel.urgency() == Urgency::None {
        cancel.cancel(Urgency::Graceful, Reason::Failure { run, class });
    }
}

/// What is recorded of a change that lets a run fit.
fn adjusted(attempts: &Attempts, change: Change, reason: String) -> Event {
    Event::RunAdjusted {
        adjustment: Adjustment {
            from_step: attempts.checkpoint_step,
            change,
        },
        reason,
    }
}

/// The failure of a run that cannot be made to fit.
fn too_large(plan: &RunPlan, attempts: &Attempts, reason: &str) -> Outcome {
    let help = match (plan.on_exceed.is_empty(), attempts.adjustments.is_empty()) {
        (true, _) => {
            "raise the limit, choose a smaller batch or model, or let `memory.on_exceed` change the run"
        }
        (false, true) => "raise the limit, or choose a smaller batch or model",
        (false, false) => {
            "all that `memory.on_exceed` names was tried: raise the limit, or choose a smaller model"
        }
    };
    Outcome::failed(
        FailureClass::OutOfMemory,
        format!("it was not started: {reason}; {help}"),
    )
}

fn timeout(plan: &RunPlan, attempts: &Attempts) -> Outcome {
    let limit = plan.time_limit_secs.unwrap_or_default();
    let limit = show_duration(Duration::try_from_secs_f64(limit).unwrap_or_default());
    let kept = match attempts.checkpoint_step {
        0 => "no checkpoint was saved, so it will begin from the start".to_owned(),
        step => format!("its checkpoint of step {step} is kept, and it will go on from there"),
    };
    let message = format!(
        "the run passed its limit of {limit} (`limits.run`); {kept}: raise the limit, and run the command again"
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
