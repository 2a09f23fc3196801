//! A first program with runner as a library and parts of its own.
//!
//! Its files are those of `examples/own-parts`, which CI builds and runs, under another name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf, absolute};

use super::place::{Folder, unwritten};
use super::{Progress, Sink};
use crate::error::Error;
use runner_core::diagnostic::Diagnostic;
use runner_core::show::plain_io_error;
use runner_core::spec::plain_file;

/// The name of the example, which is replaced.
const EXAMPLE: &str = "own-parts";
/// How the example depends on runner.
const DEPENDENCY: &str = "burn-runner = { path = \"../..\" }";
/// The largest manifest that is read.
const MAX_MANIFEST: u64 = 1 << 20;

/// The files of the example.
const FILES: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        include_str!("../../examples/own-parts/Cargo.toml"),
    ),
    (
        "README.md",
        include_str!("../../examples/own-parts/README.md"),
    ),
    (".gitignore", "/target\n/results\n"),
    (
        "data.toml",
        include_str!("../../examples/own-parts/data.toml"),
    ),
    (
        "layer.toml",
        include_str!("../../examples/own-parts/layer.toml"),
    ),
    (
        "training.toml",
        include_str!("../../examples/own-parts/training.toml"),
    ),
    (
        "words.svm",
        include_str!("../../examples/own-parts/words.svm"),
    ),
    (
        "src/low_rank.rs",
        include_str!("../../examples/own-parts/src/low_rank.rs"),
    ),
    (
        "src/main.rs",
        include_str!("../../examples/own-parts/src/main.rs"),
    ),
    (
        "src/margin.rs",
        include_str!("../../examples/own-parts/src/margin.rs"),
    ),
    (
        "src/poly.rs",
        include_str!("../../examples/own-parts/src/poly.rs"),
    ),
    (
        "src/polynomial.rs",
        include_str!("../../examples/own-parts/src/polynomial.rs"),
    ),
    (
        "src/signum.rs",
        include_str!("../../examples/own-parts/src/signum.rs"),
    ),
    (
        "src/svmlight.rs",
        include_str!("../../examples/own-parts/src/svmlight.rs"),
    ),
    (
        "src/weight_noise.rs",
        include_str!("../../examples/own-parts/src/weight_noise.rs"),
    ),
];

/// Names that a package of this program cannot have: of its dependencies, of Rust's own crates, and Rust's keywords.
const TAKEN: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "burn",
    "burn-runner",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "proc_macro",
    "pub",
    "ref",
    "return",
    "self",
    "serde",
    "static",
    "std",
    "struct",
    "super",
    "test",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// A program to write.
#[derive(Clone, Debug)]
pub struct NewProject {
    /// The folder, which must be new or empty.
    pub folder: PathBuf,
    /// The name of the package; by default that of the folder.
    pub name: Option<String>,
    /// Where runner's own source is: a checkout of its repository, or an address for git.
    pub runner: Option<String>,
}

impl NewProject {
    /// A program that uses the runner of a checkout, or of an address for git.
    pub fn new(folder: impl Into<PathBuf>, runner: impl Into<String>) -> Self {
        Self {
            folder: folder.into(),
            name: None,
            runner: Some(runner.into()),
        }
    }
}

/// A program that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The name of its package.
    pub name: String,
    /// Its files, relative to its folder.
    pub files: Vec<&'static str>,
}

/// Writes a program with one part of each kind, and experiments that use them.
///
/// # Errors
/// [`Error::Refused`] if the name, the folder or the source of runner cannot be used.
///
/// ```no_run
/// use burn_runner::ops::{self, NewProject};
///
/// let project = ops::new_project(&NewProject::new("my-parts", "../runner"), &ops::quiet)?;
/// assert_eq!(project.name, "my-parts");
/// # Ok::<(), burn_runner::Error>(())
/// ```
pub fn new_project(asked: &NewProject, sink: &Sink<'_>) -> Result<Project, Error> {
    let name = name_of(asked)?;
    let source = Source::of(asked.runner.as_deref())?;
    // An empty folder is replaced.
    let folder = Folder::new(&asked.folder, true, |_| false)?;
    if let Some(version) = source.other_version() {
        sink(Progress::Note(&format!(
            "the checkout has version {version} of runner, and this program is of version {}",
            env!("CARGO_PKG_VERSION")
        )));
    }
    folder.write(|new| {
        let fill = || -> io::Result<()> {
            fs::create_dir(new.join("src"))?;
            for (file, text) in FILES {
                let text = text.replace(EXAMPLE, &name);
                let text = text.replace(DEPENDENCY, &source.dependency());
                fs::write(new.join(file), text)?;
            }
            // The versions that runner was tested with.
            if let Some(lock) = source.lock() {
                fs::copy(lock, new.join("Cargo.lock"))?;
            }
            Ok(())
        };
        fill().map_err(|e| unwritten(&asked.folder, &e))
    })?;
    Ok(Project {
        name,
        files: FILES.iter().map(|(file, _)| *file).collect(),
    })
}

