//! Attention with the options of language models.

use super::super::{Attribute, Graph, OnnxError};
use super::Scope;
use super::affine::linear;
use super::masks;
use super::norms::rms;
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::model::attention::{Attention, Rotary};

/// Attention of a query to a memory, in which heads of queries share keys and values.
pub fn attention(
    scope: &mut Scope<'_>,
    attention: &Attention,
    [query, memory, wide]: [&str; 3],
    keys_seen: Option<&str>,
) -> Result<String, OnnxError> {
    let inputs = scope.layer.values();
    let [length, behind] = [0, inputs.len() - 1].map(|at| inputs[at].shape.dims[0]);
    let size = attention.head_dim(inputs[0].shape.dims[1]);
    let (heads, shared) = (attention.num_heads, attention.num_kv_heads);
    let mut part = |part: &str, from: &str, num: usize, steps: usize| {
        let map = linear(scope, from, &format!("{part}."))?;
        let cut = scope.graph.reshape(&map, &[steps, num, size]);
        let mut x = scope.graph.transpose(&cut, &[0, 2, 1, 3]);
        if part == "value" {
            return Ok::<_, OnnxError>(x);
        }
        if attention.qk_norm {
            x = rms(scope, &x, &format!("{part}_norm."), Attention::EPSILON)?;
        }
        Ok(match &attention.rotary {
            Some(rotary) => rotated(scope.graph, rotary, &x, steps, size),
            None => x,
        })
    };
    let queries = part("query", query, heads, length)?;
    let keys = part("key", memory, shared, behind)?;
    let values = part("value", wide, shared, behind)?;
    let graph = &mut *scope.graph;
    // The queries that share a head of keys follow each other.
    let rows = heads / shared * length;
    let queries = graph.reshape(&queries, &[shared, rows, size]);
    let keys = graph.transpose(&keys, &[0, 1, 3, 2]);
    let scores = graph.node("MatMul", &[&queries, &keys], &[]);
    let scale = graph.number((size as f64).sqrt());
    let mut scores = graph.node("Div", &[&scores, &scale], &[]);
    if attention.alibi || attention.causal || attention.window.is_some() {
        scores = graph.reshape(&scores, &[heads, length, behind]);
        let mask = mask(graph, attention, length, behind);
        scores = graph.node("Add", &[&scores, &mask], &[]);
        scores = graph.reshape(&scores, &[shared, rows, behind]);
    }
    let shares = masks::shares(graph, &scores, keys_seen, behind);
    let context = graph.node("MatMul", &[&shares, &values], &[]);
    let context = graph.reshape(&context, &[heads, length, size]);
    let context = graph.transpose(&context, &[0, 2, 1, 3]);
    let context = graph.reshape(&context, &[length, heads * size]);
    linear(scope, &context, "output.")
}

/// What is added to the scores, \[heads or 1, length, length of the memory\].
fn mask(graph: &mut Graph, attention: &Attention, length: usize, behind: usize) -> String {
    let slopes = if attention.alibi {
        attention.slopes(Arithmetic::Fast)
    } else {
        vec![0.0]
    };
    let mut values = Vec::with_capacity(slopes.len() * length * behind);
    for slope in &slopes {
        for at in 0..length * behind {
            let distance = (at / behind) as i64 - (at % behind) as i64;
            values.push(if attention.is_hidden(distance) {
                f32::NEG_INFINITY
            } else {
                (-slope * distance.abs() as f64) as f32
            });
        }
    }
    graph.numbers(&[slopes.len(), length, behind], &values)
}

/// Queries or keys by their position: the first half of the features with the second.
fn rotated(graph: &mut Graph, rotary: &Rotary, x: &str, length: usize, size: usize) -> String {
    let half = size / 2;
    let frequencies = rotary.frequencies(size, length, Arithmetic::Fast);
    let mut table = |of: fn(f64) -> f64| {
        let value = |at: usize| {
            let angle = rotary.angle(at / half, frequencies[at % half]);
            (of(angle) * rotary.attention_factor()) as f32
        };
        let values: Vec<f32> = (0..length * half).map(value).collect();
        graph.numbers(&[length, half], &values)
    };
    let (cosines, sines) = (table(f64::cos), table(f64::sin));
    let halves = [Attribute::Int("axis", -1), Attribute::Int("num_outputs", 2)];
    let [first, second] = graph.nodes("Split", &[x], [true, true], &halves);
    let mut product = |a: &str, b: &str| graph.node("Mul", &[a, b], &[]);
    let straight = [product(&first, &cosines), product(&second, &cosines)];
    let turned = [product(&second, &sines), product(&first, &sines)];
    let first = graph.node("Sub", &[&straight[0], &turned[0]], &[]);
    let second = graph.node("Add", &[&straight[1], &turned[1]], &[]);
    graph.node("Concat", &[&first, &second], &[Attribute::Int("axis", -1)])
}
