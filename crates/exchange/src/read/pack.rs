//! Burn's files, in which runs store their weights.

use std::collections::BTreeSet;
use std::path::Path;

use burn_pack::{DType, Reader};
use runner_core::data::DataError;
use runner_core::int8;

use super::{Entry, Source, Take, damaged};
use crate::tensors::{Dtype, NamedTensor};

/// Opens a file.
pub fn open(path: &Path) -> Result<(Vec<Entry>, Source), DataError> {
    let mut entries = Vec::new();
    each(path, &mut |tensor| {
        entries.push(Entry {
            name: tensor.name.clone(),
            shape: tensor.shape.to_vec(),
            dtype: dtype(path, &tensor)?,
        });
        Ok(())
    })?;
    Ok((entries, Source::Pack))
}

/// Reads the tensors with some names.
pub fn read(path: &Path, wanted: &BTreeSet<&str>, take: Take<'_>) -> Result<(), DataError> {
    each(path, &mut |tensor| {
        if !wanted.contains(tensor.name.as_str()) {
            return Ok(());
        }
        let dtype = dtype(path, &tensor)?;
        let (name, of_burn, shape, _, bytes) = tensor.into_parts().map_err(|e| damaged(path, e))?;
        if matches!(of_burn, DType::QFloat(_)) {
            let sizes = <[usize; 2]>::try_from(&shape[..]).ok();
            let values = sizes.and_then(|sizes| int8::values_of_bytes(&bytes, sizes));
            let values =
                values.ok_or_else(|| damaged(path, format!("`{name}` has other bytes")))?;
            return take(NamedTensor::from_f32s(&name, shape.to_vec(), &values));
        }
        let tensor = NamedTensor::new(name, shape.to_vec(), dtype, bytes.to_vec());
        take(tensor.map_err(|e| damaged(path, e))?)
    })
}

fn each(
    path: &Path,
    see: &mut dyn FnMut(burn_pack::Tensor) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let wrong =
        |e: burn_pack::Error| damaged(path, e).help("copy it again, or train the run again");
    let reader = Reader::from_file_exact(path).map_err(wrong)?;
    reader
        .into_tensors()
        .map_err(wrong)?
        .into_iter()
        .try_for_each(see)
}

fn dtype(path: &Path, tensor: &burn_pack::Tensor) -> Result<Dtype, DataError> {
    if matches!(tensor.dtype, DType::QFloat(_)) {
        return Ok(Dtype::F32);
    }
    let name = format!("{:?}", tensor.dtype).to_ascii_lowercase();
    Dtype::of_burn(tensor.dtype)
        .ok_or_else(|| damaged(path, format!("`{}` is of type {name}", tensor.name)))
}
