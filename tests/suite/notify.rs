//! `[[notify]]`: programs and webhooks that are told of the end of a training, and of runs that fail.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use serde_json::Value as Json;

use super::failures::DIVERGES;
use super::support::{IRIS, folder_with, run, runner, texts};

/// A program that adds what it reads to a file, as one line.
const KEEP: &str = "command = [\"sh\", \"-c\", \"cat >> told.jsonl; echo >> told.jsonl\"]";

fn told(folder: &Path) -> Vec<Json> {
    let text = fs::read_to_string(folder.join("told.jsonl")).unwrap_or_default();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn events(folder: &Path) -> Vec<String> {
    let event = |told: &Json| told["event"].as_str().unwrap().to_owned();
    told(folder).iter().map(event).collect()
}

#[test]
fn the_end_is_told_once() {
    let spec = format!("{IRIS}\n[experiment]\nseeds = [1, 2]\n\n[[notify]]\n{KEEP}\n");
    let folder = folder_with(&spec);
    let at = folder.path();
    let (code, _, said) = run(at, &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let all = told(at);
    assert_eq!(all.len(), 1, "{all:?}");
    let told = &all[0];
    assert_eq!(told["event"], "finished");
    assert_eq!(told["experiment"], "spec");
    let text = told["text"].as_str().unwrap();
    assert!(
        text.starts_with("spec: completed; best: ") && text.contains("valid/accuracy"),
        "{text}"
    );
    let results = at.join("results/spec").canonicalize().unwrap();
    assert_eq!(told["folder"], results.to_string_lossy().as_ref());
    // Nothing is left to do, and nothing is told.
    assert_eq!(run(at, &["run", "spec.toml", "--quiet"]).0, 0);
    assert_eq!(events(at), ["finished"]);
    // It is in no record but the copy of the file, and no part of a run's identity.
    let fingerprint = |folder: &Path| {
        let path = folder.join("results/spec/plan.json");
        let plan: Json = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        assert!(plan.get("notify").is_none());
        let fingerprint = plan["runs"][0]["fingerprint"].clone();
        assert!(fingerprint.is_string(), "{plan}");
        fingerprint
    };
    let without = folder_with(&format!("{IRIS}\n[experiment]\nseeds = [1, 2]\n"));
    assert_eq!(run(without.path(), &["run", "spec.toml", "--quiet"]).0, 0);
    assert_eq!(fingerprint(at), fingerprint(without.path()));
}

#[test]
fn failures_are_told_when_they_are_final() {
    let spec = format!(
        "{IRIS}\n[experiment]\nseeds = [1, 2]\n\n[[notify]]\non = [\"run_failed\", \"failed\"]\n{KEEP}\n"
    );
    let folder = folder_with(&spec);
    let at = folder.path();
    let arguments = ["run", "spec.toml", "--quiet", "--inject-fault"];
    let (code, _, said) = run(at, &[&arguments[..], &["*-s2@training:2=panic"]].concat());
    assert_eq!(code, 1, "{said}");
    let all = told(at);
    assert_eq!(events(at), ["run_failed", "failed"], "{all:?}");
    assert_eq!(all[0]["run"], "base-s2");
    assert_eq!(all[0]["class"], "panic");
    assert!(
        all[0]["text"]
            .as_str()
            .unwrap()
            .contains("run base-s2 failed")
    );
    let text = all[1]["text"].as_str().unwrap();
    assert!(text.contains("1 failed"), "{text}");
}

#[test]
fn a_run_that_is_tried_again_has_not_failed() {
    let notify = format!("[[notify]]\non = [\"diverged\", \"finished\"]\n{KEEP}\n");
    let policy = DIVERGES.find("[on_failure").unwrap();
    let gives_up = &DIVERGES[..policy];
    for (spec, code, expected) in [(DIVERGES, 0, "finished"), (gives_up, 1, "diverged")] {
        let folder = folder_with(&format!("{spec}\n{notify}"));
        let ended = run(folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(ended.0, code, "{ended:?}");
        assert_eq!(events(folder.path()), [expected]);
    }
}

/// Answers requests with a status, and returns their bodies.
fn server(status: &'static str, num: usize) -> (String, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let bodies = thread::spawn(move || {
        let bodies = (0..num).map(|_| {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let (mut line, mut length) = (String::new(), 0);
            while reader.read_line(&mut line).unwrap() > 2 {
                let lower = line.to_ascii_lowercase();
                if let Some(found) = lower.strip_prefix("content-length:") {
                    length = found.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let answer =
                format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
            String::from_utf8(body).unwrap()
        });
        bodies.collect()
    });
    (format!("http://{address}/a-secret-path"), bodies)
}

#[test]
fn webhooks_are_told_and_their_addresses_are_secrets() {
    let spec = format!("{IRIS}\n[[notify]]\nurl_variable = \"HOOK\"\n");
    for (status, is_heard) in [
        ("204 No Content", true),
        ("500 Internal Server Error", false),
    ] {
        let folder = folder_with(&spec);
        let at = folder.path();
        let (url, bodies) = server(status, 1);
        let mut command = runner(at);
        let command = command
            .args(["run", "spec.toml", "--quiet"])
            .env("HOOK", &url);
        let (code, _, said) = texts(&command.output().unwrap());
        assert_eq!(code, 0, "{said}");
        let bodies = bodies.join().unwrap();
        let body: Json = serde_json::from_str(&bodies[0]).unwrap();
        assert_eq!(body["event"], "finished");
        assert_eq!(
            said.contains("`notify[0]` was not told of \"finished\""),
            !is_heard,
            "{said}"
        );
        assert!(!said.contains("a-secret-path"), "{said}");
        for file in walk(at) {
            let text = fs::read(&file).unwrap();
            let has = text.windows(13).any(|part| part == b"a-secret-path");
            assert!(!has, "{}", file.display());
        }
    }
}

fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            all.extend(walk(&entry.path()));
        } else {
            all.push(entry.path());
        }
    }
    all
}

#[test]
fn what_cannot_be_told_is_refused_before_or_a_warning_after() {
    for (way, expected) in [
        (
            "command = [\"no-such-program-here\"]",
            "the program `no-such-program-here` of `notify[0].command` is not found",
        ),
        (
            "url_variable = \"NO_SUCH_VARIABLE_HERE\"",
            "the environment variable `NO_SUCH_VARIABLE_HERE` of `notify[0].url_variable` does not contain an address",
        ),
    ] {
        let folder = folder_with(&format!("{IRIS}\n[[notify]]\n{way}\n"));
        let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
        assert_eq!(code, 2, "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(!folder.path().join("results").exists());
        // Another machine may have it.
        assert_eq!(run(folder.path(), &["check", "spec.toml"]).0, 0);
    }
    let fails = "command = [\"sh\", \"-c\", \"echo the line is dead >&2; exit 3\"]";
    let folder = folder_with(&format!("{IRIS}\n[[notify]]\n{fails}\n"));
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("`notify[0]` was not told of \"finished\": `sh` failed")
            && said.contains("the line is dead"),
        "{said}"
    );
}
