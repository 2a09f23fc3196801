//! Targets whose transform has no value.

use crate::data::DataError;
use crate::data::encode::{Encoder, Nonlinear, TargetEncoder};
use crate::data::missing::item_place;
use crate::data::read::tables::first_place;
use crate::data::records::Records;
use crate::diagnostic::counted;
use crate::spec::data::FilesSpec;

/// Refuses targets whose transform has no value, with the place of the first.
pub(super) fn refuse_targets(
    files: &FilesSpec,
    records: &Records,
    encoder: &Encoder,
    left_out: &[bool],
) -> Result<(), DataError> {
    let targets = [&encoder.target].into_iter().chain(&encoder.more_targets);
    let targets: Vec<&TargetEncoder> = targets.collect();
    let kept = (0..records.len()).filter(|row| !left_out[*row]);
    let mut wrong = kept.filter_map(|row| {
        let refused = targets.iter().find_map(|of| of.refused(records, row))?;
        Some((row, refused))
    });
    let Some((row, (column, value, nonlinear))) = wrong.next() else {
        return Ok(());
    };
    let name = &records.columns()[column].name;
    let is_such = |text: Option<&str>| {
        let value = text.and_then(|text| text.trim().parse::<f64>().ok());
        value.is_some_and(|value| nonlinear.refusal(value).is_some())
    };
    let place = first_place(files, name, &is_such);
    let place = place.unwrap_or_else(|| item_place(files, records, row));
    let reason = nonlinear.refusal(value).unwrap_or_default();
    let num = 1 + wrong.count();
    let error = DataError::new(format!(
        "{place}: the target `{name}` is {value}, which {reason}"
    ))
    .key("data.target_transform")
    .note(format!(
        "{} of {} have such a target",
        counted(num, "item"),
        records.len()
    ));
    // The least number of all items decides which transforms are left.
    let is_above = |bound: f64| records.header.extents[column].min > Some(bound);
    Err(match nonlinear {
        Nonlinear::Log if is_above(-1.0) => {
            error.help("use `target_transform = \"log1p\"`, or fix the file")
        }
        _ => error.help("use `target_transform = \"quantile\"`, or fix the file"),
    })
}
