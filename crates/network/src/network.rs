//! The planned network with its loss.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Device, Tensor};

use crate::adversarial::Judged;
use crate::batch::{Batch, MixedTargets};
use crate::finite::is_finite;
use crate::graph::Graph;
use crate::lora;
use crate::loss::{item_distances, item_losses, item_penalties};
use crate::padding::Padding;
use crate::targets::Targets;
use crate::teacher::{Lesson, Teacher};
use crate::tensor::DynTensor;
use runner_core::check::network::Layer as LayerPlan;
use runner_core::check::network::pair::Pair;
use runner_core::data::order::{Purpose, stream_seed};
use runner_core::plan::RunPlan;
use runner_core::spec::backend::{Arithmetic, Kernels};
use runner_core::spec::loss::{LossFunction, LossSpec, Reduction};
use runner_core::spec::losses::{LossTerm, TermTarget};
use runner_core::spec::task::TaskKind;

/// A network with its loss.
#[derive(Module, Debug)]
pub struct Network {
    graph: Graph,
    #[module(skip)]
    task: TaskKind,
    #[module(skip)]
    loss: LossSpec,
    /// The layer with the positions that it counts, if not all of them.
    #[module(skip)]
    mask: Option<usize>,
    /// Losses that are added to it, with the layers of the positions that they count.
    #[module(skip)]
    terms: Vec<(LossTerm, Option<usize>)>,
    /// The tasks of further targets.
    #[module(skip)]
    more_tasks: Vec<TaskKind>,
    /// Its parts, if they train against each other.
    #[module(skip)]
    pair: Option<Pair>,
    #[module(skip)]
    computed: (Kernels, Arithmetic),
}

impl Network {
    /// Creates the network of a plan. All weights are sampled now from the device's generator, so that they depend only
    /// on its seed.
    pub fn new(plan: &RunPlan, device: &Device) -> Self {
        let network = Self::undrawn(plan, device);
        network.visit(&mut Draw);
        network.started(plan, |_| true)
    }

    /// The same with initial values of what the weights of some layers are computed from, such as lengths.
    pub fn started(self, plan: &RunPlan, some: impl Fn(&LayerPlan) -> bool) -> Self {
        Self {
            graph: self.graph.started(plan.seed, some),
            ..self
        }
    }

    /// The same with weights that depend only on the seed of the plan.
    pub fn drawn(plan: &RunPlan, device: &Device) -> Self {
        device.seed(stream_seed(plan.seed, Purpose::Init, 0));
        Self::new(plan, device)
    }

    /// The same for weights that will be loaded: none is sampled.
    pub fn undrawn(plan: &RunPlan, device: &Device) -> Self {
        let computed = (plan.kernels, plan.arithmetic);
        let graph = Graph::new(&plan.network, computed, device);
        Self {
            graph: lora::attached(graph, &plan.network, plan.seed, computed),
            task: plan.task.kind,
            loss: plan.loss.clone(),
            mask: mask_of(plan, &plan.loss),
            terms: {
                let each = plan.losses.iter();
                each.map(|term| (term.clone(), mask_of(plan, &term.loss)))
                    .collect()
            },
            more_tasks: plan.more_tasks(),
            pair: {
                let spec = plan.strategy.adversarial();
                spec.and_then(|spec| plan.network.pair(spec))
            },
            computed,
        }
    }

    /// The same with adapters added to the weights under them.
    pub fn merged(self) -> Self {
        self.materialize()
    }

    /// The layers.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The same with changed layers.
    pub(crate) fn map_graph(self, change: impl FnOnce(Graph) -> Graph) -> Self {
        Self {
            graph: change(self.graph),
            ..self
        }
    }

    /// Its parts, if they train against each other.
    pub(crate) fn pair(&self) -> Option<&Pair> {
        self.pair.as_ref()
    }

    /// The loss.
    pub(crate) fn loss_function(&self) -> &LossFunction {
        &self.loss.function
    }

    /// How sums are rounded.
    pub(crate) fn arithmetic(&self) -> Arithmetic {
        self.computed.1
    }

