//! `report.html`: its content, that it is self-contained, its templates, and its behavior in a real browser.

use std::fs;
use std::path::Path;
use std::process::Command;

use burn_runner::report::{Report, html, markdown};
use regex::Regex;
use serde_json::{Value as Json, json};

use super::compare::{SWEEP, clear, index, summed_up};
use super::edit::Edit;
use super::explore::axe;
use super::support::{IRIS, chromium, completed, folder_with, run};

/// A synthetic report with everything that a page shows.
fn made_up() -> Report {
    let mut report = summed_up(&index(SWEEP, clear), vec!["old-s1".into()]);
    let point = |epoch: usize| {
        let mean = 1.0 / epoch as f64;
        json!({"epoch": epoch, "n": 8, "mean": mean, "band": [mean - 0.1, mean + 0.1]})
    };
    let curve = |metric: &str, band: Json| {
        let points: Vec<Json> = (1..=4).map(point).collect();
        json!({"metric": metric, "band": band, "points": points})
    };
    let curves = [
        curve("train/loss", json!(null)),
        curve("valid/loss", json!("student_t")),
    ];
    let step = |step: usize| {
        let mean = 1.5 / step as f64;
        json!({"step": step, "num": 1, "mean": mean, "low": 0.8 * mean, "high": 1.2 * mean})
    };
    let steps: Vec<Json> = (1..=12).map(step).collect();
    let trial = |trial: &str| json!({"trial": trial, "n": 8, "curves": curves, "steps": steps});
    report.curves = from(json!({
        "metrics": ["loss"],
        "trials": [trial("optimizer=adam,hidden=16"), trial("optimizer=sgd,hidden=8")],
        "num_more_trials": 2,
        "num_more_metrics": 1,
        "norms": {
            "trial": "optimizer=adam,hidden=16", "n": 8, "epochs": [1, 2, 3, 4], "num_more": 1,
            "parameters": [
                {"name": "linear.weight", "means": [1.0, 0.5, 0.25, 0.125]},
                {"name": "linear.bias", "means": [0.1, 0.0, null, 0.02]},
            ],
        },
    }));
    let values = |mean: f64, at: usize| {
        let mut counts = vec![0; 30];
        counts[at] = 6;
        counts[15] = 2;
        json!({"mean": mean, "sd": 0.5, "counts": counts})
    };
    report.weights = from(json!({
        "run": "optimizer=adam,hidden=16-s1",
        "weights": {
            "format": 3, "saved": ["initial", "best", "final"], "num_more": 2,
            "parameters": [{
                "name": "linear.weight", "shape": [4, 2], "range": [-1.0, 1.0],
                "values": [values(-0.5, 5), values(0.25, 20), values(0.75, 25)],
            }, {
                "name": "linear.bias", "shape": [2], "range": [0.0, 0.0],
                "values": [{"mean": 0.0, "sd": 0.0}, {"mean": 0.0, "sd": 0.0, "not_finite": 2}, {"mean": 0.0, "sd": 0.0}],
            }],
        },
    }));
    report.evaluation = from(json!({
        "trial": "optimizer=adam,hidden=16", "run": "optimizer=adam,hidden=16-s1", "n": 8,
        "evaluation": {
            "format": 2, "split": "valid", "epoch": 3, "task": "classification", "num_items": 12,
            "classes": ["a", "<b>"], "confusion": [[5, 1], [0, 6]],
            "mistakes": [{
                "item": 3, "target": "a", "predicted": "<b>", "probability": 0.75, "loss": 1.5,
                "where": "row 4 of iris.csv", "picture": "data:image/png;base64,AAAA",
            }],
        },
    }));
    report.problems = from(json!([
        {"run": "x-s1", "outcome": "failed", "message": "panic: it broke; the backtrace is in run.log"},
        {"run": "x-s2", "outcome": "failed", "message": "panic: it broke; the backtrace is in run.log"},
        {"run": "y-s1", "outcome": "not_started", "message": "`runner run spec.toml` continues it"},
    ]));
    report
}

fn from<T: serde::de::DeserializeOwned>(value: Json) -> T {
    serde_json::from_value(value).expect("a part of a report")
}

