//! Reproduction of runs: the verdict, the exit code, and what is refused.

use std::fs;
use std::path::{Path, PathBuf};

use burn_runner::event::Event;
use burn_runner::record::RunFolder;

use super::compose::folder_of;
use super::edit::Edit;
use super::support::{IRIS, completed, run};

const RUN: &str = "results/spec/runs/base-s1";

/// The messages, without machine-specific parts.
fn reproduced(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let (code, stdout, stderr) = run(folder, &[&["reproduce"], arguments].concat());
    let times = regex::Regex::new(r"  \d+\.\d s").unwrap();
    let said = times
        .replace_all(&format!("{stderr}{stdout}"), "  0.0 s")
        .into_owned();
    (code, said.replace(&*folder.to_string_lossy(), "HERE"))
}

fn copied(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        match entry.path() {
            path if path.is_dir() => copied(&path, &to),
            path => drop(fs::copy(path, to).unwrap()),
        }
    }
}

/// Changes the run.toml of a run.
fn edit(run: &Path, from: &str, to: &str) {
    let path = run.join("run.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.edit_first(from, to)).unwrap();
}

/// Makes a run's record match its current files, as if they had been written so.
pub fn restate(run: &Path) {
    let folder = RunFolder(run.to_owned());
    let mut events = folder.read_events().unwrap();
    for (_, event) in &mut events {
        if let Event::FilesRecorded { files } = event {
            *files = folder.digest_files().unwrap();
        }
    }
    folder.write_events(&events).unwrap();
}

#[test]
fn a_run_is_reproduced_to_the_bit_from_its_folder_alone() {
    let folder = completed(IRIS, &[]);
    let elsewhere = tempfile::tempdir().unwrap();
    copied(&folder.path().join(RUN), &elsewhere.path().join("alone"));
    let (code, said) = reproduced(elsewhere.path(), &["alone"]);
    assert_eq!(code, 0, "{said}");
    insta::assert_snapshot!(said);
    let verdict = elsewhere.path().join("alone-reproduced/reproduction.json");
    let verdict = fs::read_to_string(verdict).unwrap();
    assert!(verdict.contains("\"grade\": \"bitwise\""), "{verdict}");
    // The second time goes next to the first.
    reproduced(elsewhere.path(), &["alone"]);
    assert!(elsewhere.path().join("alone-reproduced.2").exists());
}

#[test]
fn one_bit_of_the_seed_is_seen_at_the_first_step() {
    let folder = completed(IRIS, &[]);
    edit(&folder.path().join(RUN), "seed = 1", "seed = 3");
    let (code, said) = reproduced(folder.path(), &[RUN]);
    assert_eq!(code, 1, "{said}");
    insta::assert_snapshot!(said);
}

#[test]
fn what_was_changed_is_seen_where_it_begins_to_matter() {
    let folder = completed(IRIS, &[]);
    let run = folder.path().join(RUN);
    edit(&run, "learning_rate = 0.01", "learning_rate = 0.011");
    let (code, said) = reproduced(folder.path(), &[RUN, "--at-least", "ulp:4"]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("losses      differ from step 2 of 24 on"),
        "{said}"
    );
    assert!(
        said.contains("verdict: edited record: `run.toml`"),
        "{said}"
    );
    let (code, said) = reproduced(folder.path(), &[RUN, "--steps", "1"]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("losses      equal in all 1 step"), "{said}");
    let (code, said) = reproduced(folder.path(), &[RUN, "--steps", "99"]);
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("exceeds the 24 steps in the trace of the run"),
        "{said}"
    );
}

