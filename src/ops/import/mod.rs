//! Networks of other programs as experiments.

mod experiment;
mod hub;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use burn::tensor::{Device, TensorData};

pub use hub::{ImportHub, ImportedHub, import_hub};

use super::{Progress, Sink};
use crate::error::Error;
use runner_core::check::network::Network;
use runner_core::data::DataError;
use runner_core::diagnostic::Diagnostic;
use runner_core::record::{write_whole, write_whole_by};
use runner_core::show::plain_io_error;
use runner_core::show::show_bytes;
use runner_core::spec::init::InitLayout;
use runner_core::spec::plain_file;
use runner_exchange::onnx::import::{self, Imported};
use runner_exchange::slots;
use runner_exchange::tensors::{NamedTensor, TensorError, Tensors};
use runner_exchange::write;
use runner_network::graph::Graph;
use runner_network::tensor::DynTensor;
use runner_network::values::with_values;

/// The maximum size of an ONNX file: the format allows no more.
const MAX_BYTES: u64 = 2 << 30;
/// The number of items in the example: more than one, so that mixing up the batch is detected.
const ITEMS: usize = 4;

/// A request for a network of an ONNX file.
#[derive(Clone, Debug)]
pub struct ImportOnnx {
    /// The file.
    pub file: PathBuf,
    /// The folder to write to.
    pub out: PathBuf,
    /// Sizes of inputs by name, which replace those in the file.
    pub shapes: BTreeMap<String, Vec<usize>>,
    /// The output of the network, if the graph has several.
    pub output: Option<String>,
    /// Whether existing files are replaced.
    pub force: bool,
}

impl ImportOnnx {
    /// Into the current folder, as the file says.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            out: ".".into(),
            shapes: BTreeMap::new(),
            output: None,
            force: false,
        }
    }
}

/// A network that was written.
#[derive(Debug)]
pub struct ImportedOnnx {
    /// The experiment file, the weights, and the example.
    pub files: [PathBuf; 3],
    /// The network.
    pub network: Network,
}

/// Converts an ONNX file to an experiment with its weights, and an example of the network's output.
///
/// ```no_run
/// use burn_runner::ops::{self, ImportOnnx};
///
/// let options = ImportOnnx::new("resnet18.onnx");
/// let imported = ops::import_onnx(&options, &ops::quiet)?;
/// println!("{}", imported.files[0].display());
/// # Ok::<(), burn_runner::Error>(())
/// ```
///
/// # Errors
/// If the file is not an ONNX file, or has unsupported nodes. Nothing is written then.
pub fn import_onnx(options: &ImportOnnx, sink: &Sink<'_>) -> Result<ImportedOnnx, Error> {
    let imported = read(options)?;
    for note in &imported.notes {
        sink(Progress::Note(note));
    }
    let stem = stem(&options.file);
    let files = ["toml", "safetensors", "example.safetensors"];
    let files = files.map(|extension| options.out.join(format!("{stem}.{extension}")));
    refuse_existing(&files, options.force)?;
    let example = example(&imported).map_err(|reason| {
        let message = format!("`{}` cannot be imported: {reason}", options.file.display());
        Error::refused(Diagnostic::error("import", message))
    })?;
    let text = experiment::text(&stem, &imported);
    let [experiment, weights, items] = &files;
    let written = fs::create_dir_all(&options.out)
        .and_then(|()| write_tensors(weights, &imported.tensors))
        .and_then(|()| write_tensors(items, &example))
        .and_then(|()| write_whole(experiment, text.as_bytes()));
    written.map_err(|e| {
        let message = format!(
            "cannot write to `{}`: {}",
            options.out.display(),
            plain_io_error(&e)
        );
        let diagnostic = Diagnostic::error("output", message);
        Error::refused(diagnostic.help("free some space, or choose another folder with `--out`"))
    })?;
    Ok(ImportedOnnx {
        files,
        network: imported.network,
    })
}

/// The network of a file.
fn read(options: &ImportOnnx) -> Result<Imported, Error> {
    let place = options.file.display();
    let refused = |error: &DataError| {
        Error::refused(Diagnostic {
            notes: error.notes.clone(),
            helps: error.helps.clone(),
            ..Diagnostic::error(
                "import",
                format!("`{place}` cannot be imported: {}", error.message),
            )
        })
    };
    let bytes = plain_file::read(&options.file, MAX_BYTES).map_err(|e| {
        let message = format!("`{place}` cannot be read: {}", plain_io_error(&e));
        Error::refused(Diagnostic::error("import", message).help("use an ONNX file"))
    })?;
    let Some(bytes) = bytes else {
        let error = DataError::new(format!("it has more than {}", show_bytes(MAX_BYTES)));
        return Err(refused(
            &error.help("export the model with its weights in an external file"),
        ));
    };
    let read = import::Options {
        shapes: options.shapes.clone(),
        output: options.output.clone(),
    };
    import::import(&bytes, options.file.parent(), &read).map_err(|error| refused(&error))
}

