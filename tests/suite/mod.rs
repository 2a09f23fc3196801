//! The tests by what they hold runner to.

mod arrows;
mod capsules;
mod compare;
mod compose;
mod damage;
mod data;
mod devices;
mod diff;
#[cfg(unix)]
mod dispatch;
mod evaluation;
mod exactness;
mod experiments;
mod exports;
mod failures;
mod files;
mod generated;
mod graded;
mod index;
mod init;
mod list;
#[cfg(unix)]
mod live;
mod memory;
mod mlflow;
mod models;
mod pages;
mod parity;
mod pictures;
mod plans;
mod pooled;
mod recipe;
mod refusals;
mod reproduce;
mod results;
mod rows;
mod runs;
mod schema;
mod serve;
pub mod support;
mod sweeps;
mod tasks;
#[cfg(unix)]
mod terminal;
