//! Foreign results trees: names that are paths, links that lead out, text that affects a terminal or a browser.

use std::fs;
use std::path::{Path, PathBuf};

use burn_runner::event::{Event, FailureClass, Outcome};
use burn_runner::plan::{Plan, RunPlan};
use burn_runner::record::{ExperimentFolder, write_json};
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use super::edit::Edit;
use super::support::{IRIS, completed, read_json, run, tree};

/// Verbs that read a tree, and which of them write.
const VERBS: &[&[&str]] = &[
    &["report", "results/spec"],
    &["report", "results"],
    &["list", "results"],
    &["compare", "results/spec"],
    &["watch", "results", "--once"],
    &["export", "tensorboard", "results"],
    &["export", "tensorboard", "results", "--to", "results/board"],
    &["export", "csv", "results"],
    &["reproduce", "results/spec"],
    &["reproduce", "results/spec/runs/base-s1"],
    &[
        "diff",
        "results/spec/runs/base-s1",
        "results/spec/runs/base-s1",
    ],
    &["bundle", "results/spec/runs/base-s1", "--out", "results/a"],
    &["exec", "results/spec/runs/base-s1"],
];

/// A completed experiment in a separate folder, with its parent folder, which must not change.
fn foreign() -> (tempfile::TempDir, PathBuf) {
    let folder = completed(IRIS, &[]);
    let results = folder.path().join("results");
    (folder, results)
}

/// All files outside the results tree, with their content.
fn outside(folder: &Path) -> Vec<(String, String)> {
    let names = tree(folder).into_iter();
    let names = names.filter(|name| !name.starts_with("results/") && !name.starts_with("cache/"));
    let content = |name: String| {
        let bytes = fs::read(folder.join(&name)).unwrap_or_default();
        (name, burn_runner::data::sha256_hex(&bytes))
    };
    names.map(content).collect()
}

fn edit(results: &Path, change: impl Fn(&mut RunPlan), change_plan: impl Fn(&mut Plan)) {
    let experiment = ExperimentFolder(results.join("spec"));
    let mut plan = experiment.read_plan().unwrap().unwrap();
    change_plan(&mut plan);
    plan.runs.iter_mut().for_each(&change);
    write_json(&experiment.plan_json(), &plan).unwrap();
    experiment.run("base-s1").write_plan(&plan.runs[0]).unwrap();
}

#[test]
fn names_that_are_paths_are_refused_wherever_they_enter() {
    let (folder, results) = foreign();
    // The interpretation of a run of that name.
    let elsewhere = folder.path().join("out");
    fs::create_dir(&elsewhere).unwrap();
    for entry in fs::read_dir(results.join("spec/runs/base-s1"))
        .unwrap()
        .flatten()
    {
        if entry.path().is_file() && entry.file_name() != "summary.json" {
            fs::copy(entry.path(), elsewhere.join(entry.file_name())).unwrap();
        }
    }
    let experiment = ExperimentFolder(results.join("spec"));
    let sound = experiment.read_plan().unwrap().unwrap();
    let before = outside(folder.path());
    let absolute = elsewhere.to_str().unwrap();
    for name in [
        "../../../out",
        absolute,
        "..",
        "",
        "a/../../../../out",
        "a\\b",
        "a\u{1b}[2J",
        "a\u{202e}b",
    ] {
        for what in ["id", "trial", "experiment", "fingerprint"] {
            write_json(&experiment.plan_json(), &sound).unwrap();
            if what == "fingerprint" && name.is_empty() {
                continue;
            }
            let change = |run: &mut RunPlan| {
                let place = match what {
                    "id" => &mut run.id,
                    "trial" => &mut run.trial,
                    "experiment" => &mut run.experiment,
                    _ => &mut run.fingerprint,
                };
                *place = name.to_owned();
            };
            edit(&results, change, |_| {});
            for verb in VERBS {
                let (code, stdout, stderr) = run(folder.path(), verb);
                assert!(
                    code == 1 || code == 2,
                    "{what} {name:?} {verb:?}: {code} {stdout}{stderr}"
                );
                // The parts of two runs that could not be compared are the answer of `diff`.
                let said = stdout + &stderr;
                assert!(
                    said.contains("is refused"),
                    "{what} {name:?} {verb:?}: {said}"
                );
                assert!(!said.contains(['\u{1b}', '\u{202e}']), "{said:?}");
            }
            assert_eq!(outside(folder.path()), before, "{what} {name:?}");
        }
    }
}

