//! The layers of `ARCHITECTURE.md`: who may use whom.

use std::fs;
use std::path::{Path, PathBuf};

use super::support::root;

/// Each module of `src/` with the modules that it may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("diagnostic", &[]),
    ("spec", &["diagnostic"]),
    ("event", &["spec"]),
    ("data", &["diagnostic", "spec"]),
    ("init", &["spec", "data"]),
    ("check", &["diagnostic", "spec", "data"]),
    ("plan", &["diagnostic", "spec", "data", "check"]),
    ("record", &["event", "spec", "plan"]),
    ("dispatch", &["event", "spec", "plan"]),
    ("reproduce", &["event", "spec", "record", "statistics"]),
    ("parity", &["spec", "reproduce"]),
    ("statistics", &[]),
    (
        "train",
        &[
            "event",
            "spec",
            "data",
            "check",
            "plan",
            "record",
            "reproduce",
            "parity",
        ],
    ),
    (
        "diff",
        &["event", "spec", "plan", "record", "reproduce", "report"],
    ),
    ("export", &["event", "spec", "plan", "record", "report"]),
    ("report", &["event", "spec", "plan", "record", "statistics"]),
    ("console", &["event", "spec", "plan", "record", "report"]),
    ("serve", &["record", "report"]),
    (
        "cli",
        &[
            "diagnostic",
            "event",
            "spec",
            "data",
            "init",
            "check",
            "plan",
            "record",
            "dispatch",
            "reproduce",
            "parity",
            "train",
            "report",
            "diff",
            "export",
            "console",
            "serve",
        ],
    ),
];

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(path).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => sources(&path, found),
            path if path.extension().is_some_and(|e| e == "rs") => found.push(path),
            _ => {}
        }
    }
}

#[test]
fn arrows_point_one_way() {
    let src = root().join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let mut wrong = Vec::new();
    for file in files {
        let relative = file.strip_prefix(&src).unwrap();
        let module = relative
            .iter()
            .next()
            .unwrap()
            .to_str()
            .unwrap()
            .trim_end_matches(".rs");
        if module == "lib" || module == "main" {
            continue;
        }
        let (_, allowed) = MAY_USE
            .iter()
            .find(|(name, _)| *name == module)
            .unwrap_or_else(|| panic!("`{module}` is not in the table"));
        let text = fs::read_to_string(&file).unwrap();
        let code: String = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect::<Vec<_>>()
            .join("\n");
        for part in code.split("crate::").skip(1) {
            let used: Vec<&str> = match part.strip_prefix('{') {
                Some(group) => group
                    .split('}')
                    .next()
                    .unwrap()
                    .split(',')
                    .map(str::trim)
                    .collect(),
                None => vec![part],
            };
            for used in used {
                let used: String = used
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect();
                let is_module = MAY_USE.iter().any(|(name, _)| *name == used);
                if is_module && used != module && !allowed.contains(&used.as_str()) {
                    wrong.push(format!("{} uses crate::{used}", relative.display()));
                }
            }
        }
        if module != "train" && (code.contains("burn::") || code.contains("use burn")) {
            wrong.push(format!("{} names burn", relative.display()));
        }
        if !["cli", "train"].contains(&module) && code.contains("env::var") {
            wrong.push(format!(
                "{} reads an environment variable",
                relative.display()
            ));
        }
        if !["spec"].contains(&module) && code.contains("HashMap") {
            wrong.push(format!("{} has a HashMap", relative.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
