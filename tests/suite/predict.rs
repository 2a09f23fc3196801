//! Predictions from new data are those of the training's own evaluation, for every task, and what is not fit to be
//! predicted from is refused with its place.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use burn_runner::data::{self, TargetValues};
use burn_runner::model::{Model, Options};
use burn_runner::predict::Prediction;
use serde_json::Value as Json;

use super::edit::Edit;
use super::support::{folder_with, npy, run, runner, texts};

/// A small experiment; `data` begins with the keys of `[data]`.
pub fn spec(data: &str, model: &str) -> String {
    format!(
        "[data]\n{data}\n[model]\n{model}\n[optimizer]\ntype = \"adam\"\nlearning_rate = 1e-2\n\
         [train]\nepochs = 2\nbatch_size = 8\n"
    )
}

pub const MLP: &str = "type = \"mlp\"\nhidden = [8]";

/// Trains a spec and returns its folder, that of the run, and what was recorded of its best epoch.
fn trained(spec: &str) -> (tempfile::TempDir, std::path::PathBuf, Json) {
    let folder = folder_with(spec);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let run = folder.path().join("results/spec/runs/base-s1");
    let text = fs::read_to_string(run.join("summary.json")).unwrap();
    let summary: Json = serde_json::from_str(&text).unwrap();
    (folder, run, summary["metrics"].clone())
}

fn metric(metrics: &Json, name: &str) -> f64 {
    metrics[name]
        .as_f64()
        .unwrap_or_else(|| panic!("no {name} in {metrics}"))
}

/// The predictions of the valid split with its targets, in the batches that epochs are validated in.
fn valid(run: &Path) -> (Vec<Prediction>, TargetValues) {
    let model = Model::open(run, &Options::default()).unwrap();
    let loaded = data::load(&model.plan().data, &|_, _| {}).unwrap();
    let all: Vec<u32> = (0..loaded.valid.num_items() as u32).collect();
    let parts = all.chunks(model.plan().train.batch_size);
    let predictions = parts
        .flat_map(|part| model.predict(&loaded.valid, part))
        .collect();
    (predictions, loaded.valid.serve(&all, None).targets)
}

fn classes(targets: TargetValues) -> Vec<i32> {
    match targets {
        TargetValues::Classes(classes) => classes,
        TargetValues::Floats(_) | TargetValues::Doubles(_) => panic!("they are numbers"),
    }
}

fn floats(targets: TargetValues) -> Vec<f32> {
    match targets {
        TargetValues::Floats(values) => values,
        TargetValues::Classes(_) | TargetValues::Doubles(_) => panic!("they are classes"),
    }
}

/// The share of equals, which is a ratio of counts and so exact.
fn share(pairs: impl Iterator<Item = bool>) -> f64 {
    let pairs: Vec<bool> = pairs.collect();
    pairs.iter().filter(|is| **is).count() as f64 / pairs.len() as f64
}

fn assert_close(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() <= 1e-5 * expected.abs().max(1e-3),
        "{found} for {expected}"
    );
}

#[test]
fn classes_are_those_that_the_training_counted() {
    for (data, model) in [
        ("type = \"iris\"\nscale = \"standardize\"", MLP),
        (
            "type = \"sine_windows\"\nlength = 12\nnum_items = 300",
            "type = \"lstm\"\nhidden_size = 8",
        ),
        (
            "type = \"brackets\"\nlength = 10\nnum_items = 300",
            "type = \"transformer_classifier\"\nd_model = 16\nnum_layers = 1\nnum_heads = 2",
        ),
    ] {
        let (_folder, run, metrics) = trained(&spec(data, model));
        let (predictions, targets) = valid(&run);
        let pairs = predictions.iter().zip(classes(targets));
        let accuracy = share(pairs.clone().map(|(prediction, target)| match prediction {
            Prediction::Class { index, .. } => *index as i32 == target,
            other => panic!("{other:?}"),
        }));
        assert_eq!(accuracy, metric(&metrics, "valid/accuracy"), "{data}");
        let losses = pairs.map(|(prediction, target)| match prediction {
            Prediction::Class { probabilities, .. } => {
                -f64::from(probabilities[target as usize].ln())
            }
            other => panic!("{other:?}"),
        });
        let losses: Vec<f64> = losses.collect();
        let mean = losses.iter().sum::<f64>() / losses.len() as f64;
        assert!(
            (mean - metric(&metrics, "valid/loss")).abs() < 1e-5,
            "{data}"
        );
    }
}

