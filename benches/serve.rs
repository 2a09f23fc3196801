//! `runner serve --predict` under load: the latency of one client, the peak rate, the latency at 80 % of the peak, and
//! the same next to hostile clients.
//!
//! One thread of this process sends all requests and never waits, on the last processor; the server has the others
//! (`taskset`, of util-linux). Requests of a load are due at equal intervals or at random times (a Poisson process),
//! whether earlier ones are answered or not, and latencies count from the time at which a request was due. Run with
//! `cargo bench --bench serve`; `-- RUNNER` measures another program.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a benchmark prints its figures and exits"
)]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The most connections of the load: fewer than the server keeps.
const CONNECTIONS: usize = 200;
/// Requests at 80 % of the peak.
const NUM_REQUESTS: usize = 100_000;
/// How many seconds the latency of one client and the peak are measured.
const SECONDS: f64 = 4.0;

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

/// A command that runs on all processors before the last one.
fn pinned(program: &str, last: usize) -> Command {
    let mut command = Command::new("taskset");
    let before = last.saturating_sub(1);
    command.arg("-c").arg(format!("0-{before}")).arg(program);
    command
}

/// Moves this process to a processor.
fn pin_load(processor: usize) {
    let pid = std::process::id().to_string();
    let moved = Command::new("taskset")
        .args(["-cp", &processor.to_string(), &pid])
        .stdout(Stdio::null())
        .status();
    assert!(moved.expect("taskset starts").success());
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(runner: &str, folder: &Path, experiment: &str, edits: &[&str], last: usize) -> Self {
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
        let mut child = pinned(runner, last)
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

/// A connection that stays open, and what came of its request so far.
struct Connection {
    stream: TcpStream,
    answer: Vec<u8>,
    /// When its request was due.
    due: f64,
}

impl Connection {
    fn new(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        stream.set_nonblocking(true).expect("a socket");
        Self {
            stream,
            answer: Vec::new(),
            due: 0.0,
        }
    }

    /// Whether its request was answered with a prediction, or with something else; `None` while nothing is known.
    fn poll(&mut self) -> Option<bool> {
        let mut part = [0; 4096];
        match self.stream.read(&mut part) {
            Ok(0) => return Some(false),
            Ok(num) => self.answer.extend_from_slice(&part[..num]),
            Err(e) if e.kind() == ErrorKind::WouldBlock => return None,
            Err(_) => return Some(false),
        }
        let head = self.answer.windows(4).position(|it| it == b"\r\n\r\n")?;
        let (head, body) = self.answer.split_at(head + 4);
        let head = String::from_utf8_lossy(head);
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.and_then(|it| it.parse().ok()).unwrap_or(0);
        (body.len() >= length)
            .then(|| head.starts_with("HTTP/1.1 200") && body.starts_with(b"{\"predictions\""))
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

/// When requests are due.
#[derive(Clone, Copy)]
enum Arrivals {
    /// So many are always open, for so many seconds.
    Closed(usize, f64),
    /// At equal intervals with so many a second, so many in all.
    Even(f64, usize),
    /// The same at random times.
    Random(f64, usize),
}

/// Sends requests when they are due, on as many connections as that takes, from one thread that never waits.
fn load(address: &str, row: &str, arrivals: Arrivals) -> Load {
    let request = format!(
        "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{row}",
        row.len()
    );
    let (mut idle, mut busy): (Vec<Connection>, Vec<Connection>) = Default::default();
    let (mut latencies, mut num_errors, mut num_sent) = (Vec::new(), 0, 0);
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let mut due = 0.0;
    let started = Instant::now();
    let now = || started.elapsed().as_secs_f64();
    loop {
        let is_over = match arrivals {
            Arrivals::Closed(_, seconds) => now() > seconds,
            Arrivals::Even(_, num) | Arrivals::Random(_, num) => num_sent == num,
        };
        if is_over && busy.is_empty() {
            break;
        }
        let is_due = match arrivals {
            Arrivals::Closed(num, _) => busy.len() < num,
            _ => due <= now() && busy.len() < CONNECTIONS,
        };
        if is_due && !is_over {
            let mut connection = idle.pop().unwrap_or_else(|| Connection::new(address));
            let written = connection.stream.write(request.as_bytes());
            connection.due = due;
            match arrivals {
                Arrivals::Closed(..) => connection.due = now(),
                Arrivals::Even(rate, _) => due += 1.0 / rate,
                Arrivals::Random(rate, _) => due -= (1.0 - random(&mut state)).ln() / rate,
            }
            num_sent += 1;
            if written.is_ok_and(|num| num == request.len()) {
                busy.push(connection);
            } else {
                num_errors += 1;
            }
        }
        let mut at = 0;
        while let Some(connection) = busy.get_mut(at) {
            let Some(is_good) = connection.poll() else {
                at += 1;
                continue;
            };
            latencies.push((now() - connection.due) * 1e3);
            num_errors += usize::from(!is_good);
            let mut answered = busy.swap_remove(at);
            answered.answer.clear();
            if is_good {
                idle.push(answered);
            }
        }
    }
    let seconds = now();
    latencies.sort_by(f64::total_cmp);
    Load {
        latencies,
        num_errors,
        seconds,
    }
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
    let last = std::thread::available_parallelism().map_or(1, usize::from) - 1;
    for (experiment, edits, row) in NETWORKS {
        let server = Server::start(&runner.to_string_lossy(), &place, experiment, edits, last);
        pin_load(last);
        let measure = |arrivals| load(&server.address, row, arrivals);
        let tell = |what: &str, load: &Load| println!("{experiment}, {what}: {}", load.shown());
        measure(Arrivals::Closed(1, SECONDS / 4.0));
        let alone = measure(Arrivals::Closed(1, SECONDS));
        tell("one client", &alone);
        let loads = [2, 4, 8, 16, 32, 64, 128].map(|clients| {
            let load = measure(Arrivals::Closed(clients, SECONDS));
            tell(&format!("{clients} clients"), &load);
            (clients, load)
        });
        let peak = loads
            .iter()
            .map(|(_, load)| load.rate())
            .fold(0.0, f64::max);
        let (eighty, half) = (0.8 * peak, 0.5 * peak);
        // Little's law: this rate needs as many requests at a time on average, whatever their arrivals.
        let reached = loads.iter().find(|(_, load)| load.rate() >= eighty);
        if let Some((clients, load)) = reached {
            let middle = percentile(&load.latencies, 0.5);
            let ratio = middle / percentile(&alone.latencies, 0.5);
            println!(
                "{experiment}, 80 % of the peak needs {clients} requests at a time, whose median is {ratio:.2} times one client's"
            );
        }
        for (what, arrivals) in [
            (
                "80 % of the peak, even",
                Arrivals::Even(eighty, NUM_REQUESTS),
            ),
            (
                "80 % of the peak, random",
                Arrivals::Random(eighty, NUM_REQUESTS),
            ),
            (
                "half of the peak, random",
                Arrivals::Random(half, NUM_REQUESTS / 4),
            ),
            (
                "80 % of one client's rate, random",
                Arrivals::Random(0.8 * alone.rate(), NUM_REQUESTS / 4),
            ),
        ] {
            let load = measure(arrivals);
            tell(what, &load);
            let ratio = percentile(&load.latencies, 0.99) / percentile(&alone.latencies, 0.5);
            println!("{experiment}, {what}: 99 % is {ratio:.2} times one client's median");
        }
        let is_over = AtomicBool::new(false);
        let (attacked, num) = std::thread::scope(|scope| {
            let attacker = scope.spawn(|| attack(&server.address, &is_over));
            let load = measure(Arrivals::Random(half, NUM_REQUESTS / 4));
            is_over.store(true, Ordering::Release);
            (load, attacker.join().expect("the attacker"))
        });
        tell(
            &format!("half of the peak with {num} hostile connections"),
            &attacked,
        );
        if let Some(peak) = server.peak() {
            println!("{experiment}, most memory of the server: {peak} MiB");
        }
    }
    let _ = std::fs::remove_dir_all(place);
}
