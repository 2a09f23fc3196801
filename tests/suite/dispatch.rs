//! Stopping one run, and starting no more: with shell scripts as workers, which obey at once.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use burn_runner::dispatch::{self, Cancel, Hardware, Observed, Reason, Settings, Task, Urgency};
use burn_runner::event::{Event, FailureClass, Outcome};
use burn_runner::plan::inventory::{DeviceKind, Found, Inventory, Listed, State};
use burn_runner::spec::backend::Precision;
use tempfile::TempDir;

use super::support::{IRIS, plan};

const SEEDS: &str = "[experiment]\nseeds = [1, 2, 3]\n";

/// A worker that reports that it has started, waits until its leash is closed, and reports that it was interrupted.
const WAITS: &str = r#"
say '{"event":"checkpoint_saved","step":1,"epoch":1}'
cat > /dev/null
say '{"event":"run_finished","outcome":{"outcome":"interrupted"},"wall_secs":1.0,"weights_digest":""}'
"#;

/// Like the previous one, but it does not react.
const HANGS: &str = r#"
say '{"event":"checkpoint_saved","step":1,"epoch":1}'
exec tail -f /dev/null
"#;

/// Fails as soon as the test has opened the pipe next to the script.
const FAILS_WHEN_TOLD: &str = r#"
say '{"event":"checkpoint_saved","step":1,"epoch":1}'
: < "$0.pipe"
say '{"event":"run_finished","outcome":{"outcome":"failed","class":"panic","message":"no"},"wall_secs":1.0,"weights_digest":""}'
"#;

const FAILS: &str = r#"
say '{"event":"run_finished","outcome":{"outcome":"failed","class":"panic","message":"no"},"wall_secs":1.0,"weights_digest":""}'
"#;

/// Prints lines that are not events, including bytes that are not text and a partial line.
const PRINTS: &str = r#"
printf '\377\376 a banner\n'
say '{"event":"checkpoint_saved","step":1,"epoch":1}'
printf '\n{"event":\n\200'
say ''
say '{"event":"run_finished","outcome":{"outcome":"completed"},"wall_secs":1.0,"weights_digest":"x"}'
"#;

const COMPLETES: &str = r#"
say '{"event":"run_finished","outcome":{"outcome":"completed"},"wall_secs":1.0,"weights_digest":"x"}'
"#;

/// The scripts of runs, by the end of their folders' names.
fn settings(folder: &Path, jobs: usize, workers: &[(&str, &str)]) -> Settings {
    let cases = workers
        .iter()
        .map(|(end, does)| format!("*{end})\n{does}\n;;\n"));
    let cases: String = cases.collect();
    // The first argument is `exec`, the second the run's folder.
    let script = format!("#!/bin/sh\nsay() {{ echo \"$1\"; }}\ncase \"$2\" in\n{cases}esac\n");
    let program = folder.join("worker");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let made = Command::new("mkfifo").arg(pipe(folder)).status().unwrap();
    assert!(made.success());
    Settings {
        program,
        jobs,
        threads: 1,
        hardware: Hardware::unknown(),
        time_limit: None,
    }
}

fn pipe(folder: &Path) -> PathBuf {
    folder.join("worker.pipe")
}

fn tasks(folder: &Path, spec: &str) -> Vec<Task> {
    let (plan, _) = plan("spec.toml", spec).unwrap();
    let tasks = plan.runs.into_iter().map(|plan| Task {
        folder: PathBuf::from(&plan.id),
        shown: None,
        log: folder.join("log"),
        arguments: Vec::new(),
        attempts: Default::default(),
        plan,
    });
    tasks.collect()
}

/// Dispatches runs, and handles each event. Returns how each run ended, if it was started.
fn dispatched(
    spec: &str,
    jobs: usize,
    workers: &[(&str, &str)],
    on: impl FnMut(&Cancel, &Observed, &Path) + Send,
) -> (Vec<Option<Outcome>>, Option<Reason>) {
    let folder = tempfile::tempdir().unwrap();
    let tasks = tasks(folder.path(), spec);
    let settings = settings(folder.path(), jobs, workers);
    dispatched_as(&folder, &tasks, &settings, on)
}

