//! The run to reproduce: from its folder, or from a capsule.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::Reproduce;
use crate::error::Error;
use crate::model::yet_to_begin;
use crate::ops::{Progress, Sink};
use runner_core::diagnostic::Diagnostic;
use runner_core::event::Outcome;
use runner_core::plan::RunPlan;
use runner_core::record::capsule::{self, Needs};
use runner_core::record::{
    Environment, ExperimentFolder, RunFolder, RunRecord, SealState, Trace, decoded_folder,
    refuse_links,
};
use runner_core::reproduce::{Side, Spread, prediction_interval};
use runner_core::show::plain_io_error;

/// The runs of a path.
pub(super) fn originals(options: &Reproduce, sink: &Sink<'_>) -> Result<Vec<Original>, Error> {
    let (path, steps) = (&options.path, options.steps);
    let wrong = |message: String, help: &str| {
        let diagnostic = Diagnostic::error("results", message);
        Error::refused(diagnostic.help(help))
    };
    let run = RunFolder(path.to_owned());
    if run.run_toml().exists() || path.is_file() {
        let original = if path.is_file() {
            Original::unpack(path, options, sink)?
        } else {
            Original::read(run, sink)?
        };
        if let Err(reason) = &original.lineage {
            return Err(wrong(reason.clone(), NO_LINEAGE));
        }
        let end = original.record.outcome.as_ref();
        if end != Some(&Outcome::Completed) && steps.is_none() {
            let how = end.map_or("not finished", Outcome::word);
            let message = format!(
                "`{}` is {how}: there is no final result to compare",
                path.display()
            );
            let help = match end {
                Some(Outcome::Pruned { .. }) => {
                    "compare its first steps with `--steps N`, or reproduce a completed run"
                }
                _ => "compare its first steps with `--steps N`, or let `runner run` complete it",
            };
            return Err(wrong(message, help));
        }
        return Ok(vec![original]);
    }
    if let Some(answer) = yet_to_begin(path) {
        return Err(Error::refused(answer));
    }
    let experiment = ExperimentFolder(path.to_owned());
    if !experiment.plan_json().exists() {
        let message = format!(
            "`{}` is neither the folder of a run nor of an experiment nor a capsule",
            path.display()
        );
        let help =
            "use a folder such as `results/mnist_sweep/runs/base-s1`; `runner list` shows them";
        return Err(wrong(message, help));
    }
    let mut originals = Vec::new();
    for id in experiment.run_ids() {
        let original = Original::read(experiment.run(&id), sink)?;
        match (&original.record.outcome, &original.lineage) {
            (Some(Outcome::Completed), Err(reason)) => {
                sink(Progress::Step(&format!("`{id}` is skipped: {reason}")));
            }
            (Some(Outcome::Completed), Ok(_)) => originals.push(original),
            _ => sink(Progress::Step(&format!(
                "`{id}` is skipped: it is not completed"
            ))),
        }
    }
    if !originals.is_empty() {
        Ok(originals)
    } else {
        let message = format!("no run of `{}` is completed", path.display());
        Err(wrong(message, "complete them with `runner run`"))
    }
}

/// The remedy for a copy of which it is not known what it begins as.
const NO_LINEAGE: &str = "run the whole experiment again into another folder, with `runner run SPEC --results DIR`, and compare both with `runner diff`";

/// A run to reproduce.
pub struct Original {
    /// Its folder.
    pub folder: RunFolder,
    /// What was requested.
    pub plan: RunPlan,
    /// The runs that it begins as copies of, the oldest first, or why they are not known.
    pub lineage: Result<Vec<RunPlan>, String>,
    /// Whether `run.toml` is unchanged.
    pub seal: SealState,
    /// Whether it is from a capsule, which does not include checkpoints.
    pub is_capsule: bool,
    /// What happened.
    pub record: RunRecord,
    /// Its environment, if known.
    pub environment: Option<Environment>,
    /// The objective of each completed seed of its trial.
    seeds: Vec<f64>,
    /// The default folder of the new run.
    pub place: PathBuf,
}

impl Original {
    fn read(folder: RunFolder, sink: &Sink<'_>) -> Result<Self, Error> {
        let (plan, seal) = match folder.read_plan_as_is() {
            Ok(Some(there)) => there,
            Ok(None) => {
                let message = format!("`{}` has no run.toml", folder.0.display());
                return Err(Error::refused(Diagnostic::error("results", message)));
            }
            Err(e) => return Err(Error::unreadable(&e, &folder)),
        };
        let record = RunRecord::read(&folder).and_then(|record| match record.outcome {
            // Events that lost their end are damaged, if the summary is of a completed run.
            None => RunRecord::read_for(&folder, &plan),
            Some(_) => Ok(record),
        });
        let record = record.map_err(|e| Error::unreadable(&e, &folder))?;
        let place = default_place(&folder);
        if let Some(around) = place
            .parent()
            .filter(|around| around.ends_with("reproduced"))
        {
            let names = ["reproduced"];
            refuse_links(around.parent().unwrap_or(around), &names)
                .map_err(|e| Error::unwritable(&place, &e))?;
        }
        let environment = folder.read_environment().unwrap_or_else(|e| {
            sink(Progress::Note(&plain_io_error(&e)));
            None
        });
        // The cache of decoded files is the current user's, whoever trained the run.
        let cached = |plan: RunPlan| RunPlan {
            data: plan.data.relocated(&|_, _| None, &decoded_folder()),
            ..plan
        };
        let lineage = folder.read_lineage(&plan);
        let lineage = lineage.map(|all| all.into_iter().map(cached).collect());
        Ok(Self {
            seeds: seeds(&folder, &plan, &record),
            place,
            is_capsule: false,
            lineage: lineage.map_err(|e| plain_io_error(&e)),
            folder,
            plan: cached(plan),
            seal,
            record,
            environment,
        })
    }

