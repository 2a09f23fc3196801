//! Everything that people read in terminals of 40, 80 and 120 columns: no line is too long, no number is cut, and no color
//! is sent where none is wanted.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::support::{IRIS, completed, runner, texts};

/// Twelve runs with long names, of networks with names of their own.
fn spec() -> String {
    format!(
        "[experiment]\nquestion = \"Which optimizer and which learning rate suit a small network?\"\nseeds = [1, 2]\n{IRIS}\n\
         [data.split]\ntest = 0.2\n[sweep.grid]\noptimizer.learning_rate = [1e-3, 3.333e-3, 1e-2]\nmodel.hidden = [[16], [128, 64]]\n"
    )
}

/// What a verb prints on both streams in a terminal of so many columns.
fn shown(folder: &Path, arguments: &[&str], columns: &str) -> String {
    let output = runner(folder)
        .args(arguments)
        .env("COLUMNS", columns)
        .output()
        .unwrap();
    let (code, stdout, stderr) = texts(&output);
    assert!(code < 2, "{arguments:?}: {stderr}");
    stdout + &stderr
}

/// The verbs that print tables or sentences.
const VERBS: [&[&str]; 18] = [
    &["check", "spec.toml"],
    &["plan", "spec.toml"],
    &["plan", "spec.toml", "--explain"],
    &["describe", "spec.toml"],
    &["data", "spec.toml"],
    &["memory", "spec.toml"],
    &["memory", "--reference"],
    &["devices"],
    &["list", "results"],
    &["list", "results", "--group", "model.hidden"],
    &["list", "results", "--all"],
    &["report", "results/spec"],
    &["compare", "results/spec"],
    &[
        "compare",
        "results/spec",
        "--rows",
        "model.hidden",
        "--cols",
        "optimizer.learning_rate",
    ],
    &[
        "compare",
        "results/spec",
        "--pareto",
        "valid/accuracy,wall_secs",
    ],
    &["evaluate", RUN, "--split", "valid"],
    &["diff", RUN, OTHER],
    &["explain", "optimizer"],
];

const RUN: &str = "results/spec/runs/learning_rate=0.001,hidden=16-s1";
const OTHER: &str = "results/spec/runs/learning_rate=0.01,hidden=128x64-s2";

/// The numbers in a text, with the letters that belong to them.
fn numbers(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "._+".contains(c)));
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    words.filter(is_number).map(str::to_owned).collect()
}

#[test]
fn no_number_is_cut_and_no_line_is_too_long() {
    let folder = completed(&spec(), &[]);
    let mut wrong = Vec::new();
    // Of all verbs: the values of an axis may be shown in the name of a trial, or each by itself.
    let known: BTreeSet<String> = VERBS
        .into_iter()
        .flat_map(|arguments| numbers(&shown(folder.path(), arguments, "1000")))
        .collect();
    for arguments in VERBS {
        for columns in ["40", "80", "120"] {
            let text = shown(folder.path(), arguments, columns);
            let width: usize = columns.parse().unwrap();
            let cut: Vec<String> = numbers(&text).difference(&known).cloned().collect();
            if !cut.is_empty() {
                wrong.push(format!("{arguments:?} at {columns}: {cut:?} in\n{text}"));
            }
            // A word that is longer than a line, such as a path, is not broken.
            let is_long = |line: &&str| {
                let words = line.split_whitespace();
                let longest = words.map(|word| word.chars().count()).max().unwrap_or(0);
                line.chars().count() > width && longest + 6 < width
            };
            // Messages are only wrapped on a terminal.
            let output = runner(folder.path())
                .args(arguments)
                .env("COLUMNS", columns)
                .output()
                .unwrap();
            let (_, stdout, _) = texts(&output);
            let long: Vec<&str> = stdout.lines().filter(is_long).collect();
            if !long.is_empty() {
                wrong.push(format!("{arguments:?} at {columns}: too long: {long:#?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_verb_sends_colors_where_none_are_wanted() {
    let folder = completed(&spec(), &[]);
    fs::write(folder.path().join("wrong.toml"), "[data]\ntype = \"irs\"\n").unwrap();
    let all = VERBS.into_iter().chain([
        &["check", "wrong.toml"][..],
        &["run", "spec.toml"],
        &["watch", "results", "--once"],
        &["reproduce", "nowhere"],
        &["list", "results", "--filter", "nothing > 1"],
    ]);
    for arguments in all {
        let mut command = runner(folder.path());
        command.args(arguments).env("NO_COLOR", "1");
        let ended = super::terminal::Terminal::start(command, 80, 24).end();
        let sent = String::from_utf8_lossy(&ended.sent);
        for code in sent.split("\u{1b}[").skip(1) {
            let (codes, rest) =
                code.split_at(code.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(0));
            assert!(
                !rest.starts_with('m') || codes == "0" || codes.is_empty(),
                "{arguments:?}: {code:?}"
            );
        }
    }
}

/// Letters of all languages are kept in names, and wide ones take two columns of a terminal.
#[test]
fn names_of_all_languages_keep_their_letters_and_fit() {
    let values = "[\"短い名前\", \"手写数字手写数字\", \"اسم\", \"naïve/\\\"name\\\"\"]";
    let spec = format!("[values]\nname = \"x\"\n{IRIS}\n[sweep.grid]\nvalues.name = {values}\n");
    let folder = completed(&spec, &[]);
    let text = shown(
        folder.path(),
        &["list", "results", "--columns", "run"],
        "1000",
    );
    for name in ["短い名前", "手写数字手写数字", "اسم", "naïve--name-"] {
        assert!(text.contains(&format!("name={name}-s1")), "{name}: {text}");
    }
    let wide = |c: char| {
        if ('\u{3000}'..'\u{a000}').contains(&c) {
            2
        } else {
            1
        }
    };
    for verb in [
        &["report", "results/spec"][..],
        &["list", "results"],
        &["plan", "spec.toml"],
    ] {
        for columns in [40, 80] {
            let output = runner(folder.path())
                .args(verb)
                .env("COLUMNS", columns.to_string())
                .output()
                .unwrap();
            let (_, stdout, _) = texts(&output);
            for line in stdout.lines() {
                let width: usize = line.chars().map(wide).sum();
                assert!(width <= columns, "{verb:?} at {columns}: {line}");
            }
        }
    }
    // The columns after the names begin at the same place.
    let text = shown(folder.path(), &["plan", "spec.toml"], "80");
    let rows = text.lines().filter(|line| line.contains("-s1"));
    let places = rows.map(|row| {
        let (before, _) = row.split_once("flex").unwrap();
        before.chars().map(wide).sum::<usize>()
    });
    assert_eq!(places.collect::<BTreeSet<_>>().len(), 1, "{text}");
}
