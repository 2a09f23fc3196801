//! Passes with recomputed segments give the outputs, gradients and statistics of passes without, to the bit.

use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};

use super::{Blocks, Tape};
use crate::graph::Graph;
use crate::leaves;
use crate::tensor::DynTensor;
use crate::testing::generator;
use runner_core::check::network::Network as NetworkPlan;
use runner_core::check::network::examples::{examples, network, of_tokens};
use runner_core::check::network::segments::Segments;
use runner_core::data::order::{Purpose, stream_seed};
use runner_core::spec::backend::{Arithmetic, Kernels};
use runner_core::spec::model::layer::LayerKind;

const SEED: u64 = 3;

fn items(plan: &NetworkPlan, device: &Device) -> DynTensor {
    if plan.items.vocabulary.is_some() {
        let tokens = (0..12i64).map(|at| at % 7).collect();
        let tokens = TensorData::new(tokens, [2, 6]);
        return DynTensor::Tokens(Tensor::from_data(tokens, device));
    }
    let dims = &plan.items.dims;
    let num = 2 * dims.iter().product::<usize>();
    let values = (0..num).map(|at| (at as f32 * 0.7).sin()).collect();
    DynTensor::from_values(values, &[&[2], dims.as_slice()].concat(), device)
}

/// Bits of outputs, gradients and everything that is kept of two passes, and the random numbers after each.
fn bits(
    plan: &NetworkPlan,
    computed: (Kernels, Arithmetic),
    cut: Option<Segments>,
) -> Vec<Vec<u8>> {
    let _generator = generator();
    let device = Device::flex().autodiff();
    device.seed(SEED);
    let graph = Graph::new(plan, computed, &device).started(SEED, |_| true);
    leaves::each(&graph, |leaf| drop(leaf.values()));
    let items = items(plan, &device);
    let blocks = cut.map(|segments| Blocks::new(segments, SEED));
    let mut bits = Vec::new();
    for step in [1, 2] {
        device.seed(stream_seed(SEED, Purpose::Step, step as u64));
        for _piece in 0..2 {
            let root = |output: &DynTensor| output.clone().flatten().square().sum();
            let (output, found) = match &blocks {
                None => {
                    let output = graph.forward(items.clone());
                    let root = root(&output);
                    let found = root.is_tracked().then(|| root.backward());
                    let found = found.map(|found| GradientsParams::from_grads(found, &graph));
                    (output, found.unwrap_or_default())
                }
                Some(blocks) => {
                    let mut tape = Tape::new(blocks, &graph, step);
                    let output = tape.forward(items.clone(), &[]).0;
                    let root = root(&output);
                    let found = root.is_tracked().then(|| tape.backward(root.backward()));
                    (output, found.unwrap_or_default())
                }
            };
            bits.push(output.into_data().as_bytes().to_vec());
            leaves::each(&graph, |leaf| {
                let gradient = leaf.gradient(&found);
                bits.push(gradient.map_or(Vec::new(), |found| found.as_bytes().to_vec()));
            });
            // The generator goes on from where it was.
            let next = Tensor::<1>::random([2], burn::tensor::Distribution::Default, &device);
            bits.push(next.into_data().as_bytes().to_vec());
            // One pass of the two draws it again.
            if let Some(blocks) = &blocks {
                blocks.drawn().numbers.push(crate::draws::Draw::uniform(2));
            }
        }
    }
    let settled = graph.clone();
    drop(burn::module::Module::valid(&settled));
    leaves::each(&settled, |leaf| {
        bits.push(leaf.values().as_bytes().to_vec())
    });
    bits
}

/// Each layer of each kind as a segment. Some cuts change the order of sums.
#[test]
fn every_layer_can_be_computed_again() {
    for example in examples() {
        let plan = example.network;
        if plan
            .layers
            .iter()
            .any(|layer| matches!(layer.kind, LayerKind::Own(_)))
        {
            continue;
        }
        for arithmetic in [Arithmetic::Fast, Arithmetic::Portable] {
            let computed = (Kernels::Fast, arithmetic);
            let whole = bits(&plan, computed, None);
            let cut = plan.single_steps();
            let is_in_order = plan.keeps_order(&cut);
            let cut = bits(&plan, computed, Some(cut));
            assert!(
                whole == cut || !is_in_order,
                "{arithmetic:?} {}",
                example.layers
            );
        }
    }
}

const BLOCK: &str = "{ type = 'conv2d', out_channels = 4, kernel_size = 3, padding = 'same' }, { type = 'batch_norm' }, \
    { type = 'relu' }, { type = 'dropout', probability = 0.3 }";

/// Networks that are really cut, with random numbers, statistics, skips, shared and computed weights.
#[test]
fn networks_can_be_computed_again() {
    let images = |layers: &str| network(&[2, 6, 6], layers);
    let chain = [BLOCK; 6].join(", ");
    let skips = format!(
        "{BLOCK}, {{ type = 'identity', name = 'a' }}, {BLOCK}, {{ type = 'add', inputs = ['previous', 'a'], name = 'b' }}, \
         {BLOCK}, {BLOCK}, {{ type = 'add', inputs = ['a', 'b'] }}, {BLOCK}"
    );
    let shared = "{ type = 'linear', name = 'a', out_features = 8 }, { type = 'tanh' }, \
        { share = 'a' }, { type = 'tanh' }, { share = 'a' }, { type = 'gaussian_noise', std = 0.1 }, \
        { type = 'linear', out_features = 8, parametrization = 'spectral_norm' }";
    let text = "{ type = 'embedding', embedding_dim = 8, name = 'e' }, \
        { type = 'transformer_encoder', num_layers = 4, num_heads = 2, feedforward_size = 16, dropout = 0.2 }, \
        { type = 'linear', tie = 'e' }";
    let plans = [
        (images(&chain), 3),
        (images(&skips), 2),
        (network(&[8], shared), 2),
        (of_tokens(6, text), 3),
    ];
    for (plan, least) in plans {
        for kernels in [Kernels::Fast, Kernels::Reference] {
            let computed = (kernels, Arithmetic::Fast);
            let segments = plan.segments();
            assert!(segments.ranges.len() >= least, "{segments:?}");
            let whole = bits(&plan, computed, None);
            assert!(whole == bits(&plan, computed, Some(segments)), "{plan:?}");
        }
    }
}
