//! Convolutions as matrix products over windows laid out as columns.

use rayon::prelude::*;

use super::columns::{Layout, gather, scatter};
use super::geometry::Volume;
use super::product::{Matrix, product};
use super::scratch::{self, Shared, written};
use super::vectors::vectorized;

/// Numbers in the columns that are laid out at a time: 256 KiB, which leaves room in the L2 cache.
const PANEL: usize = 1 << 16;
/// Positions are taken in steps of this many, the largest number of rows of a kernel of `gemm`.
const STEP: usize = 64;
/// `gemm` packs its left side if there are more columns than this, which the layout here makes unnecessary.
const NARROW: usize = if cfg!(target_arch = "x86_64") { 48 } else { 32 };
/// The number of rows of a kernel of `gemm` is a multiple of a register, which is no longer than this.
pub const REGISTER: usize = 16;

/// How channels and positions are divided into panels of columns.
struct Cut {
    channels: usize,
    positions: usize,
}

fn cut(geometry: &Volume) -> Cut {
    let taps = geometry.taps();
    let channels = (1024 / taps).clamp(1, geometry.group_inputs());
    let positions = (PANEL / (channels * taps) / STEP * STEP).clamp(STEP, 8 * STEP);
    Cut {
        channels,
        positions,
    }
}

/// The output for items, weights \[outputs, group inputs, taps\] and a bias for each output.
pub fn forward(geometry: &Volume, x: &[f32], weight: &[f32], bias: Option<&[f32]>) -> Vec<f32> {
    let (area, outputs) = (geometry.area_out(), geometry.group_outputs());
    let (inputs, taps) = (geometry.group_inputs(), geometry.taps());
    let cut = cut(geometry);
    let layout = Layout::new(geometry);
    let num_parts = area.div_ceil(cut.positions);
    let write = |to: Shared| {
        let num_tasks = geometry.items * geometry.groups * num_parts;
        let task = |task: usize| {
            let (item, group) = (
                task / num_parts / geometry.groups,
                task / num_parts % geometry.groups,
            );
            let part = task % num_parts * cut.positions;
            let part = part..(part + cut.positions).min(area);
            let x = &x[(item * geometry.inputs + group * inputs) * geometry.area_in()..];
            let output = (item * geometry.groups + group) * outputs;
            for at in 0..outputs {
                if let Some(bias) = bias {
                    // SAFETY: only this task writes these positions of these channels.
                    unsafe {
                        to.filled(
                            (output + at) * area + part.start,
                            part.len(),
                            bias[group * outputs + at],
                        )
                    };
                }
            }
            let pitch = cut.positions;
            let panel = if geometry.is_pointwise() {
                0
            } else {
                cut.channels * taps * pitch
            };
            scratch::with(panel, |panel| {
                for first in (0..inputs).step_by(cut.channels) {
                    let channels = cut.channels.min(inputs - first);
                    let x = &x[first * geometry.area_in()..];
                    let lhs = if geometry.is_pointwise() {
                        Matrix {
                            values: &x[part.start..],
                            row: 1,
                            column: area,
                        }
                    } else {
                        gather(&layout, x, channels, part.clone(), panel, pitch);
                        Matrix {
                            values: panel,
                            row: 1,
                            column: pitch,
                        }
                    };
                    let adds = bias.is_some() || first > 0;
                    let wide = if geometry.is_pointwise() {
                        outputs
                    } else {
                        NARROW
                    };
                    for from in (0..outputs).step_by(wide) {
                        let rhs = Matrix {
                            values: &weight[((group * outputs + from) * inputs + first) * taps..],
                            row: 1,
                            column: inputs * taps,
                        };
                        let n = wide.min(outputs - from);
                        // Whole registers first: `gemm` would copy all rows if the last one was partial.
                        let whole = part.len() / REGISTER * REGISTER;
                        for (at, m) in [(0, whole), (whole, part.len() - whole)] {
                            if m > 0 {
                                let lhs = Matrix {
                                    values: &lhs.values[at..],
                                    ..lhs
                                };
                                let to = to.at((output + from) * area + part.start + at);
                                // SAFETY: only this task writes these positions of these channels, and it has
                                // written them when it adds.
                                unsafe {
                                    product(
                                        geometry.arithmetic,
                                        [m, n, channels * taps],
                                        to,
                                        area,
                                        adds,
                                        lhs,
                                        rhs,
                                    )
                                };
                            }
                        }
                    }
                }
            });
        };
        (0..num_tasks).into_par_iter().for_each(task);
    };
    // SAFETY: the tasks cover all positions of all channels of all items.
    unsafe { written(geometry.items * geometry.outputs * area, write) }
}

