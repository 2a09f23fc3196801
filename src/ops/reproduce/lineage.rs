//! What a copy of population-based training begins as is trained again first, up to the epoch that it was copied after.

use super::again::train;
use super::original::Original;
use super::{Reproduce, planned_now, reason_of};
use crate::error::Error;
use crate::ops::{Progress, Sink};
use crate::train::Pause;
use runner_core::event::Outcome;
use runner_core::plan::RunPlan;
use runner_core::record::{RunFolder, fork};
use runner_core::spec::search::PruneRule;

/// The runs to train, the last of which is compared: those that the original begins as copies of, and the original, or as
/// many of them as the first `steps` need.
pub(super) fn planned(original: &Original, options: &Reproduce) -> (Vec<RunPlan>, RunPlan) {
    let lineage = original.lineage.as_deref().unwrap_or_default().iter();
    let mut before: Vec<RunPlan> = lineage.map(|run| planned_now(run, options)).collect();
    let mut last = planned_now(&original.plan, options);
    while let Some(steps) = options.steps
        && steps <= last.first_step()
        && let Some(earlier) = before.pop()
    {
        last = earlier;
    }
    (before, last)
}

/// Trains what a run begins as, below its folder, and lets it begin there. Returns why that was not possible.
pub(super) fn begin(
    original: &Original,
    before: &[RunPlan],
    (last, folder): (&RunPlan, &RunFolder),
    options: &Reproduce,
    sink: &Sink<'_>,
) -> Result<Option<String>, Error> {
    let place = |run: &RunPlan| RunFolder(folder.0.join("sources").join(&run.id));
    for (at, source) in before.iter().enumerate() {
        let next = before.get(at + 1);
        let (copy, there) = next.map_or((last, folder.clone()), |copy| (copy, place(copy)));
        let Some(from) = &copy.fork else {
            continue;
        };
        sink(Progress::Step(&format!("`{}` begins as {from}", copy.id)));
        let of_source = place(source);
        let unwritable = |e: std::io::Error| Error::unwritable(&of_source.0, &e);
        of_source.write_plan(source).map_err(unwritable)?;
        let pause = Pause {
            epoch: from.epoch,
            rule: PruneRule::Pbt,
        };
        let end = ["--prune-after".to_owned(), pause.to_string()];
        let record = train((source, &of_source), &end, original, options, sink)?;
        if !matches!(record.outcome, Some(Outcome::Pruned { .. })) {
            let reason = reason_of(record.outcome.as_ref());
            return Ok(Some(format!("`{}`: {reason}", source.id)));
        }
        if let Err(reason) = fork((&of_source, source), (&there, copy)) {
            return Ok(Some(format!(
                "`{}` cannot begin as {from}: {reason}",
                copy.id
            )));
        }
    }
    Ok(None)
}
