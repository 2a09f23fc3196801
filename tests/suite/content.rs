//! The content of data is part of a run's identity: the same names with other content are different work, and the data
//! that is read is the planned data, or is refused.

use std::fs;
use std::path::{Path, PathBuf};

use burn_runner::data::{self, mnist};
use burn_runner::plan::RunPlan;
use burn_runner::spec::data::MnistPart;

use super::edit::Edit;
use super::support::{
    IRIS, completed, folder_with, idx, mnist as real_files, numbers, plan, plan_in, run,
};

const MNIST: &str = r#"
[data]
type = "mnist"
root = "a"
part = "test"
download = false

[model]
type = "mlp"
hidden = [8]

[optimizer]
type = "adam"
learning_rate = 1e-3

[train]
epochs = 1
batch_size = 8
"#;

const IMAGES: &str = "t10k-images-idx3-ubyte";
const LABELS: &str = "t10k-labels-idx1-ubyte";

/// The files of 40 items under the published names, whose pixels begin with `first`.
fn write_mnist(folder: &Path, first: u8, zipped: bool) {
    fs::create_dir_all(folder).unwrap();
    let pixels = (0..40 * 784).map(|at| (at % 251) as u8 ^ first);
    let images = idx::file(3, &[40, 28, 28], pixels);
    let labels = idx::file(1, &[40], (0..40).map(|at| at % 10));
    for (name, bytes) in [(IMAGES, images), (LABELS, labels)] {
        if zipped {
            fs::write(folder.join(format!("{name}.gz")), idx::zipped(&bytes)).unwrap();
        } else {
            fs::write(folder.join(name), bytes).unwrap();
        }
    }
}

/// The first run of a file in a folder.
fn first(folder: &Path, text: &str) -> RunPlan {
    let planned = plan_in(Some(folder), "spec.toml", text);
    let (plan, _) = planned.unwrap_or_else(|refused| panic!("{refused}"));
    plan.runs.into_iter().next().unwrap()
}

#[test]
fn files_of_the_same_names_and_other_content_are_other_work() {
    let folder = folder_with(MNIST);
    write_mnist(&folder.path().join("a"), 0, false);
    write_mnist(&folder.path().join("b"), 7, false);
    write_mnist(&folder.path().join("a zipped"), 0, true);
    let trained = |root: &str| {
        let edit = format!("data.root={root}");
        let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--set", &edit]);
        assert_eq!(code, 0, "{stderr}");
        (stderr, numbers(folder.path()))
    };
    let (_, of_a) = trained("a");
    let (words, of_b) = trained("b");
    assert!(!words.contains("already completed"), "{words}");
    assert!(words.contains("`data.digest` was"), "{words}");
    assert_ne!(of_a, of_b);
    assert!(folder.path().join("results/spec/replaced").is_dir());
    let (words, _) = trained("b");
    assert!(words.contains("1 already completed"), "{words}");
    // The same content, packed and elsewhere, is the same work.
    let (_, again) = trained("a zipped");
    assert_eq!(again, of_a);
    let (words, _) = trained("a");
    assert!(words.contains("1 already completed"), "{words}");
}

#[test]
fn files_to_be_downloaded_are_taken_to_hold_what_is_published() {
    let text = MNIST
        .edit("root = \"a\"\n", "")
        .edit("download = false", "");
    let nowhere = tempfile::tempdir().unwrap();
    for (name, part) in [
        ("all", MnistPart::All),
        ("train", MnistPart::Train),
        ("test", MnistPart::Test),
    ] {
        let text = text.edit("\"test\"", &format!("{name:?}"));
        let planned = first(nowhere.path(), &text);
        assert_eq!(planned.data.digest, mnist::published_digest(part));
    }
    let Some(files) = real_files() else { return };
    let text = MNIST.edit("\"a\"", &format!("{:?}", files.display().to_string()));
    let planned = first(nowhere.path(), &text);
    assert_eq!(
        planned.data.digest,
        mnist::published_digest(MnistPart::Test)
    );
}

#[test]
fn what_changed_after_it_was_planned_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("a");
    write_mnist(&root, 0, false);
    let of_files = first(folder.path(), MNIST);
    assert!(data::load(&of_files.data, &|_, _| {}).is_ok());
    write_mnist(&root, 1, false);
    let refused = data::load(&of_files.data, &|_, _| {}).unwrap_err();
    assert!(
        refused
            .message
            .contains("changed since the experiment was planned"),
        "{refused}"
    );
    // Embedded or generated data, planned by another build.
    let inside = ["type = \"iris\"", "type = \"digits\"", "type = \"blobs\""];
    for source in inside {
        let text = IRIS.edit("type = \"iris\"", source);
        let (plan, _) = plan("spec.toml", &text).unwrap();
        let mut data = plan.runs[0].data.clone();
        assert!(data::load(&data, &|_, _| {}).is_ok());
        data.digest.replace_range(..1, "x");
        let refused = data::load(&data, &|_, _| {}).unwrap_err();
        assert!(
            refused.message.contains("a different data set"),
            "{refused}"
        );
        // Plans of earlier versions do not contain it.
        data.digest.clear();
        assert!(data::load(&data, &|_, _| {}).is_ok());
    }
}

