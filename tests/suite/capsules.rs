//! Capsules: what is packed is restored unchanged, and foreign archives are refused.

mod hostile;
mod in_memory;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use burn_runner::data;
use burn_runner::record::RunFolder;
use burn_runner::record::capsule::{Capsule, MAX_BYTES, Needs, unpack};

use super::edit::Edit;
use super::support::{IRIS, completed, folder_with, mnist, root, run, tree};

const MODEL: &str = r#"
[model]
type = "mlp"
hidden = [8]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 2
batch_size = 8
"#;

/// Bundles a run of `results/spec` and returns the messages.
fn bundle(folder: &Path, id: &str, arguments: &[&str]) -> String {
    let run_folder = format!("results/spec/runs/{id}");
    let bundle = ["bundle", run_folder.as_str(), "--out", "a.capsule.tar.zst"];
    let (code, stdout, stderr) = run(folder, &[&bundle, arguments].concat());
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(stdout, "a.capsule.tar.zst\n");
    stderr
}

fn unpacked(folder: &Path) -> Capsule {
    let into = folder.join("elsewhere/deep");
    let capsule = unpack(&folder.join("a.capsule.tar.zst"), &into, Some(MAX_BYTES)).unwrap();
    // The unpacked files, and nothing else.
    assert_eq!(fs::read_dir(folder.join("elsewhere")).unwrap().count(), 1);
    capsule
}

/// Every file below a folder with its content.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = tree(folder).into_iter();
    names
        .map(|name| {
            let bytes = fs::read(folder.join(&name)).unwrap();
            (name, bytes)
        })
        .collect()
}

