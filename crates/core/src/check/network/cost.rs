//! The cost of a layer: its parameters by path, the multiplications of a forward pass, the values that the backward
//! pass needs.

mod parameters;

use super::axes::axis_of;
use super::{Input, einsum};
use crate::spec::model::activation::Activation;
use crate::spec::model::attention::Attention;
use crate::spec::model::fourier::{Transform, Wave};
use crate::spec::model::layer::{Cell, LayerKind, Norm, Steps};
use crate::spec::model::message::{EdgeEnds, GraphPooling, Message};
pub use parameters::{matrices, parameters};

/// The product of sizes; saturates at the largest number.
pub(super) fn times(sizes: &[usize]) -> u64 {
    let sizes = sizes.iter().map(|size| *size as u64);
    sizes.fold(1, u64::saturating_mul)
}

/// Multiply-adds of one item's forward pass in matrix products and convolutions; element-wise operations are not
/// counted.
pub fn multiply_adds(kind: &LayerKind, inputs: &[Input], shape: &[usize]) -> u64 {
    saturated(wide_multiply_adds(kind, inputs, shape))
}

fn saturated(count: u128) -> u64 {
    count.try_into().unwrap_or(u64::MAX)
}

fn wide_multiply_adds(kind: &LayerKind, inputs: &[Input], shape: &[usize]) -> u128 {
    let product = |dims: &[usize]| u128::from(times(dims));
    let input = &inputs[0].shape.dims;
    let width = input.last().copied().unwrap_or(1) as u128;
    match kind {
        LayerKind::Linear { .. } | LayerKind::Matmul => product(shape) * width,
        LayerKind::Einsum { equation } if inputs.len() > 1 => {
            product(&einsum::sizes(equation, inputs))
        }
        LayerKind::Swiglu { .. } => 2 * product(shape) * width,
        LayerKind::Message(message) => per_node(message, width),
        LayerKind::GraphPool {
            operation: GraphPooling::Attention,
        } => width,
        LayerKind::EdgeEnds {
            operation: EdgeEnds::Dot,
            ..
        } => width,
        LayerKind::Conv(conv) => {
            product(shape) * product(&conv.kernel_size) * (input[0] / conv.groups) as u128
        }
        LayerKind::ConvTranspose(conv) => {
            product(input) * product(&conv.kernel_size) * (shape[0] / conv.groups) as u128
        }
        LayerKind::DeformConv2d(conv) => {
            let channels = (input[0] / conv.groups) as u128;
            product(shape) * conv.window.num_taps() as u128 * channels
        }
        LayerKind::Recurrent(recurrent) => {
            let hidden = recurrent.hidden_size as u128;
            let directions = 1 + recurrent.bidirectional as u128;
            input[0] as u128 * directions * num_gates(recurrent.cell) * hidden * (width + hidden)
        }
        LayerKind::LinearScan { .. } => product(shape),
        LayerKind::GridSample(_) => 4 * product(shape),
        LayerKind::AffineGrid(_) => 3 * product(shape),
        LayerKind::Fourier(fourier) => {
            let mut products = Products { input, sizes: 0 };
            fourier.of(&(), &mut products);
            product(shape) * products.sizes
        }
        LayerKind::Dlinoss(oscillators) => 4 * product(shape) * oscillators.state_size as u128,
        LayerKind::MultiHeadAttention { .. } => attention(
            input[0] as u128,
            inputs[inputs.len() - 1].shape.dims[0] as u128,
            [width, attended_widths(inputs).iter().sum::<usize>() as u128],
        ),
        LayerKind::GroupedAttention(attention) => {
            let (length, memory, queries, keys) = grouped_sizes(attention, inputs);
            let wide = attended_widths(inputs).iter().sum::<usize>() as u128;
            2 * width * length * queries + wide * memory * keys + 2 * length * memory * queries
        }
        LayerKind::TransformerEncoder(stack) => {
            let length = input[0] as u128;
            let feedforward = 2 * length * width * stack.feedforward_size as u128;
            stack.num_layers as u128 * (attention(length, length, [width, 2 * width]) + feedforward)
        }
        LayerKind::TransformerDecoder(stack) => {
            let length = input[0] as u128;
            let memory = inputs[inputs.len() - 1].shape.dims[0] as u128;
            let attentions = attention(length, length, [width, 2 * width])
                + attention(length, memory, [width, 2 * width]);
            let feedforward = 2 * length * width * stack.feedforward_size as u128;
            stack.num_layers as u128 * (attentions + feedforward)
        }
        _ => 0,
    }
}

/// The products of a transform of items.
struct Products<'a> {
    input: &'a [usize],
    /// The sizes of their axes together.
    sizes: u128,
}

impl Transform for Products<'_> {
    type Numbers = ();

    fn product(&mut self, (): &(), axis: i64, _: Wave) {
        self.sizes += self.input[axis_of(axis, self.input.len())] as u128;
    }

    fn add(&mut self, (): (), (): ()) {}

    fn subtract(&mut self, (): (), (): ()) {}

    fn square(&mut self, (): ()) {}
}

