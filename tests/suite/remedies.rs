//! Terms of other tools: every entry with its message, and every replacement accepted.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use burn_runner::data::{self, Folders};
use burn_runner::diagnostic::Diagnostics;
use burn_runner::plan;
use burn_runner::spec::document::Document;
use burn_runner::spec::remedy::{Command, FLAGS, OBJECTIVES, Remedy, VERBS, rows};

use super::edit::Edit;
use super::support::{cache, folder_with, machine, npy, run};

/// The file that examples edit.
const BASE: &str = r#"
[experiment]
seeds = [1]

[data]
type = "digits"

[model]
type = "mlp"

[optimizer]
type = "adam"
learning_rate = 1e-3

[train]
epochs = 4
"#;

/// A folder with a file of each format that examples name.
fn files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut csv = "a,g,y\n".to_owned();
    let (mut lines, mut text) = (String::new(), String::new());
    for at in 0..60 {
        let (a, group, y) = (
            at as f64 / 7.0,
            ["u", "v", "w", "x"][at % 4],
            (at + 1) as f64 / 3.0,
        );
        writeln!(csv, "{a:.3},{group},{y:.3}").unwrap();
        writeln!(lines, "{{\"a\": {a:.3}, \"y\": {y:.3}}}").unwrap();
        writeln!(text, "the harbour at {at}, grey and still, {group} boats").unwrap();
    }
    let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
    write("t.csv", csv.as_bytes());
    write("v.csv", csv.edit(",u,", ",v,").as_bytes());
    write("t.jsonl", lines.as_bytes());
    write("t.txt", text.as_bytes());
    write(
        "x.npy",
        &npy(
            "<f4",
            "(60, 3)",
            &(0..180)
                .flat_map(|at| (at as f32).to_le_bytes())
                .collect::<Vec<_>>(),
        ),
    );
    write(
        "y.npy",
        &npy(
            "<i8",
            "(60,)",
            &(0..60)
                .flat_map(|at| (at % 3_i64).to_le_bytes())
                .collect::<Vec<_>>(),
        ),
    );
    for class in ["cats", "dogs"] {
        fs::create_dir_all(folder.path().join("pics").join(class)).unwrap();
        for at in 0..8 {
            let pixel = |x, y| image::Rgb([x as u8 * 9, y as u8 * 9, at * 9]);
            let picture = image::RgbImage::from_fn(4, 4, pixel);
            let name = folder
                .path()
                .join("pics")
                .join(class)
                .join(format!("{at}.png"));
            picture.save(name).unwrap();
        }
    }
    folder
}

/// What is wrong with the file after some edits; empty if it is accepted.
fn refusal(folder: &Path, edits: &str, without: &str) -> Option<Diagnostics> {
    let mut document = Document::parse("spec.toml", BASE).unwrap();
    document.root.remove(without);
    for edit in edits.split(" ; ").filter(|edit| !edit.is_empty()) {
        // A list of layers, with what makes a network of it.
        let edit = if edit.starts_with('[') {
            let layers = edit.trim_start_matches('[').strip_suffix(']').unwrap();
            format!(
                "model={{ layers = [{layers}, {{ type = \"flatten\" }}, {{ type = \"linear\" }}] }}"
            )
        } else {
            edit.to_owned()
        };
        if let Err(wrong) = document.set(&edit) {
            return Some(Diagnostics(vec![*wrong]));
        }
    }
    let folders = Folders {
        base: folder.to_owned(),
        cache: cache(),
    };
    let locate = &mut |spec: &_| data::locate(spec, &folders, None, &|_, _| {});
    plan::plan(
        &document,
        "spec",
        locate,
        &mut plan::init::no_files,
        &machine,
    )
    .err()
}

fn shown(wrong: &Diagnostics) -> String {
    let lines = wrong
        .0
        .iter()
        .map(|d| format!("{}: {}", d.message, d.helps.join(" / ")));
    lines.collect::<Vec<_>>().join(" | ")
}

/// The answer that a row must give.
fn answer(row: &Remedy) -> String {
    match row.help {
        "" => format!("did you mean `{}`?", row.ours),
        help => help.to_owned(),
    }
}

