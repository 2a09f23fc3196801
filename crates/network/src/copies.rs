//! Copies of a network's weights that follow its updates: averages, and the slow weights of Lookahead.
//!
//! The running statistics of batch norms are averaged with the weights, as PyTorch's `AveragedModel` does with
//! `use_buffers=True`. Lookahead leaves them to the trained network.

use std::collections::BTreeSet;
use std::sync::Arc;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use crate::network::Network;
use crate::parametrization::SPECTRAL_NORM;
use runner_core::plan::RunPlan;
use runner_core::spec::metric::Objective;
use runner_core::spec::strategy::StrategySpec;

/// A copy of the weights of a network.
#[derive(Clone, Debug)]
pub struct Copy {
    rule: Rule,
    /// Weights under adapters, which it shares with the network.
    fixed: Arc<BTreeSet<ParamId>>,
    /// The copy, on the device without autodiff.
    pub network: Network,
}

/// How a copy follows the network.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// An exponential moving average: at each update after `start`, it moves by `share` of the way.
    Ema { share: f64, start: usize },
    /// The mean of the weights after each `every` updates, counted from `start`.
    Swa { start: usize, every: usize },
    /// The slow weights of Lookahead.
    Slow { every: usize, alpha: f64 },
}

impl Copy {
    /// The copies that a plan keeps, at the start of a training. They share the weights at Burn's paths `fixed`.
    pub fn of(plan: &RunPlan, network: &Network, fixed: &BTreeSet<String>) -> Vec<Self> {
        let ema = plan.train.ema.map(|ema| Rule::Ema {
            share: 1.0 - ema.decay,
            start: ema.start_step,
        });
        let of_strategy = match plan.strategy {
            StrategySpec::Standard
            | StrategySpec::Hybrid(_)
            | StrategySpec::Distill(_)
            | StrategySpec::Adversarial(_)
            | StrategySpec::Own { .. } => None,
            StrategySpec::Lookahead { sync_steps, alpha } => Some(Rule::Slow {
                every: sync_steps,
                alpha,
            }),
            StrategySpec::Swa {
                start_epoch,
                every_steps,
            } => Some(Rule::Swa {
                start: (start_epoch - 1) * plan.steps_per_epoch,
                every: every_steps.unwrap_or(plan.steps_per_epoch),
            }),
        };
        // Slow weights change the network, which an average then follows.
        let rules: Vec<Rule> = of_strategy.into_iter().chain(ema).collect();
        if rules.is_empty() {
            return Vec::new();
        }
        let fixed = Arc::new(Ids::at(network, fixed));
        let copies = rules.into_iter().map(|rule| Self {
            rule,
            fixed: fixed.clone(),
            network: network.valid(),
        });
        copies.collect()
    }

    /// Its name in checkpoints, traces and metrics.
    pub fn name(&self) -> &'static str {
        match self.rule {
            Rule::Ema { .. } => "ema",
            Rule::Swa { .. } => "swa",
            Rule::Slow { .. } => "slow",
        }
    }

    /// The average that it is, after `step` updates of a network; none if it is not evaluated in addition to it.
    pub fn average(&self, network: &Network, step: usize) -> Option<Average> {
        let [valid, test] = match self.rule {
            Rule::Ema { .. } => ["valid_ema", "test_ema"],
            Rule::Swa { .. } => ["valid_swa", "test_swa"],
            Rule::Slow { .. } => return None,
        };
        Some(Average {
            name: self.name(),
            valid,
            test,
            network: self.read(network, step),
        })
    }

    /// The weights that the run is judged by, if they are not the trained ones.
    pub fn judged(&self, network: &Network, step: usize) -> Option<Network> {
        matches!(self.rule, Rule::Slow { .. }).then(|| self.read(network, step))
    }

    /// Follows a network after its update number `step`, counted from 1. The slow weights of Lookahead change the
    /// network too.
    pub fn follow(self, network: Network, step: usize) -> (Network, Self) {
        match self.rule {
            Rule::Ema { start, .. } if step < start => (network, self),
            Rule::Ema { start, .. } if step == start => {
                let copy = network.valid();
                (network, self.with(copy))
            }
            Rule::Ema { share, .. } => {
                let moved = toward(
                    self.network.clone(),
                    &network,
                    share,
                    Part::All,
                    &self.fixed,
                );
                (network, self.with(moved))
            }
            Rule::Swa { start, every } => {
                let since = step.saturating_sub(start);
                if since == 0 || !since.is_multiple_of(every) {
                    return (network, self);
                }
                // With the newest statistics of batch norms, which Burn delays until they are requested.
                let newest = network.valid();
                let num = since / every;
                let mean = if num == 1 {
                    newest
                } else {
                    let share = 1.0 / num as f64;
                    toward(self.network.clone(), &newest, share, Part::All, &self.fixed)
                };
                (network, self.with(mean))
            }
            Rule::Slow { every, .. } if !step.is_multiple_of(every) => (network, self),
            Rule::Slow { alpha, .. } => {
                let slow = toward(
                    self.network.clone(),
                    &network,
                    alpha,
                    Part::Weights,
                    &self.fixed,
                );
                let network = network.map(&mut Resume(Collected::of(
                    &slow,
                    Part::Weights,
                    &self.fixed,
                )));
                (network, self.with(slow))
            }
        }
    }

    fn with(self, network: Network) -> Self {
        Self { network, ..self }
    }

    /// The same with its network changed.
    pub fn map_network(self, map: impl FnOnce(Network) -> Network) -> Self {
        Self {
            network: map(self.network),
            ..self
        }
    }

    /// What it stands for after `step` updates: the weights of the network until an average starts. The slow weights of
    /// Lookahead are read with the network's statistics.
    pub fn read(&self, network: &Network, step: usize) -> Network {
        match self.rule {
            Rule::Ema { start, .. } if step < start => network.valid(),
            Rule::Swa { start, every } if step < start + every => network.valid(),
            Rule::Ema { .. } | Rule::Swa { .. } => self.network.clone(),
            Rule::Slow { .. } => toward(
                self.network.clone(),
                &network.valid(),
                1.0,
                Part::Statistics,
                &self.fixed,
            ),
        }
    }
}

