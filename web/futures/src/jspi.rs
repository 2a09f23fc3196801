//! Waiting in WebAssembly.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use js_sys::{Function, Promise};

thread_local! {
    /// Whether the future has been woken since it was polled.
    static IS_WOKEN: Cell<bool> = const { Cell::new(false) };
    /// Resolves the promise that is waited for.
    static RESOLVE: RefCell<Option<Function>> = const { RefCell::new(None) };
}

struct Resolve;

impl Wake for Resolve {
    fn wake(self: Arc<Self>) {
        IS_WOKEN.set(true);
        if let Some(resolve) = RESOLVE.take() {
            // It only fails if it throws, which the function of a promise does not.
            let _ = resolve.call0(&resolve);
        }
    }
}

/// The result of a future; pending if JavaScript has not called what waits in a way that can be suspended. The future is
/// not on the stack, which is moved away during a suspension. One wait at a time.
pub fn wait<F: Future>(mut future: Pin<Box<F>>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::new(Resolve));
    loop {
        IS_WOKEN.set(false);
        if let Poll::Ready(found) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Poll::Ready(found);
        }
        if !IS_WOKEN.get() && !suspend() {
            return Poll::Pending;
        }
    }
}

/// Waits until the future is woken; false if WebAssembly cannot wait here.
#[allow(
    deprecated,
    reason = "js-sys calls it experimental, since not every browser has it"
)]
fn suspend() -> bool {
    let woken = Promise::new(&mut |resolve, _| {
        RESOLVE.replace(Some(resolve));
    });
    js_sys::futures::jspi_block_on_promise(&woken).is_ok()
}
