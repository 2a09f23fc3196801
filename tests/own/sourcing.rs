//! Data sources of the program, and its function at each event.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use burn_runner::Runner;
use burn_runner::event::{Event, Outcome};
use burn_runner::parts::{DataPart, Items, Section, Unfit};
use serde::{Deserialize, Serialize};

use crate::training::column;
use crate::{folder, program, read, start, survives_kills};

const SPEC: &str = r#"
[data]
type = "svmlight"
path = "rows.svm"
num_features = 3

[model]
layers = [{ type = "linear", out_features = 8 }, { type = "relu" }, { type = "linear" }]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 4
batch_size = 16

[checkpoint]
every_steps = 2
"#;

const RUN: &str = "results/spec/runs/base-s1";

#[derive(Serialize, Deserialize)]
struct NoSettings;

static CALLS: AtomicU32 = AtomicU32::new(0);

/// Items of two numbers, with one of two classes in turn.
fn pairs(num: usize) -> Items {
    let values = (0..2 * num).map(|at| (at as f32).sin()).collect();
    let classes = (0..num).map(|at| (at % 2) as i32).collect();
    Items::of_numbers(vec![2], values).with_classes(2, classes)
}

/// A number that differs between processes, and between calls.
fn random() -> f32 {
    (std::process::id() + CALLS.fetch_add(1, Ordering::Relaxed)) as f32
}

macro_rules! source {
    ($source:ident $name:literal, $items:expr $(, $test:expr)?) => {
        struct $source;

        impl DataPart for $source {
            const NAME: &'static str = $name;
            const DOC: &'static str = "A data source of a test.";
            type Settings = NoSettings;

            fn settings(_: &mut Section<'_>) -> NoSettings {
                NoSettings
            }

            fn items(_: &NoSettings, _: &Path) -> Result<Items, Unfit> {
                Ok($items)
            }

            $(fn test_items(_: &NoSettings, _: &Path) -> Result<Option<Items>, Unfit> {
                Ok(Some($test))
            })?
        }
    };
}

source!(Halves "halves", pairs(90), pairs(20));
source!(Tokens "own_tokens", {
    let tokens: Vec<i32> = (0..90 * 4).map(|at| at * 7 % 5).collect();
    let next = tokens.iter().map(|token| (token + 2) % 5).collect();
    Items::of_tokens(4, 5, tokens).with_classes_of_positions(vec![4], 5, next)
});
source!(Labels "own_labels", {
    let labels = (0..180).map(|at| (at % 3 % 2) as f32).collect();
    pairs(90).with_labels(2, labels)
});
source!(Values "own_values", pairs(90).with_values(vec![1], (0..90).map(|at| at as f32).collect()));
source!(NoTargets "no_targets", Items::of_numbers(vec![2], vec![0.5; 180]));
source!(Short "short", Items::of_numbers(vec![2], vec![0.5; 7]));
source!(Empty "no_items", Items::of_numbers(vec![2], Vec::new()));
source!(Miscounted "miscounted", pairs(60).with_classes(2, vec![0; 59]));
source!(Unknown "unknown_class", pairs(60).with_classes(2, vec![2; 60]));
source!(NotFinite "not_finite", Items::of_numbers(vec![1], vec![f32::NAN; 60]).with_classes(2, vec![0; 60]));
source!(NoLabel "no_label", pairs(60).with_labels(1, vec![0.5; 60]));
source!(NoToken "no_token", Items::of_tokens(1, 3, vec![3; 60]).with_classes(2, vec![0; 60]));
source!(OtherTest "other_test", pairs(60), Items::of_numbers(vec![3], vec![0.0; 60]).with_classes(2, vec![0; 20]));
source!(Random "random_items", Items::of_numbers(vec![1], vec![random(); 60]).with_classes(2, vec![0; 60]));
source!(Panics "panicking_source", if pairs(60).is_empty() { pairs(60) } else { panic!("deliberate") });
source!(Taken "iris", pairs(60));

/// A program with sources that are known or broken, or with one that cannot be installed.
pub fn with(program: &str) -> Option<Runner> {
    let runner = Runner::new();
    Some(match program {
        "sourcing" => {
            let runner = runner.data::<Halves>().data::<Tokens>().data::<Labels>();
            let runner = runner.data::<Values>().data::<NoTargets>();
            let runner = runner.data::<Short>().data::<Empty>();
            let runner = runner.data::<Miscounted>().data::<Unknown>();
            let runner = runner.data::<NotFinite>().data::<NoLabel>();
            let runner = runner.data::<NoToken>().data::<OtherTest>();
            runner.data::<Random>().data::<Panics>()
        }
        "taken_source" => runner.data::<Taken>(),
        "telling" => runner.on_event(|run, event| {
            if let Event::RunFinished { outcome, .. } = event {
                assert_eq!(*outcome, Outcome::Completed);
                let _ = writeln!(std::io::stderr(), "told of {}", run.id);
            }
        }),
        "panicking" => runner.on_event(|_, _| panic!("deliberate")),
        _ => return None,
    })
}