fn dispatched_as(
    folder: &TempDir,
    tasks: &[Task],
    settings: &Settings,
    mut on: impl FnMut(&Cancel, &Observed, &Path) + Send,
) -> (Vec<Option<Outcome>>, Option<Reason>) {
    let cancel = Cancel::default();
    let (sender, receiver): (_, Receiver<Observed>) = channel();
    let mut outcomes = vec![None; tasks.len()];
    std::thread::scope(|scope| {
        let (cancel, outcomes) = (&cancel, &mut outcomes);
        scope.spawn(move || {
            for observed in receiver {
                if let Event::RunFinished { outcome, .. } = &observed.event {
                    outcomes[observed.run] = Some(outcome.clone());
                }
                on(cancel, &observed, folder.path());
            }
        });
        dispatch::dispatch(tasks, settings, cancel, sender).unwrap();
    });
    (outcomes, cancel.reason())
}

fn is_up(observed: &Observed, run: usize) -> bool {
    observed.run == run && matches!(observed.event, Event::CheckpointSaved { .. })
}

#[test]
fn bytes_that_are_no_text_end_no_worker() {
    let mut num_checkpoints = 0;
    let (outcomes, _) = dispatched(IRIS, 1, &[("s1", PRINTS)], |_, observed, _| {
        num_checkpoints += usize::from(is_up(observed, 0));
    });
    assert_eq!(outcomes, [Some(Outcome::Completed)]);
    assert_eq!(num_checkpoints, 1);
}

#[test]
fn one_run_is_stopped_and_the_others_go_on() {
    let spec = format!("{SEEDS}{IRIS}");
    let workers = [("s1", COMPLETES), ("s2", WAITS), ("s3", COMPLETES)];
    let stop = |cancel: &Cancel, observed: &Observed, _: &Path| {
        if is_up(observed, 1) {
            assert_eq!(cancel.stop(1), Urgency::Graceful);
        }
    };
    let (outcomes, reason) = dispatched(&spec, 1, &workers, stop);
    let completed = || Some(Outcome::Completed);
    assert_eq!(
        outcomes,
        [completed(), Some(Outcome::Interrupted), completed()]
    );
    assert_eq!(reason, Some(Reason::User));
}

#[test]
fn a_run_that_does_not_listen_is_killed_when_it_is_stopped_twice() {
    let workers = [("s1", HANGS), ("s2", COMPLETES), ("s3", COMPLETES)];
    let stop = |cancel: &Cancel, observed: &Observed, _: &Path| {
        if is_up(observed, 0) {
            assert_eq!(cancel.stop(0), Urgency::Graceful);
            assert_eq!(cancel.stop(0), Urgency::AtOnce);
        }
    };
    let (outcomes, _) = dispatched(&format!("{SEEDS}{IRIS}"), 2, &workers, stop);
    let completed = || Some(Outcome::Completed);
    assert_eq!(
        outcomes,
        [Some(Outcome::Interrupted), completed(), completed()]
    );
}

#[test]
fn a_run_that_waits_for_its_retry_can_be_stopped() {
    let spec = format!("{SEEDS}{IRIS}\n[on_failure.panic]\nretries = 3\nbackoff = \"1h\"\n");
    let workers = [("s1", FAILS), ("s2", COMPLETES), ("s3", COMPLETES)];
    let stop = |cancel: &Cancel, observed: &Observed, _: &Path| {
        if matches!(observed.event, Event::RunRetried { .. }) {
            cancel.stop(observed.run);
        }
    };
    let (outcomes, _) = dispatched(&spec, 1, &workers, stop);
    let completed = || Some(Outcome::Completed);
    assert_eq!(
        outcomes,
        [Some(Outcome::Interrupted), completed(), completed()]
    );
}

