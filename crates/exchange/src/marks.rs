//! The values that mean missing in the files that a run was trained on, and the columns that must not lack one.

use std::collections::BTreeSet;

use runner_core::data::DataPlan;
use runner_core::data::records::Column;
use runner_core::spec::data::{FilesSpec, Format, Missing};

/// The values that mean missing, by column. New values may have them too.
#[derive(Clone, Copy, Debug)]
pub struct Marks<'a>(Option<&'a FilesSpec>);

impl<'a> Marks<'a> {
    /// Those of a run's data.
    pub fn of(data: &'a DataPlan) -> Self {
        Self(data.files())
    }

    /// Whether an item without a value in a column is refused.
    pub fn is_needed(self, column: &str) -> bool {
        let policy = |files: &FilesSpec| files.roles.missing_of(column);
        !self.0.map_or(Missing::Refuse, policy).is_filled()
    }

    /// Whether shorter lists of numbers in a column of rows are filled up with missing ones, as the run does.
    pub fn is_filled_up(self, column: &Column) -> bool {
        let files = self.0.filter(|files| !has_arrays(files));
        files.is_some_and(|files| column.is_filled_up(&files.roles))
    }

    /// The texts that mean missing in a column of rows.
    pub fn texts(self, column: &str) -> BTreeSet<&'a str> {
        let files = self.0.filter(|files| !has_arrays(files));
        files.map_or_else(BTreeSet::new, |files| {
            files.missing_values_of(column).collect()
        })
    }

    /// The numbers that mean missing in a column, also within arrays and lists.
    pub fn numbers(self, column: &str) -> Vec<f64> {
        self.0
            .map_or_else(Vec::new, |files| files.missing_numbers_of(column))
    }

    /// The same as 32-bit floats.
    pub fn elements(self, column: &str) -> Vec<f32> {
        let numbers = self.numbers(column).into_iter();
        numbers.map(|number| number as f32).collect()
    }
}

/// Files of arrays have no values but their elements.
fn has_arrays(files: &FilesSpec) -> bool {
    matches!(
        files.format,
        Format::Npy { .. } | Format::Npz | Format::Safetensors | Format::Idx { .. }
    )
}
