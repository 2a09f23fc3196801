//! Burn's format.

use std::io::Write;

use burn_pack::{Bytes, DType, Shape, Tensor, Writer};

use super::ExportError;
use runner_exchange::tensors::{Dtype, Tensors};

/// Writes tensors.
pub fn write(tensors: &Tensors, to: &mut impl Write) -> Result<(), ExportError> {
    let packed = tensors.iter().map(|tensor| {
        let dtype = match tensor.dtype() {
            Dtype::F64 => DType::F64,
            Dtype::F16 => DType::F16,
            Dtype::Bf16 => DType::BF16,
            Dtype::F32 => DType::F32,
            other => unreachable!("weights are floats, not {other}"),
        };
        let bytes = Bytes::from_bytes_vec(tensor.bytes().to_vec());
        let shape = Shape::from(tensor.shape().to_vec());
        Tensor::new(tensor.name().to_owned(), dtype, shape, None, bytes)
    });
    let bytes = Writer::new(packed.collect()).into_bytes();
    let bytes = bytes.map_err(|e| ExportError::Format(e.to_string()))?;
    Ok(to.write_all(&bytes)?)
}
