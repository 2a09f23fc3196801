//! One step of the recurrent state-space model, and the gradient of a window of steps.
//!
//! A gated recurrent unit carries the state h from one real update to the next. A stochastic state z has a prior that
//! follows from h alone, and a posterior that also knows the features of the update. From both states, features and
//! factors are decoded.

use std::ops::Range;

/// Numbers of the deterministic state.
pub const HIDDEN: usize = 8;
/// Numbers of the stochastic state.
pub const LATENT: usize = 4;
/// Numbers that describe an update.
pub const NUM_FEATURES: usize = 6;
/// The smallest standard deviation.
const MIN_DEVIATION: f64 = 0.1;

/// A linear map among the parameters: `rows` x `columns` weights row by row, and then the biases.
#[derive(Clone, Copy, Debug)]
pub struct Linear {
    at: usize,
    rows: usize,
    columns: usize,
}

impl Linear {
    fn after(before: usize, rows: usize, columns: usize) -> Self {
        Self {
            at: before,
            rows,
            columns,
        }
    }

    fn end(self) -> usize {
        self.at + self.rows * (self.columns + 1)
    }

    /// The parameters of its weights, and the number of its inputs.
    pub fn weights(self) -> (Range<usize>, usize) {
        (self.at..self.at + self.rows * self.columns, self.columns)
    }

    /// The parameters of its biases.
    pub fn biases(self) -> Range<usize> {
        self.at + self.rows * self.columns..self.end()
    }

    fn apply(self, parameters: &[f64], input: &[f64]) -> Vec<f64> {
        let weights = parameters[self.weights().0].chunks_exact(self.columns);
        let biases = &parameters[self.biases()];
        weights
            .zip(biases)
            .map(|(row, bias)| {
                let products = row.iter().zip(input).map(|(weight, value)| weight * value);
                bias + products.sum::<f64>()
            })
            .collect()
    }

    /// Adds the gradient with respect to the parameters, and returns that with respect to the input.
    fn backward(
        self,
        parameters: &[f64],
        input: &[f64],
        of_output: &[f64],
        gradient: &mut [f64],
    ) -> Vec<f64> {
        let mut of_input = vec![0.0; self.columns];
        for (row, of_row) in of_output.iter().enumerate() {
            let weights = self.at + row * self.columns..self.at + (row + 1) * self.columns;
            for (column, at) in weights.enumerate() {
                of_input[column] += of_row * parameters[at];
                gradient[at] += of_row * input[column];
            }
            gradient[self.biases().start + row] += of_row;
        }
        of_input
    }
}

/// Where the parameters of each part are.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    reset: Linear,
    update: Linear,
    candidate: Linear,
    prior: Linear,
    posterior: Linear,
    decoder: Linear,
    /// From both states to the factors.
    pub head: Linear,
}

impl Layout {
    /// That of a model with so many factors.
    pub fn new(num_factors: usize) -> Self {
        let both = HIDDEN + LATENT;
        let reset = Linear::after(0, HIDDEN, both);
        let update = Linear::after(reset.end(), HIDDEN, both);
        let candidate = Linear::after(update.end(), HIDDEN, both);
        let prior = Linear::after(candidate.end(), 2 * LATENT, HIDDEN);
        let posterior = Linear::after(prior.end(), 2 * LATENT, HIDDEN + NUM_FEATURES);
        let decoder = Linear::after(posterior.end(), NUM_FEATURES, both);
        Self {
            reset,
            update,
            candidate,
            prior,
            posterior,
            decoder,
            head: Linear::after(decoder.end(), num_factors, both),
        }
    }

    /// All maps.
    pub fn maps(&self) -> [Linear; 7] {
        [
            self.reset,
            self.update,
            self.candidate,
            self.prior,
            self.posterior,
            self.decoder,
            self.head,
        ]
    }

    /// The number of parameters.
    pub fn num_parameters(&self) -> usize {
        self.head.end()
    }

    /// The factors that follow from both states.
    pub fn factors(&self, parameters: &[f64], state: &State) -> Vec<f64> {
        self.head.apply(parameters, &state.both())
    }

    /// The state after one more update that nothing is known of: the most likely one.
    pub fn imagine(&self, parameters: &[f64], state: &State) -> State {
        let hidden = self.recur(parameters, state).hidden;
        let mut latent = self.prior.apply(parameters, &hidden);
        latent.truncate(LATENT);
        State { hidden, latent }
    }

