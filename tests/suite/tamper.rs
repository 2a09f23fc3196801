//! Files of finished runs that are changed externally: no reported number may change without a warning.
//!
//! The fuzz test makes `TAMPER_MUTATIONS` mutations (300 by default) with a fixed seed, or that of `TAMPER_SEED`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use burn_runner::record::{ExperimentFolder, reseal, write_whole};
use burn_runner::report::{self, Report};
use serde_json::Value as Json;

use super::edit::Edit;
use super::support::{
    IRIS, completed, folder_with, goes_on, numbers, plan_in, run, runner, summary, tree,
};

const RUN: &str = "results/spec/runs/base-s1";

/// Two trials of two seeds, with a test split and an evaluation.
fn finished() -> tempfile::TempDir {
    completed(
        &format!(
            "[experiment]\nseeds = [1, 2]\n{IRIS}\n[data.split]\ntest = 0.2\n[sweep.grid]\noptimizer.learning_rate = [1e-2, 3e-3]\n"
        ),
        &[],
    )
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

type Files = BTreeMap<String, Vec<u8>>;

fn files(folder: &Path) -> Files {
    let paths = tree(folder).into_iter();
    paths
        .map(|path| (path.clone(), fs::read(folder.join(path)).unwrap()))
        .collect()
}

/// Restores the files that a mutation or a report changed.
fn restore(folder: &Path, files: &Files) {
    for path in tree(folder) {
        if !files.contains_key(&path) {
            fs::remove_file(folder.join(path)).unwrap();
        }
    }
    for (path, bytes) in files {
        let path = folder.join(path);
        if fs::read(&path).is_ok_and(|there| there == *bytes) {
            continue;
        }
        write_whole(&path, bytes).unwrap();
    }
}

/// Changes something about the files of a folder, and describes it.
fn mutate(folder: &Path, files: &Files, random: &mut Random) -> (String, Vec<String>) {
    let paths: Vec<&String> = files.keys().collect();
    let path = (*random.of(&paths)).clone();
    let mut bytes = files[&path].clone();
    let at = random.below(bytes.len());
    let kind = random.below(13);
    let mut changed = vec![path.clone()];
    let what = match kind {
        0 | 1 if !bytes.is_empty() => {
            let bit = random.below(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} flipped")
        }
        2 if !bytes.is_empty() => {
            let digits: Vec<usize> = (0..bytes.len())
                .filter(|at| bytes[*at].is_ascii_digit())
                .collect();
            if !digits.is_empty() {
                let at = *random.of(&digits);
                bytes[at] = b'0' + (bytes[at] - b'0' + 1 + random.below(9) as u8) % 10;
            }
            "a digit replaced".into()
        }
        3 => {
            bytes.truncate(at);
            format!("truncated to {at} bytes")
        }
        4 => {
            // Where lines end.
            let ends: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == b'\n').collect();
            if !ends.is_empty() {
                bytes.truncate(*random.of(&ends) + 1);
            }
            "truncated to whole lines".into()
        }
        5..=7 => {
            let mut lines: Vec<&[u8]> = files[&path].split_inclusive(|b| *b == b'\n').collect();
            let (a, b) = (random.below(lines.len()), random.below(lines.len()));
            match (lines.is_empty(), kind) {
                (true, _) => {}
                (false, 5) => drop(lines.remove(a)),
                (false, 6) => lines.swap(a, b),
                _ => lines.insert(b, lines[a]),
            }
            bytes = lines.concat();
            ["line removed", "lines swapped", "line repeated"][kind - 5].into()
        }
        8 => {
            bytes.extend((0..1 + random.below(40)).map(|_| random.next() as u8));
            "garbage appended".into()
        }
        9 => {
            let end = (at + 1 + random.below(600)).min(bytes.len());
            bytes[at.min(end)..end].fill(0);
            "a part is zeros, as after a loss of power".into()
        }
        10 => {
            fs::remove_file(folder.join(&path)).unwrap();
            return (format!("{path}: deleted"), changed);
        }
        11 => {
            let other = (*random.of(&paths)).clone();
            fs::rename(folder.join(&path), folder.join("swap")).unwrap();
            fs::rename(folder.join(&other), folder.join(&path)).ok();
            fs::rename(folder.join("swap"), folder.join(&other)).unwrap();
            let what = format!("{path}: swapped with {other}");
            changed.push(other);
            return (what, changed);
        }
        _ => {
            // The same file of another run.
            let name = path.splitn(3, '/').nth(2).unwrap_or_default().to_owned();
            let is_same = |other: &&&String| {
                other.starts_with("runs/") && other.ends_with(&format!("/{name}"))
            };
            let same: Vec<&&String> = paths.iter().filter(is_same).collect();
            if !name.is_empty() && !same.is_empty() {
                bytes = files[**random.of(&same)].clone();
            }
            "it belongs to another run".into()
        }
    };
    write_whole(&folder.join(&path), &bytes).unwrap();
    (format!("{path}: {what}"), changed)
}