    /// The run of a capsule, unpacked next to where it will be reproduced.
    fn unpack(archive: &Path, options: &Reproduce, sink: &Sink<'_>) -> Result<Self, Error> {
        let name = archive.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.split(".capsule").next().unwrap_or_default();
        let place = PathBuf::from(format!("{stem}-reproduced"));
        let place = free(&place).map_err(|e| Error::unwritable(&place, &e))?;
        let unpacked = capsule::unpack(archive, &place.join("capsule"), options.max_unpacked)
            .map_err(|error| {
                // It was created for the capsule, and is empty after a refusal.
                let _ = fs::remove_dir(&place);
                Error::capsule(&error)
            })?;
        sink(Progress::Step(&format!(
            "unpacked {} to {}",
            archive.display(),
            place.display()
        )));
        if unpacked.manifest.data.needs == Needs::Files {
            for root in &unpacked.manifest.data.roots {
                sink(Progress::Note(&format!(
                    "the capsule does not contain the data, which was {}; use `--data DIR` to say where it is on this machine",
                    root.original
                )));
            }
        }
        let objective = unpacked.plan.objective.name();
        let others = unpacked.siblings.iter();
        let mut seeds: Vec<f64> = others
            .filter_map(|other| other.metrics.get(&objective).copied())
            .collect();
        let read = Self::read(unpacked.folder, sink)?;
        let own = read.record.best_epoch(&unpacked.plan);
        seeds.extend(own.and_then(|own| own.metrics.get(&objective).copied()));
        Ok(Self {
            plan: unpacked.plan,
            lineage: Ok(unpacked.lineage),
            seeds,
            place: place.join("run"),
            is_capsule: true,
            ..read
        })
    }

    /// The compared parts of the original.
    pub fn side(&self) -> std::io::Result<Side> {
        side(&self.folder, &self.plan, &self.record)
    }

    /// The spread of the objective over its seeds.
    pub fn spread(&self) -> Option<Spread> {
        prediction_interval(&self.seeds)
    }
}

/// The compared parts of a run.
pub fn side(folder: &RunFolder, plan: &RunPlan, record: &RunRecord) -> std::io::Result<Side> {
    let best = record.best_epoch(plan);
    Ok(Side {
        trace: Trace::read(folder)?,
        epochs: record.epochs.clone(),
        evaluations: record.evaluations.clone(),
        objective: best.and_then(|best| best.metrics.get(&plan.objective.name()).copied()),
        weights_digest: record.weights_digest.clone(),
    })
}

/// The objective of each seed of a completed run that differs from a run only in the seed, and has the same data. Copies
/// of one run are not several seeds.
fn seeds(folder: &RunFolder, plan: &RunPlan, record: &RunRecord) -> Vec<f64> {
    let Some(parent) = folder.0.parent() else {
        return Vec::new();
    };
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut folders: Vec<_> = entries.map(|entry| RunFolder(entry.path())).collect();
    folders.sort_by(|a, b| a.0.cmp(&b.0));
    let digests = |record: &RunRecord| {
        let started = record.started.as_ref();
        started.map(|started| started.data_digests.clone())
    };
    let fingerprint = plan.clone().with_fingerprint().fingerprint;
    let value = |folder: &RunFolder| -> Option<(u64, f64)> {
        let other = folder.read_plan().ok().flatten()?;
        if other.trial != plan.trial {
            return None;
        }
        let of_other = RunRecord::read_for(folder, &other).ok()?;
        let with_seed = RunPlan {
            seed: plan.seed,
            // Another seed of a copy is a copy of another seed.
            fork: other.fork.as_ref().and(plan.fork.clone()),
            ..other.clone()
        };
        let is_one = of_other.outcome == Some(Outcome::Completed)
            && digests(&of_other) == digests(record)
            && with_seed.with_fingerprint().fingerprint == fingerprint;
        let best = of_other.best_epoch(&other).filter(|_| is_one)?;
        let objective = best.metrics.get(&plan.objective.name())?;
        Some((other.seed, *objective))
    };
    // The run itself stands for its seed.
    let others = folders.iter().filter(|other| other.0 != folder.0);
    let all = others.chain([folder]).filter_map(value);
    all.collect::<BTreeMap<u64, f64>>().into_values().collect()
}

/// In the experiment's folder, if the run is in one; otherwise next to the run.
fn default_place(folder: &RunFolder) -> PathBuf {
    let name = folder.0.file_name().unwrap_or_default().to_string_lossy();
    let runs = folder
        .0
        .parent()
        .filter(|p| p.file_name().is_some_and(|n| n == "runs"));
    match runs.and_then(Path::parent) {
        Some(experiment) => experiment.join("reproduced").join(&*name),
        None => folder.0.with_file_name(format!("{name}-reproduced")),
    }
}

/// Creates a folder of that name, or with a number if it already exists: only one process can create it.
pub fn free(place: &Path) -> std::io::Result<PathBuf> {
    if let Some(parent) = place.parent() {
        fs::create_dir_all(parent)?;
    }
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let mut tried = place.to_owned();
    for number in 2.. {
        match fs::create_dir(&tried) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
                tried = place.with_file_name(format!("{name}.{number}"));
            }
            other => return other.map(|()| tried),
        }
    }
    Ok(tried)
}
