//! The distance of the saved weights of two runs.

use std::collections::BTreeMap;
use std::path::Path;

use burn::tensor::TensorData;

use super::saved;
use runner_core::diagnostic::Reason;
use runner_core::plan::RunPlan;
use runner_core::reproduce::WeightDistance;
use runner_network::paths::Paths;

/// The distance of each parameter in two files of weights, in the order of the first one's network, followed by those
/// that it lacks. Each file belongs to its plan.
pub fn weight_distances(
    then: (&Path, &RunPlan),
    now: (&Path, &RunPlan),
) -> Result<Vec<WeightDistance>, Reason> {
    let read = |(file, plan): (&Path, &RunPlan)| -> Result<Vec<(String, TensorData)>, Reason> {
        let paths = Paths::new(plan);
        let tensors = saved::read(file)?.tensors.into_iter();
        Ok(tensors
            .map(|(path, data)| (paths.of(&path), data))
            .collect())
    };
    let mut now: BTreeMap<_, _> = read(now)?.into_iter().collect();
    let mut distances = Vec::new();
    for (path, a) in read(then)? {
        distances.push(match now.remove(&path) {
            Some(b) if b.shape() == a.shape() => {
                let pairs = a.iter::<f64>().zip(b.iter::<f64>());
                WeightDistance::of(path, a.shape(), pairs)
            }
            b => {
                let shapes = [Some(a.shape().to_vec()), b.map(|b| b.shape().to_vec())];
                WeightDistance::apart(path, shapes)
            }
        });
    }
    let more = now.into_iter();
    distances.extend(
        more.map(|(path, b)| WeightDistance::apart(path, [None, Some(b.shape().to_vec())])),
    );
    let order = then.1.network.parameter_paths();
    let place = |path: &String| order.iter().position(|other| other == path);
    distances
        .sort_by_key(|distance: &WeightDistance| place(&distance.parameter).unwrap_or(order.len()));
    Ok(distances)
}
