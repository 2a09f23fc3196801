//! New data for a trained network: files are read with the columns of the run's data, one piece at a time, and
//! transformed as the run saved it.
//!
//! Nothing is fitted to new data, and no column is guessed. A piece takes some MiB of memory, whatever the size of the
//! file. Every item keeps its identifier in the file: its row number or its name.

mod graphs;
mod pieces;
mod source;
mod windows;
mod words;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use super::encode::InputEncoder;
use super::encode::tokenizer::chat::Renderer;
pub use super::read::arrays::element::{Element, Layout as ArrayLayout};
use super::read::{arrays, images, magic, tables, text};
use super::records::{Column, ColumnKind, Records, Skipped};
use super::serve::Split;
use super::{DataError, DataPlan, Dataset, Transforms};
use crate::spec::data::{DataKind, FilesSpec, Format, ImageSpec};
use crate::spec::section::Choice;
pub use graphs::KnownNodes;
use pieces::Pieces;
pub use source::kind_of;

/// New data, and how it is read.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// What the run saved about its data.
    pub transforms: &'a Transforms,
    /// The data that the run was trained on: new files have the same format, unless they are of another type.
    pub plan: &'a DataPlan,
    /// The file or the folder.
    pub path: &'a Path,
    /// The name of the file in messages, if `path` is a copy of it.
    pub shown: Option<&'a str>,
    /// The type of the files; detected if not set.
    pub kind: Option<DataKind>,
    /// The file or folder of targets, if they are not next to the inputs.
    pub targets: Option<&'a Path>,
    /// The file of edges, if the items are graphs.
    pub edges: Option<&'a Path>,
    /// Whether targets are read.
    pub has_targets: bool,
    /// Whether items that cannot be used are skipped instead of refused.
    pub skips_bad: bool,
    /// Columns of a table that are copied to the output as text.
    pub keep: &'a [String],
    /// Columns of a table that are neither inputs nor targets.
    pub ignore: &'a [String],
    /// Keeps the nodes of the run, if items are pairs of them, so that its data is read only once.
    pub nodes: Option<&'a KnownNodes>,
}

/// Some items in the order of their file.
#[derive(Debug)]
pub struct Piece {
    /// The items.
    pub split: Split,
    /// The identifier of each: the number of its row from 1, of its item in an array from 0, or the name of its file.
    pub ids: Vec<String>,
    /// The values of each that are copied to the output.
    pub kept: Vec<Vec<String>>,
    /// Items that were skipped since the last piece.
    pub skipped: Vec<Skipped>,
}

/// Where a record comes from.
#[derive(Clone, Debug)]
pub(in crate::data) struct Origin {
    /// Its identifier.
    pub id: Id,
    /// Its place, for messages.
    pub line: u64,
    /// Values that are copied to the output.
    pub kept: Vec<String>,
    /// Its group, its graph, or the first node of a pair.
    pub group: Option<String>,
    /// The name of the node, if it is one of a graph, or of the second node of a pair.
    pub node: Option<String>,
}

/// The identifier of an item.
#[derive(Clone, Debug)]
pub(in crate::data) enum Id {
    /// The number of its row, from 1, or in an array, as NumPy counts, from 0.
    Row(u64),
    /// The name of its file.
    File(String),
}

/// Records as they were read.
pub(in crate::data) struct Raw {
    /// The records.
    pub records: Records,
    /// Where each comes from.
    pub origins: Vec<Origin>,
    /// Items that could not be decoded, with the number of records before each.
    pub bad: Vec<(usize, Skipped)>,
    /// Rows that are not items, as the run's data has them.
    pub left_out: Vec<Skipped>,
    /// The place of an item, for messages.
    pub place: fn(&str, &Origin) -> String,
}

/// Receives records as they are read.
pub(in crate::data) type Take<'a> = &'a mut dyn FnMut(Raw) -> Result<(), DataError>;

impl<'a> Incoming<'a> {
    /// A file in the same format as the run's own files.
    pub fn new(transforms: &'a Transforms, plan: &'a DataPlan, path: &'a Path) -> Self {
        Self {
            transforms,
            plan,
            path,
            shown: None,
            kind: None,
            targets: None,
            edges: None,
            has_targets: false,
            skips_bad: false,
            keep: &[],
            ignore: &[],
            nodes: None,
        }
    }

