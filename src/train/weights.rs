//! The distributions of a run's saved weights, for those who look at how a training went.

use std::collections::BTreeMap;

use burn::tensor::TensorData;

use super::saved::Saved;
use super::training::INITIAL;
use runner_core::diagnostic::Reason;
use runner_core::plan::{FORMAT, RunPlan};
use runner_core::record::RunFolder;
use runner_core::record::weights::{MOST_PARAMETERS, ParameterValues, Weights};
use runner_network::paths::Paths;

/// What is looked at, in this order.
const SAVED: [&str; 3] = [INITIAL, "best", "final"];

/// The distributions of the weights that a run has saved, in the order of its network. Weights that are not in all of
/// the files, such as those under adapters, are left out.
pub fn distributions(folder: &RunFolder, plan: &RunPlan) -> Result<Weights, Reason> {
    let paths = Paths::new(plan);
    let there = SAVED.iter().filter(|name| folder.model(name).exists());
    let mut saved = Vec::new();
    let mut files: Vec<BTreeMap<String, TensorData>> = Vec::new();
    for name in there {
        let tensors = Saved::read(&folder.model(name))?.tensors.into_iter();
        let named = tensors.map(|(path, data)| (paths.of(&path), data));
        files.push(named.collect());
        saved.push((*name).to_owned());
    }
    let order = plan.network.parameter_paths();
    let place = |path: &String| order.iter().position(|other| other == path);
    let all = files.iter().flat_map(BTreeMap::keys);
    let mut names: Vec<&String> = all
        .filter(|name| files.iter().all(|file| file.contains_key(*name)))
        .collect();
    names.sort_by_key(|name| (place(name).unwrap_or(order.len()), *name));
    names.dedup();
    let num_more = names.len().saturating_sub(MOST_PARAMETERS);
    let parameters = names.into_iter().take(MOST_PARAMETERS);
    let parameters = parameters.map(|name| {
        let each: Vec<_> = files
            .iter()
            .map(|file| move || file[name].iter::<f64>())
            .collect();
        let shape = files[0][name].shape().to_vec();
        ParameterValues::of(name.clone(), shape, &each)
    });
    Ok(Weights {
        format: FORMAT,
        parameters: parameters.collect(),
        saved,
        num_more,
    })
}
