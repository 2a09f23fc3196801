//! The teacher of a training: read from the run that it is of, and saved with the run that it teaches.

use std::sync::Arc;

use burn::tensor::Device;

use super::training::save;
use super::{Job, first, loaded_from, verify_parts};
use runner_core::event::Outcome;
use runner_core::plan::RunPlan;
use runner_network::network::Network;
use runner_network::teacher::Teacher;

/// The name of the teacher's weights among those of a run.
pub const TEACHER: &str = "teacher";

/// The teacher of a job on a device without autodiff, if it has one. A copy is kept in the folder of the run, so that
/// it can be reproduced when the teacher's run is gone.
pub fn of_run(job: &Job, device: &Device) -> Result<Option<Arc<Teacher>>, Outcome> {
    let plan = &job.plan;
    let teacher = match &job.teacher {
        None => of_source(plan, device)?,
        Some(path) => built(plan, device, &|network, plan| {
            loaded_from(network, plan, path, "weights of the teacher")
        })?,
    };
    if let (Some(teacher), Some(of_teacher)) = (&teacher, plan.of_teacher())
        && !job.folder.model(TEACHER).exists()
    {
        let network = teacher.network().clone();
        save((&job.folder, &of_teacher), network, TEACHER)?;
    }
    Ok(teacher)
}

/// The teacher of a plan, with the weights of the run that it is of, which must not have changed since the planning.
pub fn of_source(plan: &RunPlan, device: &Device) -> Result<Option<Arc<Teacher>>, Outcome> {
    built(plan, device, &first::with_first_weights)
}

fn built(
    plan: &RunPlan,
    device: &Device,
    load: &dyn Fn(Network, &RunPlan) -> Result<Network, Outcome>,
) -> Result<Option<Arc<Teacher>>, Outcome> {
    let Some(of_teacher) = plan.of_teacher() else {
        return Ok(None);
    };
    verify_parts(&of_teacher, device)?;
    let network = load(Network::undrawn(&of_teacher, device), &of_teacher)?;
    Ok(Teacher::new(plan, network).map(Arc::new))
}
