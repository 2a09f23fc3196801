//! Everything that people read is plain technical English: wording that reads as a translation does not come back.

#![allow(
    clippy::disallowed_methods,
    reason = "it reads the sources of this checkout"
)]

use std::fs;
use std::path::{Path, PathBuf};

use regex::{Regex, RegexBuilder, RegexSetBuilder};

/// Wording, and what to write instead.
const REPLACED: &[(&str, &str)] = &[
    (r"foret(ell|old)", "predict, predicted"),
    (r"\bpass(ed)? over( with| checkpoint|:|\.|,|$)", "skipped"),
    (
        r"\b(made|read|computed|begun|drawn) anew\b",
        "recomputed, re-read, restarted",
    ),
    (r"\bis made again\b", "is reproduced, is rebuilt"),
    (r"\bh(eld|old) against\b", "compared with"),
    (r"\bkernels of (ours|our own)\b", "runner's kernels"),
    (
        r"\bis no (part|name|number|file|folder|text|class|capsule|address|metric|device|key)\b( of| and|\.|,|:|;|$)",
        "is not a …",
    ),
    (r"\bnobody trains\b", "no runner is active"),
    (r"\bmend (it|them|the file)\b", "fix it"),
    (r"\blets? fall\b", "drops"),
    (r"\bbelieved in nothing\b", "is untrusted"),
    (r"\b(go|goes|went) on on\b", "continues on"),
    (r"\bdata of then\b", "the original data"),
    (r"\bwritten for people\b", "formatted"),
    (r"\b(on|in) the way back\b", "in the backward pass"),
    (r"\bstays? as drawn\b", "keep random values"),
    (r"\bpredicts? rightly\b", "predicts correctly"),
    (r"\bwhen not written\b", "when not set"),
    (r"\bmost likely stands for\b", "probably means"),
    (
        r"\bbehind one another\b|\bone behind the other\b",
        "one after the other",
    ),
];

const ENDINGS: &[&str] = &["rs", "md", "toml", "stderr", "snap", "html", "js", "py"];

#[test]
fn wording_of_a_translation_does_not_come_back() {
    let root =
        fs::canonicalize(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).expect("the checkout");
    let rules: Vec<(Regex, &str)> = REPLACED
        .iter()
        .map(|(pattern, instead)| {
            let pattern = RegexBuilder::new(pattern).case_insensitive(true).build();
            (pattern.expect("a valid pattern"), *instead)
        })
        .collect();
    // Most files match no rule, which a single pass without Unicode tables detects.
    let patterns = REPLACED.iter().map(|(pattern, _)| pattern);
    let any = RegexSetBuilder::new(patterns)
        .case_insensitive(true)
        .multi_line(true)
        .unicode(false)
        .build()
        .expect("valid patterns");
    let code = Regex::new("`[^`]*`").expect("a valid pattern");
    let mut found = Vec::new();
    let mut num_files = 0;
    for path in files(&root) {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        num_files += 1;
        if !any.is_match(&text) {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            let line = code.replace_all(line, "`…`");
            for (rule, instead) in &rules {
                if let Some(words) = rule.find(&line) {
                    let (place, words) =
                        (path.strip_prefix(&root).unwrap_or(&path), words.as_str());
                    found.push(format!(
                        "{}:{}: \"{words}\": write \"{instead}\"",
                        place.display(),
                        at + 1
                    ));
                }
            }
        }
    }
    assert!(num_files > 500, "only {num_files} files were read");
    assert!(
        found.is_empty(),
        "{} places:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// The text files of the checkout, except hidden ones, build outputs, results, and this file.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![root.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder").flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let is_output =
                folder == root && ["target", "results", "shared", "cache"].contains(&&*name);
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            if name.starts_with('.') || is_output || is_link {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if ENDINGS
                .iter()
                .any(|ending| path.extension().is_some_and(|e| e == *ending))
                && !path.ends_with("core/tests/words.rs")
            {
                files.push(path);
            }
        }
    }
    files
}