#[test]
fn labels_masks_and_tokens_are_those_that_the_training_counted() {
    let text = spec(
        "type = \"shapes\"\ntarget = \"labels\"\nsize = 10\nnum_items = 200\n[task]\nmetrics = [\"hamming_score\"]",
        MLP,
    );
    let (_folder, run, metrics) = trained(&text);
    let (predictions, targets) = valid(&run);
    let given = predictions.iter().flat_map(|prediction| match prediction {
        Prediction::Labels { probabilities, .. } => {
            probabilities.iter().map(|p| *p > 0.5).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    });
    let held = floats(targets);
    let hamming = share(given.zip(held).map(|(given, held)| given == (held > 0.5)));
    assert_eq!(hamming, metric(&metrics, "valid/hamming_score"));

    let text = spec(
        "type = \"shapes\"\ntarget = \"mask\"\nsize = 10\nnum_items = 120\n[task]\nmetrics = [\"accuracy\"]",
        "layers = [{ type = \"conv2d\", kernel_size = 3, padding = \"same\" }]",
    );
    let (folder, run, metrics) = trained(&text);
    let (predictions, targets) = valid(&run);
    let pixels = predictions.iter().flat_map(|prediction| match prediction {
        Prediction::Classes { shape, classes } => {
            assert_eq!(shape, &[10, 10]);
            classes.clone()
        }
        other => panic!("{other:?}"),
    });
    let wanted = classes(targets);
    let accuracy = share(pixels.zip(&wanted).map(|(a, b)| a as i32 == *b));
    assert_eq!(accuracy, metric(&metrics, "valid/accuracy"));
    // As PNG they are the same pixels.
    let run = run.display().to_string();
    let (code, _, stderr) = super::support::run(
        folder.path(),
        &["predict", &run, "--split", "valid", "--out", "masks/"],
    );
    assert_eq!(code, 0, "{stderr}");
    let table = fs::read_to_string(folder.path().join("masks/predictions.csv")).unwrap();
    let first = table.lines().nth(1).unwrap().rsplit_once(',').unwrap().1;
    let mask = image::open(folder.path().join("masks").join(first))
        .unwrap()
        .into_luma8();
    let Prediction::Classes { classes: drawn, .. } = &predictions[0] else {
        panic!("a mask");
    };
    let drawn: Vec<u8> = drawn.iter().map(|class| *class as u8).collect();
    assert_eq!(mask.into_raw(), drawn);
    assert_eq!(table.lines().count(), predictions.len() + 1);
    // A folder is only replaced if it has nothing else.
    let again = |out: &str| {
        let arguments = ["predict", &run, "--split", "valid", "--out", out, "--force"];
        let (code, _, stderr) = super::support::run(folder.path(), &arguments);
        (code, stderr)
    };
    assert_eq!(again("masks").0, 0);
    fs::write(folder.path().join("masks/notes.txt"), "mine").unwrap();
    // Images of the user's are not predictions, with or without a table beside them.
    for name in ["images", "more"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("mine.png"), "mine").unwrap();
    }
    let table = folder.path().join("masks/predictions.csv");
    fs::copy(table, folder.path().join("more/predictions.csv")).unwrap();
    for (out, says) in [
        ("masks", "`masks` contains `notes.txt`"),
        (
            "images/",
            "contains `mine.png`, which this command did not write",
        ),
        (
            "more/",
            "contains `mine.png`, which this command did not write",
        ),
        ("p.xlsx", "the name of `p.xlsx` does not tell its format"),
    ] {
        let (code, stderr) = again(out);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(says), "{stderr}");
    }
    assert!(folder.path().join("masks/notes.txt").exists());

    let text = spec(
        "type = \"copy_sequence\"\nlength = 3\nvocabulary = 5\nnum_items = 200",
        "type = \"transformer_lm\"\nd_model = 16\nnum_layers = 1\nnum_heads = 2",
    );
    let (_folder, run, _) = trained(&text);
    let (predictions, _) = valid(&run);
    for prediction in predictions {
        let Prediction::NextToken {
            probability,
            alternatives,
            ..
        } = prediction
        else {
            panic!("a token");
        };
        assert!(
            alternatives
                .iter()
                .all(|(_, p)| *p <= probability && *p >= 0.0)
        );
    }
}

