//! How Burn waits for a device in a browser.
//!
//! Burn has two ways to read a tensor. The one that returns a future would need every function above it to be one too, in
//! a browser and elsewhere. The other one waits, and where nothing can wait, CubeCL polls the future once with this crate's
//! `poll_once`, and gives up if the device has not answered yet. WebGPU never has. But WebAssembly can wait in newer
//! browsers, while JavaScript goes on (JavaScript Promise Integration, JSPI): the crate's feature `jspi` does that.
//!
//! It has what CubeCL uses of the crate of this name, and replaces it in this workspace alone.

#[cfg(feature = "jspi")]
mod jspi;

use std::future::Future;
use std::task::Poll;

/// The result of a future, if it is there at once or can be waited for.
pub fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    #[cfg(feature = "jspi")]
    return jspi::wait(Box::pin(future));
    #[cfg(not(feature = "jspi"))]
    {
        use std::task::{Context, Waker};
        std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }
}
