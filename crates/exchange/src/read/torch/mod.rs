//! What `torch.save` writes: a zip archive with a pickle and a file for each storage, or, before PyTorch 1.6, pickles
//! one after the other, followed by the storages.

mod known;
mod pickle;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use runner_core::data::DataError;
use runner_core::data::read::bounded;
use runner_core::diagnostic::Reason;
use runner_core::disk::File;
use runner_core::show::show_bytes;
use runner_core::spec::plain_file;
use zip::ZipArchive;

use super::{Entry, Source, Take, damaged, unreadable};
use crate::tensors::NamedTensor;
use pickle::{Object, Pickle, View};

/// The maximum size of a pickle, which contains only names and shapes.
const MAX_PICKLE: u64 = 1 << 26;
/// The maximum nesting of objects in a pickle.
const MAX_DEPTH: usize = 32;
/// The maximum number of objects that are looked at: a few may contain each other in many ways.
const MAX_SEEN: usize = 1 << 22;
/// The name of the pickle in the archive, below a folder.
const PICKLE: &str = "data.pkl";
const HELP: &str =
    "save only the weights, with `torch.save(model.state_dict(), path)`, and copy the file again";

/// The tensors of a file, and where their values are.
pub struct Handles {
    views: BTreeMap<String, Rc<View>>,
    place: Place,
}

/// Where storages are.
enum Place {
    /// In an archive, below a folder.
    Archive(String),
    /// In the file, starting at a byte.
    File(BTreeMap<String, u64>),
}

/// Opens a file.
pub fn open(path: &Path, key: Option<&str>) -> Result<(Vec<Entry>, Source), DataError> {
    let mut file = plain_file::open(path).map_err(|e| unreadable(path, &e))?;
    let mut magic = Vec::new();
    let read = file.by_ref().take(4).read_to_end(&mut magic);
    read.and_then(|_| file.rewind())
        .map_err(|e| unreadable(path, &e))?;
    let wrong = |reason: Reason| damaged(path, reason).help(HELP);
    let (pickle, place) = if magic.starts_with(b"PK") {
        archive(path, file)?
    } else {
        legacy(file).map_err(wrong)?
    };
    let root = below(path, pickle.root.clone(), key)?;
    let mut views = BTreeMap::new();
    let mut order = Vec::new();
    collect(&root, String::new(), 0, &mut 0, &mut views, &mut order).map_err(wrong)?;
    let entries = order.into_iter().map(|name| {
        let view: &Rc<View> = &views[&name];
        Entry {
            shape: view.shape.clone(),
            dtype: view.storage.dtype,
            name,
        }
    });
    let entries = entries.collect();
    Ok((entries, Source::Torch(Handles { views, place })))
}

/// The pickle of an archive, with the folder of the storages.
fn archive(path: &Path, file: File) -> Result<(Pickle, Place), DataError> {
    let wrong = |reason: Reason| damaged(path, reason).help(HELP);
    let mut archive = ZipArchive::new(file)
        .map_err(|e| wrong(format!("it is not a complete archive: {e}").into()))?;
    let names = archive.file_names().filter_map(Result::ok);
    let names: Vec<String> = names.map(|name| name.to_string()).collect();
    let is_pickle = |name: &&String| name.rsplit('/').next() == Some(PICKLE);
    let name = names.iter().find(is_pickle).cloned();
    let name = name.ok_or_else(|| wrong(format!("it has no `{PICKLE}`").into()))?;
    let folder = name.trim_end_matches(PICKLE).to_owned();
    let order = format!("{folder}byteorder");
    if names.contains(&order) {
        let text = entry(&mut archive, &order, 16).map_err(wrong)?;
        if text.trim_ascii() != b"little" {
            return Err(wrong("its numbers are big-endian".into()));
        }
    }
    let bytes = entry(&mut archive, &name, MAX_PICKLE).map_err(wrong)?;
    let (pickle, _) = pickle::read(&bytes).map_err(wrong)?;
    Ok((pickle, Place::Archive(format!("{folder}data/"))))
}