fn regression() -> Report {
    let mut report = made_up();
    report.evaluation = from(json!({
        "trial": "t", "run": "t-s1", "n": 1,
        "evaluation": {
            "format": 2, "split": "valid", "epoch": 3, "task": "regression", "num_items": 2, "targets": ["y"],
            "points": [
                {"item": 0, "target": [1.0], "predicted": [1.5], "where": "row 1"},
                {"item": 1, "target": [2.0], "predicted": [1.5], "where": "row 2"},
            ],
            "residuals": [{"mean": 0.0, "sd": 0.7, "rmse": 0.5, "quantiles": {"0": -0.5, "0.5": 0.0, "1": 0.5}}],
        },
    }));
    report
}

/// A report of a task whose items are shown as pictures or texts.
fn with_samples(evaluation: Json) -> Report {
    let mut report = made_up();
    let head = json!({"format": 3, "split": "valid", "epoch": 3, "num_items": 2});
    let mut all = head.as_object().unwrap().clone();
    all.extend(evaluation.as_object().unwrap().clone());
    report.evaluation = from(json!({"trial": "t", "run": "t-s1", "n": 1, "evaluation": all}));
    report
}

fn segmentation() -> Report {
    let picture = "data:image/png;base64,AAAA";
    with_samples(json!({
        "task": "segmentation", "num_pixels": 32,
        "classes": ["sky", "<sea>"], "confusion": [[15, 1], [2, 14]],
        "samples": [
            {"item": 0, "loss": 0.5, "where": "a.png", "input": picture, "target": picture, "predicted": picture},
            {"item": 1, "loss": 1.5, "where": "<b>.png", "target": picture, "predicted": picture},
        ],
    }))
}

fn language() -> Report {
    let long = "word ".repeat(100) + "end";
    with_samples(json!({
        "task": "next_token", "num_tokens": 16,
        "texts": [{"item": 0, "prompt": long, "target": "a <b>\nc", "predicted": "a a a"}],
    }))
}

fn page(report: &Report) -> String {
    html(report, None).expect("the built-in template is right")
}

/// A page without its style, its script and the content of its plots, which have their own tests.
fn readable(page: &str) -> String {
    let without = |text: &str, pattern: &str, by: &str| {
        let pattern = Regex::new(pattern).unwrap();
        pattern.replace_all(text, by).into_owned()
    };
    let text = without(page, "(?s)<style>.*?</style>", "<style>[STYLE]</style>");
    let text = without(
        &text,
        "(?s)<script>.*?</script>",
        "<script>[SCRIPT]</script>",
    );
    without(
        &text,
        r#"(?s)<svg class="plot (\w+)".*?aria-(?:label="([^"]*)"|hidden).*?</svg>"#,
        "[$1: $2]",
    )
}

#[test]
fn the_page_and_the_text_say_the_same() {
    let report = made_up();
    insta::assert_snapshot!("page", readable(&page(&report)));
    insta::assert_snapshot!("page_as_markdown", markdown(&report));
    assert_eq!(page(&report), page(&report));
    let saved: Report = from(serde_json::to_value(&report).unwrap());
    assert_eq!(
        page(&saved),
        page(&report),
        "a saved report gives the same page"
    );
    let page = page(&regression());
    assert_eq!(page.matches("<svg class=\"plot scatter\"").count(), 3);
}

/// A section of a page.
fn section<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, rest) = page
        .split_once(&format!("<section id=\"{id}\""))
        .expect("the section is there");
    rest.split("</section>").next().unwrap()
}

#[test]
fn samples_are_shown_beside_their_targets() {
    let masks = page(&segmentation());
    insta::assert_snapshot!(section(&masks, "samples"));
    assert!(!masks.contains("<sea>") && !masks.contains("<b>.png"));
    let reconstructed = page(&with_samples(json!({
        "task": "autoencoding",
        "samples": [{"item": 0, "loss": 0.5, "where": "item 0", "input": "data:image/png;base64,AAAA", "predicted": "data:image/png;base64,AAAA"}],
    })));
    let shown = section(&reconstructed, "samples");
    assert!(shown.contains("<h2>Reconstructions</h2>") && shown.contains("alt=\"reconstructed\""));
    let texts = page(&language());
    let texts = section(&texts, "texts");
    assert!(
        texts.contains("a &lt;b&gt;\u{21b5} c") && texts.contains("word end"),
        "{texts}"
    );
    assert!(
        texts.len() < 1500,
        "only the end of the prompt is shown: {texts}"
    );
}

