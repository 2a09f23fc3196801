//! Cells compared with plain loops in 64 bits, and gradients with finite differences.

use crate::Arithmetic;
use proptest::prelude::*;

use super::*;
use crate::tests::numbers;

struct Case {
    sequence: Sequence,
    x: Vec<f32>,
    input: Vec<f32>,
    hidden: Vec<f32>,
    bias: Vec<f32>,
    gradient: Vec<f32>,
    /// For odd seeds, which steps are not padding.
    real: Option<Vec<bool>>,
}

impl Case {
    fn new(sequence: Sequence, seed: u64) -> Self {
        let Sequence {
            cell,
            inputs,
            hidden,
            ..
        } = sequence;
        Self {
            sequence,
            x: numbers(sequence.num_inputs(), seed),
            input: numbers(inputs * cell.input_gates() * hidden, seed + 1),
            hidden: numbers(hidden * cell.hidden_gates() * hidden, seed + 2),
            bias: numbers(cell.gates() * hidden, seed + 3),
            gradient: numbers(sequence.num_outputs(), seed + 4),
            real: (seed % 2 == 1).then(|| {
                let chosen = numbers(sequence.items * sequence.steps, seed + 5);
                chosen.iter().map(|x| *x > -0.2).collect()
            }),
        }
    }

    fn weights(&self) -> Weights<'_> {
        Weights {
            input: &self.input,
            hidden: &self.hidden,
            bias: &self.bias,
        }
    }

    /// All hidden states by plain loops in 64 bits.
    fn plain(&self, [x, input, recurrent, bias]: [&[f64]; 4]) -> Vec<f64> {
        let Sequence {
            cell,
            items,
            steps,
            inputs,
            hidden,
            ..
        } = self.sequence;
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let wide = cell.input_gates() * hidden;
        let mut output = vec![0.0; items * steps * hidden];
        for item in 0..items {
            let (mut h, mut c) = (vec![0.0; hidden], vec![0.0; hidden]);
            for number in 0..steps {
                let step = self.sequence.step(number);
                let at = item * steps + step;
                if self.real.as_ref().is_some_and(|real| !real[at]) {
                    output[at * hidden..][..hidden].copy_from_slice(&h);
                    continue;
                }
                // The sum of a gate, without and with the hidden state.
                let of_input = |gate: usize, unit: usize| -> f64 {
                    let x = &x[(item * steps + step) * inputs..][..inputs];
                    x.iter()
                        .enumerate()
                        .map(|(at, x)| x * input[at * wide + gate * hidden + unit])
                        .sum()
                };
                let of_hidden = |gate: usize, unit: usize| -> f64 {
                    h.iter()
                        .enumerate()
                        .map(|(at, h)| h * recurrent[at * wide + gate * hidden + unit])
                        .sum()
                };
                let sum = |gate: usize, unit: usize| {
                    of_input(gate, unit) + of_hidden(gate, unit) + bias[gate * hidden + unit]
                };
                let new: Vec<(f64, f64)> = (0..hidden)
                    .map(|unit| match cell {
                        Cell::Rnn => (sum(0, unit).tanh(), 0.0),
                        Cell::Lstm => {
                            let [i, f, o] = [0, 1, 2].map(|gate| sigmoid(sum(gate, unit)));
                            let c = f * c[unit] + i * sum(3, unit).tanh();
                            (o * c.tanh(), c)
                        }
                        Cell::Gru => {
                            let [z, r] = [0, 1].map(|gate| sigmoid(sum(gate, unit)));
                            let b = of_hidden(2, unit) + bias[3 * hidden + unit];
                            let n = (of_input(2, unit) + bias[2 * hidden + unit] + r * b).tanh();
                            ((1.0 - z) * n + z * h[unit], 0.0)
                        }
                    })
                    .collect();
                (h, c) = new.into_iter().unzip();
                output[(item * steps + step) * hidden..][..hidden].copy_from_slice(&h);
            }
        }
        output
    }

    fn assert_as_plain(&self) {
        let wide = |values: &[f32]| values.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
        let operands = [&self.x, &self.input, &self.hidden, &self.bias].map(|values| wide(values));
        let plain = self.plain(operands.each_ref().map(Vec::as_slice));
        let real = self.real.as_deref();
        let (output, kept) = forward(&self.sequence, real, &self.x, self.weights(), true);
        assert_eq!(
            output,
            forward(&self.sequence, real, &self.x, self.weights(), false).0
        );
        for (ours, plain) in output.iter().zip(&plain) {
            assert!(
                (f64::from(*ours) - plain).abs() < 1e-5,
                "{:?}: {ours} for {plain}",
                self.sequence
            );
        }
        let kept = kept.expect("asked for");
        let found = backward(
            &self.sequence,
            &self.x,
            self.weights(),
            &output,
            kept,
            &self.gradient,
            true,
        );
        let found = [
            found.x.expect("asked for"),
            found.input,
            found.hidden,
            found.bias,
        ];
        let loss = |operands: &[Vec<f64>; 4]| -> f64 {
            let output = self.plain(operands.each_ref().map(Vec::as_slice));
            output
                .iter()
                .zip(&self.gradient)
                .map(|(y, g)| y * f64::from(*g))
                .sum()
        };
        for (which, found) in found.iter().enumerate() {
            assert_eq!(found.len(), operands[which].len());
            // Some elements of each, which differ from case to case.
            for at in (0..found.len()).step_by(1 + found.len() / 5) {
                let difference = [1e-5, -1e-5].map(|by| {
                    let mut operands = operands.clone();
                    operands[which][at] += by;
                    loss(&operands)
                });
                let wanted = (difference[0] - difference[1]) / 2e-5;
                let ours = f64::from(found[at]);
                assert!(
                    (ours - wanted).abs() < 1e-4 * (1.0 + wanted.abs()),
                    "{:?}: {ours} for {wanted} of {which} at {at}",
                    self.sequence
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(40) })]

    #[test]
    fn cells_are_those_of_the_definition(
        (which, items, steps) in (0usize..3, 1usize..6, 1usize..6),
        (inputs, hidden) in (1usize..6, 1usize..6),
        is_reverse in any::<bool>(),
        seed in 0u64..1000,
    ) {
        let cell = [Cell::Rnn, Cell::Gru, Cell::Lstm][which];
        Case::new(Sequence { cell, items, steps, inputs, hidden, is_reverse, arithmetic: Arithmetic::Fast }, seed).assert_as_plain();
    }
}

