//! Real training: its results, and that neither parallelism, nor stopping, nor failing changes them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;

use super::edit::Edit;
use super::support::processes::started_until;
use super::support::{
    IRIS, completed, folder_with, goes_on, mnist, numbers, run, runner, summary, tree,
};

/// Long enough to be stopped in the middle, with every feature that resuming could break.
pub const STOPPABLE: &str = r#"
[experiment]
seeds = [1, 2]

[data]
type = "digits"
image_size = "28x28"
split.test = 0.1
augment = { crop = 2, flip = 0.1, shift = 0.05, rotate = 10.0, erase = 0.2 }

[[model.layers]]
type = "flatten"

[[model.layers]]
type = "linear"
name = "hidden"
out_features = 128

[[model.layers]]
type = "batch_norm"

[[model.layers]]
type = "relu"

[[model.layers]]
type = "dropout"
probability = 0.2

[[model.layers]]
type = "linear"

[optimizer]
type = "adamw"
learning_rate = 1e-3

[optimizer.clip]
global_norm = 1.0

[[optimizer.groups]]
parameters = "*.bias"
weight_decay = 0.0
learning_rate_factor = 2.0

[scheduler]
type = "sequence"
warmup_epochs = 1

[[scheduler.stages]]
type = "cosine_restarts"
period = 8
unit = "epoch"
epochs = 30

[[scheduler.stages]]
type = "cosine"
fraction = 0.5

[train]
epochs = 60
batch_size = 50
micro_batch_size = 30
log_gradient_norms = "parameters"

[train.ema]
decay = 0.99

[train.early_stopping]
metric = "valid_ema/loss"
patience = 50
"#;

/// Changes one bit of a file.
fn damage(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(file, bytes).unwrap();
}

#[test]
fn one_run_at_a_time_and_two_give_the_same_numbers() {
    let spec =
        format!("{STOPPABLE}\n[sweep.grid]\n\"model.layers.hidden.out_features\" = [32, 16]\n")
            .edit("epochs = 60", "epochs = 4")
            .edit("epochs = 30", "epochs = 2")
            .edit("period = 8", "period = 1")
            .edit("patience = 50", "patience = 3");
    let one = completed(&spec, &["--jobs", "1"]);
    let two = completed(&spec, &["--jobs", "2"]);
    assert_eq!(numbers(one.path()), numbers(two.path()));
}

#[test]
fn a_convolution_gives_the_same_numbers_with_one_thread_and_two() {
    let spec = IRIS.edit("iris", "digits").edit(
        "mlp\"\nhidden = [16]",
        "cnn\"\nchannels = [8]\nhidden = [16]",
    );
    let one = completed(
        &format!("[experiment]\nseeds = [1, 2]\n{spec}"),
        &["--jobs", "2"],
    );
    let two = completed(
        &format!("[experiment]\nseeds = [1, 2]\n{spec}"),
        &["--jobs", "1"],
    );
    assert_eq!(numbers(one.path()), numbers(two.path()));
}

#[test]
fn the_record_says_whose_kernels_computed_each_layer() {
    let spec = IRIS.edit("iris", "digits").edit(
        "mlp\"\nhidden = [16]",
        "cnn\"\nchannels = [8]\nhidden = [16]",
    );
    let with = |backend: &str| completed(&format!("{spec}[backend]\n{backend}\n"), &[]);
    let folders = [
        with("kernels = \"fast\""),
        with("kernels = \"reference\""),
        with(""),
        with("conv = \"reference\""),
    ];
    let [ours, burns, unsaid, former] = folders.each_ref().map(|folder| {
        let run = folder.path().join("results/spec/runs/base-s1");
        let of = |file: &str| fs::read_to_string(run.join(file)).unwrap();
        let environment: serde_json::Value = serde_json::from_str(&of("environment.json")).unwrap();
        let plan = of("run.toml");
        let line = |key: &str| {
            let found = plan.lines().find(|line| line.starts_with(key));
            found.map(str::to_owned)
        };
        let layers = environment["worker"]["layers"].as_object().unwrap();
        let whose: BTreeSet<String> = layers
            .values()
            .map(|who| who.as_str().unwrap().to_owned())
            .collect();
        (whose, line("kernels = "), line("fingerprint = "))
    });
    let whose = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<BTreeSet<_>>()
    };
    assert_eq!((&ours.0, &ours.1), (&whose(&["runner"]), &None));
    let reference = Some("kernels = \"reference\"".to_owned());
    assert_eq!((&burns.0, &burns.1), (&whose(&["burn"]), &reference));
    // What is not set is the default, and the former name of the key means the same.
    assert_eq!(ours, unsaid);
    assert_eq!(burns, former);
    assert_ne!(ours.2, burns.2);
    assert_ne!(numbers(folders[0].path()), numbers(folders[1].path()));
}

