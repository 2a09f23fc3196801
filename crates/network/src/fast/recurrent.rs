//! Recurrent layers, using the parameters of Burn's modules.

use std::sync::Arc;

use burn::backend::flex::FlexTensor;
use burn::nn::{BiGru, BiLstm, BiRnn, GateController, Gru, Lstm, Rnn};
use burn::tensor::{Shape, Tensor};
use runner_core::spec::backend::Arithmetic;
use runner_kernels::recurrent::{Cell, Kept, Sequence, Weights, backward, forward};

use super::operation::{Back, Operation, apply_4, contiguous, is_ours, numbers, tensor};
use super::rounding;

/// Inputs \[items, steps, inputs\], weights of inputs and hidden states, and a bias, as expected by the kernel.
#[derive(Clone, Debug)]
struct Steps(Sequence, Option<Real>);

/// Which steps are not padding, \[items, steps\].
pub type Real = Arc<Vec<bool>>;

impl Steps {
    fn real(&self) -> Option<&[bool]> {
        self.1.as_ref().map(|real| real.as_slice())
    }

    fn shapes(&self) -> [Shape; 4] {
        let Sequence {
            cell,
            items,
            steps,
            inputs,
            hidden,
            ..
        } = self.0;
        [
            Shape::from([items, steps, inputs]),
            Shape::from([inputs, cell.input_gates() * hidden]),
            Shape::from([hidden, cell.hidden_gates() * hidden]),
            Shape::from([cell.gates() * hidden]),
        ]
    }
}

impl Operation<4> for Steps {
    /// Gates and states, and the output.
    type Kept = (Arc<Kept>, FlexTensor);

    fn asks_for(&self, _: [bool; 4]) -> [bool; 4] {
        [true, true, true, true]
    }

    fn forward(
        &self,
        operands: [FlexTensor; 4],
        is_kept: bool,
    ) -> (FlexTensor, Option<Self::Kept>) {
        let [x, input, hidden, bias] = operands.map(contiguous);
        let weights = Weights {
            input: numbers(&input),
            hidden: numbers(&hidden),
            bias: numbers(&bias),
        };
        let (output, kept) = forward(&self.0, self.real(), numbers(&x), weights, is_kept);
        let shape = Shape::from([self.0.items, self.0.steps, self.0.hidden]);
        let output = tensor(output, shape);
        let kept = kept.map(|kept| (Arc::new(kept), output.clone()));
        (output, kept)
    }

    fn backward(&self, mut back: Back<Self::Kept, 4>) -> [Option<FlexTensor>; 4] {
        let [x, input, hidden, bias] = [0, 1, 2, 3].map(|at| back.operand(at));
        let weights = Weights {
            input: numbers(&input),
            hidden: numbers(&hidden),
            bias: numbers(&bias),
        };
        let (kept, output) = back.kept;
        let kept = Arc::try_unwrap(kept).unwrap_or_else(|kept| (*kept).clone());
        let output = contiguous(output);
        let found = backward(
            &self.0,
            numbers(&x),
            weights,
            numbers(&output),
            kept,
            numbers(&back.gradient),
            back.wants[0],
        );
        let [of_x, of_input, of_hidden, of_bias] = self.shapes();
        let wanted = |at: usize, values: Vec<f32>, shape: Shape| {
            back.wants[at].then(|| tensor(values, shape))
        };
        [
            found.x.map(|x| tensor(x, of_x)),
            wanted(1, found.input, of_input),
            wanted(2, found.hidden, of_hidden),
            wanted(3, found.bias, of_bias),
        ]
    }
}

/// The steps that are not padding, if some are, and how products and sums are rounded.
pub type Computed<'a> = (Option<&'a Real>, Arithmetic);