#[test]
fn numbers_are_in_units_of_the_target() {
    let rows: String = (0..120)
        .map(|at| {
            let (a, b) = (at % 12, at % 7);
            format!(
                "{a},{},{}\n",
                b as f64 / 2.0,
                1000.0 + 40.0 * f64::from(a) - 9.0 * f64::from(b)
            )
        })
        .collect();
    let table = format!("a,b,price\n{rows}");
    let text = spec(
        "type = \"csv\"\npath = \"x.csv\"\ntarget = \"price\"\nscale = \"standardize\"\ntarget_scale = \"standardize\"\n[task]\nmetrics = [\"mae\"]",
        MLP,
    );
    let folder = folder_with(&text);
    fs::write(folder.path().join("x.csv"), &table).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let run_folder = folder.path().join("results/spec/runs/base-s1");
    let model = Model::open(&run_folder, &Options::default()).unwrap();
    let (predictions, targets) = valid(&run_folder);
    let errors = predictions
        .iter()
        .zip(floats(targets))
        .map(|(prediction, target)| {
            let Prediction::Values { values, .. } = prediction else {
                panic!("numbers");
            };
            (values[0] - model.meaning().in_units(0, target)).abs()
        });
    let errors: Vec<f64> = errors.collect();
    let mae = errors.iter().sum::<f64>() / errors.len() as f64;
    let unit = model.meaning().in_units(0, 1.0) - model.meaning().in_units(0, 0.0);
    let summary = fs::read_to_string(run_folder.join("summary.json")).unwrap();
    let summary: Json = serde_json::from_str(&summary).unwrap();
    assert_close(mae, metric(&summary["metrics"], "valid/mae") * unit);

    // A file gives the same numbers in its own order, with or without the target.
    let predict = |name: &str, more: &[&str]| {
        let all = [&["predict", "results/spec", "--data", name], more].concat();
        let (code, stdout, stderr) = run(folder.path(), &all);
        assert_eq!(code, 0, "{stderr}");
        stdout
    };
    let with = predict("x.csv", &[]);
    let without: String = table
        .lines()
        .map(|line| format!("{}\n", line.rsplit_once(',').unwrap().0))
        .collect();
    fs::write(folder.path().join("y.csv"), without).unwrap();
    assert_eq!(predict("y.csv", &[]), with);
    assert!(with.starts_with("row,price\n1,"), "{with}");
    assert_eq!(with.lines().count(), 121);
    let kept = predict("x.csv", &["--keep", "price", "--format", "jsonl"]);
    let last: Json = serde_json::from_str(kept.lines().last().unwrap()).unwrap();
    assert_eq!(last["row"], 120);
    let wanted = table.lines().last().unwrap().rsplit_once(',').unwrap().1;
    assert_eq!(last["data_price"], wanted);
    let csv = predict("x.csv", &["--keep", "price"]);
    assert!(csv.starts_with("row,data_price,price\n1,"), "{csv}");
    let shown: f64 = with
        .lines()
        .last()
        .unwrap()
        .split(',')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(last["prediction"]["price"].as_f64().unwrap(), shown);
    // Many batches or one are the same but for the order of sums.
    for (a, b) in with
        .lines()
        .zip(predict("x.csv", &["--batch-size", "1"]).lines())
        .skip(1)
    {
        let number = |line: &str| line.split(',').nth(1).unwrap().parse::<f64>().unwrap();
        assert_close(number(a), number(b));
    }
}

const PETS: &str = "name,kind,age,legs,long\n\
    a,cat,1,4,no\nb,dog,2,4,yes\nc,bird,3,2,no\nd,cat,4,4,no\ne,dog,5,4,yes\nf,bird,6,2,no\n\
    g,cat,7,4,no\nh,dog,8,4,yes\ni,bird,9,2,no\nj,cat,1,4,no\nk,dog,2,4,yes\nl,bird,3,2,no\n";

