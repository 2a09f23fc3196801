//! Weight files: their tensors by name, and the values of individual tensors.
//!
//! Every file is untrusted. Opening one reads names, types and shapes; values are read only for requested tensors, so
//! that memory use is bounded by the network. PyTorch's pickles are parsed and never executed.

mod arrays;
mod json;
mod onnx;
mod pack;
mod shards;
mod torch;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

use runner_core::data::DataError;
use runner_core::show::plain_io_error;
use runner_core::spec::init::InitLayout;
use runner_core::spec::plain_file;

use crate::delta;
use crate::tensors::{Dtype, NamedTensor, Tensors};
pub(crate) use arrays::dtype;

/// No network that is trained on one machine has more tensors than this.
const MAX_TENSORS: usize = 1 << 20;

/// A format of weight files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `.safetensors`
    Safetensors,
    /// `.npz`: NumPy's arrays by name.
    Npz,
    /// `.pt`, `.pth`, `.bin`, `.ckpt`: what `torch.save` writes.
    Torch,
    /// `.json`: nested lists by name.
    Json,
    /// `.onnx`: the weights of a graph.
    Onnx,
    /// `.bpk`: Burn's own.
    Burnpack,
}

impl Format {
    /// Every format with the extensions of its files.
    pub const ALL: [(Self, &'static [&'static str]); 6] = [
        (Self::Safetensors, &["safetensors"]),
        (Self::Torch, &["pt", "pth", "bin", "ckpt"]),
        (Self::Npz, &["npz"]),
        (Self::Json, &["json"]),
        (Self::Onnx, &["onnx"]),
        (Self::Burnpack, &["bpk"]),
    ];

    /// The format of a file, by its extension.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_ascii_lowercase();
        let mut all = Self::ALL.into_iter();
        let found = all.find(|(_, extensions)| extensions.contains(&extension.as_str()));
        found.map(|(format, _)| format)
    }

    /// The format that the first bytes of a file identify, if any.
    fn of_content(head: &[u8]) -> Option<Self> {
        let within = |name: &[u8]| head.windows(name.len()).any(|bytes| bytes == name);
        if head.starts_with(b"PK\x03\x04") {
            let (arrays, pickle) = (within(b".npy"), within(b"data.pkl"));
            return match (arrays, pickle) {
                (true, false) => Some(Self::Npz),
                (false, true) => Some(Self::Torch),
                _ => None,
            };
        }
        let is_header = head.get(8) == Some(&b'{') && head[..8].ends_with(&[0, 0, 0, 0]);
        is_header.then_some(Self::Safetensors)
    }

    fn extension(self) -> &'static str {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|(format, _)| *format == self);
        found.map_or("", |(_, extensions)| extensions[0])
    }
}

/// Refuses a file whose name says another format than its content.
fn refuse_misnamed(path: &Path, format: Format, file: impl Read) -> Result<(), DataError> {
    let mut head = Vec::new();
    let read = file.take(1 << 10).read_to_end(&mut head);
    read.map_err(|e| unreadable(path, &e))?;
    match Format::of_content(&head) {
        Some(other) if other != format => {
            let message = format!(
                "`{}` contains what a file that ends in `.{}` contains",
                path.display(),
                other.extension()
            );
            Err(DataError::new(message)
                .help(format!("rename it to end in `.{}`", other.extension())))
        }
        _ => Ok(()),
    }
}

/// Receives a tensor that was read.
pub type Take<'a> = &'a mut dyn FnMut(NamedTensor) -> Result<(), DataError>;

/// A tensor of a file, not read yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its sizes.
    pub shape: Vec<usize>,
    /// The type of its values.
    pub dtype: Dtype,
}

/// An open weight file.
pub struct Weights {
    path: PathBuf,
    entries: Vec<Entry>,
    source: Source,
    layout: InitLayout,
    /// Files of external data.
    beside: Vec<PathBuf>,
    /// Names in the file by displayed names.
    renamed: BTreeMap<String, String>,
    /// The metadata of a safetensors file.
    about: BTreeMap<String, String>,
}

/// Where the values of an open file are.
enum Source {
    /// In a file of arrays.
    Arrays(arrays::Open),
    /// Through PyTorch's reader.
    Torch(torch::Handles),
    /// In several files.
    Shards(Vec<Weights>),
    /// In memory.
    Memory(Tensors),
    /// In a Burn file.
    Pack,
}

impl Weights {
    /// Opens a file in the format given by its name. The weights in PyTorch and JSON files may be below a key; dots
    /// separate nested keys. Weight deltas are refused: their values are differences.
    pub fn open(path: &Path, top_level_key: Option<&str>) -> Result<Self, DataError> {
        let weights = Self::open_any(path, top_level_key)?;
        if weights.about.contains_key(delta::KEY) {
            let place = path.display();
            let message = format!("`{place}` is a weight delta, not weights");
            return Err(DataError::new(message).help(format!(
                "add it to the weights that it starts from: runner delta apply '{place}' --to WEIGHTS --out FILE"
            )));
        }
        Ok(weights)
    }

