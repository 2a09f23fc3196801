//! The tests by what they hold runner to.

mod arrows;
mod capsules;
mod compare;
mod compose;
mod damage;
mod data;
mod devices;
#[cfg(unix)]
mod dispatch;
mod evaluation;
mod exactness;
mod experiments;
mod failures;
mod files;
mod generated;
mod init;
#[cfg(unix)]
mod live;
mod memory;
mod models;
mod pages;
mod parity;
mod pictures;
mod plans;
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
