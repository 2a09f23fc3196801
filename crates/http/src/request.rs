//! Reading and checking requests.

use hyper::body::Bytes;
use hyper::header::{self, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, Version};

/// The relevant parts of a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// Whether the method is `POST`; otherwise it is `GET` or `HEAD`.
    pub is_post: bool,
    /// The path as sent, from its slash on; without the query.
    pub path: String,
    /// The query as sent, without its question mark.
    pub query: String,
    /// The body of a `POST`.
    pub body: Bytes,
    /// The token in the query.
    pub(crate) token: Option<String>,
    /// The name of this machine in the request, with its port.
    pub(crate) host: String,
    /// `Authorization`.
    pub(crate) authorization: Option<String>,
    /// All of `Cookie`.
    pub(crate) cookies: String,
    /// The cache tag of the browser.
    pub(crate) if_none_match: Option<String>,
}

/// Why a request is refused: the status, and the reason.
pub(crate) type Refused = (u16, &'static str);

impl Request {
    /// The request of a head; `takes_posts` says whether `POST` is allowed.
    pub(crate) fn of(head: &Parts, takes_posts: bool) -> Result<Self, Refused> {
        if !matches!(head.version, Version::HTTP_10 | Version::HTTP_11) {
            return Err((505, "only HTTP/1.1 is supported"));
        }
        let is_post = head.method == Method::POST;
        let is_read = matches!(head.method, Method::GET | Method::HEAD);
        if !(is_read || is_post && takes_posts) {
            let words = if takes_posts {
                "only GET, HEAD and POST are supported"
            } else {
                "only GET and HEAD are supported: the server is read-only"
            };
            return Err((405, words));
        }
        let target = head.uri.path_and_query().map_or("", |it| it.as_str());
        // Some browsers treat a backslash as a slash.
        let is_foreign = head.uri.authority().is_some()
            || !target.starts_with('/')
            || target.starts_with("//")
            || target.contains(['#', '\\']);
        if is_foreign {
            return Err((400, "the path must begin with a single slash"));
        }
        if !is_post && head.headers.contains_key(header::TRANSFER_ENCODING) {
            return Err((400, "requests must not have a body"));
        }
        let mut hosts = head.headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err((400, "exactly one `Host` header is required"));
        };
        let query = head.uri.query().unwrap_or_default();
        let token = query
            .split('&')
            .find_map(|part| part.strip_prefix("token="));
        Ok(Self {
            is_post,
            path: head.uri.path().to_owned(),
            query: query.to_owned(),
            body: Bytes::new(),
            token: token.map(str::to_owned),
            host: String::from_utf8_lossy(host.as_bytes()).trim().to_owned(),
            authorization: all(&head.headers, header::AUTHORIZATION).pop(),
            cookies: all(&head.headers, header::COOKIE).join(";"),
            if_none_match: all(&head.headers, header::IF_NONE_MATCH).pop(),
        })
    }
}

/// The values of a header.
fn all(headers: &HeaderMap, name: header::HeaderName) -> Vec<String> {
    let values = headers.get_all(name).iter();
    values
        .map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The head of a GET with headers, each a name and a value.
    pub(crate) fn head(target: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = hyper::Request::get(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    #[test]
    fn requests_are_read_or_refused() {
        let host = ("Host", "a");
        let status = |target: &str, headers: &[(&str, &str)]| {
            Request::of(&head(target, headers), false).map_or_else(|refused| refused.0, |_| 200)
        };
        assert_eq!(status("/", &[host]), 200);
        assert_eq!(status("/a?b=c", &[host]), 200);
        assert_eq!(status("/", &[]), 400);
        assert_eq!(status("/", &[host, ("Host", "b")]), 400);
        assert_eq!(status("//b/c", &[host]), 400);
        assert_eq!(status("http://b/", &[host]), 400);
        assert_eq!(status("/", &[host, ("Transfer-Encoding", "chunked")]), 400);
        let mut post = head("/", &[host]);
        post.method = Method::POST;
        assert_eq!(Request::of(&post, false).unwrap_err().0, 405);
        assert!(Request::of(&post, true).unwrap().is_post);
        post.method = Method::DELETE;
        assert_eq!(Request::of(&post, true).unwrap_err().0, 405);
        post.version = Version::HTTP_2;
        assert_eq!(Request::of(&post, true).unwrap_err().0, 505);
    }
}
