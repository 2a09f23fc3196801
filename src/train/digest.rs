//! Digests of weights: equal digest, same numbers.

use std::path::Path;

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};
use burn_pack::Reader;
use sha2::{Digest, Sha256};

use super::network::Network;
use super::paths::Paths;
use super::shared::SharedNetwork;
use crate::data::hex;
use crate::record::OPTIMIZER;

/// Hexadecimal digits of a parameter's digest.
const DIGITS: usize = 16;

/// sha256 over path, shape and bytes of each parameter in order.
pub fn weights_digest(network: &Network) -> String {
    let mut visitor = Hasher {
        path: Vec::new(),
        sha256: Sha256::new(),
    };
    network.visit(&mut visitor);
    hex(&visitor.sha256.finalize())
}

struct Hasher {
    path: Vec<String>,
    sha256: Sha256,
}

impl ModuleVisitor for Hasher {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let data = param.val().into_data();
        self.sha256.update(self.path.join("."));
        self.sha256
            .update(format!("{:?}{:?}", data.shape(), data.dtype()));
        self.sha256.update(data.as_bytes());
    }
}

/// Path in the experiment file and digest of each parameter in order; those of a moving average follow
/// under `ema`.
pub fn parameter_digests(network: &SharedNetwork, paths: &Paths) -> Vec<(String, String)> {
    let of = |network: &Network, prefix: &str| {
        let mut visitor = Each {
            path: Vec::new(),
            found: Vec::new(),
        };
        network.visit(&mut visitor);
        let found = visitor.found.into_iter();
        found
            .map(|(path, digest)| (format!("{prefix}{}", paths.of(&path)), digest))
            .collect()
    };
    let mut digests: Vec<_> = network.look(|network| of(network, ""));
    if let Some(average) = network.average() {
        digests.extend(of(&average, "ema/"));
    }
    digests
}

/// Path and digest of each tensor of a saved optimizer's state, such as `optimizer/hidden.weight/moment_1`; whatever
/// the ids are that Burn gave to parameters.
pub fn optimizer_digests(path: &Path, paths: &Paths) -> Result<Vec<(String, String)>, String> {
    let reader = Reader::from_file(path).map_err(|e| e.to_string())?;
    let parameters = reader.metadata().clone();
    let mut digests = Vec::new();
    for tensor in reader.into_tensors().map_err(|e| e.to_string())? {
        let (name, dtype, shape, _, bytes) = tensor.into_parts().map_err(|e| e.to_string())?;
        let (id, field) = name.split_once('.').unwrap_or((&name, ""));
        let parameter = parameters.get(id).map_or(id, String::as_str);
        let parameter: Vec<_> = parameter.split('.').map(str::to_owned).collect();
        let data = TensorData::from_bytes(bytes, shape, dtype);
        digests.push((
            format!("{OPTIMIZER}{}/{field}", paths.of(&parameter)),
            digest(&data),
        ));
    }
    digests.sort();
    Ok(digests)
}

fn digest(data: &TensorData) -> String {
    let mut sha256 = Sha256::new();
    sha256.update(format!("{:?}{:?}", data.shape(), data.dtype()));
    sha256.update(data.as_bytes());
    hex(&sha256.finalize())[..DIGITS].to_owned()
}

struct Each {
    path: Vec<String>,
    found: Vec<(Vec<String>, String)>,
}

impl ModuleVisitor for Each {
    fn enter_module(&mut self, name: &str, _: &str) {
        self.path.push(name.to_owned());
    }

    fn exit_module(&mut self, _: &str, _: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let data = param.val().into_data();
        self.found.push((self.path.clone(), digest(&data)));
    }
}