#[test]
fn many_items_and_wide_states_are_as_few_and_narrow_ones() {
    for cell in [Cell::Rnn, Cell::Gru, Cell::Lstm] {
        let sequence = Sequence {
            cell,
            items: 67,
            steps: 3,
            inputs: 19,
            hidden: 37,
            is_reverse: false,
            arithmetic: Arithmetic::Fast,
        };
        Case::new(sequence, 4).assert_as_plain();
        Case::new(sequence, 5).assert_as_plain();
    }
}

#[test]
fn no_items_and_no_steps_have_no_states() {
    for (items, steps) in [(0, 3), (3, 0)] {
        let sequence = Sequence {
            cell: Cell::Lstm,
            items,
            steps,
            inputs: 2,
            hidden: 3,
            is_reverse: false,
            arithmetic: Arithmetic::Fast,
        };
        let case = Case::new(sequence, 1);
        let (output, kept) = forward(&sequence, None, &case.x, case.weights(), true);
        assert!(output.is_empty());
        let kept = kept.expect("asked for");
        let found = backward(&sequence, &case.x, case.weights(), &output, kept, &[], true);
        assert!(
            found
                .hidden
                .iter()
                .chain(&found.input)
                .chain(&found.bias)
                .all(|x| *x == 0.0)
        );
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    for cell in [Cell::Rnn, Cell::Gru, Cell::Lstm] {
        let sequence = Sequence {
            cell,
            items: 40,
            steps: 5,
            inputs: 24,
            hidden: 48,
            is_reverse: true,
            arithmetic: Arithmetic::Fast,
        };
        let case = Case::new(sequence, 7);
        let run = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("threads");
            pool.install(|| {
                let (output, kept) = forward(&sequence, None, &case.x, case.weights(), true);
                let kept = kept.expect("asked for");
                let back = backward(
                    &sequence,
                    &case.x,
                    case.weights(),
                    &output,
                    kept,
                    &case.gradient,
                    true,
                );
                let all = [
                    output,
                    back.x.expect("asked for"),
                    back.input,
                    back.hidden,
                    back.bias,
                ];
                all.map(|values| values.into_iter().map(f32::to_bits).collect::<Vec<_>>())
            })
        };
        assert!(run(1) == run(2) && run(1) == run(5), "{cell:?}");
    }
}

#[test]
fn nan_and_infinity_stay_with_their_item() {
    for cell in [Cell::Rnn, Cell::Gru, Cell::Lstm] {
        for special in [f32::NAN, f32::INFINITY] {
            let sequence = Sequence {
                cell,
                items: 9,
                steps: 3,
                inputs: 4,
                hidden: 5,
                is_reverse: false,
                arithmetic: Arithmetic::Fast,
            };
            let mut case = Case::new(sequence, 3);
            case.x[4 * 3 * 4 + 4] = special;
            let (output, _) = forward(&sequence, None, &case.x, case.weights(), false);
            for (item, output) in output.chunks_exact(15).enumerate() {
                assert!(
                    item == 4 || output.iter().all(|x| x.is_finite()),
                    "{cell:?}, item {item}"
                );
            }
            if special.is_nan() {
                assert!(output[4 * 15..][..5].iter().all(|x| x.is_finite()));
                assert!(output[4 * 15 + 5..][..10].iter().all(|x| x.is_nan()));
            }
        }
    }
}
