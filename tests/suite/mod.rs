//! The tests by what they hold runner to.

mod arrows;
mod bounds;
mod capsules;
mod compare;
mod compose;
mod content;
mod damage;
mod data;
mod devices;
mod diff;
#[cfg(unix)]
mod dispatch;
mod diverging;
mod evaluation;
mod exactness;
mod experiments;
mod exports;
mod failures;
mod files;
mod foreign;
mod generated;
mod graded;
mod identity;
mod index;
mod init;
mod list;
#[cfg(unix)]
mod live;
mod lost;
mod memory;
mod mlflow;
mod models;
mod orphans;
mod pages;
mod parity;
mod pictures;
mod plans;
mod pooled;
mod recipe;
mod refusals;
mod remedies;
mod reproduce;
mod results;
mod rows;
mod runs;
mod schema;
mod serve;
mod short;
mod signals;
mod streams;
pub mod support;
mod sweeps;
mod tables;
mod tamper;
mod tasks;
#[cfg(unix)]
mod terminal;
