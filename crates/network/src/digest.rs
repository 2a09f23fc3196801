//! Digests of weights: equal digest, same numbers.

use burn::tensor::TensorData;
use sha2::{Digest, Sha256};

use crate::leaves;
use crate::network::Network;
use crate::paths::Paths;
use crate::trained::Trained;
use runner_core::hash::hex;

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
    trained: &Trained,
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
    let mut digests = of(trained.current(), "");
    for (name, copy) in trained.copies() {
        digests.extend(of(&copy, &format!("{name}/")));
    }
    not_finite.map_or(Ok(digests), |path| Err(NoNumber(path)))
}

/// Whether all values are finite.
pub fn is_finite(data: &TensorData) -> bool {
    match data.as_slice::<f32>() {
        Ok(values) => values.iter().all(|value| value.is_finite()),
        // Of other precisions.
        Err(_) => data.iter::<f64>().all(f64::is_finite),
    }
}

/// The digest of a tensor: of its shape, its type and its bytes.
pub fn digest(data: &TensorData) -> String {
    let mut sha256 = Sha256::new();
    update(&mut sha256, data);
    hex(&sha256.finalize())[..DIGITS].to_owned()
}

fn update(sha256: &mut Sha256, data: &TensorData) {
    sha256.update(format!("{:?}{:?}", data.shape(), data.dtype()));
    sha256.update(data.as_bytes());
}
