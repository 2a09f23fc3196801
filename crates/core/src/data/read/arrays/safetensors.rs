//! Safetensors: a header of names, types and shapes, then the tensors.

use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use safetensors::tensor::Dtype;
use safetensors::{SafeTensorError, SafeTensors};

use super::element::{Element, Layout};
use super::named::{Found, Visit};
use super::{Array, damaged, open_plain, show};
use crate::data::DataError;
use crate::data::read::unreadable;
use crate::disk::{self, Map};

/// Passes on the tensors of a file, in file order.
pub fn visit(path: &Path, visit: Visit<'_>) -> Result<(), DataError> {
    let place = show(path);
    let (file, len) = open_plain(path)?;
    if len == 0 {
        return Err(
            DataError::new(format!("{place} is empty")).help("create or copy the file again")
        );
    }
    // SAFETY: the file is only read; a user who truncates it in the meantime gets a bus error, as with every mapped
    // file.
    let map = unsafe { disk::map(&file) }.map_err(|e| unreadable(path, &e))?;
    let (header, metadata) = SafeTensors::read_metadata(&map).map_err(|e| wrong(&place, &e))?;
    let start = 8 + header;
    let map = Arc::new(map);
    let mut found = Vec::new();
    for name in metadata.offset_keys() {
        let Some(info) = metadata.info(&name) else {
            continue;
        };
        let place = format!("{place}, tensor `{name}`");
        let (from, to) = info.data_offsets;
        let array = element(info.dtype)
            .map(|element| Array {
                layout: Layout {
                    element,
                    big_endian: false,
                },
                shape: info.shape.clone(),
                data: Box::new(Mapped {
                    map: Arc::clone(&map),
                    range: start + from..start + to,
                }) as Box<dyn Read>,
                place: place.clone(),
            })
            .ok_or_else(|| {
                DataError::new(format!(
                    "{place} has values of type {}, which is not supported",
                    info.dtype
                ))
                .help("save it as F32, F64, F16, BF16, BOOL or integers")
            });
        found.push(Found { name, array });
    }
    visit(found)
}

/// A range of a mapped file.
struct Mapped {
    map: Arc<Map>,
    range: Range<usize>,
}

impl Read for Mapped {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut bytes = self.map.get(self.range.clone()).unwrap_or_default();
        let num = bytes.read(buffer)?;
        self.range.start += num;
        Ok(num)
    }
}

fn element(dtype: Dtype) -> Option<Element> {
    Some(match dtype {
        Dtype::BOOL => Element::Bool,
        Dtype::U8 => Element::Unsigned(1),
        Dtype::U16 => Element::Unsigned(2),
        Dtype::U32 => Element::Unsigned(4),
        Dtype::U64 => Element::Unsigned(8),
        Dtype::I8 => Element::Signed(1),
        Dtype::I16 => Element::Signed(2),
        Dtype::I32 => Element::Signed(4),
        Dtype::I64 => Element::Signed(8),
        Dtype::F16 => Element::Float(2),
        Dtype::BF16 => Element::BFloat16,
        Dtype::F32 => Element::Float(4),
        Dtype::F64 => Element::Float(8),
        _ => return None,
    })
}

fn wrong(place: &str, error: &SafeTensorError) -> DataError {
    let reason = match error {
        SafeTensorError::InvalidHeaderLength | SafeTensorError::HeaderTooSmall => {
            "it ends within its header".to_owned()
        }
        SafeTensorError::HeaderTooLarge => "its header is too long".to_owned(),
        SafeTensorError::InvalidHeader(_) | SafeTensorError::InvalidHeaderDeserialization(_) => {
            "it does not have a safetensors header".to_owned()
        }
        SafeTensorError::MetadataIncompleteBuffer => {
            "its length does not match its header".to_owned()
        }
        SafeTensorError::InvalidOffset(name) => {
            format!("the tensor `{name}` does not begin where the previous one ends")
        }
        SafeTensorError::TensorInvalidInfo | SafeTensorError::ValidationOverflow => {
            "the sizes of a tensor contradict each other".to_owned()
        }
        other => format!("{other}").to_lowercase(),
    };
    damaged(place, reason)
}
