//! Frozen matrices that are held in fewer bits than they are computed in.
//!
//! 16-bit numbers are Burn's, and 8-bit ones a quantized tensor of Burn's with the scales of [`int8`]. Matrices become
//! so when they are drawn or loaded, one after the other, and files have them as they are held. Where only Burn's
//! kernels compute, which need all numbers in the precision of the run, they are rounded alike and held in full.

use burn::module::{Module, Param, Reparameterization, Reparameterizer};
use burn::nn::Linear;
use burn::store::ModuleRecord;
use burn::tensor::quantization::{QuantScheme, QuantStore, QuantValue, ScaleDtype};
use burn::tensor::{DType, Device, Tensor, TensorData};
use burn_pack::{Bytes, Reader, Tensor as Saved, Writer};
use runner_core::check::network::{Layer, Network as NetworkPlan};
use runner_core::int8;
use runner_core::spec::adapters::Base;
use runner_core::spec::backend::{Arithmetic, Kernels};

use crate::graph::Graph;

/// Marks a matrix without an adapter that is held in fewer bits.
#[derive(Module, Debug)]
pub struct Held {
    #[module(skip)]
    arithmetic: Arithmetic,
}

impl Reparameterization for Held {
    const NAME: &'static str = "held";

    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
        in_full(base)
    }
}

/// Whether a device computes with numbers that are held in fewer bits; others hold them in full.
fn holds(device: &Device, kernels: Kernels) -> bool {
    #[cfg(feature = "flex")]
    return kernels.is_fast()
        && crate::fast::operation::is_our_device(device)
        && DType::from(device.settings().float_dtype) == DType::F32;
    #[cfg(not(feature = "flex"))]
    {
        let _ = (device, kernels);
        false
    }
}

/// A graph whose frozen matrices are held as its plan says.
pub fn held(
    graph: Graph,
    plan: &NetworkPlan,
    (kernels, arithmetic): (Kernels, Arithmetic),
) -> Graph {
    if plan.layers.iter().all(|layer| layer.base.is_full()) {
        return graph;
    }
    graph.apply_reparameterization(Attach {
        plan,
        kernels,
        arithmetic,
    })
}

struct Attach<'a> {
    plan: &'a NetworkPlan,
    kernels: Kernels,
    arithmetic: Arithmetic,
}

impl Reparameterizer for Attach<'_> {
    type Reparam = Held;

    fn reparameterize<const D: usize>(
        &mut self,
        path: &str,
        param: Param<Tensor<D>>,
    ) -> (Param<Tensor<D>>, Option<Held>) {
        let Some((layer, path)) = located(self.plan, path) else {
            return (param, None);
        };
        let (base, holds) = (layer.base, holds(&param.lazy_device(), self.kernels));
        let change = move |matrix| changed(matrix, base, holds);
        let param = param.init_mapper(change).load_mapper(change);
        // An adapter will take its place.
        let is_adapted = layer.adapters.iter().any(|adapter| adapter.path == path);
        let arithmetic = self.arithmetic;
        (param, (holds && !is_adapted).then_some(Held { arithmetic }))
    }
}

/// The layer of the parameter at one of Burn's paths in a graph, and its path there, if it is held in fewer bits.
fn located<'a>(plan: &'a NetworkPlan, path: &str) -> Option<(&'a Layer, String)> {
    let found = plan.located(path)?;
    let mut held = found.0.held().into_iter();
    held.any(|(held, _)| held == found.1).then_some(found)
}

/// A matrix as it is held.
fn changed<const D: usize>(matrix: Tensor<D>, base: Base, holds: bool) -> Tensor<D> {
    let is_it = match base {
        Base::Full => true,
        Base::Bf16 => matrix.dtype() == DType::BF16,
        Base::F16 => matrix.dtype() == DType::F16,
        Base::Int8 => matches!(matrix.dtype(), DType::QFloat(_)),
    };
    if holds && is_it {
        return matrix;
    }
    let device = matrix.device();
    let data = rounded(base, matrix.into_data());
    if holds {
        let dtype = data.dtype();
        Tensor::from_data(data, (&device, dtype))
    } else {
        Tensor::from_data(values(data), &device)
    }
}