/// A network that was trained on a small table.
fn pets() -> tempfile::TempDir {
    let text = spec(
        "type = \"csv\"\npath = \"pets.csv\"\ntarget = \"long\"\nignore = [\"name\"]\nscale = \"standardize\"\ncolumns = [{ name = \"kind\", type = \"category\" }]",
        MLP,
    );
    let folder = folder_with(&text);
    fs::write(folder.path().join("pets.csv"), PETS).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    folder
}

#[test]
fn tables_that_do_not_fit_are_refused_with_row_and_column() {
    let folder = pets();
    let bad: [(&str, &[u8], &str); 13] = [
        (
            "unknown.csv",
            b"kind,age,legs\ncat,1,4\nhorse,2,4\n",
            "`unknown.csv:3`: column `kind`: `horse` is not a category that the run was trained on",
        ),
        (
            "typo.csv",
            b"kind,age,legs\ncats,1,4\n",
            "did you mean `cat`?",
        ),
        (
            "text.csv",
            b"kind,age,legs\ncat,old,4\n",
            "`text.csv:2`: column `age`: `old` is not a number",
        ),
        (
            "empty_cell.csv",
            b"kind,age,legs\ncat,,4\n",
            "`empty_cell.csv:2`: column `age` has no value",
        ),
        (
            "nan.csv",
            b"kind,age,legs\ncat,nan,4\n",
            "`nan.csv:2`: column `age` has no value",
        ),
        (
            "infinite.csv",
            b"kind,age,legs\ncat,1e999,4\n",
            "`infinite.csv:2`: column `age`: `1e999` is not a finite number",
        ),
        (
            "short.csv",
            b"kind,age,legs\ncat,1,4\ndog,2\n",
            "`short.csv:3`",
        ),
        (
            "column.csv",
            b"kind,agee,legs\ncat,1,4\n",
            "lacks the column `age`",
        ),
        (
            "latin.csv",
            b"kind,age,legs\nk\xe4tzchen,1,4\n",
            "`latin.csv:2`: column `kind`",
        ),
        ("empty.csv", b"", "`empty.csv` is empty"),
        ("head.csv", b"kind,age,legs\n", "head.csv has no items"),
        (
            "broken.jsonl",
            b"{\"kind\": \"cat\", \"age\": 1, \"legs\": 4}\n{\"kind\": \n",
            "`broken.jsonl:2`",
        ),
        (
            "lacks.jsonl",
            b"{\"kind\": \"cat\", \"age\": 1, \"legs\": 4}\n{\"kind\": \"cat\", \"age\": 1}\n",
            "`lacks.jsonl:2`: column `legs` has no value",
        ),
    ];
    for (name, bytes, expected) in bad {
        fs::write(folder.path().join(name), bytes).unwrap();
        let (code, stdout, stderr) = run(
            folder.path(),
            &[
                "predict",
                "results/spec/runs/base-s1",
                "--data",
                name,
                "--out",
                "out.csv",
            ],
        );
        assert_eq!((code, stdout.as_str()), (2, ""), "{name}: {stderr}");
        assert!(stderr.contains(expected), "{name}: {stderr}");
        assert!(stderr.contains("= help: "), "{name}: {stderr}");
        assert!(!folder.path().join("out.csv").exists(), "{name}");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
    let is_hidden = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    assert!(!left.iter().any(is_hidden), "{left:?}");
}

#[test]
fn bad_rows_are_left_out_and_listed_where_that_is_asked_for() {
    let folder = pets();
    let rows = "name,kind,age,legs\na,cat,1,4\nb,horse,2,4\nc,dog,x,4\nd,bird,3,2\ne,dog,,4\n";
    fs::write(folder.path().join("new.csv"), rows).unwrap();
    let all = [
        "predict",
        "results/spec",
        "--data",
        "new.csv",
        "--keep",
        "name",
    ];
    let (code, stdout, stderr) = run(
        folder.path(),
        &[&all[..], &["--on-bad-item", "skip"]].concat(),
    );
    assert_eq!(code, 0, "{stderr}");
    let ids: Vec<String> = stdout
        .lines()
        .skip(1)
        .map(|line| line.split(',').take(2).collect::<Vec<_>>().join(","))
        .collect();
    assert_eq!(ids, ["1,a", "4,d"]);
    for place in [
        "`new.csv:3`: column `kind`",
        "`new.csv:4`: column `age`",
        "`new.csv:6`: column `age` has no value",
    ] {
        assert!(stderr.contains(place), "{stderr}");
    }
    assert!(
        stderr.contains("2 predictions, 3 items skipped"),
        "{stderr}"
    );
    // Nothing is printed of data that is refused, even where the first rows are good.
    let (code, stdout, _) = run(folder.path(), &all);
    assert_eq!((code, stdout.as_str()), (2, ""));
}

#[test]
fn standard_input_and_other_formats_give_the_same() {
    let folder = pets();
    let piped = |text: &str, more: &[&str]| {
        let mut child = runner(folder.path())
            .args(["predict", "results/spec/runs/base-s1", "--data", "-"])
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        use std::io::Write;
        child
            .stdin
            .take()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
        texts(&child.wait_with_output().unwrap())
    };
    let csv = "kind,age,legs\ncat,1,4\nbird,3,2\n";
    let json = "{\"legs\": 4, \"kind\": \"cat\", \"age\": 1}\n{\"kind\": \"bird\", \"legs\": 2, \"age\": 3}\n";
    let (code, of_csv, stderr) = piped(csv, &[]);
    assert_eq!(code, 0, "{stderr}");
    let (code, of_json, stderr) = piped(json, &[]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(of_csv, of_json);
    let (code, _, stderr) = piped("kind,age\ncat,1\n", &[]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("standard input lacks the column `legs`"),
        "{stderr}"
    );
    // A wrong name or folder is refused before the first byte is read: this input never ends.
    let trained = "results/spec/runs/base-s1";
    for wrong in [
        ["predict", trained, "--data", "-", "--out", "predictions"],
        ["predict", "results/other", "--data", "-", "--out", "p.csv"],
        ["predict", trained, "--data", "-", "--out", "spec.toml"],
    ] {
        let mut child = runner(folder.path())
            .args(wrong)
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let _open = child.stdin.take();
        assert_eq!(child.wait().unwrap().code(), Some(2), "{wrong:?}");
    }
    // A tab-separated file by its name.
    fs::write(folder.path().join("new.tsv"), csv.replace(',', "\t")).unwrap();
    let (code, of_tsv, stderr) = run(
        folder.path(),
        &["predict", "results/spec/runs/base-s1", "--data", "new.tsv"],
    );
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(of_tsv, of_csv);
    // Rows as objects, for programs.
    let model = Model::open(&folder.path().join("results/spec"), &Options::default()).unwrap();
    let lines: Vec<&str> = json.lines().collect();
    let predictions = model.predict_objects(&lines).unwrap();
    let Prediction::Class { class, .. } = &predictions[0] else {
        panic!("a class");
    };
    assert_eq!(
        of_csv.lines().nth(1).unwrap().split(',').nth(1),
        Some(class.as_str())
    );
    let wrong = model
        .predict_objects(&[r#"{"kind": "horse", "legs": 4, "age": 1}"#])
        .unwrap_err();
    assert!(
        wrong.message.contains("`horse` is not a category"),
        "{}",
        wrong.message
    );
    // From many threads at once.
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| model.predict_objects(&lines).unwrap()))
            .collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), predictions);
        }
    });
}

