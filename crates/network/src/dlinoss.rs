//! Damped linear oscillators as a layer over sequences: D-LinOSS (Boyer et al., 2025), the damped form of LinOSS (Rusch
//! and Rus, 2024).
//!
//! Each number of the state is the position x of an oscillator with velocity z, driven by a linear map of the input:
//! z' = -a x - g z + b u. A step of length d takes the velocity implicitly and then the position, so that
//! z_k = (z_{k-1} + d (b u_k - a x_{k-1})) / (1 + d g) and x_k = x_{k-1} + d z_k: a matrix times the state before, plus
//! the input. The matrix is the same for all steps, so the sums of a parallel scan (Hillis and Steele, 1986) double with
//! each of its passes: the state of 2n steps is that of n steps, plus the n-th power of the matrix times the state of
//! the n steps before.

use burn::module::{Module, ModuleMapper, Param};
use burn::nn::Initializer;
use burn::tensor::{Device, Shape, Tensor, TensorData};

use crate::initial::normal;
use crate::numeric::{expand, matmul, sigmoid};
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::model::layer::Oscillators;

/// Standard deviation of the initial steps before the logistic function, as in the authors' code.
const STEP_STD: f64 = 0.5;
/// The least square of a step that limits are divided by.
const LEAST_SQUARE: f64 = 1e-6;

/// The parameters of the oscillators. Their states are complex, with the real parts first.
#[derive(Module, Debug)]
pub struct Dlinoss {
    /// \[state\]: the length of a step, before the logistic function.
    time_step: Param<Tensor<1>>,
    /// \[state\]: g, before it is made positive.
    damping: Param<Tensor<1>>,
    /// \[state\]: a, before it is limited to what oscillates.
    stiffness: Param<Tensor<1>>,
    /// \[features, 2 state\].
    input_matrix: Param<Tensor<2>>,
    /// \[2 state, features\].
    output_matrix: Param<Tensor<2>>,
    /// \[features\]: factors of the input that is added to the output.
    skip: Param<Tensor<1>>,
    #[module(skip)]
    arithmetic: Arithmetic,
}

impl Dlinoss {
    /// With uninitialized weights, which have to be [`started`].
    pub fn new(
        oscillators: &Oscillators,
        features: usize,
        arithmetic: Arithmetic,
        device: &Device,
    ) -> Self {
        let size = oscillators.state_size;
        let unit = Initializer::Uniform { min: 0.0, max: 1.0 };
        let within = |num: usize| {
            let bound = 1.0 / (num as f64).sqrt();
            Initializer::Uniform {
                min: -bound,
                max: bound,
            }
        };
        Self {
            time_step: normal(Shape::from([size]), 0.0, STEP_STD, device),
            damping: unit.init([size], device),
            stiffness: unit.init([size], device),
            input_matrix: within(features).init([features, 2 * size], device),
            output_matrix: within(size).init([2 * size, features], device),
            skip: normal(Shape::from([features]), 0.0, 1.0, device),
            arithmetic,
        }
    }

    /// \[items, length, features\] to the same.
    pub fn forward(&self, x: Tensor<3>) -> Tensor<3> {
        let [items, length, features] = x.dims();
        let arithmetic = self.arithmetic;
        let input = self.input_matrix.val();
        let width = input.dims()[1];
        let rows = x.clone().reshape([items * length, features]);
        let driven = matmul(arithmetic, rows, input).reshape([items, length, width]);
        let steps = self.steps();
        let spread = |factor: Tensor<1>, length: usize| {
            let both = Tensor::cat(vec![factor.clone(), factor], 0);
            expand(
                arithmetic,
                both.reshape([1, 1, width]),
                [items, length, width],
            )
        };
        let mut velocity = driven.clone() * spread(steps.driven[0].clone(), length);
        let mut position = driven * spread(steps.driven[1].clone(), length);
        let mut matrix = steps.matrix;
        let mut done = 1;
        while done < length {
            let others = length - done;
            let before = [&velocity, &position].map(|state| state.clone().narrow(1, 0, others));
            let moved = |row: &[Tensor<1>; 2], state: Tensor<3>| {
                let [by_velocity, by_position] =
                    [0, 1].map(|at| before[at].clone() * spread(row[at].clone(), others));
                let later = state.clone().narrow(1, done, others) + by_velocity + by_position;
                Tensor::cat(vec![state.narrow(1, 0, done), later], 1)
            };
            (velocity, position) = (moved(&matrix[0], velocity), moved(&matrix[1], position));
            done *= 2;
            matrix = squared(&matrix);
        }
        let rows = position.reshape([items * length, width]);
        let output = matmul(arithmetic, rows, self.output_matrix.val());
        let skip = self.skip.val().reshape([1, 1, features]);
        let dims = x.dims();
        output.reshape(dims) + x * expand(arithmetic, skip, dims)
    }

