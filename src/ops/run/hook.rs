//! What a program of its own does at each event of a training.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::ops::{Progress, Sink};
use runner_core::diagnostic::Diagnostic;
use runner_core::event::Event;
use runner_core::plan::RunPlan;
use runner_core::spec::own;

type OnEvent = dyn Fn(&RunPlan, &Event) + Send + Sync;

/// What [`Runner::on_event`](crate::Runner::on_event) is given.
pub(crate) struct Hook(pub(crate) Box<OnEvent>);

impl Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

/// Runs an operation, and the program's hook at each event that it has recorded. A hook that panicked is not called
/// again: it changes neither records nor the exit code.
pub(super) fn called<T>(sink: &Sink<'_>, operation: impl FnOnce(&Sink<'_>) -> T) -> T {
    let hook = own::on_event().and_then(|hook| hook.downcast_ref::<Hook>());
    let Some(Hook(hook)) = hook else {
        return operation(sink);
    };
    let has_panicked = AtomicBool::new(false);
    operation(&|progress| {
        if let Progress::Event { plan, event, .. } = &progress
            && !has_panicked.load(Ordering::Relaxed)
            && let Err(payload) = catch_unwind(AssertUnwindSafe(|| hook(plan, event)))
        {
            has_panicked.store(true, Ordering::Relaxed);
            let message = own::panicked("hook", "on_event", "and is not called again", &*payload);
            sink(Progress::Warning(&Diagnostic::warning("own-part", message)));
        }
        sink(progress);
    })
}