/// Whoever creates the index also creates its sum.
#[test]
fn names_in_an_index_are_looked_at_too() {
    let (folder, results) = foreign();
    run(folder.path(), &["list"]);
    let path = results.join("spec/.index.jsonl");
    let elsewhere = folder.path().join("out");
    fs::rename(results.join("spec/runs/base-s1"), &elsewhere).unwrap();
    fs::remove_file(elsewhere.join("summary.json")).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let (head, body) = text.split_once('\n').unwrap();
    let body = body.edit("\"id\":\"base-s1\"", "\"id\":\"../../../out\"");
    let mut head: Json = serde_json::from_str(head).unwrap();
    let sum = Sha256::digest(body.as_bytes());
    head["sha256"] = json!(sum.iter().map(|b| format!("{b:02x}")).collect::<String>());
    fs::write(&path, format!("{head}\n{body}")).unwrap();
    let before = outside(folder.path());
    for verb in [["report", "results/spec"], ["list", "results"]] {
        run(folder.path(), &verb);
    }
    assert_eq!(outside(folder.path()), before);
    assert!(!fs::read_to_string(&path).unwrap().contains("../out"));
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    /// Replaces a part of the tree by a link to something outside, to which it is copied.
    fn lead_out(folder: &Path, name: &str) {
        let (inner, away) = (folder.join("results/spec").join(name), folder.join("away"));
        fs::create_dir_all(inner.parent().unwrap()).unwrap();
        if inner.exists() {
            fs::rename(&inner, &away).unwrap();
        } else if name.ends_with(".lock") || name.ends_with(".log") {
            fs::write(&away, "mine").unwrap();
        } else {
            fs::create_dir(&away).unwrap();
        }
        symlink(&away, &inner).unwrap();
    }

    #[test]
    fn nothing_is_written_through_links_out_of_a_tree() {
        for name in [
            ".lock",
            "runs",
            "runs/base-s1",
            "runs/base-s1/.lock",
            "runs/base-s1/events.jsonl",
            "runs/base-s1/run.log",
            "runs/base-s1/trace",
            "runs/base-s1/trace/losses.f64",
            "runs/base-s1/checkpoints",
            "runs/base-s1/model",
            "tensorboard",
            "tensorboard/base-s1",
            "reproduced",
            "replaced",
        ] {
            let (folder, results) = foreign();
            let folder = folder.path();
            // There is something to write: derived files are missing.
            let _ = fs::remove_file(results.join("spec/runs/base-s1/summary.json"));
            lead_out(folder, name);
            let before = outside(folder);
            let more: &[&[&str]] = &[
                &["report", "results/spec"],
                &["export", "tensorboard", "results"],
                &["reproduce", "results/spec/runs/base-s1"],
                &["exec", "results/spec/runs/base-s1"],
                &["run", "spec.toml", "--quiet", "--set", "train.epochs=4"],
                &["run", "spec.toml", "--quiet", "--set", "model.hidden=[8]"],
            ];
            let mut refusals = 0;
            for verb in more {
                let (_, stdout, stderr) = run(folder, verb);
                refusals += usize::from(format!("{stdout}{stderr}").contains("is a link to"));
                assert_eq!(outside(folder), before, "{name} {verb:?}: {stderr}");
            }
            assert!(refusals > 0, "{name}");
        }
    }

    /// Reading these would never end.
    #[test]
    fn pipes_and_devices_are_refused() {
        for name in [
            "plan.json",
            ".index.jsonl",
            ".lock",
            "runs/base-s1/events.jsonl",
            "runs/base-s1/.lock",
            "runs/base-s1/run.toml",
            "runs/base-s1/trace/losses.f64",
        ] {
            let devices = ["", "/dev/zero"];
            for device in &devices[..if name.ends_with(".jsonl") { 2 } else { 1 }] {
                let (folder, results) = foreign();
                let path = results.join("spec").join(name);
                let _ = fs::remove_file(&path);
                if device.is_empty() {
                    let made = std::process::Command::new("mkfifo").arg(&path).status();
                    assert!(made.unwrap().success());
                } else {
                    symlink(device, &path).unwrap();
                }
                for verb in VERBS {
                    let (code, ..) = run(folder.path(), verb);
                    assert!((0..=2).contains(&code), "{name} {device} {verb:?}: {code}");
                }
            }
        }
    }

    #[test]
    fn whole_files_replace_links() {
        let (folder, results) = foreign();
        let mine = folder.path().join("bashrc");
        fs::write(&mine, "mine").unwrap();
        for name in [
            "report.html",
            "report.md",
            "report.csv",
            "report.json",
            ".index.jsonl",
        ] {
            let _ = fs::remove_file(results.join("spec").join(name));
            symlink(&mine, results.join("spec").join(name)).unwrap();
        }
        let (code, _, stderr) = run(folder.path(), &["report", "results/spec"]);
        assert_eq!(code, 0, "{stderr}");
        assert_eq!(fs::read_to_string(&mine).unwrap(), "mine");
        assert!(results.join("spec/report.html").read_link().is_err());
    }

    #[test]
    fn a_capsule_takes_nothing_along_that_a_link_leads_to() {
        for name in ["metrics.csv", "model", "trace"] {
            let (folder, _) = foreign();
            lead_out(folder.path(), &format!("runs/base-s1/{name}"));
            let (code, _, stderr) = run(folder.path(), &["bundle", "results/spec/runs/base-s1"]);
            assert_eq!(code, 2, "{stderr}");
            assert!(stderr.contains("is not a regular file"), "{stderr}");
        }
    }

    #[test]
    fn files_are_as_readable_as_the_umask_says() {
        for (umask, forbidden, expected) in [("077", 0o077, 0o600), ("002", 0o002, 0o664)] {
            let folder = super::super::support::folder_with(IRIS);
            let program = env!("CARGO_BIN_EXE_runner");
            let script = format!(
                "umask {umask} && '{program}' run spec.toml --quiet && '{program}' bundle results/spec/runs/base-s1 --out a && '{program}' export csv results --to t.csv && '{program}' reproduce a"
            );
            let mut command = std::process::Command::new("sh");
            command.args(["-c", &script]).current_dir(folder.path());
            command.env("XDG_CACHE_HOME", folder.path().join("cache"));
            let output = command.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            let mut names = tree(folder.path());
            names.retain(|name| !name.starts_with("cache/") && name != "spec.toml");
            assert!(names.len() > 20, "{names:?}");
            for name in names {
                let path = folder.path().join(&name);
                assert_eq!(mode(&path), expected, "{name}");
                let around = path.parent().unwrap();
                if around != folder.path() {
                    assert_eq!(mode(around) & forbidden, 0, "{name}");
                }
            }
        }
    }
}

