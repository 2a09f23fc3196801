//! The basis of a reproduction's grade: every recorded number, and every part that a run should have.

use std::fs;
use std::path::{Path, PathBuf};

use burn_runner::event::{Epoch, Event};
use burn_runner::record::{RunFolder, reseal};

use super::edit::Edit;
use super::support::{IRIS, completed, run};

const RUN: &str = "results/spec/runs/base-s1";

/// The exit code and the verdict.
fn verdict(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let (code, stdout, stderr) = run(folder, &[&["reproduce"], arguments].concat());
    let verdict = stdout.lines().find(|line| line.starts_with("verdict"));
    (code, verdict.map_or(stderr, str::to_owned))
}

/// Changes the events of a run like someone who also knows how to compute their checksums.
fn forge(run: &Path, change: impl Fn(&mut Event)) {
    let folder = RunFolder(run.to_owned());
    let mut events = folder.read_events().unwrap();
    events.iter_mut().for_each(|(_, event)| change(event));
    folder.write_events(&events).unwrap();
}

fn claim(epoch: &mut Epoch) {
    epoch.metrics.insert("valid/accuracy".into(), 0.99);
}

#[test]
fn a_forged_objective_is_not_reproduced() {
    let folder = completed(IRIS, &[]);
    let place: PathBuf = folder.path().join(RUN);
    forge(&place, |event| match event {
        Event::EpochFinished(epoch) if epoch.epoch == 3 => claim(epoch),
        _ => {}
    });
    // Its summary now contradicts its events.
    let (code, said) = verdict(folder.path(), &[RUN]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains(
            "edited record: `summary.json` (it does not match `events.jsonl`); `metrics.csv`"
        ),
        "{said}"
    );
    // A report repairs derived files, and then only the numbers show it.
    assert_eq!(run(folder.path(), &["report", "results/spec"]).0, 0);
    let (code, said) = verdict(folder.path(), &[RUN]);
    assert_eq!(code, 1, "{said}");
    assert_eq!(
        said,
        "verdict: diverged at step 24 in valid/accuracy of epoch 3"
    );
    for at_least in ["ulp:1000", "equivalent"] {
        let (code, said) = verdict(folder.path(), &[RUN, "--at-least", at_least]);
        assert_eq!(code, 1, "{said}");
    }
    // The same out of a capsule.
    let (code, _, stderr) = run(folder.path(), &["bundle", RUN, "--out", "c.capsule"]);
    assert_eq!(code, 0, "{stderr}");
    let (code, said) = verdict(folder.path(), &["c.capsule"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.starts_with("verdict: diverged at step 24"), "{said}");
}

#[test]
fn every_recorded_number_counts() {
    let folder = completed(
        &IRIS.edit(
            "type = \"iris\"",
            "type = \"iris\"\n[data.split]\ntest = 0.2",
        ),
        &[],
    );
    let place = folder.path().join(RUN);
    let (code, said) = verdict(folder.path(), &[RUN]);
    assert_eq!((code, said.as_str()), (0, "verdict: bitwise"));
    type Change = fn(&mut Event);
    let changes: [(&str, Change); 3] = [
        ("train/loss of epoch 1", |event| match event {
            Event::EpochFinished(epoch) if epoch.epoch == 1 => {
                epoch.metrics.insert("train/loss".into(), 7.0);
            }
            _ => {}
        }),
        ("learning_rate of epoch 2", |event| match event {
            Event::EpochFinished(epoch) if epoch.epoch == 2 => {
                epoch.metrics.remove("learning_rate");
            }
            _ => {}
        }),
        ("accuracy of the evaluation of test", |event| {
            if let Event::SplitEvaluated { metrics, .. } = event {
                metrics.insert("accuracy".into(), 1.5);
            }
        }),
    ];
    let events = fs::read(place.join("events.jsonl")).unwrap();
    for (what, change) in changes {
        fs::write(place.join("events.jsonl"), &events).unwrap();
        forge(&place, change);
        for file in ["summary.json", "metrics.csv"] {
            let _ = fs::remove_file(place.join(file));
        }
        let (code, said) = verdict(folder.path(), &[RUN]);
        assert_eq!(code, 1, "{what}: {said}");
        assert!(said.ends_with(what), "{what}: {said}");
    }
}

#[test]
fn a_part_that_is_missing_lowers_the_grade() {
    let parts = [
        ("trace", "the losses of the steps, which have no trace"),
        (
            "trace/digests.csv",
            "the parameters by path, which have no digests",
        ),
        (
            "model/final.bpk",
            "the weights of `model/final.bpk`, which is missing",
        ),
        (
            "model/best.bpk",
            "the weights of `model/best.bpk`, which is missing",
        ),
        ("evaluation.json", "`evaluation.json`, which is missing"),
        ("weights.json", "`weights.json`, which is missing"),
        ("environment.json", "`environment.json`, which is missing"),
        ("summary.json", "`summary.json`, which is missing"),
        ("metrics.csv", "`metrics.csv`, which is missing"),
        (
            "checkpoints",
            "the last checkpoint, whose `checkpoint-24.json` is missing",
        ),
        (
            "checkpoints/optimizer-24.bpk",
            "the last checkpoint, whose `checkpoints/optimizer-24.bpk` is missing",
        ),
    ];
    let folder = completed(IRIS, &[]);
    let place = folder.path().join(RUN);
    for (part, what) in parts {
        let (path, aside) = (place.join(part), folder.path().join("aside"));
        fs::rename(&path, &aside).unwrap();
        let (code, said) = verdict(folder.path(), &[RUN]);
        assert_eq!(code, 1, "{part}: {said}");
        assert!(
            said.starts_with("verdict: partial: bitwise as far"),
            "{part}: {said}"
        );
        assert!(said.contains(what), "{part}: {said}");
        // The objective was compared, and is equal.
        let (code, said) = verdict(folder.path(), &[RUN, "--at-least", "equivalent"]);
        assert_eq!(code, 0, "{part}: {said}");
        fs::rename(&aside, &path).unwrap();
    }
    assert_eq!(verdict(folder.path(), &[RUN]).0, 0);
    // Everything that could be compared is missing.
    for part in ["trace", "model", "checkpoints"] {
        fs::remove_dir_all(place.join(part)).unwrap();
    }
    let (code, said) = verdict(folder.path(), &[RUN, "--at-least", "ulp:1000000"]);
    assert_eq!(code, 1, "{said}");
}

#[test]
fn an_edited_record_is_called_edited() {
    let folder = completed(IRIS, &[]);
    let place = folder.path().join(RUN);
    let swap = |file: &str, from: &str, to: &str| {
        let path = place.join(file);
        let before = fs::read_to_string(&path).unwrap();
        assert!(before.contains(from), "{file}: {before}");
        fs::write(&path, before.edit_first(from, to)).unwrap();
        (path, before)
    };
    // A seal that does not match, and one that was recomputed.
    for is_resealed in [false, true] {
        for (file, from, to) in [
            ("run.toml", "learning_rate = 0.01", "learning_rate = 0.02"),
            (
                "summary.json",
                "\"valid/accuracy\": 0",
                "\"valid/accuracy\": 1",
            ),
        ] {
            let (path, before) = swap(file, from, to);
            if is_resealed {
                reseal(&path).unwrap();
            }
            let (code, said) = verdict(folder.path(), &[RUN, "--at-least", "equivalent"]);
            assert_eq!(code, 1, "{said}");
            let what = format!("verdict: edited record: `{file}`");
            assert!(said.starts_with(&what), "{said}");
            fs::write(path, before).unwrap();
        }
    }
    // Weights of another run, and events that were changed in the middle.
    let weights = fs::read(place.join("model/initial.bpk")).unwrap();
    let best = fs::read(place.join("model/best.bpk")).unwrap();
    fs::write(place.join("model/best.bpk"), weights).unwrap();
    let (code, said) = verdict(folder.path(), &[RUN]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.starts_with("verdict: edited record: `model/best.bpk`"),
        "{said}"
    );
    fs::write(place.join("model/best.bpk"), best).unwrap();
    swap(
        "events.jsonl",
        "\"valid/accuracy\":0",
        "\"valid/accuracy\":1",
    );
    let (code, said) = verdict(folder.path(), &[RUN]);
    assert!(code != 0 && said.contains("was changed"), "{said}");
}
