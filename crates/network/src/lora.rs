//! Adapters: two trained matrices whose product is added to a frozen one (LoRA).
//!
//! They are reparameterizations of Burn's parameters, so that whatever reads a weight gets the sum. Linear layers are
//! computed without it: the input times the frozen matrix, and times one small matrix after the other. So neither the
//! sum nor a gradient of its size ever exists, and inputs of the adapter can be dropped.

use std::collections::BTreeSet;

use burn::module::{
    Flag, Module, ModuleMapper, ModuleVisitor, Param, ParamGroup, Reparameterization,
    Reparameterizer,
};
use burn::nn::{Dropout, DropoutConfig, Linear};
use burn::store::ModuleRecord;
use burn::tensor::{Bool, Int, Tensor, TensorData};

use crate::graph::Graph;
use crate::held;
use crate::leaves;
use crate::network::Network;
use crate::numeric::matmul;
use crate::paths::Paths;
use runner_core::check::network::Network as NetworkPlan;
use runner_core::data::order::{Purpose, uniform};
use runner_core::plan::RunPlan;
use runner_core::spec::backend::{Arithmetic, Kernels};

/// The matrices of an adapter.
#[derive(Module, Debug)]
pub struct Lora {
    /// \[inputs, rank\].
    pub a: Param<Tensor<2>>,
    /// \[rank, outputs\].
    pub b: Param<Tensor<2>>,
    dropout: Dropout,
    #[module(skip)]
    scale: f64,
    #[module(skip)]
    arithmetic: Arithmetic,
}

impl Reparameterization for Lora {
    const NAME: &'static str = "lora";

    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
        let product = matmul(self.arithmetic, self.a.val(), self.b.val());
        let product = product.mul_scalar(self.scale).reshape(base.shape());
        held::in_full(base) + product
    }
}

/// The output of a linear layer by `compute`, which gets layers without adapters, in full.
pub fn linear<const D: usize>(
    layer: &Linear,
    x: Tensor<D>,
    compute: impl Fn(&Linear, Tensor<D>) -> Tensor<D>,
) -> Tensor<D> {
    let Some(lora) = layer.weight.reparameterization::<Lora>() else {
        return held::linear(layer, x, compute);
    };
    let of = |weight: &Param<Tensor<2>>| Linear {
        weight: weight.clone(),
        bias: None,
    };
    let added = lora.dropout.forward(x.clone());
    let added = compute(&of(&lora.a), added);
    let added = compute(&of(&lora.b), added);
    held::product(layer, layer.weight.base(), x, lora.arithmetic, compute)
        + added.mul_scalar(lora.scale)
}

/// The same by Burn.
pub fn forward<const D: usize>(layer: &Linear, x: Tensor<D>) -> Tensor<D> {
    linear(layer, x, Linear::forward)
}

/// Whether a layer has an adapter, or its matrix is held in fewer bits.
pub fn is_changed(layer: &Linear) -> bool {
    let weight = &layer.weight;
    weight.reparameterization::<Lora>().is_some() || held::is_held(layer)
}

/// A graph with the adapters of its plan, whose first matrices are drawn from a seed. The second ones are zeros, so that
/// the output is that of the graph at first. Everything that the plan freezes is frozen.
pub fn attached(
    graph: Graph,
    plan: &NetworkPlan,
    seed: u64,
    (kernels, arithmetic): (Kernels, Arithmetic),
) -> Graph {
    if !plan.has_adapters() {
        return graph;
    }
    let graph = held::held(graph, plan, (kernels, arithmetic));
    graph.apply_reparameterization(Attach {
        plan,
        seed,
        arithmetic,
        num_attached: 0,
    })
}

struct Attach<'a> {
    plan: &'a NetworkPlan,
    seed: u64,
    arithmetic: Arithmetic,
    num_attached: u64,
}