/// A file's name without its extension, as part of other names.
fn stem(file: &Path) -> String {
    in_names(&file.file_stem().unwrap_or_default().to_string_lossy())
}

/// A text as part of the names of files.
fn in_names(text: &str) -> String {
    let allowed = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '_'
        }
    };
    let stem: String = text.chars().map(allowed).collect();
    match stem.trim_start_matches('.') {
        "" => "network".into(),
        stem => stem.to_owned(),
    }
}

fn refuse_existing(files: &[PathBuf], force: bool) -> Result<(), Error> {
    let taken = files.iter().find(|path| match fs::symlink_metadata(path) {
        // A folder or a device is not replaced in any case.
        Ok(there) => !force || !(there.is_file() || there.is_symlink()),
        Err(e) => e.kind() != io::ErrorKind::NotFound && e.kind() != io::ErrorKind::NotADirectory,
    });
    match taken {
        None => Ok(()),
        Some(path) => {
            let message = format!("`{}` exists", path.display());
            let diagnostic = Diagnostic::error("import", message);
            Err(Error::refused(diagnostic.help(
                "choose another folder with `--out`, or pass `--force` to replace the files",
            )))
        }
    }
}

fn write_tensors(path: &Path, tensors: &Tensors) -> io::Result<()> {
    write_whole_by(path, |file| {
        write::safetensors(tensors, file).map_err(io::Error::other)
    })
}

/// The output of an imported network for a batch of numbers or tokens, on a device.
///
/// # Errors
/// If a layer has no weights.
pub fn outputs(
    imported: &Imported,
    input: TensorData,
    device: &Device,
) -> Result<TensorData, String> {
    let plan = &imported.network;
    let mut values = BTreeMap::new();
    for (at, slot) in slots::slots(plan, InitLayout::Pytorch).iter().enumerate() {
        let tensor = imported.tensors.get(&slot.name);
        let tensor = tensor.ok_or_else(|| format!("its layers have no weights `{}`", slot.name))?;
        let parts = slots::to_burn(plan, InitLayout::Pytorch, at, tensor.clone());
        for part in parts.map_err(|error| error.message)? {
            let data = TensorData::new(part.to_f32s(), part.shape().to_vec());
            values.insert(part.name().to_owned(), data);
        }
    }
    let graph = Graph::new(plan, Default::default(), device);
    let path = |path: &str| plan.user_path(path).unwrap_or_default();
    let graph = with_values(graph, &path, &mut |path| values.remove(path));
    Ok(graph
        .forward(DynTensor::from_data(input, device))
        .into_data())
}

/// Items with the network's outputs.
fn example(imported: &Imported) -> Result<Tensors, String> {
    let items = &imported.network.items;
    let shape = [&[ITEMS], items.dims.as_slice()].concat();
    let num = shape.iter().product::<usize>();
    let (input, data) = match items.vocabulary {
        // The last token is the highest one, since readers infer their number from it.
        Some(vocabulary) => {
            let tokens: Vec<i64> = (0..num)
                .map(|at| ((at * 7 + vocabulary - 1) % vocabulary) as i64)
                .collect();
            (
                NamedTensor::from_i64s("input", shape.clone(), &tokens),
                TensorData::new(tokens, shape),
            )
        }
        None => {
            let values: Vec<f32> = (0..num)
                .map(|at| (1.0 + 0.7 * at as f64).sin() as f32)
                .collect();
            (
                NamedTensor::from_f32s("input", shape.clone(), &values),
                TensorData::new(values, shape),
            )
        }
    };
    #[cfg(feature = "flex")]
    let device = Device::flex();
    #[cfg(not(feature = "flex"))]
    let device = Device::default();
    let output = outputs(imported, data, &device)?;
    let shape = output.shape().to_vec();
    let output = output
        .convert::<f32>()
        .try_to_vec::<f32>()
        .map_err(|e| format!("{e:?}"))?;
    let mut tensors = Tensors::new();
    let told = |e: TensorError| e.to_string();
    tensors.push(input).map_err(told)?;
    tensors
        .push(NamedTensor::from_f32s("output", shape, &output))
        .map_err(told)?;
    Ok(tensors)
}
