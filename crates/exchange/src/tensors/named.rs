//! A tensor with a name.

use half::{bf16, f16};

use super::{Dtype, TensorError};

/// A tensor with a name: values in row-major order, little-endian.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTensor {
    name: String,
    shape: Vec<usize>,
    dtype: Dtype,
    bytes: Vec<u8>,
}

impl NamedTensor {
    /// A tensor from bytes; an empty shape is that of a scalar.
    ///
    /// # Errors
    /// If the number of bytes does not match the shape.
    pub fn new(
        name: impl Into<String>,
        shape: Vec<usize>,
        dtype: Dtype,
        bytes: Vec<u8>,
    ) -> Result<Self, TensorError> {
        let name = name.into();
        let Some(size) = num_bytes(&shape, dtype) else {
            return Err(TensorError::TooLarge { name, shape });
        };
        if size != bytes.len() {
            return Err(TensorError::Size {
                name,
                shape,
                dtype,
                found: bytes.len(),
            });
        }
        Ok(Self {
            name,
            shape,
            dtype,
            bytes,
        })
    }

    /// A tensor of 32-bit floats.
    ///
    /// # Panics
    /// If the number of values does not match the shape.
    pub fn from_f32s(name: impl Into<String>, shape: Vec<usize>, values: &[f32]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Self::new(name, shape, Dtype::F32, bytes.collect()).expect("the values fit the shape")
    }

    /// A tensor of 64-bit integers.
    ///
    /// # Panics
    /// If the number of values does not match the shape.
    pub fn from_i64s(name: impl Into<String>, shape: Vec<usize>, values: &[i64]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        Self::new(name, shape, Dtype::I64, bytes.collect()).expect("the values fit the shape")
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its sizes; empty for one number.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The type of its values.
    pub fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// Its values.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its values, without a copy.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// How many values it has.
    pub fn num_values(&self) -> usize {
        self.shape.iter().product()
    }

    /// The same under another name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The same values in a different shape.
    ///
    /// # Errors
    /// If the shape has a different number of values.
    pub fn reshaped(self, shape: Vec<usize>) -> Result<Self, TensorError> {
        Self::new(self.name, shape, self.dtype, self.bytes)
    }

    /// Axes in a different order: the old axis of each new one.
    ///
    /// # Panics
    /// If `axes` does not have every axis once.
    pub fn permuted(&self, axes: &[usize]) -> Self {
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        assert!(
            sorted.into_iter().eq(0..self.shape.len()),
            "{axes:?} is not an order of the axes of {:?}",
            self.shape
        );
        let size = self.dtype.size();
        let mut strides = vec![size; axes.len()];
        for axis in (1..axes.len()).rev() {
            strides[axis - 1] = strides[axis] * self.shape[axis];
        }
        let shape: Vec<usize> = axes.iter().map(|axis| self.shape[*axis]).collect();
        let strides: Vec<usize> = axes.iter().map(|axis| strides[*axis]).collect();
        let mut bytes = Vec::with_capacity(self.bytes.len());
        let mut place = vec![0; axes.len()];
        for _ in 0..self.num_values() {
            let from: usize = place.iter().zip(&strides).map(|(at, by)| at * by).sum();
            bytes.extend_from_slice(&self.bytes[from..from + size]);
            for axis in (0..axes.len()).rev() {
                place[axis] += 1;
                if place[axis] < shape[axis] {
                    break;
                }
                place[axis] = 0;
            }
        }
        Self {
            name: self.name.clone(),
            shape,
            dtype: self.dtype,
            bytes,
        }
    }

    /// A matrix with rows and columns exchanged.
    ///
    /// # Panics
    /// If it does not have two axes.
    pub fn transposed(&self) -> Self {
        self.permuted(&[1, 0])
    }

    /// A range of the first axis: `num` entries from `start`.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn rows(&self, start: usize, num: usize) -> Self {
        let size = self.bytes.len() / self.shape[0].max(1);
        Self {
            name: self.name.clone(),
            shape: [&[num], &self.shape[1..]].concat(),
            dtype: self.dtype,
            bytes: self.bytes[start * size..(start + num) * size].to_vec(),
        }
    }

