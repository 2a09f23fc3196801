//! Runs with `backend.arithmetic = "portable"` have the same bits with all instructions of the processor, and on any number
//! of threads.

use std::fs;

use super::support::{IRIS, completed, folder_with, numbers, run, runner, texts};

/// Small runs of all kinds of layers, each with the data that it is trained on.
const SPECS: [&str; 5] = [
    r#"
data.type = "iris"
model = { type = "mlp", hidden = [40, 30], dropout = 0.1 }
optimizer = { type = "sgd", learning_rate = 0.1, momentum = 0.9, clip.global_norm = 1.0 }
scheduler = { type = "cosine" }
"#,
    r#"
data = { type = "digits" }
optimizer = { type = "adamw", learning_rate = 1e-2 }
[model]
layers = [
    { type = "conv2d", out_channels = 12, kernel_size = 3, padding = "same" },
    { type = "batch_norm" },
    { type = "gelu" },
    { type = "conv2d", out_channels = 16, kernel_size = 3, stride = 2 },
    { type = "silu" },
    { type = "avg_pool2d", kernel_size = 2 },
    { type = "flatten" },
    { type = "linear" },
]
"#,
    r#"
data = { type = "sine_windows" }
model.layers = [
    { type = "lstm", hidden_size = 20, bidirectional = true },
    { type = "multi_head_attention", num_heads = 4, dropout = 0.2 },
    { type = "gru", hidden_size = 12, output = "last" },
    { type = "linear" },
]
optimizer = { type = "adam", learning_rate = 1e-2 }
"#,
    r#"
data.type = "iris"
model.layers = [
    { type = "linear", out_features = 24, initializer = { type = "xavier_normal" } },
    { type = "layer_norm" },
    { type = "mish" },
    { type = "linear" },
]
optimizer = { type = "rmsprop", learning_rate = 1e-3 }
train.ema = { decay = 0.9 }
"#,
    r#"
data = { type = "brackets" }
model.layers = [
    { type = "embedding", embedding_dim = 24 },
    { type = "positional_encoding" },
    { type = "transformer_encoder", num_heads = 4, num_layers = 2, feedforward_size = 48, dropout = 0.1 },
    { type = "mean" },
    { type = "linear" },
]
optimizer = { type = "muon", learning_rate = 1e-2 }
"#,
];

#[test]
fn bits_do_not_depend_on_instructions_or_threads() {
    for spec in SPECS {
        let spec = format!(
            "experiment.seeds = [1, 2]\nbackend.arithmetic = \"portable\"\ntrain.epochs = 2\n{spec}"
        );
        let mut found = Vec::new();
        // Two runs at a time have half of the threads each.
        for (instructions, jobs) in [("avx512", "1"), ("avx2", "2"), ("baseline", "1")] {
            let folder = folder_with(&spec);
            let output = runner(folder.path())
                .args(["run", "spec.toml", "--quiet", "--jobs", jobs])
                .env("RUNNER_SIMD", instructions)
                .output()
                .unwrap();
            let (code, _, stderr) = texts(&output);
            assert_eq!(code, 0, "{spec}{stderr}");
            found.push(numbers(folder.path()));
        }
        assert_eq!(found[0], found[1], "{spec}");
        assert_eq!(found[0], found[2], "{spec}");
    }
}

#[test]
fn portable_runs_are_other_work_and_are_reproduced_to_the_bit() {
    let folder = completed(
        &format!("{IRIS}[backend]\narithmetic = \"portable\"\n"),
        &[],
    );
    let run = folder.path().join("results/spec/runs/base-s1");
    let plan = fs::read_to_string(run.join("run.toml")).unwrap();
    assert!(plan.contains("\narithmetic = \"portable\"\n"), "{plan}");
    let output = runner(folder.path())
        .args(["reproduce", run.to_str().unwrap(), "--at-least", "bitwise"])
        .env("RUNNER_SIMD", "baseline")
        .output()
        .unwrap();
    let (code, stdout, stderr) = texts(&output);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(stdout.contains("bitwise"), "{stdout}");
}

/// Numbers that are not portable depend on the instructions, which the record says.
#[test]
fn other_instructions_are_a_difference_of_the_environment() {
    let folders = ["avx2", "baseline"].map(|instructions| {
        let folder = folder_with(IRIS);
        let output = runner(folder.path())
            .args(["run", "spec.toml", "--quiet"])
            .env("RUNNER_SIMD", instructions)
            .output()
            .unwrap();
        assert!(output.status.success());
        folder
    });
    let runs = folders.each_ref().map(|folder| {
        let place = folder.path().join("results/spec/runs/base-s1");
        place.to_str().unwrap().to_owned()
    });
    let (_, stdout, stderr) = run(folders[0].path(), &["diff", &runs[0], &runs[1]]);
    let is_x86 = cfg!(target_arch = "x86_64");
    assert_eq!(stdout.contains("instructions"), is_x86, "{stdout}{stderr}");
}

#[test]
fn an_unknown_set_of_instructions_is_refused() {
    let folder = completed(IRIS, &[]);
    let output = runner(folder.path())
        .args(["exec", "results/spec/runs/base-s1"])
        .env("RUNNER_SIMD", "sse9")
        .output()
        .unwrap();
    let (code, _, stderr) = texts(&output);
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("use `baseline`, `avx2` or `avx512`"),
        "{stderr}"
    );
}
