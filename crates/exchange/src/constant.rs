//! Constant tensors of a network from files.

use std::collections::BTreeSet;
use std::path::Path;

use runner_core::data::DataError;
use runner_core::data::read::arrays::npy;
use runner_core::plan::constant::ConstantPlan;
use runner_core::plan::init::InitRefusal;
use runner_core::show::listed;
use runner_core::spec::model::layer::ConstantFile;
use runner_core::spec::plain_file;

use crate::init::{Digest, refusal, whole_digest};
use crate::read::{Format, Weights, damaged, dtype, unreadable};
use crate::tensors::NamedTensor;

/// Inspects the file of a constant of a shape; its path is relative to `base`.
///
/// # Errors
/// Why it cannot be used, at a key of the layer.
pub fn resolve(
    file: &ConstantFile,
    shape: &[usize],
    base: &Path,
    digest_of: Digest<'_>,
) -> Result<ConstantPlan, InitRefusal> {
    let path = base.join(&file.path);
    let path = std::path::absolute(&path).unwrap_or(path);
    let at = |key: &'static str| move |error: DataError| refusal(key, &error);
    let tensor = read(&path, file.array.as_deref()).map_err(|(key, error)| at(key)(error))?;
    if tensor.shape() != shape {
        let message = format!(
            "the constant has the shape {shape:?}, but the array in `{}` has {:?}",
            file.path,
            tensor.shape()
        );
        let help = format!("set `shape = {:?}`, or use another file", tensor.shape());
        return Err(at("shape")(DataError::new(message).help(help)));
    }
    let values = tensor.to_f64s();
    if let Some(number) = values.iter().position(|value| !value.is_finite()) {
        let message = format!(
            "`{}` cannot be used: its value {} is {}",
            file.path,
            number + 1,
            values[number]
        );
        let help = "replace infinite and missing values before the file is saved";
        return Err(at("path")(DataError::new(message).help(help)));
    }
    Ok(ConstantPlan {
        layer: 0,
        digest: digest_of(&path).map_err(at("path"))?,
        path,
        array: file.array.clone(),
    })
}

/// Whether the file of a constant is still there as it was planned.
pub fn is_unchanged(plan: &ConstantPlan) -> bool {
    whole_digest(&plan.path).is_ok_and(|digest| digest == plan.digest)
}

/// The values of a constant. The file must be the one used for planning.
///
/// # Errors
/// If it has changed or cannot be read.
pub fn load(plan: &ConstantPlan) -> Result<NamedTensor, DataError> {
    let place = plan.path.display();
    if whole_digest(&plan.path)? != plan.digest {
        let message = format!("`{place}` has changed since the run was planned");
        let help = "restore the original file, or plan the run again with `runner run`";
        return Err(DataError::new(message).help(help));
    }
    read(&plan.path, plan.array.as_deref()).map_err(|(_, error)| error)
}

/// The array of a file; errors are at a key of the layer.
fn read(path: &Path, array: Option<&str>) -> Result<NamedTensor, (&'static str, DataError)> {
    let at_path = |error: DataError| ("path", error);
    plain_file::open(path).map_err(|e| at_path(unreadable(path, &e)))?;
    let place = path.display();
    let extension = path.extension().and_then(|extension| extension.to_str());
    if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
        if array.is_some() {
            let message = format!("`{place}` has one array, which has no name");
            return Err(("array", DataError::new(message).help("remove `array`")));
        }
        return single(path).map_err(at_path);
    }
    if !matches!(Format::of(path), Some(Format::Npz | Format::Safetensors)) {
        let message = format!("`{place}` does not have the extension of a file of arrays");
        let help = "save the array as `.npy`, `.npz` or `.safetensors`";
        return Err(at_path(DataError::new(message).help(help)));
    }
    let weights = Weights::open(path, None).map_err(at_path)?;
    let names: Vec<&str> = weights.entries().iter().map(|entry| &*entry.name).collect();
    let name = match (array, names.as_slice()) {
        (None, [only]) => *only,
        (None, _) => {
            let message = format!("`{place}` has several arrays: {}", listed(&names));
            let help = format!("name one of them: `array = {:?}`", names[0]);
            return Err(at_path(DataError::new(message).help(help)));
        }
        (Some(name), _) if names.contains(&name) => name,
        (Some(name), _) => {
            let message = format!("`{place}` has no array `{name}`");
            let help = format!("its arrays are {}", listed(&names));
            return Err(("array", DataError::new(message).help(help)));
        }
    };
    let mut found = None;
    let read = weights.read(&BTreeSet::from([name]), &mut |tensor| {
        found = Some(tensor);
        Ok(())
    });
    read.map_err(at_path)?;
    found.ok_or_else(|| at_path(damaged(path, "the array is missing")))
}

/// The array of an `.npy` file.
fn single(path: &Path) -> Result<NamedTensor, DataError> {
    let array = npy::open(path, false)?;
    let (shape, dtype) = (array.shape.clone(), dtype(array.layout.element));
    let tensor = NamedTensor::new("constant", shape, dtype, array.into_bytes()?);
    tensor.map_err(|e| damaged(path, e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_changed_is_not_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        let head = br#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
        let bytes = |value: f32| {
            let length = (head.len() as u64).to_le_bytes();
            [length.as_slice(), head, &value.to_le_bytes()].concat()
        };
        std::fs::write(&path, bytes(2.5)).unwrap();
        let file = ConstantFile {
            path: "a.safetensors".into(),
            array: None,
        };
        let plan = resolve(&file, &[1], folder.path(), &mut whole_digest).unwrap();
        assert_eq!(load(&plan).unwrap().to_f32s(), [2.5]);
        std::fs::write(&path, bytes(2.0)).unwrap();
        let error = load(&plan).unwrap_err();
        assert!(error.to_string().contains("has changed"), "{error}");
    }
}
