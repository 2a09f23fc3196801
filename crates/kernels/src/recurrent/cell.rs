//! The function of a cell for the sums of a step, and its gradient.

use super::super::functions::{sigmoid, tanh};
use super::super::vectors::vectorized;

/// A kind of recurrent cell. The documentation of `recurrent` has the formulas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// With tanh.
    Rnn,
    /// Gates in the order update, reset, new; the hidden part of `new` has a separate bias.
    Gru,
    /// Gates in the order input, forget, output, candidate.
    Lstm,
}

impl Cell {
    /// Sums for each hidden unit.
    pub fn gates(self) -> usize {
        match self {
            Cell::Rnn => 1,
            Cell::Gru | Cell::Lstm => 4,
        }
    }

    /// Sums that depend on the input: the first ones.
    pub fn input_gates(self) -> usize {
        match self {
            Cell::Rnn => 1,
            Cell::Gru => 3,
            Cell::Lstm => 4,
        }
    }

    /// Sums that depend on the hidden state: for a GRU the first two and the last.
    pub fn hidden_gates(self) -> usize {
        self.input_gates()
    }

    /// Whether there is a state in addition to the hidden one.
    pub fn has_state(self) -> bool {
        self == Cell::Lstm
    }

    /// The mapping from columns of the recurrent weights to sums: from, to, and number.
    pub(super) fn hidden_blocks(self, hidden: usize) -> Vec<(usize, usize, usize)> {
        match self {
            Cell::Rnn => vec![(0, 0, hidden)],
            Cell::Lstm => vec![(0, 0, 4 * hidden)],
            Cell::Gru => vec![(0, 0, 2 * hidden), (2 * hidden, 3 * hidden, hidden)],
        }
    }

    /// Activates the sums of a step in place, and computes the new states. `output` is not initialized yet; the GRU
    /// reads the last hidden state from `old` and writes the new one to `new`, like the LSTM with its cell state.
    pub(super) fn activate(
        self,
        sums: &mut [f32],
        old: &[f32],
        new: &mut [f32],
        output: &mut [f32],
    ) {
        match self {
            Cell::Rnn => rnn(sums, output),
            Cell::Gru => gru(sums, old, new, output),
            Cell::Lstm => lstm(sums, old, new, output),
        }
    }

    /// From the gradient of a step's output, `dh`, computes the gradients of its sums, which replace the activated
    /// gates in `gates`. `dc` is the gradient of the new state on entry, and that of the old one on return; for a GRU,
    /// `dh` becomes the part that reaches the old hidden state directly. `states` are the old and the new state: of the
    /// cell for an LSTM, otherwise hidden states.
    pub(super) fn backward(
        self,
        gates: &mut [f32],
        states: (&[f32], &[f32]),
        dh: &mut [f32],
        dc: &mut [f32],
    ) {
        match self {
            Cell::Rnn => rnn_backward(gates, dh),
            Cell::Gru => gru_backward(gates, states.0, dh),
            Cell::Lstm => lstm_backward(gates, states.0, states.1, dh, dc),
        }
    }
}

vectorized! {
    fn rnn = rnn_now(sums: &mut [f32], output: &mut [f32]);
}

#[inline(always)]
fn rnn_now(sums: &mut [f32], output: &mut [f32]) {
    for (sum, output) in sums.iter_mut().zip(output) {
        *sum = tanh(*sum);
        *output = *sum;
    }
}

vectorized! {
    fn rnn_backward = rnn_backward_now(gates: &mut [f32], dh: &[f32]);
}

#[inline(always)]
fn rnn_backward_now(gates: &mut [f32], dh: &[f32]) {
    for (gate, dh) in gates.iter_mut().zip(dh) {
        *gate = dh * (1.0 - *gate * *gate);
    }
}

/// The gates of a step, each as a slice.
macro_rules! four {
    ($gates:expr) => {{
        let len = $gates.len() / 4;
        let (first, rest) = $gates.split_at_mut(len);
        let (second, rest) = rest.split_at_mut(len);
        let (third, fourth) = rest.split_at_mut(len);
        (first, second, &mut third[..len], &mut fourth[..len], len)
    }};
}