/// A page loads nothing from anywhere, whatever the report contains.
#[test]
fn the_page_stands_alone_and_texts_stay_texts() {
    let mut report = made_up();
    let hostile = "</script><script>alert(1)</script><img src=http://x/y onerror=alert(1)>`\"'";
    report.question = hostile.into();
    report.remarks.push(hostile.into());
    report.notices.push(hostile.into());
    report.trials[0].id = hostile.into();
    report.curves.trials[0].trial = hostile.into();
    report.problems[2].message = hostile.into();
    let page = page(&report);
    assert_eq!(page.matches("<script").count(), 1);
    assert!(
        !page.contains("<img src=http"),
        "an element of the report's text"
    );
    for address in ["src=\"", "href=\"", "url("] {
        for (at, _) in page.match_indices(address) {
            let rest = &page[at + address.len()..];
            assert!(
                rest.starts_with('#') || rest.starts_with("data:"),
                "{}",
                &rest[..40]
            );
        }
    }
    assert!(!page.contains("@import") && page.contains("default-src 'none'"));
}

#[test]
fn a_large_experiment_has_a_page_that_can_be_read() {
    let mut report = made_up();
    let trial = report.trials[0].clone();
    report.trials = (0..1000)
        .map(|at| {
            let mut trial = trial.clone();
            trial.id = format!("optimizer=adam,hidden={at},learning_rate=0.00{at}");
            trial.axes["model.hidden"] = json!(at);
            trial
        })
        .collect();
    for at in 0..10_000 {
        let run = format!("optimizer=adam,hidden=16,learning_rate=0.00{at}-s1");
        let message = format!("panic: it broke at step {at}; the backtrace is in run.log");
        report.commands.insert(
            run.clone(),
            json!(format!("runner run spec.toml --only {run}")),
        );
        report.problems.push(from(
            json!({"run": run, "outcome": "failed", "message": message}),
        ));
        report
            .remarks
            .push(format!("`{run}` was not made as planned"));
    }
    let page = page(&report);
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
    for cut in [
        "The first 200 of 1000 rows",
        "The first 200 of 10032 commands",
        "report.json</code> contains all",
    ] {
        assert!(page.contains(cut), "{cut}");
    }
}

#[test]
fn what_is_not_there_leaves_no_holes() {
    let mut empty = made_up();
    let nothing: Report = from(json!({
        "format": 2, "experiment": "e", "question": "", "objective": "valid/loss", "notices": [], "axes": [], "num_runs": 0,
        "num_completed": 0, "trials": [], "problems": [], "remarks": [], "leftovers": [],
        "provenance": {"environments": [], "data": []}, "commands": {},
    }));
    for trial in &mut empty.trials {
        (trial.n, trial.rank, trial.wall_secs, trial.memory) = (0, None, None, None);
        trial.metrics.clear();
        trial.verdict = None;
    }
    for report in [&nothing, &empty] {
        let page = page(report);
        assert!(page.contains("No run is completed"), "{page}");
        let page = readable(&page);
        assert!(!page.contains("NaN") && !page.contains("None"), "{page}");
    }
}

#[test]
fn templates_of_users_are_used_or_refused_with_their_place() {
    let report = made_up();
    let own = "{% extends \"report.html\" %}\n{% block footer %}<p>{{ report.trials|length }} trials of {{ report.experiment }}</p>{% endblock %}";
    let page = html(&report, Some(own)).unwrap();
    assert!(
        page.contains("<p>4 trials of made_up</p>") && page.contains("<h2>Learning curves</h2>")
    );
    assert_eq!(
        html(&report, Some("{{ report.question }} <")).unwrap(),
        "Which optimizer? <\n"
    );
    let wrong = [
        "<p>\n{{ report.question",
        "<p>\n{% block a %}",
        "{{ reprot.question }}",
        "{% extends \"report.html\" %}\n{% block head %}\n{{ report.question|shout }}\n{% endblock %}",
        "{% include \"/etc/passwd\" %}",
        "{{ 1 / 0 }}",
    ];
    let said = wrong.map(|text| format!("{text}\n=> {}", html(&report, Some(text)).unwrap_err()));
    insta::assert_snapshot!(said.join("\n\n"));
}

#[test]
fn a_template_is_given_to_the_report_verb() {
    let folder = completed(IRIS, &[]);
    let page = || fs::read_to_string(folder.path().join("results/spec/report.html")).unwrap();
    assert!(page().contains("<svg class=\"plot lines\""));
    let (code, built_in, _) = run(folder.path(), &["report", "--print-template"]);
    assert_eq!(
        (code, built_in.trim_end()),
        (0, burn_runner::report::TEMPLATE.trim_end())
    );
    let with = |text: &str| {
        fs::write(folder.path().join("own.html"), text).unwrap();
        let arguments = ["report", "results/spec", "--template", "own.html"];
        let (code, _, said) = run(folder.path(), &arguments);
        (code, said)
    };
    assert_eq!(with("<p>{{ answer|code }}</p>").0, 0);
    assert!(page().starts_with("<p>Highest ranked: <code>base</code>"));
    let (code, said) = with("<h1>\n  {{ report.experiment|shout }}\n</h1>");
    assert_eq!(code, 2);
    let (missing, _, not_there) = run(
        folder.path(),
        &["report", "results/spec", "--template", "none.html"],
    );
    assert_eq!(missing, 2);
    insta::assert_snapshot!(format!("{said}\n{not_there}"));
}

