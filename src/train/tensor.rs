//! A tensor whose rank is known at run time, over Burn's tensors whose rank is a constant.

use burn::tensor::{Device, Tensor, TensorData};

/// A float tensor of rank 1 to 5.
#[derive(Clone, Debug)]
pub enum DynTensor {
    /// Rank 1.
    R1(Tensor<1>),
    /// Rank 2.
    R2(Tensor<2>),
    /// Rank 3.
    R3(Tensor<3>),
    /// Rank 4.
    R4(Tensor<4>),
    /// Rank 5.
    R5(Tensor<5>),
}

/// Applies a function that keeps the rank to the tensor inside.
macro_rules! map_rank {
    ($value:expr, $tensor:ident => $result:expr) => {
        match $value {
            DynTensor::R1($tensor) => DynTensor::R1($result),
            DynTensor::R2($tensor) => DynTensor::R2($result),
            DynTensor::R3($tensor) => DynTensor::R3($result),
            DynTensor::R4($tensor) => DynTensor::R4($result),
            DynTensor::R5($tensor) => DynTensor::R5($result),
        }
    };
}
pub(super) use map_rank;

impl DynTensor {
    /// A tensor of `values` with `shape` on `device`, in the device's own precision.
    ///
    /// # Panics
    /// If the shape has no or more than 5 dimensions, or does not fit the number of values.
    pub fn from_values(values: Vec<f32>, shape: &[usize], device: &Device) -> Self {
        let data = TensorData::new(values, shape.to_vec());
        match shape.len() {
            1 => DynTensor::R1(Tensor::from_data(data, device)),
            2 => DynTensor::R2(Tensor::from_data(data, device)),
            3 => DynTensor::R3(Tensor::from_data(data, device)),
            4 => DynTensor::R4(Tensor::from_data(data, device)),
            5 => DynTensor::R5(Tensor::from_data(data, device)),
            rank => panic!("tensors have 1 to 5 dimensions, found {rank}"),
        }
    }

    /// \[batch, ..\] to \[batch, product\].
    pub fn flatten(self) -> Tensor<2> {
        match self {
            DynTensor::R1(t) => t.unsqueeze_dim(1),
            DynTensor::R2(t) => t,
            DynTensor::R3(t) => t.flatten(1, 2),
            DynTensor::R4(t) => t.flatten(1, 3),
            DynTensor::R5(t) => t.flatten(1, 4),
        }
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        match self {
            DynTensor::R1(_) => 1,
            DynTensor::R2(_) => 2,
            DynTensor::R3(_) => 3,
            DynTensor::R4(_) => 4,
            DynTensor::R5(_) => 5,
        }
    }
}
