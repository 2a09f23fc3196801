//! The MNIST format. `data::idx` reads it; here it becomes columns.

use std::path::Path;

use super::element::{Element, Layout};
use super::{Array, open_plain, show};
use crate::data::DataError;
use crate::data::idx::{self, Type};

/// Opens a file, gzipped or not. Input items with two dimensions are images of one channel.
pub fn open(path: &Path, is_target: bool) -> Result<Array<'static>, DataError> {
    open_plain(path)?;
    let (header, data) = idx::open_any(path)?;
    let element = match header.values {
        Type::UnsignedByte => Element::Unsigned(1),
        Type::SignedByte => Element::Signed(1),
        Type::Short => Element::Signed(2),
        Type::Int => Element::Signed(4),
        Type::Float => Element::Float(4),
        Type::Double => Element::Float(8),
    };
    let mut shape = header.sizes;
    if !is_target && shape.len() == 3 {
        shape.insert(1, 1);
    }
    Ok(Array {
        place: show(path),
        layout: Layout {
            element,
            big_endian: true,
        },
        shape,
        data,
    })
}
