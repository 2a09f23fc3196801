//! Views of records for people and other programs: reports, comparisons, exports, live progress and the report server.
//! Reads records, and writes text, pages and files next to them.

#![warn(missing_docs)]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests read what they wrote")
)]

#[cfg(feature = "native")]
pub mod console;
#[cfg(feature = "native")]
pub mod diff;
#[cfg(feature = "native")]
pub mod export;
pub mod rates;
pub mod report;
#[cfg(feature = "native")]
pub mod serve;
pub mod sheet;
