//! Runs that are killed at any moment, extended, or changed: completed work stays, and numbers equal those of an
//! uninterrupted run.

use std::fs;
use std::path::Path;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

use burn_runner::event::Event;
use burn_runner::record::RunFolder;

use super::edit::Edit;
use super::runs::STOPPABLE;
use super::support::{IRIS, completed, folder_with, goes_on, numbers, run, summary};

/// One run with every feature on, and checkpoints within epochs.
fn one_run() -> String {
    STOPPABLE
        .edit("seeds = [1, 2]", "seeds = [1]")
        .edit("epochs = 60", "epochs = 24")
        .edit("epochs = 30", "epochs = 10")
        .edit("[train]", "[checkpoint]\nevery_steps = 7\n\n[train]")
}

/// Runs until a fault occurs; returns whether it did.
fn killed_at(folder: &Path, fault: &str) -> bool {
    let fault = format!("*@{fault}=kill");
    let (code, ..) = run(
        folder,
        &["run", "spec.toml", "--quiet", "--inject-fault", &fault],
    );
    if code == 0 {
        return false;
    }
    let summary = summary(folder, "base-s1");
    assert_eq!(summary["failure"]["class"], "killed", "{summary}");
    true
}

#[cfg(unix)]
#[test]
fn a_run_that_is_killed_at_twenty_moments_is_the_same_run() {
    const STEPS_PER_EPOCH: usize = 26;
    let straight = completed(&one_run(), &[]);
    let killed = folder_with(&one_run());
    let mut rng = ChaCha8Rng::seed_from_u64(20);
    let mut moments: Vec<(usize, String)> = (0..20)
        .map(|number| {
            let epoch = rng.random_range(1..=24);
            let step = (epoch - 1) * STEPS_PER_EPOCH + rng.random_range(1..=STEPS_PER_EPOCH);
            match number % 4 {
                0 => (epoch * STEPS_PER_EPOCH, format!("validating:{epoch}")),
                1 => {
                    let end = epoch * STEPS_PER_EPOCH;
                    (end + 1, format!("checkpointing:{end}"))
                }
                _ => (step, format!("training:{step}")),
            }
        })
        .collect();
    moments.sort();
    moments.dedup();
    assert!(killed_at(killed.path(), "loading"));
    for (_, moment) in &moments {
        assert!(killed_at(killed.path(), moment), "{moment}");
    }
    assert!(killed_at(killed.path(), "evaluating"));
    goes_on(killed.path());
    assert_eq!(numbers(straight.path()), numbers(killed.path()));
}

#[test]
fn no_number_depends_on_when_it_is_read() {
    let often = one_run().edit("[train]", "[train]\nlog_every = 1");
    let rarely = one_run().edit("[train]", "[train]\nlog_every = 1000");
    let often = numbers(completed(&often, &[]).path());
    assert_eq!(often, numbers(completed(&rarely, &[]).path()));
    assert_eq!(often, numbers(completed(&one_run(), &[]).path()));
}

#[test]
fn more_epochs_are_added_to_those_that_are_there() {
    let spec = STOPPABLE
        .edit("seeds = [1, 2]", "seeds = [1]")
        .edit("\"cosine\"\nfraction", "\"constant\"\nfraction")
        .edit("epochs = 30", "epochs = 3")
        .edit("period = 8", "period = 1");
    let (short, long) = (
        spec.edit("epochs = 60", "epochs = 6"),
        spec.edit("epochs = 60", "epochs = 14"),
    );
    let folder = completed(&short, &[]);
    let fresh = completed(&long, &[]);
    fs::write(folder.path().join("spec.toml"), &long).unwrap();
    let (_, table, _) = run(folder.path(), &["plan", "spec.toml"]);
    assert!(
        table.contains("to extend from 6 epochs, at step 156"),
        "{table}"
    );
    let said = goes_on(folder.path());
    assert!(said.contains("1 extended to more epochs"), "{said}");
    assert_eq!(numbers(fresh.path()), numbers(folder.path()));
    let events = folder.path().join("results/spec/runs/base-s1/events.jsonl");
    let events = fs::read_to_string(events).unwrap();
    assert!(events.contains("\"resumed_step\":156"), "{events}");
}

