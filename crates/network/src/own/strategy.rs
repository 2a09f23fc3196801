//! Strategies of a program's own: what happens to the weights after each update of the optimizer.

use std::collections::BTreeSet;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Tensor, TensorData};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::copies::{instead_of, values_of, with_values};
use crate::lora::Without;
use crate::network::Network;
use crate::paths::Paths;
use runner_core::plan::RunPlan;
use runner_core::spec::own::{Entry, OwnStrategy, Part, Settings, Used, recorded, restored};
use runner_core::spec::section::Section;
use runner_core::spec::strategy::StrategySpec;

/// An update of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    /// The path of the parameter, as in parameter groups: `linear_1.weight`.
    pub path: &'a str,
    /// The number of the update, from 1.
    pub step: usize,
    /// The number of updates of the whole training.
    pub num_steps: usize,
    /// The updates of an epoch.
    pub steps_per_epoch: usize,
    /// The learning rate of the update, without the factors of groups.
    pub learning_rate: f64,
}

/// A strategy, written in Rust: it changes each trained parameter after each update of the optimizer.
///
/// What it does has to follow from the settings, the update, the weights, the tensors that it keeps, and the random
/// numbers of the device, which are seeded for each step. So a resumed run has the same bits.
pub trait StrategyPart: 'static {
    /// Its `type` in experiment files: lowercase letters, digits and `_`.
    const NAME: &'static str;
    /// Its meaning, as one sentence.
    const DOC: &'static str;
    /// Its settings. They are written to `run.toml` as serde serializes them, and determine a run's fingerprint.
    type Settings: Serialize + DeserializeOwned;

    /// Reads its keys. Each key that is requested here is part of the schema, of `explain` and of messages.
    fn settings(section: &mut Section<'_>) -> Self::Settings;

    /// How many tensors of each parameter's size it keeps. They are part of checkpoints and of the memory forecast.
    fn num_kept(_settings: &Self::Settings) -> u64 {
        0
    }

    /// The parameter after an update of the optimizer, in which it became `weights`. The tensors in `kept` are those
    /// that the last update left there; before the first one, each is equal to the initial weights.
    fn after_update<const D: usize>(
        settings: &Self::Settings,
        update: &Update<'_>,
        weights: Tensor<D>,
        kept: &mut [Tensor<D>],
    ) -> Tensor<D>;
}

/// The entry of a strategy in the table of parts.
pub fn strategy<S: StrategyPart>() -> OwnStrategy {
    OwnStrategy {
        entry: Entry {
            name: S::NAME,
            doc: S::DOC,
            decode: |section| recorded(&S::settings(section)),
        },
        num_kept: |settings| S::num_kept(&restored(settings)),
        module: const {
            &Strategy {
                apply: apply::<S>,
                try_out: try_out::<S>,
                moves: do_move::<S>,
            }
        },
    }
}

/// What [`OwnStrategy::module`] refers to.
struct Strategy {
    apply: fn(&Settings, Applied<'_>) -> (Network, Vec<GradientsParams>),
    try_out: fn(&Settings, &Device) -> [Vec<Vec<f64>>; 2],
    moves: fn(&Settings, (usize, usize), &Device) -> bool,
}

impl Strategy {
    fn named(used: &Used) -> &'static Self {
        let part = used.installed::<OwnStrategy>();
        part.module.downcast_ref().expect("`strategy` made it")
    }
}

/// An own strategy in a training, with what it keeps.
#[derive(Clone, Debug)]
pub struct Followed {
    used: Used,
    /// On the device without autodiff.
    kept: Vec<Network>,
    paths: Arc<Paths>,
    num_steps: usize,
    steps_per_epoch: usize,
}

impl Followed {
    /// The start of a training; none of a plan without an own strategy.
    pub fn of(plan: &RunPlan, network: &Network) -> Option<Self> {
        let StrategySpec::Own { num_kept, used } = &plan.strategy else {
            return None;
        };
        Some(Self {
            used: used.clone(),
            kept: vec![network.valid(); *num_kept as usize],
            paths: Arc::new(Paths::new(plan)),
            num_steps: plan.num_steps(),
            steps_per_epoch: plan.steps_per_epoch,
        })
    }

