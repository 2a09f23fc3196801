//! Runs of earlier settings: what is listed of them, what people say of runs, and what is removed.

use std::fs;
use std::path::Path;

use burn_runner::event::Event;
use burn_runner::record::RunFolder;
use serde_json::Value as Json;

use super::support::{IRIS, folder_with, run};

/// Trains with some edits.
fn train(folder: &Path, set: &[&str], more: &[&str]) {
    let set = set.iter().flat_map(|set| ["--set", set]);
    let arguments: Vec<&str> = ["run", "spec.toml", "--quiet"]
        .into_iter()
        .chain(set)
        .collect();
    let (code, _, stderr) = run(folder, &[&arguments, more].concat());
    assert_eq!(code, 0, "{stderr}");
}

/// The listed runs, each as generation, run, outcome and what changed.
fn listed(folder: &Path, arguments: &[&str]) -> Vec<(u64, String, String, String)> {
    let (code, stdout, stderr) = run(folder, &[&["list", "--json"], arguments].concat());
    assert_eq!(code, 0, "{stderr}");
    let text = |run: &Json, name: &str| run[name].as_str().unwrap_or_default().to_owned();
    let rows = stdout.lines().map(|line| {
        let run: Json = serde_json::from_str(line).unwrap();
        let number = run["generation"].as_u64().unwrap_or(0);
        (
            number,
            text(&run, "run"),
            text(&run, "outcome"),
            text(&run, "changed"),
        )
    });
    rows.collect()
}

/// Three generations of two seeds: two that were replaced, and the present one.
fn three() -> tempfile::TempDir {
    let folder = folder_with(&format!("[experiment]\nseeds = [1, 2]\n{IRIS}"));
    for rate in ["1e-1", "1e-2", "1e-3"] {
        train(
            folder.path(),
            &[&format!("optimizer.learning_rate={rate}")],
            &[],
        );
    }
    folder
}

#[test]
fn runs_of_earlier_settings_are_listed_by_generation() {
    let folder = three();
    let row = |number, run: &str, changed: &str| {
        let texts = [run, "completed", changed].map(str::to_owned);
        let [run, outcome, changed] = texts;
        (number, run, outcome, changed)
    };
    assert_eq!(
        listed(folder.path(), &["--all"]),
        [
            row(1, "base-s1", "optimizer.learning_rate=0.1"),
            row(1, "base-s2", "optimizer.learning_rate=0.1"),
            row(2, "base-s1", "optimizer.learning_rate=0.01"),
            row(2, "base-s2", "optimizer.learning_rate=0.01"),
            row(3, "base-s1", ""),
            row(3, "base-s2", ""),
        ]
    );
    assert_eq!(listed(folder.path(), &[]).len(), 2);
    let (_, stdout, stderr) = run(folder.path(), &["list"]);
    assert!(!stdout.contains("generation"), "{stdout}");
    assert!(
        stderr.contains("4 runs of earlier settings not shown; `--all`"),
        "{stderr}"
    );
    // They are filtered by their own settings.
    let slow = listed(
        folder.path(),
        &["--all", "--filter", "optimizer.learning_rate > 0.05"],
    );
    assert_eq!(slow.len(), 2);
    let old = listed(
        folder.path(),
        &["--all", "--filter", "generation < 3", "--sort", "-seed"],
    );
    assert_eq!(old[0].1, "base-s2");
}

#[test]
fn completed_runs_stay_visible_beside_others_of_other_settings() {
    let folder = folder_with(&format!("[experiment]\nseeds = [1, 2, 3]\n{IRIS}"));
    train(folder.path(), &[], &[]);
    train(folder.path(), &["train.batch_size=32"], &["--only", "*-s1"]);
    let all = listed(
        folder.path(),
        &["--all", "--filter", "outcome == 'completed'"],
    );
    let old: Vec<_> = all
        .iter()
        .filter(|run| run.3 == "train.batch_size=16")
        .collect();
    assert_eq!((all.len(), old.len()), (4, 3), "{all:?}");
    let report = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    assert!(report.contains("3 runs of earlier settings"), "{report}");
    // With the earlier settings, they are those of the plan again.
    train(folder.path(), &[], &["--only", "*-s2"]);
    let completed = listed(folder.path(), &["--filter", "outcome == 'completed'"]);
    assert_eq!(completed.len(), 2, "{completed:?}");
}