    /// The loss of each item, \[batch\], for the output of the last layer.
    pub fn losses(&self, outputs: DynTensor, targets: &Targets) -> Tensor<1> {
        item_losses(&self.loss, self.computed, flat(self.task, outputs), targets)
    }

    /// The sum of the losses of each item that is minimized, \[batch\], for the outputs of all layers.
    pub fn total_losses(
        &self,
        items: &DynTensor,
        outputs: &[DynTensor],
        wanted: Wanted<'_>,
    ) -> Tensor<1> {
        let last = outputs.last().unwrap_or(items).clone();
        let padding = self.mask.map(|at| Padding::new(outputs[at].clone().r2()));
        let main = self.main_losses(flat(self.task, last), padding.as_ref(), wanted);
        if outputs.is_empty() {
            return main;
        }
        let used = self.terms.iter().map(|(term, mask)| {
            let padding = mask.map(|at| Padding::new(outputs[at].clone().r2()));
            (outputs[term.layer].clone(), padding)
        });
        let terms = self.terms(used.collect(), items, wanted);
        self.sum(main, &terms)
    }

    /// The terms for the outputs that they are about, with the positions that count.
    fn terms(
        &self,
        outputs: Vec<(DynTensor, Option<Padding>)>,
        items: &DynTensor,
        wanted: Wanted<'_>,
    ) -> Vec<Term> {
        let each = self.terms.iter().zip(outputs);
        let each = each.map(|((term, _), (output, padding))| {
            let (task, targets) = match term.target {
                None => {
                    let dims = output.dims();
                    let values = dims[1..].last().copied().unwrap_or(1);
                    let positions = dims[1..].iter().product::<usize>() / values.max(1);
                    let output = output.reshape(&[dims[0], positions, values]).r3();
                    let output = match &padding {
                        Some(padding) => padding.cleared(output),
                        None => output,
                    };
                    let losses = item_penalties(&term.loss, self.computed.1, output);
                    let losses = self.of_counted(losses, &term.loss, padding.as_ref());
                    return Term {
                        losses: wanted.weighed(losses),
                        compared: None,
                    };
                }
                Some(TermTarget::Task) => (self.task, wanted.targets.clone()),
                Some(TermTarget::Items) => {
                    let items = items.clone().flatten();
                    (TaskKind::Autoencoding, Targets::Values(items))
                }
                Some(TermTarget::More(at)) => (self.more_tasks[at], wanted.more[at].clone()),
            };
            let outputs = flat(task, output);
            let wanted = Wanted {
                mixed: wanted
                    .mixed
                    .filter(|_| term.target == Some(TermTarget::Task)),
                ..wanted
            };
            let counted = match &padding {
                Some(padding) => padding.filled(outputs.clone(), &targets),
                None => outputs.clone(),
            };
            let losses = self.losses_of(&term.loss, counted, &targets, wanted);
            let losses = self.of_counted(losses, &term.loss, padding.as_ref());
            Term {
                losses,
                compared: Some((outputs, targets, padding)),
            }
        });
        each.collect()
    }

    /// The loss of each item, times its weight. Of mixed ones, it is that of both classes by their shares: for
    /// cross-entropy, the loss of the mixed target.
    fn losses_of(
        &self,
        loss: &LossSpec,
        outputs: Tensor<2>,
        targets: &Targets,
        wanted: Wanted<'_>,
    ) -> Tensor<1> {
        let of = |targets: &Targets| item_losses(loss, self.computed, outputs.clone(), targets);
        let losses = match wanted.mixed {
            None => of(targets),
            Some(mixed) => {
                let shares = mixed.shares.clone();
                of(targets) * (shares.clone().neg() + 1.0) + of(&mixed.targets) * shares
            }
        };
        wanted.weighed(losses)
    }

    /// The loss of the task of each item, times its weight.
    fn main_losses(
        &self,
        outputs: Tensor<2>,
        padding: Option<&Padding>,
        wanted: Wanted<'_>,
    ) -> Tensor<1> {
        let outputs = match padding {
            Some(padding) => padding.filled(outputs, wanted.targets),
            None => outputs,
        };
        let losses = self.losses_of(&self.loss, outputs, wanted.targets, wanted);
        self.of_counted(losses, &self.loss, padding)
    }

