use super::*;

fn numbers(shape: &[usize]) -> NamedTensor {
    let num = shape.iter().product::<usize>();
    let values: Vec<f32> = (0..num).map(|at| at as f32).collect();
    NamedTensor::from_f32s("t", shape.to_vec(), &values)
}

#[test]
fn bytes_must_fit_the_shape() {
    let of = |shape: &[usize], bytes| NamedTensor::new("t", shape.to_vec(), Dtype::F32, bytes);
    assert!(of(&[2, 3], vec![0; 24]).is_ok());
    assert!(of(&[], vec![0; 4]).is_ok());
    assert!(of(&[0, 7], Vec::new()).is_ok());
    let short = of(&[2, 3], vec![0; 23]).unwrap_err();
    assert_eq!(
        short.to_string(),
        "tensor `t` of shape [2, 3] and type f32 has 23 bytes, which does not match"
    );
    for absurd in [&[usize::MAX, 2][..], &[1 << 62, 4], &[0, usize::MAX, 2]] {
        let refused = of(absurd, Vec::new()).unwrap_err();
        assert!(
            matches!(refused, TensorError::TooLarge { .. }),
            "{absurd:?}"
        );
    }
}

#[test]
fn a_name_is_there_once_and_order_stays() {
    let mut tensors = Tensors::new();
    for name in ["z", "a"] {
        tensors.push(numbers(&[2]).named(name)).unwrap();
    }
    let repeated = tensors.push(numbers(&[1]).named("z")).unwrap_err();
    assert_eq!(repeated.to_string(), "two tensors are named `z`");
    let names: Vec<_> = tensors.iter().map(NamedTensor::name).collect();
    assert_eq!(names, ["z", "a"]);
    assert_eq!(tensors.get("a").unwrap().num_values(), 2);
    assert_eq!((tensors.num_bytes(), tensors.num_values()), (16, 4));
}

#[test]
fn axes_move_with_their_values() {
    let turned = numbers(&[2, 3]).transposed();
    assert_eq!(turned.shape(), [3, 2]);
    assert_eq!(turned.to_f32s(), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
    let cube = numbers(&[2, 3, 4]);
    let turned = cube.permuted(&[2, 0, 1]);
    assert_eq!(turned.shape(), [4, 2, 3]);
    let value = |a: usize, b: usize, c: usize| (a * 12 + b * 4 + c) as f32;
    let expected =
        (0..4).flat_map(|c| (0..2).flat_map(move |a| (0..3).map(move |b| value(a, b, c))));
    assert_eq!(turned.to_f32s(), expected.collect::<Vec<_>>());
    assert_eq!(turned.permuted(&[1, 2, 0]), cube);
}

#[test]
fn rows_are_stacked() {
    let stacked = NamedTensor::stacked("s", &[numbers(&[1, 2]), numbers(&[2, 2])]);
    assert_eq!(stacked.shape(), [3, 2]);
    assert_eq!(stacked.to_f32s(), [0.0, 1.0, 0.0, 1.0, 2.0, 3.0]);
}

#[test]
fn casts_round_once() {
    // Above half of the last place of f16, but exactly half in f32: double rounding would round down.
    let value = 1.0 + (0.5f64 + 1e-9) / 1024.0;
    let bytes = value.to_le_bytes().to_vec();
    let tensor = NamedTensor::new("t", vec![1], Dtype::F64, bytes).unwrap();
    assert_eq!(tensor.cast(Dtype::F16).to_f64s(), [1.0 + 1.0 / 1024.0]);
    let numbers = NamedTensor::from_f32s("t", vec![4], &[1.5, -2.5, f32::NAN, 1e9]);
    assert_eq!(numbers.cast(Dtype::I8).to_i64s().unwrap(), [2, -2, 0, 127]);
    assert_eq!(numbers.cast(Dtype::Bf16).to_f32s()[..2], [1.5, -2.5]);
    let large = NamedTensor::from_i64s("t", vec![2], &[i64::MAX, -1]);
    assert_eq!(large.cast(Dtype::I64), large);
    assert_eq!(large.cast(Dtype::U64).to_i64s().unwrap(), [i64::MAX, 0]);
    assert_eq!(numbers.to_i64s(), None);
}

#[test]
fn every_type_has_a_name_of_its_own_and_keeps_small_numbers() {
    for dtype in Dtype::ALL {
        let tensor = NamedTensor::from_i64s("t", vec![2], &[0, 1]).cast(dtype);
        assert_eq!(tensor.bytes().len(), 2 * dtype.size());
        assert_eq!(tensor.to_f64s(), [0.0, 1.0], "{dtype}");
        let same = Dtype::ALL
            .iter()
            .filter(|other| other.name() == dtype.name());
        assert_eq!(same.count(), 1);
    }
}