#[test]
fn every_word_of_another_tool_gets_its_answer_and_the_answer_is_accepted() {
    let folder = files();
    let (mut table, mut wrong) = (String::new(), String::new());
    let mut num_words = 0;
    // Rows for the command line have no file.
    for row in rows().filter(|row| !row.wrong.is_empty()) {
        num_words += row
            .theirs
            .split(' ')
            .filter(|word| !word.is_empty())
            .count();
        // The key itself would exist twice.
        let place = row.places.split(' ').next().unwrap();
        let own = format!("{place}.{}", row.ours);
        let Some(refused) = refusal(folder.path(), row.wrong, &own) else {
            writeln!(wrong, "accepted: {}", row.wrong).unwrap();
            continue;
        };
        let helps: Vec<&str> = refused
            .0
            .iter()
            .flat_map(|d| &d.helps)
            .map(String::as_str)
            .collect();
        if !helps.contains(&answer(row).as_str()) {
            writeln!(
                wrong,
                "{}\n    expected {}\n    got {}",
                row.wrong,
                answer(row),
                shown(&refused)
            )
            .unwrap();
        }
        if let Some(right) = row.right
            && let Some(refused) = refusal(folder.path(), right, "")
        {
            writeln!(wrong, "not right: {right}\n    {}", shown(&refused)).unwrap();
        }
        writeln!(table, "{}\n  {}", row.wrong, answer(row)).unwrap();
        if let Some(right) = row.right {
            writeln!(
                table,
                "  -> {}",
                if right.is_empty() { "(removed)" } else { right }
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(
        num_words >= 160,
        "the catalogue shrank to {num_words} words"
    );
    insta::assert_snapshot!(table);
}

/// A word means one thing in one place: a second remedy would never be used.
#[test]
fn no_two_rows_answer_for_the_same_word_in_the_same_place() {
    let mut seen = std::collections::BTreeSet::new();
    let mut twice = String::new();
    for row in rows() {
        for place in row.places.split(' ') {
            for word in row.theirs.split(' ').filter(|word| !word.is_empty()) {
                let plain: String = word.to_lowercase().replace(['_', '-', '.'], "");
                if !seen.insert((place, plain, row.ours)) {
                    writeln!(twice, "{place}: {word}").unwrap();
                }
            }
        }
    }
    assert!(twice.is_empty(), "{twice}");
}

#[test]
fn metrics_of_other_tools_are_named_with_their_split() {
    let folder = files();
    let mut table = String::new();
    for (theirs, ours) in OBJECTIVES {
        let refused = refusal(
            folder.path(),
            &format!("objective.metric = \"{theirs}\""),
            "",
        )
        .expect(theirs);
        let help = refused.0[0].helps.join(" / ");
        assert!(help.contains(&format!("`{ours}`")), "{theirs}: {help}");
        assert!(refusal(folder.path(), &format!("objective.metric = \"{ours}\""), "").is_none());
        writeln!(table, "{theirs}: {help}").unwrap();
    }
    insta::assert_snapshot!(table);
}

fn arguments(command: &str) -> Vec<&str> {
    command.split(' ').filter(|word| !word.is_empty()).collect()
}

#[test]
fn words_of_other_command_lines_get_their_answer() {
    let folder = folder_with(
        &format!("{BASE}\n[sweep.grid]\ntrain.log_every = [1, 2]\n")
            .edit("epochs = 4", "epochs = 1"),
    );
    // A small results folder for verbs.
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let mut table = String::new();
    let mut check = |Command {
                         help, wrong, right, ..
                     }: &Command| {
        let (code, _, stderr) = run(folder.path(), &arguments(wrong));
        assert_eq!(code, 2, "{wrong}: {stderr}");
        assert!(stderr.contains(help), "{wrong}: {stderr}");
        if !right.is_empty() {
            let (code, _, stderr) = run(folder.path(), &arguments(right));
            assert_eq!(code, 0, "{right}: {stderr}");
        }
        writeln!(table, "{wrong}\n  {help}\n  -> {right}").unwrap();
    };
    FLAGS.iter().chain(VERBS).for_each(&mut check);
    insta::assert_snapshot!(table);
}

#[test]
fn wrong_command_lines_are_refused_with_what_to_write() {
    let folder = folder_with(BASE);
    fs::write(
        folder.path().join("spec.yaml"),
        "optimizer:\n  type: adam\n",
    )
    .unwrap();
    fs::write(
        folder.path().join("spec.json"),
        "{\"optimizer\": {\"type\": \"adam\"}}",
    )
    .unwrap();
    fs::write(folder.path().join("noext"), "---\nmodel: mlp\n").unwrap();
    fs::write(folder.path().join("data.csv"), "a,b\n1,2\n").unwrap();
    let commands = [
        "check spec.toml train.epochs=5",
        "check spec.toml lr=0.1",
        "check spec.toml seed=3",
        "check spec.toml batch_size=8",
        "check spec.toml limit=8",
        "check spec.toml +optimizer.lr=0.1",
        "check spec.toml --optimizer.learning_rate=0.1",
        "check spec.toml --learning_rate 0.1",
        "check spec.toml --jsn",
        "check spec.toml a.b=1",
        "run spec.toml --jbos 2",
        "spec.toml",
        "chekc spec.toml",
        "frobnicate spec.toml",
        "check spec.toml --frobnicate",
        "check spec.yaml",
        "check spec.json",
        "check noext",
        "check data.csv",
        "export tensorbord results",
    ];
    let mut messages = String::new();
    for command in commands {
        let (code, stdout, stderr) = run(folder.path(), &arguments(command));
        assert_eq!((code, stdout.as_str()), (2, ""), "{command}: {stderr}");
        writeln!(messages, "$ runner {command}\n{stderr}").unwrap();
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn wrong_texts_of_other_languages_are_answered() {
    let folder = files();
    let mut messages = String::new();
    let texts = [
        "[optimizer]\nclip = None\n",
        "[train]\ngradient_checkpointing = True\n",
        "[model]\nhidden = (64, 32)\n",
        "[data]\ntype = \"csv\"\npath = \"${oc.env:DATA,/tmp}\"\n",
        "[optimizer]\ntype = \"adam\"\nlearning_rate = \"${hydra:lr}\"\n",
        "[experiment]\nseeds = 5\n",
        "[experiment]\nseeds = 1\n",
        "optimizer = \"adam\"\n",
        "loss = \"mean_squared_error\"\n",
        "[optimizer]\nclip = \"none\"\n",
        "[train]\nema = false\n",
        "[sweep]\noptimizer.learning_rate = [1e-3, 1e-2]\n",
        "[sweep]\nlr = [1e-3, 1e-2]\n",
        "[sweep.grid]\nlr = [1e-3, 1e-2]\n",
        "[backend]\ndevice = \"gpu:0\"\n",
        "[train]\nepochs = 3\nmax_epochs = 3\nEpochs = 3\n",
        "[optimizer]\nname = \"adam\"\n",
        "[optimizer]\ntype = \"adam\"\nclip = \"none\"\n",
        "[optimizer]\ntype = \"torch.optim.AdamW\"\n",
        "[train]\nepochs = \"10\"\n",
        "[train]\nepochs = \"ten\"\n",
        "[train]\nepochs = 1e18\n",
        "[model]\ntype = \"mlp\"\nhidden = [1e12]\n",
    ];
    for text in texts {
        let rendered = match Document::parse("spec.toml", text) {
            Err((sources, wrong)) => wrong.render(&sources, false),
            Ok(document) => {
                let folders = Folders {
                    base: folder.path().to_owned(),
                    cache: cache(),
                };
                let locate = &mut |spec: &_| data::locate(spec, &folders, None, &|_, _| {});
                let wrong = plan::plan(
                    &document,
                    "spec",
                    locate,
                    &mut plan::init::no_files,
                    &machine,
                )
                .unwrap_err();
                let wrong = wrong
                    .0
                    .into_iter()
                    .filter(|d| d.code != "missing-table" && d.code != "missing-key");
                Diagnostics(wrong.collect()).render(&document.sources, false)
            }
        };
        writeln!(messages, "{rendered}").unwrap();
    }
    insta::assert_snapshot!(messages);
}
