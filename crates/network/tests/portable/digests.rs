//! Digests of everything that networks compute with portable arithmetic: the same on every processor.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::GradientsParams;
use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};
use runner_core::check::network::examples::{Example, examples};
use runner_core::check::network::portable::missing;
use runner_core::spec::backend::{Arithmetic, Kernels};
use runner_core::spec::loss::{LossFunction, LossSpec, Reduction};
use runner_network::graph::Graph;
use runner_network::loss::item_losses;
use runner_network::network::Network;
use runner_network::optimizer::optimizer;
use runner_network::paths::Paths;
use runner_network::targets::Targets;
use runner_network::tensor::{DynTensor, map_rank};
use runner_network::testing::planned;

const PORTABLE: (Kernels, Arithmetic) = (Kernels::Fast, Arithmetic::Portable);

/// A digest and what it is of.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub name: String,
    pub digest: u64,
}

/// All digests, in order.
pub fn all() -> Vec<Found> {
    let found = |name: String, digest: u64| Found { name, digest };
    let mut all = Vec::new();
    // Noise is given, and not computed.
    let computed = |example: &Example| example.kind() != "noise";
    for example in examples().into_iter().filter(computed) {
        let layers = &example.network.layers;
        if layers.iter().all(|layer| missing(&layer.kind).is_none()) {
            all.push(found(example.layers.to_string(), of_example(&example)));
        }
    }
    for function in losses() {
        for reduction in [Reduction::Mean, Reduction::Sum] {
            let name = format!("{function:?} {reduction:?}");
            all.push(found(name, of_loss(&function, reduction)));
        }
    }
    for text in OPTIMIZERS {
        all.push(found(text.to_owned(), of_optimizer(text)));
    }
    for text in SCHEDULES {
        all.push(found(text.to_owned(), of_schedule(text)));
    }
    for text in INITIALIZERS {
        all.push(found(text.to_owned(), of_initializer(text)));
    }
    for text in super::experiments::EXPERIMENTS {
        all.push(found(text.to_owned(), super::experiments::trained(text)));
    }
    all
}

/// Four digits of a digest.
pub fn short(found: &Found) -> String {
    format!("{:04x}", found.digest >> 48)
}

/// Whether the digest at a place is that of `expected`, which has four digits of each.
pub fn is_expected(at: usize, found: &Found, expected: &str) -> bool {
    expected.get(at * 4..at * 4 + 4) == Some(short(found).as_str())
}

/// Numbers between -1 and 1.
fn numbers(num: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761) + 1;
    let next = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        2.0 * ((state >> 40) as f32 / (1u64 << 24) as f32 - 0.5)
    };
    (0..num).map(next).collect()
}

/// FNV-1a of the bits of numbers. All values that are not numbers are equal.
#[derive(Clone, Copy)]
pub struct Digest(pub u64);

impl Digest {
    pub fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    pub fn tensor<const D: usize>(&mut self, tensor: Tensor<D>) {
        for value in tensor.into_data().iter::<f32>() {
            let value = if value.is_nan() { f32::NAN } else { value };
            self.add(&value.to_bits().to_le_bytes());
        }
    }
}

/// Parameters, and their gradients if there are any.
pub struct Each<'a> {
    pub gradients: Option<&'a Gradients>,
    pub digest: &'a mut Digest,
}

impl ModuleVisitor for Each<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        if let Some(gradient) = self.gradients.and_then(|all| value.grad(all)) {
            self.digest.tensor(gradient);
        }
        self.digest.tensor(value);
    }
}

/// The digest of the parameters of a module.
pub fn of_parameters(module: &impl Module) -> u64 {
    let mut digest = Digest::new();
    module.visit(&mut Each {
        gradients: None,
        digest: &mut digest,
    });
    digest.0
}

