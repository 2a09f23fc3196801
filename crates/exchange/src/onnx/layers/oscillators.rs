//! Damped linear oscillators.

use super::super::{Attribute, OnnxError};
use super::Scope;

/// A step of each oscillator: velocity and position by velocity and position.
type Matrix = [[Vec<f64>; 2]; 2];

/// The matrix of a step, and what the drive is multiplied with in both.
fn steps(scope: &Scope<'_>) -> Result<(Matrix, [Vec<f64>; 2]), OnnxError> {
    let read = |path: &str| Ok::<_, OnnxError>(scope.tensor(path)?.to_f64s());
    let (steps, damping, stiffness) = (read("time_step")?, read("damping")?, read("stiffness")?);
    let mut matrix: Matrix = Default::default();
    let mut driven: [Vec<f64>; 2] = Default::default();
    for ((step, damping), stiffness) in steps.into_iter().zip(damping).zip(stiffness) {
        let step = 1.0 / (1.0 + (-step).exp());
        let scale = 1.0 + step * damping.max(0.0);
        let (middle, width) = (1.0 + scale, 2.0 * scale.sqrt());
        let square = (step * step).max(1e-6);
        let low = (middle - width) / square;
        let stiffness = stiffness.max(low).min((middle + width) / square);
        let short = step / scale;
        matrix[0][0].push(1.0 / scale);
        matrix[0][1].push(-short * stiffness);
        matrix[1][0].push(short);
        matrix[1][1].push(1.0 - step * short * stiffness);
        driven[0].push(short);
        driven[1].push(step * short);
    }
    Ok((matrix, driven))
}

fn squared(matrix: &Matrix) -> Matrix {
    let entry = |row: usize, column: usize| {
        let term = |at: usize, of: usize| matrix[row][at][of] * matrix[at][column][of];
        let each = 0..matrix[0][0].len();
        each.map(|of| term(0, of) + term(1, of)).collect()
    };
    [0, 1].map(|row| [0, 1].map(|column| entry(row, column)))
}

/// The positions of all steps by a parallel scan, as the program computes them.
pub fn dlinoss(scope: &mut Scope<'_>, x: &str) -> Result<String, OnnxError> {
    let length = scope.dims()[0];
    let (mut matrix, driven) = steps(scope)?;
    let names = ["input_matrix", "output_matrix", "skip"].map(|path| scope.weight(path));
    let [input, output, skip] = names;
    let (input, output, skip) = (input?, output?, skip?);
    let graph = &mut *scope.graph;
    // The same for real and imaginary parts.
    let factor = |graph: &mut super::Graph, values: &[f64]| {
        let both = [values, values].concat();
        let both: Vec<f32> = both.into_iter().map(|value| value as f32).collect();
        graph.numbers(&[both.len()], &both)
    };
    let drive = graph.node("MatMul", &[x, &input], &[]);
    let mut state = driven.map(|values| {
        let values = factor(graph, &values);
        graph.node("Mul", &[&drive, &values], &[])
    });
    let axis = graph.integers(&[1]);
    let start = graph.integers(&[0]);
    let mut done = 1;
    while done < length {
        let [middle, end, others] =
            [done, length, length - done].map(|at| graph.integers(&[at as i64]));
        let part = |graph: &mut super::Graph, name: &str, from: &str, to: &str| {
            graph.node("Slice", &[name, from, to, &axis], &[])
        };
        let before = [0, 1].map(|at| part(graph, &state[at], &start, &others));
        state = [0, 1].map(|row| {
            let terms = [0, 1].map(|column| {
                let values = factor(graph, &matrix[row][column]);
                graph.node("Mul", &[&before[column], &values], &[])
            });
            let first = part(graph, &state[row], &start, &middle);
            let later = part(graph, &state[row], &middle, &end);
            let later = graph.node("Add", &[&later, &terms[0]], &[]);
            let later = graph.node("Add", &[&later, &terms[1]], &[]);
            graph.node("Concat", &[&first, &later], &[Attribute::Int("axis", 1)])
        });
        done *= 2;
        matrix = squared(&matrix);
    }
    let seen = graph.node("MatMul", &[&state[1], &output], &[]);
    let skipped = graph.node("Mul", &[x, &skip], &[]);
    Ok(graph.node("Add", &[&seen, &skipped], &[]))
}
