//! NumPy's `.npz`: a zip archive of `.npy` files.

use std::io::{Seek, Write};

use npyz::{AutoSerialize, DType, Serialize, TypeWrite, WriterBuilder};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::WriteError;
use crate::tensors::{Dtype, NamedTensor, Tensors};

/// Writes tensors. `bf16` is refused: NumPy does not have this type.
pub fn npz(tensors: &Tensors, to: impl Write + Seek) -> Result<(), WriteError> {
    let mut archive = ZipWriter::new(to);
    for tensor in tensors {
        archive
            .start_file(format!("{}.npy", tensor.name()), options(tensor))
            .map_err(std::io::Error::from)?;
        array(tensor, &mut archive)?;
    }
    archive.finish().map_err(std::io::Error::from)?;
    Ok(())
}

/// Stored uncompressed, with 64-bit sizes if needed.
pub fn options(tensor: &NamedTensor) -> SimpleFileOptions {
    const HEADER: usize = 1 << 16;
    SimpleFileOptions::default()
        .compression_method(zip::CompressionMethod::Stored)
        .large_file(tensor.bytes().len() + HEADER > u32::MAX as usize)
}

fn array(tensor: &NamedTensor, to: &mut impl Write) -> Result<(), WriteError> {
    match tensor.dtype() {
        Dtype::F64 => values(tensor, to, f64::from_le_bytes),
        Dtype::F32 => values(tensor, to, f32::from_le_bytes),
        Dtype::F16 => values(tensor, to, Half),
        Dtype::I64 => values(tensor, to, i64::from_le_bytes),
        dtype => Err(WriteError::Dtype {
            format: "a NumPy archive",
            dtype,
        }),
    }
}

fn values<T: AutoSerialize, const N: usize>(
    tensor: &NamedTensor,
    to: &mut impl Write,
    value: impl Fn([u8; N]) -> T,
) -> Result<(), WriteError> {
    let shape: Vec<u64> = tensor.shape().iter().map(|size| *size as u64).collect();
    let mut writer = npyz::WriteOptions::new()
        .default_dtype()
        .shape(&shape)
        .writer(to)
        .begin_nd()?;
    let (values, _) = tensor.bytes().as_chunks::<N>();
    writer.extend(values.iter().map(|bytes| value(*bytes)))?;
    Ok(writer.finish()?)
}

/// A 16-bit float in bytes: the feature of `npyz` for them would enable features of `half` that Burn does not use.
struct Half([u8; 2]);

/// Writes them.
struct HalfWriter;

impl TypeWrite for HalfWriter {
    type Value = Half;

    fn write_one<W: Write>(&self, mut to: W, value: &Half) -> std::io::Result<()> {
        to.write_all(&value.0)
    }
}

impl Serialize for Half {
    type TypeWriter = HalfWriter;

    fn writer(_: &DType) -> Result<HalfWriter, npyz::DTypeError> {
        Ok(HalfWriter)
    }
}

impl AutoSerialize for Half {
    fn default_dtype() -> DType {
        DType::Plain("<f2".parse().expect("it is a type of NumPy's"))
    }
}
