//! A first experiment file for a user's data.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::{Progress, Sink};
use crate::error::Error;
use runner_core::diagnostic::{Diagnostic, Severity};
use runner_core::init::{Wishes, look, starter_on_iris};
use runner_core::show::plain_io_error;
use runner_core::spec::task::TaskKind;

/// The schema in a checkout, from its root.
const SCHEMA: &str = "schemas/experiment.schema.json";

/// The content of a first experiment file, and where to write it.
#[derive(Clone, Debug, Default)]
pub struct Init {
    /// A file or folder of data; by default the embedded iris flowers.
    pub data: Option<PathBuf>,
    /// The prediction task; by default inferred from the data.
    pub task: Option<TaskKind>,
    /// The file to write; by default the data's name with `.toml`, in the working directory; `-` to write nothing.
    pub out: Option<PathBuf>,
    /// Whether to overwrite an existing file.
    pub force: bool,
}

/// A first experiment file.
#[derive(Clone, Debug)]
pub struct Starter {
    /// The file that was written, if any.
    pub path: Option<PathBuf>,
    /// The file quoted for a shell, or `FILE`.
    pub file: String,
    /// The content.
    pub text: String,
}

/// Creates a first experiment file with a comment on every line, and writes it.
///
/// # Errors
///
/// [`Error::Refused`] if the data cannot be read, or the file exists or may not be written; [`Error::Failed`] if writing
/// fails for another reason, such as a full disk.
///
/// ```
/// use burn_runner::ops::{self, Init};
///
/// let options = Init {
///     out: Some("-".into()),
///     ..Init::default()
/// };
/// let starter = ops::init(&options, &ops::quiet)?;
/// assert!(starter.text.contains("iris"));
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn init(options: &Init, sink: &Sink<'_>) -> Result<Starter, Error> {
    let out = options
        .out
        .clone()
        .unwrap_or_else(|| default_out(options.data.as_deref()));
    let path = Some(out).filter(|out| out != Path::new("-"));
    let folder = path.as_deref().and_then(Path::parent);
    let folder = folder.unwrap_or(Path::new(""));
    if let Some(path) = &path {
        // Before the data is read, which may take a while.
        if !options.force && path.exists() {
            return Err(taken(path));
        }
        if !folder.as_os_str().is_empty() && !folder.is_dir() {
            let message = format!("the folder `{}` does not exist", folder.display());
            let diagnostic = Diagnostic::error("results", message);
            return Err(Error::refused(
                diagnostic.help("create it first, or choose another file"),
            ));
        }
    }
    let file = match &path {
        None => "FILE".to_owned(),
        Some(path) => shell_word(&path.display().to_string()),
    };
    let wishes = Wishes {
        task: options.task,
        schema: schema_near(folder),
        file: file.clone(),
    };
    let text = match &options.data {
        None => starter_on_iris(&wishes),
        Some(data) => look(data, folder).and_then(|found| {
            for warning in &found.warnings {
                let mut shown = warning.to_diagnostic();
                shown.severity = Severity::Warning;
                sink(Progress::Warning(&shown));
            }
            found.starter(&wishes)
        }),
    };
    let text = text.map_err(|error| Error::refused(error.to_diagnostic()))?;
    if let Some(path) = &path {
        write(path, &text, options.force).map_err(|e| unwritten(path, &e))?;
    }
    Ok(Starter { path, file, text })
}

fn taken(path: &Path) -> Error {
    let message = format!("`{}` already exists", path.display());
    let help = "use another file with `--out`, or overwrite it with `--force`";
    Error::refused(Diagnostic::error("results", message).help(help))
}

fn unwritten(path: &Path, error: &std::io::Error) -> Error {
    let message = format!(
        "cannot write `{}`: {}",
        path.display(),
        plain_io_error(error)
    );
    let diagnostic = Diagnostic::error("results", message);
    match error.kind() {
        ErrorKind::AlreadyExists => taken(path),
        ErrorKind::NotFound | ErrorKind::PermissionDenied => Error::refused(diagnostic),
        _ => Error::failed(diagnostic),
    }
}

/// The data's name with another extension, in this folder.
fn default_out(data: Option<&Path>) -> PathBuf {
    let Some(data) = data else {
        return "iris.toml".into();
    };
    // `.` and `..` have no name.
    let whole = fs::canonicalize(data).unwrap_or_else(|_| data.to_owned());
    let name = whole.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').find(|part| !part.is_empty());
    PathBuf::from(format!("{}.toml", stem.unwrap_or("experiment")))
}

/// Without `force`, a file that appeared in the meantime is not overwritten either.
fn write(path: &Path, text: &str, force: bool) -> std::io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true);
    if force {
        options.create(true).truncate(true)
    } else {
        options.create_new(true)
    };
    options.open(path)?.write_all(text.as_bytes())
}

/// The relative path of the schema, if it is in the folder or in one of the three above.
fn schema_near(folder: &Path) -> Option<String> {
    let mut way = String::new();
    for _ in 0..4 {
        let schema = format!("{way}{SCHEMA}");
        if folder.join(&schema).is_file() {
            return Some(schema);
        }
        way.push_str("../");
    }
    None
}

/// A path quoted for a shell.
fn shell_word(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-=+,@".contains(c);
    if path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}
