//! The content of a Burn file of any kind.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

use burn::tensor::TensorData;
use burn_pack::Reader;

use runner_core::diagnostic::Reason;
use runner_core::spec::plain_file;

/// The tensors of a file.
pub struct Saved {
    /// The metadata of the file: for an optimizer, the path of each parameter's id.
    pub metadata: BTreeMap<String, String>,
    /// By name, in file order.
    pub tensors: Vec<(String, TensorData)>,
}

impl Saved {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, Reason> {
        let unreadable =
            |e: &dyn Display| Reason(format!("{} cannot be read: {e}", path.display()));
        let wrong = |e: burn_pack::Error| unreadable(&e);
        // Opening a pipe in its place would block.
        plain_file::open(path).map_err(|e| unreadable(&e))?;
        let reader = Reader::from_file(path).map_err(wrong)?;
        let metadata = reader.metadata().clone();
        let tensors = reader.into_tensors().map_err(wrong)?.into_iter();
        let tensors = tensors.map(|tensor| {
            let (name, dtype, shape, _, bytes) = tensor.into_parts().map_err(wrong)?;
            Ok((name, TensorData::from_bytes(bytes, shape, dtype)))
        });
        Ok(Self {
            tensors: tensors.collect::<Result<_, Reason>>()?,
            metadata,
        })
    }
}
