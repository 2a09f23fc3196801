//! Views of records for people and other programs: reports, comparisons, exports, live progress and the report server.
//! Reads records, and writes text, pages and files next to them.

#![warn(missing_docs)]

pub mod console;
pub mod diff;
pub mod export;
pub mod report;
pub mod serve;
