//! What is sent to an MLflow server, tested with a small replacement for one. `tests/README.md` says how to try a real one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use burn_runner::event::Outcome;
use burn_runner::export::Exported;
use burn_runner::export::mlflow::{Credentials, Experiment, Sent, Server, ServerError, Unfinished};
use serde_json::{Value as Json, json};

use super::exports::{end, go_on, record, runs};
use super::support::run as run_program;

/// The content of the replacement server, and its requests.
#[derive(Default)]
struct Held {
    experiment: Option<Json>,
    runs: Vec<Json>,
    requests: Vec<String>,
    /// The number of the request, from 1, that is processed but no longer answered.
    cut: Option<usize>,
    /// Each number of a metric that was sent.
    history: Vec<String>,
}

struct StandIn {
    held: Arc<Mutex<Held>>,
    url: String,
}

impl StandIn {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let held = Arc::new(Mutex::new(Held::default()));
        let shared = held.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { held, url }
    }

    /// The requests since the last call.
    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.held.lock().unwrap().requests)
    }

    /// All of its content, without ids.
    fn state(&self) -> (Vec<Json>, Vec<String>) {
        let held = self.held.lock().unwrap();
        let mut history = held.history.clone();
        history.sort();
        (held.runs.clone(), history)
    }
}

/// Answers the requests of a connection.
fn serve(stream: TcpStream, held: &Mutex<Held>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut writer = stream;
    loop {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            head.push(line.trim_end().to_owned());
        }
        let length = head.iter().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.parse().unwrap())
        });
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).unwrap();
        let body: Json = serde_json::from_slice(&body).unwrap_or_default();
        let mut words = head[0].split(' ');
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let request = path.trim_start_matches("/api/2.0/mlflow/");
        let mut held = held.lock().unwrap();
        let shown = format!("{method} {request} {body}");
        held.requests
            .push(shown.trim_end_matches(" null").to_owned());
        let (status, answer) = held.answer(request, &body);
        if held.cut == Some(held.requests.len()) {
            return;
        }
        // As MLflow answers an upload.
        let answer = if answer.is_null() {
            String::new()
        } else {
            answer.to_string()
        };
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        writer.write_all((head + &answer).as_bytes()).unwrap();
    }
}

