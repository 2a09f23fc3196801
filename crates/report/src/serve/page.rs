//! Pages: a report with the script that keeps it up to date, and a list of experiments.

use std::io;

use runner_http::{Answer, encoded};
use sha2::{Digest, Sha256};

use crate::report::list::age;
use crate::report::plot::escape;
use crate::report::{Brief, Report, html, markdown};

/// Keeps a page up to date.
const LIVE: &str = include_str!("live.js");

/// Shows when the server is not responding.
const LOST: &str = "<style id=\"runner-lost\">html[data-lost]::before { content: \"the server is not responding: this page may be outdated\"; position: fixed; inset: 0 0 auto 0; padding: .3em; text-align: center; background: #b00020; color: #fff; z-index: 9; }</style>";

/// Links from a report to the other pages.
const BACK: &str = "<nav id=\"runner-back\" aria-label=\"Other pages\" style=\"margin:.5rem 1.25rem 0;font:.875rem system-ui,sans-serif\"><a href=\"/\">Experiments</a> <a href=\"/-/runs\">Table of runs</a></nav>\n";

/// The table of all runs.
const EXPLORER: &str = include_str!("explore.html");

/// A page, and its cache tag.
pub struct Page {
    pub text: String,
    pub tag: String,
}

/// The page of a report.
pub fn report(report: &Report) -> Page {
    let page = html(report, None);
    let page = page.unwrap_or_else(|_| text_page(&report.experiment, &markdown(report)));
    let (before, after) = match page.find("<body>") {
        Some(at) => page.split_at(at + "<body>".len()),
        None => ("", page.as_str()),
    };
    live(&format!("{before}\n{BACK}{after}"))
}

/// The page of the table of all runs.
pub fn explorer() -> Answer {
    let style = [
        include_str!("../report/html/style.css"),
        include_str!("explore.css"),
    ];
    let page = EXPLORER.replace("[STYLE]", &style.concat());
    let page = page.replace("[SCRIPT]", include_str!("explore.js"));
    let tag = tag(page.as_bytes());
    Answer::tagged("text/html; charset=utf-8", page, tag)
}

/// Experiments, each a row with a link; for unreadable ones, the reason.
pub fn list<'a>(
    all: impl Iterator<Item = (&'a str, io::Result<Option<Brief>>)>,
    now_ms: u64,
) -> Page {
    let rows = all.map(|(name, brief)| {
        let cells = match brief {
            Ok(Some(brief)) => {
                let last = brief.last_event_ms;
                let age = last.map(|last| age(now_ms.saturating_sub(last) as f64 / 1e3));
                let runs = format!("{} of {}", brief.num_completed, brief.num_runs);
                let dash = || "-".to_owned();
                [brief.state, runs, brief.best.unwrap_or_else(dash), age.unwrap_or_else(dash)]
            }
            Ok(None) => ["no plan", "", "", ""].map(str::to_owned),
            Err(reason) => [format!("cannot be read: {reason}"), String::new(), String::new(), String::new()],
        };
        let [state, runs, best, age] = cells.map(|cell| escape(&cell));
        let (path, name) = (encoded(name), escape(name));
        format!("<tr><td><a href=\"/{path}/\">{name}</a></td><td>{state}</td><td>{runs}</td><td>{best}</td><td>{age}</td></tr>\n")
    });
    let rows: String = rows.collect();
    let what = if rows.is_empty() {
        "<p>There are no experiments yet.</p>".to_owned()
    } else {
        format!(
            "<div class=\"wrap\"><table>\n<thead><tr><th>experiment</th><th>state</th><th>completed</th><th>best mean</th><th>last event</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>"
        )
    };
    live(&page(
        "Experiments",
        &format!("<h1>Experiments</h1>\n<p><a href=\"/-/runs\">Table of all runs</a></p>\n{what}"),
    ))
}

fn text_page(title: &str, text: &str) -> String {
    page(title, &format!("<pre>{}</pre>", escape(text)))
}

fn page(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n<style>:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }} body {{ margin: 1rem; }} pre, .wrap {{ overflow-x: auto; }} table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }} th, td {{ padding: .35rem .8rem .35rem 0; text-align: left; border-bottom: 1px solid #8884; vertical-align: top; }} td:nth-child(n+3) {{ overflow-wrap: anywhere; min-width: 4rem; }} @media (max-width: 40rem) {{ thead {{ display: none; }} tr {{ display: block; padding: .5rem 0; border-bottom: 1px solid #8884; }} td {{ display: inline-block; border: 0; padding: 0 .8rem 0 0; min-width: 0; }} td:first-child {{ display: block; }} }}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
}

/// A page with the script that keeps it up to date. The script knows the tag of its page, so that no change is missed
/// before its first request; the tag is that of the page without the script.
fn live(page: &str) -> Page {
    let tag = tag(page.as_bytes());
    let quoted = escape(&tag);
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