    fn recur(&self, parameters: &[f64], before: &State) -> Recurrence {
        let input = before.both();
        let gate = |map: Linear| -> Vec<f64> {
            map.apply(parameters, &input)
                .into_iter()
                .map(sigmoid)
                .collect()
        };
        let (reset, update) = (gate(self.reset), gate(self.update));
        let mut damped = before.latent.clone();
        damped.extend(before.hidden.iter().zip(&reset).map(|(h, r)| h * r));
        let candidate = self.candidate.apply(parameters, &damped);
        let candidate: Vec<f64> = candidate.into_iter().map(libm::tanh).collect();
        let hidden =
            (0..HIDDEN).map(|at| candidate[at] + update[at] * (before.hidden[at] - candidate[at]));
        Recurrence {
            hidden: hidden.collect(),
            input,
            damped,
            reset,
            update,
            candidate,
        }
    }

    /// The state after an update with these features. `noise` is that of the stochastic state.
    pub fn observe(
        &self,
        parameters: &[f64],
        before: &State,
        features: &[f64],
        noise: &[f64],
    ) -> Step {
        let recurrence = self.recur(parameters, before);
        let prior = Normal::of(self.prior.apply(parameters, &recurrence.hidden));
        let seen = [recurrence.hidden.as_slice(), features].concat();
        let posterior = Normal::of(self.posterior.apply(parameters, &seen));
        let latent =
            (0..LATENT).map(|at| posterior.means[at] + posterior.deviations[at] * noise[at]);
        let state = State {
            hidden: recurrence.hidden.clone(),
            latent: latent.collect(),
        };
        let both = state.both();
        Step {
            decoded: self.decoder.apply(parameters, &both),
            factors: self.head.apply(parameters, &both),
            state,
            recurrence,
            prior,
            posterior,
            seen,
        }
    }

    /// The gradient of the losses of consecutive steps. `of_factors` is that of each step's error of factors.
    pub fn gradient(&self, parameters: &[f64], steps: &[Step], told: &[Told<'_>]) -> Vec<f64> {
        let mut gradient = vec![0.0; parameters.len()];
        let mut of_next = State::default();
        for (step, told) in steps.iter().zip(told).rev() {
            of_next = self.backward(parameters, step, told, of_next, &mut gradient);
        }
        gradient
    }

    fn backward(
        &self,
        parameters: &[f64],
        step: &Step,
        told: &Told<'_>,
        of_state: State,
        gradient: &mut [f64],
    ) -> State {
        let both = step.state.both();
        let misses = step.decoded.iter().zip(told.features);
        let misses: Vec<f64> = misses.map(|(decoded, seen)| decoded - seen).collect();
        let mut of_both = of_state.both();
        for (map, of_output) in [
            (self.decoder, misses.as_slice()),
            (self.head, told.of_factors),
        ] {
            let more = map.backward(parameters, &both, of_output, gradient);
            add(&mut of_both, &more);
        }
        // `both` is the latent state, and then the hidden one.
        let (of_latent, of_hidden) = of_both.split_at(LATENT);
        let mut of_hidden = of_hidden.to_vec();
        let (of_prior, of_posterior) = step.divergence_gradients(of_latent, told.noise);
        let inputs = [
            (self.prior, &step.state.hidden, of_prior),
            (self.posterior, &step.seen, of_posterior),
        ];
        for (map, input, of_output) in inputs {
            let more = map.backward(parameters, input, &of_output, gradient);
            add(&mut of_hidden, &more);
        }
        self.recur_backward(parameters, &step.recurrence, &of_hidden, gradient)
    }

    fn recur_backward(
        &self,
        parameters: &[f64],
        step: &Recurrence,
        of_hidden: &[f64],
        gradient: &mut [f64],
    ) -> State {
        let before = &step.input[LATENT..];
        let of_candidate: Vec<f64> = (0..HIDDEN)
            .map(|at| {
                let slope = 1.0 - step.candidate[at] * step.candidate[at];
                of_hidden[at] * (1.0 - step.update[at]) * slope
            })
            .collect();
        let of_update: Vec<f64> = (0..HIDDEN)
            .map(|at| {
                let slope = step.update[at] * (1.0 - step.update[at]);
                of_hidden[at] * (before[at] - step.candidate[at]) * slope
            })
            .collect();
        let of_damped = self
            .candidate
            .backward(parameters, &step.damped, &of_candidate, gradient);
        let of_reset: Vec<f64> = (0..HIDDEN)
            .map(|at| {
                let slope = step.reset[at] * (1.0 - step.reset[at]);
                of_damped[LATENT + at] * before[at] * slope
            })
            .collect();
        let mut of_input = self
            .update
            .backward(parameters, &step.input, &of_update, gradient);
        let more = self
            .reset
            .backward(parameters, &step.input, &of_reset, gradient);
        add(&mut of_input, &more);
        for at in 0..LATENT {
            of_input[at] += of_damped[at];
        }
        for at in 0..HIDDEN {
            of_input[LATENT + at] +=
                of_hidden[at] * step.update[at] + of_damped[LATENT + at] * step.reset[at];
        }
        State {
            latent: of_input[..LATENT].to_vec(),
            hidden: of_input[LATENT..].to_vec(),
        }
    }
}

/// Both states.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct State {
    /// The deterministic one.
    pub hidden: Vec<f64>,
    /// The stochastic one.
    pub latent: Vec<f64>,
}