const TRAP: &str = "\u{1b}[2J\u{9b}31m\u{202e}evil\u{200b} <img src=x onerror=alert(1)> [x](javascript:alert(1)) `a` | # \n# b";

fn hostile(results: &Path) {
    let change = |run: &mut RunPlan| {
        run.axes
            .insert("=1+1".into(), json!("=HYPERLINK(\"http://x\")"));
        run.axes.insert("axis".into(), json!(TRAP));
    };
    let change_plan = |plan: &mut Plan| {
        plan.question = TRAP.into();
        plan.notices = vec![TRAP.into()];
        plan.source = format!("{TRAP}```$(touch x).toml");
        plan.axes = vec!["=1+1".into(), "axis".into()];
        let mut failed = plan.runs[0].clone();
        failed.id = "base-s2".into();
        failed.seed = 2;
        plan.runs.push(failed);
    };
    edit(results, change, change_plan);
    let experiment = ExperimentFolder(results.join("spec"));
    let plan = experiment.read_plan().unwrap().unwrap();
    let failed = experiment.run("base-s2");
    failed.write_plan(&plan.runs[1]).unwrap();
    let outcome = Outcome::failed(FailureClass::Panic, TRAP);
    let ended = Event::RunFinished {
        outcome,
        wall_secs: 1.0,
        weights_digest: TRAP.into(),
    };
    failed.append_event(&ended).unwrap();
}

