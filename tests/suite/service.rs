//! `runner serve RUN --predict`: what it answers, and what it refuses.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::edit::Edit;
use super::serve::Server;
use super::support::{IRIS, completed, folder_with, run};

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

pub fn post(stream: &mut TcpStream, target: &str, body: &Value) -> (u16, Value) {
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
    let (_, gauges) = ask(&mut stream, "GET", "/metrics", "");
    let refused = "runner_requests_total{code=\"413\"} ";
    let counted = gauges.lines().find_map(|line| line.strip_prefix(refused));
    let counted: u64 = counted.expect("a counter").parse().unwrap();
    // The one of too many items, too.
    assert_eq!(counted, 2, "{gauges}");
    let (status, _) = post(&mut stream, "/predict", &row(1.0));
    assert_eq!(status, 200);
    // A model that is not there.
    let (code, _, stderr) = run(folder.path(), &["serve", "results/nowhere", "--predict"]);
    assert_eq!(code, 2, "{stderr}");
    let (code, _, stderr) = run(folder.path(), &["serve", "results/spec", "--name", "x"]);
    assert_eq!(code, 2, "{stderr}");
}

/// Whether a row may lack a column does not depend on the rows beside it, and no flag can skip it.
#[test]
fn each_row_has_all_columns() {
    let folder = super::support::folder_with(
        "data = { type = 'csv', path = 'd.csv', target = 'y', missing = 'mean' }\n\
         model = { type = 'mlp', hidden = [4] }\n\
         optimizer = { type = 'adam', learning_rate = 1e-2 }\n\
         train = { epochs = 1, batch_size = 16 }\n",
    );
    let rows = (0..40).map(|at| format!("{at},{},{}\n", 40 - at, ["no", "yes"][at % 2]));
    let rows: String = rows.collect();
    std::fs::write(folder.path().join("d.csv"), format!("a,b,y\n{rows}")).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let server = Server::of(folder.path(), RUN, &["--predict"]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    for (rows, words) in [
        (json!([{"a": 1}]), "`b`"),
        (json!([{"a": 1, "b": 2}, {"a": 1}]), "` has no column `b`"),
        (json!([{"a": 1, "b": "many"}]), "`b`"),
    ] {
        let (status, answer) = post(&mut stream, "/predict", &rows);
        let answer = answer.to_string();
        assert_eq!(status, 400, "{answer}");
        assert!(answer.contains(words) && !answer.contains("--"), "{answer}");
    }
    let missing = json!([{"a": 1, "b": null}]);
    let (status, answer) = post(&mut stream, "/predict", &missing);
    assert_eq!(status, 200, "{answer}");
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

/// Writes bytes to a connection of their own, and returns the status of the answer; 0 if the connection is closed
/// without one.
fn status_of(address: &str, bytes: &[u8]) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(bytes);
    let mut head = [0; 12];
    match stream.read_exact(&mut head) {
        Ok(()) => String::from_utf8_lossy(&head[9..]).parse().unwrap(),
        Err(_) => 0,
    }
}

/// A request of a body with its length.
fn framed(target: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Bodies that are not what they should be are answered with 400 and leave the server as it was.
#[test]
fn hostile_bodies_are_refused_by_what_is_wrong() {
    let folder = completed(IRIS, &[]);
    let server = Server::of(folder.path(), RUN, &["--predict"]);
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let deep_row = format!("{{\"input\": {deep}}}");
    let rows: Vec<&[u8]> = vec![
        b"",
        b"\xff\xfe\x00",
        b"null",
        b"\"x\"",
        b"{\"rows\": {}}",
        b"{\"rows\": [[1, 2, 3, 4]]}",
        b"{\"input\": [5.1, 3.5, NaN, 0.5]}",
        b"{\"input\": [5.1, 3.5, 1e999, 0.5]}",
        b"{\"input\": [5.1, 3.5, null, 0.5]}",
        b"{\"input\": [5.1, 3.5, \"x\", 0.5]}",
        b"{\"input\": [5.1, 3.5, {}, 0.5]}",
        b"{\"input\": [5.1, 3.5, 1.4]}",
        b"{\"input\": [5.1, 3.5, 1.4, 0.2, 9]}",
        b"{\"input\": \"5.1\"}",
        b"{}",
        deep.as_bytes(),
        deep_row.as_bytes(),
    ];
    for body in rows {
        let status = status_of(&server.address, &framed("/predict", body));
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]);
        assert_eq!(status, 400, "{shown}");
    }
    let tensor = |shape: &str, data: &str| {
        format!(
            "{{\"inputs\": [{{\"name\": \"input\", \"datatype\": \"FP32\", \"shape\": {shape}, \"data\": {data}}}]}}"
        )
    };
    let tensors = [
        tensor("[1, 4]", "[1, 2, 3]"),
        tensor("[1, 3]", "[1, 2, 3]"),
        tensor("[18446744073709551615, 4]", "[1, 2, 3, 4]"),
        tensor("[9223372036854775807, 4]", "[]"),
        tensor("[0.5, 4]", "[1, 2, 3, 4]"),
        tensor("4", "[1, 2, 3, 4]"),
        tensor("[1, 4]", "{}"),
        tensor("[1, 4]", "[1, 2, 3, NaN]"),
        tensor("[1, 4]", "[1, 2, 3, null]"),
        tensor("[1, 4]", &deep),
        "{\"inputs\": [null]}".to_owned(),
        "{\"inputs\": {}}".to_owned(),
    ];
    for body in &tensors {
        let status = status_of(
            &server.address,
            &framed("/v2/models/spec/infer", body.as_bytes()),
        );
        assert_eq!(status, 400, "{}", &body[..body.len().min(90)]);
    }
    let mut stream = TcpStream::connect(&server.address).unwrap();
    assert_eq!(post(&mut stream, "/predict", &row(1.0)).0, 200);
}