/// Each value of a run in a report, by trial, metric and seed.
fn values(report: &Report) -> BTreeMap<(String, String, String), f64> {
    let mut values = BTreeMap::new();
    for trial in &report.trials {
        for name in trial.metrics.keys() {
            for (repeat, value) in trial.values(name) {
                let run = format!("{}-s{}", trial.id, repeat.seed);
                values.insert((run, name.clone(), repeat.to_string()), *value);
            }
        }
    }
    values
}

/// A report without paths, environments and remarks about files.
fn without(report: &Report, keys: &[&str]) -> Json {
    let mut json = serde_json::to_value(report).unwrap();
    let map = json.as_object_mut().unwrap();
    map.retain(|key, _| !keys.contains(&key.as_str()));
    if keys.contains(&"provenance") {
        for trial in map["trials"].as_array_mut().unwrap() {
            trial.as_object_mut().unwrap().remove("environments");
        }
    }
    json
}

/// The result of a mutation, or why it is a silent change.
fn judge(
    before: &Report,
    after: Result<Option<Report>, String>,
    changed: &[String],
) -> Result<&'static str, String> {
    let after = match after {
        Err(message) => {
            let is_named = changed.iter().any(|path| message.contains(path.as_str()));
            return if is_named {
                Ok("the plan is named")
            } else {
                Err(format!("the report says: {message}"))
            };
        }
        // `runner report` reports that there is no plan.json.
        Ok(None) if changed.iter().any(|path| path == "plan.json") => {
            return Ok("the plan is named");
        }
        Ok(None) => return Err("there is no report".into()),
        Ok(Some(after)) => after,
    };
    let is_remarked = |needle: &str| {
        let mut remarks = after.remarks.iter();
        remarks.any(|remark| !before.remarks.contains(remark) && remark.contains(needle))
    };
    let named: BTreeSet<&String> = after.problems.iter().map(|problem| &problem.run).collect();
    let runs_of_changed = |run: &String| {
        let mut paths = changed.iter();
        paths.any(|path| path.starts_with(&format!("runs/{run}/")))
    };
    if let Some(other) = named.iter().find(|run| !runs_of_changed(run)) {
        return Err(format!("`{other}` is named, and nothing of it was changed"));
    }
    // Whatever is not excluded is unchanged.
    let (then, now) = (values(before), values(&after));
    for (key, value) in &then {
        match now.get(key) {
            Some(other) if other.to_bits() == value.to_bits() => {}
            None if named.contains(&key.0) => {}
            other => return Err(format!("{key:?} was {value}, is {other:?}")),
        }
    }
    if let Some(new) = now.keys().find(|key| !then.contains_key(*key)) {
        return Err(format!("{new:?} is new"));
    }
    if !named.is_empty() {
        return Ok("the run is named and left out");
    }
    // All runs exist, so everything derived from them does too, except for what a remark excludes.
    let mut keys = vec!["remarks"];
    if is_remarked("the evaluation of") {
        // Weights are shown of the run whose errors are.
        keys.extend(["evaluation", "weights"]);
    }
    if is_remarked("the distributions of the weights of") {
        keys.push("weights");
    }
    let (mut then, mut now) = (before.clone(), after.clone());
    if is_remarked("the losses of the steps of") {
        for trial in [&mut then, &mut now]
            .into_iter()
            .flat_map(|of| &mut of.curves.trials)
        {
            trial.steps.clear();
        }
    }
    if is_remarked("not listed under Environment") {
        keys.push("provenance");
    }
    if without(&then, &keys) != without(&now, &keys) {
        return Err("something in it is another".into());
    }
    Ok(if before.remarks == after.remarks {
        "nothing in the report changes"
    } else {
        "the file is named"
    })
}

