//! A small web server that shows the reports of a results tree, and nothing else.
//!
//! Every answer is made in memory from records (`site`); no file is ever sent, so a path can name nothing but an
//! experiment and a form of its report. Requests are believed in nothing (`request`): only GET and HEAD, a head of
//! limited size that has to come within a limited time, a limited number of connections (`connections`), each for one
//! request and for a limited time in all.
//!
//! Who may read: without a token only who asks for this machine by a name that means this machine, so that no web page
//! can have a browser ask for it under a name of its own (DNS rebinding); with a token, who has it (`access`).

mod access;
mod connections;
mod page;
mod request;
mod site;

use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use access::{Access, check_token};
use connections::{Connections, Slot};
use request::{Refused, Request};
use site::Site;

/// Connections at once.
pub const MAX_CONNECTIONS: usize = 64;

/// How long a new connection waits for one that gives way to it.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a request's head may take.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// How slowly an answer may be read, in bytes a second, beyond the time that any answer has.
const SLOWEST: u64 = 64 << 10;

/// What a browser may do with a page: show it with the styles and scripts that are in it, and ask this server again.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The server, bound to its address.
pub struct Server {
    listener: TcpListener,
    served: Arc<Served>,
}

struct Served {
    site: Site,
    access: Access,
    connections: Connections<TcpStream>,
}

/// An answer.
#[derive(Clone)]
struct Response {
    status: u16,
    /// By which a browser knows what it has; none for words.
    tag: Option<String>,
    kind: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Arc<Vec<u8>>,
}

impl Server {
    /// Listens at an address, 0 for any port that is free. An address that others can reach needs a token.
    pub fn bind(
        results: &Path,
        address: IpAddr,
        port: u16,
        token: Option<&str>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(SocketAddr::new(address, port))?;
        let access = Access::new(address.is_loopback(), listener.local_addr()?.port(), token);
        Ok(Self {
            served: Arc::new(Served {
                site: Site::new(results)?,
                access,
                connections: Connections::new(MAX_CONNECTIONS, PATIENCE),
            }),
            listener,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Answers until the process ends.
    pub fn serve(&self) -> ! {
        loop {
            let Ok((stream, _)) = self.listener.accept() else {
                // Too many open files, or a connection that is gone already.
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            let served = self.served.clone();
            let thread = std::thread::Builder::new().name("connection".into());
            // Without a slot or a thread the connection is closed, and the browser asks again.
            let twin = stream.try_clone().ok();
            if let Some(slot) = twin.and_then(|twin| served.connections.admit(twin)) {
                let _ = thread.spawn(move || {
                    let _ = served.converse(stream, &slot);
                });
            }
        }
    }
}

impl Served {
    fn converse(&self, mut stream: TcpStream, slot: &Slot<TcpStream>) -> io::Result<()> {
        let request = Request::read(&mut stream, Instant::now() + TIME_LIMIT);
        slot.is_answered(true);
        let (response, has_body) = match &request {
            Ok(request) => (self.answer(request), !request.is_head),
            Err(Refused::Gone) => return Ok(()),
            Err(Refused::Wrong(status, words)) => (Response::words(*status, words), true),
        };
        response.write(&mut stream, has_body)?;
        slot.is_answered(false);
        // What was sent and not read would make the system take the answer back.
        stream.shutdown(Shutdown::Write)?;
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        let mut rest = [0; 4096];
        for _ in 0..16 {
            if stream.read(&mut rest)? == 0 {
                break;
            }
        }
        Ok(())
    }

    fn answer(&self, request: &Request) -> Response {
        match self.access.check(request) {
            Ok(None) => {}
            Ok(Some(cookie)) => {
                // The token leaves the address line, where it would be seen and kept.
                let mut response = Response::redirect(&request.path);
                response.headers.push(("Set-Cookie", cookie));
                return response;
            }
            Err((status, words)) => {
                let mut response = Response::words(status, words);
                if status == 401 {
                    let asks = ("WWW-Authenticate", "Bearer realm=\"runner\"".to_owned());
                    response.headers.push(asks);
                }
                return response;
            }
        }
        let mut response = self.site.respond(&request.path);
        if let Some(tag) = response.tag.clone() {
            if request.if_none_match.as_ref() == Some(&tag) {
                response.status = 304;
                response.body = Arc::default();
            }
            response.headers.push(("ETag", tag));
        }
        response
    }
}

impl Response {
    fn page(kind: &'static str, page: page::Page) -> Self {
        Self {
            status: 200,
            tag: Some(page.tag),
            kind,
            headers: Vec::new(),
            body: Arc::new(page.text.into_bytes()),
        }
    }

    fn words(status: u16, words: &str) -> Self {
        let allow = ("Allow", "GET, HEAD".to_owned());
        Self {
            status,
            tag: None,
            kind: "text/plain; charset=utf-8",
            headers: if status == 405 {
                vec![allow]
            } else {
                Vec::new()
            },
            body: Arc::new(format!("{words}\n").into_bytes()),
        }
    }

    /// `path` begins with one slash, and is written as it was asked for.
    fn redirect(path: &str) -> Self {
        let mut response = Self::words(303, "see there");
        response.headers.push(("Location", path.to_owned()));
        response
    }

    fn write(&self, stream: &mut TcpStream, has_body: bool) -> io::Result<()> {
        let reason = match self.status {
            200 => "OK",
            303 => "See Other",
            304 => "Not Modified",
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            431 => "Request Header Fields Too Large",
            505 => "HTTP Version Not Supported",
            _ => "Internal Server Error",
        };
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", self.status);
        let mut add = |name: &str, value: &str| head += &format!("{name}: {value}\r\n");
        if self.status != 304 {
            add("Content-Type", self.kind);
            add("Content-Length", &self.body.len().to_string());
        }
        add("Content-Security-Policy", POLICY);
        add("X-Content-Type-Options", "nosniff");
        add("Cross-Origin-Resource-Policy", "same-origin");
        add("Referrer-Policy", "no-referrer");
        add("Cache-Control", "no-store");
        add("Connection", "close");
        self.headers
            .iter()
            .for_each(|(name, value)| add(name, value));
        head += "\r\n";
        // One after the other: a large body is not copied.
        let body = if has_body { self.body.as_slice() } else { &[] };
        let size = (head.len() + body.len()) as u64;
        let until = Instant::now() + TIME_LIMIT + Duration::from_secs(size / SLOWEST);
        write_until(stream, head.as_bytes(), until)?;
        write_until(stream, body, until)
    }
}

/// Writes bytes until a moment: who reads a byte now and then would hold a connection for ever.
fn write_until(stream: &mut TcpStream, mut bytes: &[u8], until: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(num) => bytes = &bytes[num..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
