//! A capsule where there is no disk, such as in a browser. It has the entries of other capsules, but is not compressed.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use super::super::run_folder::run_toml;
use super::archive::append;
use super::contents::{self, DataHere};
use super::manifest::{DataRoot, FileSum};
use super::stored::zstd_of;
use super::{CapsuleError, MANIFEST, RUN_TOML, SIBLINGS};
use crate::plan::RunPlan;
use crate::record::RunRecord;

/// The name of a run's capsule.
pub fn default_name(plan: &RunPlan) -> String {
    format!("{}-{}.capsule.tar.zst", plan.experiment, plan.id)
}

/// The bytes of a capsule of a run with its data. `files` are those of the run by path in its folder, `roots` its data,
/// and `read` returns the content of a file of the data.
///
/// # Errors
/// If a file of the data cannot be read, or has a name that a capsule cannot have.
pub fn pack_in_memory(
    plan: &RunPlan,
    record: &RunRecord,
    files: BTreeMap<String, Vec<u8>>,
    roots: Vec<DataRoot>,
    read: &dyn Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<Vec<u8>, CapsuleError> {
    let mut entries = BTreeMap::new();
    let mut add = |path: String, bytes: Vec<u8>| {
        let sum = contents::sum(&path, &bytes);
        entries.insert(path, (bytes, sum));
    };
    for (name, bytes) in files {
        add(format!("run/{name}"), bytes);
    }
    let (siblings, _) = contents::siblings(&[])?;
    add(SIBLINGS.to_owned(), siblings);
    let here = DataHere {
        is_packed: true,
        roots,
        note: None,
    };
    let mut data = contents::data(plan, record, &here);
    let places: Vec<String> = here
        .roots
        .iter()
        .map(|root| contents::place(root, &here.roots))
        .collect();
    for (root, place) in data.roots.iter_mut().zip(places) {
        for file in std::mem::take(&mut root.files) {
            let (path, source) = contents::located(root, &place, &file)?;
            let bytes = read(&source).map_err(|e| {
                let message = format!("cannot read `{}`: {e}", source.display());
                CapsuleError::new(message, "add the data again")
            })?;
            add(path, bytes);
        }
        let name = Path::new(&root.original).file_name();
        root.original = name.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        root.packed = Some(place);
    }
    let moved = |key: &str, number: usize| {
        let mut roots = data.roots.iter();
        let root = roots.find(|root| root.key == key && root.number == number)?;
        root.packed.as_ref().map(PathBuf::from)
    };
    let portable = RunPlan {
        data: plan.data.clone().relocated(&moved, Path::new("cache")),
        ..plan.clone()
    };
    let unwritable = |e: io::Error| {
        CapsuleError::new(
            format!("the capsule cannot be written: {e}"),
            "report this together with the experiment file",
        )
    };
    let run = run_toml(&portable).map_err(unwritable)?;
    add(RUN_TOML.to_owned(), run.into_bytes());
    let sums: Vec<FileSum> = entries.values().map(|(_, sum)| sum.clone()).collect();
    let (_, head) = contents::manifest(plan, record, data, sums)?;
    let mut archive = tar::Builder::new(Vec::new());
    let mut all = || {
        append(&mut archive, MANIFEST, head.len() as u64, head.as_slice())?;
        for (path, (bytes, sum)) in &entries {
            append(&mut archive, path, sum.bytes, bytes.as_slice())?;
        }
        Ok(())
    };
    all().map_err(unwritable)?;
    Ok(zstd_of(&archive.into_inner().map_err(unwritable)?))
}