#[test]
fn an_objective_among_those_of_other_seeds_is_equivalent() {
    let spec = format!("[experiment]\nseeds = [1, 2, 3]\n{IRIS}");
    let folder = completed(&spec, &[]);
    // As sums on another device would do: the losses diverge in the middle, and the final weights differ.
    let run = folder.path().join(RUN);
    let losses = run.join("trace/losses.f64");
    let mut bytes = fs::read(&losses).unwrap();
    bytes[8 * 10 + 6] ^= 1;
    fs::write(&losses, bytes).unwrap();
    restate(&run);
    let (code, said) = reproduced(folder.path(), &[RUN]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("verdict: equivalent (the objective is "),
        "{said}"
    );
    let (code, _) = reproduced(folder.path(), &[RUN, "--at-least", "equivalent"]);
    assert_eq!(code, 0);
    // All runs of the experiment: one of them differs.
    let (code, said) = reproduced(folder.path(), &["results/spec"]);
    assert_eq!(code, 1);
    assert!(
        said.contains("base-s2: bitwise\nbase-s3: bitwise\n"),
        "{said}"
    );
    assert!(
        said.contains("2 of 3 runs reproduced as requested"),
        "{said}"
    );
}

#[test]
fn a_change_of_the_last_bits_is_measured() {
    let folder = completed(IRIS, &[]);
    let losses = folder.path().join(RUN).join("trace/losses.f64");
    let mut bytes = fs::read(&losses).unwrap();
    // Loss 20 in 32-bit steps: the 29 bits below only exist in 64-bit floats.
    let at = 8 * 20;
    let loss = f64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let near = f64::from(f32::from_bits((loss as f32).to_bits() + 2));
    bytes[at..at + 8].copy_from_slice(&near.to_le_bytes());
    fs::write(&losses, bytes).unwrap();
    restate(&folder.path().join(RUN));
    let (code, said) = reproduced(folder.path(), &[RUN, "--at-least", "ulp:4"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("ulp (most in the loss of step 21)"), "{said}");
    let (code, _) = reproduced(folder.path(), &[RUN]);
    assert_eq!(code, 1, "bitwise is asked for when nothing else is");
}

#[test]
fn other_data_and_unfinished_runs_are_refused() {
    let folder = folder_of(&[
        (
            "spec.toml",
            &IRIS.edit(
                "type = \"iris\"",
                "type = \"csv\"\npath = \"a.csv\"\ntarget = \"y\"",
            ),
        ),
        ("a.csv", &table("0.5")),
    ]);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let (code, said) = reproduced(folder.path(), &[RUN]);
    assert_eq!(code, 0, "{said}");
    fs::write(folder.path().join("a.csv"), table("0.75")).unwrap();
    let (code, said) = reproduced(folder.path(), &[RUN]);
    assert_eq!(code, 2);
    assert!(
        said.contains("the data changed since the experiment was planned"),
        "{said}"
    );
    let folder = completed(IRIS, &[]);
    let events = folder.path().join(RUN).join("events.jsonl");
    let text = fs::read_to_string(&events).unwrap();
    let cut = text.rfind("{\"time_ms\"").unwrap();
    fs::write(&events, &text[..cut]).unwrap();
    let (code, said) = reproduced(folder.path(), &[RUN]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("its end is missing"), "{said}");
    fs::remove_file(folder.path().join(RUN).join("summary.json")).unwrap();
    for path in [RUN, "results/spec", "results", "spec.toml"] {
        let (code, said) = reproduced(folder.path(), &[path]);
        assert_eq!(code, 2, "{said}");
        insta::assert_snapshot!(format!("refused_{}", path.replace(['/', '.'], "_")), said);
    }
    let (code, said) = reproduced(folder.path(), &[RUN, "--at-least", "exact"]);
    assert_eq!(code, 2);
    assert!(said.contains("use `bitwise`, `ulp:N`"), "{said}");
}

fn table(odd: &str) -> String {
    let rows =
        (0..60).map(|row| format!("{}.5,{}\n", row % 7, if row % 2 == 0 { "a" } else { "b" }));
    format!("x,y\n{odd},a\n{}", rows.collect::<String>())
}

#[test]
fn a_trace_that_is_gone_is_said() {
    let folder = completed(IRIS, &[]);
    let trace: PathBuf = folder.path().join(RUN).join("trace");
    fs::remove_dir_all(trace).unwrap();
    let (code, said) = reproduced(folder.path(), &[RUN]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("not compared: the losses of the steps"),
        "{said}"
    );
    assert!(said.contains("verdict: partial: bitwise as far"), "{said}");
    // A missing part does not count as equal.
    let folder = completed(IRIS, &[]);
    let losses = folder.path().join(RUN).join("trace/losses.f64");
    let bytes = fs::read(&losses).unwrap();
    fs::write(&losses, &bytes[..8 * 20 + 3]).unwrap();
    let (code, said) = reproduced(folder.path(), &[RUN]);
    assert_eq!(code, 1, "{said}");
    assert!(
        said.contains("verdict: edited record: `trace/losses.f64`"),
        "{said}"
    );
    restate(&folder.path().join(RUN));
    let (code, said) = reproduced(folder.path(), &[RUN]);
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("verdict: partial: bitwise as far"), "{said}");
    assert!(
        said.contains("equal in all 20 steps") && said.contains("the losses of 4 steps"),
        "{said}"
    );
}

