use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::spec::data::DataKind;

fn rows(shift: usize) -> String {
    // Of equal length, so that no line is partial.
    let rows = (0..40_000).map(|at| format!("{},{}\n", 10_000 + at + shift, at % 7));
    String::from("a,b\n") + &rows.collect::<String>()
}

/// Opens the records of a file, applying `change` when reading has begun.
fn opened(
    folder: &Path,
    change: impl Fn(&Path) + Sync,
) -> (Result<Records, DataError>, Vec<PathBuf>) {
    let (cache, path) = (folder.join("cache"), folder.join("rows.csv"));
    fs::write(&path, rows(0)).unwrap();
    let files = FilesSpec::usual(DataKind::Csv, path.to_string_lossy().into_owned());
    let digest = digest(&files, &cache, Trust::Stamps).unwrap();
    let calls = AtomicUsize::new(0);
    let opened = open(&files, &digest, &cache, Trust::Bytes, &|_, _| {
        if calls.fetch_add(1, Ordering::SeqCst) == 0 {
            change(&path);
        }
    });
    assert!(calls.load(Ordering::SeqCst) > 1);
    let entries = fs::read_dir(&cache).unwrap().flatten();
    let mut kept: Vec<_> = entries.map(|entry| entry.path()).collect();
    kept.retain(|path| path.extension().is_some_and(|e| e == "records"));
    (opened, kept)
}

#[test]
fn a_file_that_is_replaced_while_it_is_read_leaves_nothing_in_the_cache() {
    let replace = |path: &Path| fs::write(path, rows(1)).unwrap();
    let move_over = |path: &Path| {
        let other = path.with_extension("other");
        fs::write(&other, rows(1)).unwrap();
        fs::rename(other, path).unwrap();
    };
    // The content at the end equals the content at the beginning.
    let and_back = |path: &Path| {
        let aside = path.with_extension("aside");
        fs::rename(path, &aside).unwrap();
        fs::write(path, rows(1)).unwrap();
        fs::rename(aside, path).unwrap();
    };
    let changes: [&(dyn Fn(&Path) + Sync); 3] = [&replace, &move_over, &and_back];
    for (at, change) in changes.into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let (opened, kept) = opened(folder.path(), change);
        let refused = opened.unwrap_err();
        assert_eq!(
            refused.message, "the data changed while it was being read",
            "{at}"
        );
        assert!(kept.is_empty(), "{at}: {kept:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let (opened, kept) = opened(folder.path(), |_| {});
    assert_eq!((opened.unwrap().len(), kept.len()), (40_000, 1));
}

#[test]
fn several_may_build_the_same_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, path) = (folder.path().join("cache"), folder.path().join("rows.csv"));
    fs::write(&path, rows(0)).unwrap();
    let files = FilesSpec::usual(DataKind::Csv, path.to_string_lossy().into_owned());
    let digest = digest(&files, &cache, Trust::Stamps).unwrap();
    std::thread::scope(|scope| {
        let one = || open(&files, &digest, &cache, Trust::Bytes, &|_, _| {});
        let all: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        for one in all {
            assert_eq!(one.join().unwrap().unwrap().len(), 40_000);
        }
    });
}

#[test]
fn the_digest_sees_which_folder_a_file_is_in_and_whether_it_is_packed() {
    let folder = tempfile::tempdir().unwrap();
    let files = |paths: &[&str]| {
        let mut files = FilesSpec::usual(DataKind::Csv, String::new());
        files.path = paths
            .iter()
            .map(|path| folder.path().join(path).to_string_lossy().into_owned())
            .collect();
        files
    };
    let digest = |paths: &[&str]| {
        digest(&files(paths), &folder.path().join("cache"), Trust::Stamps).unwrap()
    };
    for name in [
        "a/1",
        "b/2",
        "c/1",
        "c/2",
        "d/",
        "plain.csv",
        "packed.csv.gz",
    ] {
        let path = folder.path().join(name);
        if name.ends_with('/') {
            fs::create_dir(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(
                path,
                name.rsplit('/').next().unwrap().replace(['p', '.'], ""),
            )
            .unwrap();
        }
    }
    assert_ne!(digest(&["a", "b"]), digest(&["c", "d"]));
    fs::copy(
        folder.path().join("plain.csv"),
        folder.path().join("packed.csv.gz"),
    )
    .unwrap();
    assert_ne!(digest(&["plain.csv"]), digest(&["packed.csv.gz"]));
    // Plans of earlier versions have a digest without that, and are still read.
    let both = |name: &str| {
        let cache = folder.path().join("cache");
        digest_and_former(&files(&[name]), &cache, Trust::Stamps).unwrap()
    };
    let [now, former] = both("packed.csv.gz");
    assert_eq!(now, digest(&["packed.csv.gz"]));
    assert_eq!(former, both("plain.csv")[1]);
}
