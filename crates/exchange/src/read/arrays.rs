//! Safetensors and NumPy's `.npz`, through the readers of data.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use runner_core::data::DataError;
use runner_core::data::read::arrays::element::Element;
use runner_core::data::read::arrays::named::{Found, Visit};
use runner_core::data::read::arrays::{npz, safetensors as tensors};
use runner_core::spec::init::InitLayout;
use runner_core::spec::plain_file;
use runner_core::spec::section::Choice;
use serde::Deserialize;

use super::{Entry, Source, Take, damaged, unreadable};
use crate::tensors::{Dtype, NamedTensor};

/// Opens a file and lists its arrays.
pub type Open = fn(&Path, Visit<'_>) -> Result<(), DataError>;

/// Of safetensors.
pub const SAFETENSORS: Open = tensors::visit;
/// Of `.npz`.
pub const NPZ: Open = npz::visit;

/// The metadata key for the layout of a file.
const LAYOUT_KEY: &str = "layout";
/// The maximum size of a header, which is that of the format.
const MAX_HEADER: u64 = 100_000_000;

/// The arrays of a file.
pub fn open(path: &Path, open: Open) -> Result<(Vec<Entry>, Source), DataError> {
    let mut entries = Vec::new();
    open(path, &mut |found| {
        for Found { name, array } in found {
            let array = array?;
            entries.push(Entry {
                name,
                dtype: dtype(array.layout.element),
                shape: array.shape,
            });
        }
        Ok(())
    })?;
    Ok((entries, Source::Arrays(open)))
}

/// The metadata of a safetensors file.
pub fn about(path: &Path) -> Result<BTreeMap<String, String>, DataError> {
    use std::io::Read;
    let mut file = plain_file::open(path).map_err(|e| unreadable(path, &e))?;
    let mut head = Vec::new();
    let read = file.by_ref().take(8).read_to_end(&mut head);
    read.map_err(|e| unreadable(path, &e))?;
    let Ok(size) = <[u8; 8]>::try_from(head.as_slice()).map(u64::from_le_bytes) else {
        return Ok(BTreeMap::new());
    };
    // Problems with the header are reported when the tensors are listed.
    let read = file.take(size.min(MAX_HEADER)).read_to_end(&mut head);
    read.map_err(|e| unreadable(path, &e))?;
    let header: Header = serde_json::from_slice(&head[8..]).unwrap_or_default();
    Ok(header.metadata)
}

/// The header of a safetensors file. The library reads it only together with the values.
#[derive(Default, Deserialize)]
struct Header {
    #[serde(default, rename = "__metadata__")]
    metadata: BTreeMap<String, String>,
}

/// The layout of a safetensors file, according to its metadata.
pub fn layout(about: &BTreeMap<String, String>) -> InitLayout {
    let said = about.get(LAYOUT_KEY).map(String::as_str);
    let mut known = [InitLayout::Pytorch, InitLayout::Burn].into_iter();
    let found = known.find(|layout| said == Some(layout.name()));
    found.unwrap_or(InitLayout::Pytorch)
}

/// Reads the arrays with some names.
pub fn read(
    path: &Path,
    open: Open,
    wanted: &BTreeSet<&str>,
    take: Take<'_>,
) -> Result<(), DataError> {
    open(path, &mut |found| {
        for Found { name, array } in found {
            if !wanted.contains(name.as_str()) {
                continue;
            }
            let array = array?;
            let (shape, dtype) = (array.shape.clone(), dtype(array.layout.element));
            let tensor = NamedTensor::new(name, shape, dtype, array.into_bytes()?);
            take(tensor.map_err(|e| damaged(path, e))?)?;
        }
        Ok(())
    })
}

/// The type of values of an array.
pub(crate) fn dtype(element: Element) -> Dtype {
    match element {
        Element::Bool => Dtype::Bool,
        Element::BFloat16 => Dtype::Bf16,
        Element::Float(2) => Dtype::F16,
        Element::Float(4) => Dtype::F32,
        Element::Float(_) => Dtype::F64,
        Element::Signed(1) => Dtype::I8,
        Element::Signed(2) => Dtype::I16,
        Element::Signed(4) => Dtype::I32,
        Element::Signed(_) => Dtype::I64,
        Element::Unsigned(1) => Dtype::U8,
        Element::Unsigned(2) => Dtype::U16,
        Element::Unsigned(4) => Dtype::U32,
        Element::Unsigned(_) => Dtype::U64,
    }
}
