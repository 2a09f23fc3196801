//! NumPy's `.npy`: a magic number, a header that is a Python literal, and values.

use std::io::{BufReader, Read};
use std::path::Path;

use npyz::{DType, Endianness, NpyHeader, Order, TypeChar};

use super::element::{Element, Layout};
use super::{Array, damaged, open_plain, show, wrong_length};
use crate::data::DataError;
use crate::show::plain_io_error;

/// The longest accepted header; NumPy itself stops at 10,000 characters.
const MAX_HEADER: usize = 1 << 16;
/// Nesting depth of brackets in a header; parsing takes time and stack by depth.
const MAX_DEPTH: usize = 8;

/// The content of a header.
pub struct Header {
    /// How values are stored.
    pub layout: Layout,
    /// Its sizes.
    pub shape: Vec<usize>,
    /// Its raw bytes.
    len: u64,
}

/// Opens a file, gzipped or not.
pub fn open(path: &Path, _is_target: bool) -> Result<Array<'static>, DataError> {
    let place = show(path);
    if path.extension().is_some_and(|e| e == "gz") {
        let mut data = crate::data::read::open(path)?;
        let Header { layout, shape, .. } = header(&mut data, &place)?;
        return Ok(Array {
            place,
            layout,
            shape,
            data,
        });
    }
    let (file, len) = open_plain(path)?;
    let mut data = BufReader::with_capacity(1 << 18, file);
    let header = header(&mut data, &place)?;
    let array = Array {
        place,
        layout: header.layout,
        shape: header.shape,
        data: Box::new(data),
    };
    array.check_length(len - header.len)?;
    Ok(array)
}

/// Reads the header of an array, leaving the reader at its values.
pub fn header(reader: &mut dyn Read, place: &str) -> Result<Header, DataError> {
    let mut bytes = Vec::new();
    more(reader, place, &mut bytes, 8)?;
    if bytes.starts_with(b"PK\x03\x04") {
        return Err(DataError::new(format!("{place} is an archive of arrays"))
            .help("set `type = \"npz\"` and select its arrays"));
    }
    if !bytes.starts_with(b"\x93NUMPY") {
        return Err(DataError::new(format!(
            "{place} is not a NumPy array: it begins with {:02x?}",
            &bytes[..6]
        ))
        .help("write the file with `np.save`"));
    }
    let size_bytes = if bytes[6] < 2 { 2 } else { 4 };
    more(reader, place, &mut bytes, size_bytes)?;
    let size = bytes[8..].iter().rev();
    let size = size.fold(0, |size: usize, byte| size << 8 | usize::from(*byte));
    if size > MAX_HEADER {
        return Err(damaged(
            place,
            format!("its header claims to be {size} bytes long"),
        ));
    }
    more(reader, place, &mut bytes, size)?;
    check_text(&bytes[8 + size_bytes..]).map_err(|reason| damaged(place, reason))?;
    let header = NpyHeader::from_reader(bytes.as_slice())
        .map_err(|e| damaged(place, format!("its header cannot be parsed: {e}")))?;
    let size = |size: &u64| usize::try_from(*size).ok();
    let Some(shape) = header.shape().iter().map(size).collect::<Option<Vec<_>>>() else {
        return Err(wrong_length(place, None, None));
    };
    let has_one_order = shape.iter().filter(|size| **size > 1).count() < 2;
    if header.order() == Order::Fortran && !has_one_order {
        return Err(DataError::new(format!(
            "{place} is stored in column-major (Fortran) order, but only row-major (C) order is read"
        ))
        .help("save `np.ascontiguousarray(array)` instead of the array"));
    }
    Ok(Header {
        layout: layout(&header.dtype(), place)?,
        shape,
        len: bytes.len() as u64,
    })
}

/// Reads some bytes and keeps them.
fn more(
    reader: &mut dyn Read,
    place: &str,
    bytes: &mut Vec<u8>,
    num: usize,
) -> Result<(), DataError> {
    let expected = bytes.len() + num;
    let result = reader.take(num as u64).read_to_end(bytes);
    match result {
        Err(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => {
            Err(damaged(place, plain_io_error(&e)))
        }
        _ if bytes.is_empty() => {
            Err(DataError::new(format!("{place} is empty")).help("create or copy the file again"))
        }
        _ if bytes.len() < expected => Err(DataError::new(format!(
            "{place} is truncated: it ends within its header"
        ))
        .help("create or copy the file again")),
        _ => Ok(()),
    }
}

/// Refuses input that would take the header's parser too long or overflow its stack.
fn check_text(text: &[u8]) -> Result<(), &'static str> {
    let mut depth = 0_usize;
    for byte in text {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err("its header cannot be parsed");
        }
    }
    let numbers = text.split(|byte| !byte.is_ascii_digit());
    let mut product = 1_u64;
    for number in numbers.filter(|number| !number.is_empty()) {
        let number = std::str::from_utf8(number).unwrap_or_default().parse();
        let next = number
            .ok()
            .and_then(|number: u64| product.checked_mul(number.max(1)));
        product = next.ok_or("the number of values in its header overflows")?;
    }
    Ok(())
}

fn layout(dtype: &DType, place: &str) -> Result<Layout, DataError> {
    let element = match dtype {
        DType::Plain(plain) => {
            let size = plain.num_bytes().unwrap_or(0);
            match (plain.type_char(), size) {
                (TypeChar::Bool, 1) => Some(Element::Bool),
                (TypeChar::Int, 1 | 2 | 4 | 8) => Some(Element::Signed(size)),
                (TypeChar::Uint, 1 | 2 | 4 | 8) => Some(Element::Unsigned(size)),
                (TypeChar::Float, 2 | 4 | 8) => Some(Element::Float(size)),
                _ => None,
            }
            .map(|element| Layout {
                element,
                big_endian: plain.endianness() == Endianness::Big,
            })
        }
        _ => None,
    };
    element.ok_or_else(|| {
        DataError::new(format!("{place} has values of type {}, which are not supported numbers", dtype.descr()))
            .help("save it as numbers, for example with `array.astype(np.float32)`; class names as integers from 0")
    })
}
