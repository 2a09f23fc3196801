//! Texts of the split that the network continues.

use burn::tensor::{Device, TensorReadError};

use super::samples::spread;
use crate::batch;
use crate::network::Network;
use crate::scores::numbers;
use crate::stepwise::{Cache, unfit};
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
    let truth: Vec<&[i32]> = truth.chunks_exact(*length).collect();
    let mut extended = Extended {
        network,
        device,
        texts: truth.iter().map(|of| of[..num_prompt].to_vec()).collect(),
        sampler: greedy((0..tokenizer.vocabulary()).map(|token| tokenizer.is_text(token as i32))),
    };
    let is_finite = if plan.arithmetic.is_portable() {
        extended.by_whole_items(num_added, *length, tokenizer.padding())?
    } else {
        extended.by_steps(num_added)?
    };
    if !is_finite {
        return Ok(Vec::new());
    }
    let texts = extended.texts.iter().zip(truth);
    let texts = items.into_iter().zip(texts);
    let texts = texts.map(|(item, (tokens, truth))| Continued {
        item,
        prompt: tokenizer.decode(&truth[..num_prompt]),
        target: tokenizer.decode(&truth[num_prompt..]),
        predicted: tokenizer.decode(&tokens[num_prompt..]),
    });
    Ok(texts.collect())
}

/// The most probable of the wanted tokens.
fn greedy(wanted: impl Iterator<Item = bool>) -> Sampler {
    let sampling = Sampling {
        temperature: 0.0,
        ..Sampling::default()
    };
    Sampler::new(sampling, wanted.collect())
}

/// Texts of equal lengths to which tokens are added.
struct Extended<'a> {
    network: &'a Network,
    device: &'a Device,
    texts: Vec<Vec<i32>>,
    sampler: Sampler,
}

impl Extended<'_> {
    /// Adds so many tokens to each text, and computes each token once, as `runner generate` does.
    ///
    /// Returns whether all scores were numbers.
    fn by_steps(&mut self, num: usize) -> Result<bool, TensorReadError> {
        let mut caches: Vec<Cache> = self.texts.iter().map(|_| Cache::default()).collect();
        let mut seen = 0;
        for _ in 0..num {
            let new: Vec<&[i32]> = self.texts.iter().map(|text| &text[seen..]).collect();
            let mut caches: Vec<&mut Cache> = caches.iter_mut().collect();
            let scores = (self.network).next_outputs(&new, &mut caches, self.device)?;
            seen = self.texts.first().map_or(0, Vec::len);
            if !self.add(&scores) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The same by computing whole items of a length for each token, as validation does: tokens after the last known one
    /// change nothing before them. Only this has the same bits on every processor.
    fn by_whole_items(
        &mut self,
        num: usize,
        length: usize,
        padding: i32,
    ) -> Result<bool, TensorReadError> {
        for _ in 0..num {
            let (mut tokens, mut last) = (Vec::new(), Vec::new());
            for text in &self.texts {
                last.push(tokens.len() + text.len() - 1);
                tokens.extend_from_slice(text);
                tokens.resize(last.len() * length, padding);
            }
            let num_tokens = tokens.len().max(1);
            let inputs = Values::Tokens(tokens);
            let inputs = batch::of_shape(inputs, self.texts.len(), &[length], self.device);
            let outputs = numbers(self.network.outputs(inputs))?;
            let num_classes = outputs.len() / num_tokens;
            let scores = last.into_iter().map(|last| {
                let scores = &outputs[last * num_classes..(last + 1) * num_classes];
                scores.iter().map(|score| *score as f32).collect()
            });
            if !self.add(&scores.collect::<Vec<_>>()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Adds the token with the highest score to each text.
    fn add(&mut self, scores: &[Vec<f32>]) -> bool {
        self.texts.iter_mut().zip(scores).all(|(text, scores)| {
            let token = self.sampler.next(scores);
            text.extend(token.map(|token| token as i32));
            token.is_some()
        })
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::stepwise::tests::{NETWORKS, network};
    use crate::testing::generator;

    #[test]
    fn steps_add_the_tokens_that_whole_items_add() {
        let _generator = generator();
        let device = Device::flex();
        let prompt = |at: usize| (0..9).map(move |place| ((at + 2) * place + at) as i32 % 7);
        for layers in NETWORKS {
            let network = network(layers, &device);
            let extended = || Extended {
                network: &network,
                device: &device,
                texts: (0..3).map(|at| prompt(at).collect()).collect(),
                sampler: greedy((0..7).map(|token| token != 6)),
            };
            let (mut stepped, mut whole) = (extended(), extended());
            assert!(stepped.by_steps(12).expect("it is read"));
            assert!(whole.by_whole_items(12, 24, 6).expect("it is read"));
            assert_eq!(stepped.texts, whole.texts, "{layers}");
            assert!(stepped.texts.iter().all(|text| text.len() == 21));
        }
    }
}
