//! Losses and optimizers of a program's own.

use burn::module::ParamGroup;
use burn::optim::grad_clipping::GradientClipping;
use burn::optim::{ModuleOptimizer, Optimizer, RecordState};
use burn::optim::{StateSink, StateSource};
use burn::tensor::{Device, Int, Tensor};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::optimizer::put;
use runner_core::spec::own::{
    Entry, OwnLoss, OwnOptimizer, Part, Settings, Used, recorded, restored,
};
use runner_core::spec::section::Section;
use runner_core::spec::task::TaskKind;

/// What a loss or metric compares outputs with.
#[derive(Clone, Debug)]
pub enum LossTargets {
    /// The class of each row, \[rows\].
    Classes(Tensor<1, Int>),
    /// The values of each item, or 1 for each label that it has and 0 for the others, \[rows, values\].
    Values(Tensor<2>),
}

/// A loss, written in Rust.
///
/// It is a function of outputs and targets alone, and differentiable with respect to the outputs. Runner averages over
/// positions and items, as for built-in losses.
pub trait LossPart: 'static {
    /// Its `type` in experiment files: lowercase letters, digits and `_`.
    const NAME: &'static str;
    /// Its meaning, as one sentence.
    const DOC: &'static str;
    /// The tasks that it supports: at least one.
    const TASKS: &'static [TaskKind];
    /// Whether it treats outputs as logits, of classes under a softmax or of labels under a sigmoid, so that
    /// predictions and metrics have probabilities.
    const OF_LOGITS: bool = false;
    /// Its settings. They are written to `run.toml` as serde serializes them, and determine a run's fingerprint.
    type Settings: Serialize + DeserializeOwned;

    /// Reads its keys. Each key that is requested here is part of the schema, of `explain` and of messages.
    fn settings(section: &mut Section<'_>) -> Self::Settings;

    /// The loss of each row for outputs \[rows, classes\] and classes \[rows\], as \[rows, 1\]; or of each value for
    /// outputs and values \[rows, values\], as \[rows, values\]. For tasks with positions, such as pixels, each is a row.
    fn losses(settings: &Self::Settings, outputs: Tensor<2>, targets: LossTargets) -> Tensor<2>;
}

/// An optimizer, written in Rust: Burn's trait, with its keys.
///
/// It has no state besides Burn's `State`, which checkpoints contain.
pub trait OptimizerPart: Optimizer {
    /// Its `type` in experiment files: lowercase letters, digits and `_`.
    const NAME: &'static str;
    /// Its meaning, as one sentence.
    const DOC: &'static str;
    /// Its settings. They are written to `run.toml` as serde serializes them, and determine a run's fingerprint.
    type Settings: Serialize + DeserializeOwned;

