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
    let index: Index = serde_json::from_slice(&bytes).map_err(|e| damaged(path, e))?;
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