#[test]
fn an_experiment_takes_its_best_trial_and_seeds_can_be_averaged() {
    let text = spec("type = \"iris\"", MLP)
        .edit("[data]", "[experiment]\nseeds = [1, 2, 3]\n[data]")
        + "[sweep.grid]\nmodel.hidden = [[1], [16]]\n";
    let folder = folder_with(&text);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let report = fs::read_to_string(folder.path().join("results/spec/report.json")).unwrap();
    let report: Json = serde_json::from_str(&report).unwrap();
    let best = report["trials"][0]["id"].as_str().unwrap();
    let array = |more: &[&str]| {
        let out = folder.path().join("p.jsonl");
        let out = out.to_str().unwrap();
        let all = [
            &["predict"],
            more,
            &["--split", "valid", "--out", out, "--force"],
        ]
        .concat();
        let (code, _, stderr) = run(folder.path(), &all);
        assert_eq!(code, 0, "{stderr}");
        let text = fs::read_to_string(out).unwrap();
        let lines = text.lines().map(|line| {
            let line: Json = serde_json::from_str(line).unwrap();
            line["probabilities"]["0"].as_f64().unwrap()
        });
        (lines.collect::<Vec<_>>(), stderr)
    };
    let (_, stderr) = array(&["results/spec"]);
    assert!(
        stderr.contains(&format!("of `{best}`, the highest ranked trial")),
        "{stderr}"
    );
    let each = [1, 2, 3].map(|seed| array(&[&format!("results/spec/runs/{best}-s{seed}")]).0);
    let (mean, _) = array(&["results/spec", "--ensemble", "3"]);
    for (at, mean) in mean.iter().enumerate() {
        let expected = each.iter().map(|values| values[at]).sum::<f64>() / 3.0;
        assert!((mean - expected).abs() < 1e-6, "{mean} for {expected}");
    }
    let (code, _, stderr) = run(
        folder.path(),
        &[
            "predict",
            "results/spec",
            "--ensemble",
            "4",
            "--split",
            "valid",
        ],
    );
    assert_eq!(code, 2);
    assert!(
        stderr.contains("has 3 completed runs, but 4 are requested"),
        "{stderr}"
    );
}

