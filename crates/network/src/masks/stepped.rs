//! Recurrent layers with padding by Burn's modules, step by step.

use burn::nn::{BiGru, BiLstm, BiRnn, Gru, Lstm, LstmState, Rnn, RnnState};
use burn::tensor::Tensor;

use super::padded;

/// A recurrent layer whose states do not change at padding.
pub trait Stepped {
    /// All hidden states \[items, steps, hidden\] for inputs \[items, steps, inputs\], from states of zeros on.
    fn stepped(&self, x: &Tensor<3>, mask: &Tensor<2>) -> Tensor<3>;
}

/// All hidden states of a recurrent layer by single steps of \[items, 1, features\], from states of zeros on: those of
/// padding are the last ones before it. `step` gives the states of one step for the last ones, with `N` of them.
fn states<const N: usize>(
    x: &Tensor<3>,
    mask: &Tensor<2>,
    (hidden, is_reverse): (usize, bool),
    step: impl Fn(Tensor<3>, [Tensor<2>; N]) -> [Tensor<2>; N],
) -> Tensor<3> {
    let [items, length, _] = x.dims();
    let zeros = Tensor::<2>::zeros([items, hidden], (&x.device(), x.dtype()));
    let mut states: [Tensor<2>; N] = std::array::from_fn(|_| zeros.clone());
    let mut outputs = Vec::with_capacity(length);
    for number in 0..length {
        let at = if is_reverse {
            length - 1 - number
        } else {
            number
        };
        let padding = padded(&mask.clone().narrow(1, at, 1)).expand([items, hidden]);
        let new = step(x.clone().narrow(1, at, 1), states.clone());
        let mut old = states.into_iter();
        states = new.map(|new| match old.next() {
            Some(old) => new.mask_where(padding.clone(), old),
            None => new,
        });
        outputs.push(states[0].clone().unsqueeze_dim::<3>(1));
    }
    if is_reverse {
        outputs.reverse();
    }
    Tensor::cat(outputs, 1)
}

fn of_rnn(rnn: &Rnn, x: &Tensor<3>, mask: &Tensor<2>, is_reverse: bool) -> Tensor<3> {
    states(x, mask, (rnn.d_hidden, is_reverse), |x, [hidden]| {
        [rnn.forward(x, Some(RnnState::new(hidden))).1.hidden]
    })
}

fn of_gru(gru: &Gru, x: &Tensor<3>, mask: &Tensor<2>, is_reverse: bool) -> Tensor<3> {
    states(x, mask, (gru.d_hidden, is_reverse), |x, [hidden]| {
        [gru.forward(x, Some(hidden)).squeeze_dim(1)]
    })
}

fn of_lstm(lstm: &Lstm, x: &Tensor<3>, mask: &Tensor<2>, is_reverse: bool) -> Tensor<3> {
    states(x, mask, (lstm.d_hidden, is_reverse), |x, [hidden, cell]| {
        let state = lstm.forward(x, Some(LstmState::new(cell, hidden))).1;
        [state.hidden, state.cell]
    })
}

macro_rules! directions {
    ($($one:ident $both:ident $of:ident;)+) => {$(
        impl Stepped for $one {
            fn stepped(&self, x: &Tensor<3>, mask: &Tensor<2>) -> Tensor<3> {
                $of(self, x, mask, false)
            }
        }

        impl Stepped for $both {
            fn stepped(&self, x: &Tensor<3>, mask: &Tensor<2>) -> Tensor<3> {
                let forward = $of(&self.forward, x, mask, false);
                Tensor::cat(vec![forward, $of(&self.reverse, x, mask, true)], 2)
            }
        }
    )+};
}

directions! {
    Rnn BiRnn of_rnn;
    Gru BiGru of_gru;
    Lstm BiLstm of_lstm;
}