/// Averaged weights, which are evaluated and saved in addition to the trained ones.
#[derive(Clone, Debug)]
pub struct Average {
    /// The name of their file.
    pub name: &'static str,
    /// The name of the valid split evaluated with them.
    pub valid: &'static str,
    /// The name of the test split evaluated with them.
    pub test: &'static str,
    /// A network with them.
    pub network: Network,
}

/// The averaged weights with which an objective is measured, if it is measured with some.
pub fn of_objective(objective: Objective, averages: &[Average]) -> Option<Network> {
    let name = objective.average()?;
    let average = averages.iter().find(|average| average.name == name)?;
    Some(average.network.clone())
}

/// Which tensors of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    /// All but the running statistics of batch norms and the vectors of spectral norms.
    Weights,
    /// Only those.
    Statistics,
}

/// Moves a copy by `share` of the way to a network's tensors; all the way is exact.
fn toward(
    copy: Network,
    network: &Network,
    share: f64,
    part: Part,
    fixed: &BTreeSet<ParamId>,
) -> Network {
    let newest = Collected::of(network, part, fixed).found;
    copy.map(&mut Mover::new(newest, share))
}

/// All tensors of a network by parameter, without autodiff.
pub(crate) fn values_of(network: &Network) -> GradientsParams {
    Collected::of(network, Part::All, &BTreeSet::new()).found
}

/// A network with other values of the parameters that are among them.
pub(crate) fn with_values(network: Network, values: GradientsParams) -> Network {
    network.map(&mut Mover::new(values, 1.0))
}

/// Tensors by parameter, without autodiff; Burn has a container of tensors of any rank only for gradients.
pub(crate) struct Collected<'a> {
    pub(crate) found: GradientsParams,
    /// Those that are left out.
    fixed: &'a BTreeSet<ParamId>,
    part: Part,
    /// The names of the modules around the tensor that is visited.
    names: Vec<String>,
}

impl<'a> Collected<'a> {
    pub(crate) fn of(network: &Network, part: Part, fixed: &'a BTreeSet<ParamId>) -> Self {
        let mut collected = Self {
            found: GradientsParams::new(),
            fixed,
            part,
            names: Vec::new(),
        };
        network.visit(&mut collected);
        collected
    }
}

/// Whether the parameter at a path is a vector of unit length, which has no mean.
fn is_of_spectral_norm(path: &[String]) -> bool {
    path.iter().any(|name| name == SPECTRAL_NORM)
}

impl ModuleVisitor for Collected<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        if self.part != Part::All {
            self.names.push(name.to_owned());
        }
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.names.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let last = self.names.last().map(String::as_str);
        let is_statistic = matches!(last, Some("running_mean" | "running_var"))
            || is_of_spectral_norm(&self.names);
        let is_wanted = match self.part {
            Part::All => true,
            Part::Weights => !is_statistic,
            Part::Statistics => is_statistic,
        };
        if is_wanted && !self.fixed.contains(&param.id) {
            self.found
                .register(param.id, param.val().without_autodiff());
        }
    }
}

/// The ids of the parameters at some paths.
struct Ids<'a> {
    at: &'a BTreeSet<String>,
    path: Vec<String>,
    found: BTreeSet<ParamId>,
}

impl<'a> Ids<'a> {
    fn at(network: &Network, at: &'a BTreeSet<String>) -> BTreeSet<ParamId> {
        let mut ids = Self {
            at,
            path: Vec::new(),
            found: BTreeSet::new(),
        };
        network.visit(&mut ids);
        ids.found
    }
}

impl ModuleVisitor for Ids<'_> {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if self.at.contains(&self.path.join(".")) {
            self.found.insert(param.id);
        }
    }
}

struct Mover {
    newest: GradientsParams,
    share: f64,
    /// The names of the modules around the tensor that is visited.
    names: Vec<String>,
}

impl Mover {
    fn new(newest: GradientsParams, share: f64) -> Self {
        Self {
            newest,
            share,
            names: Vec::new(),
        }
    }
}

impl ModuleMapper for Mover {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.names.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.names.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(newest) = self.newest.remove::<D>(param.id) else {
            return param;
        };
        if self.share == 1.0 || is_of_spectral_norm(&self.names) {
            return param.map(|_| newest);
        }
        // In this form, unchanged weights stay bitwise equal.
        param.map(|copy| (newest - copy.clone()).mul_scalar(self.share) + copy)
    }
}

/// Values without autodiff in place of a parameter's: trained if it is, and with its gradient checkpointing, without which
/// no operation could combine them with what is on its device.
pub(crate) fn instead_of<const D: usize>(former: &Tensor<D>, values: Tensor<D>) -> Tensor<D> {
    match former.gradient_checkpointing_strategy() {
        Some(strategy) => values
            .autodiff()
            .with_gradient_checkpointing_strategy(strategy)
            .set_require_grad(former.is_require_grad()),
        None => values,
    }
}

/// Lets a trained network continue from other weights.
pub(crate) struct Resume<'a>(pub(crate) Collected<'a>);

impl ModuleMapper for Resume<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(slow) = self.0.found.remove::<D>(param.id) else {
            return param;
        };
        param.map(|fast| instead_of(&fast, slow))
    }
}