/// Requests that are not HTTP, or try to be two requests at once, end their own connection only.
#[test]
fn hostile_requests_end_their_own_connection() {
    let folder = completed(IRIS, &[]);
    let server = Server::of(folder.path(), RUN, &["--predict"]);
    let long = format!(
        "GET /predict HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "x".repeat(100_000)
    );
    let many = format!(
        "GET /predict HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
        "X: y\r\n".repeat(1000)
    );
    let post = "POST /predict HTTP/1.1\r\nHost: localhost\r\n";
    let cases = [
        ("\0\0\0\0\r\n\r\n".to_owned(), &[0, 400][..]),
        ("\x16\x03\x01\x02\0\x01\0\x01\r\n\r\n".to_owned(), &[0, 400]),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), &[0, 400]),
        (long, &[0, 400, 431]),
        (many, &[0, 400, 431]),
        (
            "GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_owned(),
            &[403],
        ),
        (
            format!("{post}Content-Length: 5\r\nContent-Length: 6\r\n\r\n{{}}"),
            &[0, 400],
        ),
        (format!("{post}Content-Length: -1\r\n\r\n{{}}"), &[0, 400]),
        (
            format!("{post}Transfer-Encoding: chunked\r\n\r\nzz\r\n"),
            &[0, 400],
        ),
        (
            format!("{post}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"),
            &[0, 400],
        ),
        (
            format!("{post}Content-Length: 99999999999999999999999\r\n\r\n"),
            &[0, 400, 413],
        ),
    ];
    for (bytes, expected) in &cases {
        let status = status_of(&server.address, bytes.as_bytes());
        let shown = &bytes[..bytes.len().min(90)];
        assert!(expected.contains(&status), "{status}: {shown:?}");
    }
    let mut stream = TcpStream::connect(&server.address).unwrap();
    assert_eq!(self::post(&mut stream, "/predict", &row(1.0)).0, 200);
}

/// Requests whose bodies never end give way to others, however many there are.
#[test]
fn slow_bodies_lock_nobody_out() {
    let folder = completed(IRIS, &[]);
    let server = Server::of(folder.path(), RUN, &["--predict"]);
    let begin = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{";
    // More than there may be connections.
    let slow: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            stream.write_all(begin).unwrap();
            stream
        })
        .collect();
    for at in 0..20 {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        let (status, answer) = post(&mut stream, "/predict", &row(1.0 + f64::from(at)));
        assert_eq!(status, 200, "{answer}");
    }
    // The first of them were closed.
    let mut first = slow.into_iter().next().unwrap();
    assert_eq!(first.read(&mut [0]).unwrap_or(0), 0);
}