/// The gradient of the input.
pub fn backward_input(geometry: &Volume, gradient: &[f32], weight: &[f32]) -> Vec<f32> {
    let (area, outputs) = (geometry.area_out(), geometry.group_outputs());
    let (inputs, taps) = (geometry.group_inputs(), geometry.taps());
    let area_in = geometry.area_in();
    let channels = if geometry.is_pointwise() {
        inputs
    } else {
        (512 / taps).clamp(1, inputs)
    };
    let positions = (PANEL / (channels * taps) / STEP * STEP).clamp(STEP, 8 * STEP);
    let num_blocks = inputs.div_ceil(channels);
    let layout = Layout::new(geometry);
    // [group, tap of an input, output], so that a product finds its terms contiguously.
    let width = inputs * taps;
    let mut turned = vec![0.0; weight.len()];
    for group in 0..geometry.groups {
        let from = &weight[group * outputs * width..][..outputs * width];
        let to = &mut turned[group * outputs * width..][..outputs * width];
        for at in 0..width {
            for output in 0..outputs {
                to[at * outputs + output] = from[output * width + at];
            }
        }
    }
    let write = |to: Shared| {
        let task = |task: usize| {
            let (item, group) = (
                task / num_blocks / geometry.groups,
                task / num_blocks % geometry.groups,
            );
            let first = task % num_blocks * channels;
            let channels = channels.min(inputs - first);
            let gradient =
                &gradient[(item * geometry.groups + group) * outputs * area..][..outputs * area];
            let turned = &turned[(group * width + first * taps) * outputs..];
            let place = (item * geometry.inputs + group * inputs + first) * area_in;
            let rhs = Matrix {
                values: turned,
                row: 1,
                column: outputs,
            };
            let pointwise = geometry.is_pointwise();
            // SAFETY: only this task writes these channels of the item.
            let dx = (!pointwise).then(|| unsafe { to.filled(place, channels * area_in, 0.0) });
            let panel = if pointwise {
                0
            } else {
                channels * taps * positions
            };
            scratch::with(panel, |panel| {
                let mut dx = dx;
                for from in (0..area).step_by(positions) {
                    let past = (from + positions).min(area);
                    let lhs = Matrix {
                        values: &gradient[from..],
                        row: 1,
                        column: area,
                    };
                    let size = [past - from, channels * taps, outputs];
                    match &mut dx {
                        // SAFETY: only this task writes these channels of the item.
                        None => unsafe {
                            product(
                                geometry.arithmetic,
                                size,
                                to.at(place + from),
                                area,
                                false,
                                lhs,
                                rhs,
                            )
                        },
                        Some(dx) => {
                            // SAFETY: the panel is this thread's, and has a row of `positions` for each tap.
                            unsafe {
                                product(
                                    geometry.arithmetic,
                                    size,
                                    panel.as_mut_ptr(),
                                    positions,
                                    false,
                                    lhs,
                                    rhs,
                                )
                            };
                            scatter(&layout, panel, positions, channels, from..past, dx);
                        }
                    }
                }
            });
        };
        let num_tasks = geometry.items * geometry.groups * num_blocks;
        (0..num_tasks).into_par_iter().for_each(task);
    };
    // SAFETY: the tasks cover all channels of all items.
    unsafe { written(geometry.items * geometry.inputs * area_in, write) }
}

/// The number of parts that items are divided into for sums, whatever the number of threads.
const PARTS: usize = 16;

/// The number of parts that items are divided into for this many sums, each part with its own; they take at most 4 MiB.
pub fn parts(geometry: &Volume, num_sums: usize) -> usize {
    let most = (1 << 20) / num_sums.max(1);
    most.clamp(1, PARTS).min(geometry.items)
}