#[test]
fn runs_have_tags_and_notes_whatever_becomes_of_them() {
    let folder = three();
    let place = folder.path();
    let run_of = |arguments: &[&str]| run(place, arguments);
    let base = "results/spec/runs/base-s1";
    assert_eq!(run_of(&["tag", base, "final", "paper"]).1, "final,paper\n");
    assert_eq!(run_of(&["tag", base, "paper", "--remove"]).1, "final\n");
    assert_eq!(run_of(&["note", base, "the one for the paper"]).0, 0);
    assert_eq!(
        run_of(&["note", base, "ü: second line"]).1,
        "the one for the paper\nü: second line\n"
    );
    let (_, stdout, _) = run_of(&[
        "list",
        "--filter",
        "tags == 'final'",
        "--columns",
        "run,tags,note",
    ]);
    assert!(stdout.contains("base-s1"), "{stdout}");
    assert!(stdout.contains("the one for the paper"), "{stdout}");
    // A run that is extended is the same run.
    train(
        folder.path(),
        &["optimizer.learning_rate=1e-3", "train.epochs=4"],
        &[],
    );
    assert_eq!(run_of(&["tag", base]).1, "final\n");
    // Its tag goes with the run, and not with its name.
    train(folder.path(), &["optimizer.learning_rate=1e-4"], &[]);
    assert_eq!(run_of(&["tag", base]).1, "no tags\n");
    let (_, stdout, _) = run_of(&["list", "--all", "--json", "--filter", "tags == 'final'"]);
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    assert!(stdout.contains("optimizer.learning_rate=0.001"), "{stdout}");
    for (arguments, says) in [
        (&["tag", base, "two words"][..], "is not a tag"),
        (&["tag", base, "x", "--remove"], "it has none"),
        (&["tag", "results/spec", "x"], "is not the folder of a run"),
        (
            &["tag", "results/nothing", "x"],
            "is not the folder of a run",
        ),
        (&["note", "spec.toml", "x"], "is not the folder of a run"),
    ] {
        let (code, _, stderr) = run_of(arguments);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(says), "{stderr}");
    }
    // Commands in the same moment wait for each other.
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    std::thread::scope(|scope| {
        for name in names {
            scope.spawn(move || assert_eq!(run_of(&["tag", base, name]).0, 0));
        }
    });
    assert_eq!(run_of(&["tag", base]).1, "a,b,c,d,e,f,g,h\n");
    fs::write(folder.path().join("results/spec/labels.json"), "{}").unwrap();
    assert_eq!(run_of(&["tag", base, "x"]).0, 2);
    assert_eq!(run_of(&["clean", "--keep", "1", "--yes"]).0, 2);
}

#[test]
fn only_what_is_shown_is_removed_and_never_what_is_needed() {
    let folder = three();
    let replaced = || {
        fs::read_dir(folder.path().join("results/spec/replaced"))
            .unwrap()
            .count()
    };
    let clean = |arguments: &[&str]| run(folder.path(), &[&["clean"], arguments].concat());
    // Without a number, nothing is meant.
    assert_eq!(clean(&[]).0, 2);
    assert_eq!(clean(&["--keep", "0"]).0, 2);
    let (code, stdout, stderr) = clean(&["--keep", "2"]);
    assert_eq!((code, stdout.lines().count()), (0, 2), "{stderr}");
    assert!(stdout.contains("optimizer.learning_rate=0.1"), "{stdout}");
    assert!(stderr.contains("would remove 2 runs"), "{stderr}");
    assert_eq!(replaced(), 4);
    assert!(
        clean(&["--keep", "3", "--yes"])
            .2
            .contains("nothing to remove")
    );
    // Tagged runs stay, and so do runs that can be resumed.
    let names: Vec<String> = stdout
        .lines()
        .map(|line| line.split("  ").next().unwrap().to_owned())
        .collect();
    assert_eq!(run(folder.path(), &["tag", &names[0], "keep"]).0, 0);
    let begun = RunFolder(folder.path().join(&names[1]));
    let mut events = begun.read_events().unwrap();
    let ended = |event: &Event| matches!(event, Event::RunFinished { .. });
    events.retain(|(_, event)| !ended(event));
    begun.write_events(&events).unwrap();
    begun.remove_summary().unwrap();
    let (_, stdout, stderr) = clean(&["--keep", "1", "--yes"]);
    assert_eq!(stdout.lines().count(), 2, "{stdout}");
    assert!(
        stderr.contains("tagged") && stderr.contains("can be resumed"),
        "{stderr}"
    );
    assert_eq!(replaced(), 2);
    assert_eq!(listed(folder.path(), &[]).len(), 2);
    let (code, _, _) = run(folder.path(), &["report", "results/spec"]);
    assert_eq!(code, 0);
}

/// Keys that only one of two types has say nothing more than the types.
#[test]
fn another_type_is_one_change() {
    let folder = folder_with(&format!("[experiment]\nseeds = [1]\n{IRIS}"));
    train(folder.path(), &["optimizer.type=sgd"], &[]);
    train(folder.path(), &[], &[]);
    let rows = listed(folder.path(), &["--all"]);
    let changed: Vec<&str> = rows.iter().map(|row| row.3.as_str()).collect();
    assert!(changed[0].contains("optimizer.type="), "{changed:?}");
    assert!(!changed[0].contains("no optimizer."), "{changed:?}");
    assert_eq!(changed[1], "");
}