/// All hidden states of a cell with these gates, in the kernel's order.
fn states(
    x: Tensor<3>,
    cell: Cell,
    gates: &[&GateController],
    hidden: usize,
    is_reverse: bool,
    (real, arithmetic): Computed<'_>,
) -> Option<Tensor<3>> {
    let [items, steps, inputs] = x.dims();
    let sizes = [items, steps, inputs, hidden];
    if !is_ours(&x) || sizes.contains(&0) {
        return None;
    }
    let columns = |weights: Vec<Tensor<2>>| Tensor::cat(weights, 1);
    let input = columns(
        gates
            .iter()
            .map(|gate| gate.input_transform.weight.val())
            .collect(),
    );
    let recurrent = columns(
        gates
            .iter()
            .map(|gate| gate.hidden_transform.weight.val())
            .collect(),
    );
    let bias = |of_hidden: bool, gate: &GateController| {
        let transform = if of_hidden {
            &gate.hidden_transform
        } else {
            &gate.input_transform
        };
        let bias = transform.bias.as_ref().map(|bias| bias.val());
        bias.unwrap_or_else(|| Tensor::zeros([hidden], &x.device()))
    };
    let mut biases: Vec<Tensor<1>> = gates.iter().map(|gate| bias(false, gate)).collect();
    for (at, gate) in gates.iter().enumerate() {
        if gate.hidden_transform.bias.is_none() {
            continue;
        }
        if cell == Cell::Gru && at == 2 {
            break;
        }
        biases[at] = biases[at].clone() + bias(true, gate);
    }
    if cell == Cell::Gru {
        // The candidate's hidden part has a separate sum.
        biases.push(bias(true, gates[2]));
    }
    let sequence = Sequence {
        cell,
        items,
        steps,
        inputs,
        hidden,
        is_reverse,
        arithmetic: rounding(arithmetic),
    };
    Some(apply_4(
        (x, input, recurrent, Tensor::cat(biases, 0)),
        Steps(sequence, real.cloned()),
    ))
}

fn lstm_states(
    lstm: &Lstm,
    x: Tensor<3>,
    is_reverse: bool,
    computed: Computed<'_>,
) -> Option<Tensor<3>> {
    let forget = lstm.forget_gate.as_ref()?;
    let gates = [&lstm.input_gate, forget, &lstm.output_gate, &lstm.cell_gate];
    states(x, Cell::Lstm, &gates, lstm.d_hidden, is_reverse, computed)
}

fn gru_states(
    gru: &Gru,
    x: Tensor<3>,
    is_reverse: bool,
    computed: Computed<'_>,
) -> Option<Tensor<3>> {
    let gates = [&gru.update_gate, &gru.reset_gate, &gru.new_gate];
    states(x, Cell::Gru, &gates, gru.d_hidden, is_reverse, computed).filter(|_| gru.reset_after)
}

fn rnn_states(
    rnn: &Rnn,
    x: Tensor<3>,
    is_reverse: bool,
    computed: Computed<'_>,
) -> Option<Tensor<3>> {
    states(
        x,
        Cell::Rnn,
        &[&rnn.gate],
        rnn.d_hidden,
        is_reverse,
        computed,
    )
}

/// Both directions, concatenated.
fn both(forward: Option<Tensor<3>>, reverse: Option<Tensor<3>>) -> Option<Tensor<3>> {
    Some(Tensor::cat(vec![forward?, reverse?], 2))
}

/// All hidden states \[items, steps, hidden\] of a recurrent layer as configured by this crate, for inputs \[items,
/// steps, inputs\]; none if it is not supported here.
pub trait Recurrent {
    /// From states of zeros on.
    fn states(&self, x: &Tensor<3>, computed: Computed<'_>) -> Option<Tensor<3>>;
}

impl Recurrent for Rnn {
    fn states(&self, x: &Tensor<3>, computed: Computed<'_>) -> Option<Tensor<3>> {
        rnn_states(self, x.clone(), false, computed)
    }
}

impl Recurrent for BiRnn {
    fn states(&self, x: &Tensor<3>, computed: Computed<'_>) -> Option<Tensor<3>> {
        both(
            rnn_states(&self.forward, x.clone(), false, computed),
            rnn_states(&self.reverse, x.clone(), true, computed),
        )
    }
}

impl Recurrent for Gru {
    fn states(&self, x: &Tensor<3>, computed: Computed<'_>) -> Option<Tensor<3>> {
        gru_states(self, x.clone(), false, computed)
    }
}

impl Recurrent for BiGru {
    fn states(&self, x: &Tensor<3>, computed: Computed<'_>) -> Option<Tensor<3>> {
        both(
            gru_states(&self.forward, x.clone(), false, computed),
            gru_states(&self.reverse, x.clone(), true, computed),
        )
    }
}

impl Recurrent for Lstm {
    fn states(&self, x: &Tensor<3>, computed: Computed<'_>) -> Option<Tensor<3>> {
        lstm_states(self, x.clone(), false, computed)
    }
}

impl Recurrent for BiLstm {
    fn states(&self, x: &Tensor<3>, computed: Computed<'_>) -> Option<Tensor<3>> {
        both(
            lstm_states(&self.forward, x.clone(), false, computed),
            lstm_states(&self.reverse, x.clone(), true, computed),
        )
    }
}
