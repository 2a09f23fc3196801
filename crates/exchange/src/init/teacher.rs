//! The teacher of a training: the network of another run, with its best weights.

use std::path::Path;

use runner_core::data::{self, DataError, DataPlan, Transforms};
use runner_core::event::Outcome;
use runner_core::plan::init::{InitRefusal, TEACHER_KEY};
use runner_core::plan::teacher::{Student, TeacherPlan};
use runner_core::record::{RunRecord, file_remedy};
use runner_core::show::plain_io_error;
use runner_core::spec::init::{InitLayout, InitSpec};

use super::open::OpenedRun;
use super::{Digest, resolve, words};

/// The teacher in the folder of a run or in a capsule, whose path is relative to `base`.
pub fn teacher(
    from: &str,
    student: &Student<'_>,
    base: &Path,
    digest_of: Digest<'_>,
) -> Result<TeacherPlan, InitRefusal> {
    let path = base.join(from);
    let path = std::path::absolute(&path).unwrap_or(path);
    let refuse = |error: DataError| words::refusal(TEACHER_KEY, &error);
    let run = OpenedRun::open(&path).map_err(refuse)?;
    is_usable(&run, &path, student).map_err(refuse)?;
    let transforms = transforms_of(&run).map_err(refuse)?;
    let warning = student
        .accepts(&run.plan, &transforms, &transformed)
        .map_err(refuse)?;
    let network = run.plan.network.clone().merged();
    let spec = InitSpec {
        from: from.to_owned(),
        layout: InitLayout::Auto,
        top_level_key: None,
        remap: Vec::new(),
        transpose: Vec::new(),
        only: Vec::new(),
        exclude: Vec::new(),
        partial: false,
        skip_mismatched: false,
        adapter: None,
        hub: None,
    };
    let weights = resolve(&spec, &network, base, digest_of).map_err(|refusal| InitRefusal {
        key: TEACHER_KEY,
        ..refusal
    })?;
    Ok(TeacherPlan {
        weights,
        network,
        warning,
    })
}

/// Refuses a run that is not completed, was changed since, or is of the student's own experiment.
fn is_usable(run: &OpenedRun, path: &Path, student: &Student<'_>) -> Result<(), DataError> {
    let place = path.display();
    let unreadable = |e: std::io::Error| {
        let help = file_remedy(&e);
        DataError::new(plain_io_error(&e)).help(help)
    };
    if !run.is_capsule && run.plan.experiment == student.experiment {
        return Err(DataError::new(format!(
            "`{place}` is a run of this experiment, `{}`",
            student.experiment
        ))
        .note("it would be replaced when this experiment is trained again")
        .help("use a run of another experiment, or set another `experiment.name`"));
    }
    let record = RunRecord::read_for(&run.folder, &run.plan).map_err(unreadable)?;
    if record.outcome != Some(Outcome::Completed) {
        return Err(DataError::new(format!(
            "`{place}` is not completed, so its best weights are not known"
        ))
        .help("complete it with `runner run`, or use another run"));
    }
    let base = run
        .plan
        .network
        .has_adapters()
        .then_some("model/initial.bpk");
    let files = ["transforms.json", "model/best.bpk"]
        .into_iter()
        .chain(base);
    for file in files {
        run.folder.check_file(&record, file).map_err(unreadable)?;
    }
    Ok(())
}

fn transforms_of(run: &OpenedRun) -> Result<Transforms, DataError> {
    let path = run.folder.transforms_json();
    let text = run.folder.read_transforms().map_err(|e| {
        let (place, reason) = (path.display(), plain_io_error(&e));
        DataError::new(format!("`{place}` cannot be read: {reason}"))
    })?;
    Transforms::parse(&path, &text)
}

/// The transforms of a run with this data.
fn transformed(plan: &DataPlan) -> Result<Transforms, DataError> {
    let loaded = data::load(plan, &|_, _| {})?;
    Ok(Transforms::of(loaded.train.set()))
}
