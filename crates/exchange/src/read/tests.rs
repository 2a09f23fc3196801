use std::fs;
use std::io::Write;
use std::path::PathBuf;

use super::*;

/// A pickle of protocol 2: a state dict with one 2x3 tensor in the storage `0`, modified by `edit`.
fn state_dict(edit: impl Fn(&mut Vec<u8>)) -> Vec<u8> {
    let mut text = b"\x80\x02}q\x00X\x04\x00\x00\x00fc.wctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storage".to_vec();
    text.extend(b"ctorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06tQK\x00K\x02K\x03\x86K\x03K\x01\x86\x89");
    text.extend(b"ccollections\nOrderedDict\n)RtRs.");
    edit(&mut text);
    text
}

fn replaced(text: &mut Vec<u8>, from: &[u8], to: &[u8]) {
    let at = text
        .windows(from.len())
        .position(|window| window == from)
        .expect("it is there");
    text.splice(at..at + from.len(), to.iter().copied());
}

/// An archive as `torch.save` writes it.
fn archive(folder: &Path, pickle: &[u8], storage: &[u8], extra: &[(&str, &[u8])]) -> PathBuf {
    let path = folder.join("model.pt");
    let mut zip = zip::ZipWriter::new(fs::File::create(&path).unwrap());
    let options =
        zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in [("model/data.pkl", pickle), ("model/data/0", storage)]
        .iter()
        .chain(extra)
    {
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap();
    path
}

fn values() -> Vec<u8> {
    (0..6).flat_map(|at| (at as f32).to_le_bytes()).collect()
}

/// All tensors of a file.
fn all(path: &Path) -> Result<Vec<NamedTensor>, DataError> {
    let weights = Weights::open(path, None)?;
    let names: BTreeSet<&str> = weights
        .entries()
        .iter()
        .map(|entry| entry.name.as_str())
        .collect();
    let mut found = Vec::new();
    weights.read(&names, &mut |tensor| {
        found.push(tensor);
        Ok(())
    })?;
    Ok(found)
}

#[test]
fn a_view_of_a_storage_is_read_in_its_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = archive(folder.path(), &state_dict(|_| {}), &values(), &[]);
    let plain = all(&path).unwrap();
    assert_eq!(plain[0].to_f32s(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!((plain[0].name(), plain[0].shape()), ("fc.w", &[2, 3][..]));
    // Transposed: 3 x 2 with strides 1 and 3.
    let turned = state_dict(|text| {
        replaced(
            text,
            b"K\x02K\x03\x86K\x03K\x01\x86",
            b"K\x03K\x02\x86K\x01K\x03\x86",
        );
    });
    let path = archive(folder.path(), &turned, &values(), &[]);
    assert_eq!(
        all(&path).unwrap()[0].to_f32s(),
        [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
    );
}

#[test]
fn hostile_torch_files_are_refused_by_what_they_do() {
    let folder = tempfile::tempdir().unwrap();
    let own = state_dict(|_| {});
    let call = |text: &str| {
        [
            b"\x80\x02".as_slice(),
            text.as_bytes(),
            b"\nX\x02\x00\x00\x00id\x85R.",
        ]
        .concat()
    };
    let cases: Vec<(Vec<u8>, Vec<u8>, &str)> = vec![
        (call("cposix\nsystem"), values(), "`posix.system`"),
        (call("c__builtin__\neval"), values(), "`__builtin__.eval`"),
        (call("cbuiltins\ngetattr"), values(), "`builtins.getattr`"),
        (
            call("ctorch.storage\n_load_from_bytes"),
            values(),
            "`torch.storage._load_from_bytes`",
        ),
        (
            state_dict(|t| replaced(t, b"FloatStorage", b"QInt8Storage")),
            values(),
            "`torch.QInt8Storage`",
        ),
        (
            state_dict(|t| {
                replaced(
                    t,
                    b"K\x02K\x03\x86K\x03K\x01\x86",
                    b"K\x02K\x04\x86K\x04K\x01\x86",
                )
            }),
            values(),
            "exceeds its storage",
        ),
        (
            state_dict(|t| replaced(t, b"K\x02K\x03\x86", b"K\x02\x85\x85\x85")),
            values(),
            "not one of `torch.save`",
        ),
        (
            b"\x80\x02]q\x00h\x00a.".to_vec(),
            values(),
            "contains no tensors",
        ),
        (
            b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s.".to_vec(),
            values(),
            "its pickle contains itself",
        ),
        (b"\x80\x02\x82\x01.".to_vec(), values(), "opcode 0x82"),
        (b"\x80\x02X\xff\xff\xff\x7f".to_vec(), values(), "truncated"),
        (own.clone(), values()[..20].to_vec(), "truncated"),
        (own.clone(), [values(), values()].concat(), ", expected"),
    ];
    for (pickle, storage, expected) in cases {
        let path = archive(folder.path(), &pickle, &storage, &[]);
        let refused = all(&path).unwrap_err().to_string();
        assert!(refused.contains(expected), "{expected}: {refused}");
    }
    // Entries outside of the folder are never extracted.
    let path = archive(folder.path(), &own, &values(), &[("../../escaped", b"x")]);
    assert_eq!(all(&path).unwrap().len(), 1);
    assert!(!folder.path().join("../../escaped").exists());
}

#[test]
fn files_that_are_cut_or_damaged_are_refused_and_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    let torch = fs::read(archive(folder.path(), &state_dict(|_| {}), &values(), &[])).unwrap();
    let header = br#"{"fc.w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}"#;
    let tensors = [&(header.len() as u64).to_le_bytes()[..], header, &values()].concat();
    let json = br#"{"fc.w": [[1, 2, 3], [4, 5, 6]]}"#.to_vec();
    for (name, bytes) in [
        ("a.pt", torch),
        ("a.safetensors", tensors),
        ("a.json", json),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(all(&path).unwrap()[0].shape(), [2, 3], "{name}");
        for part in 0..16 {
            fs::write(&path, &bytes[..bytes.len() * part / 16]).unwrap();
            assert!(all(&path).is_err(), "{name}, {part} of 16");
        }
        // A flipped bit is refused or gives a tensor; it never panics.
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            fs::write(&path, flipped).unwrap();
            let _ = all(&path);
        }
    }
}

#[test]
fn json_is_nested_lists_below_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.json");
    let text =
        r#"{"model_type": "x", "sizes": ["a"], "state_dict": {"a": {"w": [[1, 2.5]], "b": 3}}}"#;
    fs::write(&path, text).unwrap();
    let found = all(&path).unwrap();
    let shapes: Vec<_> = found
        .iter()
        .map(|t| (t.name(), t.shape().to_vec(), t.to_f64s()))
        .collect();
    assert_eq!(
        shapes,
        [
            ("a.w", vec![1, 2], vec![1.0, 2.5]),
            ("a.b", vec![], vec![3.0])
        ]
    );
    assert!(Weights::open(&path, Some("state_dict.a")).is_ok());
    let refused = Weights::open(&path, Some("weights")).err().unwrap();
    assert_eq!(refused.key, "init.top_level_key");
    fs::write(&path, r#"{"a": [[1, 2], [3]]}"#).unwrap();
    assert!(
        all(&path)
            .unwrap_err()
            .to_string()
            .contains("different lengths")
    );
}

#[test]
fn files_of_other_kinds_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("weights.h5");
    fs::write(&path, "x").unwrap();
    let refused = all(&path).unwrap_err().to_string();
    assert!(
        refused.contains("`.safetensors`") && refused.contains("`.pt`"),
        "{refused}"
    );
}

