//! `runner explain`: the meaning of a table, a key, a layer, a metric or a class of failure.

use super::output::Output;
use super::{OK, WRONG};
use runner_core::spec::topics::{Found, Part, Topic, find, topics};
use runner_core::table::{Columns, fit_sentences};

/// The maximum width for readable lines.
const WIDEST: u16 = 100;

/// `runner explain`
pub fn explain(asked: Option<&str>, output: &mut Output) -> u8 {
    let Some(asked) = asked else {
        let topics = topics().into_iter();
        let tables = topics.filter(|topic| !topic.path.contains('.'));
        let parts: Vec<_> = tables
            .map(|topic| Part {
                name: topic.path,
                expects: String::new(),
                doc: topic.doc,
            })
            .collect();
        output.print(&table(&parts));
        return OK;
    };
    match find(asked) {
        Found::One(topic) => {
            output.print(&text(&topic));
            OK
        }
        Found::Several(paths) => {
            let paths: Vec<_> = paths.iter().map(|path| format!("  {path}")).collect();
            output.print(&format!(
                "`{asked}` exists in several places; choose one:\n{}",
                paths.join("\n")
            ));
            OK
        }
        Found::None(near) => {
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "`runner explain` lists the tables".to_owned(),
            };
            output.say(&format!(
                "error: `{asked}` is not a key, layer or metric\n  = help: {help}"
            ));
            WRONG
        }
    }
}

fn text(topic: &Topic) -> String {
    let mut text = format!("{}\n\n  {}\n", topic.path, topic.doc);
    if !topic.expects.is_empty() {
        text.push_str(&format!("\n  Accepts: {}\n", topic.expects));
    }
    if !topic.parts.is_empty() {
        text.push_str(&format!("\n{}\n", table(&topic.parts)));
    }
    if !topic.example.is_empty() {
        text.push_str(&format!("\n  Example: {}\n", topic.example));
    }
    text
}

fn table(parts: &[Part]) -> String {
    let has_kinds = parts.iter().any(|part| !part.expects.is_empty());
    let num_columns = if has_kinds { 3 } else { 2 };
    let mut columns = Columns {
        head: vec![String::new(); num_columns],
        rows: Vec::new(),
    };
    for part in parts {
        let mut row = vec![format!(" {}", part.name)];
        row.extend(has_kinds.then(|| part.expects.clone()));
        row.push(part.doc.clone());
        columns.rows.push(row);
    }
    fit_sentences(columns, Output::width().min(WIDEST), &[])
}
