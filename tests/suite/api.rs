//! The API that programs with own parts are written with, as a listing: a change to it shows as a difference.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

use super::support::root;

/// All Rust files below a folder, in order.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .flatten()
        .map(|it| it.path())
        .collect();
    entries.sort();
    let files = entries.into_iter().flat_map(|path| {
        if path.is_dir() {
            sources(&path)
        } else {
            vec![path]
        }
    });
    files
        .filter(|path| path.extension().is_some_and(|it| it == "rs"))
        .collect()
}

/// The names that `src/parts.rs` exports, with the source of the module that each is from; Burn's are Burn's.
fn exported() -> Vec<(String, String)> {
    let text = fs::read_to_string(root().join("src/parts.rs")).unwrap();
    let uses = Regex::new(r"pub use runner_(\w+)::([\w:]*?)::(?:\{([^}]*)\}|(\w+));").unwrap();
    let mut all = vec![("src/program".to_owned(), "Runner".to_owned())];
    for found in uses.captures_iter(&text) {
        let module = format!(
            "crates/{}/src/{}",
            &found[1],
            found[2].split("::").collect::<Vec<_>>().join("/")
        );
        let list = found.get(3).or(found.get(4)).unwrap().as_str();
        let names = list
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        all.extend(names.map(|name| (module.clone(), name.to_owned())));
    }
    all
}

/// The lines of a block that begins at `at`, up to the one that ends it.
fn block<'a>(lines: &[&'a str], at: usize) -> Vec<&'a str> {
    let indent = &lines[at][..lines[at].len() - lines[at].trim_start().len()];
    let end = format!("{indent}}}");
    let is_last = |line: &&str| {
        **line == *end
            || line.trim_end().ends_with(';') && line.starts_with(&format!("{indent}pub"))
    };
    let num = lines[at..]
        .iter()
        .position(is_last)
        .map_or(1, |num| num + 1);
    lines[at..at + num]
        .iter()
        .map(|line| line.strip_prefix(indent).unwrap_or(line))
        .collect()
}

/// A block without comments, attributes, bodies of functions and, if it is not a trait or an enum, private items.
fn public(block: &[&str]) -> String {
    let is_open = block[0].contains("trait ") || block[0].contains("enum ");
    let mut text = String::new();
    let mut lines = block.iter();
    while let Some(line) = lines.next() {
        let code = line.trim_start();
        if code.is_empty() || code.starts_with("//") || code.starts_with("#[") {
            continue;
        }
        let depth = line.len() - code.len();
        let is_item = depth == 4;
        if is_item && !is_open && !code.starts_with("pub ") {
            // A private field or constant may be a line; a function is a block.
            let is_function = code.contains("fn ");
            let ends = |line: &&&str| {
                let is_closed = line.starts_with("    ]") || line.starts_with("    )");
                **line == "    }" || !is_function && is_closed
            };
            if is_function || !code.ends_with([';', ',', '}']) {
                lines.by_ref().find(ends);
            }
            continue;
        }
        text.push_str(line);
        let is_function = code.contains("fn ") && depth == 4;
        if is_function {
            let mut last = *line;
            // The signature may have several lines.
            while !last.ends_with(['{', ';', '}']) {
                let Some(next) = lines.next() else { break };
                text.push(' ');
                text.push_str(next.trim());
                last = next;
            }
            if last.ends_with('{') {
                text.push_str(" .. }");
                lines.by_ref().find(|line| **line == "    }");
            }
        }
        text.push('\n');
    }
    text
}

/// The items of a name in a module: its declaration and its own functions.
fn listing(module: &str, name: &str) -> String {
    let declared = Regex::new(&format!(
        r"^\s*(pub (trait|struct|enum|type|fn) {name}\b|macro_rules! {name} )"
    ));
    let methods = Regex::new(&format!(r"^impl(<.*>)? {name}(<.*>)? \{{"));
    let (declared, methods) = (declared.unwrap(), methods.unwrap());
    let mut text = String::new();
    let folder = root().join(module);
    let own = folder.with_extension("rs");
    let below = if folder.is_dir() {
        sources(&folder)
    } else {
        Vec::new()
    };
    for file in own.is_file().then_some(own).into_iter().chain(below) {
        let whole = fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        let starts = (0..lines.len())
            .filter(|at| declared.is_match(lines[*at]) || methods.is_match(lines[*at]));
        for at in starts {
            let is_macro = lines[at].contains("macro_rules!");
            let found = if is_macro {
                vec![lines[at].trim_end_matches(" {")]
            } else {
                block(&lines, at)
            };
            text += &public(&found);
        }
    }
    assert!(!text.is_empty(), "there is no `{name}` in {module}");
    text
}

/// A change to the API breaks programs of others: it must be intended, and be listed in the changelog.
#[test]
fn the_api_of_own_parts_is_as_listed() {
    let mut listed: Vec<String> = Vec::new();
    for (module, name) in exported() {
        listed.push(listing(&module, &name));
    }
    assert!(listed.len() > 15, "{}", listed.len());
    insta::assert_snapshot!(listed.join("\n"));
}