    /// Changes a network after its update number `step`, counted from 1, except for parameters at Burn's paths `fixed`.
    ///
    /// # Panics
    /// With the name of the strategy, if it panics or breaks its promise about the shape.
    pub fn after_update(
        mut self,
        network: Network,
        fixed: &BTreeSet<String>,
        (step, learning_rate): (usize, f64),
    ) -> (Network, Self) {
        let applied = Applied {
            network,
            fixed,
            paths: &self.paths,
            kept: self.kept.iter().map(values_of).collect(),
            update: Update {
                path: "",
                step,
                num_steps: self.num_steps,
                steps_per_epoch: self.steps_per_epoch,
                learning_rate,
            },
        };
        let (network, kept) = (Strategy::named(&self.used).apply)(&self.used.settings, applied);
        let both = self.kept.into_iter().zip(kept);
        let both = both.map(|(network, values)| with_values(network, values));
        self.kept = both.collect();
        (network, self)
    }

    /// The names in checkpoints and the networks that it keeps.
    pub fn kept(&self) -> impl Iterator<Item = (String, &Network)> {
        let kept = self.kept.iter().enumerate();
        kept.map(|(at, network)| (name(at), network))
    }

    /// The same with each of these networks changed.
    pub fn map_kept(self, mut map: impl FnMut(&str, Network) -> Network) -> Self {
        let kept = self.kept.into_iter().enumerate();
        let kept = kept.map(|(at, network)| map(&name(at), network));
        Self {
            kept: kept.collect(),
            ..self
        }
    }
}

fn name(at: usize) -> String {
    format!("kept_{at}")
}

/// What a strategy is applied to.
struct Applied<'a> {
    network: Network,
    fixed: &'a BTreeSet<String>,
    paths: &'a Paths,
    kept: Vec<GradientsParams>,
    update: Update<'a>,
}

fn apply<S: StrategyPart>(
    settings: &Settings,
    applied: Applied<'_>,
) -> (Network, Vec<GradientsParams>) {
    let settings = &restored::<S::Settings>(settings);
    let mut mapper = Mapper::<S> {
        settings,
        paths: applied.paths,
        update: applied.update,
        kept: applied.kept,
        path: Vec::new(),
    };
    let network = if applied.fixed.is_empty() {
        applied.network.map(&mut mapper)
    } else {
        let mut others = Without::new(&mut mapper, applied.fixed);
        applied.network.map(&mut others)
    };
    (network, mapper.kept)
}

struct Mapper<'a, S: StrategyPart> {
    settings: &'a S::Settings,
    paths: &'a Paths,
    update: Update<'a>,
    kept: Vec<GradientsParams>,
    path: Vec<String>,
}

impl<S: StrategyPart> ModuleMapper for Mapper<'_, S> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        // Running statistics and frozen parameters are not trained.
        if !param.is_require_grad() {
            return param;
        }
        let path = self.paths.of(&self.path.join("."));
        let update = Update {
            path: &path,
            ..self.update
        };
        let id = param.id;
        let kept = self.kept.iter_mut();
        let mut kept: Vec<Tensor<D>> = kept.filter_map(|of| of.remove::<D>(id)).collect();
        let changed = param.map(|weights| {
            let plain = weights.clone().without_autodiff();
            let changed = changed::<S, D>(self.settings, &update, plain, &mut kept);
            instead_of(&weights, changed)
        });
        for (of, values) in self.kept.iter_mut().zip(kept) {
            of.register(id, values);
        }
        changed
    }
}

/// One parameter after an update.
fn changed<S: StrategyPart, const D: usize>(
    settings: &S::Settings,
    update: &Update<'_>,
    weights: Tensor<D>,
    kept: &mut [Tensor<D>],
) -> Tensor<D> {
    let promised = weights.dims();
    let when = format!("in update {} of `{}`", update.step, update.path);
    let run = || {
        let changed = S::after_update(settings, update, weights, kept);
        changed.without_autodiff()
    };
    let changed = OwnStrategy::guarded(S::NAME, &when, run);
    let changed = changed.unwrap_or_else(|panicked| panic!("{panicked}"));
    let mut all = kept.iter().map(|kept| kept.dims()).chain([changed.dims()]);
    if let Some(dims) = all.find(|dims| *dims != promised) {
        let promise = format!("a parameter of the shape {promised:?} became {dims:?}");
        panic!("{}", OwnStrategy::broken(S::NAME, promise));
    }
    changed
}

