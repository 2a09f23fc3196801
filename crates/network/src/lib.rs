//! A planned network on Burn: its layers, what it is trained by, and what is measured of it.
//!
//! Knows no files, processes, threads or clocks: a [`batch::Batch`] goes in, and losses, gradients and scores come
//! out. [`graph`] makes modules of a plan's layers; tensors carry their rank at run time ([`tensor`]). [`optimizer`] and
//! [`schedule`] make Burn's of a plan's, by the paths of parameters ([`paths`]).

#![warn(missing_docs)]

pub mod batch;
pub mod convolution;
pub mod finite;
pub mod function;
#[cfg(test)]
mod golden;
pub mod gradients;
pub mod graph;
mod initial;
pub mod layer;
pub mod loss;
pub mod network;
pub mod norms;
pub mod optimizer;
pub mod paths;
pub mod schedule;
pub mod scores;
pub mod targets;
pub mod tensor;
#[doc(hidden)]
pub mod testing;