/// Initial weights, output, and gradients of weights and items.
fn of_example(example: &Example) -> u64 {
    let device = Device::flex().autodiff();
    device.seed(5);
    let network = &example.network;
    let graph = Graph::new(network, PORTABLE, &device);
    let mut digest = Digest(of_parameters(&graph));
    let dims = [&[5], network.items.dims.as_slice()].concat();
    let mut leaf = None;
    let items = match network.items.vocabulary {
        Some(_) => {
            let tokens = TensorData::new((0..30i64).map(|at| at * at % 7).collect(), [5, 6]);
            DynTensor::Tokens(Tensor::from_data(tokens, &device))
        }
        None => {
            let items = DynTensor::from_values(numbers(dims.iter().product(), 1), &dims, &device);
            let items = map_rank!(items, t => t.require_grad());
            leaf = Some(items.clone());
            items
        }
    };
    let output = graph.forward(items).flatten();
    digest.tensor(output.clone());
    let upstream = TensorData::new(numbers(output.shape().num_elements(), 2), output.dims());
    // The sum itself is Burn's, but its gradient is 1.
    let gradients = (output * Tensor::from_data(upstream, &device)).sum();
    if leaf.is_none() && network.num_parameters == 0 {
        return digest.0;
    }
    let gradients = gradients.backward();
    graph.visit(&mut Each {
        gradients: Some(&gradients),
        digest: &mut digest,
    });
    macro_rules! leaf {
        ($($rank:ident)+) => {
            match leaf {
                $(Some(DynTensor::$rank(t)) => {
                    if let Some(gradient) = t.grad(&gradients) {
                        digest.tensor(gradient);
                    }
                })+
                _ => {}
            }
        };
    }
    leaf!(R1 R2 R3 R4 R5);
    digest.0
}

/// Losses and their gradients.
fn of_loss(function: &LossFunction, reduction: Reduction) -> u64 {
    let device = Device::flex().autodiff();
    let spec = LossSpec {
        reduction,
        function: function.clone(),
        mask: None,
    };
    let columns = 37;
    let is_of_classes = matches!(
        function,
        LossFunction::CrossEntropy { .. } | LossFunction::Dice { .. }
    );
    let wide = if matches!(function, LossFunction::GaussianNll) {
        2 * columns
    } else {
        columns
    };
    let outputs = TensorData::new(numbers(12 * wide, 3), [12, wide]);
    let outputs = Tensor::<2>::from_data(outputs, &device).require_grad();
    let targets = if is_of_classes {
        let classes = TensorData::new((0..12i64).map(|at| at * 5 % 37 - 1).collect(), [4, 3]);
        Targets::Classes(Tensor::<2, Int>::from_data(classes, &device))
    } else {
        let is_of_labels = matches!(
            function,
            LossFunction::BinaryCrossEntropy { .. } | LossFunction::SoftMargin
        );
        let count = |x: f32| {
            if x > 0.0 {
                1.0 + (8.0 * x).floor()
            } else {
                0.0
            }
        };
        let values = numbers(12 * columns, 4).into_iter().map(count);
        let values = values.map(|x| if is_of_labels { x.min(1.0) } else { x });
        let values = TensorData::new(values.collect::<Vec<f32>>(), [12, columns]);
        Targets::Values(Tensor::from_data(values, &device))
    };
    let losses = item_losses(&spec, PORTABLE, outputs.clone(), &targets);
    let mut digest = Digest::new();
    digest.tensor(losses.clone());
    let gradients = losses.mean().backward();
    digest.tensor(outputs.grad(&gradients).expect("tracked"));
    digest.0
}

fn losses() -> Vec<LossFunction> {
    vec![
        LossFunction::CrossEntropy {
            label_smoothing: 0.1,
            class_weights: Vec::new(),
            is_balanced: false,
            focal_gamma: 0.0,
        },
        LossFunction::CrossEntropy {
            label_smoothing: 0.0,
            class_weights: Vec::new(),
            is_balanced: false,
            focal_gamma: 1.5,
        },
        LossFunction::Dice {
            smoothing: 1.0,
            cross_entropy_weight: 0.5,
        },
        LossFunction::BinaryCrossEntropy {
            label_smoothing: 0.1,
            label_weights: Vec::new(),
            focal_gamma: 0.7,
        },
        LossFunction::SoftMargin,
        LossFunction::Mse,
        LossFunction::Mae,
        LossFunction::Quantile { quantile: 0.3 },
        LossFunction::Huber { delta: 0.7 },
        LossFunction::SmoothL1 { beta: 0.7 },
        LossFunction::PoissonNll {
            log_input: true,
            full: true,
        },
        LossFunction::PoissonNll {
            log_input: false,
            full: false,
        },
        LossFunction::GaussianNll,
    ]
}

/// Weights after some updates.
fn of_optimizer(text: &str) -> u64 {
    let device = Device::flex().autodiff();
    device.seed(9);
    let plan = planned(&format!(
        "data.type = \"iris\"\nmodel.type = \"mlp\"\nbackend.arithmetic = \"portable\"\n\
         train = {{ epochs = 2, batch_size = 25 }}\n{text}"
    ));
    let mut network = Network::new(&plan, &device);
    let mut optimizer = optimizer(&plan, &Paths::new(&plan).parameters(&network));
    let width = plan.data.input.shape.iter().product();
    for step in 0..5 {
        let items = TensorData::new(numbers(25 * width, 20 + step), [25, width]);
        let outputs = network.outputs(DynTensor::R2(Tensor::from_data(items, &device)));
        let gradients = outputs.square().mean().backward();
        let gradients = GradientsParams::from_grads(gradients, &network);
        network = optimizer.step(plan.learning_rate(step as usize), network, gradients);
    }
    of_parameters(&network)
}

