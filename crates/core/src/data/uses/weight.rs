//! The column of the weights of items.

use super::Uses;
use crate::data::DataError;
use crate::data::records::{ColumnKind, Records};

impl Uses {
    /// Refuses a column that has another use, or whose values cannot be weights.
    pub(super) fn check_weight(
        &self,
        ignored: &[usize],
        records: &Records,
    ) -> Result<(), DataError> {
        let Some(at) = self.weight else {
            return Ok(());
        };
        let column = &records.columns()[at];
        let name = &column.name;
        let refuse = |message: String, help: &str| {
            let error = DataError::new(message).key("data.weight");
            Err(error.help(help))
        };
        let uses = [
            (self.features.contains(&at), "features"),
            (self.all_targets().any(|target| target == at), "target"),
            (ignored.contains(&at), "ignore"),
        ];
        if let Some((_, key)) = uses.into_iter().find(|(is_used, _)| *is_used) {
            return refuse(
                format!("`{name}` is both in `weight` and in `{key}`"),
                "remove it from one of them",
            );
        }
        let is_number = matches!(
            column.kind,
            ColumnKind::Bytes | ColumnKind::Numbers | ColumnKind::Doubles | ColumnKind::Whole
        );
        if !is_number || column.len() != 1 {
            return refuse(
                format!("the weights `{name}` are not one number for each item"),
                "use a column of numbers",
            );
        }
        let extent = records.header.extents[at];
        match (extent.min, extent.max) {
            (Some(min), _) if min < 0.0 => refuse(
                format!("the weights `{name}` contain {min}, but a weight is 0 or more"),
                "fix the file, or use another column",
            ),
            (_, Some(0.0)) => refuse(
                format!("the weights `{name}` are all 0"),
                "use another column, or remove `weight`",
            ),
            _ => Ok(()),
        }
    }
}
