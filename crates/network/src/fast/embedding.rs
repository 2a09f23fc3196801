//! Embedding lookup, and that of items.

use std::sync::Arc;

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use burn::tensor::{Int, Shape, Tensor};
use runner_kernels::embedding::{gather, scatter};

use super::operation::{Back, Operation, apply_1, contiguous, is_ours, numbers, sizes, tensor};

/// The operand is the table, \[tokens, width\].
#[derive(Clone, Debug)]
struct Rows {
    rows: Arc<Vec<usize>>,
    /// Of the output, without the width.
    shape: Vec<usize>,
}

impl Operation<1> for Rows {
    /// The table's shape.
    type Kept = Shape;

    fn asks_for(&self, _: [bool; 1]) -> [bool; 1] {
        [false]
    }

    fn forward(&self, [table]: [FlexTensor; 1], is_kept: bool) -> (FlexTensor, Option<Shape>) {
        let table = contiguous(table);
        let width = sizes(&table)[1];
        let rows = gather(numbers(&table), width, &self.rows);
        let shape = [self.shape.as_slice(), &[width]].concat();
        let output = tensor(rows, Shape::from(shape));
        (output, is_kept.then(|| table.shape()))
    }

    fn backward(&self, back: Back<Shape, 1>) -> [Option<FlexTensor>; 1] {
        let (rows, width) = (back.kept[0], back.kept[1]);
        let sums = scatter(numbers(&back.gradient), width, &self.rows, rows);
        [Some(tensor(sums, back.kept))]
    }
}

/// The row of a table at each place, if that is supported here: with one axis more than the places, the width.
pub fn rows<const D: usize, const E: usize>(
    table: Tensor<2>,
    places: &Tensor<D, Int>,
) -> Option<Tensor<E>> {
    let [num, width] = table.dims();
    if !is_ours(&table) || places.shape().num_elements() == 0 || width == 0 {
        return None;
    }
    let shape = places.dims().to_vec();
    let places = places.to_data();
    let places = places.iter::<i64>();
    let known = places.map(|place| usize::try_from(place).ok().filter(|place| *place < num));
    let rows: Option<Vec<usize>> = known.collect();
    let operation = Rows {
        rows: Arc::new(rows?),
        shape,
    };
    Some(apply_1(table, operation))
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use crate::tensor::{DynTensor, map_rank};

    use super::*;

    #[test]
    fn items_are_those_that_burn_selects() {
        let plain = Device::flex();
        for device in [plain.clone(), plain.autodiff()] {
            for shape in [vec![7], vec![90, 5], vec![40, 3, 6], vec![90, 1, 28, 28]] {
                let num = shape.iter().product::<usize>();
                let values = (0..num).map(|at| at as f32 - 3.0).collect();
                let items = DynTensor::from_values(values, &shape, &device);
                let places: Vec<i32> = (0..80).map(|at| at * at % shape[0] as i32).collect();
                let places = TensorData::new(places, [80]);
                let places = Tensor::<1, Int>::from_data(places, &device);
                let found = items.clone().select(places.clone());
                let expected = map_rank!(items, t => t.select(0, places));
                assert_eq!(found.dims(), expected.dims());
                let [found, expected] = [found, expected].map(|items| items.flatten().into_data());
                assert_eq!(found, expected);
            }
        }
    }
}
