use std::io::Cursor;

use super::*;
use crate::tensors::{NamedTensor, Tensors};

fn two() -> Tensors {
    let mut tensors = Tensors::new();
    let weight =
        NamedTensor::from_f32s("fc1.weight", vec![2, 3], &[1.0, -2.5, 0.1, 3.0, 4.0, 1e-8]);
    tensors.push(weight).unwrap();
    tensors
        .push(NamedTensor::from_f32s("fc1.bias", vec![2], &[0.5, -0.0]))
        .unwrap();
    tensors
}

fn text(write: impl FnOnce(&mut Vec<u8>) -> Result<(), WriteError>) -> String {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn json_is_nested_as_the_shapes() {
    let flat = text(|to| flat(&two(), to));
    assert_eq!(
        flat,
        "{\n\"fc1_weight\":[[1.0,-2.5,0.1],[3.0,4.0,1e-8]],\n\"fc1_bias\":[0.5,-0.0]\n}\n"
    );
    let about = Whole {
        model_type: "mlp".into(),
        architecture: serde_json::json!(["linear"]),
        metadata: serde_json::json!({ "run": "base-s1" }),
    };
    let whole = text(|to| whole(&two(), &about, to));
    let read: serde_json::Value = serde_json::from_str(&whole).unwrap();
    assert_eq!(read["framework"], "pytorch");
    assert_eq!(read["architecture"][0], "linear");
    assert_eq!(read["metadata"]["run"], "base-s1");
    assert_eq!(read["weights"]["fc1_weight"][1][1], 4.0);
}

#[test]
fn json_says_what_it_cannot_hold() {
    let mut tensors = Tensors::new();
    tensors
        .push(NamedTensor::from_f32s("a.b", vec![1], &[f32::NAN]))
        .unwrap();
    let refused = flat(&tensors, Vec::new()).unwrap_err();
    assert!(matches!(refused, WriteError::NotFinite { name } if name == "a.b"));
    let mut tensors = Tensors::new();
    for name in ["a.b", "a_b"] {
        tensors
            .push(NamedTensor::from_f32s(name, vec![1], &[0.0]))
            .unwrap();
    }
    let refused = flat(&tensors, Vec::new()).unwrap_err();
    assert_eq!(refused.to_string(), "two tensors would be named `a_b`");
}

#[test]
fn one_number_and_none_are_tensors_too() {
    let mut tensors = Tensors::new();
    tensors
        .push(NamedTensor::from_f32s("one", vec![], &[2.0]))
        .unwrap();
    tensors
        .push(NamedTensor::from_f32s("none", vec![0, 2], &[]))
        .unwrap();
    let flat = text(|to| flat(&tensors, to));
    assert_eq!(flat, "{\n\"one\":2.0,\n\"none\":[[]]\n}\n");
}

#[test]
fn archives_hold_every_tensor_as_it_is() {
    let mut bytes = Cursor::new(Vec::new());
    torch(&two(), &mut bytes).unwrap();
    let mut archive = zip::ZipArchive::new(bytes).unwrap();
    let names = archive.file_names().map(|name| name.unwrap().into_owned());
    let names: Vec<String> = names.collect();
    assert_eq!(
        names,
        [
            "weights/data.pkl",
            "weights/byteorder",
            "weights/data/0",
            "weights/data/1",
            "weights/version"
        ]
    );
    let mut data = Vec::new();
    std::io::copy(&mut archive.by_name("weights/data/1").unwrap(), &mut data).unwrap();
    assert_eq!(
        data,
        [0.5f32.to_le_bytes(), (-0.0f32).to_le_bytes()].concat()
    );

    let mut bytes = Cursor::new(Vec::new());
    npz(&two(), &mut bytes).unwrap();
    let mut archive = zip::ZipArchive::new(bytes).unwrap();
    let file = archive.by_name("fc1.weight.npy").unwrap();
    let array = npyz::NpyFile::new(file).unwrap();
    assert_eq!(array.shape(), [2, 3]);
    assert_eq!(array.into_vec::<f32>().unwrap()[..3], [1.0, -2.5, 0.1]);
}

#[test]
fn half_of_the_digits_are_an_array_too() {
    let mut tensors = Tensors::new();
    let tensor = NamedTensor::from_f32s("t", vec![2], &[1.5, -2.0]).cast(Dtype::F16);
    tensors.push(tensor.clone()).unwrap();
    let mut bytes = Cursor::new(Vec::new());
    npz(&tensors, &mut bytes).unwrap();
    let mut archive = zip::ZipArchive::new(bytes).unwrap();
    let mut file = Vec::new();
    std::io::copy(&mut archive.by_name("t.npy").unwrap(), &mut file).unwrap();
    assert!(file.windows(5).any(|text| text == b"'<f2'"));
    assert!(file.ends_with(tensor.bytes()));
}

#[test]
fn numpy_has_no_bf16() {
    let mut tensors = Tensors::new();
    let tensor = NamedTensor::from_f32s("t", vec![1], &[1.0]).cast(Dtype::Bf16);
    tensors.push(tensor).unwrap();
    let refused = npz(&tensors, Cursor::new(Vec::new())).unwrap_err();
    assert_eq!(refused.to_string(), "a NumPy archive does not support bf16");
}
