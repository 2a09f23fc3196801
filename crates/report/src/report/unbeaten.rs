//! Whether the baseline has learned anything: compared with one that a constant prediction equals, claims about others
//! say nothing.

use super::evaluation::read_checked;
use super::model::{Report, Unbeaten};
use super::sample::direction;
use runner_core::record::{ExperimentFolder, Index, State};
use runner_statistics::Direction;

/// Withdraws the verdicts of a report whose baseline has not beaten the best constant prediction: if that is within
/// Student's interval of its objective, or better. Without the evaluations of its runs, nothing is known.
pub fn withdraw(report: &mut Report, index: &Index, folder: &ExperimentFolder) {
    let Some(unbeaten) = unbeaten(report, index, folder) else {
        return;
    };
    if let Some(baseline) = &mut report.baseline {
        baseline.unbeaten = Some(unbeaten);
    }
    let trials = report.trials.iter_mut();
    trials.for_each(|trial| trial.verdict = None);
    report.candidates = None;
}

fn unbeaten(report: &Report, index: &Index, folder: &ExperimentFolder) -> Option<Unbeaten> {
    let baseline = report.baseline.as_ref()?;
    let metric = report.objective.strip_prefix("valid/")?;
    let mut trials = report.trials.iter();
    let trial = trials.find(|trial| trial.id == baseline.trial)?;
    let sample = report.objective_of(trial)?;
    let runs = index
        .runs
        .iter()
        .filter(|run| run.state == State::Completed && trial.runs.contains(&run.id));
    let constants = runs.map(|run| {
        let evaluation = read_checked(&folder.run(&run.id)).ok()??;
        evaluation.constant.get(metric).copied()
    });
    let constants = constants.collect::<Option<Vec<f64>>>()?;
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
    let is_beaten = match direction(&report.objective)? {
        Direction::HigherIsBetter => ends.0 > objective,
        Direction::LowerIsBetter => ends.1 < objective,
    };
    (!is_beaten).then_some(Unbeaten { objective, n })
}