    /// The same for deltas too.
    pub(crate) fn open_any(path: &Path, top_level_key: Option<&str>) -> Result<Self, DataError> {
        // Pipes and devices must not reach a library.
        let file = plain_file::open(path).map_err(|e| unreadable(path, &e))?;
        let Some(format) = Format::of(path) else {
            return Err(unknown(path));
        };
        refuse_misnamed(path, format, file)?;
        let is_nested = matches!(format, Format::Torch | Format::Json);
        if let (Some(key), false) = (top_level_key, is_nested) {
            let message = format!(
                "`{}` has no key such as `{key}` that contains its tensors",
                path.display()
            );
            return Err(DataError::new(message)
                .help("remove `top_level_key`; to remove a prefix of names, use `remap`")
                .key("init.top_level_key"));
        }
        let mut layout = InitLayout::Pytorch;
        let (mut beside, mut about) = (Vec::new(), BTreeMap::new());
        let (entries, source) = match format {
            _ if shards::is_index(path) => {
                let (entries, files) = shards::open(path)?;
                beside = shards::paths(&files);
                (entries, Source::Shards(files))
            }
            Format::Safetensors => {
                about = arrays::about(path)?;
                layout = arrays::layout(&about);
                arrays::open(path, arrays::SAFETENSORS)?
            }
            Format::Npz => arrays::open(path, arrays::NPZ)?,
            Format::Torch => torch::open(path, top_level_key)?,
            Format::Json => json::open(path, top_level_key)?,
            Format::Onnx => {
                let (entries, source, files) = onnx::open(path)?;
                beside = files;
                (entries, source)
            }
            Format::Burnpack => {
                layout = InitLayout::Burn;
                pack::open(path)?
            }
        };
        let place = path.display();
        if entries.is_empty() {
            return Err(DataError::new(format!("`{place}` contains no tensors")).help(
                "save a network's `state_dict()`; if it is below a key, set that in `top_level_key`",
            ));
        }
        if entries.len() > MAX_TENSORS {
            let message = format!("`{place}` contains {} tensors", entries.len());
            return Err(DataError::new(message).help("no network has that many: use another file"));
        }
        let mut names = BTreeSet::new();
        if let Some(twice) = entries.iter().find(|entry| !names.insert(&entry.name)) {
            let message = format!("`{place}` contains two tensors `{}`", twice.name);
            return Err(DataError::new(message).help("give each tensor a unique name"));
        }
        Ok(Self {
            path: path.to_owned(),
            entries,
            source,
            layout,
            beside,
            renamed: BTreeMap::new(),
            about,
        })
    }

    /// Tensors in memory, as if they were in a file.
    pub fn of(path: &Path, tensors: Tensors, layout: InitLayout) -> Self {
        Self {
            path: path.to_owned(),
            entries: tensors.iter().map(entry_of).collect(),
            source: Source::Memory(tensors),
            layout,
            beside: Vec::new(),
            renamed: BTreeMap::new(),
            about: BTreeMap::new(),
        }
    }

    /// The same with another file that its values come from.
    pub fn and_file(mut self, path: PathBuf) -> Self {
        self.beside.push(path);
        self
    }

    /// The tensors, in the order of the file.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Files of external data.
    pub fn beside(&self) -> &[PathBuf] {
        &self.beside
    }

    /// The metadata of a safetensors file.
    pub(crate) fn about(&self) -> &BTreeMap<String, String> {
        &self.about
    }

    /// The names and layouts of the file.
    pub fn layout(&self) -> InitLayout {
        self.layout
    }

    /// The same with names changed by `rename`.
    pub fn renamed(mut self, rename: impl Fn(&str) -> String) -> Self {
        for entry in &mut self.entries {
            let new = rename(&entry.name);
            self.renamed
                .insert(new.clone(), std::mem::replace(&mut entry.name, new));
        }
        self
    }

    /// Reads the tensors with some names and passes them on one by one, in any order.
    pub fn read(&self, wanted: &BTreeSet<&str>, take: Take<'_>) -> Result<(), DataError> {
        let told: BTreeMap<&str, &str> = wanted
            .iter()
            .map(|name| (self.renamed.get(*name).map_or(*name, String::as_str), *name))
            .collect();
        let wanted: BTreeSet<&str> = told.keys().copied().collect();
        let take: Take<'_> = &mut |tensor| {
            let name = told.get(tensor.name()).copied().unwrap_or_default();
            take(tensor.named(name))
        };
        match &self.source {
            Source::Arrays(open) => arrays::read(&self.path, *open, &wanted, take),
            Source::Torch(handles) => torch::read(&self.path, handles, &wanted, take),
            Source::Pack => pack::read(&self.path, &wanted, take),
            Source::Shards(files) => shards::read(files, &wanted, take),
            Source::Memory(tensors) => {
                let mut wanted = tensors.iter().filter(|t| wanted.contains(t.name()));
                wanted.try_for_each(|tensor| take(tensor.clone()))
            }
        }
    }
}

fn entry_of(tensor: &NamedTensor) -> Entry {
    Entry {
        name: tensor.name().to_owned(),
        shape: tensor.shape().to_vec(),
        dtype: tensor.dtype(),
    }
}

/// A file that cannot be opened.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> DataError {
    let message = format!(
        "`{}` cannot be read: {}",
        path.display(),
        plain_io_error(error)
    );
    DataError::new(message).help("paths are relative to the file that contains them")
}

/// A file that is damaged, in words.
pub(crate) fn damaged(path: &Path, reason: impl std::fmt::Display) -> DataError {
    DataError::new(format!("`{}` cannot be used: {reason}", path.display()))
}

fn unknown(path: &Path) -> DataError {
    let known = Format::ALL.iter().flat_map(|(_, extensions)| *extensions);
    let known: Vec<_> = known.map(|extension| format!("`.{extension}`")).collect();
    let message = format!(
        "`{}` does not have the extension of a weight file",
        path.display()
    );
    DataError::new(message)
        .note(format!("the extensions of weight files are {}", known.join(", ")))
        .help("use such a file, a capsule, or the folder of a run such as `results/digits/runs/base-s1`")
}

#[cfg(test)]
mod tests;
