//! A declarative deep-learning experiment runner on Burn.
//!
//! The flow is one way: a file is read into a document, decoded, checked and planned; its runs are
//! trained in processes of their own, which send events; the events are recorded, and reports are made
//! from the record alone. `ARCHITECTURE.md` says which crate and module may use which.
//!
//! [`ops`] has what programs call: one function for each verb of the command line.

#![warn(missing_docs)]

pub mod cli;
pub mod dispatch;
pub mod error;
pub mod model;
pub mod ops;
pub mod train;

pub use error::Error;
pub use model::Model;
pub use runner_core::{
    check, data, diagnostic, event, init, parity, plan, predict, record, reproduce, spec, stamp,
};
pub use runner_report::{console, diff, export, report, serve};
pub use runner_statistics as statistics;
