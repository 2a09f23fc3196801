//! Texts of the split that the network continues.

use burn::tensor::{Device, TensorReadError};

use super::samples::spread;
use crate::batch;
use crate::network::Network;
use crate::scores::numbers;
use crate::stepwise::unfit;
use runner_core::data::encode::InputEncoder;
use runner_core::data::{Split, Values};
use runner_core::plan::RunPlan;
use runner_core::predict::{Sampler, Sampling};
use runner_core::record::evaluation::Continued;
use runner_core::spec::task::TaskKind;

/// Texts.
const NUM_TEXTS: usize = 3;
/// Maximum number of tokens that are added to each.
const MOST_TOKENS: usize = 32;

/// Whether texts are continued: items are pieces of running text, which the network reads from left to right.
pub fn are_continued(plan: &RunPlan, split: &Split) -> bool {
    let input = &split.set().encoder.input;
    let is_running = matches!(input, InputEncoder::Stream { length, .. } if *length > 1);
    is_running && plan.task.kind == TaskKind::NextToken && unfit(&plan.network).is_none()
}

/// Some texts of the split, continued with the most probable tokens; none if the network cannot continue texts.
///
/// All of them are computed together in whole items, as in validation: tokens after the last known one change nothing
/// before them. So no part of a network is computed in another way, and no kernels are selected for other sizes.
pub fn continued(
    plan: &RunPlan,
    split: &Split,
    network: &Network,
    device: &Device,
) -> Result<Vec<Continued>, TensorReadError> {
    let InputEncoder::Stream {
        tokenizer, length, ..
    } = &split.set().encoder.input
    else {
        return Ok(Vec::new());
    };
    if !are_continued(plan, split) {
        return Ok(Vec::new());
    }
    let items = spread(split.num_items(), NUM_TEXTS);
    let places: Vec<u32> = items.iter().map(|item| *item as u32).collect();
    let Values::Tokens(truth) = split.serve(&places, None).values else {
        return Ok(Vec::new());
    };
    let num_added = MOST_TOKENS.min(length / 2);
    let num_prompt = length - num_added;
    let mut tokens = truth.clone();
    for text in tokens.chunks_exact_mut(*length) {
        text[num_prompt..].fill(tokenizer.padding());
    }
    let greedy = Sampling {
        temperature: 0.0,
        ..Sampling::default()
    };
    let wanted = (0..tokenizer.vocabulary() as i32).map(|token| tokenizer.is_text(token));
    let mut sampler = Sampler::new(greedy, wanted.collect());
    for at in num_prompt..*length {
        let inputs = Values::Tokens(tokens.clone());
        let inputs = batch::of_shape(inputs, items.len(), &[*length], device);
        let outputs = numbers(network.outputs(inputs))?;
        let num_classes = outputs.len() / tokens.len().max(1);
        for text in 0..items.len() {
            let last = (text * length + at - 1) * num_classes;
            let scores = outputs[last..last + num_classes].iter();
            let scores: Vec<f32> = scores.map(|score| *score as f32).collect();
            let Some(token) = sampler.next(&scores) else {
                return Ok(Vec::new());
            };
            tokens[text * length + at] = token as i32;
        }
    }
    let texts = tokens
        .chunks_exact(*length)
        .zip(truth.chunks_exact(*length));
    let texts = items.into_iter().zip(texts);
    let texts = texts.map(|(item, (tokens, truth))| Continued {
        item,
        prompt: tokenizer.decode(&truth[..num_prompt]),
        target: tokenizer.decode(&truth[num_prompt..]),
        predicted: tokenizer.decode(&tokens[num_prompt..]),
    });
    Ok(texts.collect())
}
