//! Digests of weights: equal digest, same numbers.

use std::path::Path;

use burn::tensor::TensorData;
use sha2::{Digest, Sha256};

use super::saved::Saved;
use super::shared::SharedNetwork;
use runner_core::data::hex;
use runner_core::diagnostic::Reason;
use runner_core::record::OPTIMIZER;
use runner_network::leaves;
use runner_network::network::Network;
use runner_network::paths::Paths;

/// Hexadecimal digits of a parameter's digest.
const DIGITS: usize = 16;

/// sha256 over path, shape and bytes of each parameter in order.
pub fn weights_digest(network: &Network) -> String {
    let mut sha256 = Sha256::new();
    leaves::each(network, |leaf| {
        sha256.update(leaf.path);
        update(&mut sha256, &leaf.values());
    });
    hex(&sha256.finalize())
}

/// The path of a parameter that contains infinity or NaN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoNumber(pub String);

/// Path in the experiment file and digest of each parameter in order; those of each copy follow under its name, such as `ema`. The
/// error is the path of the first parameter that contains an infinity or NaN: layers that are not used, or for which a
/// device computes a finite number, would hide it from the loss.
pub fn parameter_digests(
    network: &SharedNetwork,
    paths: &Paths,
) -> Result<Vec<(String, String)>, NoNumber> {
    let mut not_finite = None;
    let mut of = |network: &Network, prefix: &str| {
        let mut found = Vec::new();
        leaves::each(network, |leaf| {
            let path = format!("{prefix}{}", paths.of(leaf.path));
            let data = leaf.values();
            if not_finite.is_none() && !is_finite(&data) {
                not_finite = Some(path.clone());
            }
            found.push((path, digest(&data)));
        });
        found
    };
    let mut digests = network.look(|network| of(network, ""));
    for (name, copy) in network.copies() {
        digests.extend(of(&copy, &format!("{name}/")));
    }
    not_finite.map_or(Ok(digests), |path| Err(NoNumber(path)))
}

/// Path and digest of each tensor of a saved optimizer's state, such as `optimizer/hidden.weight/moment_1`; independent
/// of the ids that Burn assigns to parameters.
pub fn optimizer_digests(path: &Path, paths: &Paths) -> Result<Vec<(String, String)>, Reason> {
    let saved = Saved::read(path)?;
    let mut digests = Vec::new();
    for (name, data) in &saved.tensors {
        let (id, field) = name.split_once('.').unwrap_or((name, ""));
        let parameter = saved.metadata.get(id).map_or(id, String::as_str);
        let path = format!("{OPTIMIZER}{}/{field}", paths.of(parameter));
        digests.push((path, digest(data)));
    }
    digests.sort();
    Ok(digests)
}

/// Whether all values are finite.
pub fn is_finite(data: &TensorData) -> bool {
    match data.as_slice::<f32>() {
        Ok(values) => values.iter().all(|value| value.is_finite()),
        // Of other precisions.
        Err(_) => data.iter::<f64>().all(f64::is_finite),
    }
}

fn digest(data: &TensorData) -> String {
    let mut sha256 = Sha256::new();
    update(&mut sha256, data);
    hex(&sha256.finalize())[..DIGITS].to_owned()
}

fn update(sha256: &mut Sha256, data: &TensorData) {
    sha256.update(format!("{:?}{:?}", data.shape(), data.dtype()));
    sha256.update(data.as_bytes());
}
