//! `runner init`: writes a first experiment file.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::experiment::refuse;
use super::output::Output;
use super::{FAILED, InitArgs, OK, WRONG};
use runner_core::diagnostic::{Diagnostic, Severity, Sources};
use runner_core::init::{Wishes, look, starter_on_iris};
use runner_core::spec::document::plain_io_error;
use runner_core::spec::section::Choice;
use runner_core::spec::task::TaskKind;

/// The schema in a checkout, from its root.
const SCHEMA: &str = "schemas/experiment.schema.json";

/// A task by its name.
pub fn task(name: &str) -> Result<TaskKind, String> {
    let found = TaskKind::ALL.iter().find(|(_, known, _)| *known == name);
    found.map(|(task, _, _)| *task).ok_or_else(|| {
        let names: Vec<_> = TaskKind::ALL.iter().map(|(_, name, _)| *name).collect();
        format!("the tasks are {}", names.join(", "))
    })
}

/// `runner init`
pub fn init(args: &InitArgs, output: &mut Output) -> u8 {
    let out = args.out.clone().unwrap_or_else(|| default_out(args));
    let is_printed = out == Path::new("-");
    let taken = |output: &mut Output| {
        let message = format!("`{}` already exists", out.display());
        let help = "use another file with `--out`, or overwrite it with `--force`";
        refuse(Diagnostic::error("results", message).help(help), output)
    };
    // Before the data is read, which may take a while.
    if !is_printed && !args.force && out.exists() {
        return taken(output);
    }
    let folder = if is_printed {
        Path::new("")
    } else {
        out.parent().unwrap_or(Path::new(""))
    };
    if !folder.as_os_str().is_empty() && !folder.is_dir() {
        let message = format!("the folder `{}` does not exist", folder.display());
        return refuse(
            Diagnostic::error("results", message).help("create it first, or choose another file"),
            output,
        );
    }
    let file = if is_printed {
        "FILE".to_owned()
    } else {
        shell_word(&out.display().to_string())
    };
    let wishes = Wishes {
        task: args.task,
        schema: schema_near(folder),
        file: file.clone(),
    };
    let text = match &args.data {
        None => starter_on_iris(&wishes),
        Some(data) => look(data, folder).and_then(|found| {
            for warning in &found.warnings {
                let mut shown = warning.to_diagnostic();
                shown.severity = Severity::Warning;
                output.show(&shown.render(&Sources::default(), Output::color()));
            }
            found.starter(&wishes)
        }),
    };
    let text = match text {
        Ok(text) => text,
        Err(error) => return refuse(error.to_diagnostic(), output),
    };
    if is_printed {
        output.print(&text);
        return OK;
    }
    match write(&out, &text, args.force) {
        Ok(()) => {
            output.say(&format!("wrote {}; next:", out.display()));
            output.print(&format!("runner check {file}\nrunner run {file}"));
            OK
        }
        Err(e) if e.kind() == ErrorKind::AlreadyExists => taken(output),
        Err(e) => {
            let message = format!("cannot write `{}`: {}", out.display(), plain_io_error(&e));
            refuse(Diagnostic::error("results", message), output);
            match e.kind() {
                ErrorKind::NotFound | ErrorKind::PermissionDenied => WRONG,
                _ => FAILED,
            }
        }
    }
}

/// The data's name with another extension, in this folder.
fn default_out(args: &InitArgs) -> PathBuf {
    let Some(data) = &args.data else {
        return "iris.toml".into();
    };
    // `.` and `..` have no name of their own.
    let whole = fs::canonicalize(data).unwrap_or_else(|_| data.clone());
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
