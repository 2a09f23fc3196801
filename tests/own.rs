//! A program with parts of its own: this one. With `OWN_PROGRAM` set, it is the program; otherwise it runs itself and
//! checks what it does.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read what they wrote, and a program of its own reads its own environment"
)]

mod own {
    #[path = "../../examples/own-parts/src/low_rank.rs"]
    pub mod low_rank;
    #[path = "../../examples/own-parts/src/margin.rs"]
    pub mod margin;
    #[path = "../../examples/own-parts/src/poly.rs"]
    pub mod poly;
    #[path = "../../examples/own-parts/src/polynomial.rs"]
    pub mod polynomial;
    #[path = "../../examples/own-parts/src/signum.rs"]
    pub mod signum;
    #[path = "../../examples/own-parts/src/svmlight.rs"]
    pub mod svmlight;
    #[path = "../../examples/own-parts/src/weight_noise.rs"]
    pub mod weight_noise;

    pub mod broken;
    pub mod measuring;
    pub mod sourcing;
    pub mod strategy;
    pub mod training;
    pub mod wrong;
}

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Output};
use std::sync::atomic::{AtomicU32, Ordering};

use burn::module::Module;
// Burn's derive of `RecordState` expects these at the root of the crate.
use burn::optim::{RecordState, StateSink, StateSource};
use burn::tensor::Tensor;
use burn_runner::Runner;
use burn_runner::parts::{Device, Dims, DynTensor, LayerPart, Section, Unfit};
use libtest_mimic::{Arguments, Failed, Trial};
use own::broken;
use own::low_rank::LowRank;
use own::margin::Margin;
use own::measuring;
use own::poly::Poly;
use own::polynomial::Polynomial;
use own::signum::Signum;
use own::sourcing;
use own::strategy;
use own::svmlight::Svmlight;
use own::training;
use own::weight_noise::WeightNoise;
use own::wrong;
use serde::{Deserialize, Serialize};

#[global_allocator]
static ALLOCATOR: burn_runner::train::Allocator = burn_runner::train::Allocator;

/// A layer without settings that breaks a promise.
#[derive(Serialize, Deserialize)]
struct NoSettings;

macro_rules! layer {
    ($layer:ident, $name:literal, |$x:ident| $forward:expr, |$inputs:ident| $shape:expr) => {
        #[derive(Module, Debug)]
        struct $layer {
            #[module(skip)]
            _none: (),
        }

        impl LayerPart for $layer {
            const NAME: &'static str = $name;
            const DOC: &'static str = "A layer that breaks a promise.";
            type Settings = NoSettings;

            fn settings(_: &mut Section<'_>) -> NoSettings {
                NoSettings
            }

            fn output_shape(_: &NoSettings, $inputs: &[Dims]) -> Result<Dims, Unfit> {
                Ok($shape)
            }

            fn new(_: &NoSettings, _: &[Dims], _: &Device) -> Self {
                Self { _none: () }
            }

            fn forward(&self, mut inputs: Vec<DynTensor>) -> DynTensor {
                let DynTensor::R2($x) = inputs.remove(0) else {
                    panic!("it takes features");
                };
                DynTensor::R2($forward)
            }
        }
    };
}

fn same(inputs: &[Dims]) -> Dims {
    inputs[0].clone()
}

static CALLS: AtomicU32 = AtomicU32::new(0);

layer!(
    Random,
    "own_random",
    |x| x * CALLS.fetch_add(1, Ordering::Relaxed) as f32,
    |inputs| same(inputs)
);
layer!(
    Liar,
    "liar",
    |x| Tensor::cat(vec![x.clone(), x], 1),
    |inputs| same(inputs)
);
layer!(
    Panics,
    "panics",
    |x| if x.dims()[0] > 0 {
        panic!("deliberate")
    } else {
        x
    },
    |inputs| same(inputs)
);
layer!(PanicsEarly, "panics_early", |x| x, |inputs| {
    vec![inputs[0][7]]
});
layer!(Empty, "empty", |x| x, |_inputs| vec![0]);
layer!(OtherLowRank, "low_rank", |x| x, |inputs| same(inputs));
layer!(Relu, "relu", |x| x, |inputs| same(inputs));

