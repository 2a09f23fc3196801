//! A small web server that only shows the reports of a results tree.
//!
//! Every answer is generated in memory from records (`site`); no file is ever sent, so a path can only name an
//! experiment and a form of its report. Requests are untrusted (`request`): only GET and HEAD, headers of limited size
//! that must arrive within a limited time, a limited number of connections (`connections`), each for one request and a
//! limited total time.
//!
//! Access (`access`): without a token, only requests that address this machine by a local name, so that no web page can
//! have a browser request it under a name of its own (DNS rebinding); with a token, only those that have it.

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

/// Maximum number of concurrent connections.
pub const MAX_CONNECTIONS: usize = 64;

/// How long a new connection waits for another to give way.
const PATIENCE: Duration = Duration::from_secs(2);

/// Time limit for a request's headers.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// The minimum reading speed of a client, in bytes per second, after the time that every answer has.
const SLOWEST: u64 = 64 << 10;

/// What a browser may do with a page: show it with its inline styles and scripts, and query this server again.
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
    /// The cache tag of a page; none for plain text.
    tag: Option<String>,
    kind: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Arc<Vec<u8>>,
}

impl Server {
    /// Listens at an address, 0 for any free port. An address that others can reach needs a token.
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

    /// The listening address.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the process ends.
    pub fn serve(&self) -> ! {
        loop {
            let Ok((stream, _)) = self.listener.accept() else {
                // Too many open files, or a connection that was already closed.
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            let served = self.served.clone();
            let thread = std::thread::Builder::new().name("connection".into());
            // Without a slot or a thread the connection is closed, and the browser retries.
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
        // Unread input would make the system discard the answer.
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
                // Removes the token from the address, where it would be visible and saved.
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

    /// `path` begins with one slash, and is unchanged from the request.
    fn redirect(path: &str) -> Self {
        let mut response = Self::words(303, "see the other address");
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

/// Writes bytes until a deadline: a very slow reader would hold a connection forever.
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