    /// Losses over all positions of items as those over the positions that count; the others have none.
    fn of_counted(
        &self,
        losses: Tensor<1>,
        loss: &LossSpec,
        padding: Option<&Padding>,
    ) -> Tensor<1> {
        match (padding, loss.reduction) {
            (Some(padding), Reduction::Mean) => losses * padding.factors(self.computed.1),
            _ => losses,
        }
    }

    /// The loss of the task and the terms, each times its weight.
    fn sum(&self, main: Tensor<1>, terms: &[Term]) -> Tensor<1> {
        let weighted = self.terms.iter().zip(terms);
        weighted.fold(main, |sum, ((term, _), computed)| {
            sum + computed.losses.clone() * term.weight
        })
    }

    /// A description of where a batch first results in infinity or NaN.
    pub fn first_not_finite(&self, batch: &Batch) -> Option<String> {
        if !batch.inputs.is_finite() {
            return Some("the items".into());
        }
        if let Some(pair) = &self.pair {
            return self.first_not_finite_of(pair, batch);
        }
        let mut found = None;
        self.graph.outputs(batch.inputs.clone(), |at, output| {
            if found.is_none() && !output.is_finite() {
                found = Some(format!("the output of layer `{}`", self.graph.name(at)));
            }
        });
        found.or_else(|| {
            let losses = self.output(batch.clone()).losses;
            (!is_finite(losses)).then(|| match &self.loss.function {
                LossFunction::Own { used, .. } => {
                    format!("the loss `{}` of this program", used.part)
                }
                _ => "the loss".into(),
            })
        })
    }

    /// The output of the last layer in the form that [`item_losses`] expects.
    pub fn outputs(&self, inputs: DynTensor) -> Tensor<2> {
        flat(self.task, self.graph.forward(inputs))
    }

    /// The same, and the outputs that are compared with other columns, in the order of their losses.
    pub fn all_outputs(&self, inputs: DynTensor) -> (Tensor<2>, Vec<Tensor<2>>) {
        let more = self.terms.iter().filter_map(|(term, _)| match term.target {
            Some(TermTarget::More(at)) => Some((term.layer, self.more_tasks[at])),
            _ => None,
        });
        let (layers, tasks): (Vec<usize>, Vec<TaskKind>) = more.unzip();
        let (output, others) = self.graph.with_outputs_of(inputs, layers.iter().copied());
        let others = tasks.into_iter().zip(others);
        let others = others.map(|(task, output)| flat(task, output));
        (flat(self.task, output), others.collect())
    }

    /// The outputs for a batch.
    pub fn output(&self, batch: Batch) -> Output {
        self.output_after(batch, None)
    }

    /// The same in a training with a teacher, whose distance is part of the losses, and the last of the terms.
    pub fn taught(&self, batch: Batch, teacher: &Teacher) -> Output {
        // Before the layers here keep anything.
        let lesson = teacher.lesson(&batch);
        self.output_after(batch, Some(&lesson))
    }

    fn output_after(&self, batch: Batch, lesson: Option<&Lesson>) -> Output {
        if let Some(pair) = &self.pair {
            return self.opposed(pair, batch);
        }
        self.output_by(batch, lesson, |items, layers| {
            self.graph.with_outputs_of(items, layers.iter().copied())
        })
    }

    /// The layers whose outputs losses use beside the last one.
    pub(crate) fn layers_of_losses(&self) -> Vec<usize> {
        let terms = self.terms.iter().map(|(term, _)| term.layer);
        let masks = self.terms.iter().filter_map(|(_, mask)| *mask);
        terms.chain(masks).chain(self.mask).collect()
    }