/// Two updates of a small parameter, twice: the weights and what is kept at the end. The second time, everything is
/// copied between the updates, as a checkpoint does.
///
/// # Errors
/// If it panicked.
pub(super) fn tried(used: &Used, device: &Device) -> Result<[Vec<Vec<f64>>; 2], String> {
    let tried = || (Strategy::named(used).try_out)(&used.settings, device);
    OwnStrategy::guarded(&used.part, "when it was tried", tried)
}

/// Whether any update of a training of so many updates, and so many in an epoch, changes a small parameter. Of longer
/// trainings than can be tried, it is assumed.
///
/// # Errors
/// If it panicked.
pub(super) fn moves(used: &Used, steps: (usize, usize), device: &Device) -> Result<bool, String> {
    let moves = || (Strategy::named(used).moves)(&used.settings, steps, device);
    OwnStrategy::guarded(&used.part, "when it was tried", moves)
}

fn do_move<S: StrategyPart>(
    settings: &Settings,
    (num_steps, steps_per_epoch): (usize, usize),
    device: &Device,
) -> bool {
    /// Most strategies change something in the first one.
    const MOST: usize = 2000;
    let settings = restored::<S::Settings>(settings);
    let on_device = |data: TensorData| Tensor::<2>::from_data(data, device);
    let numbers = |tensor: &Tensor<2>| tensor.clone().into_data();
    let initial = on_device(number(0.3));
    let mut kept = vec![initial.clone(); S::num_kept(&settings) as usize];
    let mut weights = initial.clone();
    let moves = (1..=num_steps.min(MOST)).any(|step| {
        device.seed(step as u64);
        let update = Update {
            path: "linear.weight",
            step,
            num_steps,
            steps_per_epoch,
            learning_rate: 1e-2,
        };
        let updated = weights.clone() + on_device(number(2.2));
        weights = changed::<S, 2>(&settings, &update, updated, &mut kept);
        numbers(&weights) != numbers(&initial)
    });
    moves || num_steps > MOST
}

/// The size of the parameter that strategies are tried with.
const DIMS: [usize; 2] = [3, 2];

/// Numbers for such a parameter.
fn number(seed: f64) -> TensorData {
    let values = (0..6).map(|at| (seed + 0.7 * f64::from(at)).sin() as f32);
    TensorData::new(values.collect::<Vec<_>>(), DIMS)
}

fn try_out<S: StrategyPart>(settings: &Settings, device: &Device) -> [Vec<Vec<f64>>; 2] {
    let settings = restored::<S::Settings>(settings);
    let on_device = |data: TensorData| Tensor::<2>::from_data(data, device);
    let update = |step: usize, weights: Tensor<2>, kept: &mut [Tensor<2>]| {
        device.seed(step as u64);
        let update = Update {
            path: "linear.weight",
            step,
            num_steps: 2,
            steps_per_epoch: 2,
            learning_rate: 1e-2,
        };
        changed::<S, 2>(&settings, &update, weights, kept)
    };
    let numbers =
        |tensor: &Tensor<2>| -> Vec<f64> { tensor.clone().into_data().iter::<f64>().collect() };
    [false, true].map(|is_resumed| {
        let mut kept = vec![on_device(number(0.3)); S::num_kept(&settings) as usize];
        let mut weights = update(1, on_device(number(1.1)), &mut kept);
        if is_resumed {
            let copied = kept.iter().map(|kept| on_device(kept.clone().into_data()));
            kept = copied.collect();
            weights = on_device(weights.into_data());
        }
        // As an optimizer changes them.
        let weights = update(2, weights + on_device(number(2.2)), &mut kept);
        kept.iter().chain([&weights]).map(numbers).collect()
    })
}
