//! What a program of one's own is written with: a type for each part, which [`Runner`](crate::Runner) registers.
//!
//! `examples/own-parts` is a program with one part of each kind, and the manual's chapter on extending explains it.

pub use burn::tensor::Device;
pub use runner_core::data::Items;
pub use runner_core::data::own::DataPart;
pub use runner_core::spec::kind::Kind;
pub use runner_core::spec::own::{Dims, LayerExample, Place, SchedulePart, Unfit};
pub use runner_core::spec::section::{Choice, Field, Section};
pub use runner_core::spec::task::TaskKind;
pub use runner_network::own::{LayerPart, LossPart, LossTargets, MetricPart, OptimizerPart};
pub use runner_network::own::{StrategyPart, Update};
pub use runner_network::tensor::{DynTensor, map_rank};

#[cfg(doctest)]
mod incomplete;
