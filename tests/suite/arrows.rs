//! The table of crates and modules in `ARCHITECTURE.md`: which module may use which within a crate. The compiler
//! enforces the dependencies between crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::support::root;

/// A row of the table.
struct Module {
    folder: PathBuf,
    name: String,
    may_use: BTreeSet<String>,
}

/// The rows that name a module.
fn table() -> Vec<Module> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|line| {
        let cells: Vec<_> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [place, module, _, may_use] = cells[..] else {
            return None;
        };
        Some((quoted(place).pop()?, quoted(module).pop()?, quoted(may_use)))
    });
    let modules = cells.map(|(place, name, may_use)| Module {
        folder: match place.as_str() {
            "burn-runner" => root().join("src"),
            place => root().join(place).join("src"),
        },
        name,
        may_use: may_use.into_iter().collect(),
    });
    modules.collect()
}

/// The words between backticks.
fn quoted(cell: &str) -> Vec<String> {
    cell.split('`')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn sources(path: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => sources(&path, found),
            path if path.extension().is_some_and(|e| e == "rs") => found.push(path),
            _ => {}
        }
    }
}

/// The modules of its own crate that a source names, comments aside.
fn used(text: &str) -> BTreeSet<String> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.collect::<Vec<_>>().join("\n");
    let mut used = BTreeSet::new();
    for part in code.split("crate::").skip(1) {
        let group = part
            .strip_prefix('{')
            .and_then(|group| group.split('}').next());
        for name in group
            .unwrap_or(part)
            .split(if group.is_some() { ',' } else { '\0' })
        {
            let name = name.trim().chars();
            used.insert(
                name.take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect(),
            );
        }
    }
    used
}

/// A test that replaces a part that is no longer there would test the unchanged text.
#[test]
fn texts_are_edited_where_they_have_what_is_replaced() {
    let replaced = regex::Regex::new(r#"\.replacen?\(\s*""#).unwrap();
    let mut files = Vec::new();
    sources(&root().join("tests/suite"), &mut files);
    files.push(root().join("src/train/tests.rs"));
    assert!(files.len() > 50);
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let found = replaced.find(&text);
        let line = found.map(|found| 1 + text[..found.start()].matches('\n').count());
        assert_eq!(line, None, "use `edit` in {}", file.display());
    }
}

#[test]
fn arrows_point_one_way() {
    let table = table();
    let mut crates: BTreeMap<&Path, BTreeSet<&str>> = BTreeMap::new();
    for module in &table {
        crates
            .entry(&module.folder)
            .or_default()
            .insert(&module.name);
    }
    assert_eq!(crates.len(), 3, "core, report and the program have modules");
    let mut wrong = Vec::new();
    for (folder, modules) in &crates {
        let declared = fs::read_to_string(folder.join("lib.rs")).unwrap();
        let declared = declared
            .lines()
            .filter_map(|line| line.strip_prefix("pub mod "));
        let declared: BTreeSet<_> = declared.map(|name| name.trim_end_matches(';')).collect();
        assert_eq!(declared, *modules, "the modules of {}", folder.display());
    }
    for module in &table {
        let mut files = vec![module.folder.join(format!("{}.rs", module.name))];
        sources(&module.folder.join(&module.name), &mut files);
        for file in files.iter().filter(|file| file.exists()) {
            let text = fs::read_to_string(file).unwrap();
            for name in used(&text) {
                let is_module = crates[module.folder.as_path()].contains(name.as_str());
                if is_module && name != module.name && !module.may_use.contains(&name) {
                    let file = file.strip_prefix(root()).unwrap();
                    wrong.push(format!("{} uses crate::{name}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What programs can call shows how, in a form that compiles: functions of `ops` that take a sink.
#[test]
fn every_operation_has_an_example() {
    let operation =
        regex::Regex::new(r"(?m)((?:^///.*\n)*)^pub fn (\w+)[^{;]*&Sink<'_>[^{;]*\{").unwrap();
    let mut files = Vec::new();
    sources(&root().join("src/ops"), &mut files);
    let mut found = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for operation in operation.captures_iter(&text) {
            let (docs, name) = (&operation[1], &operation[2]);
            assert!(docs.contains("/// ```"), "`{name}` in {}", file.display());
            found.insert(name.to_owned());
        }
    }
    for name in ["run", "plan_with_data", "predict_to", "export_onnx"] {
        assert!(found.contains(name), "{found:?}");
    }
}