    /// The same with outputs by `compute`: that of the last layer, and those of the layers that losses use.
    pub(crate) fn output_by(
        &self,
        batch: Batch,
        lesson: Option<&Lesson>,
        compute: impl FnOnce(DynTensor, &[usize]) -> (DynTensor, Vec<DynTensor>),
    ) -> Output {
        let Batch {
            inputs,
            targets,
            more_targets,
            mixed,
            weights,
            noise: _,
            condition: _,
        } = batch;
        let wanted = Wanted {
            targets: &targets,
            more: &more_targets,
            mixed: mixed.as_ref(),
            weights: weights.as_ref(),
        };
        let is_sum = !self.terms.is_empty() || lesson.is_some();
        if !is_sum && self.mask.is_none() {
            let outputs = flat(self.task, compute(inputs, &[]).0);
            return Output {
                losses: self.main_losses(outputs.clone(), None, wanted),
                outputs,
                targets,
                padding: None,
                terms: Vec::new(),
                judged: None,
            };
        }
        let (output, mut others) = compute(inputs.clone(), &self.layers_of_losses());
        let padding = self.mask.and_then(|_| others.pop());
        let padding = padding.map(|mask| Padding::new(mask.r2()));
        let outputs = flat(self.task, output);
        let main = self.main_losses(outputs.clone(), padding.as_ref(), wanted);
        let mut masks = others.split_off(self.terms.len()).into_iter();
        let others = others.into_iter().zip(&self.terms);
        let others = others.map(|(output, (_, mask))| {
            let mask = mask.and_then(|_| masks.next());
            (output, mask.map(|mask| Padding::new(mask.r2())))
        });
        if !is_sum {
            return Output {
                losses: main,
                outputs,
                targets,
                padding,
                terms: Vec::new(),
                judged: None,
            };
        }
        let mut terms = self.terms(others.collect(), &inputs, wanted);
        let alone = |losses| Term {
            losses,
            compared: None,
        };
        let taught = lesson.map(|lesson| {
            let both = [outputs.clone(), lesson.beside(&outputs)];
            let both = both.map(|outputs| match &padding {
                Some(padding) => padding.filled(outputs, &targets),
                None => outputs,
            });
            let (arithmetic, temperature) = (self.computed.1, lesson.temperature);
            let distance = item_distances(&self.loss, arithmetic, temperature, both, &targets);
            let distance = self.of_counted(wanted.weighed(distance), &self.loss, padding.as_ref());
            let losses = main.clone() * (1.0 - lesson.weight) + distance.clone() * lesson.weight;
            (losses, alone(distance))
        });
        let (minimized, distance) = taught.unzip();
        let losses = self.sum(minimized.unwrap_or_else(|| main.clone()), &terms);
        terms.insert(0, alone(main));
        terms.extend(distance);
        Output {
            losses,
            outputs,
            targets,
            padding,
            terms,
            judged: None,
        }
    }
}

/// The layer with the positions that a loss counts, if not all of them.
fn mask_of(plan: &RunPlan, loss: &LossSpec) -> Option<usize> {
    plan.network.layer(loss.mask.as_ref()?)
}

/// \[batch, output shape\] to \[batch, values\], or for a class at each position to \[batch * positions, classes\].
fn flat(task: TaskKind, outputs: DynTensor) -> Tensor<2> {
    let flat = |outputs: DynTensor| {
        let dims = outputs.dims();
        let classes = dims[dims.len() - 1];
        let positions = dims[..dims.len() - 1].iter().product();
        outputs.reshape(&[positions, classes]).flatten()
    };
    match task {
        task if task.is_of_tokens() => flat(outputs),
        TaskKind::Segmentation => {
            // Of signals, images or volumes: the classes are channels.
            let positions = 2..outputs.rank() as isize;
            let axes: Vec<isize> = [0].into_iter().chain(positions).chain([1]).collect();
            flat(outputs.permute(&axes))
        }
        _ => outputs.flatten(),
    }
}

/// Samples each visited parameter. Burn samples them on first use, which would be in the middle of the first step, from
/// the generator's state at that point; `materialize` does not sample them either.
struct Draw;

impl ModuleVisitor for Draw {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        param.val();
    }
}

/// What the outputs of a batch are compared with.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The targets.
    pub targets: &'a Targets,
    /// The targets of `[[losses]]` that are other columns.
    pub more: &'a [Targets],
    /// With what the items are mixed, if they are.
    pub mixed: Option<&'a MixedTargets>,
    /// The weights of the items, if they differ.
    pub weights: Option<&'a Tensor<1>>,
}