/// The content of a page after a browser has rendered it, and its console output.
fn shown(chromium: &Path, page: &Path, script: &str) -> (String, String) {
    shown_in(chromium, page, script, 800)
}

/// The same in a window of a width.
fn shown_in(chromium: &Path, page: &Path, script: &str, width: usize) -> (String, String) {
    let text = fs::read_to_string(page).unwrap();
    let probe = page.with_extension("probe.html");
    // After the page's own script; the results are written into a separate element.
    let added = format!(
        "<script>{{ const out = document.createElement('pre'); out.id = 'out'; document.body.append(out); {script} }}</script></body>"
    );
    fs::write(&probe, text.edit("</body>", &added)).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--dump-dom",
            "--virtual-time-budget=5000",
        ])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("file://{}", probe.display()))
        .output()
        .expect("chromium starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .collect();
    let dom = String::from_utf8_lossy(&output.stdout).into_owned();
    let out = dom.split("<pre id=\"out\">").nth(1).unwrap_or_default();
    let out = out.split("</pre>").next().unwrap_or_default().to_owned();
    (out, said.join("\n"))
}

#[test]
fn a_browser_shows_it_and_sorts_it() {
    let Some(chromium) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("report.html");
    fs::write(&at, page(&made_up())).unwrap();
    let script = r##"
        const table = document.querySelector("table.ranked");
        const column = (name) => [...table.tHead.rows[0].cells].find((cell) => cell.textContent === name);
        const order = () => [...table.tBodies[0].rows].map((row) => row.cells[0].textContent).join(" ");
        const said = [order()];
        for (const name of ["valid/accuracy", "valid/accuracy", "optimizer.type"]) {
            const head = column(name);
            head.click();
            said.push(`${name} ${head.getAttribute("aria-sort")}: ${order()}`);
        }
        column("#").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
        said.push(`# by a key: ${order()}`);
        const wide = document.documentElement.scrollWidth <= document.documentElement.clientWidth;
        said.push(wide ? "nothing is cut off" : "the page is wider than the window");
        const sizes = [...document.querySelectorAll("svg.plot")].map((svg) => svg.getBoundingClientRect());
        said.push(sizes.every((size) => size.width > 20 && size.height > 10) ? "plots have a size" : "a plot has none");
        const plot = document.querySelector("svg.lines");
        const box = plot.getBoundingClientRect();
        const over = (x, y, target) => target.dispatchEvent(new PointerEvent("pointermove", { clientX: x, clientY: y, bubbles: true }));
        over(box.left + box.width * 0.4, box.top + box.height / 2, plot);
        said.push(document.getElementById("tip").textContent);
        over(1, 1, document.querySelector("svg.heat rect"));
        said.push(document.getElementById("tip").textContent);
        over(1, 1, document.body);
        said.push(`the tip is ${document.getElementById("tip").hidden ? "hidden" : "shown"}`);
        out.textContent = said.join("\n");
    "##;
    let (found, said) = shown(&chromium, &at, script);
    assert_eq!(said, "", "the console is empty");
    insta::assert_snapshot!(found);
}

/// No rule of axe-core is broken, in light and dark, with folded parts open.
#[test]
fn the_page_is_accessible() {
    let (Some(axe), Some(chromium)) = (axe(), chromium()) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let pages = [
        page(&made_up()),
        page(&segmentation()),
        page(&language()),
        page(&regression()),
    ];
    for (at, text) in pages.into_iter().enumerate() {
        // Rules of the dark scheme are those of a screen that asks for it.
        let dark = text.edit("screen and (prefers-color-scheme: dark)", "screen");
        for (name, text) in [("light", text), ("dark", dark)] {
            let path = folder.path().join(format!("{at}-{name}.html"));
            fs::write(&path, text).unwrap();
            let script = format!(
                "{axe};
                 for (const it of document.querySelectorAll('details')) it.open = true;
                 out.remove();
                 axe.run(document).then((found) => {{
                     out.textContent = found.passes.length + ' ' + JSON.stringify(found.violations.map((it) => [it.id, it.nodes.map((node) => node.html)]));
                     document.body.append(out);
                 }});"
            );
            let (found, _) = shown(&chromium, &path, &script);
            let (num, wrong) = found.split_once(' ').unwrap_or_default();
            assert_eq!(wrong, "[]", "{at} {name}");
            assert!(num.parse::<usize>().unwrap() > 15, "{num}");
        }
    }
}

