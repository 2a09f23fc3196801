//! Parts of a program's own: a type that implements [`LayerPart`] becomes a layer type, one that implements [`LossPart`]
//! a loss, and one that implements [`OptimizerPart`] an optimizer.
//!
//! Burn's `Module` has generic methods, so that a network cannot hold modules of unknown types. [`OwnModule`] holds
//! them behind a trait whose visitors and mappers are erased (`erased`).

mod erased;
mod metric;
mod strategy;
mod training;
mod verify;

use std::fmt;

use burn::module::{
    Content, Module, ModuleDisplay, ModuleDisplayDefault, ModuleMapper, ModuleVisitor,
};
use burn::tensor::Device;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::leaves;
use crate::tensor::DynTensor;
use erased::Erased;
pub use metric::{MetricPart, metric};
pub(crate) use metric::{of_rows, value};
use runner_core::check::network::Layer as LayerPlan;
use runner_core::spec::own::{
    Dims, Entry, LayerExample, Own, OwnLayer, Parameter, Part, Settings, Unfit, recorded, restored,
};
use runner_core::spec::section::Section;
pub use strategy::{Followed, StrategyPart, Update, strategy};
pub use training::{LossPart, LossTargets, OptimizerPart, loss, optimizer};
pub(crate) use training::{losses, put_own};
pub use verify::{is_random, verify};

/// A layer type, written in Rust.
///
/// Its parameters are those of its Burn module; their paths and sizes are found by building it. Everything that can
/// change its numbers must follow from the settings, the parameters and the random numbers of the device: a run would
/// not be repeatable otherwise.
pub trait LayerPart: Module + Sync + 'static {
    /// Its `type` in experiment files: lowercase letters, digits and `_`.
    const NAME: &'static str;
    /// Its meaning, as one sentence.
    const DOC: &'static str;
    /// The least and the greatest number of inputs.
    const NUM_INPUTS: (usize, usize) = (1, 1);
    /// Small networks that end with it, for `runner parity --layers`: the shape of items without the batch, and layers as
    /// an experiment file has them.
    const EXAMPLES: &'static [LayerExample] = &[];
    /// Its settings. They are written to `run.toml` as serde serializes them, and determine a run's fingerprint.
    type Settings: Serialize + DeserializeOwned;

    /// Reads its keys. Each key that is requested here is part of the schema, of `explain` and of messages.
    fn settings(section: &mut Section<'_>) -> Self::Settings;

    /// The shape of its output for the shapes of its inputs, without the batch.
    ///
    /// # Errors
    /// Why it does not fit its inputs.
    fn output_shape(settings: &Self::Settings, inputs: &[Dims]) -> Result<Dims, Unfit>;

    /// The module for inputs of these shapes, without the batch. Weights are drawn when they are first used, if their
    /// `Param` is initialized by Burn's initializers.
    fn new(settings: &Self::Settings, inputs: &[Dims], device: &Device) -> Self;

    /// The output for a batch: the first axis of every tensor.
    fn forward(&self, inputs: Vec<DynTensor>) -> DynTensor;

    /// Multiply-adds of one item's forward pass in matrix products and convolutions, for `describe` and reports.
    fn multiply_adds(_settings: &Self::Settings, _inputs: &[Dims]) -> u64 {
        0
    }

    /// Values of one item that the backward pass needs, for the memory forecast; by default those of the output.
    fn kept_values(_settings: &Self::Settings, _inputs: &[Dims], output: &Dims) -> u64 {
        output.iter().map(|size| *size as u64).product()
    }
}

/// The entry of a layer type in the table of parts.
pub fn layer<L: LayerPart>() -> OwnLayer {
    OwnLayer {
        entry: Entry {
            name: L::NAME,
            doc: L::DOC,
            decode: |section| recorded(&L::settings(section)),
        },
        num_inputs: L::NUM_INPUTS,
        examples: L::EXAMPLES,
        output: |settings, inputs| L::output_shape(&restored(settings), inputs),
        parameters: |settings, inputs| {
            let layer = L::new(&restored(settings), inputs, &planning_device());
            parameters_of(&layer)
        },
        multiply_adds: |settings, inputs| L::multiply_adds(&restored(settings), inputs),
        kept_values: |settings, inputs, output| L::kept_values(&restored(settings), inputs, output),
        module: const {
            &Build(|settings, inputs, device| Box::new(L::new(&restored(settings), inputs, device)))
        },
    }
}

