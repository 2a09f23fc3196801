//! Archives that runner did not create, or that are damaged.

use std::fs;
use std::io::Write;

use burn_runner::plan::FORMAT;
use burn_runner::record::capsule::{Capsule, CapsuleError, MAX_BYTES, unpack};
use proptest::prelude::*;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};
use tar::EntryType;

use crate::suite::edit::Edit;
use crate::suite::support::{IRIS, plan};

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A raw entry of an archive.
fn entry(name: &[u8], kind: EntryType, size: u64, link: &str, data: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(0);
    let old = header.as_old_mut();
    old.name[..name.len()].copy_from_slice(name);
    old.linkname[..link.len()].copy_from_slice(link.as_bytes());
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn file(name: &str, data: &[u8]) -> Vec<u8> {
    entry(
        name.as_bytes(),
        EntryType::Regular,
        data.len() as u64,
        "",
        data,
    )
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A capsule that can be made wrong in one place.
struct Made {
    manifest: Json,
    files: Vec<(&'static str, Vec<u8>)>,
    /// Data after the files.
    more: Vec<Vec<u8>>,
}

impl Made {
    fn good() -> Self {
        let (plan, _) = plan("spec.toml", IRIS).unwrap();
        let text = toml::to_string(&plan.runs[0]).unwrap();
        Self::of(vec![
            ("run/events.jsonl", b"{}\n".to_vec()),
            ("run/run.toml", text.into_bytes()),
            ("siblings.json", b"[]\n".to_vec()),
        ])
    }

    fn of(files: Vec<(&'static str, Vec<u8>)>) -> Self {
        let sums = files.iter().map(|(path, data)| sum(path, data));
        Self {
            manifest: json!({
                "format": 1,
                "runner_version": "0.1.0",
                "experiment": "spec",
                "run": "base-s1",
                "outcome": "completed",
                "data": {
                    "dataset": "iris",
                    "needs": "nothing",
                    "content_digest": null,
                    "split_digests": {},
                    "roots": [],
                },
                "files": sums.collect::<Vec<_>>(),
            }),
            files,
            more: Vec::new(),
        }
    }

    /// Lists a file that the archive then contains, or does not.
    fn list(mut self, sum: Json) -> Self {
        let files = self.manifest["files"].as_array_mut().unwrap();
        files.push(sum);
        self
    }

    fn more(mut self, entry: Vec<u8>) -> Self {
        self.more.push(entry);
        self
    }

    fn set(mut self, pointer: &str, value: Json) -> Self {
        *self.manifest.pointer_mut(pointer).unwrap() = value;
        self
    }

    /// The archive before it is compressed.
    fn tar(&self) -> Vec<u8> {
        let mut bytes = file("capsule.json", self.manifest.to_string().as_bytes());
        let files = self.files.iter();
        files.for_each(|(path, data)| bytes.extend(file(path, data)));
        self.more.iter().for_each(|entry| bytes.extend(entry));
        bytes.extend([0; 1024]);
        bytes
    }

    fn archive(&self) -> Vec<u8> {
        zipped(&self.tar())
    }
}

fn sum(path: &str, data: &[u8]) -> Json {
    json!({ "path": path, "bytes": data.len(), "sha256": hex(data) })
}

/// Unpacks bytes; after a refusal nothing but the archive may be there.
fn opened(bytes: &[u8]) -> Result<Capsule, CapsuleError> {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("a.capsule.tar.zst");
    fs::write(&archive, bytes).unwrap();
    let into = folder.path().join("new/into");
    let opened = unpack(&archive, &into, Some(MAX_BYTES));
    if opened.is_err() {
        let names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names, ["a.capsule.tar.zst"], "something is left behind");
    }
    opened.map_err(|error| {
        let place = folder.path().display().to_string();
        CapsuleError {
            message: error.message.replace(&place, ""),
            ..error
        }
    })
}

#[test]
fn a_capsule_made_by_hand_is_sound_until_it_is_made_wrong() {
    let capsule = opened(&Made::good().archive()).unwrap();
    assert_eq!(capsule.plan.id, "base-s1");
    assert_eq!(capsule.manifest.files.len(), 3);
}

#[test]
fn hostile_archives_are_refused_with_the_entry() {
    use EntryType as Kind;
    let evil = b"evil";
    let with = |name: &str| Made::good().more(file(name, evil));
    let listed = |name: &str| with(name).list(sum(name, evil));
    let of_kind = |kind: Kind, link: &str| {
        let name = "run/metrics.csv";
        let made = Made::good().list(sum(name, b""));
        made.more(entry(name.as_bytes(), kind, 0, link, b""))
    };
    let long_name = |name: &str| {
        let named = entry(
            b"././@LongLink",
            Kind::GNULongName,
            name.len() as u64,
            "",
            name.as_bytes(),
        );
        Made::good().more(named).more(file("short", evil))
    };
    let replaced = |path: &str, data: &str| {
        let mut files = Made::good().files;
        files.retain(|(name, _)| *name != path);
        let name = if path == "run/run.toml" {
            "run/run.toml"
        } else {
            "siblings.json"
        };
        files.push((name, data.as_bytes().to_vec()));
        Made::of(files)
    };
    let run_toml = String::from_utf8(Made::good().files[1].1.clone()).unwrap();
    let manifest_alone = |text: &[u8]| zipped(&file("capsule.json", text));
    let huge_manifest = entry(b"capsule.json", Kind::Regular, 17 << 20, "", b"{}");
    let zeros = |bytes: Vec<u8>, num: usize| zipped(&[bytes, vec![0; num]].concat());
    let root = |packed: Json| {
        json!([{ "key": "path", "number": 1, "original": "/x.csv", "is_folder": false,
                 "num_files": 1, "bytes": 4, "packed": packed }])
    };
    let with_root = |packed: Json| {
        let needs = if packed.is_null() { "files" } else { "packed" };
        let made = Made::good().set("/data/needs", json!(needs));
        made.set("/data/roots", root(packed))
    };
    let good = Made::good().archive();
    let mut checksum = good.clone();
    *checksum.last_mut().unwrap() ^= 1;
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("parent", with("../evil").archive()),
        ("parent that is listed", listed("run/../../evil").archive()),
        ("absolute", with("/etc/evil").archive()),
        ("absolute that is listed", listed("/etc/evil").archive()),
        ("drive", with("C:/evil").archive()),
        ("backslashes", with("run\\..\\evil").archive()),
        ("network path", with("\\\\host\\share").archive()),
        ("dot", listed("run/./evil").archive()),
        ("empty part", listed("run//evil").archive()),
        ("line break", with("run/a\nb").archive()),
        ("turned text", listed("run/\u{202e}gpj.exe").archive()),
        (
            "not UTF-8",
            Made::good()
                .more(entry(b"run/\xff\xfe", Kind::Regular, 4, "", evil))
                .archive(),
        ),
        ("no name", Made::good().more(file("", evil)).archive()),
        (
            "symbolic link",
            of_kind(Kind::Symlink, "/etc/passwd").archive(),
        ),
        ("hard link", of_kind(Kind::Link, "../../evil").archive()),
        ("device", of_kind(Kind::Char, "").archive()),
        ("block device", of_kind(Kind::Block, "").archive()),
        ("pipe", of_kind(Kind::Fifo, "").archive()),
        ("folder", of_kind(Kind::Directory, "").archive()),
        ("sparse", of_kind(Kind::GNUSparse, "").archive()),
        ("continuous", of_kind(Kind::Continuous, "").archive()),
        (
            "extensions",
            Made::good()
                .more(entry(b"x", Kind::XHeader, 12, "", b"12 size=999\n"))
                .archive(),
        ),
        (
            "global extensions",
            of_kind(Kind::XGlobalHeader, "").archive(),
        ),
        (
            "long name above",
            long_name(&format!("{}evil", "../".repeat(60))).archive(),
        ),
        (
            "long name without file",
            Made::good()
                .more(entry(b"L", Kind::GNULongName, 3, "", b"abc"))
                .archive(),
        ),
        (
            "two long names",
            Made::good()
                .more(entry(b"L", Kind::GNULongName, 3, "", b"abc"))
                .more(entry(b"L", Kind::GNULongName, 3, "", b"abc"))
                .archive(),
        ),
        (
            "very long name",
            Made::good()
                .more(entry(b"L", Kind::GNULongName, 1 << 40, "", b"abc"))
                .archive(),
        ),
        (
            "very long name in the list",
            listed(&"a/".repeat(45))
                .set("/files/3/path", json!("run/".repeat(300)))
                .archive(),
        ),
        ("not listed", with("run/evil").archive()),
        ("another place", listed("evil").archive()),
        ("twice", with("run/events.jsonl").archive()),
        ("manifest twice", with("capsule.json").archive()),
        (
            "listed twice",
            Made::good()
                .list(sum("run/events.jsonl", b"{}\n"))
                .archive(),
        ),
        ("file and folder", listed("run/run.toml/evil").archive()),
        (
            "missing",
            Made::good()
                .list(sum("run/model/final.bpk", b"x"))
                .archive(),
        ),
        (
            "smaller than listed",
            Made::good().set("/files/0/bytes", json!(4)).archive(),
        ),
        (
            "larger than listed",
            Made::good().set("/files/0/bytes", json!(2)).archive(),
        ),
        (
            "says to be huge",
            Made::good()
                .list(sum("run/model/final.bpk", evil))
                .more(entry(
                    b"run/model/final.bpk",
                    Kind::Regular,
                    1 << 50,
                    "",
                    evil,
                ))
                .archive(),
        ),
        ("size of no number", {
            let mut bytes = Made::good().tar();
            bytes[124..136].copy_from_slice(b"ninebytes!!\0");
            zipped(&bytes)
        }),
        (
            "other content",
            Made::good()
                .set("/files/0/sha256", json!("0".repeat(64)))
                .archive(),
        ),
        (
            "no sum",
            Made::good().set("/files/0/sha256", json!("ABC")).archive(),
        ),
        (
            "listed as huge",
            Made::good()
                .list(json!({
            "path": "run/model/final.bpk", "bytes": 1_u64 << 40, "sha256": "0".repeat(64) }))
                .archive(),
        ),
        (
            "sizes past counting",
            Made::good()
                .list(json!({ "path": "data/a", "bytes": u64::MAX, "sha256": "0".repeat(64) }))
                .list(json!({ "path": "data/b", "bytes": u64::MAX, "sha256": "0".repeat(64) }))
                .archive(),
        ),
        (
            "negative size",
            Made::good().set("/files/0/bytes", json!(-1)).archive(),
        ),
        ("bomb behind the end", zeros(Made::good().tar(), 64 << 20)),
        (
            "something behind the end",
            zipped(&[Made::good().tar(), file("run/evil", evil)].concat()),
        ),
        (
            "another archive behind",
            [good.clone(), good.clone()].concat(),
        ),
        ("words behind", [good.clone(), b"words".to_vec()].concat()),
        (
            "manifest not first",
            zipped(&[file("run/run.toml", b""), Made::good().tar()].concat()),
        ),
        (
            "manifest as a link",
            zipped(&entry(
                b"capsule.json",
                Kind::Symlink,
                0,
                "/etc/passwd",
                b"",
            )),
        ),
        ("manifest too large", zipped(&huge_manifest)),
        (
            "manifest of another format",
            Made::good().set("/format", json!(2)).archive(),
        ),
        ("manifest without format", manifest_alone(b"{}")),
        ("manifest without files", manifest_alone(b"{\"format\": 1}")),
        (
            "manifest of brackets",
            manifest_alone("[".repeat(100_000).as_bytes()),
        ),
        ("manifest of no text", manifest_alone(&[0xff; 64])),
        (
            "run above",
            Made::good().set("/run", json!("../../evil")).archive(),
        ),
        (
            "experiment with folders",
            Made::good().set("/experiment", json!("a/b")).archive(),
        ),
        (
            "run of another name",
            Made::good().set("/run", json!("base-s2")).archive(),
        ),
        (
            "a different data set",
            Made::good().set("/data/dataset", json!("mnist")).archive(),
        ),
        (
            "files of data that the run lacks",
            with_root(Json::Null).archive(),
        ),
        (
            "data that is said to be there",
            Made::good().set("/data/needs", json!("packed")).archive(),
        ),
        (
            "unheard-of outcome",
            Made::good()
                .set("/outcome", json!("\u{1b}[31mbest"))
                .archive(),
        ),
        (
            "words for the terminal",
            replaced("run/run.toml", &run_toml.edit("\"f32\"", "\"\\u001b[2J\"")).archive(),
        ),
        ("data above", with_root(json!("../../etc/passwd")).archive()),
        (
            "data that is not listed",
            with_root(json!("data/path/1/x.csv")).archive(),
        ),
        (
            "run that is none",
            replaced("run/run.toml", &format!("format = {FORMAT}\n")).archive(),
        ),
        (
            "run of another format",
            replaced(
                "run/run.toml",
                &run_toml.edit_first(&format!("format = {FORMAT}"), "format = 7"),
            )
            .archive(),
        ),
        (
            "trial above",
            replaced(
                "run/run.toml",
                &run_toml.edit("trial = \"base\"", "trial = \"../x\""),
            )
            .archive(),
        ),
        (
            "seeds that are none",
            replaced("siblings.json", "{}").archive(),
        ),
        (
            "no run",
            Made::of(vec![("siblings.json", b"[]".to_vec())]).archive(),
        ),
        ("empty file", Vec::new()),
        ("no archive", b"PK\x03\x04 a zip".to_vec()),
        ("no tar", zipped(b"words")),
        ("no tar at length", zipped(&[7; 4096])),
        ("empty archive", zipped(&[0; 1024])),
        ("half", good[..good.len() / 2].to_vec()),
        ("without its end", good[..good.len() - 1].to_vec()),
        ("wrong check sum", checksum),
    ];
    let mut messages = String::new();
    for (what, bytes) in cases {
        let error = match opened(&bytes) {
            Err(error) => error,
            Ok(_) => panic!("{what}: unpacked"),
        };
        assert!(!error.helps.is_empty(), "{what}");
        messages += &format!("{what}\n    {error}\n");
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn no_more_is_unpacked_than_the_caller_allows_or_than_there_is_place_for() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("a.zst");
    fs::write(&archive, Made::good().archive()).unwrap();
    let into = folder.path().join("into");
    let mut messages = Vec::new();
    let mut refused = |into: &std::path::Path, max_bytes| {
        let error = unpack(&archive, into, Some(max_bytes))
            .unwrap_err()
            .to_string();
        messages.push(error.replace(&folder.path().display().to_string(), ""));
    };
    refused(&into, 100);
    fs::create_dir(&into).unwrap();
    fs::write(into.join("mine"), "x").unwrap();
    refused(&into, MAX_BYTES);
    refused(&into.join("mine"), MAX_BYTES);
    refused(&into.join("mine/deeper"), MAX_BYTES);
    // An empty folder counts as missing.
    fs::remove_file(into.join("mine")).unwrap();
    unpack(&archive, &into, Some(MAX_BYTES)).unwrap();
    let missing = unpack(
        &folder.path().join("b.zst"),
        &into.join("x"),
        Some(MAX_BYTES),
    );
    let missing = missing.unwrap_err().to_string();
    messages.push(missing.replace(&folder.path().display().to_string(), ""));
    // Sizes depend on the plan's text.
    let size = regex::Regex::new(r"contains \d+(\.\d)? (B|KiB)").unwrap();
    let messages = messages.join("\n");
    insta::assert_snapshot!(size.replace_all(&messages, "contains [SIZE]"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

/// A few bytes that claim to be gigabytes are refused before any of them is written, with both numbers.
#[test]
fn a_bomb_is_refused_by_what_it_announces() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("a.zst");
    let mut zeros = sum("data/path/1/zeros", b"");
    zeros["bytes"] = (8_u64 << 30).into();
    fs::write(&archive, Made::good().list(zeros).archive()).unwrap();
    let error = unpack(&archive, &folder.path().join("into"), None).unwrap_err();
    let error = error.to_string();
    for part in [
        "contains 8.0 GiB",
        "at most 256.0 MiB",
        "KiB compressed",
        "200 times",
        "raise the limit",
    ] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// A capsule truncated anywhere, or with flipped bits: refused, or unchanged.
    #[test]
    fn damaged_capsules_are_refused_whole(cut in any::<Option<prop::sample::Index>>(), flips in flips()) {
        let mut bytes = Made::good().archive();
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        flip(&mut bytes, &flips);
        if let Ok(capsule) = opened(&bytes) {
            prop_assert_eq!(capsule.plan.id, "base-s1");
        }
    }

    /// The same below the compression and its checksum.
    #[test]
    fn damaged_archives_are_refused_whole(cut in any::<Option<prop::sample::Index>>(), flips in flips()) {
        let mut bytes = Made::good().tar();
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        flip(&mut bytes, &flips);
        if let Ok(capsule) = opened(&zipped(&bytes)) {
            prop_assert_eq!(capsule.plan.seed, 1);
        }
    }

    /// A run that was changed, with correct sums: read or refused.
    #[test]
    fn runs_with_damaged_text_are_refused_or_read(flips in flips()) {
        let mut files = Made::good().files;
        flip(&mut files[1].1, &flips);
        if let Err(error) = opened(&Made::of(files).archive()) {
            prop_assert!(error.message.contains("run.toml"), "{}", error);
        }
    }
}

fn flips() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), 0..8_u8), 1..4)
}

fn flip(bytes: &mut [u8], flips: &[(prop::sample::Index, u8)]) {
    for (at, bit) in flips {
        if !bytes.is_empty() {
            bytes[at.index(bytes.len())] ^= 1 << bit;
        }
    }
}