#[test]
fn runs_of_earlier_versions_are_not_called_edited() {
    let group = "[[optimizer.groups]]\nparameters = \"*.bias\"\nfreeze = true\n";
    let (plan, _) = plan("spec.toml", &format!("{IRIS}{group}")).unwrap();
    let run = plan.runs[0].clone();
    assert!(run.is_as_fingerprinted());
    // As written by the previous version.
    let mut former = run.clone();
    former.format = 2;
    former.data.digest.clear();
    former.fingerprint = "ab2ec43bea05f7e5".into();
    let text = toml::to_string(&former).unwrap();
    assert!(!text.contains("digest"), "{text}");
    let read: RunPlan = toml::from_str(&text).unwrap();
    assert!(
        read.is_as_fingerprinted(),
        "{}",
        read.clone().with_fingerprint().fingerprint
    );
    let edited = RunPlan { seed: 9, ..read };
    assert!(!edited.is_as_fingerprinted());
    let shorter = RunPlan {
        steps_per_epoch: 2,
        ..run
    };
    assert!(!shorter.is_as_fingerprinted());
}

/// A folder of images of two classes, as links to the class folders of another folder.
#[cfg(unix)]
fn links_to(folder: &Path, pictures: &Path, classes: [&str; 2]) {
    fs::create_dir_all(folder).unwrap();
    for class in classes {
        std::os::unix::fs::symlink(pictures.join(class), folder.join(class)).unwrap();
    }
}

fn write_pictures(folder: &Path, classes: [&str; 2], light: u8) {
    for (number, class) in classes.iter().enumerate() {
        for at in 0..12_u8 {
            let path = folder.join(class).join(format!("{at}.png"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let fill = light + 40 * number as u8 + at;
            image::GrayImage::from_pixel(6, 6, image::Luma([fill]))
                .save(path)
                .unwrap();
        }
    }
}

#[test]
#[cfg(unix)]
fn pictures_behind_links_are_part_of_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    write_pictures(&at("cats"), ["cat", "dog"], 0);
    write_pictures(&at("cars"), ["car", "bus"], 100);
    links_to(&at("first"), &at("cats"), ["cat", "dog"]);
    links_to(&at("second"), &at("cars"), ["car", "bus"]);
    let text = |of: &str| {
        IRIS.edit(
            "type = \"iris\"",
            &format!("type = \"image_folder\"\npath = {of:?}"),
        )
        .edit("batch_size = 16", "batch_size = 4")
    };
    let of = |name: &str| first(folder.path(), &text(name));
    let [one, other] = [of("first"), of("second")];
    assert_ne!(one.data.digest, other.data.digest);
    assert_ne!(one.fingerprint, other.fingerprint);
    let loaded = |run: &RunPlan| data::load(&run.data, &|_, _| {}).unwrap().digests;
    assert_ne!(loaded(&one), loaded(&other));
    // The same images in plain folders are the same work.
    assert_eq!(of("cats").fingerprint, one.fingerprint);
    assert_eq!(loaded(&of("cats")), loaded(&one));
    // Additions, replacements and removals behind a link are noticed.
    let picture = at("cats/dog/0.png");
    fs::copy(at("cars/car/3.png"), &picture).unwrap();
    let replaced = of("first");
    assert_ne!(replaced.fingerprint, one.fingerprint);
    fs::remove_file(&picture).unwrap();
    assert!(
        ![&one, &replaced]
            .map(|run| &run.fingerprint)
            .contains(&&of("first").fingerprint)
    );
    // A link to a folder that contains it is refused without waiting.
    std::os::unix::fs::symlink(at("first"), at("cats/dog/around")).unwrap();
    let refused = plan_in(Some(folder.path()), "spec.toml", &text("first")).unwrap_err();
    assert!(
        refused.contains("is a link to a folder that contains it"),
        "{refused}"
    );
    // One to nothing would be an item, also where the others were read before.
    fs::remove_file(at("cats/dog/around")).unwrap();
    std::os::unix::fs::symlink("nowhere.png", at("cats/dog/lost.png")).unwrap();
    let refused = plan_in(Some(folder.path()), "spec.toml", &text("first")).unwrap_err();
    assert!(refused.contains("lost.png` cannot be read"), "{refused}");
}

/// The decoded files of a folder's cache.
fn cached(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("cache/burn-runner/data"))
        .unwrap()
        .flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "records")
    });
    files.sort();
    files
}

