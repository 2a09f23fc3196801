//! From a run's folder to a capsule.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use super::super::name::wrong;
use super::contents::{self, DataHere};
use super::manifest::{DataRoot, FileSum, Manifest, Needs};
use super::reduced;
use super::siblings::Sibling;
use super::write::{Source, measure, unreadable, write};
use super::{CapsuleError, SIBLINGS};
use crate::plan::RunPlan;
use crate::record::{RunFolder, RunRecord};

/// The content of a capsule.
pub struct Packing<'a> {
    /// The run's folder.
    pub folder: &'a RunFolder,
    /// The run.
    pub plan: &'a RunPlan,
    /// The runs that it begins as copies of, the oldest first.
    pub lineage: &'a [RunPlan],
    /// Its events.
    pub record: &'a RunRecord,
    /// The other seeds.
    pub siblings: &'a [Sibling],
    /// Its data.
    pub data: DataHere,
}

/// A written capsule.
#[derive(Clone, Debug)]
pub struct Packed {
    /// Bytes of the archive.
    pub bytes: u64,
    /// Its content.
    pub manifest: Manifest,
    /// References to this machine that remain: one sentence each.
    pub still_named: Vec<String>,
}

/// Writes a capsule atomically; overwrites another file only with `force`. `watch` receives the number of finished
/// files and the total.
pub fn pack(
    packing: Packing<'_>,
    out: &Path,
    force: bool,
    watch: &dyn Fn(u64, u64),
) -> Result<Packed, CapsuleError> {
    let mut sources = BTreeMap::new();
    add_run(packing.folder, &mut sources)?;
    let (siblings, sum) = contents::siblings(packing.siblings)?;
    sources.insert(SIBLINGS.to_owned(), (Source::Bytes(siblings), sum));
    let plan = packing.plan;
    let mut data = contents::data(plan, packing.record, &packing.data);
    if data.needs == Needs::Packed {
        add_data(&mut data.roots, &mut sources)?;
    }
    reduce(&packing, &mut data.roots, &mut sources)?;
    let sums = sources.values().map(|(_, sum)| sum.clone());
    let (manifest, head) = contents::manifest(plan, packing.record, data, sums.collect())?;
    let bytes = write(out, force, &head, &sources, watch)?;
    Ok(Packed {
        bytes,
        manifest,
        still_named: reduced::still_named(&sources),
    })
}

/// Replaces texts that contain paths and names of this machine by texts without them.
fn reduce(
    packing: &Packing<'_>,
    roots: &mut [DataRoot],
    sources: &mut BTreeMap<String, (Source, FileSum)>,
) -> Result<(), CapsuleError> {
    let mut texts = vec![
        ("run.toml".to_owned(), reduced::run(packing.plan, roots)),
        (
            "environment.json".to_owned(),
            reduced::environment(packing.folder),
        ),
    ];
    for (at, before) in packing.lineage.iter().enumerate() {
        let name = format!("lineage/{}.toml", at + 1);
        texts.push((name, reduced::run(before, roots)));
    }
    for (name, text) in texts {
        let text = text.map_err(|e| unreadable(&packing.folder.0.join(&name), &e))?;
        if let Some(text) = text {
            let bytes = text.into_bytes();
            let path = format!("run/{name}");
            let sum = contents::sum(&path, &bytes);
            sources.insert(path, (Source::Bytes(bytes), sum));
        }
    }
    for root in roots {
        root.original = reduced::original(root);
    }
    Ok(())
}

fn add_run(
    folder: &RunFolder,
    sources: &mut BTreeMap<String, (Source, FileSum)>,
) -> Result<(), CapsuleError> {
    let mut names: Vec<String> = [
        folder.run_toml(),
        folder.environment_json(),
        folder.transforms_json(),
        folder.events_jsonl(),
        folder.metrics_csv(),
        folder.summary_json(),
        folder.evaluation_json(),
        folder.weights_json(),
    ]
    .iter()
    .filter(|path| fs::symlink_metadata(path).is_ok())
    .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
    .collect();
    for name in &names {
        // The target of a link is not part of the run, and may be private.
        let path = folder.0.join(name);
        if !fs::symlink_metadata(&path).is_ok_and(|there| there.is_file()) {
            return Err(no_plain_file(&path));
        }
    }
    for name in ["lineage", "trace", "predictions", "samples", "model"] {
        let path = folder.0.join(name);
        if fs::symlink_metadata(&path).is_ok_and(|there| there.is_symlink()) {
            return Err(no_plain_file(&path));
        }
    }
    walk(&folder.0, "lineage", &mut names)?;
    walk(&folder.0, "trace", &mut names)?;
    walk(&folder.0, "predictions", &mut names)?;
    walk(&folder.0, "samples", &mut names)?;
    let mut weights = Vec::new();
    walk(&folder.0, "model", &mut weights)?;
    names.extend(weights.into_iter().filter(|name| name.ends_with(".bpk")));
    for name in names {
        let source = folder.0.join(&name);
        let (bytes, sha256) = measure(&source)?;
        let path = format!("run/{name}");
        if let Some(why) = wrong(&path) {
            return Err(contents::odd_name(&source, &why));
        }
        let sum = FileSum {
            path: path.clone(),
            bytes,
            sha256,
        };
        sources.insert(path, (Source::File(source), sum));
    }
    Ok(())
}

/// The files below a folder of the run, except hidden ones: those are being written.
fn walk(run: &Path, inner: &str, names: &mut Vec<String>) -> Result<(), CapsuleError> {
    let folder = run.join(inner);
    let entries = match fs::read_dir(&folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other.map_err(|e| unreadable(&folder, &e))?,
    };
    for entry in entries {
        let entry = entry.map_err(|e| unreadable(&folder, &e))?;
        let kind = entry.file_type().map_err(|e| unreadable(&folder, &e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let inner = format!("{inner}/{name}");
        if name.starts_with('.') {
            continue;
        } else if kind.is_dir() {
            walk(run, &inner, names)?;
        } else if kind.is_file() {
            names.push(inner);
        } else {
            return Err(no_plain_file(&entry.path()));
        }
    }
    Ok(())
}

fn no_plain_file(path: &Path) -> CapsuleError {
    let message = format!("`{}` is not a regular file", path.display());
    CapsuleError::new(
        message,
        "replace it with the file itself, or move it elsewhere",
    )
}

/// Assigns places to the roots and adds their files. A root inside another one stays there: masks among images would
/// otherwise be read as images.
fn add_data(
    roots: &mut [DataRoot],
    sources: &mut BTreeMap<String, (Source, FileSum)>,
) -> Result<(), CapsuleError> {
    let places: Vec<String> = roots
        .iter()
        .map(|root| contents::place(root, roots))
        .collect();
    for (root, place) in roots.iter_mut().zip(places) {
        for file in std::mem::take(&mut root.files) {
            let (path, source) = contents::located(root, &place, &file)?;
            let sum = FileSum {
                path: path.clone(),
                ..file
            };
            sources.insert(path, (Source::File(source), sum));
        }
        root.packed = Some(place);
    }
    Ok(())
}
