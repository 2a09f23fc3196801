//! The tests by what they hold runner to.

mod arrows;
mod compose;
mod damage;
mod data;
mod experiments;
mod failures;
mod files;
mod generated;
mod init;
mod models;
mod pictures;
mod plans;
mod recipe;
mod refusals;
mod results;
mod runs;
mod schema;
pub mod support;
mod sweeps;
mod tasks;
