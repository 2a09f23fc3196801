//! A planned network on Burn: its layers, its training components, and its metrics.
//!
//! Knows no files, processes, threads or clocks: a [`batch::Batch`] goes in, and losses, gradients and scores come out.
//! [`graph`] turns a plan's layers into modules; tensors carry their rank at run time ([`tensor`]). [`optimizer`] and
//! [`schedule`] translate a plan's into Burn's, by the paths of parameters ([`paths`]). What a training does between
//! them is here too ([`trained`], [`sums`], [`state`]): the program drives it through Burn's learner, and [`trainer`]
//! one step at a time, where there are no threads.

#![warn(missing_docs)]

#[cfg(feature = "flex")]
pub use runner_kernels::{Instructions, instructions, limit, stay_awake};

pub mod adversarial;
pub mod attention;
pub mod batch;
mod batch_norm;
pub mod blocks;
pub mod convolution;
pub mod copies;
mod deform;
pub mod digest;
mod dlinoss;
mod documents;
mod draws;
mod dropout;
mod einsum;
pub mod evaluation;
pub mod failure;
#[cfg(feature = "flex")]
pub mod fast;
pub mod finite;
mod fourier;
pub mod function;
#[cfg(all(test, feature = "flex"))]
mod golden;
pub mod gradients;
pub mod graph;
mod grid;
pub mod held;
pub mod hybrid;
mod initial;
pub mod layer;
pub mod leaves;
pub mod lora;
pub mod loss;
pub mod masks;
pub mod message;
pub mod network;
pub mod noise;
pub mod norms;
pub mod numeric;
pub mod optimizer;
pub mod own;
pub mod padding;
pub mod parametrization;
pub mod past;
pub mod paths;
mod rms_norm;
pub mod saved;
mod scan;
pub mod schedule;
pub mod scores;
pub mod serve;
pub mod sliced;
mod sparse;
pub mod state;
pub mod stepwise;
pub mod sums;
pub mod targets;
pub mod teacher;
pub mod tensor;
#[doc(hidden)]
pub mod testing;
pub mod trained;
pub mod trainer;
pub mod transformer;
pub mod updates;
pub mod values;

// Named by the derivation of states of optimizers.
use burn::optim::{RecordState, StateSink, StateSource, join_path};