const OPTIMIZERS: [&str; 14] = [
    "optimizer = { type = \"sgd\", learning_rate = 0.1 }\n",
    "optimizer = { type = \"sgd\", learning_rate = 0.1, momentum = 0.9, nesterov = true, weight_decay = 0.01 }\n",
    "optimizer = { type = \"adam\", learning_rate = 0.01, weight_decay = 0.01 }\n",
    "optimizer = { type = \"adam\", learning_rate = 0.01, amsgrad = true }\n",
    "optimizer = { type = \"adamw\", learning_rate = 0.01 }\n",
    "optimizer = { type = \"adamw\", learning_rate = 0.01, cautious_weight_decay = true, clip.value = 0.01 }\n",
    "optimizer = { type = \"adagrad\", learning_rate = 0.01 }\n",
    "optimizer = { type = \"rmsprop\", learning_rate = 0.01, momentum = 0.9, centered = true }\n",
    "optimizer = { type = \"adan\", learning_rate = 0.01 }\n",
    "optimizer = { type = \"adan\", learning_rate = 0.01, no_prox = true, weight_decay = 0.01 }\n",
    "optimizer = { type = \"lamb\", learning_rate = 0.01, weight_decay = 0.01 }\n",
    "optimizer = { type = \"lion\", learning_rate = 0.001 }\n",
    "optimizer = { type = \"muon\", learning_rate = 0.01 }\n",
    "optimizer = { type = \"muon\", learning_rate = 0.01, adjust_learning_rate = \"match_rms_adamw\", nesterov = false }\n",
];

/// The learning rates of a schedule.
fn of_schedule(text: &str) -> u64 {
    let plan = planned(&format!(
        "data.type = \"iris\"\nmodel.type = \"mlp\"\nbackend.arithmetic = \"portable\"\n\
         optimizer = {{ type = \"sgd\", learning_rate = 0.1 }}\ntrain = {{ epochs = 9, batch_size = 25 }}\n{text}"
    ));
    let mut digest = Digest::new();
    for step in 0..plan.steps_per_epoch * 9 {
        digest.add(&plan.learning_rate(step).to_bits().to_le_bytes());
    }
    digest.0
}

const SCHEDULES: [&str; 8] = [
    "scheduler = { type = \"multi_step\", milestones = [3, 6], gamma = 0.3, unit = \"epoch\" }\n",
    "scheduler = { type = \"cosine\", warmup_steps = 5 }\n",
    "scheduler = { type = \"cosine_restarts\", period = 7 }\n",
    "scheduler = { type = \"exponential\", gamma = 0.93 }\n",
    "scheduler = { type = \"step\", step_size = 3, gamma = 0.7 }\n",
    "scheduler = { type = \"linear\", final_fraction = 0.1 }\n",
    "scheduler = { type = \"noam\", warmup_steps = 10 }\n",
    "scheduler.type = \"one_cycle\"\n",
];

/// The initial weights of layers with an initializer.
fn of_initializer(text: &str) -> u64 {
    let device = Device::flex().autodiff();
    device.seed(11);
    let plan = planned(&format!(
        "data.type = \"digits\"\nbackend.arithmetic = \"portable\"\n\
         optimizer = {{ type = \"sgd\", learning_rate = 0.1 }}\ntrain.epochs = 1\n\
         model.layers = [{{ type = \"conv2d\", out_channels = 8, kernel_size = 3, initializer = {text} }}, \
         {{ type = \"flatten\" }}, {{ type = \"linear\", initializer = {text} }}]\n"
    ));
    of_parameters(&Network::new(&plan, &device))
}

const INITIALIZERS: [&str; 9] = [
    "{ type = \"zeros\" }",
    "{ type = \"uniform\" }",
    "{ type = \"normal\", std = 0.3 }",
    "{ type = \"constant\", value = 0.3 }",
    "{ type = \"kaiming_uniform\" }",
    "{ type = \"kaiming_normal\", nonlinearity = \"tanh\" }",
    "{ type = \"xavier_uniform\" }",
    "{ type = \"xavier_normal\" }",
    "{ type = \"kaiming_normal\", fan_out = true, bias = 0.1 }",
];
