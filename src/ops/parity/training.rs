//! Devices compared on the training of a run.

use serde::Serialize;

use super::super::{Experiment, Progress, Sink, plan_with_data, trial, verify_data};
use super::{Comparing, DevicePair, DeviceParity, Job, Parities, internal};
use crate::error::Error;
use crate::train::parity::determinate;
use runner_core::data::Trust;
use runner_core::diagnostic::{Diagnostic, counted};
use runner_core::parity::{Said, Step, Verdict};
use runner_core::record::RunFolder;
use runner_core::spec::section::Choice;

/// Two devices that trained one run in lockstep.
#[derive(Clone, Debug, Serialize)]
pub struct TrainingParity {
    /// The devices.
    #[serde(flatten)]
    pub devices: DevicePair,
    /// The trial of the run.
    pub trial: String,
    /// The seed of the run.
    pub seed: u64,
    /// The precision of the run.
    pub precision: &'static str,
    /// What was changed about the run so that devices can be compared, as sentences.
    pub notes: Vec<String>,
    /// The compared updates.
    pub steps: Vec<Step>,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Verdict,
}

impl Comparing<'_> {
    /// Compares all devices with the reference on the training of a run.
    pub(super) fn trainings(
        &self,
        experiment: &Experiment,
        wanted: Option<&str>,
        steps: usize,
        sink: &Sink<'_>,
    ) -> Result<Parities, Error> {
        let planned = plan_with_data(experiment, sink)?;
        verify_data(&planned, Trust::Bytes)?;
        let run = trial(&planned.plan, wanted)?;
        if steps > run.num_steps() {
            let message = format!(
                "`--steps {steps}` is more than the {} of the training",
                run.num_steps()
            );
            let diagnostic = Diagnostic::error("usage", message);
            return Err(Error::refused(diagnostic.help("use fewer steps")));
        }
        if run.data.input.graph.is_some() {
            let message = "devices are not compared on the nodes of a graph";
            let diagnostic = Diagnostic::error("usage", message);
            let help = "compare them on another experiment, or on layers with `--layers`";
            return Err(Error::refused(diagnostic.help(help)));
        }
        if run.strategy.adversarial().is_some() {
            let message = "devices are not compared on two networks that train in turn";
            let diagnostic = Diagnostic::error("usage", message);
            let help = "compare them on another experiment, or on layers with `--layers`";
            return Err(Error::refused(diagnostic.help(help)));
        }
        let (run, notes) = determinate(run.clone());
        sink(Progress::Step(&format!(
            "trial `{}` with seed {} for {} in {}",
            run.trial,
            run.seed,
            counted(steps, "step"),
            run.precision.name(),
        )));
        notes.iter().for_each(|note| sink(Progress::Note(note)));
        let folder = RunFolder(self.place.path().join("run"));
        folder.write_plan(&run).map_err(|e| internal(&e))?;
        let mut all = Vec::new();
        for device in &self.options.devices[1..] {
            let mut progress = |said: &Said| {
                if let Said::Stepped(step) = said {
                    let text = format!("{device}: step {} of {steps}", step.step);
                    sink(Progress::Step(&text));
                }
            };
            let job = Job {
                folder: Some(folder.0.clone()),
                devices: [self.reference(), *device],
                steps,
                from: 1,
                only: Vec::new(),
            };
            let (heard, ended) = self.hear(&job, &mut progress);
            self.go_on()?;
            if let Some(reason) = heard.refused {
                return Err(Error::refused(Diagnostic::error("device", reason)));
            }
            let verdict = match (heard.failed.or(ended.err().map(String::from)), heard.began) {
                (Some(reason), None) => Verdict::Failed { reason },
                (Some(reason), Some((_, what))) => Verdict::Failed {
                    reason: format!("in {what}: {reason}"),
                },
                (None, _) => Verdict::of(&heard.steps),
            };
            let compared = DeviceParity::Training(TrainingParity {
                devices: DevicePair::new(self.reference(), *device, heard.names),
                trial: run.trial.clone(),
                seed: run.seed,
                precision: run.precision.name(),
                notes: notes.clone(),
                steps: heard.steps,
                verdict,
            });
            sink(Progress::Compared(&compared));
            all.push(compared);
        }
        Ok(Parities(all))
    }
}
