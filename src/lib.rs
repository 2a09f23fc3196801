//! A declarative deep-learning experiment runner on Burn.
//!
//! The flow is one way: a file is read into a document, decoded, checked and planned; its runs are
//! trained in processes of their own, which send events; the events are recorded, and reports are made
//! from the record alone. `ARCHITECTURE.md` says which module may use which.

#![warn(missing_docs)]

pub mod check;
pub mod cli;
pub mod console;
pub mod data;
pub mod diagnostic;
pub mod diff;
pub mod dispatch;
pub mod event;
pub mod export;
pub mod init;
pub mod parity;
pub mod plan;
pub mod record;
pub mod report;
pub mod reproduce;
pub mod serve;
pub mod spec;
pub mod stamp;
pub mod statistics;
pub mod train;
