//! Linear recurrences: each state is the one before times a factor, plus an update, separately for each column.
//!
//! On a processor, the plain loop over positions is faster than a parallel scan, which multiplies the work by the
//! logarithm of the length: threads share items and columns instead. Products and sums are not fused and have one
//! order, so results are bitwise equal on every processor and for any number of threads.

#[cfg(test)]
mod tests;

use rayon::prelude::*;

use super::scratch::{Shared, written};
use super::vectors::vectorized;

/// The columns of a task: few enough that their states stay in registers or the fastest memory.
const COLUMNS: usize = 64;
/// Tasks with fewer numbers than this take less time than handing them to a thread.
const LEAST: usize = 8192;

/// The sizes of a recurrence over \[items, length, columns\].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan {
    /// Independent sequences.
    pub items: usize,
    /// Positions of a sequence.
    pub length: usize,
    /// Numbers at a position.
    pub columns: usize,
    /// Whether states come from the last position instead of the first.
    pub is_reverse: bool,
}

impl Scan {
    fn num(self) -> usize {
        self.items * self.length * self.columns
    }

    /// The place of the first of a task's columns, at a position in the order of computation.
    fn place(self, (item, first): (usize, usize), step: usize) -> usize {
        let position = if self.is_reverse {
            self.length - 1 - step
        } else {
            step
        };
        (item * self.length + position) * self.columns + first
    }

    /// Calls for each item and its first column of a task, on any thread.
    fn each_task(self, call: impl Fn((usize, usize)) + Sync) {
        let per_item = self.columns.div_ceil(COLUMNS);
        let numbers = self.length * self.columns.min(COLUMNS);
        let tasks = (0..self.items * per_item).into_par_iter();
        tasks
            .with_min_len(LEAST.div_ceil(numbers.max(1)))
            .for_each(|task| call((task / per_item, task % per_item * COLUMNS)));
    }
}

/// The states: h\[t\] = factors\[t\] h\[t - 1\] + updates\[t\], of which the first is its update.
///
/// # Panics
/// If lengths do not match the sizes.
pub fn scan(scan: Scan, factors: &[f32], updates: &[f32]) -> Vec<f32> {
    assert!(factors.len() == scan.num() && updates.len() == scan.num());
    // SAFETY: the tasks cover all columns of all items, at all positions.
    unsafe {
        written(scan.num(), |to| {
            scan.each_task(|task| states(scan, task, factors, updates, to));
        })
    }
}

/// The gradients of factors and updates for those of the states.
///
/// # Panics
/// If lengths do not match the sizes.
pub fn scan_backward(
    scan: Scan,
    factors: &[f32],
    states: &[f32],
    gradient: &[f32],
) -> [Vec<f32>; 2] {
    let all = [factors, states, gradient];
    assert!(all.iter().all(|numbers| numbers.len() == scan.num()));
    let mut of_updates = Vec::new();
    // SAFETY: the tasks cover all columns of all items, at all positions, in both.
    let of_factors = unsafe {
        written(scan.num(), |to_factors| {
            of_updates = written(scan.num(), |to_updates| {
                let to = [to_factors, to_updates];
                scan.each_task(|task| gradients(scan, task, all, to));
            });
        })
    };
    [of_factors, of_updates]
}

vectorized! {
    fn states = states_now(scan: Scan, task: (usize, usize), factors: &[f32], updates: &[f32], to: Shared);
}

#[inline(always)]
fn states_now(scan: Scan, task: (usize, usize), factors: &[f32], updates: &[f32], to: Shared) {
    let columns = COLUMNS.min(scan.columns - task.1);
    let mut state = [0.0; COLUMNS];
    let state = &mut state[..columns];
    for step in 0..scan.length {
        let place = scan.place(task, step);
        let factors = &factors[place..place + columns];
        let updates = &updates[place..place + columns];
        if step == 0 {
            // Not 0 times a factor, which may be infinite.
            state.copy_from_slice(updates);
        } else {
            for at in 0..columns {
                state[at] = factors[at] * state[at] + updates[at];
            }
        }
        // SAFETY: only this task writes these columns of this item.
        unsafe { to.write(place, state) };
    }
}

vectorized! {
    fn gradients = gradients_now(scan: Scan, task: (usize, usize), given: [&[f32]; 3], to: [Shared; 2]);
}

#[inline(always)]
fn gradients_now(scan: Scan, task: (usize, usize), given: [&[f32]; 3], to: [Shared; 2]) {
    let [factors, states, gradient] = given;
    let columns = COLUMNS.min(scan.columns - task.1);
    let (mut update, mut factor) = ([0.0; COLUMNS], [0.0; COLUMNS]);
    // What the states after a position pass back to it.
    let mut later = [0.0; COLUMNS];
    for step in (0..scan.length).rev() {
        let place = scan.place(task, step);
        let at_step = &factors[place..place + columns];
        let gradient = &gradient[place..place + columns];
        let before = step.checked_sub(1).map(|before| {
            let place = scan.place(task, before);
            &states[place..place + columns]
        });
        for at in 0..columns {
            update[at] = gradient[at] + later[at];
            later[at] = at_step[at] * update[at];
        }
        match before {
            Some(before) => {
                for at in 0..columns {
                    factor[at] = before[at] * update[at];
                }
            }
            // The state before the first position is 0, whatever its factor is.
            None => factor = [0.0; COLUMNS],
        }
        // SAFETY: only this task writes these columns of this item.
        unsafe {
            to[0].write(place, &factor[..columns]);
            to[1].write(place, &update[..columns]);
        }
    }
}
