//! Answers.

use http_body_util::Full;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// What a browser may do with a page: show it with its inline styles and scripts, and query this server again.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// An answer: a status, a body with its type, and headers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(crate) status: u16,
    /// The cache tag of a page; none for other answers.
    pub(crate) tag: Option<String>,
    kind: &'static str,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl Answer {
    /// A text of a type, such as `text/html; charset=utf-8`.
    pub fn text(status: u16, kind: &'static str, text: String) -> Self {
        Self {
            status,
            tag: None,
            kind,
            headers: Vec::new(),
            body: Bytes::from(text),
        }
    }

    /// A text that browsers may cache: the answer to its tag is 304 while it is unchanged.
    pub fn tagged(kind: &'static str, text: String, tag: String) -> Self {
        Self {
            tag: Some(tag),
            ..Self::text(200, kind, text)
        }
    }

    /// Plain text.
    pub fn words(status: u16, words: &str) -> Self {
        Self::text(status, "text/plain; charset=utf-8", format!("{words}\n"))
    }

    /// JSON.
    pub fn json(status: u16, json: String) -> Self {
        Self::text(status, "application/json", json)
    }

    /// Redirects a browser to `path`, which begins with one slash.
    pub fn redirect(path: &str) -> Self {
        Self::words(303, "see the other address").header("Location", path.to_owned())
    }

    /// With one more header.
    pub fn header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// The status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The answer to a browser that has cached the page of a tag.
    pub(crate) fn known(mut self, theirs: Option<&str>) -> Self {
        let Some(tag) = self.tag.clone() else {
            return self;
        };
        if theirs == Some(tag.as_str()) {
            self.status = 304;
            self.body = Bytes::new();
        }
        self.header("ETag", tag)
    }

    /// The answer as `hyper` sends it.
    pub(crate) fn into_response(self) -> hyper::Response<Full<Bytes>> {
        let mut headers = HeaderMap::new();
        let mut add = |name: &'static str, value: &str| {
            // An invalid header is left out; the only value from a request is its path.
            if let (Ok(name), Ok(value)) = (
                HeaderName::from_bytes(name.as_bytes()),
                HeaderValue::from_str(value),
            ) {
                headers.insert(name, value);
            }
        };
        if self.status != 304 {
            add("Content-Type", self.kind);
            add("Content-Length", &self.body.len().to_string());
        }
        for (name, value) in [
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
        ] {
            add(name, value);
        }
        for (name, value) in &self.headers {
            add(name, value);
        }
        let mut response = hyper::Response::new(Full::new(self.body));
        *response.status_mut() =
            StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        *response.headers_mut() = headers;
        response
    }

    /// The size of the body in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.body.len() as u64
    }
}