/// A matrix in another form. Rounding what has been rounded changes nothing.
fn rounded(base: Base, matrix: TensorData) -> TensorData {
    let matrix = values(matrix);
    match base {
        Base::Full => matrix,
        Base::Bf16 => matrix.convert_dtype(DType::BF16),
        Base::F16 => matrix.convert_dtype(DType::F16),
        Base::Int8 => {
            let sizes: [usize; 2] = matrix.shape().dims();
            let numbers: Vec<f32> = matrix.iter().collect();
            let (numbers, scales) = int8::rounded(&numbers, sizes);
            let scheme = QuantScheme::default()
                .with_value(QuantValue::Q8S)
                .with_store(QuantStore::Native);
            let scheme = match int8::rows_of_scale(sizes[0]) {
                // At most a byte.
                Some(rows) => scheme.per_block([rows as u8, 1], ScaleDtype::F32),
                None => scheme.per_tensor(ScaleDtype::F32),
            };
            let data = TensorData::quantized(numbers, sizes, scheme, &scales, None);
            // It has twice the memory that it needs, which a tensor of these bytes would keep.
            let (bytes, shape, dtype) = data.into_parts();
            TensorData::from_bytes(Bytes::from_bytes_vec(bytes.to_vec()), shape, dtype)
        }
    }
}

/// The numbers of a parameter: 8-bit ones times their scales, and others as they are.
pub fn values(data: TensorData) -> TensorData {
    if !matches!(data.dtype(), DType::QFloat(_)) {
        return data;
    }
    let sizes: [usize; 2] = data.shape().dims();
    let values = int8::values_of_bytes(data.as_bytes(), sizes);
    TensorData::new(values.expect("numbers and scales of `rounded`"), sizes)
}

/// The same of a tensor, in the precision of its device.
pub fn in_full<const D: usize>(matrix: Tensor<D>) -> Tensor<D> {
    let precision = matrix.device().settings().float_dtype;
    match matrix.dtype() {
        DType::QFloat(_) => {
            let device = matrix.device();
            Tensor::from_data(values(matrix.into_data()), &device)
        }
        dtype if dtype == precision.into() => matrix,
        _ => matrix.cast(precision),
    }
}

/// Whether the matrix of a layer without an adapter is held in fewer bits.
pub fn is_held(layer: &Linear) -> bool {
    layer.weight.reparameterization::<Held>().is_some()
}

/// The output of a linear layer without an adapter by `compute`, which gets layers in full.
pub fn linear<const D: usize>(
    layer: &Linear,
    x: Tensor<D>,
    compute: impl Fn(&Linear, Tensor<D>) -> Tensor<D>,
) -> Tensor<D> {
    let Some(held) = layer.weight.reparameterization::<Held>() else {
        return compute(layer, x);
    };
    product(layer, layer.weight.base(), x, held.arithmetic, compute)
}

/// The output of a linear layer with another matrix, which may be held in fewer bits.
pub fn product<const D: usize>(
    layer: &Linear,
    matrix: Tensor<2>,
    x: Tensor<D>,
    arithmetic: Arithmetic,
    compute: impl Fn(&Linear, Tensor<D>) -> Tensor<D>,
) -> Tensor<D> {
    #[cfg(feature = "flex")]
    {
        let bias = layer.bias.as_ref().map(|bias| bias.val());
        if let Some(output) = crate::fast::held::linear(&x, &matrix, bias, arithmetic) {
            return output;
        }
    }
    let _ = arithmetic;
    let weight = Param::initialized(layer.weight.id, in_full(matrix));
    let bias = layer.bias.clone();
    compute(&Linear { weight, bias }, x)
}

/// Saved weights for a network on a device: in its precision, but for matrices that it holds in fewer bits.
///
/// # Errors
/// If they are damaged.
pub fn record(
    bytes: Bytes,
    (plan, kernels): (&NetworkPlan, Kernels),
    device: &Device,
) -> Result<ModuleRecord, String> {
    let precision: DType = device.settings().float_dtype.into();
    let holds = holds(device, kernels);
    let is_held = |name: &str| {
        let path = name.strip_prefix("graph.");
        holds && path.is_some_and(|path| located(plan, path).is_some())
    };
    let is_other = |tensor: &Saved| {
        let is_float = tensor.dtype.is_float() || matches!(tensor.dtype, DType::QFloat(_));
        is_float && tensor.dtype != precision && !is_held(&tensor.name)
    };
    let convert = |tensor: Saved| {
        if !is_other(&tensor) {
            return Ok(tensor);
        }
        let (name, dtype, shape, id, bytes) = tensor.into_parts()?;
        let data = values(TensorData::from_bytes(bytes, shape, dtype)).convert_dtype(precision);
        let (bytes, shape, dtype) = data.into_parts();
        Ok(Saved::new(name, dtype, shape, id, bytes))
    };
    let read = || {
        let tensors = Reader::from_bytes(bytes.clone())?.into_tensors()?;
        if !tensors.iter().any(is_other) {
            return Ok(bytes.clone());
        }
        let tensors: Result<Vec<Saved>, _> = tensors.into_iter().map(convert).collect();
        Writer::new(tensors?).into_bytes()
    };
    let bytes = read().map_err(|e: burn_pack::Error| e.to_string())?;
    ModuleRecord::from_bytes(bytes).map_err(|e| e.to_string())
}
