//! Sequences of numbers and of tokens.

use super::{Item, below, normal, turn, uniform};
use crate::spec::generate::WindowTarget;

/// Sine, square, triangle, sawtooth.
pub const NUM_FORMS: usize = 4;

/// One to three periods of a wave with a random start, \[length, 1\]; shapes alternate.
pub fn window(item: &mut Item<'_>, length: usize, noise: f64, target: WindowTarget) {
    let form = item.at % NUM_FORMS;
    let start = uniform(&mut item.rng);
    let periods = 1.0 + 2.0 * uniform(&mut item.rng);
    let value = |at: usize| {
        let phase = (start + periods * at as f64 / length as f64).fract();
        match form {
            0 => turn(phase).0,
            1 => 1.0 - 2.0 * (2.0 * phase).floor(),
            2 => 4.0 * (phase - 0.5).abs() - 1.0,
            _ => 2.0 * phase - 1.0,
        }
    };
    for at in 0..length {
        let noisy = value(at) + noise * normal(&mut item.rng);
        item.number(noisy);
    }
    match target {
        WindowTarget::Class => item.class(form as i32),
        WindowTarget::Next => item.target(value(length)),
    }
}

/// Tokens 1 and up, the separator 0, and the same tokens: all except the last are the input, and all except the first
/// are the targets. The random part cannot be predicted and is ignored.
pub fn copy(item: &mut Item<'_>, length: usize, vocabulary: usize) {
    let mut tokens: Vec<usize> = Vec::with_capacity(2 * length + 1);
    for _ in 0..length {
        let token = 1 + below(&mut item.rng, vocabulary - 1);
        tokens.push(token);
    }
    tokens.push(0);
    tokens.extend_from_within(..length);
    tokens[..2 * length]
        .iter()
        .for_each(|token| item.token(*token));
    for (at, token) in tokens[1..].iter().enumerate() {
        item.class(if at < length { -1 } else { *token as i32 });
    }
}

/// Token 0 is padding; kind k opens with 1 + 2k and closes with 2 + 2k. Every second sequence is balanced. In the
/// others, two closing brackets of different kinds are swapped if there are such, so that counting is not enough;
/// otherwise one bracket has another kind.
pub fn brackets(item: &mut Item<'_>, length: usize, kinds: usize) {
    let is_balanced = item.at.is_multiple_of(2);
    // At least half of the sequence is used.
    let (least, most) = ((length / 4).max(1), length / 2);
    let mut left = least + below(&mut item.rng, most - least + 1);
    let (mut tokens, mut open) = (Vec::new(), Vec::new());
    while left > 0 || !open.is_empty() {
        if left > 0 && (open.is_empty() || uniform(&mut item.rng) < 0.5) {
            let kind = below(&mut item.rng, kinds);
            open.push(kind);
            tokens.push(1 + 2 * kind);
            left -= 1;
        } else if let Some(kind) = open.pop() {
            tokens.push(2 + 2 * kind);
        }
    }
    if !is_balanced {
        spoil(item, &mut tokens, kinds);
    }
    tokens.resize(length, 0);
    tokens.into_iter().for_each(|token| item.token(token));
    item.class(is_balanced as i32);
}

fn spoil(item: &mut Item<'_>, tokens: &mut [usize], kinds: usize) {
    let closing: Vec<usize> = (0..tokens.len())
        .filter(|at| tokens[*at].is_multiple_of(2))
        .collect();
    let first = closing[below(&mut item.rng, closing.len())];
    let others = closing
        .into_iter()
        .filter(|at| tokens[*at] != tokens[first]);
    let others: Vec<usize> = others.collect();
    if !others.is_empty() {
        let second = others[below(&mut item.rng, others.len())];
        tokens.swap(first, second);
    } else {
        let other = 1 + below(&mut item.rng, kinds - 1);
        let kind = (tokens[first] / 2 - 1 + other) % kinds;
        tokens[first] = 2 + 2 * kind;
    }
}
