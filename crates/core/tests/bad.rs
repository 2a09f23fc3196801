//! Every file of `tests/bad/<rule>/` is refused, with exactly the message in the `.stderr` file next to it. Each file
//! is a separate test, `bad::<rule>::<name>`; the rule is the code of its first error. The files that they extend and
//! read are in `tests/files`, which their paths are relative to.
//!
//! `INSTA_UPDATE=always` writes the messages instead, as it does for all other snapshots.

#![allow(clippy::disallowed_methods, reason = "tests read what is beside them")]

#[path = "../../../tests/suite/planning.rs"]
mod planning;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use runner_core::diagnostic::Severity;
use similar::TextDiff;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root =
        fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).expect("the checkout");
    let updates = std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always");
    let trials = cases(&root.join("tests/bad"))
        .into_iter()
        .map(|(rule, name)| {
            let root = root.clone();
            let title = format!("bad::{rule}::{name}");
            let case = Case { root, rule, name };
            Trial::test(title, move || case.refused(updates))
        });
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}

/// The rules and names of all files. One that is neither `.toml` nor `.stderr`, or not in the folder of a rule, keeps its
/// whole name, so that its test fails.
fn cases(bad: &Path) -> BTreeSet<(String, String)> {
    let mut cases = BTreeSet::new();
    for folder in entries(bad) {
        let rule = text_of(folder.file_name());
        if !folder.is_dir() {
            cases.insert((String::new(), rule));
            continue;
        }
        for path in entries(&folder) {
            let is_known = matches!(path.extension(), Some(e) if e == "toml" || e == "stderr");
            let name = if is_known {
                path.file_stem()
            } else {
                path.file_name()
            };
            cases.insert((rule.clone(), text_of(name)));
        }
    }
    cases
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is readable");
    let entries = entries.map(|entry| entry.expect("an entry").path());
    entries.collect()
}

fn text_of(part: Option<&OsStr>) -> String {
    part.expect("a name").to_string_lossy().into_owned()
}

/// A wrong file.
struct Case {
    root: PathBuf,
    rule: String,
    name: String,
}

impl Case {
    fn refused(&self, updates: bool) -> Result<(), Failed> {
        let Self { root, rule, name } = self;
        let folder = root.join("tests/bad").join(rule);
        let path = |extension: &str| folder.join(format!("{name}.{extension}"));
        let Ok(text) = fs::read_to_string(path("toml")) else {
            let shown = path("toml").display().to_string();
            return Err(
                format!("there is no {shown}: add it, or remove what is left of it").into(),
            );
        };
        let (plan, diagnostics, sources) = planning::planned(
            Some(&root.join("tests/files")),
            &format!("{name}.toml"),
            &text,
            &mut runner_core::plan::init::no_files,
        );
        let is_error = |severity: Severity| severity == Severity::Error;
        let first = diagnostics.0.iter().find(|d| is_error(d.severity));
        let (None, Some(first)) = (plan, first) else {
            return Err("the file is accepted".into());
        };
        if first.code != rule {
            let code = first.code;
            return Err(format!(
                "its first error is `{code}`: move both files to tests/bad/{code}/"
            )
            .into());
        }
        // The cache may be within the checkout.
        let message = diagnostics.render(&sources, false);
        let message = message.replace(&planning::cache().display().to_string(), "[CACHE]");
        let message = message.replace(&root.display().to_string(), "[ROOT]");
        let message = format!("{}\n", message.trim_end());
        let expected = fs::read_to_string(path("stderr")).unwrap_or_default();
        if message == expected {
            return Ok(());
        }
        if updates {
            fs::write(path("stderr"), message)?;
            return Ok(());
        }
        let diff = TextDiff::from_lines(&expected, &message);
        let diff = diff
            .unified_diff()
            .header("expected", "reported")
            .to_string();
        Err(format!("{diff}\nIf that is right, write it with INSTA_UPDATE=always").into())
    }
}