#[test]
fn nothing_is_started_any_more_and_what_is_under_way_comes_to_its_end() {
    // The first one fails and is still retried.
    let spec = format!("{SEEDS}{IRIS}\n[on_failure.panic]\nretries = 1\nbackoff = \"0s\"\n");
    let workers = [
        ("s1", FAILS_WHEN_TOLD),
        ("s2", COMPLETES),
        ("s3", COMPLETES),
    ];
    let mut retries = 0;
    let stop = |cancel: &Cancel, observed: &Observed, folder: &Path| {
        retries += usize::from(matches!(observed.event, Event::RunRetried { .. }));
        if is_up(observed, 0) {
            cancel.start_no_more();
            fs::write(pipe(folder), "").unwrap();
        }
    };
    let (outcomes, reason) = dispatched(&spec, 1, &workers, stop);
    let class = FailureClass::Panic;
    assert!(matches!(&outcomes[0], Some(Outcome::Failed { class: c, .. }) if *c == class));
    assert_eq!(outcomes[1..], [None, None]);
    assert_eq!((reason, retries), (Some(Reason::User), 1));
}

/// Writes which GPUs it sees next to the script.
const SEES: &str = r#"
echo "${CUDA_VISIBLE_DEVICES-all} $BURN_DEVICE" > "$0.$(basename "$2")"
"#;

/// A GPU as `runner devices` lists it.
fn gpu(device: &str, name: &str) -> Listed {
    let bytes = 8 << 30;
    Listed {
        device: device.parse().unwrap(),
        state: State::Found(Found {
            name: name.into(),
            driver: None,
            memory_bytes: Some(bytes),
            precisions: vec![Precision::F32],
            kind: DeviceKind::Gpu,
            card: format!("0000:{device}"),
        }),
    }
}

/// What the workers of two runs see of three GPUs. With `meet`, each waits until the other one is there.
fn seen(device: &str, has_any_gpu: bool, meet: [&str; 2]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let spec = "[experiment]\nseeds = [1, 2]\n".to_owned() + IRIS;
    let mut tasks = tasks(folder.path(), &spec);
    for task in &mut tasks {
        task.plan.device = device.parse().unwrap();
        task.plan.skip = None;
    }
    let all = [
        gpu("cuda", "H100"),
        gpu("cuda:1", "T4"),
        gpu("cuda:2", "H100"),
    ];
    let workers = meet.map(|meet| format!("{SEES}{meet}{COMPLETES}"));
    let workers = [("s1", workers[0].as_str()), ("s2", workers[1].as_str())];
    let settings = Settings {
        hardware: Hardware {
            inventory: Inventory(all.to_vec()),
            has_any_gpu,
            ..Hardware::unknown()
        },
        ..settings(folder.path(), 2, &workers)
    };
    let (outcomes, _) = dispatched_as(&folder, &tasks, &settings, |_, _, _| {});
    assert!(outcomes.iter().all(|it| *it == Some(Outcome::Completed)));
    let seen = tasks.iter().map(|task| {
        let name = folder.path().join(format!("worker.{}", task.plan.id));
        fs::read_to_string(name).unwrap().trim().to_owned()
    });
    seen.collect()
}

#[test]
fn runs_share_equal_gpus() {
    // One side of a pipe waits for the other.
    let meet = [": > \"$0.pipe\"", ": < \"$0.pipe\""];
    assert_eq!(seen("cuda", true, meet), ["0 cuda", "2 cuda"]);
    assert_eq!(seen("cuda", false, ["", ""]), ["all cuda", "all cuda"]);
    // One GPU was chosen by its index.
    let chosen = ["all cuda:2", "all cuda:2"];
    assert_eq!(seen("cuda:2", true, ["", ""]), chosen);
}

#[test]
fn all_is_stopped_also_after_one_was() {
    let workers = [("s1", WAITS), ("s2", WAITS), ("s3", COMPLETES)];
    let stop = |cancel: &Cancel, observed: &Observed, _: &Path| {
        if is_up(observed, 0) {
            cancel.stop(0);
        }
        // It has the slot of the first.
        if is_up(observed, 1) {
            cancel.cancel(Urgency::Graceful, Reason::User);
        }
    };
    let (outcomes, _) = dispatched(&format!("{SEEDS}{IRIS}"), 1, &workers, stop);
    let interrupted = || Some(Outcome::Interrupted);
    assert_eq!(outcomes, [interrupted(), interrupted(), None]);
}