#[test]
fn the_ranked_table_fits_wide_and_narrow_windows() {
    let Some(chromium) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("report.html");
    fs::write(&at, page(&made_up())).unwrap();
    let script = r##"
        const wrap = document.querySelector("table.ranked").parentNode;
        const cells = [...document.querySelectorAll("table.ranked tbody tr:first-child td")];
        const right = Math.max(...cells.map((cell) => cell.getBoundingClientRect().right));
        out.textContent = [wrap.scrollWidth <= wrap.clientWidth, right <= innerWidth,
            document.documentElement.scrollWidth <= innerWidth].join(" ");
    "##;
    // A headless browser has no window narrower than 500.
    for width in [1600, 1280, 760, 500] {
        let (found, _) = shown_in(&chromium, &at, script, width);
        assert_eq!(found, "true true true", "{width}");
    }
}

#[test]
fn a_browser_shows_failed_and_partial_experiments() {
    let Some(chromium) = chromium() else { return };
    let folder = folder_with(&format!(
        "[experiment]\nquestion = \"What is left?\"\nseeds = [1, 2]\n{IRIS}\n[sweep.grid]\nmodel.hidden = [[], [32]]\n"
    ));
    let arguments = |fault: &'static str| ["run", "spec.toml", "--quiet", "--inject-fault", fault];
    for (fault, kept) in [
        ("*@epoch:1=panic", "No run is completed"),
        ("*none*@epoch:3=panic", "2 of 4 runs completed"),
    ] {
        let (code, _, _) = run(folder.path(), &arguments(fault));
        assert_eq!(code, 1);
        let (found, said) = shown(
            &chromium,
            &folder.path().join("results/spec/report.html"),
            "out.textContent = document.querySelector('.answer').textContent + document.querySelectorAll('.problems li').length;",
        );
        assert_eq!(said, "");
        assert!(found.contains(kept), "{found}");
        assert!(
            found.ends_with('1'),
            "those of one reason stand together: {found}"
        );
    }
}

#[test]
fn a_live_page_keeps_what_a_reader_has_set() {
    let Some(chromium) = chromium() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("report.html");
    fs::write(&at, page(&made_up())).unwrap();
    let live = include_str!("../../crates/report/src/serve/live.js");
    // A new section stands before all others, so that places in the whole page are other ones.
    let script = format!(
        r##"
        let next;
        window.setTimeout = (then) => {{ next = then; }};
        const more = '<section id="new"><details><summary>new</summary></details></section>';
        const text = document.documentElement.outerHTML.replace('<section id="answer"', more + '<section id="answer"');
        window.fetch = async () => ({{ status: 200, headers: new Map([["ETag", "x"]]), text: async () => text }});
        {live}
        const details = () => [...document.querySelectorAll("details")];
        const before = details().length;
        details().at(-1).open = true;
        const head = () => document.querySelectorAll("table.ranked th")[1];
        head().click();
        head().click();
        document.head.insertAdjacentHTML("beforeend", "<style>#answer .wrap {{ max-height: 3rem !important; }}</style>");
        const box = () => document.querySelector("#answer .wrap");
        box().scrollTop = 20;
        scrollTo(0, 300);
        const rows = () => [...document.querySelector("table.ranked").tBodies[0].rows];
        const order = () => rows().map((row) => row.cells[0].textContent).join(" ");
        const sorted = order();
        (async () => {{
            await next();
            // The text that was put in has an empty one too.
            document.getElementById("out").remove();
            document.body.append(out);
            const open = details().map((it) => it.open);
            const kept = [open.at(-1), open.filter((it) => it).length, head().getAttribute("aria-sort"), order() === sorted, box().scrollTop, scrollY];
            out.textContent = [details().length - before, ...kept].join(" ");
        }})();
    "##
    );
    let (found, said) = shown(&chromium, &at, &script);
    assert_eq!(said, "", "the console is empty");
    assert_eq!(found, "1 true 1 descending true 20 300");
}