    fn steps(&self) -> Steps {
        let step = sigmoid(self.arithmetic, self.time_step.val());
        let damping = self.damping.val().clamp_min(0.0);
        let scale = step.clone() * damping + 1.0;
        // Between these limits, the eigenvalues are complex: the state oscillates, and it decays.
        let square = (step.clone() * step.clone()).clamp_min(LEAST_SQUARE);
        let (middle, width) = (scale.clone() + 1.0, scale.clone().sqrt() * 2.0);
        let [low, high] = [middle.clone() - width.clone(), middle + width];
        let [low, high] = [low, high].map(|limit| limit / square.clone());
        let stiffness = self.stiffness.val();
        let [above, beyond] =
            [low.clone(), high].map(|limit| (stiffness.clone() - limit).clamp_min(0.0));
        let stiffness = low + above - beyond;
        let short = step.clone() / scale.clone();
        let shorter = step * short.clone();
        Steps {
            matrix: [
                [
                    scale.ones_like() / scale,
                    (short.clone() * stiffness.clone()).neg(),
                ],
                [short.clone(), (shorter.clone() * stiffness).neg() + 1.0],
            ],
            driven: [short, shorter],
        }
    }
}

/// A step of each oscillator.
struct Steps {
    /// Velocity and position by velocity and position.
    matrix: [[Tensor<1>; 2]; 2],
    /// Both by what drives them.
    driven: [Tensor<1>; 2],
}

/// The product of a matrix with itself.
fn squared(matrix: &[[Tensor<1>; 2]; 2]) -> [[Tensor<1>; 2]; 2] {
    let entry = |row: usize, column: usize| {
        let term = |at: usize| matrix[row][at].clone() * matrix[at][column].clone();
        term(0) + term(1)
    };
    [0, 1].map(|row| [0, 1].map(|column| entry(row, column)))
}

/// A layer whose drawn numbers between 0 and 1 are replaced with the damping and the stiffness for which eigenvalues are
/// spread evenly over a ring.
pub fn started<M: Module>(layer: M, oscillators: &Oscillators) -> M {
    layer.map(&mut Start {
        oscillators: oscillators.clone(),
        name: String::new(),
        steps: Vec::new(),
        scales: Vec::new(),
    })
}

struct Start {
    oscillators: Oscillators,
    /// The name of the parameter that is visited.
    name: String,
    steps: Vec<f64>,
    /// The inverse square of the eigenvalues' absolute value: 1 + d g.
    scales: Vec<f64>,
}

impl ModuleMapper for Start {
    fn enter_module(&mut self, name: &str, _: &str) {
        name.clone_into(&mut self.name);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        if !["time_step", "damping", "stiffness"].contains(&self.name.as_str()) {
            return param;
        }
        let drawn: Vec<f64> = param.val().into_data().iter::<f64>().collect();
        let Oscillators {
            min_radius,
            max_radius,
            max_angle,
            ..
        } = self.oscillators;
        let values: Vec<f64> = match self.name.as_str() {
            "time_step" => {
                let step = |value: f64| 1.0 / (1.0 + libm::exp(-value));
                self.steps = drawn.into_iter().map(step).collect();
                return param;
            }
            "damping" => {
                let squares = [min_radius, max_radius].map(|radius| radius * radius);
                let scale = |part: f64| 1.0 / (squares[0] + part * (squares[1] - squares[0]));
                self.scales = drawn.into_iter().map(scale).collect();
                let each = self.scales.iter().zip(&self.steps);
                each.map(|(scale, step)| (scale - 1.0) / step).collect()
            }
            _ => {
                let each = drawn.into_iter().zip(self.scales.iter().zip(&self.steps));
                let stiffness = |(part, (scale, step)): (f64, (&f64, &f64))| {
                    let cosine = libm::cos(part * max_angle);
                    (1.0 + scale - 2.0 * scale.sqrt() * cosine) / (step * step)
                };
                each.map(stiffness).collect()
            }
        };
        let data = TensorData::new(values, param.lazy_shape());
        let (id, device) = (param.id, param.lazy_device());
        param.transform_for_load(Tensor::from_data(data, &device), id)
    }
}
