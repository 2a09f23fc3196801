//! `runner serve RUN --predict`: what it answers, and what it refuses.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::serve::Server;
use super::support::{IRIS, completed, run};

const RUN: &str = "results/spec/runs/base-s1";

/// The status and the body of an answer; the connection stays open.
fn ask(stream: &mut TcpStream, method: &str, target: &str, body: &str) -> (u16, String) {
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        assert_eq!(
            stream.read(&mut byte).unwrap(),
            1,
            "{}",
            String::from_utf8_lossy(&head)
        );
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    stream.read_exact(&mut body).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, String::from_utf8(body).unwrap())
}

fn row(petal: f64) -> Value {
    json!({"input": [5.1, 3.5, petal, petal / 3.0]})
}

fn post(stream: &mut TcpStream, target: &str, body: &Value) -> (u16, Value) {
    let (status, body) = ask(stream, "POST", target, &body.to_string());
    (status, serde_json::from_str(&body).unwrap())
}

#[test]
fn rows_and_tensors_get_the_predictions_of_predict() {
    let folder = completed(IRIS, &[]);
    let rows: Vec<Value> = (0..40).map(|at| row(1.0 + 0.15 * f64::from(at))).collect();
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    std::fs::write(folder.path().join("new.jsonl"), lines.join("\n")).unwrap();
    let (code, stdout, stderr) = run(
        folder.path(),
        &[
            "predict",
            "results/spec",
            "--data",
            "new.jsonl",
            "--format",
            "jsonl",
        ],
    );
    assert_eq!(code, 0, "{stderr}");
    let expected: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(expected.len(), 40, "{stdout}");

    let server = Server::of(folder.path(), "results/spec", &["--predict"]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let (status, answer) = post(&mut stream, "/predict", &json!({ "rows": rows }));
    assert_eq!(status, 200, "{answer}");
    let classes = |predictions: &[Value]| -> Vec<Value> {
        predictions.iter().map(|it| it["class"].clone()).collect()
    };
    let predictions = answer["predictions"].as_array().unwrap();
    assert_eq!(predictions.len(), 40);
    let names: Vec<Value> = expected
        .iter()
        .map(|it| {
            it.get("class")
                .or(it.get("prediction"))
                .cloned()
                .unwrap_or_default()
        })
        .collect();
    assert_eq!(classes(predictions), names);

    // The same connection, and the same numbers as tensors.
    let data: Vec<&Value> = rows.iter().map(|row| &row["input"]).collect();
    let inputs = [json!({"name": "input", "datatype": "FP32", "shape": [40, 4], "data": data})];
    let (status, answer) = post(
        &mut stream,
        "/v2/models/spec/infer",
        &json!({"id": "7", "inputs": inputs}),
    );
    assert_eq!(status, 200, "{answer}");
    assert_eq!(
        (&answer["id"], &answer["model_name"]),
        (&json!("7"), &json!("spec"))
    );
    let output = |name: &str| {
        let outputs = answer["outputs"].as_array().unwrap();
        outputs
            .iter()
            .find(|it| it["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(output("class")["data"].as_array().unwrap(), &names);
    assert_eq!(output("probabilities")["shape"], json!([40, 3]));
    let all: Vec<Value> = predictions
        .iter()
        .flat_map(|it| it["probabilities"].as_array().unwrap().clone())
        .collect();
    assert_eq!(output("probabilities")["data"].as_array().unwrap(), &all);

    let (status, metadata) = ask(&mut stream, "GET", "/v2/models/spec", "");
    assert_eq!(status, 200);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    assert_eq!(metadata["inputs"][0]["shape"], json!([-1, 4]), "{metadata}");
    assert_eq!(
        metadata["outputs"][2]["shape"],
        json!([-1, 3]),
        "{metadata}"
    );
    for target in [
        "/v2",
        "/v2/health/live",
        "/v2/health/ready",
        "/v2/models/spec/ready",
    ] {
        assert_eq!(ask(&mut stream, "GET", target, "").0, 200, "{target}");
    }
    let (_, metrics) = ask(&mut stream, "GET", "/metrics", "");
    assert!(metrics.contains("runner_items_total 80\n"), "{metrics}");
}

#[test]
fn wrong_requests_are_refused_and_harm_nobody() {
    let folder = completed(IRIS, &[]);
    let server = Server::of(folder.path(), RUN, &["--predict", "--max-waiting", "8"]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let many: Vec<Value> = (0..9).map(|_| row(1.0)).collect();
    let nine = json!({ "rows": many }).to_string();
    for (method, target, body, status, words) in [
        ("POST", "/predict", "{", 400, "not JSON"),
        ("POST", "/predict", "[1]", 400, "item 1 is not"),
        ("POST", "/predict", r#"{"x": 1}"#, 400, "`input`"),
        ("POST", "/predict", &nine, 413, "at most 8 items"),
        (
            "POST",
            "/v2/models/spec/infer",
            "{}",
            400,
            "list of tensors",
        ),
        (
            "POST",
            "/v2/models/other/infer",
            "{}",
            404,
            "this is `spec`",
        ),
        ("GET", "/predict", "", 405, "POST"),
        ("GET", "/nowhere", "", 404, "see / for a list"),
        ("DELETE", "/predict", "", 405, "GET, HEAD and POST"),
    ] {
        let (code, answer) = ask(&mut stream, method, target, body);
        assert_eq!(code, status, "{method} {target}: {answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(
            answer["error"].as_str().unwrap().contains(words),
            "{answer}"
        );
    }
    // A body that never ends, and one that is announced too large.
    let mut slow = TcpStream::connect(&server.address).unwrap();
    slow.write_all(b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        .unwrap();
    let mut large = TcpStream::connect(&server.address).unwrap();
    large
        .write_all(
            b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
        )
        .unwrap();
    let mut answer = [0; 12];
    large.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    let (status, _) = post(&mut stream, "/predict", &row(1.0));
    assert_eq!(status, 200);
    // A model that is not there.
    let (code, _, stderr) = run(folder.path(), &["serve", "results/nowhere", "--predict"]);
    assert_eq!(code, 2, "{stderr}");
    let (code, _, stderr) = run(folder.path(), &["serve", "results/spec", "--name", "x"]);
    assert_eq!(code, 2, "{stderr}");
}

#[test]
fn requests_at_once_are_batched_and_answered_apart() {
    let folder = completed(IRIS, &[]);
    let server = Server::of(folder.path(), RUN, &["--predict"]);
    let answers = |num: u32| -> Vec<String> {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..num)
                .map(|at| {
                    let address = &server.address;
                    scope.spawn(move || {
                        let mut stream = TcpStream::connect(address).unwrap();
                        let one = row(1.0 + 0.2 * f64::from(at));
                        // Every fourth request is wrong, and spoils no other.
                        let body = if at % 4 == 3 {
                            json!({"input": [1, 2]})
                        } else {
                            one
                        };
                        let (status, answer) = post(&mut stream, "/predict", &body);
                        assert_eq!(status, if at % 4 == 3 { 400 } else { 200 }, "{answer}");
                        answer["predictions"][0]["class"].to_string()
                    })
                })
                .collect();
            threads.into_iter().map(|it| it.join().unwrap()).collect()
        })
    };
    assert_eq!(answers(32), answers(32));
}

#[cfg(unix)]
#[test]
fn a_signal_ends_it_without_an_error() {
    let folder = completed(IRIS, &[]);
    let mut server = Server::of(folder.path(), RUN, &["--predict"]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    assert_eq!(post(&mut stream, "/predict", &row(1.0)).0, 200);
    let pid = server.child.id().to_string();
    let killed = std::process::Command::new("kill")
        .args(["-TERM", &pid])
        .status();
    assert!(killed.unwrap().success());
    assert!(server.child.wait().unwrap().success());
}
