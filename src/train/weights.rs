//! The distributions of a run's saved weights, for those who look at how a training went.

use std::collections::BTreeMap;

use burn::tensor::TensorData;

use super::saved;
use super::training::INITIAL;
use runner_core::diagnostic::Reason;
use runner_core::plan::{FORMAT, RunPlan};
use runner_core::record::RunFolder;
use runner_core::record::weights::{
    Distribution, MOST_PARAMETERS, ParameterValues, Weights, range, wider,
};
use runner_network::paths::Paths;

/// What is looked at, in this order.
const SAVED: [&str; 3] = [INITIAL, "best", "final"];

/// A parameter over the files that were read.
struct Found {
    num_files: usize,
    shape: Vec<usize>,
    range: Option<(f64, f64)>,
}

/// The distributions of the weights that a run has saved, in the order of its network. Weights that are not in all of
/// the files, such as those under adapters, are left out.
///
/// Reads each file twice, for the ranges and for the counts, so that no two are in memory at a time.
pub fn distributions(folder: &RunFolder, plan: &RunPlan) -> Result<Weights, Reason> {
    let paths = Paths::new(plan);
    let read = |name: &&str| -> Result<BTreeMap<String, TensorData>, Reason> {
        let tensors = saved::read(&folder.model(name))?.tensors.into_iter();
        let named = tensors.map(|(path, data)| (paths.of(&path), data));
        Ok(named.collect())
    };
    let there = SAVED.iter().filter(|name| folder.model(name).exists());
    let saved: Vec<&str> = there.copied().collect();

    let mut found = BTreeMap::new();
    for file in &saved {
        for (name, data) in read(file)? {
            let of = found.entry(name).or_insert_with(|| Found {
                num_files: 0,
                shape: data.shape().to_vec(),
                range: None,
            });
            of.num_files += 1;
            of.range = wider(of.range, range(data.iter::<f64>()));
        }
    }
    let order = plan.network.parameter_paths();
    let place = |path: &String| order.iter().position(|other| other == path);
    let everywhere = found
        .into_iter()
        .filter(|(_, of)| of.num_files == saved.len());
    let mut parameters: Vec<ParameterValues> = everywhere
        .map(|(name, of)| ParameterValues {
            name,
            shape: of.shape,
            range: of.range.unwrap_or_default(),
            values: Vec::new(),
        })
        .collect();
    parameters.sort_by_cached_key(|of| place(&of.name).unwrap_or(order.len()));
    let num_more = parameters.len().saturating_sub(MOST_PARAMETERS);
    parameters.truncate(MOST_PARAMETERS);

    for file in &saved {
        let tensors = read(file)?;
        for of in &mut parameters {
            let values = tensors[&of.name].iter::<f64>();
            of.values.push(Distribution::of(of.range, values));
        }
    }
    Ok(Weights {
        format: FORMAT,
        parameters,
        saved: saved.into_iter().map(str::to_owned).collect(),
        num_more,
    })
}