/// An entry of an archive of at most `most` bytes.
fn entry(archive: &mut ZipArchive<File>, name: &str, most: u64) -> Result<Vec<u8>, Reason> {
    let mut entry = archive
        .by_name(name)
        .map_err(|e| format!("its `{name}` cannot be read: {e}"))?;
    let (size, packed) = (entry.size(), entry.compressed_size());
    if size > most {
        return Err(Reason(format!(
            "its `{name}` has {}, expected {}",
            show_bytes(size),
            show_bytes(most)
        )));
    }
    if let Some(reason) = bounded::refusal(size, packed) {
        return Err(Reason(format!("its `{name}`: {reason}")));
    }
    let mut bytes = Vec::new();
    let read = entry.by_ref().take(most + 1).read_to_end(&mut bytes);
    read.map_err(|e| format!("its `{name}` is damaged: {e}"))?;
    if bytes.len() as u64 > most {
        return Err(Reason(format!("its `{name}` is larger than declared")));
    }
    Ok(bytes)
}

/// The pickle of a file from before PyTorch 1.6, with the positions of the storages.
fn legacy(mut file: File) -> Result<(Pickle, Place), Reason> {
    /// The magic number of such files.
    const MAGIC: &[u8] = &[0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
    let io = |e: std::io::Error| format!("it cannot be read: {e}");
    let mut bytes = Vec::new();
    file.by_ref()
        .take(MAX_PICKLE)
        .read_to_end(&mut bytes)
        .map_err(io)?;
    if !bytes
        .windows(MAGIC.len())
        .take(64)
        .any(|window| window == MAGIC)
    {
        return Err("it was not written by `torch.save`".into());
    }
    let (_, rest) = pickle::read(&bytes)?;
    let (version, rest) = pickle::read(rest)?;
    if !matches!(version.root, Object::Int(1001)) {
        return Err("its version of the old format is not 1001".into());
    }
    let (_, rest) = pickle::read(rest)?;
    let (pickle, rest) = pickle::read(rest)?;
    let (keys, rest) = pickle::read(rest)?;
    let Object::List(keys) = &keys.root else {
        return Err("it does not list its storages".into());
    };
    let mut sizes = BTreeMap::new();
    storages(&pickle.root, 0, &mut 0, &mut sizes)?;
    let mut at = (bytes.len() - rest.len()) as u64;
    let end = file.metadata().map_err(io)?.len();
    let mut places = BTreeMap::new();
    for key in keys.borrow().iter() {
        let Object::Text(key) = key else {
            return Err("it does not name its storages".into());
        };
        let mut num = [0; 8];
        file.seek(SeekFrom::Start(at))
            .and_then(|_| file.read_exact(&mut num))
            .map_err(|_| "it is truncated".to_owned())?;
        let num = u64::from_le_bytes(num);
        let (wanted, size) = sizes.get(&**key).copied().unwrap_or((num, 1));
        let next = num
            .checked_mul(size)
            .and_then(|bytes| at.checked_add(8 + bytes));
        match next {
            Some(next) if next <= end && num == wanted => {
                places.insert(key.to_string(), at + 8);
                at = next;
            }
            _ => return Err("it is truncated: a storage is incomplete".into()),
        }
    }
    Ok((pickle, Place::File(places)))
}

/// The number of values of each storage, with the bytes per value.
fn storages(
    object: &Object,
    depth: usize,
    num: &mut usize,
    found: &mut BTreeMap<String, (u64, u64)>,
) -> Result<(), Reason> {
    walk(object, depth, num, &mut |view: &Rc<View>| {
        let storage = &view.storage;
        found.insert(
            storage.key.to_string(),
            (storage.num as u64, storage.dtype.size() as u64),
        );
    })
}

/// Lists the tensors in an object.
fn walk(
    object: &Object,
    depth: usize,
    num: &mut usize,
    see: &mut dyn FnMut(&Rc<View>),
) -> Result<(), Reason> {
    *num += 1;
    if depth > MAX_DEPTH || *num > MAX_SEEN {
        return Err("its pickle contains itself".into());
    }
    match object {
        Object::Tensor(view) => see(view),
        Object::Dict(items) => {
            for (_, value) in items.borrow().iter() {
                walk(value, depth + 1, num, see)?;
            }
        }
        Object::List(items) => {
            for value in items.borrow().iter() {
                walk(value, depth + 1, num, see)?;
            }
        }
        Object::Tuple(items) => {
            for value in items.iter() {
                walk(value, depth + 1, num, see)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// The value below a key; dots separate nested keys.
fn below(path: &Path, root: Object, key: Option<&str>) -> Result<Object, DataError> {
    let mut object = root;
    for part in key.into_iter().flat_map(|key| key.split('.')) {
        let inner = match &object {
            Object::Dict(items) => {
                let items = items.borrow();
                let mut found = items
                    .iter()
                    .filter(|(name, _)| matches!(name, Object::Text(name) if &**name == part));
                found.next().map(|(_, inner)| inner.clone())
            }
            _ => None,
        };
        object = inner.ok_or_else(|| {
            let message = format!("`{}` has no key `{}`", path.display(), key.unwrap_or(part));
            DataError::new(message)
                .help("set the key that contains the weights, such as `state_dict`, or remove `top_level_key`")
                .key("init.top_level_key")
        })?;
    }
    Ok(object)
}

/// The tensors of dictionaries in dictionaries, by the names of `state_dict()`.
fn collect(
    object: &Object,
    name: String,
    depth: usize,
    num: &mut usize,
    views: &mut BTreeMap<String, Rc<View>>,
    order: &mut Vec<String>,
) -> Result<(), Reason> {
    *num += 1;
    if depth > MAX_DEPTH || *num > MAX_SEEN || order.len() > 1 << 20 {
        return Err("its pickle contains itself".into());
    }
    match object {
        Object::Tensor(view) => {
            order.push(name.clone());
            views.insert(name, view.clone());
        }
        Object::Dict(items) => {
            for (key, value) in items.borrow().iter() {
                let key = match key {
                    Object::Text(text) => text.to_string(),
                    Object::Int(number) => number.to_string(),
                    _ => continue,
                };
                let inner = if name.is_empty() {
                    key
                } else {
                    format!("{name}.{key}")
                };
                collect(value, inner, depth + 1, num, views, order)?;
            }
        }
        _ => {}
    }
    Ok(())
}

/// Reads the tensors with some names.
pub fn read(
    path: &Path,
    handles: &Handles,
    wanted: &BTreeSet<&str>,
    take: Take<'_>,
) -> Result<(), DataError> {
    let wrong = |reason: Reason| damaged(path, reason).help(HELP);
    let mut file = plain_file::open(path).map_err(|e| unreadable(path, &e))?;
    let mut archive = match &handles.place {
        Place::Archive(_) => {
            let file = plain_file::open(path).map_err(|e| unreadable(path, &e))?;
            Some(ZipArchive::new(file).map_err(|e| wrong(e.to_string().into()))?)
        }
        Place::File(_) => None,
    };
    for name in wanted {
        let Some(view) = handles.views.get(*name) else {
            continue;
        };
        let storage = &view.storage;
        let size = (storage.num as u64).saturating_mul(storage.dtype.size() as u64);
        let bytes = match (&handles.place, &mut archive) {
            (Place::Archive(folder), Some(archive)) => {
                entry(archive, &format!("{folder}{}", storage.key), size).map_err(wrong)?
            }
            (Place::File(places), _) => {
                let at = places.get(&*storage.key).copied();
                let at =
                    at.ok_or_else(|| wrong(format!("it has no storage `{}`", storage.key).into()))?;
                let mut bytes = Vec::new();
                let read = file
                    .seek(SeekFrom::Start(at))
                    .and_then(|_| file.by_ref().take(size).read_to_end(&mut bytes));
                read.map_err(|e| unreadable(path, &e))?;
                bytes
            }
            _ => Vec::new(),
        };
        if bytes.len() as u64 != size {
            return Err(wrong(
                format!(
                    "`{name}` is truncated: its storage has {} of {size} bytes",
                    bytes.len()
                )
                .into(),
            ));
        }
        let tensor = NamedTensor::new(
            *name,
            view.shape.clone(),
            storage.dtype,
            gathered(view, &bytes),
        );
        take(tensor.map_err(|e| damaged(path, e))?)?;
    }
    Ok(())
}

/// The values of a view in order.
fn gathered(view: &View, storage: &[u8]) -> Vec<u8> {
    let size = view.storage.dtype.size();
    let num: usize = view.shape.iter().product();
    let mut plain = 1;
    let is_plain = view
        .shape
        .iter()
        .zip(&view.strides)
        .rev()
        .all(|(size, stride)| {
            let is_next = *stride == plain || *size == 1;
            plain *= size;
            is_next
        });
    if is_plain {
        return storage[view.offset * size..(view.offset + num) * size].to_vec();
    }
    let mut bytes = Vec::with_capacity(num * size);
    let mut place = vec![0; view.shape.len()];
    for _ in 0..num {
        let from: usize = place
            .iter()
            .zip(&view.strides)
            .map(|(at, by)| at * by)
            .sum::<usize>()
            + view.offset;
        bytes.extend_from_slice(&storage[from * size..(from + 1) * size]);
        for axis in (0..place.len()).rev() {
            place[axis] += 1;
            if place[axis] < view.shape[axis] {
                break;
            }
            place[axis] = 0;
        }
    }
    bytes
}
