//! safetensors (<https://huggingface.co/docs/safetensors>).

use std::borrow::Cow;
use std::io::{self, Write};

use super::WriteError;
use crate::tensors::{Dtype, NamedTensor, Tensors};

/// A tensor as the library expects it.
struct View<'a>(&'a NamedTensor);

impl safetensors::View for View<'_> {
    fn dtype(&self) -> safetensors::Dtype {
        match self.0.dtype() {
            Dtype::F64 => safetensors::Dtype::F64,
            Dtype::F32 => safetensors::Dtype::F32,
            Dtype::F16 => safetensors::Dtype::F16,
            Dtype::Bf16 => safetensors::Dtype::BF16,
            Dtype::I64 => safetensors::Dtype::I64,
            Dtype::I32 => safetensors::Dtype::I32,
            Dtype::I16 => safetensors::Dtype::I16,
            Dtype::I8 => safetensors::Dtype::I8,
            Dtype::U64 => safetensors::Dtype::U64,
            Dtype::U32 => safetensors::Dtype::U32,
            Dtype::U16 => safetensors::Dtype::U16,
            Dtype::U8 => safetensors::Dtype::U8,
            Dtype::Bool => safetensors::Dtype::BOOL,
        }
    }

    fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.0.bytes())
    }

    fn data_len(&self) -> usize {
        self.0.bytes().len()
    }
}

/// Writes tensors. The metadata says that the format is PyTorch's, which readers such as transformers require.
pub fn safetensors(tensors: &Tensors, to: impl Write) -> Result<(), WriteError> {
    safetensors_about(tensors, ("format", "pt"), to)
}

/// Writes tensors with an entry of metadata: the library writes several in a random order.
pub fn safetensors_about(
    tensors: &Tensors,
    (key, value): (&str, &str),
    mut to: impl Write,
) -> Result<(), WriteError> {
    let views = tensors.iter().map(|tensor| (tensor.name(), View(tensor)));
    #[expect(
        clippy::disallowed_types,
        reason = "what the library takes; of one entry"
    )]
    let about = std::collections::HashMap::from([(key.to_owned(), value.to_owned())]);
    let bytes = safetensors::serialize(views, Some(about)).map_err(io::Error::other)?;
    Ok(to.write_all(&bytes)?)
}
