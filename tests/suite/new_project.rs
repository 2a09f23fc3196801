//! `runner new-project`: what it writes, and what it refuses. `.ci/new-project` builds and runs such a project.

use std::fs;
use std::path::Path;

use super::support::{root, run, tree};

#[test]
fn a_project_is_the_example_under_another_name() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // An empty folder is as good as none.
    fs::create_dir(folder.join("my-parts")).unwrap();
    let runner = root().to_str().unwrap();
    let (code, files, said) = run(folder, &["new-project", "my-parts", "--runner", runner]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("cargo run --release -- run layer.toml"),
        "{said}"
    );
    for file in files.lines() {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        assert!(!text.contains("own-parts"), "{file}");
    }
    let manifest = fs::read_to_string(folder.join("my-parts/Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&manifest).unwrap();
    assert_eq!(manifest["package"]["name"].as_str(), Some("my-parts"));
    let path = manifest["dependencies"]["burn-runner"]["path"]
        .as_str()
        .unwrap();
    assert_eq!(
        fs::canonicalize(path).unwrap(),
        fs::canonicalize(root()).unwrap()
    );
    let lock = |path: &Path| fs::read(path.join("Cargo.lock")).unwrap();
    assert!(lock(&folder.join("my-parts")) == lock(root()));
    // The experiments are those of the example, for parts that this program does not have.
    let (code, _, said) = run(&folder.join("my-parts"), &["check", "layer.toml"]);
    assert!(code == 2 && said.contains("low_rank"), "{said}");

    let url = "https://example.org/\"runner\".git";
    let more = ["--runner", url, "--name", "other"];
    let (code, _, said) = run(folder, &[&["new-project", "in git"], &more[..]].concat());
    assert_eq!(code, 0, "{said}");
    let manifest = fs::read_to_string(folder.join("in git/Cargo.toml")).unwrap();
    let manifest: toml::Table = toml::from_str(&manifest).unwrap();
    assert_eq!(manifest["package"]["name"].as_str(), Some("other"));
    assert_eq!(
        manifest["dependencies"]["burn-runner"]["git"].as_str(),
        Some(url)
    );
}

#[test]
fn projects_that_cannot_be_are_refused_and_write_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("mine")).unwrap();
    fs::write(folder.join("mine/notes.txt"), "mine").unwrap();
    fs::create_dir(folder.join("other")).unwrap();
    fs::write(
        folder.join("other/Cargo.toml"),
        "[package]\nname = \"other\"\n",
    )
    .unwrap();
    let before = tree(folder);
    let runner = root().to_str().unwrap();
    let cases: [(&[&str], &str); 14] = [
        (&["parts"], "not published on crates.io"),
        (&["mine", "--runner", runner], "`mine` contains `notes.txt`"),
        (&["no/parts", "--runner", runner], "there is no folder `no`"),
        (&["..", "--runner", runner], "is not the name of a folder"),
        (&["a b", "--runner", runner], "must not contain ' '"),
        (&["1st", "--runner", runner], "must begin with a letter"),
        (&["größe", "--runner", runner], "must not contain 'ö'"),
        (
            &["match", "--runner", runner],
            "means something else to Rust",
        ),
        (
            &["Test", "--runner", runner],
            "means something else to Rust",
        ),
        (
            &["burn", "--runner", runner],
            "means something else to Rust",
        ),
        (
            &["parts", "--runner", runner, "--name", ""],
            "1 to 64 characters",
        ),
        (&["parts", "--runner", "nowhere"], "cannot be read"),
        (
            &["parts", "--runner", "other"],
            "`other` is not a checkout of runner",
        ),
        (
            &["mine/notes.txt", "--runner", runner, "--name", "x"],
            "is not a folder",
        ),
    ];
    for (arguments, expected) in cases {
        let (code, printed, said) = run(folder, &[&["new-project"], arguments].concat());
        assert_eq!((code, printed.as_str()), (2, ""), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert_eq!(tree(folder), before, "{arguments:?}");
    }
}