/// A run is bundled and unpacked, and is then unchanged; its data is loaded from the unpacked files, with the digests
/// of the original run.
fn goes_around(folder: &Path, id: &str, arguments: &[&str]) -> Capsule {
    bundle(folder, id, arguments);
    let capsule = unpacked(folder);
    let mut before = contents(&folder.join("results/spec/runs").join(id));
    before.retain(|name, _| {
        let is_left_out = name.starts_with("checkpoints/") || name == "run.log";
        !is_left_out && !name.starts_with('.')
    });
    let after = contents(&capsule.folder.0);
    assert_eq!(
        before.keys().collect::<Vec<_>>(),
        after.keys().collect::<Vec<_>>()
    );
    for (name, bytes) in &before {
        if !["run.toml", "environment.json"].contains(&name.as_str()) {
            assert!(*bytes == after[name], "{name}");
        }
    }
    let [then, now] = [&before, &after].map(|files| text(&files["environment.json"]));
    let host = format!("\"host\": {:?}", burn_runner::record::Holder::here().host);
    // The seal matches the current content.
    let unsealed = |text: &str| {
        let lines = text.lines().filter(|line| !line.contains("\"seal\""));
        lines.collect::<Vec<_>>().join("\n")
    };
    let then = then.replace(&host, "\"host\": \"\"");
    assert_eq!(unsealed(&then), unsealed(&now));
    assert!(capsule.folder.read_environment().unwrap().is_some());
    names_nobody(&after, folder);
    let original = RunFolder(folder.join("results/spec/runs").join(id));
    let original = original.read_plan().unwrap().unwrap();
    // The same work in another place.
    assert_eq!(capsule.plan.clone().with_fingerprint(), capsule.plan);
    assert_eq!(capsule.plan.fingerprint, original.fingerprint);
    let loaded = data::load(&capsule.plan.data, &|_, _| {}).unwrap();
    assert_eq!(loaded.digests, capsule.manifest.data.split_digests);
    capsule
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A capsule does not reveal where or on which machine its run was trained.
fn names_nobody(files: &BTreeMap<String, Vec<u8>>, folder: &Path) {
    let home = std::env::var("HOME").unwrap_or_default();
    let host = format!("\"{}\"", burn_runner::record::Holder::here().host);
    for (name, bytes) in files.iter().filter(|(name, _)| !name.ends_with(".bpk")) {
        let text = text(bytes);
        for named in [folder.to_str().unwrap(), &format!("{home}/"), &host] {
            assert!(!text.contains(named), "`{name}` has {named}");
        }
    }
}

fn spec(data: &str) -> String {
    format!("[data]\n{data}\n{MODEL}")
}

/// The same with a network that predicts a class for each pixel.
fn segmentation(data: &str) -> String {
    spec(data).edit(
        "type = \"mlp\"\nhidden = [8]",
        "layers = [{ type = \"conv2d\", kernel_size = 3, padding = \"same\" }]",
    )
}

fn trained(folder: &Path) {
    let (code, _, stderr) = run(folder, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn data_inside_the_binary_needs_nothing() {
    let folder = completed(IRIS, &[]);
    // The trace of a run is included; partial files are not.
    let trace = folder.path().join("results/spec/runs/base-s1/trace/deep");
    fs::create_dir_all(&trace).unwrap();
    fs::write(trace.join("steps.csv"), "step\n").unwrap();
    fs::write(trace.join("steps.bin"), [0; 3000]).unwrap();
    let capsule = goes_around(folder.path(), "base-s1", &[]);
    assert_eq!(capsule.manifest.data.needs, Needs::Nothing);
    assert_eq!(capsule.manifest.outcome, "completed");
    assert_eq!(capsule.siblings, []);
    let paths = capsule.manifest.files.iter().map(|f| f.path.as_str());
    insta::assert_snapshot!(paths.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_table_goes_along_and_is_found_where_it_is_then() {
    let table = root().join("experiments/data/iris.csv");
    let data = "type = \"csv\"\npath = \"rows.csv\"\ntarget = \"species\"";
    let folder = folder_with(&spec(data));
    fs::copy(table, folder.path().join("rows.csv")).unwrap();
    trained(folder.path());
    let words = bundle(folder.path(), "base-s1", &[]);
    insta::assert_snapshot!(sizes_hidden(&words));
    fs::remove_file(folder.path().join("a.capsule.tar.zst")).unwrap();
    let capsule = goes_around(folder.path(), "base-s1", &[]);
    assert_eq!(capsule.manifest.data.needs, Needs::Packed);
    let roots = capsule.plan.data.roots();
    let place = fs::canonicalize(folder.path()).unwrap();
    let place = place.join("elsewhere/deep");
    assert_eq!(roots[0].path, place.join("data/path/1/rows.csv"));
    assert!(place.join("cache").is_dir(), "decoded beside the run");
}

#[test]
fn arrays_and_their_targets_go_along() {
    let inputs = root().join("experiments/data");
    let data = "type = \"npy\"\npath = \"x.npy\"\ntarget_path = \"y.npy\"";
    let folder = folder_with(&spec(data));
    fs::copy(inputs.join("iris_x.npy"), folder.path().join("x.npy")).unwrap();
    fs::copy(inputs.join("iris_y.npy"), folder.path().join("y.npy")).unwrap();
    trained(folder.path());
    let capsule = goes_around(folder.path(), "base-s1", &[]);
    let packed = capsule.manifest.data.roots.iter();
    let packed: Vec<_> = packed.map(|r| r.packed.as_deref().unwrap()).collect();
    assert_eq!(packed, ["data/path/1/x.npy", "data/target_path/1/y.npy"]);
}

/// Images of two classes; with `masks`, a mask for each instead, in a folder among them.
fn pictures(folder: &Path, masks: bool) {
    for at in 0..24_u8 {
        let class = if at % 2 == 0 { "dark sky" } else { "über" };
        let (inner, light) = if masks {
            ("pictures".to_owned(), at)
        } else {
            (format!("pictures/{class}"), 100 * (at % 2) + at)
        };
        fs::create_dir_all(folder.join(&inner)).unwrap();
        let picture =
            image::GrayImage::from_fn(6, 6, |x, y| image::Luma([light + (x * 7 + y) as u8]));
        // A name that does not fit the header of an archive.
        let name = format!("{at:03}-{}.png", "long".repeat(24));
        picture.save(folder.join(&inner).join(&name)).unwrap();
        if masks {
            fs::create_dir_all(folder.join("pictures/masks")).unwrap();
            let mask = image::GrayImage::from_fn(6, 6, |x, _| image::Luma([u8::from(x > 2)]));
            mask.save(folder.join("pictures/masks").join(&name))
                .unwrap();
        }
    }
    fs::write(folder.join("pictures/readme.txt"), "taken at sea").unwrap();
}

#[test]
fn pictures_keep_their_classes() {
    let folder = folder_with(&spec("type = \"image_folder\"\npath = \"pictures\""));
    pictures(folder.path(), false);
    trained(folder.path());
    let capsule = goes_around(folder.path(), "base-s1", &["--data", "always"]);
    assert_eq!(capsule.manifest.data.size().0, 25);
}

#[test]
fn masks_among_pictures_stay_there() {
    let data = "type = \"image_folder\"\npath = \"pictures\"\ntarget_path = \"pictures/masks\"";
    let folder = folder_with(&segmentation(data));
    pictures(folder.path(), true);
    trained(folder.path());
    let capsule = goes_around(folder.path(), "base-s1", &[]);
    let packed = capsule.manifest.data.roots.iter();
    let packed: Vec<_> = packed.map(|r| r.packed.as_deref().unwrap()).collect();
    assert_eq!(packed, ["data/path/1", "data/path/1/masks"]);
}

#[test]
fn mnist_goes_along() {
    let Some(files) = mnist() else { return };
    let data = "type = \"mnist\"\nroot = \"digits\"\npart = \"test\"";
    let text = spec(data).edit("batch_size = 8", "batch_size = 256");
    let folder = folder_with(&text.edit("epochs = 2", "epochs = 1"));
    let digits = folder.path().join("digits");
    fs::create_dir(&digits).unwrap();
    for name in ["t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"] {
        fs::copy(files.join(name), digits.join(name)).unwrap();
    }
    trained(folder.path());
    let capsule = goes_around(folder.path(), "base-s1", &[]);
    assert_eq!(capsule.manifest.data.needs, Needs::Packed);
    assert_eq!(capsule.manifest.data.roots[0].key, "folder");
    // Not packed: the recipient learns what is needed, and the plan stays unchanged.
    fs::remove_dir_all(folder.path().join("elsewhere")).unwrap();
    let small = ["--max-data", "1MiB", "--force"];
    let words = bundle(folder.path(), "base-s1", &small);
    assert!(words.contains("is not included"), "{words}");
    let capsule = unpacked(folder.path());
    assert_eq!(capsule.manifest.data.needs, Needs::Files);
    assert_eq!(capsule.manifest.data.roots[0].files.len(), 2);
    let digits = fs::canonicalize(digits).unwrap();
    assert_eq!(capsule.plan.data.roots()[0].path, digits);
    // Other labels in a file that is found before the original one.
    let labels = [&[0, 0, 8, 1], &10_000_u32.to_be_bytes()[..], &[7; 10_000]].concat();
    fs::write(digits.join("t10k-labels-idx1-ubyte"), labels).unwrap();
    let arguments = ["bundle", "results/spec/runs/base-s1"];
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("the 2 files of the data changed"),
        "{stderr}"
    );
}

#[test]
fn other_seeds_of_the_trial_go_along_as_numbers() {
    let sweep = IRIS.edit("epochs = 3", "epochs = 1")
        + "[experiment]\nseeds = [1, 2, 11]\n[sweep.grid]\nmodel.dropout = [0.0, 0.1]\n";
    let folder = completed(&sweep, &[]);
    let words = bundle(folder.path(), "dropout=0.1-s2", &[]);
    assert!(words.contains("2 other seeds"), "{words}");
    let capsule = unpacked(folder.path());
    let seeds: Vec<_> = capsule.siblings.iter().map(|s| s.seed).collect();
    assert_eq!(seeds, [1, 11]);
    for sibling in &capsule.siblings {
        let summary = super::support::summary(folder.path(), &sibling.run);
        let metrics = serde_json::to_value(&sibling.metrics).unwrap();
        assert_eq!(metrics, summary["metrics"]);
    }
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let data = "type = \"csv\"\npath = \"rows.csv\"\ntarget = \"species\"";
    let folder = folder_with(&spec(data));
    let rows = folder.path().join("rows.csv");
    let table = root().join("experiments/data/iris.csv");
    fs::copy(&table, &rows).unwrap();
    trained(folder.path());
    bundle(folder.path(), "base-s1", &[]);
    let first = fs::read(folder.path().join("a.capsule.tar.zst")).unwrap();
    // Other times and modes of the same files.
    fs::remove_file(&rows).unwrap();
    fs::copy(&table, &rows).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(&rows, fs::Permissions::from_mode(0o600)).unwrap();
    }
    bundle(folder.path(), "base-s1", &["--force"]);
    let second = fs::read(folder.path().join("a.capsule.tar.zst")).unwrap();
    assert!(first == second);
}

#[test]
fn edited_numbers_are_not_bundled() {
    let folder = completed(IRIS, &[]);
    let run_folder = "results/spec/runs/base-s1";
    for name in ["summary.json", "environment.json"] {
        let path = folder.path().join(run_folder).join(name);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replacen(':', ": ", 1)).unwrap();
        let (code, _, said) = run(folder.path(), &["bundle", run_folder]);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(name), "{said}");
        fs::write(&path, text).unwrap();
    }
    assert_eq!(run(folder.path(), &["bundle", run_folder]).0, 0);
}

#[test]
fn what_cannot_be_bundled_is_refused() {
    let data = "type = \"csv\"\npath = \"rows.csv\"\ntarget = \"species\"";
    let folder = folder_with(&(spec(data) + "[experiment]\nseeds = [1, 2]\n"));
    let rows = folder.path().join("rows.csv");
    fs::copy(root().join("experiments/data/iris.csv"), &rows).unwrap();
    trained(folder.path());
    let text = fs::read_to_string(&rows).unwrap();
    let place = fs::canonicalize(folder.path()).unwrap();
    let place = place.display().to_string();
    let mut messages = String::new();
    let mut refused = |arguments: &[&str]| {
        let (code, stdout, stderr) = run(folder.path(), &[&["bundle"], arguments].concat());
        assert_eq!((code, stdout.as_str()), (2, ""), "{arguments:?}: {stderr}");
        let words = arguments.join(" ");
        messages += &format!("$ runner bundle {words}\n{stderr}\n").replace(&place, "[FOLDER]");
    };
    refused(&["nowhere"]);
    refused(&["spec.toml"]);
    refused(&["."]);
    refused(&["results"]);
    refused(&["results/spec"]);
    refused(&["results/spec/runs"]);
    let run_folder = "results/spec/runs/base-s1";
    refused(&[run_folder, "--out", "spec.toml"]);
    refused(&[run_folder, "--out", "results"]);
    refused(&[run_folder, "--out", "no/a.zst"]);
    refused(&[run_folder, "--max-data", "many"]);
    fs::write(&rows, text.edit("5.1", "5.2")).unwrap();
    refused(&[run_folder]);
    refused(&[run_folder, "--max-data", "1B"]);
    fs::remove_file(&rows).unwrap();
    refused(&[run_folder, "--data", "always"]);
    let lock = fs::File::open(folder.path().join(run_folder).join(".lock")).unwrap();
    lock.lock().unwrap();
    refused(&[run_folder]);
    drop(lock);
    insta::assert_snapshot!(messages);
    let words = bundle(folder.path(), "base-s1", &["--data", "never"]);
    insta::assert_snapshot!(
        "without_data_that_is_gone",
        sizes_hidden(&words).replace(&place, "[FOLDER]")
    );
    assert!(!PathBuf::from("no").exists());
}

#[test]
#[cfg(unix)]
fn pictures_that_a_capsule_cannot_hold_are_refused() {
    let folder = folder_with(&spec("type = \"image_folder\"\npath = \"pictures\""));
    pictures(folder.path(), false);
    let place = fs::canonicalize(folder.path()).unwrap();
    let dark = place.join("pictures/dark sky");
    let some = fs::read_dir(&dark).unwrap().next().unwrap().unwrap();
    fs::copy(some.path(), dark.join("12:30.png")).unwrap();
    let refused = || {
        trained(folder.path());
        let arguments = ["bundle", "results/spec/runs/base-s1"];
        let (code, _, stderr) = run(folder.path(), &arguments);
        assert_eq!(code, 2, "{stderr}");
        fs::remove_dir_all(folder.path().join("results")).unwrap();
        stderr.replace(&place.display().to_string(), "[FOLDER]")
    };
    let odd = refused();
    let shown = |text: String| text.replace(&place.display().to_string(), "[FOLDER]");
    // The folder of masks among the images is a link: a copy of it would be a second folder.
    let data = "type = \"image_folder\"\npath = \"pictures\"\ntarget_path = \"masks\"";
    fs::remove_dir_all(folder.path().join("pictures")).unwrap();
    fs::write(folder.path().join("spec.toml"), segmentation(data)).unwrap();
    pictures(folder.path(), true);
    fs::rename(place.join("pictures/masks"), place.join("masks")).unwrap();
    std::os::unix::fs::symlink(place.join("masks"), place.join("pictures/masks")).unwrap();
    insta::assert_snapshot!(odd + &shown(refused()));
}

#[test]
#[cfg(unix)]
fn pictures_behind_links_go_along_as_plain_folders() {
    let folder = folder_with(&spec("type = \"image_folder\"\npath = \"linked\""));
    pictures(folder.path(), false);
    let place = fs::canonicalize(folder.path()).unwrap();
    fs::create_dir(place.join("linked")).unwrap();
    for class in ["dark sky", "über"] {
        let from = place.join("pictures").join(class);
        std::os::unix::fs::symlink(from, place.join("linked").join(class)).unwrap();
    }
    trained(folder.path());
    let capsule = goes_around(folder.path(), "base-s1", &["--data", "always"]);
    assert_eq!(capsule.manifest.data.size().0, 24);
    let class = capsule.plan.data.roots()[0].path.join("dark sky");
    assert!(!class.is_symlink() && class.is_dir());
}

#[test]
fn a_run_that_failed_is_worth_a_bundle_too() {
    let folder = folder_with(IRIS);
    let arguments = ["run", "spec.toml", "--quiet", "--inject-fault", "*@2"];
    let (code, _, stderr) = run(folder.path(), &arguments);
    assert_eq!(code, 1, "{stderr}");
    let words = bundle(folder.path(), "base-s1", &[]);
    assert!(words.contains("the run failed (panic)"), "{words}");
    let capsule = unpacked(folder.path());
    assert_eq!(capsule.manifest.outcome, "failed");
}

#[test]
fn the_default_name_and_the_answer_for_tools() {
    let folder = completed(IRIS, &[]);
    let run_folder = "results/spec/runs/base-s1";
    let (code, stdout, stderr) = run(folder.path(), &["bundle", run_folder, "--json"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    let answer: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(answer["capsule"], "spec-base-s1.capsule.tar.zst");
    assert_eq!(answer["data"]["needs"], "nothing");
    let capsule = folder.path().join("spec-base-s1.capsule.tar.zst");
    assert_eq!(answer["bytes"], fs::metadata(capsule).unwrap().len());
}

/// Sizes depend on weights, clocks and machines; their digits become zeros.
fn sizes_hidden(words: &str) -> String {
    let size = regex::Regex::new(r"\d+(\.\d)? (B|KiB|MiB)").unwrap();
    size.replace_all(words, "[SIZE]").into_owned()
}
