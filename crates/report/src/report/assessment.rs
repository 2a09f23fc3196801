//! The result of `runner evaluate`, as text and as a page in the style of reports.

use super::numbers::short_number;
use super::plot::{Cell, Heat, escape, heat, legend_mark};
use super::separation;
use runner_core::diagnostic::counted;
use runner_core::predict::{Against, Assessment, Residual};
use runner_core::record::evaluation::Confusion;
use runner_core::table::{Columns, fit};

/// The maximum number of classes in a printed confusion matrix.
const MOST_PRINTED: usize = 12;

/// A table: a head and rows.
struct Table {
    title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The whole result as text, for a terminal with tables of its width.
pub fn text(found: &Assessment, width: Option<u16>) -> String {
    let mut text = format!("{}\n", about(found));
    for Table { title, head, rows } in tables(found, MOST_PRINTED) {
        let fitted = fit(Columns { head, rows }, width, &[]);
        text.push_str(&format!("\n{title}\n{}\n", fitted.text));
    }
    text
}

/// The whole result as a self-contained page.
pub fn html(found: &Assessment) -> String {
    let mut body = String::new();
    for table in tables(found, 0) {
        body.push_str(&format!(
            "<section><h2>{}</h2>\n<div class=\"wrap\" tabindex=\"0\"><table>\n<thead><tr>",
            escape(&table.title)
        ));
        for name in &table.head {
            body.push_str(&format!("<th scope=\"col\">{}</th>", escape(name)));
        }
        body.push_str("</tr></thead>\n<tbody>\n");
        for row in &table.rows {
            body.push_str("<tr>");
            for (at, cell) in row.iter().enumerate() {
                let class = if at > 0 { " class=\"n\"" } else { "" };
                body.push_str(&format!("<td{class}>{}</td>", escape(cell)));
            }
            body.push_str("</tr>\n");
        }
        body.push_str("</tbody></table></div></section>\n");
    }
    if let Some(confusion) = &found.confusion {
        body.push_str(&format!(
            "<section><h2>Confusion</h2>\n<figure>{}<figcaption>How many of each class (row) are predicted as each class (column); the stronger the color, the larger the fraction of the class.</figcaption></figure></section>\n",
            heat_of(confusion)
        ));
    }
    let (drawn, names) = separation::plots(&found.separations);
    if !found.separations.is_empty() {
        body.push_str("<section><h2>Curves</h2>\n");
        if names.len() > 1 {
            let keys = names.iter().enumerate();
            let keys =
                keys.map(|(at, name)| format!("<li>{} {}</li>", legend_mark(at), escape(name)));
            let keys: String = keys.collect();
            body.push_str(&format!("<ul class=\"legend\">{keys}</ul>\n"));
        }
        body.push_str("<div class=\"figures\">\n");
        for one in drawn {
            body.push_str(&format!(
                "<figure>{}<figcaption>{}</figcaption></figure>\n",
                one.svg, one.caption
            ));
        }
        body.push_str("</div></section>\n");
    }
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n<title>{}</title>\n<style>\n{}\n</style>\n</head>\n<body>\n<main>\n<header><p class=\"name\">{}</p>\n<h1>Evaluation on {}</h1></header>\n<section id=\"answer\"><p class=\"answer\">{}</p></section>\n{body}</main>\n</body>\n</html>\n",
        escape(&found.run),
        include_str!("html/style.css"),
        escape(&found.run),
        escape(&found.data),
        escape(&about(found)),
    )
}

/// The subject of the evaluation.
fn about(found: &Assessment) -> String {
    let skipped = match found.num_skipped {
        0 => String::new(),
        num => format!(", {num} skipped"),
    };
    let intervals = match found.num_resamples {
        0 if found.num_items < 2 => "without intervals, since one item shows no spread".to_owned(),
        0 => "without intervals, since there are too many items for resampling".to_owned(),
        num => format!(
            "{} % intervals from {num} bootstrap resamples of the items",
            // Without the digits that a level does not have.
            (1e6 * found.level).round() / 1e4
        ),
    };
    format!(
        "Run {} (weights: {}) on {}: {}{skipped}; {intervals}.",
        found.run,
        found.weights,
        found.data,
        counted(found.num_items as usize, "item")
    )
}