fn number(variable: &str, default: u64) -> u64 {
    let value = std::env::var(variable).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

#[test]
fn no_mutation_of_a_finished_tree_changes_a_number_silently() {
    let folder = finished();
    let place = folder.path().join("results/spec");
    let experiment = ExperimentFolder(place.clone());
    let before = report::write(&experiment).unwrap().unwrap();
    assert!(before.problems.is_empty() && before.evaluation.is_some() && !before.test.is_empty());
    let files = files(&place);
    let mut random = Random(number("TAMPER_SEED", 17));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut silent = Vec::new();
    for _ in 0..number("TAMPER_MUTATIONS", 300) {
        let (what, changed) = mutate(&place, &files, &mut random);
        let after = report::write(&experiment).map_err(|e| e.to_string());
        match judge(&before, after, &changed) {
            Ok(came_to) => *counts.entry(came_to).or_default() += 1,
            Err(why) => silent.push(format!("{what}: {why}")),
        }
        restore(&place, &files);
    }
    println!(
        "{} files, {counts:#?}, {} silent",
        files.len(),
        silent.len()
    );
    assert!(silent.is_empty(), "{}", silent.join("\n"));
}

/// Empties a file, truncates it, or changes one of its digits.
fn damage(path: &Path, how: &str) {
    let mut bytes = fs::read(path).unwrap();
    match how {
        "emptied" => bytes.clear(),
        "torn" => bytes.truncate(bytes.len() / 2),
        _ => {
            let at = bytes.iter().position(|b| *b == b'7').unwrap();
            bytes[at] = b'8';
        }
    }
    write_whole(path, &bytes).unwrap();
}

#[test]
fn one_damaged_run_costs_one_run() {
    let spec = format!("[experiment]\nseeds = [1, 2]\n{IRIS}");
    let folder = completed(&spec, &[]);
    let folder = folder.path();
    let before = numbers(folder);
    for (number, (file, how)) in [
        ("run.toml", "emptied"),
        ("run.toml", "torn"),
        ("events.jsonl", "changed"),
        ("events.jsonl", "torn"),
    ]
    .into_iter()
    .enumerate()
    {
        damage(&folder.join(RUN).join(file), how);
        let (code, table, stderr) = run(folder, &["plan", "spec.toml"]);
        assert_eq!(code, 0, "{stderr}");
        assert!(
            table.contains("to rerun: ") && table.contains(file),
            "{table}"
        );
        assert!(table.contains("done"), "{table}");
        let (code, list, stderr) = run(folder, &["list"]);
        assert_eq!(code, 1, "{list}{stderr}");
        assert!(
            stderr.contains(&format!("base-s1/{file}` is damaged")),
            "{stderr}"
        );
        let (code, table, stderr) = run(folder, &["report", "results/spec"]);
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains("1 of 2 runs completed"), "{stderr}");
        assert!(
            stderr.contains(&format!("base-s1/{file}` is damaged")),
            "{stderr}"
        );
        assert!(!stderr.contains("delete"), "{stderr}");
        assert!(table.contains("1 of 2"), "{table}");
        let said = goes_on(folder);
        assert!(said.contains("1 damaged and trained again"), "{said}");
        assert!(said.contains("`base-s1` is trained again: "), "{said}");
        assert_eq!(numbers(folder), before, "{file} {how}");
        // Nothing is lost.
        let replaced = fs::read_dir(folder.join("results/spec/replaced")).unwrap();
        assert_eq!(replaced.count(), number + 1);
    }
}

