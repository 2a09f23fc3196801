//! Runs in a results folder that were trained by another build of this program.

use std::collections::BTreeMap;

use runner_core::diagnostic::counted;
use runner_core::plan::RunPlan;
use runner_core::record::{ExperimentFolder, Status, this_build};

/// Runs that are listed individually.
const NAMED: usize = 3;

/// The note about runs that another build completed, or that another build started and this one will continue. The
/// program's own file is only read if there are such runs.
pub(crate) fn other_builds<'a>(
    folder: &ExperimentFolder,
    runs: impl Iterator<Item = (&'a RunPlan, &'a Status)>,
) -> Vec<String> {
    let (mut completed, mut begun) = (Others::default(), Others::default());
    for (run, status) in runs {
        let others = match status {
            Status::Completed => &mut completed,
            Status::Begun { step } | Status::Shorter { step, .. } if *step > 0 => &mut begun,
            _ => continue,
        };
        // Unreadable runs are reported elsewhere.
        let environment = folder.run(&run.id).read_environment().ok().flatten();
        let Some(build) = environment.and_then(|it| it.build) else {
            continue;
        };
        if this_build().is_some_and(|this| this.sha256 != build.sha256) {
            others.0.entry(build.to_string()).or_default().push(&run.id);
        }
    }
    let this = || this_build().map_or(String::new(), |this| this.to_string());
    let mut notes = Vec::new();
    if let Some((num, who, first)) = completed.in_words() {
        let place = folder.run(first).0;
        notes.push(format!(
            "note: {num} completed by a different build of runner, {}: {who}. Their numbers may differ from this build's: check with `runner reproduce '{}'`; to recompute them, delete their folders",
            this(),
            place.display()
        ));
    }
    if let Some((num, who, _)) = begun.in_words() {
        notes.push(format!(
            "note: {num} started by a different build of runner, {}, and continue with this one: {who}. To train a run with a single build, delete its folder",
            this()
        ));
    }
    notes
}

/// Runs by build.
#[derive(Default)]
struct Others<'a>(BTreeMap<String, Vec<&'a str>>);

impl<'a> Others<'a> {
    /// Their number, the build, and the first one.
    fn in_words(&self) -> Option<(String, String, &'a str)> {
        let first = self.0.values().next()?.first()?;
        let num = match self.0.values().map(Vec::len).sum() {
            1 => "1 run was".to_owned(),
            num => format!("{} were", counted(num, "run")),
        };
        let each = self.0.iter().map(|(build, runs)| {
            let named: Vec<String> = runs
                .iter()
                .take(NAMED)
                .map(|id| format!("`{id}`"))
                .collect();
            let more = match runs.len() - named.len() {
                0 => String::new(),
                num => format!(" and {num} more"),
            };
            format!("{}{more} by {build}", named.join(", "))
        });
        Some((num, each.collect::<Vec<_>>().join("; "), first))
    }
}
