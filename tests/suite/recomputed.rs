//! `train.gradient_checkpointing = "blocks"`: the same training to the bit, also after a kill, and reproduced.

use super::support::{completed, folder_with, goes_on, numbers, run};

/// Images with statistics and their averages, random numbers, a skip, pieces of steps and a second loss.
const IMAGES: &str = r#"
[data]
type = "digits"

[[model.layers]]
type = "body"
name = "first"

[[model.layers]]
type = "body"
repeat = 3

[[model.layers]]
type = "adaptive_avg_pool2d"

[[model.layers]]
type = "flatten"

[[model.layers]]
type = "linear"
name = "head"

[[model.layers]]
type = "flatten"
inputs = ["first"]

[[model.layers]]
type = "linear"
name = "side"
out_features = 10

[[model.layers]]
type = "identity"
inputs = ["head"]

[model.blocks.body]
layers = [
    { type = "conv2d", out_channels = 4, kernel_size = 3, padding = "same" },
    { type = "batch_norm" },
    { type = "relu" },
    { type = "dropout", probability = 0.2, name = "dropped" },
    { type = "conv2d", out_channels = 4, kernel_size = 1, name = "mixed" },
    { type = "add", inputs = ["mixed", "dropped"] },
]

[[losses]]
type = "cross_entropy"
output = "side"
weight = 0.3

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 2
batch_size = 500
micro_batch_size = 200
ema = { decay = 0.8 }

[checkpoint]
every_steps = 2

[sweep.grid]
train.gradient_checkpointing = [false, "blocks"]
"#;

const TEXT: &str = r#"
[data]
type = "copy_sequence"

[model]
type = "transformer_lm"
d_model = 8
num_heads = 2
num_layers = 5
feedforward_size = 16
dropout = 0.1

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 1
batch_size = 64

[sweep.grid]
train.gradient_checkpointing = [false, "blocks"]
"#;

#[test]
fn blocks_that_are_recomputed_train_the_same() {
    for spec in [IMAGES, TEXT] {
        let folder = completed(spec, &[]);
        let found = numbers(folder.path());
        assert_eq!(found.len(), 2);
        // Metrics, losses of all steps and digests of weights.
        assert_eq!(found[0].1, found[1].1);
        assert_eq!(found[0].3, found[1].3);
        assert_eq!(found[0].4, found[1].4);
        let (code, text, said) = run(folder.path(), &["reproduce", "results/spec"]);
        assert_eq!(code, 0, "{text}{said}");
        assert!(text.contains("bitwise"), "{text}{said}");
    }
}

#[cfg(unix)]
#[test]
fn a_training_with_blocks_survives_a_kill_to_the_bit() {
    let straight = completed(IMAGES, &[]);
    let killed = folder_with(IMAGES);
    for moment in ["training:3", "checkpointing:4"] {
        let fault = format!("*@{moment}=kill");
        let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", &fault];
        let (code, ..) = run(killed.path(), &arguments);
        assert_eq!(code, 1, "{moment}");
    }
    goes_on(killed.path());
    assert_eq!(numbers(straight.path()), numbers(killed.path()));
}
