//! A declarative deep-learning experiment runner on Burn.
//!
//! The flow is one way: a file is read into a document, decoded, checked and planned; each of its runs is trained in a
//! separate process, which sends events; the events are recorded, and reports are built only from the record.
//! `ARCHITECTURE.md` lists which crate and module may use which.
//!
//! [`ops`] is the API for programs: one function per verb of the command line.

#![warn(missing_docs)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests read what they wrote")
)]

pub mod cli;
pub mod dispatch;
pub mod error;
pub mod model;
pub mod ops;
pub mod parts;
pub mod program;
pub mod service;
pub mod train;

pub use error::Error;
pub use model::Model;
pub use program::Runner;
pub use runner_core::{
    check, data, diagnostic, event, init, parity, plan, predict, record, reproduce, spec, stamp,
};
pub use runner_exchange as exchange;
pub use runner_report::{console, diff, export, report, serve};
pub use runner_statistics as statistics;
