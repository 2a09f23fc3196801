//! Whether the baseline has learned anything: compared with one that a constant prediction equals, claims about others
//! say nothing.

use super::evaluation::read_checked;
use super::model::{Report, Trial, Unbeaten};
use super::sample::direction;
use runner_core::record::ExperimentFolder;
use runner_statistics::Direction;

/// Withdraws the verdicts of a report whose baseline has not beaten the best constant prediction.
pub fn withdraw(report: &mut Report, folder: &ExperimentFolder) {
    let Some(baseline) = &mut report.baseline else {
        return;
    };
    let mut trials = report.trials.iter();
    let trial = trials.find(|trial| trial.id == baseline.trial);
    baseline.unbeaten = trial.and_then(|trial| unbeaten(trial, &report.objective, folder));
    if baseline.unbeaten.is_some() {
        let trials = report.trials.iter_mut();
        trials.for_each(|trial| trial.verdict = None);
        report.candidates = None;
    }
}

/// The best constant prediction, if it is within Student's interval of a trial's values, or better. Without the
/// evaluations of all its completed runs, nothing is known.
pub fn unbeaten(trial: &Trial, value: &str, folder: &ExperimentFolder) -> Option<Unbeaten> {
    let metric = value.strip_prefix("valid/")?;
    let sample = trial.metrics.get(value)?;
    let evaluations = trial.runs.iter();
    let evaluations = evaluations.filter_map(|run| read_checked(&folder.run(run)).ok()?);
    let constants: Option<Vec<f64>> = evaluations
        .map(|evaluation| evaluation.constant.get(metric).copied())
        .collect();
    let constants = constants?;
    let n = constants.len();
    if n == 0 || n != trial.n {
        return None;
    }
    let objective = constants.iter().sum::<f64>() / n as f64;
    let mean = sample.description.mean;
    let ends = sample
        .student
        .as_ref()
        .map_or((mean, mean), |s| (s.low, s.high));
    let is_beaten = match direction(value)? {
        Direction::HigherIsBetter => ends.0 > objective,
        Direction::LowerIsBetter => ends.1 < objective,
    };
    (!is_beaten).then_some(Unbeaten { objective, n })
}
