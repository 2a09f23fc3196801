//! The tests by what they hold runner to.

mod arrows;
mod compose;
mod data;
mod experiments;
mod generated;
mod models;
mod plans;
mod recipe;
mod refusals;
mod results;
mod runs;
pub mod support;
mod tasks;
