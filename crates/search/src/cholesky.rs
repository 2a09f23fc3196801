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

    /// The inverse of the matrix, row by row.
    pub fn inverse(&self) -> Vec<f64> {
        let columns = (0..self.size).flat_map(|at| {
            let mut unit = vec![0.0; self.size];
            unit[at] = 1.0;
            self.solve(unit)
        });
        columns.collect()
    }

    /// The logarithm of the determinant of the matrix.
    pub fn log_determinant(&self) -> f64 {
        let logs = (0..self.size).map(|at| self.row(at)[at].ln());
        2.0 * logs.sum::<f64>()
    }
}

pub fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(a, b)| a * b).sum()
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
        for (at, row) in matrix.chunks(3).enumerate() {
            for other in 0..3 {
                let product = dot(row, &inverse[other * 3..][..3]);
                assert!((product - f64::from(u8::from(at == other))).abs() < 1e-12);
            }
        }
        // 4 (15 - 1) - 2 (6 + 0.4) + 0.4 (-2 - 2)
        assert!((factor.log_determinant() - 41.6_f64.ln()).abs() < 1e-12);
        assert!(Cholesky::of(vec![1.0, 2.0, 2.0, 1.0], 2).is_none());
        assert!(Cholesky::of(vec![f64::NAN], 1).is_none());
    }
}
