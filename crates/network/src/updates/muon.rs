//! Muon (Jordan et al., 2024): updates of matrices whose singular values are all about 1.

use burn::optim::{Optimizer, RecordState};
use burn::tensor::{Device, Tensor};

use super::{Momentum, Velocity, decayed};
use crate::numeric::{matmul, total};
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::method::AdjustLearningRate;

/// The polynomial of a Newton-Schulz iteration, of Jordan: steepest at 0.
const COEFFICIENTS: [f64; 3] = [3.4445, -4.775, 2.0315];

/// Muon, for matrices.
#[derive(Clone, Debug)]
pub struct Muon {
    /// How gradients are summed.
    pub momentum: Momentum,
    /// Newton-Schulz iterations of an update.
    pub ns_steps: usize,
    /// The smallest norm that a gradient is divided by.
    pub epsilon: f64,
    /// How the rate depends on the shape of a matrix.
    pub adjust: AdjustLearningRate,
    /// Whether matrices are \[inputs, outputs\], as in linear layers; tables of embeddings are not.
    pub inputs_first: bool,
    /// The weight decay, decoupled.
    pub weight_decay: f64,
    /// How products of matrices are rounded.
    pub arithmetic: Arithmetic,
}

/// The sum of gradients.
#[derive(RecordState, Clone, Debug)]
pub struct MuonState<const D: usize> {
    momentum: Velocity<D>,
}

impl Muon {
    /// The factor of the rate for a matrix of this shape.
    pub(super) fn factor(&self, [rows, columns]: [usize; 2]) -> f64 {
        let (outputs, inputs) = if self.inputs_first {
            (columns as f64, rows as f64)
        } else {
            (rows as f64, columns as f64)
        };
        match self.adjust {
            AdjustLearningRate::Original => (outputs / inputs).max(1.0).sqrt(),
            AdjustLearningRate::MatchRmsAdamw => 0.2 * outputs.max(inputs).sqrt(),
        }
    }

    /// The matrix with its singular values replaced by about 1.
    fn orthogonal<const D: usize>(&self, matrix: Tensor<D>) -> Tensor<D> {
        let dims: [usize; D] = matrix.dims();
        let is_tall = dims[D - 2] > dims[D - 1];
        let turned = |matrix: Tensor<D>| matrix.swap_dims(D - 2, D - 1);
        let mut x = if is_tall { turned(matrix) } else { matrix };
        let norm = total(self.arithmetic, x.clone().square()).sqrt();
        x = x.div(norm.clamp_min(self.epsilon).unsqueeze());
        let [a, b, c] = COEFFICIENTS;
        for _ in 0..self.ns_steps {
            let product = |a: Tensor<D>, b: Tensor<D>| matmul(self.arithmetic, a, b);
            let gram = product(x.clone(), turned(x.clone()));
            let squared = product(gram.clone(), gram.clone());
            let factor = gram.mul_scalar(b).add(squared.mul_scalar(c));
            x = x.clone().mul_scalar(a).add(product(factor, x));
        }
        if is_tall { turned(x) } else { x }
    }
}

impl Optimizer for Muon {
    type State<const D: usize> = MuonState<D>;

    fn step<const D: usize>(
        &self,
        rate: f64,
        weights: Tensor<D>,
        gradient: Tensor<D>,
        state: Option<MuonState<D>>,
    ) -> (Tensor<D>, Option<MuonState<D>>) {
        let dims: [usize; D] = weights.dims();
        let &[rows, columns] = dims.as_slice() else {
            unreachable!("AdamW updates everything that is not a matrix");
        };
        let (update, momentum) = self
            .momentum
            .step(gradient, state.map(|state| state.momentum));
        let update = self.orthogonal(update);
        let weights = decayed(weights, rate * self.weight_decay);
        let weights = weights - update.mul_scalar(rate * self.factor([rows, columns]));
        (weights, Some(MuonState { momentum }))
    }

    fn to_device<const D: usize>(state: MuonState<D>, device: &Device) -> MuonState<D> {
        let velocity = state.momentum.velocity.to_device(device);
        let momentum = Velocity { velocity };
        MuonState { momentum }
    }
}