#[test]
fn texts_of_others_are_shown_and_not_obeyed() {
    let (folder, results) = foreign();
    hostile(&results);
    let verbs: &[&[&str]] = &[
        &["report", "results/spec"],
        &["report", "results/spec", "--json"],
        &["list"],
        &["list", "--json"],
        &["list", "--csv"],
        &["compare", "results/spec", "results/spec/report.json"],
        &["compare", "results/spec", "--md"],
        &["compare", "results/spec", "--csv"],
        &["watch", "--once"],
        &[
            "diff",
            "results/spec/runs/base-s1",
            "results/spec/runs/base-s2",
        ],
        &["diff", "results/spec", "results/spec"],
        &["reproduce", "results/spec/runs/base-s2"],
        &["bundle", "results/spec/runs/base-s2", "--out", "a"],
    ];
    let is_odd = |c: char| burn_runner::diagnostic::is_odd(c) && !matches!(c, '\n' | '\t');
    for verb in verbs {
        let (_, stdout, stderr) = run(folder.path(), verb);
        for text in [&stdout, &stderr] {
            assert!(!text.contains(is_odd), "{verb:?}: {text:?}");
        }
    }
    // JSON stays valid.
    let (_, stdout, _) = run(folder.path(), &["report", "results/spec", "--json"]);
    let report: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["question"], TRAP);
    assert_eq!(
        read_json(&results.join("spec/report.json"))["question"],
        TRAP
    );
    let text = fs::read_to_string(results.join("spec/report.md")).unwrap();
    assert!(!text.contains(is_odd), "{text}");
    let mut is_code = false;
    for (at, line) in text.lines().enumerate() {
        is_code ^= line.starts_with("```");
        if is_code {
            continue;
        }
        // Between backticks it is code.
        let line: String = line.split("\\]").collect();
        let outside: String = line.split('`').step_by(2).collect();
        assert!(
            !outside.contains("<img") && !outside.contains("](javascript"),
            "{at}: {line}"
        );
    }
    assert!(!text.contains("\n# b"), "{text}");
    let text = fs::read_to_string(results.join("spec/report.csv")).unwrap();
    assert!(
        !text.contains(",=") && !text.contains("\"=") && !text.contains("\n="),
        "{text}"
    );
    let page = fs::read_to_string(results.join("spec/report.html")).unwrap();
    assert!(!page.contains("<img"));
}

/// Values of a foreign experiment file are shown in excerpts.
#[test]
fn excerpts_of_files_are_shown_and_not_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        format!("{IRIS}\n# \u{202e}evil\u{9b}\n[experiment]\nname = \"a\u{202e}b\u{9b}c\"\n");
    fs::write(folder.path().join("spec.toml"), text).unwrap();
    let (code, _, stderr) = run(folder.path(), &["check", "spec.toml"]);
    assert_eq!(code, 2);
    let is_odd = |c: char| burn_runner::diagnostic::is_odd(c) && !matches!(c, '\n' | '\t');
    assert!(!stderr.contains(is_odd), "{stderr:?}");
    assert!(stderr.contains("spec.toml:"), "{stderr}");
}
