//! Dynamic mode decomposition of the differences between consecutive snapshots (Schmid, 2010), by their inner products.
//!
//! Near a minimum, the updates of gradient descent follow each other by a linear map. The map is fitted to the known
//! differences, on the `rank` directions in which they are largest. A predicted update is then a sum of the differences,
//! whose factors follow from their inner products: numbers, whatever the size of the weights.

/// Directions whose squared length is below this share of the largest one's are rounding errors.
const SMALLEST: f64 = 1e-7;

/// The factors of the differences in the sum of the predicted updates number `from` to `to`, counted from 0. `products`
/// are the inner products of each two differences, row by row, the oldest one first.
pub fn factors(products: &[f64], rank: usize, from: usize, to: usize) -> Vec<f64> {
    let num = products.len().isqrt();
    let known = num - 1;
    let at = |row: usize, column: usize| products[row * num + column];
    let square = |from: usize| -> Vec<Vec<f64>> {
        let row = |row: usize| (from..from + known).map(move |column| at(row, column));
        (0..known).map(|of| row(of).collect()).collect()
    };
    // How differences before the last follow from all but the first one.
    let inverse = inverse(square(0), rank);
    let next = product(&inverse, &square(1));
    // The first prediction continues the last difference.
    let last: Vec<f64> = (0..known).map(|row| at(row, known)).collect();
    let mut factors = applied(&inverse, &last);
    let mut sum = vec![0.0; num];
    for update in 0..to {
        if update >= from {
            for (sum, factor) in sum[1..].iter_mut().zip(&factors) {
                *sum += factor;
            }
        }
        factors = applied(&next, &factors);
    }
    sum
}

type Matrix = Vec<Vec<f64>>;

fn applied(matrix: &Matrix, vector: &[f64]) -> Vec<f64> {
    let rows = matrix.iter();
    rows.map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum())
        .collect()
}

fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let columns = 0..b.len();
    let column = |at: usize| -> Vec<f64> { b.iter().map(|row| row[at]).collect() };
    let columns: Matrix = columns.map(|at| applied(a, &column(at))).collect();
    (0..a.len())
        .map(|row| columns.iter().map(|column| column[row]).collect())
        .collect()
}

/// The pseudo-inverse of a symmetric matrix on its `rank` largest directions.
fn inverse(matrix: Matrix, rank: usize) -> Matrix {
    let num = matrix.len();
    let mut directions = eigen(matrix);
    directions.sort_by(|a, b| b.0.total_cmp(&a.0));
    let largest = directions.first().map_or(0.0, |(value, _)| *value);
    directions.truncate(rank);
    directions.retain(|(value, _)| *value > largest * SMALLEST && *value > 0.0);
    let entry = |row: usize, column: usize| {
        let directions = directions.iter();
        directions
            .map(|(value, vector)| vector[row] * vector[column] / value)
            .sum()
    };
    (0..num)
        .map(|row| (0..num).map(|column| entry(row, column)).collect())
        .collect()
}

/// The eigenvalues of a symmetric matrix with their vectors, by Jacobi's rotations.
fn eigen(mut matrix: Matrix) -> Vec<(f64, Vec<f64>)> {
    const SWEEPS: usize = 30;
    let num = matrix.len();
    let unit = |row: usize| (0..num).map(move |column| if row == column { 1.0 } else { 0.0 });
    // Each row is a vector.
    let mut vectors: Matrix = (0..num).map(|row| unit(row).collect()).collect();
    for _ in 0..SWEEPS {
        for p in 0..num {
            for q in p + 1..num {
                if matrix[p][q] == 0.0 {
                    continue;
                }
                let (cos, sin) = rotation(matrix[p][p], matrix[q][q], matrix[p][q]);
                for row in &mut matrix {
                    (row[p], row[q]) = (cos * row[p] - sin * row[q], sin * row[p] + cos * row[q]);
                }
                rotate(&mut matrix, p, q, (cos, sin));
                rotate(&mut vectors, p, q, (cos, sin));
            }
        }
    }
    let values = (0..num).map(|at| matrix[at][at]);
    values.zip(vectors).collect()
}

/// Cosine and sine of the rotation that makes the entry between two axes zero.
fn rotation(first: f64, second: f64, between: f64) -> (f64, f64) {
    let theta = (second - first) / (2.0 * between);
    let tangent = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let cos = 1.0 / (tangent * tangent + 1.0).sqrt();
    (cos, tangent * cos)
}

fn rotate(rows: &mut Matrix, p: usize, q: usize, (cos, sin): (f64, f64)) {
    for column in 0..rows[p].len() {
        let (a, b) = (rows[p][column], rows[q][column]);
        rows[p][column] = cos * a - sin * b;
        rows[q][column] = sin * a + cos * b;
    }
}

#[cfg(test)]
mod tests {
    use super::{eigen, factors};

    /// The inner products of vectors.
    fn products(vectors: &[Vec<f64>]) -> Vec<f64> {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum();
        let pairs = vectors
            .iter()
            .flat_map(|a| vectors.iter().map(move |b| dot(a, b)));
        pairs.collect()
    }

    #[test]
    fn a_symmetric_matrix_is_the_sum_of_its_directions() {
        let matrix = vec![
            vec![4.0, 1.0, -2.0],
            vec![1.0, 3.0, 0.5],
            vec![-2.0, 0.5, 5.0],
        ];
        let found = eigen(matrix.clone());
        for (row, wanted) in matrix.iter().enumerate() {
            for (column, wanted) in wanted.iter().enumerate() {
                let sum: f64 = found
                    .iter()
                    .map(|(value, v)| value * v[row] * v[column])
                    .sum();
                assert!((sum - wanted).abs() < 1e-12, "{sum} {wanted}");
            }
        }
    }

    /// Updates that a linear map of three directions repeats, one of them turning around.
    #[test]
    fn updates_that_follow_a_linear_map_are_predicted() {
        let update = |step: i32| {
            let of = |rate: f64, size: f64| size * rate.powi(step);
            vec![of(0.9, 1.0), of(0.5, 2.0), of(-0.7, 0.5)]
        };
        let known: Vec<_> = (0..5).map(update).collect();
        let found = factors(&products(&known), 3, 2, 12);
        for axis in 0..3 {
            let wanted: f64 = (7..17).map(|step| update(step)[axis]).sum();
            let predicted: f64 = found.iter().zip(&known).map(|(f, d)| f * d[axis]).sum();
            assert!(
                (predicted - wanted).abs() < 1e-6,
                "{axis}: {predicted} {wanted}"
            );
        }
        // Fewer directions predict less.
        let rough = factors(&products(&known), 1, 0, 1);
        let first: f64 = rough.iter().zip(&known).map(|(f, d)| f * d[0]).sum();
        assert!((first - update(5)[0]).abs() > 1e-3);
    }

    #[test]
    fn weights_that_stand_still_are_predicted_to_stand_still() {
        assert_eq!(factors(&[0.0; 16], 3, 0, 9), [0.0; 4]);
    }
}
