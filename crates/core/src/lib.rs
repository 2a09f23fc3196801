//! From the text of an experiment file to its plan, and from events to records: everything that needs no tensor.
//!
//! The flow is one way: [`spec`] reads and decodes a document, [`check`] and [`plan`] turn it into runs, inspecting
//! [`data`] only as far as shapes need; a run sends [`event`]s, which [`record`] stores. [`reproduce`] and [`parity`]
//! compare numbers. [`init`] writes a first experiment file for data.

#![warn(missing_docs)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests read what they wrote")
)]

pub mod check;
pub mod data;
pub mod diagnostic;
pub mod disk;
pub mod event;
pub mod hash;
pub mod init;
pub mod int8;
pub mod parity;
pub mod plan;
pub mod predict;
pub mod record;
pub mod reproduce;
pub mod show;
pub mod spec;
pub mod stamp;
pub mod table;
#[cfg(test)]
mod testing;
