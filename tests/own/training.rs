//! Losses, optimizers and schedules of the program.

use std::fs;
use std::path::Path;

use crate::{folder, program, read, start, survives_kills};

const SPEC: &str = r#"
[data]
type = "iris"

[model]
layers = [{ type = "linear", out_features = 8 }, { type = "relu" }, { type = "linear" }]

[loss]
type = "poly"
epsilon = 2.0

[optimizer]
type = "signum"
learning_rate = 1e-2
momentum = 0.8
groups = [{ parameters = "*.weight", weight_decay = 1e-2 }]

[scheduler]
type = "polynomial"
power = 1.5

[task]
metrics = ["accuracy", "log_loss"]

[train]
epochs = 4
batch_size = 16

[checkpoint]
every_steps = 2
"#;

const RUN: &str = "results/spec/runs/base-s1";

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
    for (topic, said) in [
        ("loss.poly", "first coefficient"),
        ("losses.poly", "first coefficient"),
        ("optimizer.signum", "Decay of the running mean."),
        ("scheduler.polynomial", "The power."),
    ] {
        let (code, explained, stderr) = program("good", at, &["explain", topic]);
        assert!(
            code == 0 && explained.contains(said),
            "{topic}: {explained}{stderr}"
        );
    }
    let (_, schema, _) = program("good", at, &["schema", "-"]);
    for name in ["\"poly\"", "\"signum\"", "\"polynomial\""] {
        assert!(schema.contains(name), "{name}");
    }
    for (from, to, parts) in [
        (
            "epsilon = 2.0",
            "epsilom = 2.0",
            ["unknown key `epsilom`", "did you mean `epsilon`?"],
        ),
        (
            "\"poly\"",
            "\"pol\"",
            [
                "invalid value `pol` for `loss.type`",
                "did you mean `poly`?",
            ],
        ),
        (
            "\"signum\"",
            "\"signun\"",
            ["`signun`", "did you mean `signum`?"],
        ),
        (
            "momentum = 0.8",
            "momentum = 1.5",
            ["`optimizer.momentum`", "spec.toml:15"],
        ),
        (
            "power = 1.5",
            "power = 0",
            ["`scheduler.power`", "spec.toml:20"],
        ),
        (
            "type = \"iris\"",
            "type = \"regression\"\nnum_items = 60",
            ["the loss `poly` does not support the task `regression`", ""],
        ),
        (
            "[checkpoint]",
            "[backend]\narithmetic = \"portable\"\n[checkpoint]",
            [
                "the loss `poly` is not available with portable arithmetic",
                "the schedule `polynomial` is not available with portable arithmetic",
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
}

pub fn runs() {
    let spec = format!(
        "{}\n[sweep.grid]\noptimizer.momentum = [0.5, 0.9]\n",
        edited(
            "type = \"polynomial\"\npower = 1.5",
            "type = \"sequence\"\nstages = [{ type = \"constant\", steps = 3 }, { type = \"polynomial\" }]"
        )
    );
    let killed = survives_kills("good", &spec);
    let run = killed.path().join("results/spec/runs");
    let run = fs::read_dir(run).unwrap().next().unwrap().unwrap().path();
    let run = run.to_string_lossy().into_owned();
    let (code, said, stderr) = program("good", killed.path(), &["reproduce", &run]);
    assert!(code == 0 && said.contains("bitwise"), "{said}{stderr}");
}

/// The numbers of a column of `metrics.csv`.
pub fn column(at: &Path, name: &str) -> Vec<f64> {
    let table = read(&at.join(RUN).join("metrics.csv"));
    let mut lines = table.lines();
    let names: Vec<_> = lines.next().unwrap().split(',').collect();
    let at = names.iter().position(|known| *known == name);
    let at = at.unwrap_or_else(|| panic!("{name} is not among {names:?}"));
    let cells = lines.map(|line| line.split(',').nth(at).unwrap_or_default());
    cells.filter_map(|cell| cell.parse().ok()).collect()
}

/// With an epsilon of 0, `poly` is cross-entropy; a power of 1 is a linear decay; a signum without momentum is Lion
/// whose betas are 0.
pub fn is_right() {
    let own = edited("epsilon = 2.0", "epsilon = 0.0")
        .replace("power = 1.5", "power = 1.0")
        .replace("momentum = 0.8", "momentum = 0.0");
    let built_in = own
        .replace("type = \"poly\"\nepsilon = 0.0", "type = \"cross_entropy\"")
        .replace("type = \"polynomial\"\npower = 1.0", "type = \"linear\"")
        .replace(
            "type = \"signum\"\nlearning_rate = 1e-2\nmomentum = 0.0",
            "type = \"lion\"\nlearning_rate = 1e-2\nbeta_1 = 0.0\nbeta_2 = 0.0",
        );
    let losses = [own, built_in].map(|spec| {
        let folder = folder(&spec);
        let (code, _, stderr) = program("good", folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{stderr}");
        let losses = column(folder.path(), "valid/loss");
        // The metric knows what the outputs are.
        let others = column(folder.path(), "valid/log_loss");
        let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
        assert!(losses.iter().zip(&others).all(near));
        losses
    });
    assert_eq!(losses[0].len(), 4);
    for (own, built_in) in losses[0].iter().zip(&losses[1]) {
        assert!((own - built_in).abs() < 1e-4, "{losses:?}");
    }
}

pub fn is_named_elsewhere() {
    let runner = Path::new(env!("CARGO_BIN_EXE_runner"));
    let both = folder(SPEC);
    let without_loss = folder(
        &edited("type = \"poly\"\nepsilon = 2.0", "type = \"mse\"").replace(
            "metrics = [\"accuracy\", \"log_loss\"]",
            "metrics = [\"accuracy\"]",
        ),
    );
    for folder in [&both, &without_loss] {
        let at = folder.path();
        let (code, _, stderr) = program("good", at, &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{stderr}");
        let (code, said, stderr) = start(runner, "", at, &["report", "results/spec"]);
        assert_eq!(code, 0, "{said}{stderr}");
        let (code, said, stderr) = start(runner, "", at, &["list", "results"]);
        assert_eq!(code, 0, "{said}{stderr}");
    }
    let data = "sepal_length,sepal_width,petal_length,petal_width\n5.1,3.5,1.4,0.2\n";
    for (folder, code, reproduced) in [
        (&both, 2, "the loss `poly`"),
        (&without_loss, 0, "the optimizer `signum`"),
    ] {
        let at = folder.path();
        fs::write(at.join("new.csv"), data).unwrap();
        // Predictions need neither optimizer nor schedule.
        let predicted = start(runner, "", at, &["predict", RUN, "--data", "new.csv"]);
        assert_eq!(predicted.0, code, "{predicted:?}");
        let (code, _, stderr) = start(runner, "", at, &["reproduce", RUN]);
        assert_eq!(code, 2, "{stderr}");
        let said = format!("{reproduced} is not part of this program");
        assert!(stderr.contains(&said), "{stderr}");
    }
}

pub fn is_broken() {
    let plain = SPEC
        .replace("type = \"poly\"\nepsilon = 2.0", "type = \"cross_entropy\"")
        .replace(
            "type = \"signum\"\nlearning_rate = 1e-2\nmomentum = 0.8\ngroups = [{ parameters = \"*.weight\", weight_decay = 1e-2 }]",
            "type = \"sgd\"\nlearning_rate = 1e-2",
        )
        .replace("type = \"polynomial\"\npower = 1.5", "type = \"constant\"");
    for (from, to, expected, parts) in [
        (
            "\"cross_entropy\"",
            "\"detached\"",
            1,
            [
                "the loss `detached` of this program broke its promise",
                "no gradient",
            ],
        ),
        (
            "\"cross_entropy\"",
            "\"noisy\"",
            1,
            [
                "the loss `noisy` of this program broke its promise",
                "differ",
            ],
        ),
        (
            "\"cross_entropy\"",
            "\"wide\"",
            1,
            [
                "the loss `wide` of this program broke its promise",
                "[2, 1] was promised",
            ],
        ),
        (
            "\"cross_entropy\"",
            "\"loud\"",
            1,
            ["the loss `loud` of this program panicked", "deliberate"],
        ),
        (
            "\"sgd\"",
            "\"hidden\"",
            1,
            [
                "the optimizer `hidden` of this program broke its promise",
                "keep everything that changes in `State`",
            ],
        ),
        (
            "\"sgd\"",
            "\"heavy\"",
            1,
            [
                "the optimizer `heavy` of this program broke its promise",
                "`num_states` says 3",
            ],
        ),
        (
            "\"sgd\"",
            "\"bursts\"",
            1,
            [
                "the optimizer `bursts` of this program panicked",
                "deliberate",
            ],
        ),
        (
            "\"sgd\"",
            "\"heavy\"\ngroups = [{ parameters = \"*\", weight_decay = 0.1 }]",
            2,
            [
                "`optimizer.groups[0].weight_decay` has no effect",
                "`heavy` has no weight decay",
            ],
        ),
        (
            "\"constant\"",
            "\"negative\"",
            2,
            [
                "the schedule `negative` of this program broke its promise: its factor at step 2 is -1",
                "spec.toml:",
            ],
        ),
        (
            "\"constant\"",
            "\"stumbles\"",
            2,
            [
                "the schedule `stumbles` of this program panicked at step 3",
                "deliberate",
            ],
        ),
    ] {
        let spec = plain.replacen(from, to, 1);
        assert_ne!(spec, plain, "{from}");
        let spec = spec.replace("[task]\nmetrics = [\"accuracy\", \"log_loss\"]\n", "");
        let folder = folder(&spec);
        let (code, said, stderr) =
            program("broken", folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, expected, "{to}: {said}{stderr}");
        assert!(
            parts.iter().all(|part| stderr.contains(part)),
            "{to}: {said}{stderr}"
        );
    }
}
