//! A valid trial and its runs.

use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::constant::{ConstantPlan, constants};
use super::init::{FindWeights, InitPlan, InitRefusal, TEACHER_KEY};
use super::place::{Machine, Place};
use super::teacher::{Student, TeacherPlan};
use super::{Devices, FORMAT, Forecast, Locate, RunPlan};
use crate::check;
use crate::check::task::Goal;
use crate::check::trial::{Checked, Checker, LaidOut};
use crate::data::DataPlan;
use crate::diagnostic::Diagnostic;
use crate::spec::ExperimentSpec;
use crate::spec::document::Table;
use crate::spec::section::Findings;

/// Checks trials one after the other and places them on devices.
pub(super) struct Planner<'a> {
    checker: Checker<'a>,
    weights: FindWeights<'a>,
    machine: Machine<'a>,
}

/// A valid trial.
pub(super) struct Trial {
    pub(super) spec: ExperimentSpec,
    data: DataPlan,
    /// That of each seed, if each has a separate split.
    by_seed: Vec<DataPlan>,
    goal: Goal,
    laid_out: Rc<LaidOut>,
    init: Option<InitPlan>,
    constants: Vec<ConstantPlan>,
    teacher: Option<TeacherPlan>,
    place: Place,
}

impl<'a> Planner<'a> {
    pub(super) fn new(locate: Locate<'a>, weights: FindWeights<'a>, devices: Devices<'a>) -> Self {
        Self {
            checker: Checker::new(locate),
            weights,
            machine: Machine::new(devices),
        }
    }

    pub(super) fn notices(&self) -> Vec<String> {
        let mut notices = self.checker.data_notices();
        notices.extend(self.machine.notice());
        notices.extend(self.checker.resolved().cloned());
        notices
    }

    pub(super) fn check_trial(
        &mut self,
        root: &Table,
        spec: ExperimentSpec,
        default_name: &str,
        findings: &mut Findings,
    ) -> Option<Trial> {
        let checked = self.checker.check(root, spec, findings);
        let init = self.first_weights(root, &checked, findings);
        let constants = constants(self.weights, &checked, findings);
        let place = if findings.is_poisoned("backend") {
            Place::default()
        } else {
            let point = check::Point {
                root,
                spec: &checked.spec,
                data: None,
                network: None,
            };
            self.machine.place(&point, findings)
        };
        if findings.diagnostics.has_errors() {
            return None;
        }
        let teacher = match self.teacher(root, &checked, default_name, findings) {
            Ok(teacher) => teacher,
            Err(()) => return None,
        };
        Some(Trial {
            spec: checked.spec,
            data: checked.data?,
            by_seed: checked.by_seed,
            goal: checked.goal?,
            laid_out: checked.laid_out?,
            init,
            constants,
            teacher,
            place,
        })
    }

    /// The weights that the network of a trial takes from a file; errors are added to the findings.
    fn first_weights(
        &mut self,
        root: &Table,
        checked: &Checked,
        findings: &mut Findings,
    ) -> Option<InitPlan> {
        let (init, laid_out) = (checked.spec.init.as_ref()?, checked.laid_out.as_ref()?);
        if findings.is_poisoned("init") {
            return None;
        }
        match self.weights.init(init, &laid_out.network) {
            Ok(init) => Some(init),
            Err(InitRefusal { key, diagnostic }) => {
                let at = check::span(root, key);
                findings.diagnostics.push(diagnostic.at(at));
                None
            }
        }
    }

    /// The teacher of a trial that is valid otherwise, if it has one; an error is added to the findings.
    fn teacher(
        &mut self,
        root: &Table,
        checked: &Checked,
        default_name: &str,
        findings: &mut Findings,
    ) -> Result<Option<TeacherPlan>, ()> {
        let spec = &checked.spec;
        let (Some(distill), Some(data), Some(goal)) =
            (spec.strategy.distill(), &checked.data, &checked.goal)
        else {
            return Ok(None);
        };
        let student = Student {
            experiment: spec.experiment.name.as_deref().unwrap_or(default_name),
            data: match checked.by_seed.as_slice() {
                [] => std::slice::from_ref(data),
                each => each,
            },
            task: goal.task.kind,
            output: &goal.output_shape,
            arithmetic: spec.backend.arithmetic,
        };
        match self.weights.teacher(&distill.teacher, &student) {
            Ok(teacher) => {
                if let Some(warning) = &teacher.warning {
                    let warning = Diagnostic::warning("teacher", warning.clone())
                        .at(check::span(root, TEACHER_KEY))
                        .help("train the teacher with the split of this file");
                    findings.diagnostics.push(warning);
                }
                Ok(Some(teacher))
            }
            Err(InitRefusal { key, diagnostic }) => {
                let at = check::span(root, key);
                findings.diagnostics.push(diagnostic.at(at));
                Err(())
            }
        }
    }
}

impl Trial {
    pub(super) fn add_runs(
        self,
        default_name: &str,
        id: String,
        axes: Map<String, Json>,
        runs: &mut Vec<RunPlan>,
    ) {
        let spec = self.spec;
        let name = spec
            .experiment
            .name
            .unwrap_or_else(|| default_name.to_owned());
        for (at, seed) in spec.experiment.seeds.iter().enumerate() {
            let data = self.by_seed.get(at).unwrap_or(&self.data);
            let (loss, losses) = self.goal.losses_for(data);
            let mut run = RunPlan {
                format: FORMAT,
                experiment: name.clone(),
                id: format!("{id}-s{seed}"),
                trial: id.clone(),
                seed: *seed,
                fingerprint: String::new(),
                objective: self.goal.objective,
                device: self.place.device,
                skip: self.place.skip.clone(),
                precision: spec.backend.precision,
                kernels: spec.backend.kernels,
                arithmetic: spec.backend.arithmetic,
                memory_limit_bytes: spec.memory.limit.map(|limit| limit.0),
                memory_reserve_bytes: spec.memory.reserve.0,
                on_exceed: self.place.on_exceed.clone(),
                time_limit_secs: spec.limits.run.map(|limit| limit.as_secs_f64()),
                steps_per_epoch: data.num_train.div_ceil(spec.train.batch_size),
                axes: axes.clone(),
                forecast: Forecast::default(),
                train: spec.train.clone(),
                strategy: spec
                    .strategy
                    .planned(self.goal.task.kind.has_probabilities()),
                checkpoint: spec.checkpoint.clone(),
                predictions: spec.predictions.clone().unwrap_or_default(),
                on_failure: spec.on_failure.clone(),
                data: data.clone(),
                task: self.goal.task.clone(),
                loss,
                losses,
                optimizer: spec.optimizer.clone(),
                scheduler: spec.scheduler.clone(),
                init: self.init.clone(),
                constants: self.constants.clone(),
                teacher: self.teacher.clone(),
                fork: None,
                network: self.laid_out.network.clone(),
            };
            run.fingerprint = run.compute_fingerprint(&self.laid_out.work);
            runs.push(run.with_forecast());
        }
    }
}
