//! A small web server: [`Server`] speaks HTTP/1.1 through `hyper` and gets its responses from a [`Service`].
//!
//! It does what every service needs: access control ([`Access`]: without a token, only requests that address this
//! machine by a local name, so that no web page can make a browser send requests to it under a different name, known as
//! DNS rebinding), limits on size, time and connections ([`Limits`]), and the headers that restrict what a browser does
//! with an answer.

mod access;
mod answer;
mod body;
mod connections;
mod name;
mod request;
mod server;

pub use access::{Access, TokenError, check_token};
pub use answer::Answer;
pub use hyper::body::Bytes;
pub use name::{decoded, encoded};
pub use request::Request;
pub use server::{Limits, Server, Service, Stop};
