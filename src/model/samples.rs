//! Items that the generator of an adversarial training makes.

use std::ops::Range;

use super::{Model, Refusal, in_pool};
use runner_core::check::network::Network as NetworkPlan;
use runner_core::check::network::pair::Pair;
use runner_core::diagnostic::Diagnostic;
use runner_core::predict::Prediction;
use runner_network::graph::Graph;
use runner_network::noise::Draws;

/// The items that the noise of a seed makes.
pub struct Sampler<'a> {
    model: &'a Model,
    pair: Pair,
    draws: Draws,
}

impl Model {
    /// The generator and the discriminator of an adversarial training.
    fn pair(&self) -> Option<Pair> {
        let plan = self.plan();
        plan.network.pair(plan.strategy.adversarial()?)
    }

    /// The generator of an adversarial training as a network of its own, from noise, \[batch, size\], to items.
    pub fn generator(&self) -> Option<(NetworkPlan, Graph)> {
        let alone = self.plan().network.generator(&self.pair()?);
        let graph = self.network().graph().alone(alone.clone());
        Some((alone.network, graph))
    }

    /// Makes items from the noise of a seed. With the seed of the run, they are the items that its report shows.
    ///
    /// # Errors
    /// If the run is not an adversarial training.
    pub fn sampler(&self, seed: u64) -> Result<Sampler<'_>, Refusal> {
        let Some(pair) = self.pair() else {
            let message = format!("run `{}` generates no items from noise", self.plan().id);
            let help = "use a run with `strategy.type = \"adversarial\"`; for a language model, pass `--prompt`";
            return Err(Box::new(Diagnostic::error("generate", message).help(help)));
        };
        Ok(Sampler {
            draws: Draws::new(seed, pair.noise),
            pair,
            model: self,
        })
    }
}

impl Sampler<'_> {
    /// The items with some numbers, from 0. Each depends on the seed and on its number alone, up to rounding.
    pub fn items(&self, items: Range<usize>) -> Vec<Prediction> {
        let (model, num) = (self.model, items.len());
        let noise = self.draws.of_split(items, model.device());
        let made = in_pool(|| model.network().generated(&self.pair, noise.discriminator));
        let values: Vec<f32> = made.into_data().iter::<f32>().collect();
        model.meaning().decide_all(&values, num)
    }
}
