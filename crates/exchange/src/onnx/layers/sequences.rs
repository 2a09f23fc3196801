//! Attention, transformers and positions.

use super::super::{Attribute, OnnxError};
use super::Scope;
use super::affine::linear;
use super::functions::gelu;
use super::{masks, norms};
use runner_core::spec::model::layer::{FeedforwardActivation, Transformer};

/// Burn's transformers have no setting for it.
const EPSILON: f64 = 1e-5;

/// Attention of a query to a memory, by the matrices at a path.
pub fn attention(
    scope: &mut Scope<'_>,
    path: &str,
    [query, memory, wide]: [&str; 3],
    heads: usize,
    (causal, mask): (bool, Option<&str>),
) -> Result<String, OnnxError> {
    let width = scope.layer.shape[1];
    let length = scope.dims()[0];
    // All inputs except those of self-attention inside a stack are those of the layer.
    let behind = if query == memory {
        length
    } else {
        let last = scope.layer.values().last();
        last.map_or(length, |input| input.shape.dims[0])
    };
    let size = width / heads;
    let mut part = |part: &str, from: &str, steps: usize, axes: &[i64]| {
        let map = linear(scope, from, &format!("{path}{part}."))?;
        let cut = scope.graph.reshape(&map, &[steps, heads, size]);
        Ok::<_, OnnxError>(scope.graph.transpose(&cut, axes))
    };
    let queries = part("query", query, length, &[0, 2, 1, 3])?;
    let keys = part("key", memory, behind, &[0, 2, 3, 1])?;
    let values = part("value", wide, behind, &[0, 2, 1, 3])?;
    let graph = &mut *scope.graph;
    let scores = graph.node("MatMul", &[&queries, &keys], &[]);
    let scale = graph.number((size as f64).sqrt());
    let mut scores = graph.node("Div", &[&scores, &scale], &[]);
    if causal {
        // Positions do not attend to later ones.
        let later = (0..length * behind).map(|at| {
            if at % behind > at / behind {
                f32::NEG_INFINITY
            } else {
                0.0
            }
        });
        let later = graph.numbers(&[length, behind], &later.collect::<Vec<_>>());
        scores = graph.node("Add", &[&scores, &later], &[]);
    }
    let shares = masks::shares(graph, &scores, mask, behind);
    let context = graph.node("MatMul", &[&shares, &values], &[]);
    let context = graph.transpose(&context, &[0, 2, 1, 3]);
    let context = graph.reshape(&context, &[length, width]);
    linear(scope, &context, &format!("{path}output."))
}

fn feedforward(
    scope: &mut Scope<'_>,
    stack: &Transformer,
    path: &str,
    x: &str,
) -> Result<String, OnnxError> {
    let inner = linear(scope, x, &format!("{path}linear_inner."))?;
    let inner = match stack.activation {
        FeedforwardActivation::Gelu => gelu(scope.graph, &inner),
        FeedforwardActivation::Relu => scope.graph.node("Relu", &[&inner], &[]),
    };
    linear(scope, &inner, &format!("{path}linear_outer."))
}

/// A residual branch: with the norm before it, or after it.
struct Block<'a> {
    stack: &'a Transformer,
    path: String,
}

impl Block<'_> {
    /// `x` plus the result of `inside`, with the norm where the stack has it.
    fn around(
        &self,
        scope: &mut Scope<'_>,
        x: &str,
        norm: &str,
        inside: impl FnOnce(&mut Scope<'_>, &str) -> Result<String, OnnxError>,
    ) -> Result<String, OnnxError> {
        let norm = format!("{}{norm}.", self.path);
        if self.stack.norm_first {
            let normal = norms::layer(scope, x, &norm, EPSILON)?;
            let given = inside(scope, &normal)?;
            return Ok(scope.graph.node("Add", &[x, &given], &[]));
        }
        let given = inside(scope, x)?;
        let sum = scope.graph.node("Add", &[x, &given], &[]);
        norms::layer(scope, &sum, &norm, EPSILON)
    }
}

/// Layers of self-attention and feed-forward networks. Burn numbers norms by where they are if they come last.
pub fn encoder(
    scope: &mut Scope<'_>,
    stack: &Transformer,
    x: &str,
    mask: Option<&str>,
) -> Result<String, OnnxError> {
    let norms = if stack.norm_first {
        ["norm_2", "norm_1"]
    } else {
        ["norm_1", "norm_2"]
    };
    let mut x = x.to_owned();
    for layer in 0..stack.num_layers {
        let path = format!("layers.{layer}.");
        let block = Block {
            stack,
            path: path.clone(),
        };
        x = block.around(scope, &x, norms[0], |scope, x| {
            let path = format!("{path}mha.");
            attention(scope, &path, [x; 3], stack.num_heads, (stack.causal, mask))
        })?;
        x = block.around(scope, &x, norms[1], |scope, x| {
            feedforward(scope, stack, &format!("{path}pwff."), x)
        })?;
    }
    Ok(x)
}

/// The same with attention to a memory in between.
pub fn decoder(
    scope: &mut Scope<'_>,
    stack: &Transformer,
    [x, memory]: [&str; 2],
    [mask, memory_mask]: [Option<&str>; 2],
) -> Result<String, OnnxError> {
    let norms = if stack.norm_first {
        ["norm_3", "norm_1", "norm_2"]
    } else {
        ["norm_1", "norm_2", "norm_3"]
    };
    let mut x = x.to_owned();
    for layer in 0..stack.num_layers {
        let path = format!("layers.{layer}.");
        let block = Block {
            stack,
            path: path.clone(),
        };
        x = block.around(scope, &x, norms[0], |scope, x| {
            let path = format!("{path}self_attn.");
            attention(scope, &path, [x; 3], stack.num_heads, (stack.causal, mask))
        })?;
        x = block.around(scope, &x, norms[1], |scope, x| {
            let path = format!("{path}cross_attn.");
            attention(
                scope,
                &path,
                [x, memory, memory],
                stack.num_heads,
                (false, memory_mask),
            )
        })?;
        x = block.around(scope, &x, norms[2], |scope, x| {
            feedforward(scope, stack, &format!("{path}pwff."), x)
        })?;
    }
    Ok(x)
}

/// Pairs of values turned by their position.
pub fn rotary(scope: &mut Scope<'_>, x: &str) -> Result<String, OnnxError> {
    let (length, width) = (scope.layer.shape[0], scope.layer.shape[1]);
    // Cosine and sine for each value, [length, width, 2].
    let rotations = scope.tensor("freq_complex")?.to_f32s();
    let each = |part: usize| rotations.iter().skip(part).step_by(2).copied().collect();
    let (cosines, sines): (Vec<f32>, Vec<f32>) = (each(0), each(1));
    let graph = &mut *scope.graph;
    let cosines = graph.numbers(&[length, width], &cosines);
    let sines = graph.numbers(&[length, width], &sines);
    let pairs = graph.reshape(x, &[length, width / 2, 2]);
    let halves = [Attribute::Int("axis", -1), Attribute::Int("num_outputs", 2)];
    let [first, second] = graph.nodes("Split", &[&pairs], [true, true], &halves);
    let second = graph.node("Neg", &[&second], &[]);
    let turned = graph.node("Concat", &[&second, &first], &[Attribute::Int("axis", -1)]);
    let turned = graph.reshape(&turned, &[length, width]);
    let straight = graph.node("Mul", &[x, &cosines], &[]);
    let turned = graph.node("Mul", &[&turned, &sines], &[]);
    Ok(graph.node("Add", &[&straight, &turned], &[]))
}
