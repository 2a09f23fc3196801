//! Documents in items of running text: their numbers at each position, and positions that restart in each.

use std::sync::Arc;

use burn::tensor::{Int, Tensor};

use crate::tensor::DynTensor;
use runner_core::check::network::{Documents, Layer as LayerPlan};

/// The number of the document of each token, \[items, positions\]: they count from 0 in each item, and the token that
/// ends a document belongs to it.
pub fn numbers(items: &DynTensor, documents: Documents) -> DynTensor {
    let DynTensor::Tokens(tokens) = items else {
        panic!("tokens were planned, found {:?}", items.dims());
    };
    let ends = tokens.clone().equal_elem(documents.end as i64).int();
    DynTensor::Tokens(ends.clone().cumsum(1).sub(ends))
}

/// Takes the numbers of documents from the end of a layer's inputs.
pub fn take(plan: &LayerPlan, inputs: &mut Vec<DynTensor>) -> Option<Tensor<2, Int>> {
    plan.documents?;
    match inputs.pop() {
        Some(DynTensor::Tokens(numbers)) => Some(numbers),
        other => panic!("numbers of documents were planned, found {other:?}"),
    }
}

/// The numbers in host memory.
pub fn in_memory(numbers: &Tensor<2, Int>) -> Arc<Vec<u32>> {
    let data = numbers.clone().into_data();
    Arc::new(data.iter::<u32>().collect())
}

/// The position of each token in its document.
pub fn positions(numbers: &Tensor<2, Int>) -> Tensor<2, Int> {
    let [items, length] = numbers.dims();
    let places = Tensor::<1, Int>::arange(0..length as i64, &numbers.device());
    let places = places.reshape([1, length]).expand([items, length]);
    if length < 2 {
        return places;
    }
    let (later, earlier) = (
        numbers.clone().narrow(1, 1, length - 1),
        numbers.clone().narrow(1, 0, length - 1),
    );
    let begins = later.not_equal(earlier).int();
    let first = Tensor::<2, Int>::zeros([items, 1], &numbers.device()).cast(begins.dtype());
    let begins = Tensor::cat(vec![first, begins], 1);
    let starts = places.clone().cast(begins.dtype()).mul(begins).cummax(1);
    places.cast(starts.dtype()).sub(starts)
}

/// The rows of a table at the position of each token in its document, \[items, positions, width\].
pub fn rows(table: Tensor<2>, numbers: &Tensor<2, Int>) -> Tensor<3> {
    let [items, length] = numbers.dims();
    let width = table.dims()[1];
    let places = positions(numbers).reshape([items * length]);
    table.select(0, places).reshape([items, length, width])
}

#[cfg(all(test, feature = "flex"))]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use runner_core::spec::data::DocumentPositions;

    #[test]
    fn a_document_ends_with_its_end_and_positions_restart() {
        let device = Device::flex();
        let tokens = [5i64, 1, 1, 7, 8, 9, 4, 1, 6, 6];
        let tokens = Tensor::<2, Int>::from_data(TensorData::new(tokens.to_vec(), [2, 5]), &device);
        let documents = Documents {
            end: 1,
            positions: DocumentPositions::Restart,
        };
        let DynTensor::Tokens(numbers) = numbers(&DynTensor::Tokens(tokens), documents) else {
            panic!("numbers are whole");
        };
        assert_eq!(*in_memory(&numbers), [0, 0, 1, 2, 2, 0, 0, 0, 1, 1]);
        let found: Vec<i64> = positions(&numbers).into_data().iter::<i64>().collect();
        assert_eq!(found, [0, 1, 0, 0, 1, 0, 1, 2, 0, 1]);
        let one = numbers.narrow(1, 0, 1);
        let found: Vec<i64> = positions(&one).into_data().iter::<i64>().collect();
        assert_eq!(found, [0, 0]);
    }
}