/// Nested so deeply that a recursive function of what is inside would overflow the stack.
#[test]
fn files_with_the_name_of_another_format_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let torch = archive(folder.path(), &state_dict(|_| {}), &values(), &[]);
    let misnamed = folder.path().join("weights.npz");
    fs::rename(torch, &misnamed).unwrap();
    let error = all(&misnamed).unwrap_err();
    assert_eq!(error.helps, ["rename it to end in `.pt`"]);
    let safetensors = folder.path().join("weights.pt");
    fs::write(&safetensors, b"\x02\0\0\0\0\0\0\0{}").unwrap();
    let error = all(&safetensors).unwrap_err();
    assert_eq!(error.helps, ["rename it to end in `.safetensors`"]);
}

#[test]
fn deeply_nested_pickles_are_read_without_recursion() {
    const DEPTH: usize = 150_000;
    let of = |start: &[u8], step: &[u8], end: &[u8]| {
        let mut pickle = b"\x80\x02".to_vec();
        pickle.extend(start.repeat(DEPTH));
        pickle.extend(step.repeat(DEPTH - 1));
        pickle.extend(end);
        pickle
    };
    let own = state_dict(|_| {});
    let cases = [
        ("tuples", of(b"(", b"t", b"t.")),
        (
            "singles",
            [&b"\x80\x02)"[..], &b"\x85".repeat(DEPTH), b"."].concat(),
        ),
        ("lists", of(b"]", b"a", b".")),
        ("dictionaries", of(b"}X\x01\0\0\0a", b"s", b".")),
        // Above the weights, which are read.
        (
            "popped",
            [of(b"(", b"t", b"t0").as_slice(), &own[2..]].concat(),
        ),
        ("truncated", of(b"(", b"t", b"")),
    ];
    for (name, pickle) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = archive(folder.path(), &pickle, &values(), &[]);
        let found = all(&path).map(|tensors| tensors.len());
        match name {
            "popped" => assert_eq!(found.unwrap(), 1),
            _ => assert!(found.is_err() || found.is_ok_and(|num| num == 0), "{name}"),
        }
    }
}

/// Dictionaries that contain each other twice, 31 times: 2^31 ways to the last.
#[test]
fn pickles_whose_objects_multiply_are_refused() {
    let mut pickle = b"\x80\x02}q\0".to_vec();
    for at in 1..31_u8 {
        pickle.extend([b'}', b'q', at, b'(']);
        pickle.extend(b"X\x01\0\0\0ah");
        pickle.push(at - 1);
        pickle.extend(b"X\x01\0\0\0bh");
        pickle.extend([at - 1, b'u']);
    }
    pickle.push(b'.');
    let folder = tempfile::tempdir().unwrap();
    let path = archive(folder.path(), &pickle, &values(), &[]);
    let wrong = all(&path).unwrap_err();
    assert!(
        wrong.message.contains("contains itself"),
        "{}",
        wrong.message
    );
}