fn refused(message: String, help: &str) -> Error {
    Error::refused(Diagnostic::error("usage", message).help(help))
}

/// The name of the package.
fn name_of(asked: &NewProject) -> Result<String, Error> {
    let name = match (&asked.name, asked.folder.file_name()) {
        (Some(name), _) => name.clone(),
        (None, Some(name)) => name.to_string_lossy().into_owned(),
        (None, None) => {
            let message = format!("`{}` is not the name of a folder", asked.folder.display());
            return Err(refused(message, "use a name such as `my-parts`"));
        }
    };
    let reason = if TAKEN.contains(&name.to_lowercase().as_str()) {
        "which means something else to Rust or Cargo"
    } else if name.is_empty() || name.len() > 64 {
        "which must have 1 to 64 characters"
    } else if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        "which must begin with a letter"
    } else if let Some(wrong) = name
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !"-_".contains(*c))
    {
        return Err(not_a_name(
            &name,
            &format!("which must not contain {wrong:?}"),
        ));
    } else {
        return Ok(name);
    };
    Err(not_a_name(&name, reason))
}

fn not_a_name(name: &str, reason: &str) -> Error {
    let message = format!("`{name}` cannot be the name of a package, {reason}");
    refused(
        message,
        "use a name such as `my-parts`, or give the package another name than the folder with `--name NAME`",
    )
}

/// Where runner's source is.
enum Source {
    Checkout { path: String, version: String },
    Git(String),
}

impl Source {
    fn of(given: Option<&str>) -> Result<Self, Error> {
        let Some(given) = given else {
            return Err(refused(
                "a program with parts of its own is built from the source of runner, which is not published on crates.io".into(),
                "pass `--runner PATH` with a checkout of its repository, or `--runner URL` with the repository's address",
            ));
        };
        if given.contains("://") || given.starts_with("git@") {
            return Ok(Self::Git(given.to_owned()));
        }
        let help = "use the folder that contains the `Cargo.toml` of the package `burn-runner`";
        let path = absolute(given).unwrap_or_else(|_| given.into());
        let manifest = path.join("Cargo.toml");
        let text = plain_file::read(&manifest, MAX_MANIFEST).map_err(|e| {
            let reason = plain_io_error(&e);
            refused(
                format!("`{}` cannot be read: {reason}", manifest.display()),
                help,
            )
        })?;
        let text = text.unwrap_or_default();
        let table: Option<toml::Table> = toml::from_slice(&text).ok();
        let package = table.as_ref().and_then(|table| table.get("package"));
        let is_runner = package.and_then(|it| it.get("name")?.as_str()) == Some("burn-runner");
        let Some(path) = path.to_str().filter(|_| is_runner) else {
            return Err(refused(
                format!("`{given}` is not a checkout of runner"),
                help,
            ));
        };
        let shared = table
            .as_ref()
            .and_then(|table| table.get("workspace")?.get("package"));
        let version = shared.and_then(|it| it.get("version")?.as_str());
        Ok(Self::Checkout {
            path: path.to_owned(),
            version: version.unwrap_or_default().to_owned(),
        })
    }

    fn dependency(&self) -> String {
        let (key, value) = match self {
            Self::Checkout { path, .. } => ("path", path),
            Self::Git(url) => ("git", url),
        };
        let value = toml::Value::String(value.clone());
        format!("burn-runner = {{ {key} = {value} }}")
    }

    fn other_version(&self) -> Option<&str> {
        match self {
            Self::Checkout { version, .. } if version != env!("CARGO_PKG_VERSION") => Some(version),
            _ => None,
        }
    }

    fn lock(&self) -> Option<PathBuf> {
        match self {
            Self::Checkout { path, .. } => {
                let lock = Path::new(path).join("Cargo.lock");
                lock.is_file().then_some(lock)
            }
            Self::Git(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is added to the example is added to the projects that it is the template of.
    #[test]
    fn a_project_has_every_file_of_the_example() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/own-parts");
        let list = |folder: &str| {
            let entries = fs::read_dir(root.join(folder)).unwrap().flatten();
            let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
            let names = files.map(|entry| entry.file_name().into_string().unwrap());
            names
                .map(|name| format!("{folder}{name}"))
                .collect::<Vec<_>>()
        };
        let ours: Vec<&str> = FILES.iter().map(|(file, _)| *file).collect();
        for file in [list(""), list("src/")].concat() {
            // That of runner's own code would hold for the example otherwise.
            assert!(
                file == "clippy.toml" || ours.contains(&file.as_str()),
                "{file}"
            );
        }
        assert!(FILES[0].1.contains(DEPENDENCY));
    }
}
