//! Metrics of the program.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use burn::tensor::Tensor;
use burn_runner::Runner;
use burn_runner::parts::{LossTargets, MetricPart, TaskKind};

use crate::training::column;
use crate::{folder, program, read, start, survives_kills};

const SPEC: &str = r#"
[objective]
metric = "valid/margin"

[data]
type = "iris"

[model]
layers = [{ type = "linear", out_features = 8 }, { type = "relu" }, { type = "linear" }]

[optimizer]
type = "adam"
learning_rate = 1e-2

[task]
metrics = ["accuracy", "margin"]

[train]
epochs = 4
batch_size = 16

[checkpoint]
every_steps = 2
"#;

const RUN: &str = "results/spec/runs/base-s1";

static CALLS: AtomicU32 = AtomicU32::new(0);

macro_rules! metric {
    ($metric:ident $name:literal $task:ident, |$outputs:ident, $targets:ident| $rows:expr, |$sums:ident, $num:ident| $value:expr) => {
        struct $metric;

        impl MetricPart for $metric {
            const NAME: &'static str = $name;
            const DOC: &'static str = "A metric of a test.";
            const TASKS: &'static [TaskKind] = &[TaskKind::$task];
            const HIGHER_IS_BETTER: bool = false;
            const NUM_SUMS: usize = 1;

            fn of_rows($outputs: Tensor<2>, $targets: LossTargets) -> Tensor<2> {
                $rows
            }

            fn value($sums: &[f64], $num: f64) -> f64 {
                $value
            }
        }
    };
}

fn wrong(outputs: Tensor<2>, targets: LossTargets) -> Tensor<2> {
    let LossTargets::Classes(classes) = targets else {
        panic!("it is for classes");
    };
    let dtype = outputs.dtype();
    let is_wrong = outputs.argmax(1).not_equal(classes.unsqueeze_dim(1));
    is_wrong.float().cast(dtype)
}

fn squares(outputs: Tensor<2>, targets: LossTargets) -> Tensor<2> {
    let LossTargets::Values(values) = targets else {
        panic!("it is for values");
    };
    (outputs - values).square().mean_dim(1)
}

metric!(ErrorRate "error_rate" Classification, |x, y| wrong(x, y), |sums, num| sums[0] / num);
metric!(TokenErrors "token_errors" NextToken, |x, y| wrong(x, y), |sums, num| sums[0] / num);
metric!(OwnRmse "own_rmse" Regression, |x, y| squares(x, y), |sums, num| (sums[0] / num).sqrt());
metric!(Centered "centered" Classification, |x, _y| {
    let mean = x.clone().mean_dim(0);
    (x - mean).narrow(1, 0, 1)
}, |sums, num| sums[0] / num);
metric!(Unsteady "unsteady" Classification, |x, _y| {
    x.narrow(1, 0, 1) * CALLS.fetch_add(1, Ordering::Relaxed) as f32
}, |sums, num| sums[0] / num);
metric!(Broad "broad" Classification, |x, _y| x, |sums, num| sums[0] / num);
metric!(Alarms "alarms" Classification, |x, _y| if x.dims()[0] > 0 { panic!("deliberate") } else { x }, |sums, num| sums[0] / num);
metric!(Ends "ends" Classification, |x, _y| x.narrow(1, 0, 1), |sums, _num| sums[7]);
metric!(TakenMetric "accuracy" Classification, |x, _y| x, |sums, _num| sums[0]);

/// A program with metrics that are known or broken, or with one that cannot be installed.
pub fn with(program: &str) -> Option<Runner> {
    let runner = Runner::new();
    Some(match program {
        "measuring" => {
            let runner = runner.metric::<ErrorRate>().metric::<TokenErrors>();
            let runner = runner.metric::<OwnRmse>().metric::<Centered>();
            let runner = runner.metric::<Unsteady>().metric::<Broad>();
            runner.metric::<Alarms>().metric::<Ends>()
        }
        "taken_metric" => runner.metric::<TakenMetric>(),
        _ => return None,
    })
}

fn edited(from: &str, to: &str) -> String {
    let edited = SPEC.replacen(from, to, 1);
    assert_ne!(edited, SPEC, "`{from}` is not there");
    edited
}

