//! The digest of a network's weights: equal digest, same numbers.

use burn::module::{Module, ModuleVisitor, Param};
use burn::tensor::Tensor;
use sha2::{Digest, Sha256};

use super::network::Network;
use crate::data::hex;

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
