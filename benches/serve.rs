//! `runner serve --predict` under load: the latency of one client, the peak rate, the latency at 80 % of the peak, and
//! the same next to hostile clients.
//!
//! Clients are threads of this process, each with a connection that stays open; they share the processor with the
//! server. Under load requests come at random times (a Poisson process), whether earlier ones are answered or not, and
//! latencies count from the time at which a request was due. Run with `cargo bench --bench serve`; `-- RUNNER` measures
//! another program.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark prints its figures and exits"
)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Connections of the load.
const CLIENTS: usize = 32;
/// Requests at 80 % of the peak.
const NUM_REQUESTS: usize = 100_000;
/// How long the latency of one client and the peak are measured.
const TIME: Duration = Duration::from_secs(4);

/// Networks of `experiments`, settings that shorten their training, and a row for each.
const NETWORKS: [(&str, &[&str], &str); 2] = [
    (
        "iris_csv",
        &["sweep.grid={}", "experiment.seeds=[1]", "train.epochs=5"],
        r#"{"sepal_length": 5.1, "sepal_width": 3.5, "petal_length": 1.4, "petal_width": 0.2}"#,
    ),
    (
        "transformer_classifier",
        &["train.epochs=2"],
        r#"{"input": [2, 3, 4, 2, 3, 4, 2, 3]}"#,
    ),
];

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(runner: &str, folder: &Path, experiment: &str, edits: &[&str]) -> Self {
        let spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
        let trained = Command::new(runner)
            .current_dir(folder)
            .arg("run")
            .arg(spec.join(format!("{experiment}.toml")))
            .args(["--quiet", "--jobs", "1"])
            .args(edits.iter().flat_map(|edit| ["--set", edit]))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(trained.expect("runner starts").success());
        let mut child = Command::new(runner)
            .current_dir(folder)
            .args(["serve", &format!("results/{experiment}"), "--predict"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("runner starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let address = line.trim().trim_start_matches("http://");
        Self {
            address: address.trim_end_matches('/').to_owned(),
            child,
        }
    }

    /// Its peak memory, in MiB.
    fn peak(&self) -> Option<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib / 1024)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that stays open.
struct Client {
    stream: BufReader<TcpStream>,
    request: Vec<u8>,
}

impl Client {
    fn new(address: &str, row: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        let head = format!(
            "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{row}",
            row.len()
        );
        Self {
            stream: BufReader::new(stream),
            request: head.into_bytes(),
        }
    }

    /// Sends one request, and returns whether the response is a prediction.
    fn ask(&mut self) -> bool {
        self.answer().is_some_and(|is_good| is_good)
    }

    fn answer(&mut self) -> Option<bool> {
        self.stream.get_mut().write_all(&self.request).ok()?;
        let (mut line, mut is_good, mut length) = (String::new(), false, 0);
        loop {
            line.clear();
            self.stream.read_line(&mut line).ok()?;
            match line.trim_end().split_once(": ") {
                Some(("Content-Length", value)) => length = value.parse().ok()?,
                Some(_) => {}
                None if line.starts_with("HTTP/1.1 ") => is_good = line[9..].starts_with("200"),
                None if line == "\r\n" => break,
                None => return None,
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        Some(is_good && body.starts_with(b"{\"predictions\""))
    }
}

/// A number from 0 to 1 (xorshift).
fn random(state: &mut u64) -> f64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) as f64 / (1_u64 << 53) as f64
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len() as f64 * share).ceil() as usize;
    sorted[at.clamp(1, sorted.len()) - 1]
}

/// The result of many requests: sorted latencies in milliseconds, and the number of wrong responses.
struct Load {
    latencies: Vec<f64>,
    num_errors: usize,
    seconds: f64,
}

impl Load {
    fn of(parts: Vec<(Vec<f64>, usize)>, started: Instant) -> Self {
        let seconds = started.elapsed().as_secs_f64();
        let num_errors = parts.iter().map(|(_, errors)| errors).sum();
        let mut latencies: Vec<f64> = parts.into_iter().flat_map(|(each, _)| each).collect();
        latencies.sort_by(f64::total_cmp);
        Self {
            latencies,
            num_errors,
            seconds,
        }
    }

    fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.seconds
    }

    fn shown(&self) -> String {
        let at = |share| percentile(&self.latencies, share);
        format!(
            "{:.0} requests a second, {} errors of {}, latency {:.3} ms (median), {:.3} ms (99 %), {:.3} ms (99.9 %)",
            self.rate(),
            self.num_errors,
            self.latencies.len(),
            at(0.5),
            at(0.99),
            at(0.999)
        )
    }
}

