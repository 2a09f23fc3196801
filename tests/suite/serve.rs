//! `runner serve`: what it answers, what it refuses, and what a browser shows.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::support::{IRIS, chromium, completed, folder_with, run, runner};

const TOKEN: &str = "0123456789abcdef";

/// A server of a folder's results, or of a network's predictions.
pub(super) struct Server {
    pub child: Child,
    pub address: String,
}

impl Server {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::of(folder, "results", arguments)
    }

    /// Serves a path of a folder.
    pub fn of(folder: &Path, path: &str, arguments: &[&str]) -> Self {
        let mut child = runner(folder)
            .args(["serve", path])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let stdout = child.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("http://").expect("an address");
        let address = address.trim_end_matches('/').to_owned();
        Self { child, address }
    }

    /// Sends bytes, and returns all that comes back.
    fn send(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(bytes).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// The status, the head and the body of an answer. `|` ends lines of the head.
    pub fn get(&self, target: &str, headers: &str) -> (u16, String, String) {
        let host = &self.address;
        let head = format!("GET {target} HTTP/1.1|Host: {host}|{headers}|").replace('|', "\r\n");
        let answer = self.send(head.as_bytes());
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (status(&answer), head.to_owned(), body.to_owned())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn status(answer: &str) -> u16 {
    let status = answer.split(' ').nth(1).unwrap_or_default();
    status.parse().unwrap_or(0)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    let found = lines.find(|(found, _)| found.eq_ignore_ascii_case(name));
    found.map(|(_, value)| value)
}

#[test]
fn a_report_is_served_in_every_form() {
    let folder = completed(IRIS, &[]);
    let server = Server::start(folder.path(), &[]);
    let (code, head, _) = server.get("/", "");
    assert_eq!((code, header(&head, "Location")), (303, Some("/spec/")));
    let (code, head, _) = server.get("/spec", "");
    assert_eq!((code, header(&head, "Location")), (303, Some("/spec/")));
    let (code, head, page) = server.get("/spec/", "");
    assert_eq!(code, 200, "{head}");
    assert!(
        page.contains("1 of 1 runs completed") && page.contains("runner-live"),
        "{page}"
    );
    for back in ["<a href=\"/\">Experiments</a>", "<a href=\"/-/runs\">"] {
        assert!(page.contains(back), "{back}");
    }
    for (name, value) in [
        ("Content-Type", "text/html; charset=utf-8"),
        ("X-Content-Type-Options", "nosniff"),
        ("Cache-Control", "no-store"),
        ("Referrer-Policy", "no-referrer"),
    ] {
        assert_eq!(header(&head, name), Some(value));
    }
    let policy = header(&head, "Content-Security-Policy").unwrap();
    assert!(policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'none'"));
    // What the browser already has is not sent again.
    let tag = header(&head, "ETag").unwrap();
    let (code, _, body) = server.get("/spec/", &format!("If-None-Match: {tag}|"));
    assert_eq!((code, body.as_str()), (304, ""));
    // The other files are those that `runner report` writes.
    for form in ["report.json", "report.csv", "report.md"] {
        let (code, _, body) = server.get(&format!("/spec/{form}"), "");
        let file = folder.path().join("results/spec").join(form);
        let file = std::fs::read_to_string(file).unwrap();
        assert_eq!((code, body.trim_end()), (200, file.trim_end()), "{form}");
    }
    let head = format!("HEAD /spec/ HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    let answer = server.send(head.as_bytes());
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("\r\n\r\n"),
        "{answer}"
    );
    assert_eq!(
        header(&answer, "Content-Length"),
        Some(page.len().to_string().as_str())
    );
}

#[test]
fn nothing_else_is_served_and_nobody_else_is_answered() {
    let folder = completed(IRIS, &[]);
    std::fs::write(folder.path().join("secret"), "secret").unwrap();
    let results = folder.path().join("results");
    #[cfg(unix)]
    {
        // An experiment from elsewhere is not part of the tree.
        let elsewhere = folder.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        std::fs::copy(results.join("spec/plan.json"), elsewhere.join("plan.json")).unwrap();
        std::os::unix::fs::symlink(&elsewhere, results.join("link")).unwrap();
    }
    let server = Server::start(folder.path(), &[]);
    let host = &server.address;
    let long = "a".repeat(20_000);
    for (head, expected) in [
        (format!("GET /spec/plan.json HTTP/1.1|Host: {host}||"), 404),
        (
            format!("GET /spec/experiment.toml HTTP/1.1|Host: {host}||"),
            404,
        ),
        (format!("GET /../secret HTTP/1.1|Host: {host}||"), 404),
        (
            format!("GET /spec/../../secret HTTP/1.1|Host: {host}||"),
            404,
        ),
        (format!("GET /%2e%2e/secret HTTP/1.1|Host: {host}||"), 404),
        (
            format!("GET /spec/..%2f..%2fsecret HTTP/1.1|Host: {host}||"),
            404,
        ),
        (format!("GET /spec%00/ HTTP/1.1|Host: {host}||"), 404),
        (format!("GET /link/ HTTP/1.1|Host: {host}||"), 404),
        (format!("GET /elsewhere/ HTTP/1.1|Host: {host}||"), 404),
        (format!("GET //evil.example/ HTTP/1.1|Host: {host}||"), 400),
        (
            format!("GET http://evil.example/ HTTP/1.1|Host: {host}||"),
            400,
        ),
        (format!("GET /spec/|Host: {host}||"), 400),
        (
            format!("POST /spec/ HTTP/1.1|Host: {host}|Content-Length: 1||x"),
            405,
        ),
        (format!("PUT /spec/ HTTP/1.1|Host: {host}||"), 405),
        (format!("GET /{long} HTTP/1.1|Host: {host}||"), 431),
        (format!("GET / HTTP/1.1|Host: {host}|X: {long}||"), 431),
        ("GET /spec/ HTTP/1.1||".to_owned(), 400),
        ("GET /spec/ HTTP/1.1|Host: evil.example||".to_owned(), 403),
        (
            "GET /spec/ HTTP/1.1|Host: localhost.evil.example||".to_owned(),
            403,
        ),
        ("GET /spec/ HTTP/1.1|Host: localhost:1||".to_owned(), 200),
        ("\u{16}\u{3}\u{1}\u{2}\u{0}".to_owned(), 400),
    ] {
        let answer = server.send(head.replace('|', "\r\n").as_bytes());
        let shown: String = head.chars().take(80).collect();
        assert_eq!(status(&answer), expected, "{shown}");
        assert!(!answer.contains("secret"), "{shown}");
        // What is not even HTTP is refused by the library, without a body.
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        assert!(
            body.is_empty() || head.contains("X-Content-Type-Options: nosniff"),
            "{shown}"
        );
    }
    // A silent connection does not keep others from being answered.
    let silent: Vec<_> = (0..20).map(|_| TcpStream::connect(host).unwrap()).collect();
    assert_eq!(server.get("/spec/", "").0, 200);
    drop(silent);
}

#[test]
fn several_experiments_are_listed_with_how_far_they_are() {
    let folder = completed(IRIS, &[]);
    let fault = [
        "run",
        "spec.toml",
        "--set",
        "experiment.name=broken",
        "--inject-fault",
        "*@epoch:2=panic",
    ];
    run(folder.path(), &fault);
    let server = Server::start(folder.path(), &[]);
    let (code, _, page) = server.get("/", "");
    assert_eq!(code, 200);
    let row = |name: &str| {
        page.lines()
            .find(|line| line.contains(&format!("/{name}/")))
            .unwrap_or_default()
    };
    assert!(
        row("broken").contains("<td>1 failed</td><td>0 of 1</td><td>-</td><td>just now</td>"),
        "{page}"
    );
    assert!(
        row("spec").contains("<td>completed</td><td>1 of 1</td><td>valid/accuracy "),
        "{page}"
    );
    // The first address is refused again, with a remedy.
    let port = server.address.rsplit(':').next().unwrap();
    let (code, _, stderr) = run(folder.path(), &["serve", "results", "--port", port]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains(&format!("another program is using the port {port}")),
        "{stderr}"
    );
}

#[test]
fn others_need_a_token() {
    let folder = completed(IRIS, &[]);
    let (code, _, stderr) = run(folder.path(), &["serve", "--listen", "0.0.0.0"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("there is no token") && stderr.contains("--token"),
        "{stderr}"
    );
    let (code, _, stderr) = run(folder.path(), &["serve", "--token", "short"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("at least 16 characters"), "{stderr}");
    let (code, _, stderr) = run(folder.path(), &["serve", "nowhere"]);
    assert_eq!(code, 2, "{stderr}");
    let server = Server::start(folder.path(), &["--token", TOKEN]);
    let (code, head, body) = server.get("/spec/", "");
    assert_eq!(
        (code, header(&head, "WWW-Authenticate").is_some()),
        (401, true)
    );
    assert!(!body.contains("completed"));
    assert_eq!(server.get("/spec/?token=0123456789abcdeg", "").0, 401);
    assert_eq!(
        server
            .get("/spec/", &format!("Authorization: Bearer {TOKEN}|"))
            .0,
        200
    );
    // The token is removed from the address, and the browser keeps a cookie that does not contain it.
    let (code, head, _) = server.get(&format!("/spec/?token={TOKEN}"), "");
    assert_eq!((code, header(&head, "Location")), (303, Some("/spec/")));
    let cookie = header(&head, "Set-Cookie").unwrap();
    assert!(
        cookie.contains("HttpOnly") && !cookie.contains(TOKEN),
        "{cookie}"
    );
    let cookie = cookie.split(';').next().unwrap();
    assert_eq!(server.get("/spec/", &format!("Cookie: {cookie}|")).0, 200);
    assert_eq!(server.get("/spec/", &format!("Cookie: {cookie}0|")).0, 401);
}

/// A page after its scripts have run for some virtual time. Time stops while an answer is awaited.
pub(super) fn shown_by(chromium: &Path, address: &str, millis: u32) -> (String, String) {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(chromium)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
        .args(["--enable-logging=stderr", "--disable-dev-shm-usage"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--virtual-time-budget={millis}"))
        .arg(address)
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// Passes requests on to a server, and does something before the third: a page, its first poll, its second.
fn between(server: &str, mut before_third: impl FnMut() + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = server.to_owned();
    std::thread::spawn(move || {
        let mut num = 0;
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                head.push(byte[0]);
            }
            if head.starts_with(b"GET /spec/ ") {
                num += 1;
                if num == 3 {
                    before_third();
                }
            }
            let Ok(mut to) = TcpStream::connect(&server) else {
                continue;
            };
            let mut answer = Vec::new();
            let passed = to
                .write_all(&head)
                .and_then(|()| to.read_to_end(&mut answer));
            if passed.is_ok() {
                let _ = stream.write_all(&answer);
            }
        }
    });
    address
}

#[test]
fn a_browser_shows_the_report_as_runs_go_on() {
    let Some(chromium) = chromium() else { return };
    let spec = format!("[experiment]\nseeds = [1, 2]\n{IRIS}");
    let folder = folder_with(&spec);
    let (_, _, stderr) = run(
        folder.path(),
        &["run", "spec.toml", "--inject-fault", "*-s2@1"],
    );
    assert!(stderr.contains("1 of 2 runs completed"), "{stderr}");
    let server = Server::start(folder.path(), &[]);
    let place = folder.path().to_owned();
    let asked = server.address.clone();
    // The second run is trained while the page is open; the server is polled until it shows it.
    let address = between(&server.address, move || {
        let (code, _, stderr) = run(&place, &["run", "spec.toml"]);
        assert_eq!(code, 0, "{stderr}");
        let is_new = || {
            let mut stream = TcpStream::connect(&asked).unwrap();
            let head = "GET /spec/report.md HTTP/1.1\r\nHost: localhost\r\n\r\n";
            stream.write_all(head.as_bytes()).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer.contains("2 of 2 runs completed")
        };
        while !is_new() {
            std::thread::yield_now();
        }
    });
    let (page, log) = shown_by(&chromium, &format!("http://{address}/spec/"), 7000);
    assert!(page.contains("2 of 2 runs completed"), "{page}\n{log}");
    assert!(page.contains("<html lang=\"en\"><head>"), "{page}");
    assert!(!log.contains("CONSOLE"), "{log}");
}

/// Silent connections give way: they cannot lock out others.
#[test]
fn silent_connections_lock_nobody_out() {
    let folder = completed(IRIS, &[]);
    let server = Server::start(folder.path(), &[]);
    let connect = |begin: &[u8]| {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.write_all(begin).unwrap();
        stream
    };
    let mut silent: Vec<TcpStream> = (0..64).map(|_| connect(b"")).collect();
    let (code, _, page) = server.get("/spec/", "");
    assert_eq!(code, 200, "{page}");
    // Headers that never end count as silence, and the oldest connection is closed.
    silent.extend((0..64).map(|_| connect(b"GET / HTTP/1.1\r\nHost: ")));
    assert_eq!(silent[0].read(&mut [0]).unwrap_or(0), 0);
    let (code, _, page) = server.get("/spec/", "");
    assert_eq!(code, 200, "{page}");
}