#[test]
fn a_capsule_is_all_that_is_needed() {
    let folder = folder_of(&[
        (
            "spec.toml",
            &format!(
                "[experiment]\nseeds = [1, 2, 3]\n{}",
                IRIS.edit(
                    "type = \"iris\"",
                    "type = \"csv\"\npath = \"a.csv\"\ntarget = \"y\""
                )
            ),
        ),
        ("a.csv", &table("0.5")),
    ]);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    for (name, data) in [("full", "always"), ("thin", "never")] {
        let name = format!("{name}.capsule.tar.zst");
        let (code, _, stderr) = run(
            folder.path(),
            &["bundle", RUN, "--out", &name, "--data", data],
        );
        assert_eq!(code, 0, "{stderr}");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    for name in ["full", "thin"] {
        let name = format!("{name}.capsule.tar.zst");
        fs::rename(folder.path().join(&name), elsewhere.path().join(&name)).unwrap();
    }
    fs::rename(folder.path().join("a.csv"), elsewhere.path().join("a.csv")).unwrap();
    let (code, said) = reproduced(elsewhere.path(), &["full.capsule.tar.zst"]);
    assert_eq!(code, 0, "{said}");
    insta::assert_snapshot!(said);
    let (code, said) = reproduced(elsewhere.path(), &["thin.capsule.tar.zst"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("set its folder with `--data DIR`"), "{said}");
    let arguments = ["thin.capsule.tar.zst", "--data", "."];
    let (code, said) = reproduced(elsewhere.path(), &arguments);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("verdict: bitwise"), "{said}");
}

#[test]
fn guarantees_are_tried_on_a_shortened_run() {
    let folder = folder_of(&[("spec.toml", super::runs::STOPPABLE)]);
    let (code, stdout, stderr) = run(folder.path(), &["prove", "spec.toml"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let one_thread = stdout
        .lines()
        .filter(|line| !line.contains("with one thread"));
    insta::assert_snapshot!(one_thread.collect::<Vec<_>>().join("\n"));
    assert!(!folder.path().join("results").exists());
    let (code, _, stderr) = run(folder.path(), &["prove", "spec.toml", "--trial", "x"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("there is no trial `x`"), "{stderr}");
}

#[test]
fn another_device_begins_with_the_same_weights() {
    let folder = completed(IRIS, &[]);
    let (code, said) = reproduced(folder.path(), &[RUN, "--device", "flex"]);
    assert_eq!(code, 0, "{said}");
    // Invalid initial weights are reported, and not sampled instead.
    fs::write(folder.path().join(RUN).join("model/initial.bpk"), "none").unwrap();
    let (code, said) = reproduced(folder.path(), &[RUN, "--device", "flex"]);
    assert_eq!(code, 1);
    assert!(said.contains("cannot be used"), "{said}");
}