/// Connections of every useless kind, many more than there may be: the server keeps few of them, and a client that is
/// served keeps its connection.
#[cfg(target_os = "linux")]
#[test]
fn a_storm_of_useless_connections_costs_neither_memory_nor_others() {
    let folder = completed(IRIS, &[]);
    let server = Server::of(folder.path(), RUN, &["--predict"]);
    let proc = std::path::PathBuf::from(format!("/proc/{}", server.child.id()));
    let mut good = TcpStream::connect(&server.address).unwrap();
    let predict = "POST /predict HTTP/1.1\r\nHost: localhost\r\n";
    let long = format!("{predict}X: {}", "x".repeat(12_000));
    let begins = [
        String::new(),
        "P".to_owned(),
        long,
        format!("{predict}Content-Length: 1000000\r\n\r\n{{"),
        format!("{predict}Transfer-Encoding: chunked\r\n\r\n1\r\n{{\r\n"),
    ];
    let mut storm = std::collections::VecDeque::new();
    for at in 0..3000 {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        // The server may have closed it already.
        let _ = stream.write_all(begins[at % begins.len()].as_bytes());
        storm.push_back(stream);
        // This process may have 1024 files.
        if storm.len() > 500 {
            storm.pop_front();
        }
        if at % 100 == 0 {
            // Connections that give way are closed in another thread.
            let is_bounded = (0..1000).any(|_| {
                let (status, answer) = post(&mut good, "/predict", &row(1.0));
                assert_eq!(status, 200, "{answer}");
                std::fs::read_dir(proc.join("fd")).unwrap().count() < 256 + 32
            });
            assert!(is_bounded, "connection {at}");
        }
    }
    let status = std::fs::read_to_string(proc.join("status")).unwrap();
    let peak = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    let kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 256 << 10, "{peak}");
}

/// The rows of a request are a series of their own: no window reaches into another request, however many wait.
#[test]
fn windows_are_made_of_the_rows_of_one_request() {
    let rows: String = (0..60)
        .map(|at| format!("{}\n", (at * 7 % 11) as f64 / 11.0))
        .collect();
    let spec = IRIS.edit("type = \"iris\"", "type = \"csv\"\npath = \"s.csv\"\nfeatures = [\"x\"]\ntarget = \"x\"\nwindow = { length = 4, horizon = 2 }\nsplit = { valid = 0.5 }");
    let folder = folder_with(&spec);
    std::fs::write(folder.path().join("s.csv"), format!("x\n{rows}")).unwrap();
    let (code, _, said) = run(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{said}");
    let server = Server::of(folder.path(), "results/spec", &["--predict"]);
    let request = |from: usize, num: usize| {
        let rows: Vec<Value> = (0..num)
            .map(|at| json!({"x": (from + at) as f64 / 9.0}))
            .collect();
        json!({ "rows": rows })
    };
    let alone: Vec<(u16, Value)> = (0..4)
        .map(|from| {
            let mut stream = TcpStream::connect(&server.address).unwrap();
            post(&mut stream, "/predict", &request(from, 6))
        })
        .collect();
    for (status, answer) in &alone {
        assert_eq!(
            (*status, answer["predictions"].as_array().unwrap().len()),
            (200, 3),
            "{answer}"
        );
    }
    std::thread::scope(|scope| {
        for client in 0..8 {
            let (alone, request, address) = (&alone, &request, &server.address);
            scope.spawn(move || {
                let mut stream = TcpStream::connect(address).unwrap();
                for round in 0..20 {
                    let from = (client + round) % 4;
                    let answer = post(&mut stream, "/predict", &request(from, 6));
                    assert_eq!(answer, alone[from]);
                    let (status, answer) = post(&mut stream, "/predict", &request(from, 3));
                    assert_eq!(status, 400, "{answer}");
                    assert!(
                        answer["error"]
                            .as_str()
                            .unwrap()
                            .contains("3 rows, which are too few"),
                        "{answer}"
                    );
                }
            });
        }
    });
    let tensor = json!({"inputs": [{"name": "x", "datatype": "FP32", "shape": [6], "data": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]}]});
    let mut stream = TcpStream::connect(&server.address).unwrap();
    let (status, answer) = post(&mut stream, "/v2/models/spec/infer", &tensor);
    assert_eq!(status, 200, "{answer}");
    let output = &answer["outputs"][0];
    assert_eq!(output["shape"], json!([3, 1]), "{answer}");
    assert_eq!(output["data"].as_array().unwrap().len(), 3, "{answer}");
}
