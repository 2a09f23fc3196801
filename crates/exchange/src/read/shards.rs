//! Weights in several files, with an index such as `model.safetensors.index.json` that names the file of each tensor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use runner_core::data::DataError;
use runner_core::disk;
use runner_core::spec::plain_file;
use serde::Deserialize;

use super::{Entry, Take, Weights, damaged, unreadable};

/// How the name of an index ends.
const INDEX: &str = ".index.json";
/// Bytes of an index: a tensor has about 100.
const MOST: u64 = 64 << 20;
/// Files of one network.
const MOST_FILES: usize = 4096;

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// Whether a path is that of an index.
pub fn is_index(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().ends_with(INDEX)
}

/// The tensors of all files of an index, and the open files.
pub fn open(path: &Path) -> Result<(Vec<Entry>, Vec<Weights>), DataError> {
    let bytes = plain_file::read(path, MOST).map_err(|e| unreadable(path, &e))?;
    let bytes = bytes.ok_or_else(|| damaged(path, "it is too large for an index of weights"))?;
    let index: Index = serde_json::from_slice(&bytes)
        .map_err(|e| damaged(path, e).help("download the files of the model again"))?;
    let names: BTreeSet<&String> = index.weight_map.values().collect();
    if names.len() > MOST_FILES {
        return Err(damaged(path, format!("it names {} files", names.len())));
    }
    let folder = disk::folder_of(path);
    let mut files = Vec::new();
    for name in names {
        let mut parts = Path::new(name).components();
        // An index is from somewhere else, and must not read other files of this machine.
        let is_beside = matches!(
            (parts.next(), parts.next()),
            (Some(Component::Normal(_)), None)
        );
        if !is_beside || is_index(Path::new(name)) {
            let error = damaged(
                path,
                format!("it names `{name}`, which is not a file of weights beside it"),
            );
            return Err(error.help("use the index of the model, and put all files into one folder"));
        }
        if disk::metadata(folder.join(name)).is_err() {
            let error = damaged(path, format!("it names `{name}`, which is not beside it"));
            return Err(error.help("download the files of the model again"));
        }
        files.push(Weights::open(&folder.join(name), None)?);
    }
    let mut entries = Vec::new();
    for file in &mut files {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        // A tensor that the index does not name, or has elsewhere, is a leftover of another version.
        let file_of = |entry: &Entry| index.weight_map.get(&entry.name);
        file.entries
            .retain(|entry| file_of(entry).is_some_and(|file| *file == name));
        entries.extend(file.entries.iter().cloned());
    }
    let found: BTreeSet<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let mut wanted = index.weight_map.iter();
    match wanted.find(|(tensor, _)| !found.contains(tensor.as_str())) {
        Some((tensor, file)) => {
            let error = damaged(path, format!("`{file}` lacks the tensor `{tensor}`"));
            Err(error.help("download the files of the model again"))
        }
        None => Ok((entries, files)),
    }
}

/// The paths of the files.
pub fn paths(files: &[Weights]) -> Vec<PathBuf> {
    files.iter().map(|file| file.path.clone()).collect()
}

