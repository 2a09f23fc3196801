//! The tensors of an ONNX file, and of its external data files.

use std::io::{Read as _, Seek, SeekFrom};
use std::path::{Component, Path};

use runner_core::show::plain_io_error;
use runner_core::spec::plain_file;

use super::constant::{Constant, Values};
use super::refused::Read;
use crate::onnx::messages::TensorProto;
use crate::onnx::messages::tensor_proto::{DataLocation, DataType};

/// The constant of a tensor. Values in other files are read only from inside `folder`.
pub fn constant(tensor: &TensorProto, folder: Option<&Path>) -> Read<Constant> {
    let sizes = tensor.dims.iter().map(|size| usize::try_from(*size).ok());
    let shape: Option<Vec<usize>> = sizes.collect();
    let shape = shape.ok_or_else(|| "it has a negative size".to_owned())?;
    let num = shape
        .iter()
        .try_fold(1_usize, |num, size| num.checked_mul(*size));
    let kind = DataType::try_from(tensor.data_type.unwrap_or(0)).unwrap_or(DataType::Undefined);
    let Some((num, wanted)) = num.and_then(|num| Some((num, num.checked_mul(width(kind)?)?)))
    else {
        return Err(match width(kind) {
            None => format!(
                "its values are of type {}, which is not supported",
                kind.as_str_name()
            ),
            Some(_) => format!("its shape {shape:?} is larger than any memory"),
        }
        .into());
    };
    let read = if is_external(tensor) {
        Some(external(tensor, folder, wanted)?)
    } else {
        None
    };
    let values = match read.as_deref().or(tensor.raw_data.as_deref()) {
        Some(raw) if raw.len() != wanted => {
            return Err(format!(
                "its shape {shape:?} needs {wanted} bytes, found {}",
                raw.len()
            )
            .into());
        }
        Some(raw) => of_bytes(kind, raw),
        None => of_fields(kind, tensor),
    };
    if values.len() == num {
        Ok(Constant { shape, values })
    } else {
        Err(format!(
            "its shape {shape:?} needs {num} values, found {}",
            values.len()
        )
        .into())
    }
}

fn is_external(tensor: &TensorProto) -> bool {
    tensor.data_location == Some(DataLocation::External as i32)
}

fn entry<'a>(tensor: &'a TensorProto, key: &str) -> Option<&'a str> {
    let mut entries = tensor.external_data.iter();
    let entry = entries.find(|entry| entry.key.as_deref() == Some(key))?;
    entry.value.as_deref()
}

/// The file that the values of a tensor are in, if it is another one.
pub fn location(tensor: &TensorProto) -> Option<&str> {
    entry(tensor, "location").filter(|_| is_external(tensor))
}

/// Bytes of a value.
fn width(kind: DataType) -> Option<usize> {
    Some(match kind {
        DataType::Float | DataType::Int32 | DataType::Uint32 => 4,
        DataType::Double | DataType::Int64 | DataType::Uint64 => 8,
        DataType::Float16 | DataType::Bfloat16 | DataType::Int16 | DataType::Uint16 => 2,
        DataType::Bool | DataType::Int8 | DataType::Uint8 => 1,
        _ => return None,
    })
}

fn of_bytes(kind: DataType, raw: &[u8]) -> Values {
    macro_rules! each {
        ($type:ty, $into:ident, $size:literal, $as:ty) => {
            Values::$into(std::rc::Rc::new(
                raw.chunks_exact($size)
                    .map(|bytes| <$type>::from_le_bytes(std::array::from_fn(|at| bytes[at])) as $as)
                    .collect(),
            ))
        };
    }
    let half = |convert: fn(u16) -> f32| {
        let words = raw
            .chunks_exact(2)
            .map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        Values::Floats(std::rc::Rc::new(words.map(convert).collect()))
    };
    match kind {
        DataType::Float => each!(f32, Floats, 4, f32),
        DataType::Double => each!(f64, Floats, 8, f32),
        DataType::Int64 => each!(i64, Integers, 8, i64),
        DataType::Uint64 => each!(u64, Integers, 8, i64),
        DataType::Int32 => each!(i32, Integers, 4, i64),
        DataType::Uint32 => each!(u32, Integers, 4, i64),
        DataType::Int16 => each!(i16, Integers, 2, i64),
        DataType::Uint16 => each!(u16, Integers, 2, i64),
        DataType::Int8 => each!(i8, Integers, 1, i64),
        DataType::Float16 => half(|bits| half::f16::from_bits(bits).to_f32()),
        DataType::Bfloat16 => half(|bits| half::bf16::from_bits(bits).to_f32()),
        _ => each!(u8, Integers, 1, i64),
    }
}

