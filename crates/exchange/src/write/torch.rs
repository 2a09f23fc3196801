//! PyTorch's `.pt`: a zip archive of a pickle and a file for each tensor's bytes.
//!
//! The pickle is that of an `OrderedDict` of tensors, always with the same structure: it consists only of the
//! operations below, which `torch.load(weights_only=True)` supports.

use std::io::{self, Seek, Write};

use zip::ZipWriter;

use super::WriteError;
use super::npz::options;
use crate::tensors::{Dtype, NamedTensor, Tensors};

/// Operations of pickles (Python's `pickletools` lists them).
mod op {
    pub const PROTOCOL_2: &[u8] = &[0x80, 2];
    pub const GLOBAL: u8 = b'c';
    pub const EMPTY_TUPLE: u8 = b')';
    pub const REDUCE: u8 = b'R';
    pub const MARK: u8 = b'(';
    pub const TUPLE: u8 = b't';
    pub const TEXT: u8 = b'X';
    pub const LONG1: u8 = 0x8a;
    pub const FALSE: u8 = 0x89;
    pub const PERSISTENT_ID: u8 = b'Q';
    pub const SET_ITEMS: u8 = b'u';
    pub const STOP: u8 = b'.';
}

/// The folder inside the archive.
const FOLDER: &str = "weights";

/// Writes tensors as a state dict.
pub fn torch(tensors: &Tensors, to: impl Write + Seek) -> Result<(), WriteError> {
    let mut archive = ZipWriter::new(to);
    let small =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    let mut file = |name: &str, bytes: &[u8]| {
        archive
            .start_file(format!("{FOLDER}/{name}"), small)
            .map_err(io::Error::from)?;
        archive.write_all(bytes)
    };
    file("data.pkl", &pickle(tensors)?)?;
    file("byteorder", b"little")?;
    for (number, tensor) in tensors.iter().enumerate() {
        let name = format!("{FOLDER}/data/{number}");
        archive
            .start_file(name, options(tensor))
            .map_err(io::Error::from)?;
        archive.write_all(tensor.bytes())?;
    }
    archive
        .start_file(format!("{FOLDER}/version"), small)
        .map_err(io::Error::from)?;
    archive.write_all(b"3\n")?;
    archive.finish().map_err(io::Error::from)?;
    Ok(())
}

fn pickle(tensors: &Tensors) -> Result<Vec<u8>, WriteError> {
    let mut pickle = Pickle(op::PROTOCOL_2.to_vec());
    pickle.ordered_dict();
    pickle.0.push(op::MARK);
    for (number, tensor) in tensors.iter().enumerate() {
        pickle.text(tensor.name());
        pickle.tensor(number, tensor)?;
    }
    pickle.0.push(op::SET_ITEMS);
    pickle.0.push(op::STOP);
    Ok(pickle.0)
}

struct Pickle(Vec<u8>);

impl Pickle {
    fn global(&mut self, module: &str, name: &str) {
        self.0.push(op::GLOBAL);
        self.0
            .extend_from_slice(format!("{module}\n{name}\n").as_bytes());
    }

    fn ordered_dict(&mut self) {
        self.global("collections", "OrderedDict");
        self.0.extend_from_slice(&[op::EMPTY_TUPLE, op::REDUCE]);
    }

    fn text(&mut self, text: &str) {
        self.0.push(op::TEXT);
        // Names are shorter than 4 GiB.
        self.0.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    /// A signed integer of 9 bytes, so that the sign bit always fits.
    fn integer(&mut self, value: usize) {
        self.0.extend_from_slice(&[op::LONG1, 9]);
        self.0.extend_from_slice(&(value as u64).to_le_bytes());
        self.0.push(0);
    }

    fn integers(&mut self, values: impl Iterator<Item = usize>) {
        self.0.push(op::MARK);
        values.for_each(|value| self.integer(value));
        self.0.push(op::TUPLE);
    }

    /// A call of the PyTorch function that creates a tensor from a file in the archive.
    fn tensor(&mut self, number: usize, tensor: &NamedTensor) -> Result<(), WriteError> {
        self.global("torch._utils", "_rebuild_tensor_v2");
        self.0.push(op::MARK);
        self.0.push(op::MARK);
        self.text("storage");
        self.global("torch", storage(tensor.dtype())?);
        self.text(&number.to_string());
        self.text("cpu");
        self.integer(tensor.num_values());
        self.0.extend_from_slice(&[op::TUPLE, op::PERSISTENT_ID]);
        self.integer(0);
        self.integers(tensor.shape().iter().copied());
        self.integers(strides(tensor.shape()).into_iter());
        self.0.push(op::FALSE);
        self.ordered_dict();
        self.0.extend_from_slice(&[op::TUPLE, op::REDUCE]);
        Ok(())
    }
}

/// The stride of each axis, in values.
fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1);
    }
    strides
}

fn storage(dtype: Dtype) -> Result<&'static str, WriteError> {
    Ok(match dtype {
        Dtype::F64 => "DoubleStorage",
        Dtype::F32 => "FloatStorage",
        Dtype::F16 => "HalfStorage",
        Dtype::Bf16 => "BFloat16Storage",
        Dtype::I64 => "LongStorage",
        Dtype::I32 => "IntStorage",
        Dtype::I16 => "ShortStorage",
        Dtype::I8 => "CharStorage",
        Dtype::U8 => "ByteStorage",
        Dtype::Bool => "BoolStorage",
        Dtype::U64 | Dtype::U32 | Dtype::U16 => {
            return Err(WriteError::Dtype {
                format: "a PyTorch archive",
                dtype,
            });
        }
    })
}