#[test]
fn damaged_and_missing_weights_are_refused() {
    let folder = pets();
    let run_folder = folder.path().join("results/spec/runs/base-s1");
    let weights = run_folder.join("model/best.bpk");
    let whole = fs::read(&weights).unwrap();
    let predict = || {
        run(
            folder.path(),
            &["predict", "results/spec/runs/base-s1", "--data", "pets.csv"],
        )
    };
    let mut flipped = whole.clone();
    let at = flipped.len() - 3;
    flipped[at] ^= 1;
    for bytes in [&whole[..whole.len() / 2], &[], &flipped] {
        fs::write(&weights, bytes).unwrap();
        let (code, stdout, stderr) = predict();
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        assert!(stderr.contains("best.bpk"), "{stderr}");
    }
    // Others are not used in their place, and the remedy is one that helps.
    fs::remove_file(&weights).unwrap();
    let (code, _, stderr) = predict();
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("best.bpk` is damaged: it is missing")
            && stderr.contains("delete the run's folder and run the experiment again"),
        "{stderr}"
    );
    fs::write(&weights, &whole).unwrap();
    assert_eq!(predict().0, 0);
    fs::write(run_folder.join("transforms.json"), "{}").unwrap();
    let (code, _, stderr) = predict();
    assert_eq!(code, 2);
    assert!(stderr.contains("transforms.json"), "{stderr}");
    let (code, _, stderr) = run(folder.path(), &["predict", "nowhere", "--data", "pets.csv"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("`nowhere` does not exist"), "{stderr}");
}

#[test]
fn windows_reach_over_pieces_and_not_over_groups_or_bad_rows() {
    let rows: String = (0..60)
        .map(|at| {
            format!(
                "{},{}\n",
                if at < 30 { "a" } else { "b" },
                (at * 7 % 11) as f64 / 11.0
            )
        })
        .collect();
    let text = spec(
        "type = \"csv\"\npath = \"s.csv\"\nfeatures = [\"x\"]\ntarget = \"x\"\nwindow = { length = 4, horizon = 2 }\nsplit = { group_by = \"g\", valid = 0.5 }",
        "type = \"mlp\"\nhidden = [4]",
    );
    let folder = folder_with(&text);
    fs::write(folder.path().join("s.csv"), format!("g,x\n{rows}")).unwrap();
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let new = "g,x\na,0.1\na,0.2\na,0.3\na,0.4\na,0.5\nb,0.1\nb,0.2\nb,0.3\nb,0.4\nb,wrong\nb,0.4\nb,0.4\nb,0.4\nb,0.4\n";
    fs::write(folder.path().join("new.csv"), new).unwrap();
    let (code, stdout, stderr) = run(
        folder.path(),
        &[
            "predict",
            "results/spec",
            "--data",
            "new.csv",
            "--on-bad-item",
            "skip",
        ],
    );
    assert_eq!(code, 0, "{stderr}");
    let ids: Vec<&str> = stdout
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap())
        .collect();
    // Windows end in rows 4, 5, 9 and 14, and are of the rows two later.
    assert_eq!(ids, ["6", "7", "11", "16"]);
    fs::write(folder.path().join("few.csv"), "g,x\na,0.1\n").unwrap();
    let (code, _, stderr) = run(
        folder.path(),
        &["predict", "results/spec", "--data", "few.csv"],
    );
    assert_eq!(code, 2);
    assert!(stderr.contains("too few rows"), "{stderr}");
}

