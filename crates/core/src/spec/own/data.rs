//! Data sources of the program.

use std::any::Any;

use super::{Entry, OrOwn, Part, Parts};
use crate::spec::data::DataKind;

/// A data source of the program.
#[derive(Clone, Copy)]
pub struct OwnData {
    /// Its name and keys.
    pub entry: Entry,
    /// What the module of data gets the items with.
    pub module: &'static (dyn Any + Send + Sync),
}

impl Part for OwnData {
    const KIND: &'static str = "data source";

    fn of(parts: &Parts) -> &[Self] {
        &parts.data
    }

    fn entry(&self) -> &Entry {
        &self.entry
    }
}

/// A data source, built in or of the program.
pub type AnyData = OrOwn<DataKind, OwnData>;
