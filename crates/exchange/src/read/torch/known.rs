//! The globals in pickles of weights, and the objects that they create. All others are refused.

use std::cell::RefCell;
use std::rc::Rc;

use runner_core::diagnostic::Reason;

use super::pickle::{Global, Object, Storage, View, damaged};
use crate::tensors::Dtype;

/// The meaning of a global, or an error if it does not belong to weights.
pub fn global(module: &str, name: &str) -> Result<Global, Reason> {
    let storage = |kind: &str| {
        Some(match kind {
            "Double" => Dtype::F64,
            "Float" => Dtype::F32,
            "Half" => Dtype::F16,
            "BFloat16" => Dtype::Bf16,
            "Long" => Dtype::I64,
            "Int" => Dtype::I32,
            "Short" => Dtype::I16,
            "Char" => Dtype::I8,
            "Byte" => Dtype::U8,
            "Bool" => Dtype::Bool,
            _ => return None,
        })
    };
    let known = match (module, name) {
        ("torch._utils", "_rebuild_tensor_v2" | "_rebuild_tensor") => Some(Global::Tensor),
        ("torch._utils", "_rebuild_parameter" | "_rebuild_parameter_with_state") => {
            Some(Global::Parameter)
        }
        ("collections", "OrderedDict") => Some(Global::Dict),
        (
            "torch",
            "Size" | "device" | "float32" | "float64" | "float16" | "bfloat16" | "int64" | "int32"
            | "int16" | "int8" | "uint8" | "bool" | "strided" | "contiguous_format",
        )
        | ("builtins" | "__builtin__", "set" | "frozenset" | "complex" | "slice")
        | ("numpy", "dtype" | "ndarray")
        | ("numpy.core.multiarray" | "numpy._core.multiarray", "scalar")
        | ("_codecs", "encode") => Some(Global::Harmless),
        ("torch" | "torch.cuda", name) => name
            .strip_suffix("Storage")
            .and_then(storage)
            .map(Global::Storage),
        _ => None,
    };
    known.ok_or_else(|| {
        Reason(format!(
            "opening it in Python calls `{module}.{name}`, which does not create a tensor"
        ))
    })
}

/// The storage of a persistent id: `('storage', type, key, place, number of values, …)`.
pub fn storage(id: &Object) -> Result<Storage, Reason> {
    let Object::Tuple(parts) = id else {
        return Err(damaged());
    };
    match &parts[..] {
        [
            Object::Text(kind),
            Object::Global(Global::Storage(dtype)),
            Object::Text(key),
            _,
            Object::Int(num),
            ..,
        ] if &**kind == "storage" => {
            // Old files could keep one storage inside another one.
            if !matches!(parts.get(5), None | Some(Object::None)) {
                return Err(
                    "its storages are views of each other, as versions before 0.4 wrote them"
                        .into(),
                );
            }
            Ok(Storage {
                key: key.clone(),
                dtype: *dtype,
                num: usize::try_from(*num).map_err(|_| damaged())?,
            })
        }
        _ => Err(damaged()),
    }
}

/// The result of a known function for its arguments.
pub fn call(function: &Object, arguments: &[Object]) -> Result<Object, Reason> {
    match function {
        Object::Global(Global::Tensor) => Ok(Object::Tensor(Rc::new(view(arguments)?))),
        Object::Global(Global::Parameter) => {
            Ok(arguments.first().cloned().unwrap_or(Object::Other))
        }
        Object::Global(Global::Dict) => {
            let items = match arguments.first() {
                Some(Object::List(items)) => items.borrow().clone(),
                _ => Vec::new(),
            };
            let pairs = items.into_iter().map(|item| match item {
                Object::Tuple(pair) if pair.len() == 2 => Ok((pair[0].clone(), pair[1].clone())),
                Object::List(pair) if pair.borrow().len() == 2 => {
                    let pair = pair.borrow();
                    Ok((pair[0].clone(), pair[1].clone()))
                }
                _ => Err(damaged()),
            });
            Ok(Object::Dict(Rc::new(RefCell::new(
                pairs.collect::<Result<_, _>>()?,
            ))))
        }
        Object::Global(Global::Harmless | Global::Storage(_)) => Ok(Object::Other),
        _ => Err("its pickle calls something that is not a function".into()),
    }
}

/// Whether the last of `(storage, offset, sizes, strides, gradient?, hooks, metadata)` has a bit that is not computed.
fn is_set(arguments: &[Object], bit: &str) -> bool {
    let Some(Object::Dict(metadata)) = arguments.get(6) else {
        return false;
    };
    let metadata = metadata.borrow();
    let mut pairs = metadata.iter();
    pairs.any(|(name, value)| {
        let is_it = matches!(name, Object::Text(name) if &**name == bit);
        is_it && !matches!(value, Object::Int(0) | Object::None)
    })
}

/// `(storage, offset, sizes, strides, …)`, which must be within the storage.
fn view(arguments: &[Object]) -> Result<View, Reason> {
    let [
        Object::Storage(storage),
        Object::Int(offset),
        Object::Tuple(sizes),
        Object::Tuple(strides),
        ..,
    ] = arguments
    else {
        return Err(damaged());
    };
    let numbers = |tuple: &[Object]| {
        let numbers = tuple.iter().map(|number| match number {
            Object::Int(number) => usize::try_from(*number).ok(),
            _ => None,
        });
        numbers.collect::<Option<Vec<usize>>>().ok_or_else(damaged)
    };
    if is_set(arguments, "neg") {
        return Err(
            "one of its tensors is the negative of what it stores; save `tensor.clone()`".into(),
        );
    }
    let view = View {
        storage: storage.clone(),
        offset: usize::try_from(*offset).map_err(|_| damaged())?,
        shape: numbers(sizes)?,
        strides: numbers(strides)?,
    };
    if view.shape.len() != view.strides.len() || view.shape.len() > 16 {
        return Err(damaged());
    }
    let is_empty = view.shape.contains(&0);
    let axes = view.shape.iter().zip(&view.strides);
    let last = axes
        .into_iter()
        .try_fold(view.offset, |last, (size, stride)| {
            last.checked_add(size.saturating_sub(1).checked_mul(*stride)?)
        });
    match last {
        Some(last) if is_empty || last < view.storage.num => Ok(view),
        _ => Err(Reason(format!(
            "a tensor of {:?} exceeds its storage of {} values",
            view.shape, view.storage.num
        ))),
    }
}