#[test]
fn derived_files_of_the_right_size_are_compared_with_the_events() {
    let folder = completed(IRIS, &[]);
    let folder = folder.path();
    let before = numbers(folder);
    for file in ["metrics.csv", "summary.json"] {
        let path = folder.join(RUN).join(file);
        let text = fs::read_to_string(&path).unwrap();
        let at = text.rfind("0.").unwrap() + 2;
        let digit = if &text[at..=at] == "5" { "6" } else { "5" };
        let mut changed = text.clone();
        changed.replace_range(at..=at, digit);
        write_whole(&path, changed.as_bytes()).unwrap();
        run(folder, &["report", "results/spec"]);
        let report = fs::read_to_string(folder.join("results/spec/report.md")).unwrap();
        let said = format!("`{file}` of `base-s1` did not match its events");
        assert!(report.contains(&said), "{report}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        run(folder, &["report", "results/spec"]);
        let report = fs::read_to_string(folder.join("results/spec/report.md")).unwrap();
        assert!(!report.contains(&said), "it is said once");
    }
    assert_eq!(numbers(folder), before);
}

#[test]
fn a_trace_that_is_lost_in_the_middle_is_reported() {
    let fault = ["run", "spec.toml", "--quiet", "--inject-fault", "*@3"];
    let straight = completed(IRIS, &[]);
    for is_deleted in [true, false] {
        let folder = folder_with(IRIS);
        run(folder.path(), &fault);
        let trace = folder.path().join(RUN).join("trace");
        if is_deleted {
            fs::remove_dir_all(&trace).unwrap();
        } else {
            let mut losses = fs::read(trace.join("losses.f64")).unwrap();
            losses[20] ^= 1;
            fs::write(trace.join("losses.f64"), losses).unwrap();
        }
        let said = goes_on(folder.path());
        let words = "the losses of the first 16 updates are lost";
        assert!(said.contains(words), "{said}");
        let report = fs::read_to_string(folder.path().join("results/spec/report.md")).unwrap();
        assert!(
            report.contains("`base-s1` was resumed without its trace")
                && report.contains("first 16 updates"),
            "{report}"
        );
        let metrics = |folder: &Path| summary(folder, "base-s1")["metrics"].clone();
        assert_eq!(metrics(folder.path()), metrics(straight.path()));
    }
}

#[test]
fn what_a_run_left_is_compared_with_its_record() {
    let folder = completed(&format!("[experiment]\nseeds = [1, 2]\n{IRIS}"), &[]);
    let folder = folder.path();
    let other = "results/spec/runs/base-s2";
    let flip = |file: &str| {
        let path = folder.join(RUN).join(file);
        let mut bytes = fs::read(&path).unwrap();
        let at = bytes.len() / 2;
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        bytes[at] ^= 1;
        (path, bytes)
    };
    for (file, subject) in [
        ("trace/losses.f64", "steps"),
        ("model/final.bpk", "weights by parameter"),
    ] {
        let (path, bytes) = flip(file);
        let (code, json, _) = run(folder, &["diff", RUN, other, "--json"]);
        assert_eq!(code, 1);
        let json: Json = serde_json::from_str(&json).unwrap();
        let not = json["not_compared"].as_array().unwrap();
        let why = not.iter().find(|not| not["what"] == subject);
        let why = why.unwrap_or_else(|| panic!("{file}: {not:?}"))["why"].to_string();
        assert!(why.contains("it was changed after the run ended"), "{why}");
        let (code, _, stderr) = run(folder, &["bundle", RUN, "--out", "a.tar.zst"]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(&format!("{file}` is damaged")), "{stderr}");
        fs::write(path, bytes).unwrap();
    }
    let (_, _) = flip("trace/digests.csv");
    run(folder, &["report", "results/spec"]);
    let report = fs::read_to_string(folder.join("results/spec/report.md")).unwrap();
    assert!(
        report.contains("`base-s1` can no longer be compared step by step"),
        "{report}"
    );
}

#[test]
fn saved_reports_that_were_changed_are_not_compared() {
    let folder = finished();
    let folder = folder.path();
    let path = folder.join("results/spec/report.json");
    assert_eq!(run(folder, &["compare", "results/spec/report.json"]).0, 0);
    damage(&path, "changed");
    let (code, _, stderr) = run(folder, &["compare", "results/spec/report.json"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("it was changed after it was written"),
        "{stderr}"
    );
}

#[test]
fn events_that_are_not_all_there_are_damage() {
    let folder = completed(IRIS, &[]);
    let folder = folder.path();
    let path = folder.join(RUN).join("events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let without = |what: &str| -> String {
        let lines = text.lines().filter(|line| !line.contains(what));
        lines.map(|line| format!("{line}\n")).collect()
    };
    // Also if the sums match, as after a restore from the wrong backup.
    for (kept, reason) in [
        (
            without("\"epoch\":2,\"step\":16"),
            "the run is completed, but epoch 2 is missing",
        ),
        (
            without("run_finished"),
            "its end is missing: according to `summary.json`, the run was completed",
        ),
        (
            String::new(),
            "its end is missing: according to `summary.json`, the run was completed",
        ),
    ] {
        assert_ne!(kept, text);
        fs::write(&path, kept).unwrap();
        reseal(&path).unwrap();
        let (code, _, stderr) = run(folder, &["list"]);
        assert_eq!(code, 1, "{stderr}");
        assert!(stderr.contains(reason), "{stderr}");
        let (_, table, _) = run(folder, &["plan", "spec.toml"]);
        assert!(table.contains(reason), "{table}");
    }
}

#[cfg(unix)]
#[test]
fn a_run_that_cannot_be_read_is_left_alone() {
    let spec = format!("[experiment]\nseeds = [1, 2]\n{IRIS}");
    let folder = completed(&spec, &[]);
    let folder = folder.path();
    // Not even root can read it, and the reason is not in the content.
    let path = folder.join(RUN).join("run.toml");
    fs::rename(&path, path.with_extension("mine")).unwrap();
    std::os::unix::fs::symlink("run.toml", &path).unwrap();
    let (code, table, stderr) = run(folder, &["plan", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(table.contains("to leave alone: "), "{table}");
    let before = tree(&folder.join(RUN));
    let longer = spec.edit("epochs = 3", "epochs = 4");
    fs::write(folder.join("spec.toml"), longer).unwrap();
    let (code, _, stderr) = run(folder, &["run", "spec.toml"]);
    assert_eq!(code, 1, "{stderr}");
    assert!(
        stderr.contains("1 skipped because they cannot be read"),
        "{stderr}"
    );
    assert!(
        !stderr.contains("delete") && !stderr.contains("replaced"),
        "{stderr}"
    );
    assert_eq!(summary(folder, "base-s2")["epochs"], 4);
    assert_eq!(tree(&folder.join(RUN)), before);
}

/// Converts a results tree into one that a version before format 3 wrote: without seals and sums.
fn of_format_2(folder: &Path) {
    let sum = regex::Regex::new(r#","sum":"[0-9a-f]{16}"\}"#).unwrap();
    let seal = regex::Regex::new("(,\\s*\"seal\": ?\"[0-9a-f]{16}\"|# seal: .*\n)").unwrap();
    let format = regex::Regex::new(r#"(?m)("?format"? ?[:=] ?)3\b"#).unwrap();
    let fingerprint = regex::Regex::new(r#"("?fingerprint"?( = |: ?))"\w{4}"#).unwrap();
    for path in tree(folder) {
        let path = folder.join(path);
        let is_text = [".json", ".toml", ".jsonl"];
        if !is_text
            .iter()
            .any(|end| path.to_string_lossy().ends_with(end))
        {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = if path.ends_with("events.jsonl") {
            let lines = text
                .lines()
                .filter(|line| !line.contains("log_started") && !line.contains("files_recorded"));
            let lines = lines.map(|line| sum.replace(line, "}").into_owned() + "\n");
            lines.collect()
        } else {
            text
        };
        let text = seal.replace_all(&text, "");
        let text = format.replace_all(&text, "${1}2");
        let text = fingerprint.replace_all(&text, "${1}\"0000");
        fs::write(&path, &*text).unwrap();
    }
    fs::remove_file(folder.join("results/spec/.index.jsonl")).ok();
}

#[test]
fn trees_of_format_2_are_read_and_are_other_work() {
    // Ties were broken differently; losses have none.
    let objective = "[objective]\nmetric = \"valid/loss\"\n";
    let spec = format!("[experiment]\nseeds = [1, 2]\n{IRIS}{objective}");
    let folder = completed(&spec, &[]);
    let folder = folder.path();
    let before = numbers(folder);
    let table = || {
        let (code, table, stderr) = run(folder, &["report", "results/spec"]);
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains("2 of 2 runs completed"), "{stderr}");
        let report = fs::read_to_string(folder.join("results/spec/report.md")).unwrap();
        assert!(!report.contains("## Remarks"), "{report}");
        table
    };
    let shown = table();
    of_format_2(folder);
    assert_eq!(table(), shown);
    assert_eq!(run(folder, &["list"]).0, 0);
    let (code, to_do, stderr) = run(folder, &["plan", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let reason = "it was written by an earlier version, whose records have no checksums";
    assert!(to_do.contains(&format!("to rerun: {reason}")), "{to_do}");
    // An unreadable line in the middle is damage there, too.
    let path = folder.join(RUN).join("events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.edit_first("epoch_finished", "epoch_fini#hed")).unwrap();
    let (_, _, stderr) = run(folder, &["report", "results/spec"]);
    assert!(stderr.contains("1 of 2 runs completed"), "{stderr}");
    assert!(
        stderr.contains("base-s1/events.jsonl` is damaged: line "),
        "{stderr}"
    );
    let said = goes_on(folder);
    assert!(said.contains(reason), "{said}");
    assert_eq!(numbers(folder), before);
}

#[test]
fn a_log_of_a_newer_version_is_called_that() {
    let folder = completed(IRIS, &[]);
    let folder = folder.path();
    let path = folder.join(RUN).join("events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.edit_first("epoch_finished", "epoch_praised")).unwrap();
    reseal(&path).unwrap();
    let (code, _, stderr) = run(folder, &["list"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stderr.contains("was written by a newer version of runner")
            && stderr.contains("epoch_praised"),
        "{stderr}"
    );
}

#[test]
fn a_refused_capsule_leaves_nothing_behind() {
    let folder = completed(IRIS, &[]);
    let folder = folder.path();
    assert_eq!(
        run(folder, &["bundle", RUN, "--out", "a.capsule.tar.zst"]).0,
        0
    );
    damage(&folder.join("a.capsule.tar.zst"), "torn");
    let there = || -> BTreeSet<PathBuf> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        entries.map(|entry| entry.path()).collect()
    };
    let before = there();
    let output = runner(folder)
        .args(["reproduce", "a.capsule.tar.zst"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(there(), before);
}

#[test]
fn ids_of_runs_are_folders_where_case_does_not_count() {
    let folder = tempfile::tempdir().unwrap();
    let rows: String = (0..40)
        .map(|i| format!("{i},{},a{}\n", i * 2, i % 2))
        .collect();
    for name in ["A.csv", "a.csv"] {
        fs::write(folder.path().join(name), format!("x,y,z\n{rows}")).unwrap();
    }
    let spec = IRIS.edit(
        "type = \"iris\"",
        "type = \"csv\"\npath = \"A.csv\"\ntarget = \"z\"",
    );
    let spec = format!("{spec}\n[sweep.grid]\ndata.path = [\"A.csv\", \"a.csv\"]\n");
    let (plan, _) = plan_in(Some(folder.path()), "spec.toml", &spec).unwrap();
    let ids: Vec<&str> = plan.runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(ids, ["path=A.csv-s1", "path=a.csv.f9c99d-s1"]);
}
