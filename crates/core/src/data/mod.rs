//! Data sets in host memory: where the files are, what they contain, how they are split.
//!
//! Knows bytes, labels and splits, but neither tensors nor runs. [`locate`] inspects only as much as planning needs;
//! [`load`] reads and checks everything.

pub mod cache;
mod content;
mod download;
pub mod embedded;
pub mod encode;
mod error;
mod exact;
pub mod generate;
pub mod graph;
pub mod idx;
pub mod incoming;
mod item;
mod items;
mod known;
mod load;
mod locate;
mod missing;
pub mod mnist;
mod noise;
mod noticed;
pub mod oddity;
pub mod order;
pub mod origin;
pub mod own;
pub mod picture;
mod plan;
pub mod profile;
pub mod read;
pub mod records;
mod sampler;
pub mod sentinel;
mod series;
pub mod serve;
pub mod split;
mod sums;
pub mod suspects;
pub mod time;
mod transforms;
mod unseen;
pub mod uses;

pub use crate::hash::{hex, sha256_hex, sha256_of};
pub use error::DataError;
pub use graph::{Edges, NodeGraph, Pairs, PairsPart};
pub use item::{Pictures, Places, small_mask};
pub use items::{Inputs, Items, TargetValues};
pub use known::{Trust, file_digest, program_digest};
pub use load::{Loaded, load, load_by};
pub use locate::{DECODED, DownloadProgress, Folders, Located, locate};
pub use noticed::{ClassCount, ClassCounts, Noticed};
pub use plan::{
    DataPlan, Dataset, DrawnPlan, GraphPlan, InputPart, InputPlan, MAX_DIMS, PairsPlan, TargetPlan,
};
pub use sampler::epoch_order;
pub use serve::{Mixed, Moment, Served, Set, Split, Values, decisive_of};
pub use transforms::Transforms;