/// The steps of a run's checkpoints, newest first, after a byte of the newest one's optimizer was changed.
fn damage_newest(folder: &Path) -> Vec<usize> {
    let run = RunFolder(folder.join("results/spec/runs/base-s1"));
    let steps = run.checkpoint_steps();
    let path = run.checkpoint_part("optimizer", steps[0]);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
    steps
}

/// What a plan promises and where the run then resumes are the same.
fn resumes(folder: &Path, promised: &str, step: usize) {
    let (_, table, _) = run(folder, &["plan", "spec.toml"]);
    assert!(table.contains(&format!("{promised} {step}")), "{table}");
    let (code, events, stderr) = run(folder, &["run", "spec.toml", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let resumed = format!("\"resumed_step\":{step},");
    assert!(events.contains(&resumed), "{resumed}: {events}");
}

#[cfg(unix)]
#[test]
fn a_plan_and_a_run_pass_over_the_same_damaged_checkpoint() {
    let folder = folder_with(&one_run());
    assert!(killed_at(folder.path(), "training:100"));
    // As if nobody had been left to record how it ended.
    let there = RunFolder(folder.path().join("results/spec/runs/base-s1"));
    let mut events = there.read_events().unwrap();
    events.retain(|(_, event)| !matches!(event, Event::RunFinished { .. }));
    there.write_events(&events).unwrap();
    there.remove_summary().unwrap();
    let steps = damage_newest(folder.path());
    resumes(folder.path(), "to resume at step", steps[1]);
}

#[test]
fn a_longer_plan_and_its_run_pass_over_the_same_damaged_checkpoint() {
    let spec = format!("{IRIS}\n[checkpoint]\nevery_epochs = 1\nkeep_last = 2\n");
    let folder = completed(&spec, &[]);
    let longer = spec.edit("epochs = 3", "epochs = 6");
    fs::write(folder.path().join("spec.toml"), longer).unwrap();
    let steps = damage_newest(folder.path());
    resumes(folder.path(), "to extend from 3 epochs, at step", steps[1]);
}

#[test]
fn a_schedule_over_the_length_is_made_anew_with_the_reason() {
    let cosine = format!("{IRIS}\n[scheduler]\ntype = \"cosine\"\n");
    let folder = completed(&cosine, &[]);
    let before = numbers(folder.path());
    let longer = cosine.edit("epochs = 3", "epochs = 5");
    fs::write(folder.path().join("spec.toml"), &longer).unwrap();
    let (_, table, _) = run(folder.path(), &["plan", "spec.toml"]);
    let said = goes_on(folder.path());
    let times = regex::Regex::new(r"  \d+\.\d s").unwrap();
    let said = times.replace_all(&said, "  0.0 s");
    insta::assert_snapshot!(format!("{table}\n{said}"));
    assert_eq!(
        numbers(completed(&longer, &[]).path()),
        numbers(folder.path())
    );
    // Previous content is kept, and is rebuilt when the file returns.
    let replaced = fs::read_dir(folder.path().join("results/spec/replaced")).unwrap();
    assert_eq!(replaced.count(), 1);
    fs::write(folder.path().join("spec.toml"), &cosine).unwrap();
    goes_on(folder.path());
    assert_eq!(numbers(folder.path()), before);
}

#[test]
fn what_is_to_do_is_said_for_each_run() {
    let spec = format!("[experiment]\nseeds = [1, 2, 3]\n{IRIS}");
    let folder = completed(&spec, &["--only", "*-s1", "--only", "*-s2"]);
    run(
        folder.path(),
        &[
            "run",
            "spec.toml",
            "--quiet",
            "--inject-fault",
            "*-s3@2",
            "--only",
            "*-s3",
        ],
    );
    let more = spec.edit("[1, 2, 3]", "[1, 3, 4]");
    fs::write(folder.path().join("spec.toml"), more).unwrap();
    let (_, table, _) = run(folder.path(), &["plan", "spec.toml"]);
    insta::assert_snapshot!(table);
}

#[test]
fn the_newest_and_the_best_checkpoints_are_kept() {
    let spec = format!(
        "{IRIS}\n[checkpoint]\nkeep_last = 2\nkeep_best = 3\n\n[objective]\nmetric = \"train/loss\"\n"
    )
    .edit("epochs = 3", "epochs = 9");
    let folder = completed(&spec, &[]);
    let run = folder.path().join("results/spec/runs/base-s1");
    let metrics = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let column = metrics.lines().next().unwrap().split(',');
    let column = column
        .clone()
        .position(|name| name == "train/loss")
        .unwrap();
    let mut epochs: Vec<(f64, usize)> = metrics
        .lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[column].parse().unwrap(), cells[1].parse().unwrap())
        })
        .collect();
    let last: Vec<usize> = epochs[7..].iter().map(|(_, step)| *step).collect();
    epochs.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let mut expected: Vec<usize> = epochs[..3]
        .iter()
        .map(|(_, step)| *step)
        .chain(last)
        .collect();
    expected.sort_unstable();
    expected.dedup();
    let mut kept: Vec<usize> = fs::read_dir(run.join("checkpoints"))
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            let step = name.strip_prefix("checkpoint-")?.strip_suffix(".json")?;
            step.parse().ok()
        })
        .collect();
    kept.sort_unstable();
    assert_eq!(kept, expected);
}

