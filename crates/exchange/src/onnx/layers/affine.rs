//! Affine maps of the last axis, and learned slopes.

use super::super::{Attribute, OnnxError};
use super::Scope;
use crate::tensors::NamedTensor;

/// An affine map by the matrix \[inputs, outputs\] at a path, and a bias if there is one.
pub fn linear(scope: &mut Scope<'_>, x: &str, path: &str) -> Result<String, OnnxError> {
    let weight = match scope.matrix {
        Some((owner, module)) => {
            let own = (scope.owner, scope.module);
            (scope.owner, scope.module) = (owner, module);
            let matrix = scope.weight("weight");
            (scope.owner, scope.module) = own;
            scope.graph.transpose(&matrix?, &[1, 0])
        }
        None => scope.weight(&format!("{path}weight"))?,
    };
    let bias = format!("{path}bias");
    let bias = if scope.has(&bias) {
        Some(scope.weight(&bias)?)
    } else {
        None
    };
    let is_matrix = scope.dims().len() == 1;
    let graph = &mut *scope.graph;
    Ok(match bias {
        Some(bias) if is_matrix => graph.node("Gemm", &[x, &weight, &bias], &[]),
        Some(bias) => {
            let product = graph.node("MatMul", &[x, &weight], &[]);
            graph.node("Add", &[&product, &bias], &[])
        }
        None => graph.node("MatMul", &[x, &weight], &[]),
    })
}

/// One map times the SiLU of another.
pub fn swiglu(scope: &mut Scope<'_>, x: &str) -> Result<String, OnnxError> {
    let inner = linear(scope, x, "linear_inner.")?;
    let outer = linear(scope, x, "linear_outer.")?;
    let graph = &mut *scope.graph;
    let gate = graph.node("Sigmoid", &[&inner], &[]);
    let inner = graph.node("Mul", &[&inner, &gate], &[]);
    Ok(graph.node("Mul", &[&inner, &outer], &[]))
}

/// A learned slope for negative values, shared or for each channel.
pub fn prelu(scope: &mut Scope<'_>, x: &str) -> Result<String, OnnxError> {
    let slopes = scope.tensor("alpha")?;
    let slope = if slopes.num_values() > 1 {
        scope.per_channel("alpha")?
    } else {
        let name = format!("{}.alpha", scope.module);
        let slope = NamedTensor::from_f32s(name, vec![1], &slopes.to_f32s());
        scope.graph.constant(slope)
    };
    Ok(scope.graph.node("PRelu", &[x, &slope], &[]))
}

/// A learned tensor, repeated for each item of the batch that `x` has.
pub fn parameter(scope: &mut Scope<'_>, shape: &[usize], x: &str) -> Result<String, OnnxError> {
    let value = scope.weight("value")?;
    let graph = &mut *scope.graph;
    let sizes: Vec<i64> = shape.iter().map(|size| *size as i64).collect();
    let (sizes, first) = (graph.integers(&sizes), graph.integers(&[0]));
    let batch = graph.node("Shape", &[x], &[]);
    let batch = graph.node("Gather", &[&batch, &first], &[]);
    let sizes = graph.node("Concat", &[&batch, &sizes], &[Attribute::Int("axis", 0)]);
    Ok(graph.node("Expand", &[&value, &sizes], &[]))
}

/// A sequence plus the learned vectors of its positions.
pub fn positions(scope: &mut Scope<'_>, x: &str) -> Result<String, OnnxError> {
    let length = scope.layer.shape[0] as i64;
    let value = scope.weight("value")?;
    let graph = &mut *scope.graph;
    let rows = graph.slice(&value, 0, 0, length);
    Ok(graph.node("Add", &[x, &rows], &[]))
}