pub fn reads() {
    let folder = folder(SPEC);
    let at = folder.path();
    let (code, _, stderr) = program("good", at, &["check", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    for topic in ["metrics.margin", "valid/margin"] {
        let (code, said, stderr) = program("good", at, &["explain", topic]);
        assert!(code == 0 && said.contains("Mean difference"), "{stderr}");
    }
    let (_, schema, _) = program("good", at, &["schema", "-"]);
    assert!(schema.contains("\"margin\"") && schema.contains("|margin"));
    for (from, to, said) in [
        ("\"margin\"]", "\"margn\"]", "did you mean `margin`?"),
        ("/margin", "/margn", "did you mean `valid/margin`?"),
        ("/margin", "/margin:max", "`valid/margin:max`"),
        (
            ", \"margin\"",
            "",
            "`objective.metric` is `valid/margin`, which is not in `task.metrics`",
        ),
        (
            "type = \"iris\"",
            "type = \"regression\"\nnum_items = 60",
            "does not support the task `regression`",
        ),
        (
            "[checkpoint]",
            "[backend]\narithmetic = \"portable\"\n[checkpoint]",
            "the metric `margin` is not available with portable arithmetic",
        ),
    ] {
        fs::write(at.join("spec.toml"), edited(from, to)).unwrap();
        let (code, _, stderr) = program("good", at, &["check", "spec.toml"]);
        assert!(code == 2 && stderr.contains(said), "{to}: {stderr}");
    }
}

/// The numbers of metrics that are also built in.
pub fn is_right() {
    let regression = edited("type = \"iris\"", "type = \"regression\"\nnum_items = 90")
        .replace("\"accuracy\", \"margin\"", "\"target_rmse\", \"own_rmse\"")
        .replace("/margin", "/own_rmse");
    let classes = SPEC.replace("margin", "error_rate");
    let tokens = edited(
        "type = \"iris\"",
        "type = \"text\"\npath = \"a.txt\"\ntokens = { tokenizer = \"char\", length = 8 }",
    )
    .replace(
        "[{ type = \"linear\"",
        "[{ type = \"embedding\", embedding_dim = 4 }, { type = \"linear\"",
    )
    .replace("margin", "token_errors");
    for (spec, own, built_in, value) in [
        (
            classes,
            "error_rate",
            "accuracy",
            (|x| 1.0 - x) as fn(f64) -> f64,
        ),
        (tokens, "token_errors", "accuracy", |x| 1.0 - x),
        (regression, "own_rmse", "target_rmse", |x| x),
    ] {
        let folder = folder(&spec);
        let at = folder.path();
        fs::write(at.join("a.txt"), "to be or not to be, ".repeat(60)).unwrap();
        let (code, _, stderr) = program("measuring", at, &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{stderr}");
        for split in ["train", "valid"] {
            let own = column(at, &format!("{split}/{own}"));
            let built_in = column(at, &format!("{split}/{built_in}"));
            assert_eq!(own.len(), 4);
            for (own, built_in) in own.iter().zip(built_in) {
                let expected = value(built_in);
                assert!(
                    (own - expected).abs() < 1e-5 * expected.abs().max(1.0),
                    "{own} {expected}"
                );
            }
        }
        let evaluate = ["evaluate", RUN, "--split", "valid", "--json"];
        let (code, said, stderr) = program("measuring", at, &evaluate);
        assert!(code == 0 && said.contains(own), "{said}{stderr}");
    }
}

pub fn survives() {
    let spec = format!("{SPEC}\n[sweep.grid]\noptimizer.learning_rate = [1e-2, 3e-2]\n");
    survives_kills("good", &spec);
}

pub fn is_named_elsewhere() {
    let runner = Path::new(env!("CARGO_BIN_EXE_runner"));
    let folder = folder(&format!(
        "{SPEC}\n[sweep.grid]\noptimizer.learning_rate = [1e-4, 3e-2]\n"
    ));
    let at = folder.path();
    let (code, _, stderr) = program("good", at, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    // The direction is in the record.
    let here = read(&at.join("results/spec/report.json"));
    let (code, said, stderr) = start(runner, "", at, &["report", "results/spec"]);
    assert_eq!(code, 0, "{said}{stderr}");
    let order = |report: &str| {
        let report: serde_json::Value = serde_json::from_str(report).unwrap();
        assert_eq!(report["objective"], "valid/margin");
        let trials = report["trials"].as_array().unwrap().iter();
        trials
            .map(|trial| trial["id"].to_string())
            .collect::<Vec<_>>()
    };
    let there = read(&at.join("results/spec/report.json"));
    assert_eq!(order(&here), order(&there));
    let runs = at.join("results/spec/runs");
    let run = fs::read_dir(runs).unwrap().next().unwrap().unwrap().path();
    let run = run.to_string_lossy().into_owned();
    fs::write(
        at.join("new.csv"),
        "sepal_length,sepal_width,petal_length,petal_width\n5.1,3.5,1.4,0.2\n",
    )
    .unwrap();
    let predict = start(runner, "", at, &["predict", &run, "--data", "new.csv"]);
    assert_eq!(predict.0, 0, "{predict:?}");
    for arguments in [
        &["evaluate", &run, "--split", "valid"][..],
        &["reproduce", &run],
    ] {
        let (code, _, stderr) = start(runner, "", at, arguments);
        assert_eq!(code, 2, "{stderr}");
        let said = "the metric `margin` is not part of this program";
        assert!(stderr.contains(said), "{stderr}");
    }
}

pub fn is_broken() {
    for (metric, said) in [
        ("centered", "the numbers of a row depend on the other rows"),
        ("unsteady", "two computations of the same rows differ"),
        ("broad", "[2, 1] was promised"),
        (
            "alarms",
            "the metric `alarms` of this program panicked for a batch: deliberate",
        ),
        (
            "ends",
            "the metric `ends` of this program panicked for the sums",
        ),
    ] {
        let folder = folder(&SPEC.replace("margin", metric));
        let run = ["run", "spec.toml", "--quiet"];
        let (code, said_too, stderr) = program("measuring", folder.path(), &run);
        assert_eq!(code, 1, "{said_too}{stderr}");
        let named = format!("the metric `{metric}` of this program");
        assert!(stderr.contains(said) && stderr.contains(&named), "{stderr}");
    }
}