/// Passes of a parallel scan over so many positions.
fn passes(length: usize) -> u128 {
    u128::from(length.max(1).next_power_of_two().ilog2())
}

/// Multiply-adds of a node's linear layers.
fn per_node(message: &Message, width: u128) -> u128 {
    match *message {
        Message::Gcn { out_features, .. } => width * out_features as u128,
        Message::Sage { out_features, .. } => 2 * width * out_features as u128,
        Message::Gat {
            out_features,
            num_heads,
            ..
        } => (width + 2) * (out_features as u128 * num_heads as u128),
        Message::Gin {
            out_features,
            hidden_features,
            ..
        } => hidden_features as u128 * (width + out_features as u128),
        Message::EdgeConv { .. } => u128::from(per_edge(message, width as usize)),
    }
}

/// Multiply-adds of the linear layers that each edge goes through.
pub fn per_edge(message: &Message, width: usize) -> u64 {
    match *message {
        Message::EdgeConv {
            out_features,
            hidden_features,
            edge_dim,
            ..
        } => {
            let first = times(&[2, width, hidden_features]);
            let first = first.saturating_add(times(&[edge_dim, hidden_features]));
            first.saturating_add(times(&[hidden_features, out_features]))
        }
        Message::Gat {
            out_features,
            num_heads,
            edge_dim,
            ..
        } if edge_dim > 0 => times(&[edge_dim + 1, out_features, num_heads]),
        Message::Gin { edge_dim, .. } => times(&[edge_dim, width]),
        _ => 0,
    }
}

/// What messages keep of a node and of each edge, and what of each edge exists only while it is added: messages that
/// are not multiplied by something learned are not needed again.
pub fn of_messages(message: &Message, width: usize) -> [u64; 3] {
    let width = width as u64;
    match *message {
        Message::Gcn { out_features, .. } => {
            let output = out_features as u64;
            [output, 1, output]
        }
        Message::Sage { out_features, .. } => [width + out_features as u64, 0, width],
        Message::Gat {
            out_features,
            num_heads,
            edge_dim,
            ..
        } => {
            let inner = times(&[out_features, num_heads]);
            let scores = 4 * num_heads as u64;
            // The edges, and what their linear layer makes of them: of each edge, and of each node to itself.
            let of_edges = if edge_dim > 0 {
                edge_dim as u64 + inner
            } else {
                0
            };
            [
                inner + message.width() as u64 + of_edges,
                inner + scores + of_edges,
                2 * inner,
            ]
        }
        Message::Gin {
            out_features,
            hidden_features,
            edge_dim,
            ..
        } => {
            // The edges, and the messages before `relu`.
            let of_edges = if edge_dim > 0 {
                edge_dim as u64 + 2 * width
            } else {
                0
            };
            let own = width + (hidden_features + out_features) as u64;
            [own + of_edges, of_edges, width + of_edges]
        }
        // The two inputs, the hidden values before and after `relu`, and which messages are the largest: of each edge, and
        // of the edge of a node to itself.
        Message::EdgeConv {
            out_features,
            hidden_features,
            edge_dim,
            ..
        } => {
            let kept = 2 * (width + hidden_features as u64) + 2 * out_features as u64;
            let kept = kept + edge_dim as u64;
            [
                kept + out_features as u64,
                kept,
                3 * width + out_features as u64,
            ]
        }
    }
}

fn num_gates(cell: Cell) -> u128 {
    match cell {
        Cell::Rnn => 1,
        Cell::Gru => 3,
        Cell::Lstm => 4,
    }
}

/// The lengths of both sequences, and the features of all heads of queries and of keys.
fn grouped_sizes(attention: &Attention, inputs: &[Input]) -> (u128, u128, u128, u128) {
    let [first, last] = [0, inputs.len() - 1].map(|at| &inputs[at].shape.dims);
    let head_dim = attention.head_dim(first[1]) as u128;
    (
        first[0] as u128,
        last[0] as u128,
        attention.num_heads as u128 * head_dim,
        attention.num_kv_heads as u128 * head_dim,
    )
}

/// The features of the keys and the values that attention attends to: of its second and third input, if it has them.
pub fn attended_widths(inputs: &[Input]) -> [usize; 2] {
    [1, 2].map(|at| {
        let input = &inputs[at.min(inputs.len() - 1)];
        input.shape.dims.last().copied().unwrap_or(1)
    })
}

/// Queries and outputs of one sequence, keys and values of others with together this width, and the products between
/// them.
fn attention(length: u128, memory: u128, [width, wide]: [u128; 2]) -> u128 {
    2 * length * width * width + memory * wide * width + 2 * length * memory * width
}

/// Values that one item's forward pass keeps for the backward pass: the output of every layer that allocates one, and
/// the intermediate values of composite layers.
pub fn activations(kind: &LayerKind, inputs: &[Input], shape: &[usize]) -> u64 {
    saturated(wide_activations(kind, inputs, shape))
}

/// What Burn's operations of an activation keep, in quarters of its output: several of them keep the input and what
/// they compute from it, or a byte for each value. Measured.
fn quarters_of(activation: &Activation) -> u128 {
    match activation {
        Activation::Mish => 21,
        Activation::GeluTanh | Activation::Sparsemax => 12,
        Activation::HardSwish => 10,
        Activation::Elu { .. } | Activation::Selu | Activation::Softplus { .. } => 9,
        Activation::Silu | Activation::Softsign | Activation::Softmax => 8,
        _ => 4,
    }
}

