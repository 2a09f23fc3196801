//! The table of all runs in `runner serve`: what it answers, and how it behaves in a browser.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;

use serde_json::Value as Json;

use super::edit::Edit;
use super::serve::{Server, shown_by};
use super::support::{IRIS, chromium, completed, run, skip};

/// Six runs of three trials.
fn served() -> (tempfile::TempDir, Server) {
    let axis = "[sweep.grid]\noptimizer.learning_rate = [1e-1, 1e-2, 1e-3]\n";
    let spec = format!("[experiment]\nseeds = [1, 2]\n{IRIS}\n{axis}");
    let folder = completed(&spec, &[]);
    let server = Server::of(folder.path(), "results", &[]);
    (folder, server)
}

/// The status and the content of an answer.
fn asked(server: &Server, target: &str) -> (u16, Json) {
    let (code, _, body) = server.get(target, "");
    (code, serde_json::from_str(&body).unwrap_or(Json::Null))
}

fn rows(server: &Server, query: &str) -> (u64, Vec<Json>) {
    let (code, found) = asked(server, &format!("/-/runs.json?{query}"));
    assert_eq!(code, 200, "{query}: {found}");
    assert_eq!(found["all"], 6);
    let rows = found["rows"].as_array().unwrap().clone();
    (found["total"].as_u64().unwrap(), rows)
}

#[test]
fn runs_are_filtered_sorted_grouped_and_sent_by_page() {
    let (_folder, server) = served();
    let (total, page) = rows(&server, "columns=run+seed&sort=-seed&offset=1&limit=2");
    assert_eq!((total, page.len()), (6, 2));
    assert_eq!(page[0]["run"], "learning_rate=0.01-s2");
    assert_eq!(page[0]["seed"], 2);
    let (total, page) = rows(
        &server,
        "filter=seed+%3D%3D+1+and+optimizer.learning_rate+%3C+0.05",
    );
    assert_eq!((total, page.len()), (2, 2));
    let (total, groups) = rows(&server, "group=optimizer.learning_rate");
    assert_eq!(
        (total, groups[0]["runs"].as_u64()),
        (3, Some(2)),
        "{groups:?}"
    );
    assert_eq!(rows(&server, "offset=100").1.len(), 0);
    assert_eq!(rows(&server, "offset=a&limit=99999999999").1.len(), 6);
    let (code, names) = asked(&server, "/-/names.json");
    assert_eq!(
        (code, &names["axes"][0]),
        (200, &Json::from("optimizer.learning_rate"))
    );
    let (code, run) = asked(&server, "/-/run.json?run=spec/learning_rate=0.1-s1");
    assert_eq!(
        (code, &run["settings"]["optimizer.learning_rate"]),
        (200, &Json::from(0.1))
    );
    let (_, curves) = asked(&server, "/-/curves.json?run=spec%2Flearning_rate%3D0.1-s1");
    let points = &curves["spec/learning_rate=0.1-s1"]["valid/loss"];
    assert_eq!(
        (points.as_array().unwrap().len(), &points[2][0]),
        (3, &Json::from(3))
    );
}

#[test]
fn what_is_asked_wrongly_is_refused_with_a_remedy() {
    let (_folder, server) = served();
    for (query, says) in [
        (
            "filter=nothing+%3E+1",
            "no run has a key or metric named `nothing`",
        ),
        ("filter=%28%28", "filter"),
        ("sort=nothing", "nothing"),
        ("columns=nothing", "nothing"),
    ] {
        let (code, found) = asked(&server, &format!("/-/runs.json?{query}"));
        let error = found["error"].as_str().unwrap_or_default();
        assert_eq!(code, 400, "{query}: {found}");
        assert!(
            error.contains(says) || query.contains("%28"),
            "{query}: {error}"
        );
        assert!(found["help"].is_string(), "{query}: {found}");
    }
    for target in [
        "/-/run.json?run=spec/../../spec.toml",
        "/-/curves.json?run=../secret/x",
        "/-/run.json",
        "/-/nothing",
        "/-/",
    ] {
        assert_eq!(asked(&server, target).0, 404, "{target}");
    }
}

/// Serves the table of runs with a script at its end, which the policy of the page allows because it is inside of it.
fn with_script(server: &str, script: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = server.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let (server, script) = (server.clone(), script.clone());
            std::thread::spawn(move || {
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    head.push(byte[0]);
                }
                let Ok(mut to) = TcpStream::connect(server) else {
                    return;
                };
                let mut answer = String::new();
                if to.write_all(&head).is_err() || to.read_to_string(&mut answer).is_err() {
                    return;
                }
                if head.starts_with(b"GET /-/runs?") || head.starts_with(b"GET /-/runs ") {
                    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
                    let kept = head
                        .lines()
                        .filter(|line| !line.to_lowercase().starts_with("content-length"));
                    let kept: Vec<&str> = kept.collect();
                    let body = body.edit("</body>", &format!("<script>{script}</script></body>"));
                    answer = format!("{}\r\n\r\n{body}", kept.join("\r\n"));
                }
                let _ = stream.write_all(answer.as_bytes());
            });
        }
    });
    address
}