const ROWS: &str = r#"
[data]
type = "csv"
path = "rows.csv"
target = "kind"

[model]
type = "mlp"
hidden = [4]

[optimizer]
type = "adam"
learning_rate = 1e-2

[train]
epochs = 1
batch_size = 8
"#;

fn rows(shift: i32) -> String {
    let row = |at: i32| format!("{},{}\n", at * 37 % 60 + shift, ["x", "y"][at as usize % 2]);
    String::from("a,kind\n") + &(0..60).map(row).collect::<String>()
}

#[test]
fn a_damaged_file_of_the_cache_is_rebuilt_and_never_read() {
    let folder = folder_with(ROWS);
    fs::write(folder.path().join("rows.csv"), rows(0)).unwrap();
    let trained = || {
        let _ = fs::remove_dir_all(folder.path().join("results"));
        let (code, _, stderr) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 0, "{stderr}");
        (stderr, numbers(folder.path()))
    };
    let (words, before) = trained();
    assert!(!words.contains("cache"), "{words}");
    let files = cached(folder.path());
    let [file] = files.as_slice() else {
        panic!("{files:?}")
    };
    let whole = fs::read(file).unwrap();
    // Each record is a number of 8 bytes and the code of a category.
    let mut category = whole.clone();
    category[12 * 20 + 8] ^= 1;
    let mut number = whole.clone();
    number[12 * 20 + 7] ^= 0x40;
    let mut header = whole.clone();
    let at = header
        .windows(5)
        .position(|text| text == b"\"min\"")
        .unwrap();
    header[at + 6] ^= 1;
    for damaged in [category, number, header, whole[1..].to_vec(), Vec::new()] {
        fs::write(file, &damaged).unwrap();
        let (code, _, words) = run(folder.path(), &["check", "spec.toml"]);
        assert_eq!(code, 0, "{words}");
        assert!(words.contains("is rebuilt from the data"), "{words}");
        assert!(fs::read(file).unwrap() == whole);
        fs::write(file, &damaged).unwrap();
        let (_, now) = trained();
        assert_eq!(now, before);
        assert!(fs::read(file).unwrap() == whole);
    }
    // A valid file of other data under this one's name.
    fs::write(folder.path().join("rows.csv"), rows(1)).unwrap();
    let (words, of_other) = trained();
    assert!(!words.contains("rebuilt"), "{words}");
    let other = cached(folder.path())
        .into_iter()
        .find(|other| other != file)
        .unwrap();
    fs::copy(file, &other).unwrap();
    let (words, again) = trained();
    assert!(
        words.contains("its content does not match its name"),
        "{words}"
    );
    assert_eq!(again, of_other);
}

#[test]
fn the_digest_of_a_run_is_in_its_file_and_changes_with_the_build_of_its_data() {
    let folder = completed(IRIS, &[]);
    let text =
        fs::read_to_string(folder.path().join("results/spec/runs/base-s1/run.toml")).unwrap();
    let read: RunPlan = toml::from_str(&text).unwrap();
    assert_eq!(read.data.digest.len(), 64);
    let other = RunPlan {
        data: data::DataPlan {
            digest: "0".repeat(64),
            ..read.data.clone()
        },
        ..read.clone()
    };
    assert_ne!(other.with_fingerprint().fingerprint, read.fingerprint);
}

#[test]
fn layers_that_exchange_their_names_are_other_work_when_a_group_names_them() {
    let spec = |first: &str, second: &str| {
        format!(
            "data.type = 'iris'\ntrain = {{ epochs = 2, batch_size = 30 }}\nmodel.layers = [\n\
             {{ type = 'linear', name = '{first}', out_features = 4 }}, {{ type = 'relu' }},\n\
             {{ type = 'linear', name = '{second}', out_features = 4 }}, {{ type = 'relu' }},\n\
             {{ type = 'linear' }}]\n[optimizer]\ntype = 'sgd'\nlearning_rate = 0.1\n\
             [[optimizer.groups]]\nparameters = 'a.*'\nlearning_rate_factor = 0.01\n"
        )
    };
    let folder = completed(&spec("a", "b"), &[]);
    let of_first = numbers(folder.path());
    let again = |text: String| {
        fs::write(folder.path().join("spec.toml"), text).unwrap();
        let (code, _, stderr) = run(folder.path(), &["run", "spec.toml"]);
        assert_eq!(code, 0, "{stderr}");
        stderr
    };
    let words = again(spec("b", "a"));
    let reason = "`optimizer.groups`: `a.weight` was in a group, and is in none as `b.weight`";
    assert!(words.contains(reason), "{words}");
    assert_ne!(numbers(folder.path()), of_first);
    let words = again(
        spec("b", "a")
            .edit("'relu'", "'relu', name = 'bend'")
            .edit_first(", name = 'bend'", ""),
    );
    assert!(words.contains("1 already completed"), "{words}");
}