fn wide_activations(kind: &LayerKind, inputs: &[Input], shape: &[usize]) -> u128 {
    let output = u128::from(times(shape));
    let input = &inputs[0].shape.dims;
    let width = input.last().copied().unwrap_or(1) as u128;
    let attention = |length: u128, memory: u128, heads: usize| {
        3 * length * width + 2 * memory * width + 3 * heads as u128 * length * memory
    };
    match kind {
        LayerKind::Flatten { .. }
        | LayerKind::Reshape { .. }
        | LayerKind::Unsqueeze { .. }
        | LayerKind::Squeeze { .. }
        | LayerKind::Parameter { .. }
        | LayerKind::Identity => 0,
        // Nodes and their weights, or which of them are the largest.
        LayerKind::GraphPool { operation } => match operation {
            GraphPooling::Mean | GraphPooling::Sum => output,
            GraphPooling::Max => 2 * width,
            GraphPooling::Attention => 2 * width + 4,
        },
        // Both nodes, or the signs of their differences.
        LayerKind::EdgeEnds { operation, .. } => match operation {
            EdgeEnds::Sum | EdgeEnds::Concat => output,
            EdgeEnds::Difference => output + width,
            EdgeEnds::Product | EdgeEnds::Dot => output + 2 * width,
        },
        // The four corners of each sample, their weights, and what they add up to.
        LayerKind::DeformConv2d(conv) => {
            let samples = conv.window.num_taps() as u128 * u128::from(times(&shape[1..]));
            let groups = inputs[1].shape.dims[0] / (2 * conv.window.num_taps()).max(1);
            output + samples * (6 * input[0] as u128 + 12 * groups as u128)
        }
        // The same for each place of a grid.
        LayerKind::GridSample(_) => {
            let places = u128::from(times(&shape[1..]));
            output + places * (6 * input[0] as u128 + 12)
        }
        // Both parts of the spectrum after each axis.
        LayerKind::Fourier(fourier) => output * (1 + 2 * fourier.axes.len() as u128),
        // Which values are kept.
        LayerKind::TopK { .. } => 2 * output,
        LayerKind::Activation(activation) => quarters_of(activation) * output / 4,
        LayerKind::Swiglu { .. } => 5 * output,
        LayerKind::Norm(Norm::LocalResponse { .. }) => 4 * output,
        LayerKind::Norm(Norm::Batch { .. }) => output,
        LayerKind::Norm(_) => 2 * output,
        // Factors and states before and after each pass of the scan.
        LayerKind::LinearScan { .. } => output * (1 + 5 * passes(input[0])),
        // Windows over height and width come first.
        LayerKind::Pool(pool) if pool.dims == 3 => {
            output + u128::from(times(&[&input[..2], &shape[2..]].concat()))
        }
        LayerKind::Recurrent(recurrent) => {
            let directions = 1 + recurrent.bidirectional as u128;
            let hidden = directions * recurrent.hidden_size as u128;
            // What Burn's operations of a step keep, in hidden states. Measured.
            let each = match recurrent.cell {
                Cell::Rnn => 6,
                Cell::Gru => 12,
                Cell::Lstm => 14,
            };
            let steps = input[0] as u128 * hidden * each;
            match recurrent.output {
                Steps::Sequence => steps,
                Steps::Last => steps + hidden,
            }
        }
        LayerKind::Dlinoss(oscillators) => {
            // What drives them, and in each pass of the scan both states before and after it.
            let state = 2 * input[0] as u128 * oscillators.state_size as u128;
            output + state * (2 + 4 * passes(input[0]))
        }
        LayerKind::MultiHeadAttention { num_heads, .. } => {
            let memory = inputs[inputs.len() - 1].shape.dims[0] as u128;
            attention(input[0] as u128, memory, *num_heads)
        }
        LayerKind::GroupedAttention(attention) => {
            let (length, memory, queries, keys) = grouped_sizes(attention, inputs);
            // Queries and keys are kept before and after norms and rotation.
            let times = 1 + attention.qk_norm as u128 + 3 * attention.rotary.is_some() as u128;
            times * (length * queries + memory * keys)
                + memory * keys
                + 3 * attention.num_heads as u128 * length * memory
                + length * (queries + width)
        }
        LayerKind::TransformerEncoder(stack) | LayerKind::TransformerDecoder(stack) => {
            let length = input[0] as u128;
            let is_decoder = matches!(kind, LayerKind::TransformerDecoder(_));
            let cross = if is_decoder {
                attention(
                    length,
                    inputs[inputs.len() - 1].shape.dims[0] as u128,
                    stack.num_heads,
                ) + 2 * length * width
            } else {
                0
            };
            let feedforward = 2 * length * stack.feedforward_size as u128 + 5 * length * width;
            stack.num_layers as u128
                * (attention(length, length, stack.num_heads) + cross + feedforward)
        }
        _ => output,
    }
}
