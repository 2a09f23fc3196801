//! Strategies of the program.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use burn::tensor::Tensor;
use burn_runner::Runner;
use burn_runner::parts::{Kind, Section, StrategyPart, Update};
use serde::{Deserialize, Serialize};

use crate::training::column;
use crate::{NoSettings, folder, program, read, start, survives_kills};

const SPEC: &str = r#"
[data]
type = "iris"
split = { valid = 0.2, test = 0 }

[model]
layers = [
  { type = "linear", out_features = 8 },
  { type = "batch_norm" },
  { type = "relu" },
  { type = "linear" },
]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 4
batch_size = 24

[checkpoint]
every_steps = 2

[strategy]
type = "weight_noise"
std = 0.01
"#;

const RUN: &str = "results/spec/runs/base-s1";

fn edited(from: &str, to: &str) -> String {
    let edited = SPEC.replacen(from, to, 1);
    assert_ne!(edited, SPEC, "`{from}` is not there");
    edited
}

/// Lookahead, with its slow weights among what is kept.
struct Slow;

#[derive(Serialize, Deserialize)]
struct Settings {
    every: usize,
    alpha: f64,
}

impl StrategyPart for Slow {
    const NAME: &'static str = "slow";
    const DOC: &'static str = "Slow weights.";
    type Settings = Settings;

    fn settings(section: &mut Section<'_>) -> Settings {
        Settings {
            every: section.field("every", Kind::at_least(1), "Updates.").or(5),
            alpha: section.field("alpha", Kind::fraction(), "Share.").or(0.5),
        }
    }

    fn num_kept(_: &Settings) -> u64 {
        1
    }

    fn after_update<const D: usize>(
        settings: &Settings,
        update: &Update<'_>,
        weights: Tensor<D>,
        kept: &mut [Tensor<D>],
    ) -> Tensor<D> {
        if !update.step.is_multiple_of(settings.every) {
            return weights;
        }
        let slow = kept[0].clone();
        kept[0] = (weights - slow.clone()).mul_scalar(settings.alpha) + slow;
        kept[0].clone()
    }
}

pub fn with_slow(program: Runner) -> Runner {
    program.strategy::<Slow>()
}

static CALLS: AtomicU32 = AtomicU32::new(0);

macro_rules! strategy {
    ($strategy:ident $name:literal, |$update:ident, $weights:ident| $next:expr) => {
        struct $strategy;

        impl StrategyPart for $strategy {
            const NAME: &'static str = $name;
            const DOC: &'static str = "A strategy that breaks a promise.";
            type Settings = NoSettings;

            fn settings(_: &mut Section<'_>) -> NoSettings {
                NoSettings
            }

            fn after_update<const D: usize>(
                _: &NoSettings,
                $update: &Update<'_>,
                $weights: Tensor<D>,
                _: &mut [Tensor<D>],
            ) -> Tensor<D> {
                $next
            }
        }
    };
}

strategy!(Counts "counts", |_update, weights| {
    weights * CALLS.fetch_add(1, Ordering::Relaxed) as f32
});
strategy!(Grows "grows", |_update, weights| Tensor::cat(vec![weights.clone(), weights], 0));
strategy!(Stumbles "stumbles", |update, weights| {
    if update.step < 7 { weights } else { panic!("deliberate") }
});
strategy!(Taken "swa", |_update, weights| weights);

/// Adds strategies that break promises.
pub fn broken(program: Runner) -> Runner {
    let program = program.strategy::<Counts>().strategy::<Grows>();
    program.strategy::<Stumbles>()
}

/// A program that cannot be installed.
pub fn taken() -> Runner {
    Runner::new().strategy::<Taken>()
}

pub fn reads() {
    let folder = folder(SPEC);
    let at = folder.path();
    let (code, explained, stderr) = program("good", at, &["explain", "strategy.weight_noise"]);
    assert!(
        code == 0 && explained.contains("noise of the first update"),
        "{explained}{stderr}"
    );
    let (_, schema, _) = program("good", at, &["schema", "-"]);
    assert!(schema.contains("\"weight_noise\""));
    for (from, to, parts) in [
        (
            "\"weight_noise\"",
            "\"weight_nois\"",
            ["`weight_nois`", "did you mean `weight_noise`?"],
        ),
        ("std = 0.01", "std = 0", ["`strategy.std`", "spec.toml:27"]),
        ("std = 0.01", "", ["missing key `std`", "weight_noise"]),
        (
            "[checkpoint]",
            "[backend]\narithmetic = \"portable\"\n[checkpoint]",
            [
                "the strategy `weight_noise` is not available with portable arithmetic",
                "use a built-in strategy",
            ],
        ),
    ] {
        fs::write(at.join("spec.toml"), edited(from, to)).unwrap();
        let (code, _, stderr) = program("good", at, &["check", "spec.toml"]);
        assert_eq!(code, 2, "{to}: {stderr}");
        assert!(
            parts.iter().all(|part| stderr.contains(part)),
            "{to}: {stderr}"
        );
    }
    let (code, _, stderr) = program("taken_strategy", at, &["check", "spec.toml"]);
    assert!(
        code == 2 && stderr.contains("the strategy `swa` already exists"),
        "{stderr}"
    );
}