fn main() -> ExitCode {
    match std::env::var("OWN_PROGRAM").as_deref() {
        Ok("good") => {
            let program = Runner::new().layer::<LowRank>().loss::<Poly>();
            let program = program.optimizer::<Signum>();
            let program = program.schedule::<Polynomial>();
            let program = strategy::with_slow(program.strategy::<WeightNoise>());
            return program.metric::<Margin>().data::<Svmlight>().main();
        }
        Ok("other") => return Runner::new().layer::<OtherLowRank>().main(),
        Ok("taken") => return Runner::new().layer::<Relu>().main(),
        Ok("broken") => {
            let program = Runner::new().layer::<Random>().layer::<Liar>();
            let program = program.layer::<Panics>().layer::<PanicsEarly>();
            return strategy::broken(broken::training(program.layer::<Empty>())).main();
        }
        Ok(name) => {
            let program = broken::taken(name).or_else(|| measuring::with(name));
            let program = program.or_else(|| wrong::with(name));
            if let Some(program) = program.or_else(|| sourcing::with(name)) {
                return program.main();
            }
        }
        Err(_) => {}
    }
    let tests: [(&str, fn()); 31] = [
        ("an_own_layer_is_read_like_any_other", reads),
        ("a_sweep_over_its_keys_is_run_and_survives_a_kill", runs),
        ("a_run_is_reproduced_and_used", is_used),
        ("another_program_names_what_it_lacks", is_named_elsewhere),
        ("another_layer_of_its_name_is_refused", is_not_replaced),
        ("a_broken_promise_is_named", is_broken),
        ("a_taken_name_is_refused", is_taken),
        ("own_layers_are_compared_between_devices", is_compared),
        ("a_wrong_part_is_named", wrong::is_named),
        ("a_part_that_cannot_be_is_refused", wrong::is_refused),
        ("own_training_is_read_like_any_other", training::reads),
        ("own_training_survives_a_kill", training::runs),
        ("own_training_is_what_it_says", training::is_right),
        (
            "own_training_is_named_elsewhere",
            training::is_named_elsewhere,
        ),
        ("broken_promises_of_training_are_named", training::is_broken),
        ("own_strategies_are_read_like_any_other", strategy::reads),
        ("own_strategies_survive_a_kill", strategy::survives),
        ("own_strategies_are_what_they_say", strategy::is_right),
        (
            "own_strategies_are_named_elsewhere",
            strategy::is_named_elsewhere,
        ),
        (
            "broken_promises_of_strategies_are_named",
            strategy::is_broken,
        ),
        ("own_metrics_are_read_like_any_other", measuring::reads),
        ("own_metrics_survive_a_kill", measuring::survives),
        ("own_metrics_are_what_they_say", measuring::is_right),
        (
            "own_metrics_are_named_elsewhere",
            measuring::is_named_elsewhere,
        ),
        ("broken_promises_of_metrics_are_named", measuring::is_broken),
        ("own_data_is_read_like_any_other", sourcing::reads),
        ("own_data_is_what_it_says", sourcing::is_right),
        ("own_data_survives_a_kill", sourcing::survives),
        ("own_data_has_all_kinds_of_targets", sourcing::has_kinds),
        ("broken_promises_of_data_are_named", sourcing::is_broken),
        ("the_program_is_told_of_events", sourcing::tells),
    ];
    let trials = tests.map(|(name, test)| {
        Trial::test(name, move || {
            test();
            Ok::<(), Failed>(())
        })
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

const SPEC: &str = r#"
[data]
type = "iris"

[model]
layers = [
  { type = "low_rank", name = "first", out_features = 8, rank = 2, dropout = 0.1 },
  { type = "relu" },
  { type = "linear" },
]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 4
batch_size = 16

[checkpoint]
every_steps = 2
"#;

const SWEEP: &str = "\n[values]\nrank = 2\n\n[sweep.grid]\nvalues.rank = [1, 3]\n";

pub fn folder(spec: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("spec.toml"), spec).unwrap();
    folder
}

fn texts(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

pub fn start(
    program: &Path,
    which: &str,
    folder: &Path,
    arguments: &[&str],
) -> (i32, String, String) {
    let mut command = Command::new(program);
    command.env("OWN_PROGRAM", which).current_dir(folder);
    texts(&command.args(arguments).output().unwrap())
}

pub fn program(which: &str, folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    start(&std::env::current_exe().unwrap(), which, folder, arguments)
}

pub fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn reads() {
    let folder = folder(SPEC);
    let at = folder.path();
    let (code, _, stderr) = program("good", at, &["check", "spec.toml"]);
    assert_eq!(code, 0, "{stderr}");
    let (_, said, _) = program("good", at, &["explain", "model.layers.low_rank"]);
    assert!(
        said.contains("rank") && said.contains("product of two thin"),
        "{said}"
    );
    let (_, schema, _) = program("good", at, &["schema", "-"]);
    assert!(schema.contains("\"low_rank\"") && schema.contains("Rank of the matrix."));
    let wrong = |from: &str, to: &str| {
        let edited = SPEC.replacen(from, to, 1);
        assert_ne!(edited, SPEC);
        fs::write(at.join("wrong.toml"), edited).unwrap();
        let (code, _, stderr) = program("good", at, &["check", "wrong.toml"]);
        assert_eq!(code, 2, "{stderr}");
        stderr
    };
    for (from, to, parts) in [
        (
            "rank = 2",
            "rnk = 2",
            ["unknown key `rnk`", "did you mean `rank`?"],
        ),
        (
            "\"low_rank\"",
            "\"low_rnk\"",
            ["unknown layer type `low_rnk`", "did you mean `low_rank`?"],
        ),
        (
            "rank = 2",
            "rank = \"2\"",
            ["`model.layers[0].rank` must be an integer", "wrong.toml:7"],
        ),
        (
            "rank = 2",
            "rank = 9",
            ["`first` has rank 9", "set `rank` to at most 4"],
        ),
        (
            "out_features = 8, ",
            "",
            ["missing key `out_features`", "(type `low_rank`)"],
        ),
    ] {
        let stderr = wrong(from, to);
        assert!(parts.iter().all(|part| stderr.contains(part)), "{stderr}");
    }
    let (_, described, _) = program("good", at, &["describe", "spec.toml"]);
    // 4 x 2, 2 x 8 and 8; then 8 x 3 and 3.
    assert!(
        described.contains("32") && described.contains("59"),
        "{described}"
    );
}

/// The numbers of each run of a folder, by its name.
fn numbers(at: &Path) -> Vec<(String, String, String)> {
    let runs = fs::read_dir(at.join("results/spec/runs")).unwrap();
    let mut all: Vec<_> = runs
        .map(|run| {
            let run = run.unwrap().path();
            let name = run.file_name().unwrap().to_string_lossy().into_owned();
            let summary = read(&run.join("summary.json"));
            let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
            let digest = summary["weights_digest"].to_string();
            assert!(digest.len() > 16, "{summary}");
            (name, read(&run.join("metrics.csv")), digest)
        })
        .collect();
    all.sort();
    all
}

fn runs() {
    let spec = format!("{SPEC}{SWEEP}").replace("rank = 2, ", "rank = \"${values.rank}\", ");
    survives_kills("good", &spec);
}

/// Runs a sweep of two trials as a whole, and again with kills and resumes: the numbers are the same. Returns the folder
/// of the latter.
pub fn survives_kills(which: &str, spec: &str) -> tempfile::TempDir {
    let straight = folder(spec);
    let (code, _, stderr) = program(which, straight.path(), &["run", "spec.toml", "--jobs", "2"]);
    assert_eq!(code, 0, "{stderr}");
    let expected = numbers(straight.path());
    assert_eq!(expected.len(), 2);
    assert_ne!(expected[0].1, expected[1].1);
    let killed = folder(spec);
    for moment in ["training:3", "checkpointing:8", "training:13"] {
        let fault = format!("*@{moment}=kill");
        let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", &fault];
        assert_eq!(program(which, killed.path(), &arguments).0, 1, "{moment}");
    }
    let (code, _, stderr) = program(which, killed.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(expected, numbers(killed.path()));
    killed
}

fn is_used() {
    let folder = folder(SPEC);
    let at = folder.path();
    let (code, _, stderr) = program("good", at, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let run = "results/spec/runs/base-s1";
    let (code, said, stderr) = program("good", at, &["reproduce", run]);
    assert_eq!(code, 0, "{said}{stderr}");
    assert!(said.contains("bitwise"), "{said}");
    let environment = read(&at.join(run).join("environment.json"));
    let name = std::env::current_exe().unwrap();
    let name = name.file_stem().unwrap().to_string_lossy().into_owned();
    assert!(
        environment.contains(&format!("\"program\": \"{name}\"")) && environment.contains("sha256"),
        "{environment}"
    );
    let (code, ..) = program(
        "good",
        at,
        &[
            "export", "weights", run, "--format", "bpk", "--out", "w.bpk",
        ],
    );
    assert_eq!(code, 0);
    for form in [["onnx", "n.onnx"], ["pytorch", "torch"]] {
        let arguments = ["export", form[0], run, "--out", form[1]];
        let (code, _, stderr) = program("good", at, &arguments);
        assert_eq!(code, 2, "{stderr}");
        assert!(
            stderr.contains("`first`") && stderr.contains("`low_rank`"),
            "{stderr}"
        );
        assert!(!at.join(form[1]).exists());
    }
}

/// In a training, and by the examples of its type.
fn is_compared() {
    let folder = folder(&SPEC.replace(", dropout = 0.1", ""));
    let at = folder.path();
    let training = ["parity", "spec.toml", "--devices", "flex,flex", "--json"];
    let (code, said, stderr) = program("good", at, &training);
    assert_eq!(code, 0, "{said}{stderr}");
    let found: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(found["verdict"], "agrees");
    let compared = found["steps"][0]["compared"].as_array().unwrap();
    let own: Vec<_> = compared
        .iter()
        .filter(|c| c["kind"] == "low_rank")
        .collect();
    let parts: std::collections::BTreeSet<_> = own.iter().map(|c| c["part"].as_str()).collect();
    assert!(parts.contains(&Some("outer.weight")), "{parts:?}");
    let wrong = [&training[..], &["--inject-error", "first@2=gradient"]].concat();
    let (code, said, stderr) = program("good", at, &wrong);
    assert!(code == 1 && said.contains("\"differs\""), "{said}{stderr}");
    let layers = [
        "parity",
        "--layers",
        "--devices",
        "flex,flex",
        "--only",
        "low_rank",
    ];
    let (code, said, stderr) = program("good", at, &layers);
    assert!(
        code == 0 && said.contains("low_rank") && said.contains("agrees"),
        "{said}{stderr}"
    );
    // With dropout, there is nothing to compare.
    fs::write(at.join("spec.toml"), SPEC).unwrap();
    let (code, said, stderr) = program("good", at, &training);
    assert_eq!(code, 2, "{said}{stderr}");
    let expected = "the layer `first` of this program's type `low_rank` draws random numbers";
    assert!(stderr.contains(expected), "{said}{stderr}");
}

fn is_named_elsewhere() {
    let folder = folder(SPEC);
    let at = folder.path();
    let (code, _, stderr) = program("good", at, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let runner = Path::new(env!("CARGO_BIN_EXE_runner"));
    let run = "results/spec/runs/base-s1";
    // Records are readable without the program.
    let (code, said, stderr) = start(runner, "", at, &["report", "results/spec"]);
    assert_eq!(code, 0, "{said}{stderr}");
    let (code, _, stderr) = start(runner, "", at, &["check", "spec.toml"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("unknown layer type `low_rank`"), "{stderr}");
    let arguments = [
        "export", "weights", run, "--format", "bpk", "--out", "w.bpk",
    ];
    for arguments in [&arguments[..], &["reproduce", run]] {
        let (code, said, stderr) = start(runner, "", at, arguments);
        assert_ne!(code, 0, "{said}{stderr}");
        assert!(
            stderr.contains("the layer type `low_rank` is not part of this program"),
            "{arguments:?}: {said}{stderr}"
        );
    }
}

fn is_not_replaced() {
    let folder = folder(SPEC);
    let at = folder.path();
    let (code, _, stderr) = program("good", at, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let run = "results/spec/runs/base-s1";
    let out = ["--format", "bpk", "--out", "w.bpk"];
    let weights = [&["export", "weights", run][..], &out].concat();
    for arguments in [&weights[..], &["reproduce", run]] {
        let (code, _, stderr) = program("other", at, arguments);
        assert_eq!(code, 2, "{stderr}");
        let said = "the layer type `low_rank` of this program panicked";
        assert!(
            stderr.contains(said) && stderr.contains("deserialized"),
            "{stderr}"
        );
        assert!(
            stderr.contains("use the program that trained the run"),
            "{stderr}"
        );
    }
    // A record whose settings mean another shape.
    let plan = at.join(run).join("run.toml");
    let changed = read(&plan).replace("rank = 2\n", "rank = 3\n");
    fs::write(&plan, changed).unwrap();
    let (code, _, stderr) = program("good", at, &weights);
    assert_eq!(code, 2, "{stderr}");
}

fn is_broken() {
    let cases = [
        (
            "own_random",
            1,
            [
                "the layer type `own_random` of this program broke its promise",
                "same seed differ",
            ],
        ),
        (
            "liar",
            1,
            [
                "the layer type `liar` of this program broke its promise",
                "[2, 8]",
            ],
        ),
        (
            "panics",
            1,
            [
                "the layer type `panics` of this program panicked",
                "deliberate",
            ],
        ),
        (
            "panics_early",
            2,
            [
                "the layer type `panics_early` of this program panicked",
                "index out of bounds",
            ],
        ),
        ("empty", 2, ["`broken` would output [0]", "spec.toml:7"]),
    ];
    for (layer, expected, parts) in cases {
        let spec = SPEC.replace(
            "type = \"low_rank\", name = \"first\", out_features = 8, rank = 2, dropout = 0.1",
            &format!("type = \"{layer}\", name = \"broken\""),
        );
        let folder = folder(&spec);
        let (code, said, stderr) =
            program("broken", folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, expected, "{layer}: {said}{stderr}");
        assert!(
            parts.iter().all(|part| stderr.contains(part)),
            "{layer}: {said}{stderr}"
        );
    }
}

fn is_taken() {
    let folder = folder(SPEC);
    for (which, expected) in [
        ("taken", "the layer type `relu` already exists"),
        ("taken_loss", "the loss `mse` already exists"),
        ("taken_optimizer", "the optimizer `adam` already exists"),
        ("taken_schedule", "the schedule `cosine` already exists"),
        ("taken_metric", "the metric `accuracy` already exists"),
        ("taken_source", "the data source `iris` already exists"),
        ("no_word", "the loss cannot be named `My-Loss`"),
    ] {
        let (code, said, stderr) = program(which, folder.path(), &["check", "spec.toml"]);
        assert_eq!(code, 2, "{stderr}");
        assert_eq!(said, "");
        assert!(stderr.contains(expected), "{which}: {stderr}");
    }
}