/// The gradient of the weights.
pub fn backward_weight(geometry: &Volume, x: &[f32], gradient: &[f32]) -> Vec<f32> {
    let (area, outputs) = (geometry.area_out(), geometry.group_outputs());
    let (inputs, taps) = (geometry.group_inputs(), geometry.taps());
    let cut = cut(geometry);
    let layout = Layout::new(geometry);
    let num_blocks = inputs.div_ceil(cut.channels);
    let num_weights = geometry.outputs * inputs * taps;
    let num_parts = parts(geometry, num_weights);
    let block = |at: usize| {
        let (part, group, first) = (
            at / num_blocks / geometry.groups,
            at / num_blocks % geometry.groups,
            at % num_blocks * cut.channels,
        );
        (part, group, first, cut.channels.min(inputs - first))
    };
    // Outputs are contiguous, in whole registers.
    let wide = outputs.next_multiple_of(REGISTER);
    let task = |at: usize| {
        let (part, group, first, channels) = block(at);
        let items = part * geometry.items / num_parts..(part + 1) * geometry.items / num_parts;
        // [tap of an input, output]
        let mut sums = vec![0.0; channels * taps * wide];
        let pitch = cut.positions;
        let panel = if geometry.is_pointwise() {
            0
        } else {
            channels * taps * pitch
        };
        scratch::with(wide * pitch + panel, |scratch| {
            let (turned, panel) = scratch.split_at_mut(wide * pitch);
            turned.fill(0.0);
            for item in items {
                let x =
                    &x[(item * geometry.inputs + group * inputs + first) * geometry.area_in()..];
                let gradient = &gradient[(item * geometry.groups + group) * outputs * area..];
                for from in (0..area).step_by(pitch) {
                    let part = from..(from + pitch).min(area);
                    let num = part.len();
                    turn(&gradient[from..], area, [outputs, num], turned, wide);
                    let lhs = Matrix {
                        values: turned,
                        row: 1,
                        column: wide,
                    };
                    let rhs = if geometry.is_pointwise() {
                        Matrix {
                            values: &x[from..],
                            row: 1,
                            column: area,
                        }
                    } else {
                        gather(&layout, x, channels, part, panel, pitch);
                        Matrix {
                            values: panel,
                            row: 1,
                            column: pitch,
                        }
                    };
                    let size = [wide, channels * taps, num];
                    // SAFETY: the sums are this task's, `wide` for each tap, and initialized.
                    unsafe {
                        product(
                            geometry.arithmetic,
                            size,
                            sums.as_mut_ptr(),
                            wide,
                            true,
                            lhs,
                            rhs,
                        )
                    };
                }
            }
        });
        sums
    };
    let num_tasks = num_parts * geometry.groups * num_blocks;
    let sums: Vec<Vec<f32>> = (0..num_tasks).into_par_iter().map(task).collect();
    let mut weight = vec![0.0; num_weights];
    // The sums of all parts of each channel, in their order.
    let rows = weight.par_chunks_mut(REGISTER * inputs * taps).enumerate();
    rows.for_each(|(at, rows)| {
        let channels = at * REGISTER..at * REGISTER + rows.len() / (inputs * taps);
        for (at, sums) in sums.iter().enumerate() {
            let (_, group, first, num) = block(at);
            let of_group = group * outputs..(group + 1) * outputs;
            let channels = channels.start.max(of_group.start)..channels.end.min(of_group.end);
            for tap in 0..num * taps {
                for channel in channels.clone() {
                    let row = channel % REGISTER * inputs * taps;
                    rows[row + first * taps + tap] += sums[tap * wide + channel - of_group.start];
                }
            }
        }
    });
    weight
}

vectorized! {
    /// Transposes a matrix of `size` rows and columns with row pitch `pitch`, to column pitch `wide`.
    pub fn turn = turn_now(
        from: &[f32],
        pitch: usize,
        size: [usize; 2],
        to: &mut [f32],
        wide: usize,
    );
}

#[inline(always)]
fn turn_now(from: &[f32], pitch: usize, [rows, columns]: [usize; 2], to: &mut [f32], wide: usize) {
    // Several rows are read in parallel, since memory latency dominates.
    const STEP: usize = 8;
    for row in (0..rows).step_by(STEP) {
        for column in (0..columns).step_by(STEP) {
            if row + STEP <= rows && column + STEP <= columns {
                let block: [&[f32; STEP]; STEP] = std::array::from_fn(|at| {
                    let from = &from[(row + at) * pitch + column..][..STEP];
                    from.try_into().expect("equal lengths")
                });
                for at in 0..STEP {
                    let turned: [f32; STEP] = std::array::from_fn(|lane| block[lane][at]);
                    to[(column + at) * wide + row..][..STEP].copy_from_slice(&turned);
                }
                continue;
            }
            for row in row..rows.min(row + STEP) {
                for column in column..columns.min(column + STEP) {
                    to[column * wide + row] = from[row * pitch + column];
                }
            }
        }
    }
}

/// The sum of each of some channels over items and positions.
pub fn channel_sums(values: &[f32], channels: usize, area: usize) -> Vec<f32> {
    let items = values.len().checked_div(channels * area).unwrap_or(0);
    let of = |channel: usize| {
        let items = 0..items;
        let sums = items.map(|item| sum(&values[(item * channels + channel) * area..][..area]));
        sums.sum::<f64>() as f32
    };
    (0..channels).into_par_iter().map(of).collect()
}

/// A sum of numbers, with 16 neighboring partial sums.
fn sum(values: &[f32]) -> f64 {
    let mut lanes = [0.0f32; 16];
    let mut chunks = values.chunks_exact(16);
    for chunk in &mut chunks {
        for (lane, value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    let rest: f32 = chunks.remainder().iter().sum();
    f64::from(lanes.iter().sum::<f32>() + rest)
}
