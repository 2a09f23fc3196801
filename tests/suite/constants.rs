//! The layer `constant`: values from a file that training does not change.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use burn_runner::exchange::read::Weights;

use super::edit::Edit;
use super::support::{plan_in, run};

const SPEC: &str = r#"
data = { type = "digits" }
optimizer = { type = "adamw", learning_rate = 1e-2, weight_decay = 0.1 }
train = { epochs = 2, batch_size = 100 }

[model]
layers = [
    { type = "constant", name = "adjacency", path = "a.npy", shape = [1, 8, 8] },
    { type = "matmul", inputs = ["adjacency", "input"] },
    { type = "flatten" },
    { type = "linear" },
]
"#;

/// NumPy's format.
fn npy(shape: &str, values: &[f64]) -> Vec<u8> {
    let head = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    let head = format!("{head:<117}\n");
    let length = (head.len() as u16).to_le_bytes();
    let bytes = values.iter().flat_map(|value| value.to_le_bytes());
    let start = [b"\x93NUMPY\x01\x00".as_slice(), &length, head.as_bytes()].concat();
    start.into_iter().chain(bytes).collect()
}

/// A file of safetensors with arrays of four values.
fn safetensors(names: &[&str]) -> Vec<u8> {
    let entry = |(at, name): (usize, &&str)| {
        let (start, end) = (at * 16, at * 16 + 16);
        format!("\"{name}\":{{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[{start},{end}]}}")
    };
    let entries: Vec<String> = names.iter().enumerate().map(entry).collect();
    let head = format!("{{{}}}", entries.join(","));
    let length = (head.len() as u64).to_le_bytes();
    [
        length.as_slice(),
        head.as_bytes(),
        &vec![0; 16 * names.len()],
    ]
    .concat()
}

/// Neighbors on a ring.
fn ring(weight: f64) -> Vec<f64> {
    let value = |at: usize| match (at / 8).abs_diff(at % 8) {
        0 => 1.0,
        1 | 7 => weight,
        _ => 0.0,
    };
    (0..64).map(value).collect()
}

fn constant(path: &Path) -> Vec<f32> {
    let weights = Weights::open(path, None).unwrap();
    let names = weights.entries().iter().map(|entry| entry.name.as_str());
    let names: BTreeSet<&str> = names.filter(|name| name.ends_with("value")).collect();
    let mut found = Vec::new();
    let read = weights.read(&names, &mut |tensor| {
        found = tensor.to_f32s();
        Ok(())
    });
    read.unwrap();
    found
}

#[test]
fn a_constant_keeps_the_values_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("a.npy"), npy("(1, 8, 8)", &ring(0.5))).unwrap();
    fs::write(folder.join("spec.toml"), SPEC).unwrap();
    let (code, _, said) = run(folder, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let results = folder.join("results/spec/runs/base-s1");
    let expected: Vec<f32> = ring(0.5).iter().map(|value| *value as f32).collect();
    for weights in ["initial", "final"] {
        let found = constant(&results.join(format!("model/{weights}.bpk")));
        assert_eq!(found, expected, "{weights}");
    }
    let (_, described, _) = run(folder, &["describe", "spec.toml"]);
    assert!(described.contains("64 (frozen)"), "{described}");
    // The file's content is a part of the run, and its place is not.
    let fingerprint = |text: &str| {
        let (plan, _) = plan_in(Some(folder), "spec.toml", text).unwrap();
        plan.runs[0].fingerprint.clone()
    };
    let first = fingerprint(SPEC);
    fs::rename(folder.join("a.npy"), folder.join("b.npy")).unwrap();
    assert_eq!(fingerprint(&SPEC.edit("a.npy", "b.npy")), first);
    // Reproductions and predictions need only the run.
    let (code, out, said) = run(folder, &["reproduce", "results/spec/runs/base-s1"]);
    assert_eq!(code, 0, "{out}{said}");
    assert!(format!("{out}{said}").contains("bitwise"), "{out}{said}");
    fs::write(folder.join("a.npy"), npy("(1, 8, 8)", &ring(0.25))).unwrap();
    assert_ne!(fingerprint(SPEC), first);
}

#[test]
fn constants_that_cannot_be_used_are_refused_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let mut missing = ring(0.5);
    missing[9] = f64::NAN;
    fs::write(folder.join("narrow.npy"), npy("(4, 16)", &ring(0.5))).unwrap();
    fs::write(folder.join("nan.npy"), npy("(1, 8, 8)", &missing)).unwrap();
    fs::write(
        folder.join("short.npy"),
        &npy("(1, 8, 8)", &ring(0.5))[..200],
    )
    .unwrap();
    fs::write(folder.join("two.safetensors"), safetensors(&["a", "b"])).unwrap();
    fs::write(folder.join("a.csv"), "1,2\n").unwrap();
    let cases = [
        ("gone.npy", ""),
        ("narrow.npy", ""),
        ("nan.npy", ""),
        ("short.npy", ""),
        ("narrow.npy", ", array = \"a\""),
        ("two.safetensors", ""),
        ("two.safetensors", ", array = \"c\""),
        ("two.safetensors", ", array = \"b\""),
        ("a.csv", ""),
    ];
    let mut said = Vec::new();
    for (file, more) in cases {
        let text = SPEC.edit("\"a.npy\"", &format!("\"{file}\"{more}"));
        fs::write(folder.join("spec.toml"), text).unwrap();
        let (code, out, error) = run(folder, &["check", "spec.toml"]);
        assert_eq!((code, out.as_str()), (2, ""), "{file}: {error}");
        said.push(error.replace(&folder.display().to_string(), "[FOLDER]"));
    }
    insta::assert_snapshot!(said.join("\n"));
}
