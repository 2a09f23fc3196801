//! Runs that are trained by jobs of a cluster.

use std::collections::BTreeMap;

use super::Stopped;
use super::launch::Launch;
use super::prepare::ToDo;
use crate::error::Error;
use crate::ops::Sink;
use crate::ops::cluster::{Following, Request, follow, submit};
use runner_core::plan::RunPlan;
use runner_core::record::in_parallel;
use runner_core::spec::launch::LaunchSpec;

/// Submits the runs that are left to do; with `waits`, returns when these and those that jobs already have are over.
pub(super) fn on_cluster(
    launch: &Launch<'_>,
    on: LaunchSpec,
    (todo, held): (Vec<ToDo>, Vec<&RunPlan>),
    waits: bool,
    sink: &Sink<'_>,
) -> Result<Option<Stopped>, Error> {
    let (mut steps, mut pauses) = (BTreeMap::new(), BTreeMap::new());
    let begun = launch.folder.begun();
    let removed = in_parallel(&todo, |run| {
        if begun.may_have(&run.plan.id) {
            run.folder.remove_summary()
        } else {
            Ok(())
        }
    });
    for (run, removed) in todo.iter().zip(removed) {
        removed.map_err(|e| Error::unwritable_results(&run.folder.summary_json(), &e))?;
        steps.insert(run.plan.id.clone(), run.resumes_at);
        pauses.extend(
            run.pause
                .map(|pause| (run.plan.id.clone(), pause.to_string())),
        );
    }
    let held = held.into_iter().cloned();
    let mut runs: Vec<String> = todo.iter().map(|run| run.plan.id.clone()).collect();
    let all: Vec<RunPlan> = todo.into_iter().map(|run| run.plan).chain(held).collect();
    let mut num_submitted = 0;
    loop {
        if !runs.is_empty() {
            let request = Request {
                options: launch.options,
                folder: launch.folder,
                plan: launch.plan,
                launch: on.clone(),
                pauses: &pauses,
                runs,
            };
            num_submitted += submit(request, sink)?;
        }
        if !waits {
            return Ok(Some(Stopped::Submitted(num_submitted)).filter(|_| !all.is_empty()));
        }
        match follow(
            launch.folder,
            &all,
            &mut steps,
            &launch.options.cancel,
            sink,
        )? {
            Following::Again(again) if again.is_empty() => return Ok(None),
            Following::Again(again) => runs = again,
            Following::Stopped => return Ok(Some(Stopped::User)),
        }
    }
}
