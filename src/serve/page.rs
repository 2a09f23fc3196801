//! Pages: a report with the script that keeps it up to date, and a list of experiments.

use sha2::{Digest, Sha256};

use crate::report::{Report, html, markdown};

/// Keeps a page up to date.
const LIVE: &str = include_str!("live.js");

/// Says so when the server is gone.
const LOST: &str = "<style id=\"runner-lost\">html[data-lost]::before { content: \"the server does not answer: this page may be old\"; position: fixed; inset: 0 0 auto 0; padding: .3em; text-align: center; background: #b00020; color: #fff; z-index: 9; }</style>";

/// A page, and the tag by which a browser knows it.
pub struct Page {
    pub text: String,
    pub tag: String,
}

/// The page of a report.
pub fn report(report: &Report) -> Page {
    let page = html(report, None);
    live(&page.unwrap_or_else(|_| text_page(&report.experiment, &markdown(report))))
}

/// Experiments, each a link.
pub fn list<'a>(names: impl Iterator<Item = &'a str>) -> Page {
    let items = names.map(|name| {
        let (path, name) = (encoded(name), escaped(name));
        format!("<li><a href=\"/{path}/\">{name}</a></li>\n")
    });
    let items: String = items.collect();
    let what = match items.is_empty() {
        true => "<p>There are no experiments yet.</p>".to_owned(),
        false => format!("<ul>\n{items}</ul>"),
    };
    live(&page(
        "Experiments",
        &format!("<h1>Experiments</h1>\n{what}"),
    ))
}

fn text_page(title: &str, text: &str) -> String {
    page(title, &format!("<pre>{}</pre>", escaped(text)))
}

fn page(title: &str, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }} body {{ margin: 1rem; }} pre {{ overflow-x: auto; }}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
}

/// A page with the script that keeps it up to date. The script knows the tag of the page that it came with, so that
/// no change is missed between that and its first question; the tag is that of the page without the script.
fn live(page: &str) -> Page {
    let tag = tag(page.as_bytes());
    let quoted = escaped(&tag);
    let script =
        format!("{LOST}\n<script id=\"runner-live\" data-tag=\"{quoted}\">\n{LIVE}</script>\n");
    let text = match page.rfind("</body>") {
        Some(at) => format!("{}{script}{}", &page[..at], &page[at..]),
        None => format!("{page}{script}"),
    };
    Page { text, tag }
}

/// The tag of an answer's content.
pub fn tag(body: &[u8]) -> String {
    let digest = Sha256::digest(body);
    let digest: String = digest[..12]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("\"{digest}\"")
}

/// A name as a part of a path.
pub fn encoded(name: &str) -> String {
    let bytes = name.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'=' | b',' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    });
    bytes.collect()
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
