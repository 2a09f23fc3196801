//! Panics in the code of parts: they become messages, so that nothing else is printed about them.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    /// Whether this thread runs code of a part.
    static IS_IN_PART: Cell<bool> = const { Cell::new(false) };
    /// Where the last panic of a part on this thread was.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Keeps the place of a panic in a part for its message, instead of printing it. A worker has a hook of its own, which
/// writes to the log of its run.
pub(super) fn tell_by_message() {
    let others = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if !IS_IN_PART.get() {
            return others(info);
        }
        let place = info
            .location()
            .map(|at| format!("{}:{}", at.file(), at.line()));
        PLACE.with_borrow_mut(|last| *last = place);
    }));
}

/// A payload, and the place of the panic if it is known.
type Panicked = (Box<dyn Any + Send>, Option<String>);

/// Runs code of a part.
pub(super) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Panicked> {
    let is_inside = IS_IN_PART.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(run));
    IS_IN_PART.set(is_inside);
    done.map_err(|payload| (payload, PLACE.take()))
}