impl Reparameterizer for Attach<'_> {
    type Reparam = Lora;

    fn reparameterize<const D: usize>(
        &mut self,
        path: &str,
        param: Param<Tensor<D>>,
    ) -> (Param<Tensor<D>>, Option<Lora>) {
        let Some((layer, path)) = self.plan.located(path) else {
            return (param, None);
        };
        if !layer.frozen.contains(&path) {
            return (param, None);
        }
        let base = param.set_require_grad(false);
        let mut adapters = layer.adapters.iter();
        let Some(adapter) = adapters.find(|adapter| adapter.path == path) else {
            return (base, None);
        };
        // As in PyTorch's linear layers, which is what peft uses.
        let bound = 1.0 / (adapter.inputs as f64).sqrt();
        let num = adapter.inputs * adapter.rank;
        let drawn = uniform(num, bound, self.seed, Purpose::Adapter, self.num_attached);
        self.num_attached += 1;
        let device = base.lazy_device();
        let lora = Lora {
            a: Param::from_data(
                TensorData::new(drawn, [adapter.inputs, adapter.rank]),
                &device,
            ),
            b: Param::from_tensor(Tensor::zeros([adapter.rank, adapter.outputs], &device)),
            dropout: DropoutConfig::new(adapter.dropout).init(),
            scale: adapter.scale,
            arithmetic: self.arithmetic,
        };
        (base, Some(lora))
    }
}

/// Burn's paths of the parameters that are frozen because the network of a plan has adapters. Saved states and copies
/// leave them out.
pub fn fixed(plan: &RunPlan, network: &Network) -> BTreeSet<String> {
    let mut fixed = BTreeSet::new();
    if !plan.network.has_adapters() {
        return fixed;
    }
    let paths = Paths::new(plan);
    leaves::each(network, |leaf| {
        if paths.is_fixed(leaf.path) {
            fixed.insert(leaf.path.to_owned());
        }
    });
    fixed
}

/// What a run saves of its weights: all, or those that are not fixed.
pub fn record(plan: &RunPlan, network: Network) -> ModuleRecord {
    let fixed = fixed(plan, &network);
    if fixed.is_empty() {
        return network.into_record();
    }
    let fixed = ParamGroup::from_paths(fixed.into_iter().collect());
    network.into_record_group(ParamGroup::all().exclude(fixed))
}

/// Passes everything but parameters at fixed paths to a visitor or mapper.
pub(crate) struct Without<'a, V> {
    inner: &'a mut V,
    fixed: &'a BTreeSet<String>,
    path: Vec<String>,
}

impl<'a, V> Without<'a, V> {
    pub(crate) fn new(inner: &'a mut V, fixed: &'a BTreeSet<String>) -> Self {
        Self {
            inner,
            fixed,
            path: Vec::new(),
        }
    }

    fn is_fixed(&self) -> bool {
        self.fixed.contains(&self.path.join("."))
    }
}

impl<V: ModuleVisitor> ModuleVisitor for Without<'_, V> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.push(name.to_owned());
        self.inner.enter_module(name, container);
    }

    fn exit_module(&mut self, name: &str, container: &str) {
        self.path.pop();
        self.inner.exit_module(name, container);
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if !self.is_fixed() {
            self.inner.visit_float(param);
        }
    }

    fn visit_int<const D: usize>(&mut self, param: &Param<Tensor<D, Int>>) {
        self.inner.visit_int(param);
    }

    fn visit_bool<const D: usize>(&mut self, param: &Param<Tensor<D, Bool>>) {
        self.inner.visit_bool(param);
    }

    fn visit_flag(&mut self, flag: &Param<Flag>) {
        self.inner.visit_flag(flag);
    }
}

impl<M: ModuleMapper> ModuleMapper for Without<'_, M> {
    fn enter_module(&mut self, name: &str, container: &str) {
        self.path.push(name.to_owned());
        self.inner.enter_module(name, container);
    }

    fn exit_module(&mut self, name: &str, container: &str) {
        self.path.pop();
        self.inner.exit_module(name, container);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if self.is_fixed() {
            param
        } else {
            self.inner.map_float(param)
        }
    }

    fn map_int<const D: usize>(&mut self, param: Param<Tensor<D, Int>>) -> Param<Tensor<D, Int>> {
        self.inner.map_int(param)
    }

    fn map_bool<const D: usize>(
        &mut self,
        param: Param<Tensor<D, Bool>>,
    ) -> Param<Tensor<D, Bool>> {
        self.inner.map_bool(param)
    }

    fn map_flag(&mut self, flag: Param<Flag>) -> Param<Flag> {
        self.inner.map_flag(flag)
    }
}
