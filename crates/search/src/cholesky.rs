//! Linear systems of symmetric positive definite matrices.

/// The factor of Cholesky: a lower triangular matrix whose product with its transpose is the matrix.
pub struct Cholesky {
    size: usize,
    /// Row by row.
    lower: Vec<f64>,
}

impl Cholesky {
    /// The factor of a matrix that is given row by row; none if the matrix is not positive definite.
    pub fn of(mut matrix: Vec<f64>, size: usize) -> Option<Self> {
        for row in 0..size {
            for column in 0..=row {
                let (above, below) = matrix.split_at(row * size);
                let left = &below[..column];
                let other = if column == row {
                    left
                } else {
                    &above[column * size..][..column]
                };
                let rest = below[column] - dot(left, other);
                matrix[row * size + column] = if column == row {
                    if rest.is_nan() || rest <= 0.0 {
                        return None;
                    }
                    rest.sqrt()
                } else {
                    rest / matrix[column * size + column]
                };
            }
        }
        Some(Self {
            size,
            lower: matrix,
        })
    }

    fn row(&self, row: usize) -> &[f64] {
        &self.lower[row * self.size..][..=row]
    }

    /// The solution of the system with only the factor.
    pub fn forward(&self, mut right: Vec<f64>) -> Vec<f64> {
        for at in 0..self.size {
            let row = self.row(at);
            right[at] = (right[at] - dot(&row[..at], &right[..at])) / row[at];
        }
        right
    }

    /// The solution of the system.
    pub fn solve(&self, right: Vec<f64>) -> Vec<f64> {
        let mut right = self.forward(right);
        for at in (0..self.size).rev() {
            let row = self.row(at);
            right[at] /= row[at];
            let value = right[at];
            for (other, factor) in right[..at].iter_mut().zip(row) {
                *other -= value * factor;
            }
        }
        right
    }

    /// The inverse of the matrix, row by row; only what is on and below the diagonal.
    pub fn inverse(&self) -> Vec<f64> {
        let size = self.size;
        // The inverse of the factor, column by column: each begins at the diagonal.
        let mut columns = vec![0.0; size * size];
        for (at, column) in columns.chunks_mut(size).enumerate() {
            column[at] = 1.0 / self.row(at)[at];
            for below in at + 1..size {
                let row = self.row(below);
                column[below] = -dot(&row[at..below], &column[at..below]) / row[below];
            }
        }
        let mut inverse = vec![0.0; size * size];
        for row in 0..size {
            let own = &columns[row * size..][row..size];
            for column in 0..=row {
                inverse[row * size + column] = dot(own, &columns[column * size..][row..size]);
            }
        }
        inverse
    }

    /// The logarithm of the determinant of the matrix.
    pub fn log_determinant(&self) -> f64 {
        let logs = (0..self.size).map(|at| self.row(at)[at].ln());
        2.0 * logs.sum::<f64>()
    }
}

/// The sum of the products, in as many parts as processors add at once.
pub fn dot(left: &[f64], right: &[f64]) -> f64 {
    let (left, left_rest) = left.as_chunks::<8>();
    let (right, right_rest) = right.as_chunks::<8>();
    let mut parts = [0.0; 8];
    for (a, b) in left.iter().zip(right) {
        for (part, (a, b)) in parts.iter_mut().zip(a.iter().zip(b)) {
            *part += a * b;
        }
    }
    let rest = left_rest.iter().zip(right_rest).map(|(a, b)| a * b);
    parts.iter().sum::<f64>() + rest.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solutions_solve_the_system() {
        let matrix = vec![4.0, 2.0, 0.4, 2.0, 5.0, -1.0, 0.4, -1.0, 3.0];
        let factor = Cholesky::of(matrix.clone(), 3).unwrap();
        let found = factor.solve(vec![1.0, 2.0, 3.0]);
        for (row, right) in matrix.chunks(3).zip([1.0, 2.0, 3.0]) {
            assert!((dot(row, &found) - right).abs() < 1e-12);
        }
        let inverse = factor.inverse();
        let inverse = |row: usize, column: usize| inverse[row.max(column) * 3 + row.min(column)];
        for (at, row) in matrix.chunks(3).enumerate() {
            for other in 0..3 {
                let column = [0, 1, 2].map(|at| inverse(at, other));
                let expected = f64::from(u8::from(at == other));
                assert!((dot(row, &column) - expected).abs() < 1e-12);
            }
        }
        // 4 (15 - 1) - 2 (6 + 0.4) + 0.4 (-2 - 2)
        assert!((factor.log_determinant() - 41.6_f64.ln()).abs() < 1e-12);
        assert!(Cholesky::of(vec![1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(Cholesky::of(vec![f64::NAN], 1).is_none());
    }
}