#[test]
fn windows_without_a_target_are_of_their_last_row() {
    let rows: String = (0..40)
        .map(|at| format!("{}\n", (at * 7 % 11) as f64 / 11.0))
        .collect();
    let text = spec(
        "type = \"csv\"\npath = \"s.csv\"\nfeatures = [\"x\"]\nwindow = { length = 4 }\nsplit = { order = \"time\", valid = 0.25 }",
        "layers = [{ type = \"flatten\" }, { type = \"linear\", out_features = 2 }, { type = \"linear\", out_features = 4 }, { type = \"reshape\", shape = [4, 1] }]\n[task]\ntype = \"autoencoding\"",
    );
    let folder = folder_with(&text);
    fs::write(folder.path().join("s.csv"), format!("x\n{rows}")).unwrap();
    let (code, stdout, stderr) = run(folder.path(), &["plan", "spec.toml", "--json"]);
    assert_eq!(code, 0, "{stderr}");
    let plan: Json = serde_json::from_str(&stdout).unwrap();
    let data = &plan["runs"][0]["data"];
    // 30 and 10 rows hold 27 and 7 windows of 4 rows.
    let sizes = (&data["num_train"], &data["num_valid"]);
    assert_eq!(sizes, (&27.into(), &7.into()));
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    fs::write(
        folder.path().join("new.csv"),
        "x\n0.1\n0.2\n0.3\n0.4\n0.5\n",
    )
    .unwrap();
    let new = ["predict", "results/spec", "--data", "new.csv"];
    let (code, stdout, stderr) = run(folder.path(), &new);
    assert_eq!(code, 0, "{stderr}");
    let lines = stdout.lines().skip(1);
    let ids: Vec<&str> = lines.map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(ids, ["4", "5"]);
}