impl Wanted<'_> {
    fn weighed(&self, losses: Tensor<1>) -> Tensor<1> {
        match self.weights {
            Some(weights) => losses * weights.clone(),
            None => losses,
        }
    }
}

/// The outputs of a network for a batch.
#[derive(Clone, Debug)]
pub struct Output {
    /// The loss of each item, \[batch\].
    pub losses: Tensor<1>,
    /// In the form that [`item_losses`] takes.
    pub outputs: Tensor<2>,
    /// The targets.
    pub targets: Targets,
    /// The positions that the loss of the task and its metrics leave out, if they leave out any.
    pub padding: Option<Padding>,
    /// If the loss is a sum: the loss of the task, and what is added to it.
    pub terms: Vec<Term>,
    /// The scores of a discriminator.
    pub judged: Option<Judged>,
}

/// A loss in a sum of losses.
#[derive(Clone, Debug)]
pub struct Term {
    /// The loss of each item, \[batch\], without its weight.
    pub losses: Tensor<1>,
    /// The output, what it is compared with, and the positions that count, for its metrics.
    pub compared: Option<(Tensor<2>, Targets, Option<Padding>)>,
}

impl Output {
    /// The same, detached from the graph.
    pub fn without_autodiff(self) -> Self {
        let terms = self.terms.into_iter().map(|term| Term {
            losses: term.losses.without_autodiff(),
            compared: term.compared.map(|(outputs, targets, padding)| {
                let padding = padding.map(Padding::without_autodiff);
                (
                    outputs.without_autodiff(),
                    targets.without_autodiff(),
                    padding,
                )
            }),
        });
        Self {
            losses: self.losses.without_autodiff(),
            outputs: self.outputs.without_autodiff(),
            targets: self.targets.without_autodiff(),
            padding: self.padding.map(Padding::without_autodiff),
            terms: terms.collect(),
            judged: self.judged.map(Judged::without_autodiff),
        }
    }
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use super::*;
    use crate::testing::{generator, planned};
    use burn::tensor::TensorData;

    /// The loss of a mixed item is the cross-entropy of the mixed target.
    #[test]
    fn mixed_items_have_mixed_targets() {
        let _generator = generator();
        let plan = planned(
            "data = { type = 'iris' }\nmodel = { type = 'mlp', hidden = [] }\noptimizer = { type = 'sgd', learning_rate = 0.1 }\ntrain.epochs = 1\n",
        );
        let device = Device::flex();
        let network = Network::drawn(&plan, &device);
        let outputs = [[1.0f32, 2.0, 0.5], [-1.0, 0.0, 3.0]];
        let classes = |values: [i32; 2]| {
            Targets::Classes(Tensor::from_data(
                TensorData::new(values.to_vec(), [2, 1]),
                &device,
            ))
        };
        let shares = [0.25f32, 0.5];
        let mixed = MixedTargets {
            targets: classes([2, 0]),
            shares: Tensor::from_data(TensorData::new(shares.to_vec(), [2]), &device),
        };
        let data = TensorData::new(outputs.concat(), [2, 3]);
        let targets = classes([1, 0]);
        let wanted = Wanted {
            targets: &targets,
            more: &[],
            mixed: Some(&mixed),
            weights: None,
        };
        let outputs_of = Tensor::from_data(data, &device);
        let found = network.losses_of(&plan.loss, outputs_of, &targets, wanted);
        let found: Vec<f32> = found.into_data().iter::<f32>().collect();
        let targets = [[0.0, 0.75, 0.25], [1.0, 0.0, 0.0]];
        for ((found, output), target) in found.iter().zip(outputs).zip(targets) {
            let sum: f32 = output.iter().map(|x| x.exp()).sum();
            let terms = output.iter().zip(target);
            let wanted: f32 = terms.map(|(x, t)| -t * (x.exp() / sum).ln()).sum();
            assert!((found - wanted).abs() < 1e-6, "{found}, {wanted}");
        }
    }
}
