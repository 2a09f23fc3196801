//! Items that the generator of an adversarial training makes.

use std::ops::Range;

use super::{Model, Refusal, in_pool};
use runner_core::check::network::Network as NetworkPlan;
use runner_core::check::network::pair::Pair;
use runner_core::data::{Split, TargetPlan, TargetValues};
use runner_core::diagnostic::{Diagnostic, nearest};
use runner_core::predict::Prediction;
use runner_core::show::listed;
use runner_network::batch::on_device;
use runner_network::graph::Graph;
use runner_network::noise::Draws;

/// What items are generated for, by a conditional pair.
#[derive(Clone, Debug, Default)]
pub enum Wanted {
    /// Each class in turn.
    #[default]
    EachClass,
    /// A class.
    Class(String),
    /// The targets of the items of a split, in their order, from the beginning again after the last one.
    TargetsOf(Box<Split>),
}

/// The items that the noise of a seed makes.
pub struct Sampler<'a> {
    model: &'a Model,
    pair: Pair,
    draws: Draws,
    conditions: Conditions,
}

/// The targets that items are generated for.
enum Conditions {
    None,
    /// Each of so many classes in turn.
    Turns(usize),
    Class(usize),
    Of(Box<Split>),
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

    /// Makes items from the noise of a seed. With the seed of the run, and in a conditional pair for the targets of the
    /// valid split, they are the items that its report shows.
    ///
    /// # Errors
    /// If the run is not an adversarial training, or its generator does not take what is wanted.
    pub fn sampler(&self, seed: u64, wanted: Wanted) -> Result<Sampler<'_>, Refusal> {
        let Some(pair) = self.pair() else {
            let message = format!("run `{}` generates no items from noise", self.plan().id);
            let help = "use a run with `strategy.type = \"adversarial\"`; for a language model, pass `--prompt`";
            return Err(Box::new(Diagnostic::error("generate", message).help(help)));
        };
        Ok(Sampler {
            draws: Draws::new(seed, pair.noise),
            conditions: self.conditions(&pair, wanted)?,
            pair,
            model: self,
        })
    }

    fn conditions(&self, pair: &Pair, wanted: Wanted) -> Result<Conditions, Refusal> {
        let refuse = |message: String, help: &str| {
            Err(Box::new(Diagnostic::error("generate", message).help(help)))
        };
        let id = &self.plan().id;
        if pair.condition.is_none() {
            return match wanted {
                Wanted::EachClass => Ok(Conditions::None),
                Wanted::Class(_) | Wanted::TargetsOf(_) => refuse(
                    format!("the generator of run `{id}` takes no targets"),
                    "remove `--class` or `--split`, or use a run with `strategy.conditional = true`",
                ),
            };
        }
        let names = self.transforms().names().target_names();
        match (&self.plan().data.target, wanted) {
            (_, Wanted::TargetsOf(split)) => Ok(Conditions::Of(split)),
            (TargetPlan::Class { num_classes }, Wanted::EachClass) => {
                Ok(Conditions::Turns(*num_classes))
            }
            (TargetPlan::Class { .. }, Wanted::Class(name)) => {
                match names.iter().position(|class| *class == name) {
                    Some(class) => Ok(Conditions::Class(class)),
                    None => {
                        let message = format!("run `{id}` has no class `{name}`");
                        let known = || names.iter().map(String::as_str);
                        match nearest(&name, known()) {
                            Some(near) => refuse(message, &format!("did you mean `{near}`?")),
                            None => {
                                let some: Vec<_> = known().take(20).map(str::to_owned).collect();
                                refuse(message, &format!("its classes are {}", listed(&some)))
                            }
                        }
                    }
                }
            }
            (target, Wanted::EachClass | Wanted::Class(_)) => refuse(
                format!(
                    "the generator of run `{id}` makes items for {}",
                    target.show()
                ),
                "pass `--split valid` to generate for the targets of the items of this split",
            ),
        }
    }
}

impl Sampler<'_> {
    /// The items with some numbers, from 0. Each depends on the seed and on its number alone, up to rounding.
    pub fn items(&self, items: Range<usize>) -> Vec<Prediction> {
        let (model, num) = (self.model, items.len());
        let targets = self.targets(items.clone());
        let targets = targets.map(|targets| on_device(targets, num, model.device()));
        let noise = self.draws.of_split(items, model.device()).discriminator;
        let network = model.network();
        let made = in_pool(|| network.generated(&self.pair, noise, targets.as_ref()));
        let values: Vec<f32> = made.into_data().iter::<f32>().collect();
        model.meaning().decide_all(&values, num)
    }

    /// Whether items are generated for classes.
    pub fn has_classes(&self) -> bool {
        let is_of_classes = matches!(self.model.plan().data.target, TargetPlan::Class { .. });
        is_of_classes && !matches!(self.conditions, Conditions::None)
    }

    /// The name of the class that each of some items is generated for, if they are for classes.
    pub fn classes(&self, items: Range<usize>) -> Option<Vec<String>> {
        if !self.has_classes() {
            return None;
        }
        let TargetValues::Classes(classes) = self.targets(items)? else {
            return None;
        };
        let names = self.model.transforms().names().target_names();
        let name = |class: i32| names.get(class as usize).cloned().unwrap_or_default();
        Some(classes.into_iter().map(name).collect())
    }

    fn targets(&self, items: Range<usize>) -> Option<TargetValues> {
        let class = |of: &dyn Fn(usize) -> usize| {
            let classes = items.clone().map(|item| of(item) as i32);
            Some(TargetValues::Classes(classes.collect()))
        };
        match &self.conditions {
            Conditions::None => None,
            Conditions::Turns(num) => class(&|item| item % num),
            Conditions::Class(at) => class(&|_| *at),
            Conditions::Of(split) => {
                let num = split.num_items();
                let places: Vec<u32> = items.map(|item| (item % num) as u32).collect();
                Some(self.model.served(split, &places).targets)
            }
        }
    }
}