/// Rows of three numbers and a class, in a format.
fn rows(row: impl Fn(i32, [i32; 3]) -> String) -> String {
    (0..90).fold(String::new(), |mut text, at: i32| {
        let values = [at * 7 % 11, at * 5 % 13 - 6, at % 4];
        let class = i32::from(values[0] + values[1] > 5);
        let _ = writeln!(text, "{}", row(class, values));
        text
    })
}

fn sparse(class: i32, values: [i32; 3]) -> String {
    let mut row = if class == 1 { "+1" } else { "-1" }.to_owned();
    for (at, value) in values.iter().enumerate().filter(|(_, value)| **value != 0) {
        let _ = write!(row, " {}:{value}", at + 1);
    }
    row
}

fn svmlight(spec: &str) -> tempfile::TempDir {
    let folder = folder(spec);
    fs::write(folder.path().join("rows.svm"), rows(sparse)).unwrap();
    folder
}

pub fn reads() {
    let folder = svmlight(SPEC);
    let at = folder.path();
    let (code, _, stderr) = program("good", at, &["check", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let (code, said, stderr) = program("good", at, &["explain", "data.svmlight"]);
    assert!(
        code == 0 && said.contains("Features of a row."),
        "{said}{stderr}"
    );
    let (_, schema, _) = program("good", at, &["schema", "-"]);
    assert!(schema.contains("\"svmlight\""));
    fs::write(at.join("wrong.svm"), "+1 1:2\n-1 4:1\n").unwrap();
    for (from, to, said) in [
        ("svmlight", "svm_light", "did you mean `svmlight`?"),
        (
            "num_features = 3",
            "num_fetures = 3",
            "did you mean `num_features`?",
        ),
        ("num_features = 3", "", "missing key `num_features`"),
        ("rows.svm", "row.svm", "spec.toml:4"),
        (
            "rows.svm",
            "wrong.svm",
            "cannot read line 2: `4:1` is not one of the features 1 to 3",
        ),
        ("[model]", "[data.split]\nkfold = 0\n[model]", "kfold"),
    ] {
        let edited = SPEC.replacen(from, to, 1);
        assert_ne!(edited, SPEC);
        fs::write(at.join("spec.toml"), edited).unwrap();
        let (code, _, stderr) = program("good", at, &["check", "spec.toml"]);
        assert!(code == 2 && stderr.contains(said), "{to}: {stderr}");
    }
}

/// The same items from a table give the same numbers.
pub fn is_right() {
    let spec = SPEC.replace("num_features = 3", "num_features = 3\nscale = \"none\"");
    let own = svmlight(&spec);
    let table = folder(&spec.replace(
        "type = \"svmlight\"\npath = \"rows.svm\"\nnum_features = 3",
        "type = \"csv\"\npath = \"rows.csv\"\ntarget = \"class\"",
    ));
    let [a, b, c] = ["a", "b", "c"];
    let comma = |class, [a, b, c]: [i32; 3]| format!("{a},{b},{c},class{class}");
    let text = format!("{a},{b},{c},class\n{}", rows(comma));
    fs::write(table.path().join("rows.csv"), text).unwrap();
    for at in [own.path(), table.path()] {
        let (code, _, stderr) = program("good", at, &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{stderr}");
    }
    for metric in ["train/loss", "valid/loss", "valid/accuracy"] {
        assert_eq!(
            column(own.path(), metric),
            column(table.path(), metric),
            "{metric}"
        );
    }
    let at = own.path();
    let elsewhere = tempfile::tempdir().unwrap();
    let run = at.join(RUN).to_string_lossy().into_owned();
    let (code, said, stderr) = program("good", elsewhere.path(), &["reproduce", &run]);
    assert!(code == 0 && said.contains("bitwise"), "{said}{stderr}");
    fs::write(at.join("new.jsonl"), "{\"input\": [1, -2, 3]}\n").unwrap();
    let (code, said, stderr) = program("good", at, &["predict", RUN, "--data", "new.jsonl"]);
    assert_eq!(code, 0, "{said}{stderr}");
    // Its records are readable without it, and what needs its items says so.
    let runner = Path::new(env!("CARGO_BIN_EXE_runner"));
    let (code, _, stderr) = start(runner, "", at, &["report", "results/spec"]);
    assert_eq!(code, 0, "{stderr}");
    for arguments in [
        &["evaluate", RUN, "--split", "valid"][..],
        &["reproduce", RUN],
    ] {
        let (code, said, stderr) = start(runner, "", at, arguments);
        let expected = "the data source `svmlight` is not part of this program";
        assert!(
            code == 2 && stderr.contains(expected),
            "{arguments:?} {code}: {said}{stderr}"
        );
    }
    // Another file is another run.
    fs::write(at.join("rows.svm"), rows(sparse).replacen("+1", "-1", 1)).unwrap();
    let (code, _, stderr) = program("good", at, &["reproduce", RUN]);
    let expected = "gave other items than the run was planned with";
    assert!(code == 2 && stderr.contains(expected), "{code}: {stderr}");
}

pub fn survives() {
    let spec = SPEC.replace(
        "type = \"svmlight\"\npath = \"rows.svm\"\nnum_features = 3",
        "type = \"halves\"",
    );
    survives_kills(
        "sourcing",
        &format!("{spec}\n[sweep.grid]\noptimizer.learning_rate = [1e-2, 3e-2]\n"),
    );
}

/// Every kind of target, and an official test split.
pub fn has_kinds() {
    let model = "layers = [{ type = \"linear\", out_features = 8 }, { type = \"relu\" }, { type = \"linear\" }]";
    for (source, layers, test, metric) in [
        ("halves", model, "20", "valid/accuracy"),
        ("own_labels", model, "9", "valid/loss"),
        ("own_values", model, "9", "valid/rmse"),
        (
            "own_tokens",
            "layers = [{ type = \"embedding\", embedding_dim = 4 }, { type = \"linear\" }]",
            "9",
            "valid/accuracy",
        ),
    ] {
        let spec = SPEC.replace(
            "type = \"svmlight\"\npath = \"rows.svm\"\nnum_features = 3",
            &format!(
                "type = \"{source}\"\n{}",
                if test == "9" {
                    "split = { test = 0.1 }"
                } else {
                    ""
                }
            ),
        );
        let folder = folder(&spec.replace(model, layers));
        let at = folder.path();
        let (code, _, stderr) = program("sourcing", at, &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{source}: {stderr}");
        let numbers = column(at, metric);
        assert!(
            numbers.len() == 4 && numbers.iter().all(|x| x.is_finite()),
            "{source}: {numbers:?}"
        );
        let (_, plan, stderr) = program("sourcing", at, &["plan", "spec.toml", "--json"]);
        assert!(
            plan.contains(&format!("\"num_test\": {test}")),
            "{source}: {plan}{stderr}"
        );
    }
}

pub fn is_broken() {
    for (source, said) in [
        ("no_targets", "use a data source with targets"),
        (
            "short",
            "there are 7 values, not a multiple of the 2 of an item",
        ),
        ("no_items", "there are no items"),
        ("miscounted", "there are 59 target values"),
        (
            "unknown_class",
            "item 0 has the class 2, and there are 2 classes",
        ),
        ("not_finite", "item 0 has the value NaN"),
        (
            "no_label",
            "item 0 has the label 0.5, which is neither 0 nor 1",
        ),
        (
            "no_token",
            "item 0 has the token 3, and the vocabulary has 3",
        ),
        ("other_test", "items of the test split have"),
        (
            "random_items",
            "gave other items than the run was planned with",
        ),
        (
            "panicking_source",
            "panicked while it made its items: deliberate",
        ),
    ] {
        let folder = folder(&SPEC.replace(
            "type = \"svmlight\"\npath = \"rows.svm\"\nnum_features = 3",
            &format!("type = \"{source}\""),
        ));
        let run = ["run", "spec.toml", "--quiet"];
        let (code, printed, stderr) = program("sourcing", folder.path(), &run);
        assert!(code == 1 || code == 2, "{source} {code}: {printed}{stderr}");
        assert!(stderr.contains(said), "{source}: {stderr}");
    }
}

pub fn tells() {
    let spec = SPEC.replace(
        "type = \"svmlight\"\npath = \"rows.svm\"\nnum_features = 3",
        "type = \"iris\"",
    );
    let folder = folder(&spec);
    let at = folder.path();
    let (code, _, stderr) = program("telling", at, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stderr.matches("told of base-s1").count(), 1, "{stderr}");
    let told = read(&at.join(RUN).join("metrics.csv"));
    fs::remove_dir_all(at.join("results")).unwrap();
    let (code, _, stderr) = program("panicking", at, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let warning =
        "the hook `on_event` of this program panicked and is not called again: deliberate";
    assert_eq!(stderr.matches(warning).count(), 1, "{stderr}");
    assert_eq!(told, read(&at.join(RUN).join("metrics.csv")));
}
