//! Whole experiments: data, order, dropout, updates and losses, as the program trains them.

use burn::optim::GradientsParams;
use burn::tensor::Device;
use runner_core::data::order::{Purpose, permutation, stream_seed};
use runner_core::data::{self, Moment};
use runner_network::batch::{Batch, TargetUse};
use runner_network::network::Network;
use runner_network::optimizer::optimizer;
use runner_network::paths::Paths;
use runner_network::testing::planned;

use super::digests::{Digest, of_parameters};

/// An MLP, a convolutional network with batch norm, recurrent layers, and transformers.
pub const EXPERIMENTS: [&str; 5] = [
    r#"
data.type = "iris"
model = { type = "mlp", hidden = [40, 30], dropout = 0.1 }
optimizer = { type = "sgd", learning_rate = 0.1, momentum = 0.9 }
scheduler = { type = "cosine" }
train = { epochs = 2, batch_size = 25 }
"#,
    r#"
data = { type = "digits" }
optimizer = { type = "adamw", learning_rate = 1e-2 }
train = { epochs = 1, batch_size = 50 }
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
train = { epochs = 1, batch_size = 64 }
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
optimizer = { type = "lamb", learning_rate = 1e-2 }
train = { epochs = 1, batch_size = 64 }
"#,
    r#"
data = { type = "brackets" }
model.layers = [
    { type = "embedding", embedding_dim = 24 },
    { type = "rms_norm" },
    { type = "multi_head_attention", num_heads = 4, num_kv_heads = 2, rotary = true, qk_norm = true, window = 5, causal = true },
    { type = "swiglu", out_features = 32 },
    { type = "mean" },
    { type = "linear" },
]
optimizer = { type = "muon", learning_rate = 1e-2 }
train = { epochs = 1, batch_size = 64 }
"#,
];

/// The steps of an experiment that are trained.
const MOST_STEPS: usize = 12;

/// The losses of all items, and the weights in the end.
pub fn trained(text: &str) -> u64 {
    let plan = planned(&format!("backend.arithmetic = \"portable\"\n{text}"));
    let loaded = data::load(&plan.data, &|_, _| {}).expect("data of the program");
    let split = loaded.train;
    let device = Device::flex().autodiff();
    device.seed(stream_seed(plan.seed, Purpose::Init, 0));
    let mut network = Network::new(&plan, &device);
    let mut optimizer = optimizer(&plan, &Paths::new(&plan).parameters(&network));
    let mut digest = Digest::new();
    let mut step = 0;
    for epoch in 1..=plan.train.epochs as u64 {
        let order = permutation(split.num_items(), plan.seed, Purpose::Order, epoch);
        for places in order.chunks_exact(plan.train.batch_size) {
            if step == MOST_STEPS {
                break;
            }
            let seed = plan.seed;
            device.seed(stream_seed(seed, Purpose::Step, step as u64));
            let items = split.serve(places, Some(Moment::new(plan.train.sampler, seed, epoch)));
            let batch = Batch::new(items, &plan.data.input, TargetUse::Predicted, &device);
            let losses = network.output(batch).losses;
            digest.tensor(losses.clone());
            let gradients = GradientsParams::from_grads(losses.mean().backward(), &network);
            network = optimizer.step(plan.learning_rate(step), network, gradients);
            step += 1;
        }
    }
    assert!(step >= 8, "{step} steps of {text}");
    digest.add(&of_parameters(&network).to_le_bytes());
    digest.0
}