/// Reads tensors of each file.
pub fn read(files: &[Weights], wanted: &BTreeSet<&str>, take: Take<'_>) -> Result<(), DataError> {
    files.iter().try_for_each(|file| {
        let here = file.entries.iter().map(|entry| entry.name.as_str());
        let wanted: BTreeSet<&str> = here.filter(|name| wanted.contains(name)).collect();
        file.read(&wanted, take)
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::{Value as Json, json};

    use super::*;

    /// A file whose tensors have one value each.
    fn shard(tensors: &[(&str, f32)]) -> Vec<u8> {
        let entries = tensors.iter().enumerate().map(|(at, (name, _))| {
            let entry =
                json!({ "dtype": "F32", "shape": [1], "data_offsets": [4 * at, 4 * at + 4] });
            ((*name).to_owned(), entry)
        });
        let header = Json::Object(entries.collect()).to_string();
        let length = (header.len() as u64).to_le_bytes();
        let values = tensors.iter().flat_map(|(_, value)| value.to_le_bytes());
        [length.as_slice(), header.as_bytes()]
            .concat()
            .into_iter()
            .chain(values)
            .collect()
    }

    /// The tensors of an index over `1.safetensors` with `a` and `b`, and `2.safetensors` with `b` and `c`.
    fn read_by(index: &str) -> Result<BTreeMap<String, f32>, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let below = folder.path().join("model");
        fs::create_dir_all(below.join("sub.safetensors")).expect("a folder");
        let write = |path: PathBuf, bytes: Vec<u8>| fs::write(path, bytes).expect("a file");
        write(
            folder.path().join("secret.safetensors"),
            shard(&[("a", 9.0)]),
        );
        write(
            below.join("1.safetensors"),
            shard(&[("a", 1.0), ("b", 2.0)]),
        );
        write(
            below.join("2.safetensors"),
            shard(&[("b", 3.0), ("c", 4.0)]),
        );
        write(
            below.join("cut.safetensors"),
            shard(&[("a", 1.0)])[..40].to_vec(),
        );
        let path = below.join(format!("model.safetensors{INDEX}"));
        write(path.clone(), index.into());
        let tensors = || {
            let (entries, files) = open(&path)?;
            let wanted = entries.iter().map(|entry| entry.name.as_str()).collect();
            let mut found = BTreeMap::new();
            read(&files, &wanted, &mut |tensor| {
                found.insert(tensor.name().to_owned(), tensor.to_f32s()[0]);
                Ok(())
            })?;
            Ok(found)
        };
        tensors().map_err(|error: DataError| {
            assert!(!error.helps.is_empty(), "{}", error.message);
            error
                .message
                .replace(&below.display().to_string(), "FOLDER")
        })
    }

    fn index(map: &Json) -> String {
        json!({ "metadata": { "total_size": 1 }, "weight_map": map }).to_string()
    }

    #[test]
    fn a_tensor_in_two_files_is_that_of_the_index() {
        for (file, value) in [("1.safetensors", 2.0), ("2.safetensors", 3.0)] {
            let map = json!({ "a": "1.safetensors", "b": file, "c": "2.safetensors" });
            // The size in an index counts tied weights in different ways, and nothing depends on it.
            let found = read_by(&index(&map)).expect("it is read");
            let wanted = [("a", 1.0), ("b", value), ("c", 4.0)];
            assert_eq!(
                found,
                wanted.map(|(name, value)| (name.to_owned(), value)).into()
            );
        }
    }

    #[test]
    fn wrong_indices_are_refused_with_the_file() {
        let place = format!("FOLDER/model.safetensors{INDEX}");
        for (map, said) in [
            (
                json!({ "a": "3.safetensors" }),
                "it names `3.safetensors`, which is not beside it",
            ),
            (
                json!({ "a": "2.safetensors" }),
                "`2.safetensors` lacks the tensor `a`",
            ),
            (
                json!({ "d": "1.safetensors" }),
                "`1.safetensors` lacks the tensor `d`",
            ),
            (
                json!({ "a": "../secret.safetensors" }),
                "it names `../secret.safetensors`, which is not a file of weights beside it",
            ),
            (
                json!({ "a": "/etc/passwd" }),
                "it names `/etc/passwd`, which is not a file of weights beside it",
            ),
            (
                json!({ "a": "sub/1.safetensors" }),
                "it names `sub/1.safetensors`, which is not a file of weights beside it",
            ),
            (
                json!({ "a": "" }),
                "it names ``, which is not a file of weights beside it",
            ),
            (
                json!({ "a": ".." }),
                "it names `..`, which is not a file of weights beside it",
            ),
            (
                json!({ "a": "model.safetensors.index.json" }),
                "it names `model.safetensors.index.json`, which is not a file of weights beside it",
            ),
        ] {
            let found = read_by(&index(&map)).expect_err("it is refused");
            assert!(
                found.starts_with(&format!("`{place}`")) && found.ends_with(said),
                "{found}"
            );
        }
        for (map, file) in [
            (json!({ "a": "cut.safetensors" }), "FOLDER/cut.safetensors"),
            (json!({ "a": "sub.safetensors" }), "FOLDER/sub.safetensors"),
        ] {
            let found = read_by(&index(&map)).expect_err("it is refused");
            assert!(found.starts_with(&format!("`{file}`")), "{found}");
        }
        for text in [
            "",
            "[]",
            "{}",
            r#"{"weight_map": ["a"]}"#,
            r#"{"weight_map": {"a": 1}}"#,
        ] {
            let found = read_by(text).expect_err("it is refused");
            assert!(found.starts_with(&format!("`{place}`")), "{found}");
        }
    }
}