/// What [`OwnLayer::module`] refers to.
struct Build(fn(&Settings, &[Dims], &Device) -> Box<dyn Erased>);

/// Networks are planned on the processor.
fn planning_device() -> Device {
    #[cfg(feature = "flex")]
    return Device::flex().autodiff();
    #[cfg(not(feature = "flex"))]
    Device::default().autodiff()
}

/// The trainable parameters of a module with their paths. None is initialized.
fn parameters_of(module: &impl Module) -> Vec<Parameter> {
    let mut found = Vec::new();
    leaves::each(module, |leaf| {
        if leaf.is_trained {
            found.push(Parameter {
                path: leaf.path.to_owned(),
                count: leaf.dims.iter().product::<usize>() as u64,
            });
        }
    });
    found
}

/// The module of an own layer.
pub struct OwnModule(Box<dyn Erased>);

impl OwnModule {
    /// The module of a planned layer.
    ///
    /// # Panics
    /// If the part panics, or this program does not have it; users are told before ([`verify`]).
    pub fn new(own: &Own, plan: &LayerPlan, device: &Device) -> Self {
        let Some(part) = own.part() else {
            panic!("{}", own.missing().unwrap_or_default());
        };
        let build: &Build = part
            .module
            .downcast_ref()
            .expect("parts are made by `part`");
        let inputs: Vec<_> = plan.inputs.iter().map(|i| i.shape.dims.clone()).collect();
        named(part.entry.name, &plan.name, "while it was built", || {
            Self((build.0)(&own.settings, &inputs, device))
        })
    }

    /// The output for a batch of inputs.
    ///
    /// # Panics
    /// With the name of the part, if it panics or breaks its promise about the shape.
    pub fn forward(&self, plan: &LayerPlan, inputs: Vec<DynTensor>) -> DynTensor {
        let batch = inputs[0].dims()[0];
        let kind = plan.kind.type_name();
        let output = named(&kind, &plan.name, "in its forward pass", || {
            self.0.forward(inputs)
        });
        let (dims, promised) = (output.dims(), [&[batch], plan.shape.as_slice()].concat());
        if dims != promised {
            let name = &plan.name;
            let promise = format!(
                "the output of `{name}` has the shape {dims:?}, and {promised:?} was promised (a batch of {batch} items)"
            );
            panic!("{}", OwnLayer::broken(&kind, promise));
        }
        output
    }
}

/// Runs code of a part; a panic in it names the layer and its type.
fn named<T>(part: &str, layer: &str, when: &str, run: impl FnOnce() -> T) -> T {
    OwnLayer::guarded(part, when, run).unwrap_or_else(|panicked| panic!("`{layer}`: {panicked}"))
}

impl Clone for OwnModule {
    fn clone(&self) -> Self {
        Self(self.0.clone_erased())
    }
}

impl fmt::Debug for OwnModule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Module for OwnModule {
    fn collect_devices(&self, devices: Vec<Device>) -> Vec<Device> {
        self.0.collect_devices(devices)
    }

    fn fork(self, device: &Device) -> Self {
        Self(self.0.fork(device))
    }

    fn to_device(self, device: &Device) -> Self {
        Self(self.0.to_device(device))
    }

    fn train(self) -> Self {
        Self(self.0.train())
    }

    fn valid(&self) -> Self {
        Self(self.0.valid())
    }

    fn materialize(self) -> Self {
        Self(self.0.materialize())
    }

    fn visit<V: ModuleVisitor>(&self, visitor: &mut V) {
        self.0.visit(visitor);
    }

    fn map<M: ModuleMapper>(self, mapper: &mut M) -> Self {
        Self(self.0.map(mapper))
    }
}

impl ModuleDisplayDefault for OwnModule {
    fn content(&self, content: Content) -> Option<Content> {
        content.add_formatted(&format!("{self:?}")).optional()
    }
}

impl ModuleDisplay for OwnModule {}
