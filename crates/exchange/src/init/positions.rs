//! Tables of the positions of patches, interpolated to images of another size.

use crate::tensors::NamedTensor;

/// A table \[1 + patches, width\], as a file has it, for another number of patches. The first row, that of the class
/// token, is kept; the others are interpolated like the pixels of a square image, by cubic convolution (Keys, 1981) with
/// the constants of PyTorch's `bicubic`.
pub fn interpolated(table: &NamedTensor, shape: &[usize]) -> NamedTensor {
    let (rows, width) = match *shape {
        [rows, width] => (rows, width),
        _ => unreachable!("a table of positions has two axes"),
    };
    let values = table.to_f32s();
    let from = (values.len() / width - 1).isqrt();
    let to = (rows - 1).isqrt();
    let (first, patches) = values.split_at(width);
    let taps: Vec<_> = (0..to).map(|at| taps(at, from, to)).collect();
    let mut made = first.to_vec();
    made.reserve(to * to * width);
    for row in &taps {
        for column in &taps {
            for feature in 0..width {
                let mut sum = 0.0;
                for (y, of_row) in row {
                    for (x, of_column) in column {
                        let value = patches[(y * from + x) * width + feature];
                        sum += of_row * of_column * f64::from(value);
                    }
                }
                made.push(sum as f32);
            }
        }
    }
    NamedTensor::from_f32s(table.name(), shape.to_vec(), &made)
}

/// The places of the `from` numbers along an axis that the `at`-th of `to` numbers is made of, with their weights.
fn taps(at: usize, from: usize, to: usize) -> [(usize, f64); 4] {
    const A: f64 = -0.75;
    let place = (at as f64 + 0.5) * from as f64 / to as f64 - 0.5;
    let weight = |distance: f64| {
        let x = distance.abs();
        if x <= 1.0 {
            ((A + 2.0) * x - (A + 3.0)) * x * x + 1.0
        } else {
            ((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A
        }
    };
    std::array::from_fn(|tap| {
        let near = place.floor() + tap as f64 - 1.0;
        let inside = near.clamp(0.0, from as f64 - 1.0);
        (inside as usize, weight(place - near))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `torch.nn.functional.interpolate(mode="bicubic", align_corners=False)` of the numbers 0 to 3 as 2x2.
    #[test]
    fn positions_are_those_of_pytorch() {
        let table = NamedTensor::from_f32s("p", vec![1, 5, 1], &[9.0, 0.0, 1.0, 2.0, 3.0]);
        let made = interpolated(&table, &[10, 1]).to_f32s();
        let expected = [
            9.0,
            -0.260_416_8,
            0.326_388_96,
            0.913_194_4,
            0.913_194_7,
            1.5,
            2.086_805_8,
            2.086_805_8,
            2.673_611,
            3.260_417,
        ];
        assert_eq!(made.len(), expected.len());
        for (found, expected) in made.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{made:?}");
        }
    }
}
