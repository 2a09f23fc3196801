//! Seeds that are added while verdicts are looked at.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use super::edit::Edit;
use super::support::{IRIS, folder_with, run};

/// Two networks, one of which learns nothing in so few steps.
fn spec(seeds: &str, verdict: &str) -> String {
    format!(
        r#"
[experiment]
seeds = {seeds}

{IRIS}
[objective]
metric = "valid/loss"
baseline = "learning_rate=0.01"

[verdict]
{verdict}

[sweep.grid]
optimizer.learning_rate = [1e-2, 1e-6]
"#
    )
}

fn report(folder: &Path) -> Json {
    let text = fs::read_to_string(folder.join("results/spec/report.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Trains with these seeds, and returns what was said.
fn look(folder: &Path, seeds: &str) -> String {
    let set = format!("experiment.seeds={seeds}");
    let (code, stdout, stderr) = run(folder, &["run", "spec.toml", "--quiet", "--set", &set]);
    assert_eq!(code, 0, "{stderr}");
    stdout + &stderr
}

#[test]
fn looks_that_nothing_allows_for_are_counted_and_warned_of() {
    let folder = folder_with(&spec("[1]", ""));
    let at = |seeds| look(folder.path(), seeds);
    for seeds in ["[1]", "[1, 2]", "[1, 2]"] {
        let said = at(seeds);
        assert!(!said.contains("seeds were added"), "{seeds}: {said}");
    }
    let said = at("[1, 2, 3, 4]");
    let warned =
        "seeds were added after verdicts had been looked at (2 looks with 2, 4 runs of a trial)";
    assert!(said.contains(warned), "{said}");
    // The same analysis again is the same look, in whatever form.
    let (_, stdout, stderr) = run(folder.path(), &["report", "results/spec"]);
    assert!((stdout + &stderr).contains(warned), "{warned}");
    let (_, stdout, stderr) = run(folder.path(), &["compare", "results/spec"]);
    assert!((stdout + &stderr).contains(warned));
    assert_eq!(report(folder.path())["looks"]["number"], 2);
    // Fewer seeds were looked at before.
    assert!(!at("[1, 2]").contains("seeds were added"));
}

#[test]
fn planned_looks_share_the_level_and_end() {
    let folder = folder_with(&spec("[1, 2, 3]", "looks = 2"));
    let corrected = || {
        let report = report(folder.path());
        let worse = report["trials"][1]["verdict"].clone();
        (
            worse["alpha_corrected"].as_f64(),
            worse["finding"]["type"].clone(),
        )
    };
    let said = look(folder.path(), "[1, 2, 3]");
    assert!(said.contains("look 1 of 2"), "{said}");
    assert_eq!(corrected().0, Some(0.025));
    // What is left of a plan is no look.
    let four = "experiment.seeds=[1, 2, 3, 4]";
    let arguments = [
        "run",
        "spec.toml",
        "--quiet",
        "--set",
        four,
        "--only",
        "*01-s4",
    ];
    let (_, stdout, stderr) = run(folder.path(), &arguments);
    let said = stdout + &stderr;
    assert!(said.contains("No verdicts are given before"), "{said}");
    assert_eq!(corrected(), (None, Json::Null));
    assert!(look(folder.path(), "[1, 2, 3, 4]").contains("look 2 of 2 (with 3, 4 runs"));
    assert!(look(folder.path(), "[1, 2, 3, 4, 5]").contains("nothing can be claimed any more"));
    assert_eq!(corrected().1, "not_tested");
    // Who changes the record is told.
    let looks = folder.path().join("results/spec/looks.json");
    let text = fs::read_to_string(&looks).unwrap();
    fs::write(&looks, text.edit("-s3@", "-s9@")).unwrap();
    let (code, _, stderr) = run(folder.path(), &["report", "results/spec"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("looks.json` is damaged"), "{stderr}");
}

#[test]
fn no_seeds_are_added_after_the_last_planned_look() {
    let folder = folder_with(&spec("[1, 2, 3]", "looks = 2\nmax_seeds = 6"));
    look(folder.path(), "[1, 2, 3]");
    look(folder.path(), "[1, 2, 3, 4]");
    let before = report(folder.path());
    let until = |set: &str| {
        let arguments = ["run", "spec.toml", "--until-decided", "--set", set];
        run(folder.path(), &arguments)
    };
    let (code, _, stderr) = until("experiment.seeds=[1, 2, 3]");
    assert_eq!(code, 2, "{stderr}");
    for said in [
        "all 2 looks that `verdict.looks` plans were made, the last with 4 seeds",
        "--> spec.toml:",
        "looks.json",
        "set `verdict.max_seeds` to 4",
    ] {
        assert!(stderr.contains(said), "{said} in {stderr}");
    }
    assert_eq!(report(folder.path()), before, "nothing was trained");
    let (code, _, stderr) = until("verdict.max_seeds=4");
    assert_eq!(code, 0, "{stderr}");
    let verdict = |report: &Json| report["trials"][1]["verdict"].clone();
    assert_eq!(verdict(&report(folder.path())), verdict(&before));
}

#[test]
fn looks_without_seeds_of_their_own_are_warned_of() {
    let folder = folder_with(&spec("[1, 2, 3]", "looks = 5\nmax_seeds = 5"));
    let (code, stdout, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let said = stdout + &stderr;
    assert!(
        said.contains("`verdict.looks` plans 5 looks, and from 3 seeds to 5 there can be 3"),
        "{said}"
    );
    assert!(
        said.contains("set `verdict.max_seeds` to at least 7, or `verdict.looks` to 3"),
        "{said}"
    );
    let enough = ["check", "spec.toml", "--set", "verdict.max_seeds=7"];
    let (_, stdout, stderr) = run(folder.path(), &enough);
    assert!(!(stdout + &stderr).contains("there can be"));
}

#[test]
fn seeds_are_added_until_all_is_decided() {
    let until = ["run", "spec.toml", "--until-decided"];
    let folder = folder_with(&spec("[5]", "looks = 4\nmax_seeds = 7"));
    let (code, _, stderr) = run(folder.path(), &until);
    assert_eq!(code, 0, "{stderr}");
    let found = report(folder.path());
    let seeds = found["trials"][0]["n"].as_u64().unwrap();
    assert!((3..7).contains(&seeds), "{found}");
    assert!(
        stderr.contains("every verdict is decided, with"),
        "{stderr}"
    );
    let by_seed = found["trials"][0]["metrics"]["valid/loss"]["by_seed"].clone();
    assert_eq!(
        (&by_seed[0][0], &by_seed[1][0]),
        (&Json::from(5), &Json::from(6))
    );
    // The runs are those of a file with these seeds.
    let plan = fs::read(folder.path().join("results/spec/plan.json")).unwrap();
    let written: Vec<u64> = (5..5 + seeds).collect();
    let set = format!("experiment.seeds={written:?}");
    let (_, stdout, _) = run(
        folder.path(),
        &["plan", "spec.toml", "--set", &set, "--json"],
    );
    let (plan, planned): (Json, Json) = (
        serde_json::from_slice(&plan).unwrap(),
        serde_json::from_str(&stdout).unwrap(),
    );
    assert_eq!(
        plan["runs"][0]["fingerprint"],
        planned["runs"][0]["fingerprint"]
    );
    // Again, nothing is left to do, and nothing is trained with fewer seeds.
    let (code, _, stderr) = run(folder.path(), &until);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("every verdict is decided, with"),
        "{stderr}"
    );
    assert!(!stderr.contains("going on"), "{stderr}");
}

/// Its other trials get more seeds, unless fewer than two are left.
#[test]
fn a_failed_trial_does_not_keep_the_others_from_more_seeds() {
    let text = spec("[5]", "looks = 4\nmax_seeds = 7").edit("[1e-2, 1e-6]", "[1e-2, 1e-6, 1e-7]");
    for (fault, goes_on) in [("*1e-7*@1", true), ("*1e-*@1", false)] {
        let folder = folder_with(&text);
        let until = [
            "run",
            "spec.toml",
            "--until-decided",
            "--inject-fault",
            fault,
        ];
        let (code, _, stderr) = run(folder.path(), &until);
        assert_eq!(code, 1, "{stderr}");
        assert_eq!(stderr.contains("going on with"), goes_on, "{stderr}");
    }
}

/// The first look had all of the level, or half of it: what the others get does not take that back.
#[test]
fn more_planned_looks_than_before_the_first_one_are_warned_of() {
    for (planned, together) in [("", "8.75 %"), ("looks = 2", "6.25 %")] {
        let folder = folder_with(&spec("[1]", planned));
        look(folder.path(), "[1, 2]");
        fs::write(folder.path().join("spec.toml"), spec("[1]", "looks = 4")).unwrap();
        let said = look(folder.path(), "[1, 2, 3]");
        let warned = format!("with a probability of at most {together}");
        assert!(said.contains(&warned), "{said}");
    }
}

#[test]
fn what_was_stopped_goes_on_with_the_seeds_that_had_begun() {
    let folder = folder_with(&spec("[1]", "looks = 3\nmax_seeds = 5"));
    // One run of the second step is all that there is.
    let arguments = [
        "run",
        "spec.toml",
        "--quiet",
        "--set",
        "experiment.seeds=[1, 2, 3]",
    ];
    let (code, _, stderr) = run(
        folder.path(),
        &[&arguments[..], &["--only", "*01-s3"]].concat(),
    );
    assert_eq!(code, 0, "{stderr}");
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--until-decided"]);
    assert_eq!(code, 0, "{stderr}");
    let found = report(folder.path());
    assert!(found["trials"][0]["n"].as_u64() >= Some(3), "{found}");
    assert_eq!(found["looks"]["most_runs"][0], 3, "{found}");
    assert!(!stderr.contains("with 1 seed"), "{stderr}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |verdict: &str, arguments: &[&str], says: &str| {
        let folder = folder_with(&spec("[1, 2, 3]", verdict));
        let (code, _, stderr) = run(folder.path(), arguments);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(says), "{stderr}");
        assert!(!folder.path().join("results").exists());
    };
    let until = ["run", "spec.toml", "--until-decided"];
    refused("", &until, "needs `verdict.looks` and `verdict.max_seeds`");
    refused("looks = 3", &until, "add `looks = 5` and `max_seeds = 20`");
    refused(
        "max_seeds = 5",
        &until,
        "`verdict.max_seeds` needs `verdict.looks`",
    );
    refused(
        "looks = 2\nmax_seeds = 2",
        &until,
        "`experiment.seeds` has 3",
    );
    refused("looks = 1", &["check", "spec.toml"], "looks");
    let with_only = ["run", "spec.toml", "--until-decided", "--only", "*"];
    refused("looks = 2\nmax_seeds = 5", &with_only, "--only");
}

/// While runs are left, nothing is final: whoever stops when they like the verdicts has tested more than once.
#[test]
fn verdicts_about_a_part_of_the_runs_are_provisional() {
    let folder = folder_with(&spec("[1, 2, 3]", ""));
    let train = |only: &[&str]| {
        let arguments = [&["run", "spec.toml", "--quiet"], only].concat();
        let (_, stdout, stderr) = run(folder.path(), &arguments);
        stdout + &stderr
    };
    let text = || fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    // With one run of each trial, there are no verdicts.
    let said = train(&["--only", "*-s1"]);
    assert!(!said.contains("provisional"), "{said}");
    assert!(text().contains("Highest ranked so far:"), "{}", text());
    let said = train(&["--only", "*-s1", "--only", "*-s2"]);
    assert!(said.contains("verdicts are provisional"), "{said}");
    let (_, stdout, _) = run(folder.path(), &["compare", "results/spec"]);
    assert!(stdout.contains("verdicts are provisional"), "{stdout}");
    assert!(!stdout.contains(".."), "{stdout}");
    let said = train(&[]);
    assert!(!said.contains("provisional"), "{said}");
    assert!(text().contains("Highest ranked: `"), "{}", text());
}

#[test]
fn what_is_missing_for_verdicts_is_said() {
    let folder = folder_with(&spec("[1, 2, 3]", ""));
    let fault = "learning_rate=1e-6-s1@training:3=panic";
    let (code, stdout, stderr) = run(
        folder.path(),
        &["run", "spec.toml", "--quiet", "--inject-fault", fault],
    );
    let said = stdout + &stderr;
    assert_eq!(code, 1, "{said}");
    let warned = "1 of 3 runs of `learning_rate=1e-6` failed";
    assert!(said.contains(warned), "{said}");
    let edit = "sweep.grid.optimizer.learning_rate=[1e-2,1e30]";
    let baseline = "objective.baseline=learning_rate=1e30";
    let (code, _, stderr) = run(
        folder.path(),
        &[
            "run",
            "spec.toml",
            "--quiet",
            "--set",
            edit,
            "--set",
            baseline,
        ],
    );
    assert_eq!(code, 1, "{stderr}");
    let text = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
    let missing = "The baseline `learning_rate=1e30` has no value, so nothing is compared with it.";
    assert!(text.contains(missing), "{text}");
}
