//! Weights and networks in the formats of other programs.
//!
//! A format is read into, and written from, [`tensors::Tensors`]. Readers and writers work on bytes; the callers know
//! which file they belong to and how a network uses them. Every input is untrusted: sizes are checked before anything
//! is allocated for them.

#![warn(missing_docs)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests read what they wrote")
)]

pub mod constant;
pub mod delta;
pub mod error;
mod folded;
pub mod hub;
pub mod init;
pub mod marks;
pub mod onnx;
pub mod peft;
pub mod read;
pub mod slots;
pub mod state;
pub mod tensors;
pub mod torch;
pub mod windows;
pub mod write;