vectorized! {
    fn lstm = lstm_now(sums: &mut [f32], old: &[f32], new: &mut [f32], output: &mut [f32]);
}

#[inline(always)]
fn lstm_now(sums: &mut [f32], old: &[f32], new: &mut [f32], output: &mut [f32]) {
    let (i, f, o, g, len) = four!(sums);
    let (i, f, old) = (&mut i[..len], &mut f[..len], &old[..len]);
    let (o, new, output) = (&mut o[..len], &mut new[..len], &mut output[..len]);
    // In separate loops for each function, so that operands stay in registers.
    for at in 0..len {
        i[at] = sigmoid(i[at]);
    }
    for at in 0..len {
        f[at] = sigmoid(f[at]);
    }
    for at in 0..len {
        g[at] = tanh(g[at]);
        new[at] = f[at] * old[at] + i[at] * g[at];
    }
    for at in 0..len {
        o[at] = sigmoid(o[at]);
    }
    for at in 0..len {
        output[at] = o[at] * tanh(new[at]);
    }
}

vectorized! {
    fn lstm_backward = lstm_backward_now(gates: &mut [f32], old: &[f32], new: &[f32], dh: &[f32], dc: &mut [f32]);
}

#[inline(always)]
fn lstm_backward_now(gates: &mut [f32], old: &[f32], new: &[f32], dh: &[f32], dc: &mut [f32]) {
    let (i, f, o, g, len) = four!(gates);
    let (i, f, old, new) = (&mut i[..len], &mut f[..len], &old[..len], &new[..len]);
    let (dh, dc) = (&dh[..len], &mut dc[..len]);
    for at in 0..len {
        let t = tanh(new[at]);
        let along = dc[at] + dh[at] * o[at] * (1.0 - t * t);
        let (input, forget, output) = (i[at], f[at], o[at]);
        o[at] = dh[at] * t * (output * (1.0 - output));
        i[at] = along * g[at] * (input * (1.0 - input));
        g[at] = along * input * (1.0 - g[at] * g[at]);
        f[at] = along * old[at] * (forget * (1.0 - forget));
        dc[at] = along * forget;
    }
}

vectorized! {
    fn gru = gru_now(sums: &mut [f32], old: &[f32], new: &mut [f32], output: &mut [f32]);
}

#[inline(always)]
fn gru_now(sums: &mut [f32], old: &[f32], new: &mut [f32], output: &mut [f32]) {
    let (z, r, n, b, len) = four!(sums);
    let (z, r, old) = (&mut z[..len], &mut r[..len], &old[..len]);
    let (new, output) = (&mut new[..len], &mut output[..len]);
    for at in 0..len {
        z[at] = sigmoid(z[at]);
    }
    for at in 0..len {
        r[at] = sigmoid(r[at]);
    }
    for at in 0..len {
        n[at] = tanh(n[at] + r[at] * b[at]);
        let state = (1.0 - z[at]) * n[at] + z[at] * old[at];
        new[at] = state;
        output[at] = state;
    }
}

vectorized! {
    fn gru_backward = gru_backward_now(gates: &mut [f32], old: &[f32], dh: &mut [f32]);
}

#[inline(always)]
fn gru_backward_now(gates: &mut [f32], old: &[f32], dh: &mut [f32]) {
    let (z, r, n, b, len) = four!(gates);
    let (z, r, old, dh) = (&mut z[..len], &mut r[..len], &old[..len], &mut dh[..len]);
    for at in 0..len {
        let (update, reset, new) = (z[at], r[at], n[at]);
        let dn = dh[at] * (1.0 - update) * (1.0 - new * new);
        z[at] = dh[at] * (old[at] - new) * (update * (1.0 - update));
        r[at] = dn * b[at] * (reset * (1.0 - reset));
        n[at] = dn;
        b[at] = dn * reset;
        dh[at] *= update;
    }
}