/// Each client sends the next request when it has a response.
fn closed(address: &str, row: &str, clients: usize, time: Duration) -> Load {
    let started = Instant::now();
    let parts = std::thread::scope(|scope| {
        let one = || {
            let mut client = Client::new(address, row);
            let (mut latencies, mut errors) = (Vec::new(), 0);
            while started.elapsed() < time {
                let asked = Instant::now();
                errors += usize::from(!client.ask());
                latencies.push(asked.elapsed().as_secs_f64() * 1e3);
            }
            (latencies, errors)
        };
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(one)).collect();
        let ended = threads.into_iter().map(|it| it.join().expect("a client"));
        ended.collect()
    });
    Load::of(parts, started)
}

/// Requests that are due at random times at a rate.
fn open(address: &str, row: &str, rate: f64, num: usize) -> Load {
    let started = Instant::now();
    let left = AtomicUsize::new(num);
    let one = |seed: u64| {
        let mut client = Client::new(address, row);
        let (mut latencies, mut errors) = (Vec::new(), 0);
        let mut state = 0x9e37_79b9_7f4a_7c15 ^ (seed + 1);
        let mut due = 0.0;
        let take = |left: usize| left.checked_sub(1);
        while left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
            .is_ok()
        {
            due -= (1.0 - random(&mut state)).ln() * CLIENTS as f64 / rate;
            let wait = due - started.elapsed().as_secs_f64();
            if wait > 0.0 {
                std::thread::sleep(Duration::from_secs_f64(wait));
            }
            if !client.ask() {
                errors += 1;
                client = Client::new(address, row);
            }
            latencies.push((started.elapsed().as_secs_f64() - due) * 1e3);
        }
        (latencies, errors)
    };
    let one = &one;
    let parts = std::thread::scope(|scope| {
        let threads = (0..CLIENTS).map(|at| scope.spawn(move || one(at as u64)));
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(|it| it.join().expect("a client"));
        ended.collect()
    });
    Load::of(parts, started)
}

/// Opens connections that never become requests, up to 1000 a second, and keeps the last 500: silent ones, headers and
/// bodies that do not end, and rows that are wrong.
fn attack(address: &str, is_over: &AtomicBool) -> usize {
    let begins: [&[u8]; 4] = [
        b"",
        b"GET / HTTP/1.1\r\nHost: ",
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n{\"input\": [",
        b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\n{\"x\": [[[[[[",
    ];
    let mut kept = std::collections::VecDeque::new();
    let mut num = 0;
    while !is_over.load(Ordering::Acquire) {
        if let Ok(mut stream) = TcpStream::connect(address) {
            let _ = stream.write_all(begins[num % begins.len()]);
            kept.push_back(stream);
            num += 1;
        }
        if kept.len() > 500 {
            kept.pop_front();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    num
}

fn main() {
    let given = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let built = option_env!("CARGO_BIN_EXE_runner").map(str::to_owned);
    let runner = given.or(built).expect("the path of runner");
    let runner = std::fs::canonicalize(runner).expect("runner");
    let place = std::env::temp_dir().join(format!("runner-serve-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a folder");
    for (experiment, edits, row) in NETWORKS {
        let server = Server::start(&runner.to_string_lossy(), &place, experiment, edits);
        closed(&server.address, row, 1, TIME / 4);
        let alone = closed(&server.address, row, 1, TIME);
        println!("{experiment}, one client: {}", alone.shown());
        let peak = closed(&server.address, row, CLIENTS, TIME);
        println!("{experiment}, {CLIENTS} clients: {}", peak.shown());
        let busy = open(&server.address, row, 0.8 * peak.rate(), NUM_REQUESTS);
        println!("{experiment}, 80 % of the peak: {}", busy.shown());
        let ratio = percentile(&busy.latencies, 0.99) / percentile(&alone.latencies, 0.5);
        println!("{experiment}, 99 % at 80 % against the median of one client: {ratio:.2}");
        let half = open(&server.address, row, 0.5 * peak.rate(), NUM_REQUESTS / 4);
        println!("{experiment}, half of the peak: {}", half.shown());
        let is_over = AtomicBool::new(false);
        let (attacked, num) = std::thread::scope(|scope| {
            let attacker = scope.spawn(|| attack(&server.address, &is_over));
            let load = open(&server.address, row, 0.5 * peak.rate(), NUM_REQUESTS / 4);
            is_over.store(true, Ordering::Release);
            (load, attacker.join().expect("the attacker"))
        });
        println!(
            "{experiment}, the same with {num} hostile connections: {}",
            attacked.shown()
        );
        if let Some(peak) = server.peak() {
            println!("{experiment}, most memory of the server: {peak} MiB");
        }
    }
    let _ = std::fs::remove_dir_all(place);
}