#[test]
fn a_loss_that_is_no_number_is_traced_to_where_it_began() {
    let sgd = IRIS.edit("adam", "sgd");
    for (learning_rate, scale) in [("1e30", ""), ("1e3", "")] {
        let folder = folder_with(&format!("{}{scale}", sgd.edit("1e-2", learning_rate)));
        let (code, ..) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 1);
        let summary = summary(folder.path(), "base-s1");
        insta::assert_snapshot!(
            format!("not_finite_{learning_rate}"),
            summary["failure"]["message"].as_str().unwrap()
        );
    }
}

#[test]
fn longer_runs_that_were_not_asked_for_yet_are_not_done() {
    let spec = format!("[experiment]\nseeds = [1, 2]\n{IRIS}");
    let folder = completed(&spec, &[]);
    let longer = spec.edit("epochs = 3", "epochs = 6");
    fs::write(folder.path().join("spec.toml"), &longer).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--only", "*-s1"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stderr.contains("1 of 2 runs completed, 1 not"), "{stderr}");
    let (_, table, _) = run(folder.path(), &["plan", "spec.toml"]);
    assert!(table.contains("to extend from 3 epochs"), "{table}");
    // Killed in the middle of the extension, it must still be extended.
    run(
        folder.path(),
        &[
            "run",
            "spec.toml",
            "--quiet",
            "--inject-fault",
            "*@training:30=kill",
        ],
    );
    let (_, table, _) = run(folder.path(), &["plan", "spec.toml"]);
    assert!(table.contains("failed (killed), to retry"), "{table}");
    goes_on(folder.path());
    assert_eq!(
        numbers(completed(&longer, &[]).path()),
        numbers(folder.path())
    );
    // Other settings for one run do not affect the other one.
    let (code, ..) = run(
        folder.path(),
        &[
            "run",
            "spec.toml",
            "--only",
            "*-s1",
            "--set",
            "optimizer.learning_rate=0.5",
        ],
    );
    assert_eq!(code, 0);
    let (_, table, _) = run(folder.path(), &["plan", "spec.toml"]);
    assert_eq!(table.matches("done").count(), 1, "{table}");
}

#[test]
fn a_sidecar_that_was_changed_is_no_checkpoint() {
    let folder = folder_with(IRIS);
    let fault = ["run", "spec.toml", "--quiet", "--inject-fault", "*@3"];
    run(folder.path(), &fault);
    let checkpoints = folder.path().join("results/spec/runs/base-s1/checkpoints");
    let sidecar = checkpoints.join("checkpoint-16.json");
    let text = fs::read_to_string(&sidecar).unwrap();
    assert!(text.contains("\"epochs_done\": 2"), "{text}");
    fs::write(
        &sidecar,
        text.edit("\"epochs_done\": 2", "\"epochs_done\": 1"),
    )
    .unwrap();
    let said = goes_on(folder.path());
    assert!(
        said.contains("the sha256 sum of its sidecar is wrong"),
        "{said}"
    );
    assert_eq!(numbers(completed(IRIS, &[]).path()), numbers(folder.path()));
}

#[test]
fn looking_for_what_was_not_finite_leaves_no_checkpoint() {
    let folder = folder_with(&IRIS.edit("adam", "sgd").edit("1e-2", "1e3"));
    run(folder.path(), &["run", "spec.toml", "--quiet"]);
    let events = folder.path().join("results/spec/runs/base-s1/events.jsonl");
    let events = fs::read_to_string(events).unwrap();
    assert!(!events.contains("checkpoint_saved"), "{events}");
}