    /// Tensors one after the other along the first axis.
    ///
    /// # Panics
    /// If there is none, or their types or other axes differ.
    pub fn stacked(name: impl Into<String>, parts: &[Self]) -> Self {
        let (dtype, rest) = (parts[0].dtype, &parts[0].shape[1..]);
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.bytes.len()).sum());
        let mut rows = 0;
        for part in parts {
            assert!(
                part.dtype == dtype && &part.shape[1..] == rest,
                "`{}` and `{}` cannot be stacked",
                parts[0].name,
                part.name
            );
            rows += part.shape[0];
            bytes.extend_from_slice(&part.bytes);
        }
        Self {
            name: name.into(),
            shape: [&[rows], rest].concat(),
            dtype,
            bytes,
        }
    }

    /// The values as another type, rounded to the nearest; integers are clamped to the range of the type.
    pub fn cast(&self, dtype: Dtype) -> Self {
        if dtype == self.dtype {
            return self.clone();
        }
        let num = self.num_values();
        let mut bytes = Vec::with_capacity(num * dtype.size());
        for at in 0..num {
            // Not every 64-bit integer is a 64-bit float.
            match (self.integer(at), dtype.is_float()) {
                (Some(value), false) => push_integer(&mut bytes, dtype, value),
                _ => push_number(&mut bytes, dtype, self.number(at)),
            }
        }
        Self {
            name: self.name.clone(),
            shape: self.shape.clone(),
            dtype,
            bytes,
        }
    }

    /// The values as 64-bit floats.
    pub fn to_f64s(&self) -> Vec<f64> {
        (0..self.num_values()).map(|at| self.number(at)).collect()
    }

    /// The values as 32-bit floats.
    pub fn to_f32s(&self) -> Vec<f32> {
        let values = 0..self.num_values();
        values.map(|at| self.number(at) as f32).collect()
    }

    /// The values as integers; `None` if they are floats or one is too large.
    pub fn to_i64s(&self) -> Option<Vec<i64>> {
        let values = (0..self.num_values()).map(|at| i64::try_from(self.integer(at)?).ok());
        values.collect()
    }

    fn value<const N: usize>(&self, at: usize) -> [u8; N] {
        std::array::from_fn(|byte| self.bytes[at * N + byte])
    }

    fn integer(&self, at: usize) -> Option<i128> {
        Some(match self.dtype {
            Dtype::I64 => i64::from_le_bytes(self.value(at)).into(),
            Dtype::I32 => i32::from_le_bytes(self.value(at)).into(),
            Dtype::I16 => i16::from_le_bytes(self.value(at)).into(),
            Dtype::I8 => i8::from_le_bytes(self.value(at)).into(),
            Dtype::U64 => u64::from_le_bytes(self.value(at)).into(),
            Dtype::U32 => u32::from_le_bytes(self.value(at)).into(),
            Dtype::U16 => u16::from_le_bytes(self.value(at)).into(),
            Dtype::U8 => self.bytes[at].into(),
            Dtype::Bool => (self.bytes[at] != 0).into(),
            _ => return None,
        })
    }

    fn number(&self, at: usize) -> f64 {
        match self.dtype {
            Dtype::F64 => f64::from_le_bytes(self.value(at)),
            Dtype::F32 => f32::from_le_bytes(self.value(at)).into(),
            Dtype::F16 => f16::from_le_bytes(self.value(at)).to_f64(),
            Dtype::Bf16 => bf16::from_le_bytes(self.value(at)).to_f64(),
            _ => self.integer(at).unwrap_or_default() as f64,
        }
    }
}

/// Bytes of a shape; `None` if they are more than memory can address.
fn num_bytes(shape: &[usize], dtype: Dtype) -> Option<usize> {
    // A size of 0 must not hide absurd other sizes.
    let mut values = shape.iter().filter(|size| **size > 0);
    let values = values.try_fold(dtype.size(), |product, size| product.checked_mul(*size))?;
    let is_empty = shape.contains(&0);
    isize::try_from(values).ok()?;
    Some(if is_empty { 0 } else { values })
}

fn push_integer(bytes: &mut Vec<u8>, dtype: Dtype, value: i128) {
    macro_rules! cut {
        ($type:ty) => {
            bytes.extend_from_slice(
                &(value.clamp(<$type>::MIN.into(), <$type>::MAX.into()) as $type).to_le_bytes(),
            )
        };
    }
    match dtype {
        Dtype::I64 => cut!(i64),
        Dtype::I32 => cut!(i32),
        Dtype::I16 => cut!(i16),
        Dtype::I8 => cut!(i8),
        Dtype::U64 => cut!(u64),
        Dtype::U32 => cut!(u32),
        Dtype::U16 => cut!(u16),
        Dtype::U8 => cut!(u8),
        Dtype::Bool => bytes.push((value != 0).into()),
        float => push_number(bytes, float, value as f64),
    }
}

fn push_number(bytes: &mut Vec<u8>, dtype: Dtype, value: f64) {
    match dtype {
        Dtype::F64 => bytes.extend_from_slice(&value.to_le_bytes()),
        Dtype::F32 => bytes.extend_from_slice(&(value as f32).to_le_bytes()),
        Dtype::F16 => bytes.extend_from_slice(&f16::from_f32(to_odd(value)).to_le_bytes()),
        Dtype::Bf16 => bytes.extend_from_slice(&bf16::from_f32(to_odd(value)).to_le_bytes()),
        Dtype::Bool => bytes.push((value != 0.0).into()),
        // A float becomes the nearest integer, and NaN becomes 0.
        integer => push_integer(bytes, integer, value.round_ties_even() as i128),
    }
}

/// A 32-bit float to be rounded further to fewer bits: if it is not exact, its last bit is set (round to odd), so that
/// the second rounding never sees a false tie (Boldo and Melquiond, 2008). `half` rounds 64-bit floats twice.
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) == value || !near.is_finite() {
        return near;
    }
    let is_away = f64::from(near).abs() > value.abs();
    let toward_zero = near.to_bits() - u32::from(is_away);
    f32::from_bits(toward_zero | 1)
}
