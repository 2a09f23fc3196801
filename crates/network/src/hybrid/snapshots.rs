//! Weights moved by differences of earlier ones, and restored.

use std::collections::BTreeSet;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::GradientsParams;
use burn::tensor::{Tensor, TensorReadError};

use crate::copies::{Collected, Part, Resume, instead_of};
use crate::network::Network;
use crate::numeric::total;
use runner_core::spec::backend::Arithmetic;

/// Weights plus the differences of consecutive snapshots, each times its factor. Numbers that are equal in all snapshots
/// are not changed, to the bit.
pub fn moved(network: Network, snapshots: &[Network], factors: &[f64]) -> Network {
    let snapshots = snapshots.iter();
    let snapshots = snapshots.map(|snapshot| weights(snapshot).found);
    network.map(&mut Mover {
        snapshots: snapshots.collect(),
        factors,
    })
}

/// A network with the weights of another one, and its own running statistics.
pub fn restored(network: Network, from: &Network) -> Network {
    network.map(&mut Resume(weights(from)))
}

/// All tensors of a network but running statistics.
fn weights(network: &Network) -> Collected<'static> {
    static NONE: BTreeSet<ParamId> = BTreeSet::new();
    Collected::of(network, Part::Weights, &NONE)
}

/// The inner products of each two differences between consecutive snapshots, row by row.
///
/// # Errors
/// The device's, if they cannot be read.
pub fn products(
    snapshots: &[Network],
    arithmetic: Arithmetic,
) -> Result<Vec<f64>, TensorReadError> {
    let num = snapshots.len().saturating_sub(1);
    let Some(first) = snapshots.first() else {
        return Ok(Vec::new());
    };
    let each = snapshots.iter();
    let each = each.map(|snapshot| weights(snapshot).found);
    let mut visitor = Products {
        snapshots: each.collect(),
        sums: vec![None; num * num],
        arithmetic,
    };
    first.visit(&mut visitor);
    let sums: Vec<Tensor<1>> = visitor.sums.into_iter().flatten().collect();
    if sums.is_empty() {
        return Ok(vec![0.0; num * num]);
    }
    Ok(Tensor::cat(sums, 0).try_into_data()?.iter().collect())
}

struct Products {
    snapshots: Vec<GradientsParams>,
    sums: Vec<Option<Tensor<1>>>,
    arithmetic: Arithmetic,
}

impl ModuleVisitor for Products {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let snapshots = self.snapshots.iter_mut();
        let values: Vec<Tensor<D>> = snapshots
            .filter_map(|snapshot| snapshot.remove::<D>(param.id))
            .collect();
        let pairs = values.windows(2);
        let differences: Vec<Tensor<D>> = pairs
            .map(|pair| pair[1].clone() - pair[0].clone())
            .collect();
        let num = differences.len();
        for row in 0..num {
            for column in row..num {
                let product = differences[row].clone() * differences[column].clone();
                let sum = total(self.arithmetic, product);
                let sum = match self.sums[row * num + column].take() {
                    Some(before) => before + sum,
                    None => sum,
                };
                self.sums[column * num + row] = Some(sum.clone());
                self.sums[row * num + column] = Some(sum);
            }
        }
    }
}

struct Mover<'a> {
    snapshots: Vec<GradientsParams>,
    factors: &'a [f64],
}

impl ModuleMapper for Mover<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let snapshots = self.snapshots.iter_mut();
        let values: Vec<Tensor<D>> = snapshots
            .filter_map(|snapshot| snapshot.remove::<D>(param.id))
            .collect();
        // Running statistics are not in the snapshots.
        if values.len() <= self.factors.len() || !param.is_require_grad() {
            return param;
        }
        let differences = values.windows(2).zip(self.factors);
        let update = differences
            .map(|(pair, factor)| (pair[1].clone() - pair[0].clone()).mul_scalar(*factor));
        let Some(update) = update.reduce(|sum, next| sum + next) else {
            return param;
        };
        param.map(|weights| {
            let moved = weights.clone().without_autodiff() + update;
            instead_of(&weights, moved)
        })
    }
}