impl Default for State {
    fn default() -> Self {
        Self {
            hidden: vec![0.0; HIDDEN],
            latent: vec![0.0; LATENT],
        }
    }
}

impl State {
    fn both(&self) -> Vec<f64> {
        [self.latent.as_slice(), &self.hidden].concat()
    }
}

/// What a step is told about an update.
pub struct Told<'a> {
    /// Its features.
    pub features: &'a [f64],
    /// The noise of the stochastic state.
    pub noise: &'a [f64],
    /// The gradient of the error of the factors.
    pub of_factors: &'a [f64],
}

/// What a step computed.
#[derive(Debug)]
pub struct Step {
    /// The states after it.
    pub state: State,
    /// The factors that it would have predicted the update with.
    pub factors: Vec<f64>,
    decoded: Vec<f64>,
    recurrence: Recurrence,
    prior: Normal,
    posterior: Normal,
    seen: Vec<f64>,
}

impl Step {
    /// Half the squared error of the features, and the Kullback-Leibler divergence of the posterior from the prior.
    #[cfg(test)]
    pub fn loss(&self, features: &[f64]) -> f64 {
        let misses = self.decoded.iter().zip(features);
        let misses: f64 = misses.map(|(decoded, seen)| (decoded - seen).powi(2)).sum();
        let divergence: f64 = (0..LATENT)
            .map(|at| {
                let (p, q) = (self.prior.deviations[at], self.posterior.deviations[at]);
                let apart = self.posterior.means[at] - self.prior.means[at];
                libm::log(p / q) + (q * q + apart * apart) / (2.0 * p * p) - 0.5
            })
            .sum();
        0.5 * misses + divergence
    }

    /// The gradients with respect to the numbers that prior and posterior are made of.
    fn divergence_gradients(&self, of_latent: &[f64], noise: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut of_prior, mut of_posterior) = (vec![0.0; 2 * LATENT], vec![0.0; 2 * LATENT]);
        for at in 0..LATENT {
            let (p, q) = (self.prior.deviations[at], self.posterior.deviations[at]);
            let apart = self.posterior.means[at] - self.prior.means[at];
            of_posterior[at] = of_latent[at] + apart / (p * p);
            of_prior[at] = -apart / (p * p);
            let of_deviation = of_latent[at] * noise[at] - 1.0 / q + q / (p * p);
            of_posterior[LATENT + at] = of_deviation * self.posterior.slopes[at];
            let of_deviation = 1.0 / p - (q * q + apart * apart) / (p * p * p);
            of_prior[LATENT + at] = of_deviation * self.prior.slopes[at];
        }
        (of_prior, of_posterior)
    }
}

#[derive(Debug)]
struct Recurrence {
    hidden: Vec<f64>,
    /// The states before.
    input: Vec<f64>,
    damped: Vec<f64>,
    reset: Vec<f64>,
    update: Vec<f64>,
    candidate: Vec<f64>,
}

/// Independent normal distributions.
#[derive(Debug)]
struct Normal {
    means: Vec<f64>,
    deviations: Vec<f64>,
    /// How the deviations change with the numbers that they are made of.
    slopes: Vec<f64>,
}

impl Normal {
    fn of(numbers: Vec<f64>) -> Self {
        let (means, raw) = numbers.split_at(LATENT);
        let softplus = |x: f64| x.max(0.0) + libm::log1p(libm::exp(-x.abs()));
        Self {
            means: means.to_vec(),
            deviations: raw.iter().map(|x| softplus(*x) + MIN_DEVIATION).collect(),
            slopes: raw.iter().map(|x| sigmoid(*x)).collect(),
        }
    }
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + libm::exp(-x))
}

/// Adds each number to its sum.
fn add(sums: &mut [f64], more: &[f64]) {
    let pairs = sums.iter_mut().zip(more);
    pairs.for_each(|(sum, more)| *sum += more);
}