impl Held {
    fn answer(&mut self, request: &str, body: &Json) -> (&'static str, Json) {
        let id = body["run_id"]
            .as_str()
            .and_then(|id| id.parse::<usize>().ok());
        match request.split('?').next().unwrap() {
            "experiments/get-by-name" => match &self.experiment {
                Some(experiment) => ("200 OK", json!({ "experiment": experiment })),
                None => (
                    "404 Not Found",
                    json!({"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "there is none"}),
                ),
            },
            "experiments/create" => {
                self.experiment = Some(json!({"experiment_id": "7", "name": body["name"]}));
                ("200 OK", json!({"experiment_id": "7"}))
            }
            // A page holds one run.
            "runs/search" => {
                let page: usize = body["page_token"]
                    .as_str()
                    .map_or(0, |p| p.parse().unwrap());
                let mut answer = json!({});
                if let Some(run) = self.runs.get(page) {
                    answer = json!({ "runs": [run], "next_page_token": (page + 1).to_string() });
                }
                ("200 OK", answer)
            }
            "runs/create" => {
                let run = json!({
                    "info": {
                        "run_id": self.runs.len().to_string(),
                        "status": "RUNNING",
                        "run_name": body["run_name"],
                        "artifact_uri": format!("mlflow-artifacts:/7/{}/artifacts", self.runs.len()),
                    },
                    "data": {"metrics": [], "params": [], "tags": body["tags"]},
                });
                self.runs.push(run.clone());
                ("200 OK", json!({ "run": run }))
            }
            "runs/log-batch" => {
                let data = &mut self.runs[id.unwrap()]["data"];
                for kind in ["params", "tags", "metrics"] {
                    for entry in body[kind].as_array().into_iter().flatten() {
                        if kind == "metrics" {
                            self.history.push(format!("{id:?} {entry}"));
                        }
                        let there = data[kind].as_array_mut().unwrap();
                        there.retain(|old| old["key"] != entry["key"]);
                        there.push(entry.clone());
                    }
                }
                ("200 OK", json!({}))
            }
            "runs/update" => {
                let info = &mut self.runs[id.unwrap()]["info"];
                for key in ["status", "end_time"] {
                    if !body[key].is_null() {
                        info[key] = body[key].clone();
                    }
                }
                ("200 OK", json!({}))
            }
            other if other.starts_with("/api/2.0/mlflow-artifacts/artifacts/7/") => {
                ("200 OK", Json::Null)
            }
            _ => ("404 Not Found", Json::Null),
        }
    }
}

fn export(url: &str, runs: &[Exported], unfinished: Unfinished) -> Result<Sent, ServerError> {
    let server = Server::new(url, &Credentials::None)?;
    let mut experiment = Experiment::open(&server, "spec", "Does it work?")?;
    let mut sent = Sent::default();
    for run in runs {
        let mut run = run.clone();
        run.losses = vec![0.5, f64::NAN, f64::INFINITY, 0.25];
        experiment.export(&run, unfinished, &mut sent)?;
    }
    Ok(sent)
}

#[test]
fn files_of_a_run_that_has_ended_are_sent_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = StandIn::start();
    let mut run = record(folder.path(), runs().remove(1), 1, None);
    let to = Server::new(&server.url, &Credentials::None).unwrap();
    let send = |run: &Exported| {
        let mut experiment = Experiment::open(&to, "spec", "").unwrap();
        experiment.send_artifacts(true);
        let sent = experiment.export(run, Unfinished::Running, &mut Sent::default());
        sent.unwrap();
        let all = server.requests().into_iter();
        let put: Vec<String> = all.filter(|request| request.starts_with("PUT")).collect();
        put
    };
    std::fs::create_dir_all(&run.folder.0).unwrap();
    std::fs::write(run.folder.0.join("run.toml"), "seed = 1").unwrap();
    assert!(send(&run).is_empty(), "it still changes");
    go_on(&mut run, 2, 2);
    end(&mut run, Outcome::Completed);
    let put = send(&run);
    let first = "PUT /api/2.0/mlflow-artifacts/artifacts/7/0/artifacts/run.toml";
    assert_eq!(put.first().map(String::as_str), Some(first), "{put:?}");
    assert!(send(&run).is_empty());
    std::fs::write(run.folder.0.join("run.log"), "more").unwrap();
    assert_eq!(send(&run).len(), put.len() + 1);

    // A server that leaves artifacts to the storage of its clients.
    server.held.lock().unwrap().runs[0]["info"]["artifact_uri"] = json!("s3://bucket/7/0");
    std::fs::write(run.folder.0.join("run.log"), "changed").unwrap();
    let mut experiment = Experiment::open(&to, "spec", "").unwrap();
    experiment.send_artifacts(true);
    let sent = experiment.export(&run, Unfinished::Running, &mut Sent::default());
    let error = sent.unwrap_err().to_string();
    assert!(error.contains("`s3://bucket/7/0`"), "{error}");
}

/// There are many parameters: the first two and their number.
fn shown(requests: Vec<String>) -> String {
    let short = requests.into_iter().map(|request| {
        let Some((head, body)) = request.split_once(" {") else {
            return request;
        };
        let mut body: Json = serde_json::from_str(&format!("{{{body}")).unwrap();
        if let Some(params) = body.get_mut("params").and_then(Json::as_array_mut) {
            let more = params.len().saturating_sub(2);
            params.truncate(2);
            if more > 0 {
                params.push(json!(format!("and {more} more")));
            }
        }
        format!("{head} {body}")
    });
    short.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_is_sent_once_and_then_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let server = StandIn::start();
    let mut run = record(folder.path(), runs().remove(1), 1, None);
    let sent = export(&server.url, std::slice::from_ref(&run), Unfinished::Running).unwrap();
    assert_eq!((sent.created, sent.updated, sent.metrics), (1, 0, 4));
    let first = shown(server.requests());

    go_on(&mut run, 2, 2);
    end(&mut run, Outcome::Completed);
    let sent = export(&server.url, std::slice::from_ref(&run), Unfinished::Running).unwrap();
    assert_eq!((sent.created, sent.updated, sent.metrics), (0, 1, 8));
    let second = shown(server.requests());

    let sent = export(
        &server.url,
        std::slice::from_ref(&run),
        Unfinished::Abandoned,
    )
    .unwrap();
    assert_eq!(sent, Sent::default());
    let third = shown(server.requests());
    insta::assert_snapshot!(format!("{first}\n\n{second}\n\n{third}"));
}

/// Wherever a server fails, the next export leaves the same state as an uninterrupted one.
#[test]
fn what_was_cut_off_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let runs: Vec<_> = runs()
        .into_iter()
        .map(|plan| record(folder.path(), plan, 2, Some(Outcome::Completed)))
        .collect();
    let whole = StandIn::start();
    export(&whole.url, &runs, Unfinished::Running).unwrap();
    let num = whole.requests().len();
    assert!(num > 8);
    for cut in 1..=num {
        let server = StandIn::start();
        server.held.lock().unwrap().cut = Some(cut);
        let error = export(&server.url, &runs, Unfinished::Running).unwrap_err();
        assert!(matches!(error, ServerError::Unreachable { .. }), "{error}");
        server.held.lock().unwrap().cut = None;
        export(&server.url, &runs, Unfinished::Running).unwrap();
        assert_eq!(server.state(), whole.state(), "cut at request {cut}");
    }
}

#[test]
fn a_run_that_nobody_goes_on_with_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let server = StandIn::start();
    let run = record(folder.path(), runs().remove(0), 1, None);
    for (unfinished, status) in [
        (Unfinished::Running, "RUNNING"),
        (Unfinished::Abandoned, "KILLED"),
    ] {
        export(&server.url, std::slice::from_ref(&run), unfinished).unwrap();
        assert_eq!(server.state().0[0]["info"]["status"], status);
    }
}

/// A server that always gives the same answer.
fn saying(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                line.clear();
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

#[test]
fn servers_that_are_none_are_told() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("spec.toml"), super::support::IRIS).unwrap();
    let (code, _, stderr) = run_program(folder.path(), &["run", "spec.toml", "--quiet"]);
    assert_eq!(code, 0, "{stderr}");
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let urls = [
        format!("http://{nobody}"),
        "127.0.0.1:5000".into(),
        "http://user:secret@127.0.0.1".into(),
        saying("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>"),
        saying("HTTP/1.1 302 Found\r\nlocation: https://other/\r\ncontent-length: 0\r\n\r\n"),
        saying("HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\nnone"),
        saying("HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}"),
        saying("HTTP/1.1 500 Oh\r\ncontent-length: 25\r\n\r\n{\"message\":\"no database\"}"),
        saying("HTTP/1.1 200 OK\r\ncontent-length: 600\r\n\r\n{\"experiment"),
    ];
    let mut text = String::new();
    for url in &urls {
        let arguments = ["export", "mlflow", "results/spec", "--to", url];
        let (code, _, stderr) = run_program(folder.path(), &arguments);
        let stderr = stderr.replace(url.as_str(), "[URL]");
        text += &format!("{code}\n{stderr}\n");
        assert!(!stderr.contains("secret"));
    }
    insta::assert_snapshot!(text);
}