/// A text file has a text in each line, also for a network that was trained on texts of a table.
#[test]
fn lines_are_predicted_as_texts_of_a_table() {
    let text = |at: usize| ["good nice", "bad sad awful", "fine good", "sad"][at % 4];
    let rows: String = (0..40)
        .map(|at| format!("{},{},{}\n", ["p", "n"][at % 2], text(at), at % 7))
        .collect();
    for target in ["kind", "size"] {
        let folder = folder_with(&format!(
            "data = {{ type = 'csv', path = 'rows.csv', target = '{target}', features = ['text'], columns = [{{ name = 'text', type = 'text' }}], tokens = {{ tokenizer = 'word', length = 4 }} }}\n\
             model.layers = [{{ type = 'embedding', embedding_dim = 4 }}, {{ type = 'flatten' }}, {{ type = 'linear' }}]\n\
             optimizer = {{ type = 'adam', learning_rate = 1e-2 }}\ntrain = {{ epochs = 1, batch_size = 8 }}\n"
        ));
        let folder = folder.path();
        fs::write(folder.join("rows.csv"), format!("kind,text,size\n{rows}")).unwrap();
        let (code, _, stderr) = run(folder, &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{stderr}");
        let texts: Vec<&str> = (0..6).map(text).collect();
        fs::write(folder.join("new.txt"), texts.join("\n\n")).unwrap();
        fs::write(
            folder.join("new.csv"),
            format!("text\n{}\n", texts.join("\n")),
        )
        .unwrap();
        let predicted = |data: &str| {
            let (code, stdout, stderr) = run(folder, &["predict", "results/spec", "--data", data]);
            assert_eq!(code, 0, "{stderr}");
            let rows = stdout
                .lines()
                .skip(1)
                .map(|line| line.split_once(',').unwrap());
            rows.map(|(id, rest)| (id.to_owned(), rest.to_owned()))
                .unzip()
        };
        let (lines, of_lines): (Vec<String>, Vec<String>) = predicted("new.txt");
        let (_, of_rows): (Vec<String>, Vec<String>) = predicted("new.csv");
        assert_eq!(of_lines, of_rows, "{target}");
        assert_eq!(lines, ["1", "3", "5", "7", "9", "11"]);
        // There is no target in a line.
        let (code, _, stderr) = run(folder, &["evaluate", "results/spec", "--data", "new.txt"]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains("target"), "{stderr}");
    }
}

#[test]
fn images_and_arrays_are_predicted_from() {
    let text = spec(
        "type = \"digits\"",
        "layers = [{ type = \"flatten\" }, { type = \"linear\" }]",
    );
    let folder = folder_with(&text);
    let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let images = folder.path().join("images");
    fs::create_dir_all(images.join("sub")).unwrap();
    let digit = |at: u8| {
        image::GrayImage::from_fn(8, 8, |x, y| {
            image::Luma([if (x + y) as u8 % 3 == at % 3 { 255 } else { 0 }])
        })
    };
    for (name, at) in [("b.png", 0), ("a.png", 1), ("sub/c.png", 2)] {
        digit(at).save(images.join(name)).unwrap();
    }
    fs::write(images.join("notes.txt"), "no image").unwrap();
    let predict = |data: &str| run(folder.path(), &["predict", "results/spec", "--data", data]);
    let (code, stdout, stderr) = predict("images");
    assert_eq!(code, 0, "{stderr}");
    let names: Vec<&str> = stdout
        .lines()
        .skip(1)
        .map(|line| line.split(',').next().unwrap())
        .collect();
    assert_eq!(names, ["a.png", "b.png", "sub/c.png"]);
    let (_, one, _) = predict("images/a.png");
    // Sums over few items at once are rounded in a different order.
    let numbers = |text: &str| -> Vec<f64> {
        let cells = text.lines().nth(1).unwrap().split(',').skip(1);
        cells.map(|cell| cell.parse().unwrap()).collect()
    };
    let (alone, among) = (numbers(&one), numbers(&stdout));
    assert_eq!(alone.len(), among.len());
    for (alone, among) in alone.iter().zip(&among) {
        assert!((alone - among).abs() < 1e-6, "{alone} and {among}");
    }
    // The same picture as an array of shades from 0 to 1, with the items in front or alone.
    let values: Vec<f32> = digit(1)
        .into_raw()
        .iter()
        .map(|v| f32::from(*v) / 255.0)
        .collect();
    for (name, shape) in [("x.npy", "(1, 1, 8, 8)"), ("y.npy", "(1, 8, 8)")] {
        let values = values.iter().flat_map(|value| value.to_le_bytes());
        let array = npy("<f4", shape, &values.collect::<Vec<_>>());
        fs::write(folder.path().join(name), array).unwrap();
        let (code, of_array, stderr) = predict(name);
        assert_eq!(code, 0, "{stderr}");
        let behind = |line: Option<&str>| line.unwrap().split_once(',').unwrap().1.to_owned();
        assert_eq!(behind(of_array.lines().nth(1)), behind(one.lines().nth(1)));
    }
    digit(0).save(images.join("z.png")).unwrap();
    image::GrayImage::new(9, 8)
        .save(images.join("z.png"))
        .unwrap();
    let (code, stdout, stderr) = predict("images");
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(
        stderr.contains("has 8 x 9 pixels (height x width), but the network takes 8 x 8"),
        "{stderr}"
    );
    fs::write(images.join("z.png"), "not an image").unwrap();
    let (code, _, stderr) = predict("images");
    assert_eq!(code, 2);
    assert!(
        stderr.contains("z.png` is not a png or jpeg by its content"),
        "{stderr}"
    );
    let others = folder.path().join("others");
    fs::create_dir(&others).unwrap();
    fs::write(others.join("a.txt"), "x").unwrap();
    let (code, _, stderr) = predict("others");
    assert_eq!(code, 2);
    assert!(stderr.contains("contains no images"), "{stderr}");
}