pub fn survives() {
    let strategies = "\n[sweep.grid]\nstrategy = [{ type = \"weight_noise\", std = 0.01 }, { type = \"slow\", every = 3 }]\n";
    let spec = edited(
        "\n[strategy]\ntype = \"weight_noise\"\nstd = 0.01\n",
        strategies,
    );
    let killed = survives_kills("good", &spec);
    for run in fs::read_dir(killed.path().join("results/spec/runs")).unwrap() {
        let run = run.unwrap().path().to_string_lossy().into_owned();
        let (code, said, stderr) = program("good", killed.path(), &["reproduce", &run]);
        assert!(code == 0 && said.contains("bitwise"), "{said}{stderr}");
    }
}

/// Slow weights of the program are those of runner; noise changes weights, and frozen layers have none.
pub fn is_right() {
    let run_of = |strategy: &str| {
        let spec = edited("type = \"weight_noise\"\nstd = 0.01", strategy);
        // Five updates in each epoch.
        let folder = folder(&spec.replace("epochs = 4", "epochs = 3"));
        let (code, _, stderr) = program("good", folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{stderr}");
        let summary = read(&folder.path().join(RUN).join("summary.json"));
        let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
        let losses = column(folder.path(), "train/loss");
        (summary["weights_digest"].to_string(), losses, folder)
    };
    let (own, losses, _folder) = run_of("type = \"slow\"\nevery = 5\nalpha = 0.25");
    let (built_in, same, _) = run_of("type = \"lookahead\"\nsync_steps = 5\nalpha = 0.25");
    assert_eq!((own, losses), (built_in, same));
    let (plain, ..) = run_of("type = \"standard\"");
    let (noisy, _, folder) = run_of("type = \"weight_noise\"\nstd = 0.02");
    assert_ne!(plain, noisy);
    // What it keeps is in the forecast.
    let spec = edited("type = \"weight_noise\"\nstd = 0.01", "type = \"slow\"");
    fs::write(folder.path().join("spec.toml"), spec).unwrap();
    let (_, said, stderr) = program("good", folder.path(), &["memory", "spec.toml"]);
    let average = said
        .lines()
        .find(|line| line.trim_start().starts_with("average"));
    assert!(
        average.is_some_and(|line| !line.ends_with(" 0 B")),
        "{said}{stderr}"
    );
    let frozen = edited("out_features = 8", "out_features = 8, freeze = true");
    fs::write(folder.path().join("spec.toml"), frozen).unwrap();
    let arguments = ["run", "spec.toml", "--quiet"];
    let (code, _, stderr) = program("good", folder.path(), &arguments);
    assert_eq!(code, 0, "{stderr}");
    let digests = read(&folder.path().join(RUN).join("trace/digests.csv"));
    let of = |parameter: &str| {
        // Not those of the optimizer's state.
        let parameter = format!(",{parameter},");
        let lines = digests.lines().filter(|line| line.contains(&parameter));
        let digests = lines.filter_map(|line| line.rsplit(',').next());
        digests.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(
        (of("linear_1.weight"), of("linear_2.weight")),
        (1, 5),
        "{digests}"
    );
}

pub fn is_named_elsewhere() {
    let runner = Path::new(env!("CARGO_BIN_EXE_runner"));
    let folder = folder(SPEC);
    let at = folder.path();
    let (code, _, stderr) = program("good", at, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let (code, said, stderr) = start(runner, "", at, &["report", "results/spec"]);
    assert_eq!(code, 0, "{said}{stderr}");
    let data = "sepal_length,sepal_width,petal_length,petal_width\n5.1,3.5,1.4,0.2\n";
    fs::write(at.join("new.csv"), data).unwrap();
    let predicted = start(runner, "", at, &["predict", RUN, "--data", "new.csv"]);
    assert_eq!(predicted.0, 0, "{predicted:?}");
    let (code, _, stderr) = start(runner, "", at, &["reproduce", RUN]);
    assert_eq!(code, 2, "{stderr}");
    let said = "the strategy `weight_noise` is not part of this program";
    assert!(stderr.contains(said), "{stderr}");
}

pub fn is_broken() {
    for (name, parts) in [
        (
            "counts",
            [
                "the strategy `counts` of this program broke its promise",
                "keep everything that changes in `kept`",
            ],
        ),
        (
            "grows",
            [
                "the strategy `grows` of this program",
                "a parameter of the shape [3, 2] became [6, 2]",
            ],
        ),
        (
            "stumbles",
            [
                "the strategy `stumbles` of this program panicked in update 7 of `linear_1.weight`",
                "deliberate",
            ],
        ),
    ] {
        let strategy = format!("type = \"{name}\"");
        let folder = folder(&edited("type = \"weight_noise\"\nstd = 0.01", &strategy));
        let arguments = ["run", "spec.toml", "--quiet"];
        let (code, said, stderr) = program("broken", folder.path(), &arguments);
        assert_eq!(code, 1, "{name}: {said}{stderr}");
        assert!(
            parts.iter().all(|part| stderr.contains(part)),
            "{name}: {said}{stderr}"
        );
    }
}