    /// Reads all items; `see` receives one piece after another, and can stop the reading.
    pub fn read(&self, see: &mut dyn FnMut(Piece) -> ControlFlow<()>) -> Result<(), DataError> {
        self.read_by(&|take| self.read_raw(take), see)
    }

    /// The same for an array in memory instead of a file: [`Incoming::path`] is only its name. `bytes` are its values
    /// in C order; the first dimension of `shape` is the items.
    pub fn read_array(
        &self,
        layout: ArrayLayout,
        shape: &[usize],
        bytes: &[u8],
        see: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<(), DataError> {
        let read = |take: Take<'_>| arrays::incoming::of_memory(self, layout, shape, bytes, take);
        self.read_by(&read, see)
    }

    fn read_by(
        &self,
        read: &dyn Fn(Take<'_>) -> Result<(), DataError>,
        see: &mut dyn FnMut(Piece) -> ControlFlow<()>,
    ) -> Result<(), DataError> {
        let mut pieces = Pieces::new(self)?;
        if let Some(edges) = self.edges_of_graphs()? {
            let piece = pieces.graphs(read, edges);
            let _ = see(piece.map_err(|error| self.renamed(error))?);
            return Ok(());
        }
        let mut is_ended = false;
        let mut num_items = 0;
        let mut take = |raw: Raw| {
            let piece = pieces.piece(raw)?;
            num_items += piece.split.num_items();
            if see(piece).is_break() {
                is_ended = true;
                // Only an error stops a reader before the end of its file.
                return Err(DataError::new("reading was stopped"));
            }
            Ok(())
        };
        match read(&mut take) {
            Err(_) if is_ended => Ok(()),
            Err(error) => Err(self.renamed(error)),
            Ok(()) if num_items == 0 => Err(self.renamed(pieces.nothing_left())),
            Ok(()) => Ok(()),
        }
    }

    /// The same for rows that are JSON objects, one text each, instead of a file: [`Incoming::path`] is only their
    /// name.
    pub fn read_objects(&self, objects: &[&str]) -> Result<Piece, DataError> {
        self.check()?;
        let mut pieces = Pieces::new(self)?;
        pieces.are_objects = true;
        let mut piece = None;
        let mut take = |raw: Raw| {
            piece = Some(pieces.piece(raw)?);
            Ok(())
        };
        let read = tables::incoming::of_objects(self, objects, &mut take);
        read.map_err(|error| self.renamed(error))?;
        piece.ok_or_else(|| pieces.nothing_left())
    }

    fn read_raw(&self, take: Take<'_>) -> Result<(), DataError> {
        if let (true, Some(kind)) = (self.are_pairs(), self.kind.or(kind_of(self.path))) {
            graphs::Known::refuse_arrays(kind)?;
        }
        let kind = source::kind(self)?;
        let files = self.files(kind);
        let has_file_of_targets = matches!(
            kind,
            DataKind::Npy
                | DataKind::Npz
                | DataKind::Safetensors
                | DataKind::Idx
                | DataKind::ImageFolder
        );
        if self.targets.is_some() && !has_file_of_targets {
            let message = format!(
                "`--targets` was given, but the targets of items of type `{}` are in the same file",
                kind.name()
            );
            return Err(DataError::new(message).help("remove `--targets`"));
        }
        if kind != DataKind::ImageFolder {
            magic::check(self.path, kind)?;
        }
        match kind {
            DataKind::Csv | DataKind::JsonLines | DataKind::Parquet => {
                tables::incoming::read(self, &files, take)
            }
            DataKind::Npy | DataKind::Npz | DataKind::Safetensors | DataKind::Idx => {
                arrays::incoming::read(self, kind, take)
            }
            DataKind::ImageFolder => images::incoming::read(self, take),
            _ => text::incoming(self, take),
        }
    }

    /// How files of a type are read: like those of the run. Files of another type have the format that is usual for
    /// them, and the run's marks of missing values.
    pub(in crate::data) fn files(&self, kind: DataKind) -> FilesSpec {
        let usual = FilesSpec::usual(kind, self.path.display().to_string());
        let Some(files) = self.trained_on() else {
            return FilesSpec {
                format: source::dialect(self.path, usual.format.clone()),
                ..usual
            };
        };
        let mut roles = files.roles.clone();
        let format = if files.kind() == kind {
            files.format.clone()
        } else {
            match (&files.format, usual.format.clone()) {
                (_, mut format @ Format::Csv { .. }) => {
                    if let Format::Csv { missing_values, .. } = &mut format {
                        // What was a category in training is one.
                        missing_values.retain(|mark| !self.transforms.has_category(mark));
                        missing_values
                            .extend(roles.values.missing_values.take().unwrap_or_default());
                    }
                    format
                }
                (Format::Csv { missing_values, .. }, format) => {
                    roles.values.missing_values = Some(missing_values.clone());
                    format
                }
                (_, format) => format,
            }
        };
        FilesSpec {
            format: source::dialect(self.path, format),
            roles,
            ..usual
        }
    }

    /// The type of the files that the run was trained on, if it was trained on files.
    pub fn kind_of_run(&self) -> Option<DataKind> {
        self.trained_on().map(FilesSpec::kind)
    }

    /// The files that the run was trained on, if it was trained on files.
    pub(in crate::data) fn trained_on(&self) -> Option<&'a FilesSpec> {
        self.plan.files()
    }

    /// The folder of the images that a column of new data names: where that of the run was beside its table.
    pub(in crate::data) fn folder_of_images(&self, image: &ImageSpec) -> Option<PathBuf> {
        let folder = Path::new(image.folder.first()?);
        let table = Path::new(self.trained_on()?.path.first()?).parent()?;
        let beside = self.path.parent().filter(|_| self.shown.is_none());
        Some(match (beside, folder.strip_prefix(table)) {
            (Some(beside), Ok(inside)) => beside.join(inside),
            _ => folder.to_owned(),
        })
    }

    /// The column of running text, and whether it holds conversations, if the run read a table of such.
    pub fn text_column(&self) -> Option<(usize, bool)> {
        let InputEncoder::Stream { column, .. } = self.transforms.input else {
            return None;
        };
        let name = &self.transforms.columns.get(column)?.name;
        let mut chats = self.trained_on()?.roles.chats();
        Some((column, chats.any(|chat| chat == name)))
    }

    /// The column of conversations, if the items of the run are such.
    pub fn chat_column(&self) -> Option<usize> {
        let (column, is_chat) = self.text_column()?;
        is_chat.then_some(column)
    }

    /// The same with the template that writes them.
    fn chats(&self) -> Option<(usize, Renderer)> {
        let column = self.chat_column()?;
        let template = self.transforms.input.tokenizer()?.chat.as_ref()?;
        Some((column, Renderer::new(template, None).ok()?))
    }

    /// The columns that are read.
    pub(in crate::data) fn used(&self) -> Vec<usize> {
        let mut used = if self.are_pairs() {
            self.edge_features()
        } else {
            self.transforms.inputs()
        };
        if self.has_targets {
            used.extend(self.transforms.targets());
        }
        used
    }

    /// The value of one unit of the network's array in units of the data, for embedded data: its bytes represent
    /// centimetres, or intensities from 0 to 1.
    pub(in crate::data) fn unit(&self) -> Option<f64> {
        match (&self.plan.dataset, &self.transforms.input) {
            (Dataset::Iris | Dataset::Digits { .. }, InputEncoder::Array { unit, .. }) => {
                Some(f64::from(*unit))
            }
            _ => None,
        }
    }

    /// The columns of the run's data, of which new rows have the array in units of the data.
    pub(in crate::data) fn all_columns(&self) -> Vec<Column> {
        let mut columns = self.transforms.columns.clone();
        if let (Some(_), Some((at, _))) = (self.unit(), self.transforms.array()) {
            columns[at].kind = ColumnKind::Numbers;
        }
        columns
    }

    /// The name of the file in messages.
    pub(in crate::data) fn name(&self) -> String {
        self.shown
            .map_or_else(|| self.path.display().to_string(), str::to_owned)
    }

    /// An error about the file under the name that the user knows.
    fn renamed(&self, error: DataError) -> DataError {
        let mut error = words::of_new_data(error);
        let Some(shown) = self.shown else {
            return error;
        };
        let path = self.path.display().to_string();
        let mut texts: Vec<&mut String> = vec![&mut error.message];
        texts.extend(error.notes.iter_mut().chain(&mut error.helps));
        for text in texts {
            *text = text
                .replace(&format!("`{path}`"), shown)
                .replace(&path, shown);
        }
        error
    }
}

impl Id {
    fn show(self) -> String {
        match self {
            Id::Row(number) => number.to_string(),
            Id::File(name) => name,
        }
    }
}
