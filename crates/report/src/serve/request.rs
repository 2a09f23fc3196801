//! Reading and checking the head of a request.

use std::io::Read;
use std::net::TcpStream;
use std::time::Instant;

/// The maximum size of a request header in bytes.
const MAX_HEAD: usize = 16 << 10;
/// The maximum number of headers.
const MAX_HEADERS: usize = 64;

/// The relevant parts of a request.
#[derive(Debug, Default, PartialEq)]
pub struct Request {
    /// Whether only the headers of the answer are requested.
    pub is_head: bool,
    /// The path as sent, from its slash on; without the query.
    pub path: String,
    /// The token in the query.
    pub token: Option<String>,
    /// The name of this machine in the request, with its port.
    pub host: String,
    /// `Authorization`.
    pub authorization: Option<String>,
    /// All of `Cookie`.
    pub cookies: String,
    /// The cache tag of the browser.
    pub if_none_match: Option<String>,
}

/// Why there is no valid request.
#[derive(Debug, PartialEq)]
pub enum Refused {
    /// The client is gone.
    Gone,
    /// It is invalid: the status, and the reason.
    Wrong(u16, &'static str),
}

impl Request {
    /// Reads a request's head until a deadline.
    pub fn read(stream: &mut TcpStream, until: Instant) -> Result<Self, Refused> {
        let mut head = Vec::new();
        let mut piece = [0; 4096];
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // The system does not accept a timeout of zero.
            if left.is_zero() || stream.set_read_timeout(Some(left)).is_err() {
                return Err(Refused::Wrong(408, "the request timed out"));
            }
            let num = match stream.read(&mut piece) {
                Ok(0) => return Err(Refused::Gone),
                Ok(num) => num,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(e) if is_late(&e) => continue,
                Err(_) => return Err(Refused::Gone),
            };
            head.extend_from_slice(&piece[..num]);
            if let Some(request) = Self::parse(&head)? {
                return Ok(request);
            }
            if head.len() >= MAX_HEAD {
                return Err(Refused::Wrong(
                    431,
                    "the headers of the request are too large",
                ));
            }
        }
    }

    /// The request, once its head is complete.
    pub fn parse(head: &[u8]) -> Result<Option<Self>, Refused> {
        let wrong = |status, words| Err(Refused::Wrong(status, words));
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        match parsed.parse(head) {
            Ok(httparse::Status::Complete(size)) if size <= MAX_HEAD => {}
            Ok(httparse::Status::Complete(_)) => {
                return wrong(431, "the headers of the request are too large");
            }
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return wrong(431, "too many headers"),
            Err(httparse::Error::Version) => return wrong(505, "only HTTP/1.1 is supported"),
            Err(_) => return wrong(400, "this is not an HTTP request"),
        }
        let mut request = Self {
            is_head: parsed.method == Some("HEAD"),
            ..Self::default()
        };
        if !matches!(parsed.method, Some("GET" | "HEAD")) {
            return wrong(
                405,
                "only GET and HEAD are supported: the server is read-only",
            );
        }
        let target = parsed.path.unwrap_or_default();
        // Some browsers treat a backslash as a slash.
        if !target.starts_with('/') || target.starts_with("//") || target.contains(['#', '\\']) {
            return wrong(400, "the path must begin with a single slash");
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        request.path = path.to_owned();
        let token = query
            .split('&')
            .find_map(|part| part.strip_prefix("token="));
        request.token = token.map(str::to_owned);
        let mut hosts = 0;
        for header in parsed.headers.iter() {
            let value = String::from_utf8_lossy(header.value).trim().to_owned();
            match header.name.to_ascii_lowercase().as_str() {
                "host" => {
                    hosts += 1;
                    request.host = value;
                }
                "authorization" => request.authorization = Some(value),
                "cookie" => {
                    request.cookies += &value;
                    request.cookies += ";";
                }
                "if-none-match" => request.if_none_match = Some(value),
                "transfer-encoding" => return wrong(400, "requests must not have a body"),
                _ => {}
            }
        }
        if hosts != 1 {
            return wrong(400, "exactly one `Host` header is required");
        }
        Ok(Some(request))
    }
}

fn is_late(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{TimedOut, WouldBlock};
    matches!(error.kind(), TimedOut | WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(head: &str) -> Option<u16> {
        match Request::parse(head.replace('|', "\r\n").as_bytes()) {
            Ok(None) => None,
            Ok(Some(_)) => Some(200),
            Err(Refused::Wrong(status, _)) => Some(status),
            Err(Refused::Gone) => Some(0),
        }
    }

    #[test]
    fn requests_are_read_or_refused() {
        let many: String = (0..70).map(|n| format!("A{n}: b|")).collect();
        let long = "a".repeat(MAX_HEAD);
        for (head, expected) in [
            ("GET / HTTP/1.1|Host: a||", Some(200)),
            ("HEAD /a?b=c HTTP/1.0|Host: a||", Some(200)),
            ("GET / HTTP/1.1|Host: a|", None),
            ("", None),
            ("GET / HTTP/1.1||", Some(400)),
            ("GET / HTTP/1.1|Host: a|Host: b||", Some(400)),
            ("GET a HTTP/1.1|Host: a||", Some(400)),
            ("GET //b/c HTTP/1.1|Host: a||", Some(400)),
            ("GET /\\b/c HTTP/1.1|Host: a||", Some(400)),
            ("GET http://b/ HTTP/1.1|Host: a||", Some(400)),
            ("GET /a b HTTP/1.1|Host: a||", Some(505)),
            ("GET / HTTP/2.0|Host: a||", Some(505)),
            (
                "GET / HTTP/1.1|Host: a|Transfer-Encoding: chunked||",
                Some(400),
            ),
            ("GET / HTTP/1.1|Host : a||", Some(400)),
            ("POST / HTTP/1.1|Host: a||", Some(405)),
            ("DELETE /x HTTP/1.1|Host: a||", Some(405)),
            ("\u{0}\u{1}", Some(400)),
            (&format!("GET / HTTP/1.1|Host: a|{many}|"), Some(431)),
            (&format!("GET /{long} HTTP/1.1|Host: a||"), Some(431)),
        ] {
            assert_eq!(status(head), expected, "{head}");
        }
    }
}