fn tables(found: &Assessment, most_classes: usize) -> Vec<Table> {
    let strings = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut tables = vec![Table {
        title: "Metrics".into(),
        head: strings(&["metric", "value", "interval"]),
        rows: found
            .metrics
            .iter()
            .map(|m| vec![m.name.clone(), short_number(m.value), interval(m.interval)])
            .collect(),
    }];
    if let Some(against) = &found.against {
        tables.extend(compared(against, &found.run));
    }
    if let Some(confusion) = found
        .confusion
        .as_ref()
        .filter(|confusion| confusion.classes.len() <= most_classes)
    {
        let mut head = vec!["class".to_owned()];
        head.extend(confusion.classes.iter().cloned());
        let rows = confusion.classes.iter().zip(&confusion.confusion);
        tables.push(Table {
            title: "Confusion: a row for each class, a column for each prediction".into(),
            head,
            rows: rows
                .map(|(class, row)| {
                    let counts = row.iter().map(u64::to_string);
                    std::iter::once(class.clone()).chain(counts).collect()
                })
                .collect(),
        });
    }
    if !found.separations.is_empty() {
        let Columns { head, rows } = separation::summary(&found.separations, "class");
        tables.push(Table {
            title: "Probabilities: how they separate items from others".into(),
            head,
            rows,
        });
    }
    if let [only] = &found.separations[..] {
        let Columns { head, rows } = separation::thresholds(&only.of);
        tables.push(Table {
            title: format!(
                "Thresholds: predicted as {} from a probability on",
                only.class
            ),
            head,
            rows,
        });
    }
    if !found.residuals.is_empty() {
        let row = |residual: &Residual| {
            let numbers = [
                residual.mean,
                residual.mean_absolute,
                residual.root_mean_square,
            ];
            let numbers = numbers.into_iter().chain(residual.quantiles);
            std::iter::once(residual.target.clone())
                .chain(numbers.map(short_number))
                .collect()
        };
        tables.push(Table {
            title: "Residuals: predicted minus target, in units of the target".into(),
            head: strings(&[
                "target", "mean", "mean abs", "rms", "min", "5 %", "median", "95 %", "max",
            ]),
            rows: found.residuals.iter().map(row).collect(),
        });
    }
    tables
}

/// The tables of a comparison.
fn compared(against: &Against, run: &str) -> Vec<Table> {
    let rows = against.metrics.iter().map(|metric| {
        vec![
            metric.name.clone(),
            short_number(metric.value),
            short_number(metric.other),
            short_number(metric.value - metric.other),
            interval(metric.interval),
        ]
    });
    let mut tables = vec![Table {
        title: format!(
            "Against {}: differences by the paired bootstrap",
            against.run
        ),
        head: ["metric", run, &against.run, "difference", "interval"]
            .map(str::to_owned)
            .to_vec(),
        rows: rows.collect(),
    }];
    if let Some(right) = &against.right {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        tables.push(Table {
            title: "Items that are predicted correctly (McNemar's exact test)".into(),
            head: vec!["by".into(), "items".into()],
            rows: vec![
                row("both", right.both.to_string()),
                row(&format!("only {run}"), right.first.to_string()),
                row(&format!("only {}", against.run), right.other.to_string()),
                row("neither", right.neither.to_string()),
                row("p", short_number(right.p)),
            ],
        });
    }
    tables
}

fn interval(of: Option<[f64; 2]>) -> String {
    of.map_or("-".into(), |[low, high]| {
        format!("{} to {}", short_number(low), short_number(high))
    })
}

/// The confusion matrix as a heat map.
pub(super) fn heat_of(confusion: &Confusion) -> String {
    let classes = &confusion.classes;
    let rows = confusion.confusion.iter().enumerate();
    let cells = rows.map(|(at, row)| {
        let total = row
            .iter()
            .fold(0, |sum: u64, count| sum.saturating_add(*count))
            .max(1);
        let cells = row.iter().enumerate().map(|(to, count)| {
            let share = *count as f64 / total as f64;
            Cell {
                value: Some(share),
                text: if *count == 0 {
                    String::new()
                } else {
                    count.to_string()
                },
                title: format!(
                    "{} predicted as {}: {count} of {total} ({} %)",
                    classes[at],
                    classes[to],
                    short_number(100.0 * share)
                ),
            }
        });
        cells.collect()
    });
    let cells: Vec<Vec<Cell>> = cells.collect();
    heat(&Heat {
        description: &format!("confusion of {} classes", classes.len()),
        x_label: "predicted",
        y_label: "class",
        columns: classes,
        rows: classes,
        cells: &cells,
        is_low_dark: false,
    })
}
