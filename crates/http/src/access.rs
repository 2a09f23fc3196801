//! Access control.

use std::error::Error;
use std::fmt;
use std::net::Ipv4Addr;

use sha2::{Digest, Sha256};

use crate::Request;
use crate::request::Refused;

/// The minimum length of a token: with letters and digits, so many cannot be guessed.
const MIN_TOKEN: usize = 16;

/// The access rules of a server.
pub struct Access {
    is_loopback: bool,
    /// The token's digest: compared values have a fixed length, and reveal nothing about the token.
    token: Option<[u8; 32]>,
    /// The cookie of a browser, in place of the token.
    cookie: Option<String>,
}

/// Why a text is not a valid token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenError {
    /// It contains a character that addresses do not allow.
    Character,
    /// It can be guessed.
    TooShort,
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Character => f.write_str(
                "a token consists only of letters, digits and `-._~`, as allowed in addresses",
            ),
            Self::TooShort => write!(f, "a token has at least {MIN_TOKEN} characters"),
        }
    }
}

impl Error for TokenError {}

/// Whether a text is a valid token.
pub fn check_token(token: &str) -> Result<(), TokenError> {
    let is_known = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    if !token.chars().all(is_known) {
        return Err(TokenError::Character);
    }
    if token.len() < MIN_TOKEN {
        Err(TokenError::TooShort)
    } else {
        Ok(())
    }
}

impl Access {
    /// Rules for an address that only this machine can reach, or others too.
    pub fn new(is_loopback: bool, port: u16, token: Option<&str>) -> Self {
        let cookie = token.map(|token| {
            let digest = sha256(&format!("runner serve, a cookie for {token}"));
            let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
            // Browsers send cookies to all ports of a machine: the name keeps them apart.
            format!("runner-{port}={digest}")
        });
        Self {
            is_loopback,
            token: token.map(sha256),
            cookie,
        }
    }

    /// Whether a request may be answered; with a cookie to set if the token was in its address. The error is a status
    /// and the reason.
    pub(crate) fn check(&self, request: &Request) -> Result<Option<String>, Refused> {
        if self.is_loopback && !is_this_machine(&request.host) {
            return Err((
                403,
                "requested under another host name than this machine's; use http://127.0.0.1 or http://localhost",
            ));
        }
        let Some(token) = &self.token else {
            // Others could reach it: never without a token.
            return if self.is_loopback {
                Ok(None)
            } else {
                Err((401, "the token is missing"))
            };
        };
        let cookie = self.cookie.as_deref().unwrap_or_default();
        let is_right = |given: &str| are_equal(&sha256(given), token);
        if let Some(given) = &request.token {
            return if is_right(given) {
                Ok(Some(format!("{cookie}; HttpOnly; SameSite=Lax; Path=/")))
            } else {
                Err((401, "the token is invalid"))
            };
        }
        let bearer = request.authorization.as_deref();
        let bearer = bearer.and_then(|text| text.split_once(' '));
        let bearer = bearer.filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
        let mut cookies = request.cookies.split(';').map(str::trim);
        if bearer.is_some_and(|(_, given)| is_right(given.trim()))
            || cookies.any(|given| are_equal(&sha256(given), &sha256(cookie)))
        {
            Ok(None)
        } else {
            Err((
                401,
                "a token is required: add ?token=… to the address once, or send `Authorization: Bearer …`",
            ))
        }
    }
}

/// Whether a `Host` is a name that no other machine can have.
fn is_this_machine(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, ""),
    };
    if !port.chars().all(|c| c.is_ascii_digit()) {
        return false;
    }
    let is_loopback = |name: &str| name.parse::<Ipv4Addr>().is_ok_and(|ip| ip.is_loopback());
    name.eq_ignore_ascii_case("localhost") || name == "[::1]" || is_loopback(name)
}

fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

/// Compares in constant time.
fn are_equal(a: &[u8; 32], b: &[u8; 32]) -> bool {
    let differ = a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b));
    std::hint::black_box(differ) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::tests::head;

    const TOKEN: &str = "0123456789abcdef";

    /// A request of ` HTTP/1.1|Host: …|…`; the text before the version is its query.
    fn asked(text: &str) -> Request {
        let mut lines = text.split('|');
        let query = lines.next().unwrap().trim_end_matches(" HTTP/1.1");
        let headers: Vec<_> = lines.map(|line| line.split_once(':').unwrap()).collect();
        Request::of(&head(&format!("/a/?{query}"), &headers), false).unwrap()
    }

    #[test]
    fn names_that_others_can_have_are_refused() {
        let access = Access::new(true, 80, None);
        for host in [
            "localhost",
            "LOCALHOST:8080",
            "127.0.0.1",
            "127.1.2.3:1",
            "[::1]",
            "[::1]:80",
        ] {
            let request = asked(&format!(" HTTP/1.1|Host: {host}"));
            assert_eq!(access.check(&request), Ok(None), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "evil.example:80@localhost",
            "localhost:80@evil.example",
            "[::2]",
            "0.0.0.0",
            "192.168.0.1",
            "",
        ] {
            let request = asked(&format!(" HTTP/1.1|Host: {host}"));
            assert_eq!(access.check(&request).unwrap_err().0, 403, "{host}");
        }
    }

    #[test]
    fn a_token_is_asked_for_once() {
        let access = Access::new(false, 80, Some(TOKEN));
        let of = |head: &str| access.check(&asked(head)).map_err(|(status, _)| status);
        let Ok(Some(cookie)) = of(&format!("token={TOKEN} HTTP/1.1|Host: any")) else {
            panic!("it is the token")
        };
        assert!(cookie.ends_with("; HttpOnly; SameSite=Lax; Path=/") && !cookie.contains(TOKEN));
        let cookie = cookie.split(';').next().unwrap();
        assert_eq!(
            of(&format!(" HTTP/1.1|Host: any|Cookie: a=b; {cookie}; c=d")),
            Ok(None)
        );
        assert_eq!(
            of(&format!(
                " HTTP/1.1|Host: any|Authorization: bearer {TOKEN}"
            )),
            Ok(None)
        );
        for wrong in [
            " HTTP/1.1|Host: any".to_owned(),
            "token= HTTP/1.1|Host: any".to_owned(),
            format!("token={TOKEN}0 HTTP/1.1|Host: any"),
            format!("Token={TOKEN} HTTP/1.1|Host: any"),
            format!(" HTTP/1.1|Host: any|Authorization: Basic {TOKEN}"),
            " HTTP/1.1|Host: any|Authorization: Bearer".to_owned(),
            " HTTP/1.1|Host: any|Cookie: runner-80=".to_owned(),
            format!(" HTTP/1.1|Host: any|Cookie: runner-80={TOKEN}"),
            // A cookie does not compensate for a wrong token.
            format!("token=x HTTP/1.1|Host: any|Cookie: {cookie}"),
        ] {
            assert_eq!(of(&wrong), Err(401), "{wrong}");
        }
        let nobody = Access::new(false, 80, None);
        let request = asked(" HTTP/1.1|Host: localhost");
        assert_eq!(nobody.check(&request).unwrap_err().0, 401);
    }

    #[test]
    fn tokens_are_long_and_plain() {
        assert_eq!(check_token(TOKEN), Ok(()));
        for wrong in [
            "",
            "short",
            "0123456789abcde&",
            "0123456789abcde ",
            "0123456789abcdeä",
        ] {
            assert!(check_token(wrong).is_err(), "{wrong}");
        }
    }
}