fn of_fields(kind: DataType, tensor: &TensorProto) -> Values {
    let floats = |values: Vec<f32>| Values::Floats(std::rc::Rc::new(values));
    let words = |convert: fn(u16) -> f32| {
        let words = tensor.int32_data.iter().map(|word| *word as u16);
        floats(words.map(convert).collect())
    };
    match kind {
        DataType::Float => floats(tensor.float_data.clone()),
        DataType::Double => floats(
            tensor
                .double_data
                .iter()
                .map(|value| *value as f32)
                .collect(),
        ),
        DataType::Float16 => words(|bits| half::f16::from_bits(bits).to_f32()),
        DataType::Bfloat16 => words(|bits| half::bf16::from_bits(bits).to_f32()),
        DataType::Int64 => Values::Integers(std::rc::Rc::new(tensor.int64_data.clone())),
        DataType::Uint64 | DataType::Uint32 => {
            let values = tensor.uint64_data.iter().map(|value| *value as i64);
            Values::Integers(std::rc::Rc::new(values.collect()))
        }
        _ => {
            let values = tensor.int32_data.iter().map(|value| i64::from(*value));
            Values::Integers(std::rc::Rc::new(values.collect()))
        }
    }
}

/// Values in a file next to that of the graph.
fn external(tensor: &TensorProto, folder: Option<&Path>, wanted: usize) -> Read<Vec<u8>> {
    let (Some(folder), Some(place)) = (folder, location(tensor)) else {
        return Err("its values are in an external file without a name".into());
    };
    let outside =
        || format!("its values are in `{place}`, which is outside the folder of the file");
    // `./` and `sub/../` stay inside.
    let mut depth = 0_usize;
    for part in Path::new(place).components() {
        let below = match part {
            Component::Normal(_) => depth.checked_add(1),
            Component::CurDir => Some(depth),
            Component::ParentDir => depth.checked_sub(1),
            Component::RootDir | Component::Prefix(_) => None,
        };
        depth = below.ok_or_else(outside)?;
    }
    if place.contains('\\') {
        return Err(outside().into());
    }
    let folder = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let path = folder.join(place);
    let unreadable = |e: std::io::Error| {
        format!(
            "its values are in `{place}`, which cannot be read: {}",
            plain_io_error(&e)
        )
    };
    // A link may lead elsewhere.
    let real = std::fs::canonicalize(&path).map_err(unreadable)?;
    if !real.starts_with(std::fs::canonicalize(folder).map_err(unreadable)?) {
        return Err(outside().into());
    }
    let number =
        |key: &str| entry(tensor, key).map_or(Ok(None), |text| text.parse::<u64>().map(Some));
    let (Ok(offset), Ok(length)) = (number("offset"), number("length")) else {
        return Err(format!("its offset in `{place}` is not a number of bytes").into());
    };
    let mut file = plain_file::open(&real).map_err(unreadable)?;
    let size = file.metadata().map_err(unreadable)?.len();
    let offset = offset.unwrap_or(0);
    let rest = size.saturating_sub(offset);
    if let Some(length) = length.filter(|length| *length != wanted as u64) {
        return Err(format!(
            "its values need {wanted} bytes, but its `length` in `{place}` is {length}"
        )
        .into());
    }
    if rest < wanted as u64 {
        return Err(
            format!("its values need {wanted} bytes of `{place}`, which has {rest} there").into(),
        );
    }
    let mut bytes = vec![0; wanted];
    file.seek(SeekFrom::Start(offset)).map_err(unreadable)?;
    file.read_exact(&mut bytes).map_err(unreadable)?;
    Ok(bytes)
}
