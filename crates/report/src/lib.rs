//! What people and other programs see of records: reports, comparisons, exports, live progress and the report
//! server. Reads records, and writes text, pages and files beside them.

#![warn(missing_docs)]

pub mod console;
pub mod diff;
pub mod export;
pub mod report;
pub mod serve;
