//! Texts computed step by step, alone and together, compared with the network over all of their tokens.

use burn::tensor::{Device, TensorData};

use super::*;
use crate::testing::{IRIS, generator, planned};
use runner_core::check::network::examples::of_tokens;
use runner_core::spec::task::TaskKind;

/// Over 7 tokens.
pub(crate) const NETWORKS: [&str; 6] = [
    "{ type = 'embedding', embedding_dim = 8 }, { type = 'multi_head_attention', num_heads = 4, num_kv_heads = 2, rotary = true, bias = false, qk_norm = true, window = 5, causal = true }, { type = 'multi_head_attention', num_heads = 2, alibi = true, causal = true }, { type = 'rms_norm' }, { type = 'swiglu', out_features = 12 }, { type = 'linear', out_features = 7 }",
    "{ type = 'embedding', embedding_dim = 8 }, { type = 'position_embedding', max_length = 24 }, { type = 'multi_head_attention', num_heads = 2, causal = true }, { type = 'layer_norm' }, { type = 'linear', out_features = 7 }",
    "{ type = 'embedding', embedding_dim = 8 }, { type = 'positional_encoding' }, { type = 'transformer_encoder', num_heads = 2, feedforward_size = 12, num_layers = 2, causal = true }, { type = 'linear', out_features = 7 }",
    "{ type = 'embedding', embedding_dim = 8 }, { type = 'rotary_encoding' }, { type = 'lstm', hidden_size = 6, output = 'sequence' }, { type = 'linear', out_features = 7 }",
    "{ type = 'embedding', embedding_dim = 8 }, { type = 'gru', hidden_size = 6, output = 'sequence' }, { type = 'rnn', hidden_size = 5, output = 'sequence' }, { type = 'linear', out_features = 7 }",
    "{ type = 'embedding', name = 'table', embedding_dim = 8 }, { type = 'multi_head_attention', num_heads = 2, num_kv_heads = 1, causal = true }, { type = 'linear', tie = 'table', bias = false }",
];

/// A network for texts of up to 24 tokens, with sampled weights.
pub(crate) fn network(layers: &str, device: &Device) -> Network {
    let mut plan = planned(IRIS);
    plan.task.kind = TaskKind::NextToken;
    plan.network = of_tokens(24, layers);
    assert_eq!(unfit(&plan.network), None, "{layers}");
    Network::drawn(&plan, device)
}

/// Texts that begin with several tokens, or with one.
fn texts() -> [(Vec<i32>, usize); 4] {
    [(20, 18), (9, 1), (12, 5), (1, 1)].map(|(num, first)| {
        let token = |at: usize| (at * at + 3 * num + at) as i32 % 7;
        ((0..num).map(token).collect(), first)
    })
}

/// The outputs after each token from the first ones on, of texts that are computed together while they last.
fn stepped(network: &Network, texts: &[(Vec<i32>, usize)], device: &Device) -> Vec<Vec<Vec<f32>>> {
    let mut caches: Vec<Cache> = texts.iter().map(|_| Cache::default()).collect();
    let mut seen = vec![0; texts.len()];
    let mut outputs = vec![Vec::new(); texts.len()];
    loop {
        let (mut numbers, mut tokens, mut these) = (Vec::new(), Vec::new(), Vec::new());
        for (at, cache) in caches.iter_mut().enumerate() {
            let (text, first) = &texts[at];
            if seen[at] < text.len() {
                let end = if seen[at] == 0 { *first } else { seen[at] + 1 };
                tokens.push(&text[seen[at]..end]);
                numbers.push(at);
                these.push(cache);
                seen[at] = end;
            }
        }
        if numbers.is_empty() {
            return outputs;
        }
        let found = network.next_outputs(&tokens, &mut these, device);
        let found = found.expect("they are read");
        for (at, found) in numbers.into_iter().zip(found) {
            outputs[at].push(found);
        }
    }
}

#[test]
fn steps_are_the_whole_text_and_do_not_depend_on_other_texts() {
    let _generator = generator();
    let device = Device::flex();
    for layers in NETWORKS {
        let network = network(layers, &device);
        let together = stepped(&network, &texts(), &device);
        for ((text, first), found) in texts().into_iter().zip(&together) {
            let alone = stepped(&network, &[(text.clone(), first)], &device);
            assert_eq!(alone, std::slice::from_ref(found), "{layers}");
            let num = text.len();
            let tokens = TensorData::new(text, [1, num]);
            let whole = network
                .graph()
                .forward(DynTensor::from_data(tokens, &device));
            let whole: Vec<f32> = whole.into_data().iter::<f32>().collect();
            let whole = whole.chunks(7).skip(first - 1);
            assert_eq!(whole.len(), found.len());
            for (whole, found) in whole.zip(found) {
                for (whole, found) in whole.iter().zip(found) {
                    assert!(
                        (whole - found).abs() < 1e-5,
                        "{layers}: {found} for {whole}"
                    );
                }
            }
        }
    }
}