    /// Reads its keys. `learning_rate`, `clip` and `groups` are runner's.
    fn settings(section: &mut Section<'_>) -> Self::Settings;

    /// The weight decay of parameters without a group; none if it has no weight decay.
    fn weight_decay(_settings: &Self::Settings) -> Option<f64> {
        None
    }

    /// The number of tensors of a parameter's size in its `State`, for the memory forecast.
    fn num_states(settings: &Self::Settings) -> u64;

    /// The optimizer of parameters with this weight decay: that of their group, or of the settings.
    fn new(settings: &Self::Settings, weight_decay: f64) -> Self;
}

/// The entry of a loss in the table of parts.
pub fn loss<L: LossPart>() -> OwnLoss {
    OwnLoss {
        entry: Entry {
            name: L::NAME,
            doc: L::DOC,
            decode: |section| recorded(&L::settings(section)),
        },
        tasks: L::TASKS,
        of_logits: L::OF_LOGITS,
        module: const {
            &Losses(|settings, outputs, targets| L::losses(&restored(settings), outputs, targets))
        },
    }
}

/// The entry of an optimizer in the table of parts.
pub fn optimizer<O: OptimizerPart>() -> OwnOptimizer {
    OwnOptimizer {
        entry: Entry {
            name: O::NAME,
            doc: O::DOC,
            decode: |section| recorded(&O::settings(section)),
        },
        weight_decay: |settings| O::weight_decay(&restored(settings)),
        num_states: |settings| O::num_states(&restored(settings)),
        module: const {
            &Updates {
                put: |base, group, Own(settings, weight_decay, clip)| {
                    let own = O::new(&restored(settings), weight_decay);
                    put(base, group, Named(own), clip)
                },
                try_out: try_out::<O>,
            }
        },
    }
}

/// What [`OwnLoss::module`] refers to.
struct Losses(fn(&Settings, Tensor<2>, LossTargets) -> Tensor<2>);

/// The loss of each row or value.
///
/// # Panics
/// With the name of the loss, if it panics or breaks its promise about the shape.
pub(crate) fn losses(used: &Used, outputs: Tensor<2>, targets: LossTargets) -> Tensor<2> {
    let part = used.installed::<OwnLoss>();
    let promised = match &targets {
        LossTargets::Classes(classes) => [classes.dims()[0], 1],
        LossTargets::Values(values) => values.dims(),
    };
    let module: &Losses = part.module.downcast_ref().expect("`loss` made it");
    let losses = OwnLoss::guarded(&used.part, "for a batch", || {
        (module.0)(&used.settings, outputs, targets)
    });
    let losses = losses.unwrap_or_else(|panicked| panic!("{panicked}"));
    let dims = losses.dims();
    if dims != promised {
        let promise = format!("its losses have the shape {dims:?}, and {promised:?} was promised");
        panic!("{}", OwnLoss::broken(&used.part, promise));
    }
    losses
}

/// Settings, weight decay and clipping of a group of parameters.
struct Own<'a>(&'a Settings, f64, &'a Option<GradientClipping>);

/// What [`OwnOptimizer::module`] refers to.
struct Updates {
    put: fn(Option<ModuleOptimizer>, ParamGroup, Own<'_>) -> ModuleOptimizer,
    try_out: fn(&Settings, &Device) -> Tried,
}

impl Updates {
    fn of_part(part: &'static OwnOptimizer) -> &'static Self {
        part.module.downcast_ref().expect("`optimizer` made it")
    }
}

/// Adds an own optimizer for a group of parameters.
///
/// # Panics
/// With the name of the optimizer, if it panics.
pub(crate) fn put_own(
    base: Option<ModuleOptimizer>,
    group: ParamGroup,
    (used, weight_decay): (&Used, f64),
    clip: &Option<GradientClipping>,
) -> ModuleOptimizer {
    let part = used.installed::<OwnOptimizer>();
    let own = Own(&used.settings, weight_decay, clip);
    let build = || (Updates::of_part(part).put)(base, group, own);
    let built = OwnOptimizer::guarded(&used.part, "while it was built", build);
    built.unwrap_or_else(|panicked| panic!("{panicked}"))
}

/// An optimizer whose panics name it.
#[derive(Clone)]
struct Named<O>(O);

impl<O: OptimizerPart> Optimizer for Named<O> {
    type State<const D: usize> = O::State<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<O::State<D>>,
    ) -> (Tensor<D>, Option<O::State<D>>) {
        let promised = weights.dims();
        let step = || self.0.step(rate, weights, gradient, state);
        let stepped = OwnOptimizer::guarded(O::NAME, "in an update", step);
        let (weights, state) = stepped.unwrap_or_else(|panicked| panic!("{panicked}"));
        let dims = weights.dims();
        if dims != promised {
            let promise = format!("a parameter of the shape {promised:?} became {dims:?}");
            panic!("{}", OwnOptimizer::broken(O::NAME, promise));
        }
        (weights, state)
    }

    fn to_device<const D: usize>(state: O::State<D>, device: &Device) -> O::State<D> {
        O::to_device(state, device)
    }
}

/// What two updates of a parameter gave.
pub(super) struct Tried {
    /// The parameter after the second update.
    pub(super) straight: Vec<f64>,
    /// The same, by another instance from the state of the first update as a checkpoint has it.
    pub(super) resumed: Vec<f64>,
    /// The tensors of its size in the state.
    pub(super) num_states: u64,
}

/// Tries out an own optimizer on a small parameter.
///
/// # Errors
/// If it panicked.
pub(super) fn tried(used: &Used, device: &Device) -> Result<Tried, String> {
    let part = used.installed::<OwnOptimizer>();
    let tried = || (Updates::of_part(part).try_out)(&used.settings, device);
    OwnOptimizer::guarded(&used.part, "when it was tried", tried)
}

fn try_out<O: OptimizerPart>(settings: &Settings, device: &Device) -> Tried {
    const DIMS: [usize; 2] = [3, 2];
    const RATE: f64 = 1e-2;
    let settings = restored::<O::Settings>(settings);
    let new = || O::new(&settings, O::weight_decay(&settings).unwrap_or(0.0));
    let number = |seed: f64| {
        let values = (0..6).map(|at| (seed + 0.7 * f64::from(at)).sin() as f32);
        let data = burn::tensor::TensorData::new(values.collect::<Vec<_>>(), DIMS);
        Tensor::<2>::from_data(data, device)
    };
    let values = |weights: Tensor<2>| weights.into_data().iter::<f64>().collect();
    let first = new();
    let (_, state) = first.step(RATE, number(0.3), number(1.1), None);
    let mut sink = StateSink::default();
    if let Some(state) = &state {
        state.state_flatten("p", &mut sink);
    }
    let num_states = sink
        .tensors
        .iter()
        .filter(|(_, data)| data.num_elements() == 6);
    let num_states = num_states.count() as u64;
    let mut source = StateSource::new(sink.scalars.into_iter().collect());
    for (name, data) in sink.tensors {
        source.insert_tensor(name, data);
    }
    let restored = state
        .is_some()
        .then(|| O::State::<2>::state_unflatten("p", &mut source, device));
    let restored = restored.flatten();
    // Of other weights: those of the first update could hide a difference, such as with zeros.
    let (straight, _) = first.step(RATE, number(3.3), number(2.2), state);
    let (resumed, _) = new().step(RATE, number(3.3), number(2.2), restored);
    Tried {
        straight: values(straight),
        resumed: values(resumed),
        num_states,
    }
}
