//! Operations as programs call them: without a terminal, from typed options to typed outcomes.

use std::path::Path;
use std::sync::Mutex;

use burn_runner::dispatch::{Reason, Urgency};
use burn_runner::error::Error;
use burn_runner::ops::{
    self, Bundle, Compare, DiffOptions, Differences, Experiment, Memory, Program, Progress, Prove,
    Reproduce, Run, Stopped,
};
use burn_runner::report::compare::Question;
use burn_runner::reproduce::AtLeast;

use super::edit::Edit;
use super::support::{IRIS, folder_with, runner};

/// The experiment in a folder, and the program that trains it.
fn experiment(folder: &Path) -> Experiment {
    let mut experiment = Experiment::new(folder.join("spec.toml"));
    experiment.program = Program::at(runner(folder).get_program());
    experiment
}

/// The training of the experiment in a folder.
fn training(folder: &Path) -> Run {
    let mut options = Run::new(experiment(folder));
    options.results = folder.join("results");
    options
}

#[test]
fn runs_are_trained_and_their_outcome_is_returned() {
    let folder = folder_with(IRIS);
    let mut options = training(folder.path());
    let told = Mutex::new(Vec::new());
    let outcome = ops::run(&options, &|progress| {
        let mut told = told.lock().unwrap();
        match progress {
            Progress::Prepared(prepared) => told.push(format!("{} to do", prepared.num_to_do)),
            Progress::Training(training) => told.push(format!("trains {}", training.runs.len())),
            Progress::Trained => told.push("trained".to_owned()),
            _ => {}
        }
    });
    let outcome = outcome.unwrap();
    assert_eq!((outcome.exit_code(), outcome.num_left()), (0, 0));
    assert_eq!(outcome.report.unwrap().num_completed, 1);
    let told = told.into_inner().unwrap();
    assert_eq!(told, ["1 to do", "trains 1", "trained"]);
    // Nothing is left to do.
    let again = ops::run(&options, &|progress| {
        assert!(!matches!(progress, Progress::Training(_)), "{progress:?}");
    });
    assert_eq!(again.unwrap().exit_code(), 0);
    options.only.push("nothing*".into());
    let refused = ops::run(&options, &ops::quiet).unwrap_err();
    assert_eq!(refused.exit_code(), 2);
    assert_eq!(refused.to_string(), "no run matches `--only nothing*`");
}

#[test]
fn a_wrong_file_is_refused_with_places_and_nothing_is_written() {
    let folder = folder_with(&IRIS.edit("hidden = [16]", "hiden = [16]"));
    let Err(error) = ops::run(&training(folder.path()), &ops::quiet) else {
        panic!("it is not refused");
    };
    assert!(matches!(error, Error::Experiment { .. }));
    assert!(error.render(false).contains("spec.toml:7"), "{error:?}");
    assert!(!folder.path().join("results").exists());
}

#[test]
fn a_cancelled_training_leaves_its_runs_to_do() {
    let folder = folder_with(IRIS);
    let options = training(folder.path());
    options.cancel.cancel(Urgency::Graceful, Reason::User);
    let outcome = ops::run(&options, &ops::quiet).unwrap();
    assert_eq!(outcome.stopped, Some(Stopped::User));
    assert_eq!((outcome.exit_code(), outcome.num_left()), (130, 1));
}

#[test]
fn without_the_program_nothing_is_trained() {
    let folder = folder_with(IRIS);
    let mut options = training(folder.path());
    options.experiment.program = Program::default();
    let outcome = ops::run(&options, &ops::quiet).unwrap();
    assert_eq!(outcome.exit_code(), 2);
    let failure = outcome.failure.unwrap();
    assert_eq!(failure.to_string(), "cannot find the runner program");
}

#[test]
fn a_run_is_reproduced_packed_and_compared() {
    let folder = folder_with(IRIS);
    ops::run(&training(folder.path()), &ops::quiet).unwrap();
    let run = folder.path().join("results/spec/runs/base-s1");
    let program = experiment(folder.path()).program;
    let mut again = Reproduce::new(&run, program.clone());
    again.out = Some(folder.path().join("again"));
    let reproduced = ops::reproduce(&again, &ops::quiet).unwrap();
    assert_eq!(reproduced.num_good(AtLeast::Bitwise), 1);

    let mut bundle = Bundle::new(&run);
    bundle.out = Some(folder.path().join("run.capsule.tar.zst"));
    let bundled = ops::bundle(&bundle, &ops::quiet).unwrap();
    assert!(bundled.out.is_file());
    let there = ops::bundle(&bundle, &ops::quiet).unwrap_err();
    assert!(there.to_string().ends_with("already exists"), "{there}");

    let other = DiffOptions::new(&run, &bundled.out);
    let Differences::Runs(diff) = ops::diff(&other, &ops::quiet).unwrap() else {
        panic!("both are runs");
    };
    assert_eq!(diff.network, None);
    let itself = ops::diff(&DiffOptions::new(&run, &run), &ops::quiet);
    assert!(itself.unwrap().is_equal());

    let compared = Compare {
        what: vec![folder.path().join("results").display().to_string()],
        question: Question {
            value: None,
            baseline: None,
            alpha: 0.05,
            pivot: None,
            pareto: None,
        },
    };
    let comparison = ops::compare(&compared, &ops::quiet).unwrap();
    assert_eq!(comparison.trials.len(), 1);
}

#[test]
fn memory_is_forecast_and_guarantees_are_tried() {
    let folder = folder_with(IRIS);
    let mut memory = Memory::new(experiment(folder.path()));
    memory.batch_sizes = vec![8, 16];
    let budget = ops::memory(&memory, &ops::quiet).unwrap();
    assert_eq!(budget.rows.len(), 2);
    memory.trial = Some("nothing".into());
    let error = ops::memory(&memory, &ops::quiet).unwrap_err();
    assert_eq!(error.to_string(), "there is no trial `nothing`");
    let proof = ops::prove(&Prove::new(experiment(folder.path())), &ops::quiet).unwrap();
    assert!(proof.holds(), "{:?}", proof.findings);
}
