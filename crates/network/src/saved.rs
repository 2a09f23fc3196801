//! The content of a Burn file of any kind.

use std::collections::BTreeMap;

use burn::tensor::TensorData;
use burn_pack::{Error, Reader};

use crate::digest::digest;
use crate::held;
use crate::paths::Paths;
use runner_core::record::OPTIMIZER;

/// The tensors of a file.
#[derive(Debug)]
pub struct Saved {
    /// The metadata of the file: for an optimizer, the path of each parameter's id.
    pub metadata: BTreeMap<String, String>,
    /// By name, in file order.
    pub tensors: Vec<(String, TensorData)>,
}

impl Saved {
    /// Reads all tensors, those in 8 bits as the numbers that they stand for.
    ///
    /// # Errors
    /// If the file is damaged.
    pub fn read(reader: Reader) -> Result<Self, Error> {
        let metadata = reader.metadata().clone();
        let tensors = reader.into_tensors()?.into_iter();
        let tensors = tensors.map(|tensor| {
            let (name, dtype, shape, _, bytes) = tensor.into_parts()?;
            let data = TensorData::from_bytes(bytes, shape, dtype);
            Ok((name, held::values(data)))
        });
        Ok(Self {
            tensors: tensors.collect::<Result<_, Error>>()?,
            metadata,
        })
    }

    /// Of the state of an optimizer, path and digest of each tensor, such as `optimizer/hidden.weight/moment_1`;
    /// independent of the ids that Burn assigns to parameters.
    pub fn optimizer_digests(&self, paths: &Paths) -> Vec<(String, String)> {
        let mut digests = Vec::new();
        for (name, data) in &self.tensors {
            let (id, field) = name.split_once('.').unwrap_or((name, ""));
            let parameter = self.metadata.get(id).map_or(id, String::as_str);
            let path = format!("{OPTIMIZER}{}/{field}", paths.of(parameter));
            digests.push((path, digest(data)));
        }
        digests.sort();
        digests
    }
}