/// What a script in the page found, after the page was ready.
fn found_by(server: &Server, query: &str, script: &str) -> Option<Json> {
    let chromium = chromium()?;
    let script = format!(
        "const until = async (is) => {{ while (!is()) await new Promise((go) => setTimeout(go, 20)); }};
         (async () => {{
           await until(() => document.documentElement.dataset.ready && document.querySelector('#rows input, #rows button'));
           {script}
         }})().catch((error) => String(error.stack)).then((found) => {{
           document.documentElement.dataset.found = encodeURIComponent(JSON.stringify(found));
         }});"
    );
    let address = with_script(&server.address, script);
    let (page, log) = shown_by(&chromium, &format!("http://{address}/-/runs{query}"), 9000);
    let found = page.split_once("data-found=\"").map(|(_, rest)| rest);
    let found = found.and_then(|rest| rest.split('"').next());
    let found = found.unwrap_or_else(|| panic!("nothing was found: {log}\n{page}"));
    let bytes = found
        .split('%')
        .enumerate()
        .flat_map(|(at, part)| match at {
            0 => part.as_bytes().to_vec(),
            _ => {
                let byte = u8::from_str_radix(&part[..2], 16).unwrap();
                [&[byte], &part.as_bytes()[2..]].concat()
            }
        });
    let text = String::from_utf8(bytes.collect()).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn a_browser_explores_runs_by_keyboard_and_keeps_the_state_in_the_address() {
    let (_folder, server) = served();
    let script = "
      const seen = {};
      const box = document.querySelector('#rows input');
      box.focus();
      box.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowDown', bubbles: true }));
      seen.next = document.activeElement.getAttribute('aria-label');
      document.activeElement.click();
      await until(() => !document.querySelector('#curves').hidden);
      seen.focus = document.activeElement.getAttribute('aria-label');
      document.querySelector('#rows input').click();
      await until(() => !document.querySelector('#pair').hidden);
      seen.lines = document.querySelectorAll('#plot polyline').length;
      seen.differ = [...document.querySelectorAll('#differences th')].map((head) => head.textContent);
      document.querySelector('#to').value = 2;
      document.querySelector('#to').dispatchEvent(new Event('change'));
      const filter = document.querySelector('#filter');
      filter.value = 'seed == 2';
      document.querySelector('#ask').requestSubmit();
      await until(() => document.querySelector('#said').textContent.startsWith('3 of'));
      seen.address = location.search;
      const head = () => [...document.querySelectorAll('#heads button')].find((button) => button.title === 'run');
      head().focus();
      head().click();
      await until(() => document.querySelector('[aria-sort=ascending]')?.textContent === 'run');
      seen.sorted = document.activeElement.title;
      filter.value = 'nothing > 2';
      document.querySelector('#ask').requestSubmit();
      await until(() => !document.querySelector('#wrong').hidden);
      seen.wrong = document.querySelector('#wrong').textContent;
      return seen;";
    let Some(seen) = found_by(&server, "?columns=run+seed&sort=seed", script) else {
        return;
    };
    assert_eq!(seen["next"], "pin spec/learning_rate=0.01-s1", "{seen}");
    assert_eq!(seen["focus"], seen["next"], "{seen}");
    assert_eq!(seen["lines"], 2, "{seen}");
    assert_eq!(seen["sorted"], "run", "{seen}");
    let differ = seen["differ"].to_string();
    assert!(differ.contains("optimizer.learning_rate"), "{seen}");
    let address = seen["address"].as_str().unwrap();
    for part in [
        "sort=seed",
        "filter=seed+",
        "to=2",
        "pin=spec%2Flearning_rate%3D0.01-s1",
    ] {
        assert!(address.contains(part), "{address}");
    }
    assert!(
        seen["wrong"].as_str().unwrap().contains("no run has a key"),
        "{seen}"
    );
    // The address brings all of it back.
    let script = "
      await until(() => !document.querySelector('#pair').hidden);
      return [document.querySelector('#filter').value, document.querySelectorAll('#pinned tr').length,
              document.querySelector('#to').value, document.querySelector('[aria-sort]').textContent];";
    let again = found_by(&server, address, script).unwrap();
    assert_eq!(again, serde_json::json!(["seed == 2", 2, "2", "seed"]));
}

/// Of many runs, only those in view have rows; each page is asked for once it comes into view.
#[test]
fn many_runs_are_scrolled_with_few_rows() {
    let seeds: Vec<String> = (1..=1000).map(|seed| seed.to_string()).collect();
    let spec = format!("[experiment]\nseeds = [{}]\n{IRIS}", seeds.join(", "));
    let folder = completed(&spec, &["--only", "base-s1"]);
    let server = Server::of(folder.path(), "results", &[]);
    let script = "
      const box = document.querySelector('#box');
      const num = () => document.querySelectorAll('#rows tr').length;
      const asked = () => performance.getEntriesByType('resource').filter((it) => it.name.includes('runs.json')).length;
      await until(() => document.querySelector('#said').textContent.startsWith('1000 of 1000'));
      const seen = { first: num(), pages: asked() };
      box.scrollTop = box.scrollHeight;
      await until(() => [...document.querySelectorAll('#rows tr')].some((row) => row.textContent.includes('base-s1000')));
      seen.last = num();
      seen.more = asked() - seen.pages;
      seen.rows = document.querySelector('#runs').getAttribute('aria-rowcount');
      await until(() => location.search.includes('row='));
      seen.address = location.search;
      return seen;";
    let Some(seen) = found_by(&server, "?columns=run+seed", script) else {
        return;
    };
    for rows in ["first", "last"] {
        let num = seen[rows].as_u64().unwrap();
        assert!((5..120).contains(&num), "{seen}");
    }
    assert!(seen["pages"].as_u64() < Some(4), "{seen}");
    assert_eq!(seen["rows"], "1001", "{seen}");
    // The address shows the same rows.
    let script = "
      await until(() => [...document.querySelectorAll('#rows tr')].some((row) => row.textContent.includes('base-s1000')));
      return document.querySelector('#box').scrollTop;";
    let top = found_by(&server, seen["address"].as_str().unwrap(), script).unwrap();
    assert!(top.as_f64() > Some(20_000.0), "{top}");
}

/// Groups of values that need quotes, and of runs without a value, lead to their runs.
#[test]
fn the_runs_of_every_group_can_be_shown() {
    let axis = "[sweep.grid]\noptimizer = [{ type = \"sgd\", learning_rate = 1e-2, momentum = 0.9 }, { type = \"adam\", learning_rate = 1e-2 }]\n";
    let folder = completed(
        &format!("[experiment]\nseeds = [1, 2]\n{IRIS}\n{axis}"),
        &[],
    );
    let runs = fs::read_dir(folder.path().join("results/spec/runs")).unwrap();
    let names = runs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let adam = names.filter(|name| name.contains("adam")).min().unwrap();
    let path = format!("results/spec/runs/{adam}");
    let (code, _, said) = run(folder.path(), &["note", &path, "it's good"]);
    assert_eq!(code, 0, "{said}");
    let server = Server::of(folder.path(), "results", &[]);
    for key in ["note", "optimizer.momentum"] {
        let script = format!(
            "const seen = [];
             const groups = document.querySelectorAll('#rows button').length;
             for (let at = 0; at < groups; at += 1) {{
               const select = document.querySelector('#group');
               select.value = '{key}';
               select.dispatchEvent(new Event('change'));
               await until(() => document.querySelectorAll('#rows button').length === groups);
               document.querySelectorAll('#rows button')[at].click();
               await until(() => document.querySelector('#rows input') || !document.querySelector('#wrong').hidden);
               seen.push([document.querySelector('#said').textContent, document.querySelector('#wrong').textContent, document.activeElement.id]);
               document.querySelector('#filter').value = '';
               document.querySelector('#ask').requestSubmit();
               await until(() => document.querySelector('#said').textContent === '4 of 4 runs');
             }}
             return seen;"
        );
        let Some(seen) = found_by(&server, &format!("?group={key}"), &script) else {
            return;
        };
        let seen = seen.as_array().unwrap();
        assert_eq!(seen.len(), 2, "{key}: {seen:?}");
        let mut num = 0;
        for found in seen {
            assert_eq!(
                (&found[1], &found[2]),
                (&Json::from(""), &Json::from("box")),
                "{found}"
            );
            let said = found[0].as_str().unwrap();
            num += said.split(' ').next().unwrap().parse::<usize>().unwrap();
        }
        assert_eq!(num, 4, "{key}: {seen:?}");
    }
}

/// The accessibility checks of Deque, by the path of its file; without it, the caller skips its test.
pub fn axe() -> Option<String> {
    let path = std::env::var_os("RUNNER_AXE").map(PathBuf::from);
    let text = path.and_then(|path| fs::read_to_string(path).ok());
    if text.is_none() {
        skip(
            "RUNNER_AXE is not the path of axe.min.js (npm install axe-core)",
            "RUNNER_REQUIRE_AXE",
        );
    }
    text
}

#[test]
fn the_table_of_runs_is_accessible() {
    let (Some(axe), Some(_)) = (axe(), chromium()) else {
        return;
    };
    let (_folder, server) = served();
    for query in [
        "",
        "?pin=spec/learning_rate=0.01-s1&pin=spec/learning_rate=0.1-s2&sort=-seed",
        "?group=seed",
    ] {
        let script = format!(
            "{axe};
             document.querySelector('#choose').open = true;
             const found = await axe.run(document);
             return {{ rules: found.passes.length, wrong: found.violations.map((it) => [it.id, it.nodes.map((node) => node.html)]) }};"
        );
        let found = found_by(&server, query, &script).unwrap();
        assert_eq!(found["wrong"], serde_json::json!([]), "{query}: {found}");
        assert!(found["rules"].as_u64() > Some(15), "{query}: {found}");
    }
}