/// Starts a command and reads its events until `epoch` of any run is finished.
fn start_until_epoch(mut command: Command, epoch: usize) -> (Child, impl Iterator<Item = String>) {
    command.stdin(Stdio::piped()).stderr(Stdio::null());
    started_until(
        &mut command,
        &format!("\"epoch_finished\",\"epoch\":{epoch},"),
    )
}

#[test]
fn a_killed_worker_goes_on_to_the_same_numbers() {
    let straight = completed(STOPPABLE, &[]);
    let killed = folder_with(STOPPABLE);
    // A run that fails at once leaves the folder prepared for the worker.
    run(
        killed.path(),
        &["run", "spec.toml", "--quiet", "--inject-fault", "*@1"],
    );
    for epoch in [3, 9, 17] {
        let mut worker = runner(killed.path());
        worker.args(["exec", "results/spec/runs/base-s1", "--threads", "1"]);
        let (mut child, _lines) = start_until_epoch(worker, epoch);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    goes_on(killed.path());
    assert_eq!(numbers(straight.path()), numbers(killed.path()));
}

#[cfg(unix)]
#[test]
fn an_interrupted_experiment_goes_on_to_the_same_numbers() {
    let straight = completed(STOPPABLE, &[]);
    let stopped = folder_with(STOPPABLE);
    for epoch in [2, 11] {
        let mut command = runner(stopped.path());
        command.args(["run", "spec.toml", "--json", "--jobs", "2"]);
        let (mut child, lines) = start_until_epoch(command, epoch);
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
        lines.for_each(drop);
        assert_eq!(child.wait().unwrap().code(), Some(130));
        assert_eq!(summary(stopped.path(), "base-s1")["outcome"], "interrupted");
    }
    let stderr = goes_on(stopped.path());
    assert!(
        stderr.contains("resumed from where they stopped"),
        "{stderr}"
    );
    assert_eq!(numbers(straight.path()), numbers(stopped.path()));
}

#[cfg(unix)]
#[test]
fn workers_do_not_outlive_a_killed_runner() {
    let straight = completed(STOPPABLE, &[]);
    let folder = folder_with(STOPPABLE);
    let mut command = runner(folder.path());
    command.args(["run", "spec.toml", "--json", "--jobs", "2"]);
    let (mut child, lines) = start_until_epoch(command, 4);
    child.kill().unwrap();
    child.wait().unwrap();
    lines.for_each(drop);
    // The new runner can take the lock at once; the workers notice that their leash is closed, and the checkpoint that
    // they may still write is valid.
    goes_on(folder.path());
    assert_eq!(numbers(straight.path()), numbers(folder.path()));
}

#[test]
fn a_damaged_checkpoint_is_passed_over_for_the_one_before() {
    let spec = STOPPABLE.edit("[train]", "[checkpoint]\nkeep_last = 3\n\n[train]");
    let straight = completed(&spec, &[]);
    let damaged = folder_with(&spec);
    run(
        damaged.path(),
        &["run", "spec.toml", "--quiet", "--inject-fault", "*@6"],
    );
    let checkpoints = damaged.path().join("results/spec/runs/base-s1/checkpoints");
    let newest = checkpoints.join("model-130.bpk");
    damage(&newest);
    let stderr = goes_on(damaged.path());
    assert!(
        stderr.contains("skipped checkpoint 130: the sha256 sum of model-130.bpk is wrong"),
        "{stderr}"
    );
    assert_eq!(numbers(straight.path()), numbers(damaged.path()));
}

#[test]
fn a_damaged_best_checkpoint_is_not_used() {
    let straight = completed(STOPPABLE, &[]);
    let damaged = folder_with(STOPPABLE);
    let checkpoints = damaged.path().join("results/spec/runs/base-s1/checkpoints");
    // Continues epoch by epoch until the best one is not the newest.
    let models = (8..25).find_map(|epoch| {
        let fault = format!("*@{epoch}");
        run(
            damaged.path(),
            &["run", "spec.toml", "--quiet", "--inject-fault", &fault],
        );
        let files = fs::read_dir(&checkpoints).unwrap().flatten();
        let mut models: Vec<_> = files
            .map(|entry| entry.path())
            .filter(|path| path.to_string_lossy().contains("model-"))
            .collect();
        models.sort_by_key(|path| fs::metadata(path).unwrap().modified().unwrap());
        (models.len() == 2).then_some(models)
    });
    let best = &models.expect("an epoch that is not the best")[0];
    damage(best);
    let stderr = goes_on(damaged.path());
    assert!(stderr.contains("its best epoch's checkpoint"), "{stderr}");
    assert_eq!(numbers(straight.path()), numbers(damaged.path()));
    let report = fs::read_to_string(damaged.path().join("results/spec/report.md")).unwrap();
    assert!(report.contains("`base-s1` skipped checkpoint"), "{report}");
}

#[test]
fn every_kept_checkpoint_can_be_used() {
    // A falling loss makes each epoch the best: the previous one must keep its own best.
    let spec = format!(
        "{STOPPABLE}\n[objective]\nmetric = \"train/loss\"\n\n[checkpoint]\nkeep_last = 2\n"
    );
    let folder = folder_with(&spec);
    run(
        folder.path(),
        &["run", "spec.toml", "--quiet", "--inject-fault", "*@6"],
    );
    let checkpoints = folder.path().join("results/spec/runs/base-s1/checkpoints");
    fs::write(checkpoints.join("model-130.bpk"), "damaged").unwrap();
    let stderr = goes_on(folder.path());
    assert_eq!(stderr.matches("base-s1: skipped").count(), 1, "{stderr}");
}

#[test]
fn a_model_beyond_the_machine_is_refused() {
    let folder = folder_with(&IRIS.edit("[16]", "[1048576, 1048576]"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("needs at least 12.0 TiB") || stderr.contains("needs at least 16.0 TiB"),
        "{stderr}"
    );
    assert!(!folder.path().join("results").exists());
}

#[test]
fn what_is_derived_is_written_again() {
    let folder = completed(IRIS, &[]);
    let before = numbers(folder.path());
    let runs = folder.path().join("results/spec/runs/base-s1");
    fs::remove_file(runs.join("summary.json")).unwrap();
    fs::remove_file(runs.join("metrics.csv")).unwrap();
    let (code, _, stderr) = run(folder.path(), &["report", "results/spec"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(numbers(folder.path()), before);
}

#[cfg(unix)]
#[test]
fn a_second_interrupt_stops_at_once() {
    let slow = STOPPABLE.edit("batch_size = 50", "batch_size = 600");
    let folder = folder_with(&slow);
    let mut command = runner(folder.path());
    command.args(["run", "spec.toml", "--json", "--jobs", "2"]);
    let (mut child, lines) = start_until_epoch(command, 1);
    for _ in 0..2 {
        Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status()
            .unwrap();
    }
    lines.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(summary(folder.path(), "base-s1")["outcome"], "interrupted");
}

#[test]
fn a_panicking_run_fails_alone_and_only_it_is_tried_again() {
    let spec = format!("[experiment]\nseeds = [1, 2, 3]\n{IRIS}");
    let folder = folder_with(&spec);
    let (code, _, stderr) = run(
        folder.path(),
        &["run", "spec.toml", "--inject-fault", "*-s2@2"],
    );
    assert_eq!(code, 1, "{stderr}");
    let failed = summary(folder.path(), "base-s2");
    assert_eq!(failed["outcome"], "failed");
    assert_eq!(failed["failure"]["class"], "panic");
    assert!(
        failed["failure"]["message"]
            .as_str()
            .unwrap()
            .starts_with("injected fault in epoch 2 (src/train/fault.rs:")
    );
    assert_eq!(summary(folder.path(), "base-s3")["outcome"], "completed");
    let report = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(report.contains("2 of 3 runs completed"), "{report}");
    assert!(
        report.contains("- `base-s2` failed: panic: injected fault"),
        "{report}"
    );
    let stderr = goes_on(folder.path());
    assert!(
        stderr.contains("1 of 3 runs to do, 2 already completed, 1 retried after a failure"),
        "{stderr}"
    );
    let stderr = goes_on(folder.path());
    assert!(
        stderr.contains("0 of 3 runs to do, 3 already completed"),
        "{stderr}"
    );
}

#[test]
fn a_loss_that_is_no_number_fails_the_run() {
    let folder = folder_with(&IRIS.edit("adam", "sgd").edit("1e-2", "1e30"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 1, "{stderr}");
    let summary = summary(folder.path(), "base-s1");
    assert_eq!(summary["failure"]["class"], "not_finite");
    // The first update goes through, the second loss is none: nothing of the epoch counts.
    let message = summary["failure"]["message"].as_str().unwrap();
    let place = "in epoch 1, step 2: first in the output of layer `linear_2`";
    assert!(message.contains(place), "{message}");
    assert!(
        message.contains("lower `optimizer.learning_rate`"),
        "{message}"
    );
    assert_eq!(
        (&summary["epochs"], &summary["metrics"]),
        (&json!(0), &json!({}))
    );
    assert!(stderr.contains(message), "{stderr}");
    assert!(stderr.contains("0 of 1 runs completed, 1 not"), "{stderr}");
}

#[test]
fn a_run_whose_forecast_is_above_its_memory_limit_is_not_started() {
    let folder = folder_with(&format!("{IRIS}\n[memory]\nlimit = \"1MiB\"\n"));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 1, "{stderr}");
    let summary = summary(folder.path(), "base-s1");
    assert_eq!(summary["failure"]["class"], "out_of_memory");
    let message = summary["failure"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("it was not started: it is forecast to need "),
        "{message}"
    );
    assert!(
        message.contains("but `memory.limit` is 1.0 MiB; "),
        "{message}"
    );
    assert_eq!(
        (&summary["epochs"], &summary["steps"]),
        (&json!(0), &json!(0))
    );
    let trained = tree(&folder.path().join("results/spec/runs/base-s1"));
    let is_weights = |path: &&String| path.ends_with(".bpk");
    assert_eq!(trained.iter().find(is_weights), None, "{trained:?}");
}

#[test]
fn runs_of_another_plan_are_made_anew() {
    let folder = completed(IRIS, &[]);
    let (code, _, stderr) = run(
        folder.path(),
        &["run", "spec.toml", "--set", "optimizer.learning_rate=0.5"],
    );
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("`base-s1` is rerun: `optimizer.learning_rate` was 0.01, is 0.5"),
        "{stderr}"
    );
    // More seeds are not another plan: existing results stay.
    let (code, _, stderr) = run(
        folder.path(),
        &[
            "run",
            "spec.toml",
            "--set",
            "optimizer.learning_rate=0.5",
            "--set",
            "experiment.seeds=[1, 2]",
        ],
    );
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("1 of 2 runs to do, 1 already completed"),
        "{stderr}"
    );
    // None of the existing runs: apparently another experiment of the same name.
    let (code, _, stderr) = run(
        folder.path(),
        &["run", "spec.toml", "--set", "experiment.seeds=[7]"],
    );
    assert_eq!(code, 2);
    insta::assert_snapshot!(stderr);
}

#[test]
fn two_runners_do_not_write_to_one_folder() {
    let folder = completed(IRIS, &[]);
    let lock = fs::File::open(folder.path().join("results/spec/.lock")).unwrap();
    lock.lock().unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("another `runner run` is writing to `results/spec`"),
        "{stderr}"
    );
}

#[test]
fn precisions_and_losses_train() {
    let spec = format!(
        "{IRIS}\n[sweep.grid]\nbackend.precision = [\"f32\", \"f64\"]\nloss.type = [\"cross_entropy\", \"mse\"]\n"
    )
    .edit("epochs = 3", "epochs = 20");
    let folder = completed(&spec, &[]);
    for (id, _, metrics, ..) in numbers(folder.path()) {
        assert!(
            metrics["valid/accuracy"].as_f64().unwrap() >= 0.8,
            "{id}: {metrics}"
        );
    }
}

#[test]
fn an_mlp_reaches_its_figure_on_the_real_files() {
    let Some(mnist) = mnist() else { return };
    let spec = format!(
        "[data]\ntype = \"mnist\"\nroot = {:?}\npart = \"test\"\nsplit.seed = 1\n[model]\ntype = \"mlp\"\n\
         [optimizer]\ntype = \"adam\"\nlearning_rate = 1e-3\n[train]\nepochs = 3\nbatch_size = 64\n",
        mnist.display().to_string()
    );
    let folder = completed(&spec, &[]);
    let accuracy = summary(folder.path(), "base-s1")["metrics"]["valid/accuracy"]
        .as_f64()
        .unwrap();
    assert!(accuracy >= 0.93, "{accuracy}");
}

/// Whatever ends the first moments of a run, the next one knows the folder.
#[test]
fn a_folder_whose_writing_ended_early_is_no_users() {
    let folder = folder_with(IRIS);
    let copy = folder.path().join("results/spec/experiment.toml");
    fs::create_dir_all(&copy).unwrap();
    let attempt = || run(folder.path(), &["run", "spec.toml", "--quiet"]);
    let (code, _, said) = attempt();
    assert!(code != 0 && said.contains("experiment.toml"), "{said}");
    fs::remove_dir(&copy).unwrap();
    fs::write(&copy, "as far as it was written").unwrap();
    let (code, _, said) = attempt();
    assert_eq!(code, 0, "{said}");
    assert_eq!(fs::read_to_string(&copy).unwrap(), IRIS);
}

/// A folder of the experiment's name may be the user's.
#[test]
fn files_that_runner_did_not_write_are_not_replaced() {
    let folder = folder_with(IRIS);
    let results = folder.path().join("results/spec");
    let attempt = || run(folder.path(), &["run", "spec.toml", "--quiet"]);
    for name in [
        "report.md",
        "plan.json",
        "runs/base-s1/metrics.csv",
        "runs/base-s1/model/best.bpk",
    ] {
        let path = results.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "mine").unwrap();
        let (code, _, said) = attempt();
        assert_eq!(code, 2, "{name}: {said}");
        assert!(said.contains(name), "{name}: {said}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        fs::remove_file(&path).unwrap();
    }
    // What has no name that runner uses stays where it is.
    fs::write(results.join("notes.txt"), "mine").unwrap();
    let (code, _, said) = attempt();
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        fs::read_to_string(results.join("notes.txt")).unwrap(),
        "mine"
    );
    // Without its plan, it is still runner's.
    fs::remove_file(results.join("plan.json")).unwrap();
    fs::remove_file(results.join(".index.jsonl")).unwrap();
    let (code, _, said) = attempt();
    assert_eq!(code, 0, "{said}");
}
