//! How far the saved weights of two runs are apart.

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::TensorData;

use super::paths::Paths;
use super::saved::Saved;
use crate::plan::RunPlan;
use crate::reproduce::ulp;

/// The largest distance of each parameter's values between two files of weights, in units in the last place
/// of the parameter's largest value: sums in another order differ by a few of those. Infinite for a
/// parameter that one file lacks or has in another shape. The error is a phrase.
pub fn weight_distances(
    then: &Path,
    now: &Path,
    plan: &RunPlan,
) -> Result<BTreeMap<String, f64>, String> {
    let mut now: BTreeMap<_, _> = Saved::read(now)?.tensors.into_iter().collect();
    let paths = Paths::new(plan);
    let mut distances = BTreeMap::new();
    for (path, a) in Saved::read(then)?.tensors {
        let distance = match now.remove(&path) {
            Some(b) if b.shape() == a.shape() => distance(&a, &b),
            _ => f64::INFINITY,
        };
        distances.insert(paths.of(&path), distance);
    }
    distances.extend(now.into_keys().map(|path| (path, f64::INFINITY)));
    Ok(distances)
}

fn distance(a: &TensorData, b: &TensorData) -> f64 {
    let largest = a
        .iter::<f64>()
        .fold(0.0, |largest: f64, value| largest.max(value.abs()));
    let pairs = a.iter::<f64>().zip(b.iter::<f64>());
    let far = pairs.map(|(a, b)| if a == b { 0.0 } else { (a - b).abs() });
    // `max` would pass over what is no number.
    let far = far.fold(0.0, |far: f64, next| match next.is_nan() {
        true => f64::INFINITY,
        false => far.max(next),
    });
    far / ulp(largest)
}
