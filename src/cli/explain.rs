//! `runner explain`: the meaning of a table, a key, a layer, a metric or a class of failure.

use comfy_table::{ContentArrangement, Table, presets};

use super::output::Output;
use super::{OK, WRONG};
use runner_core::spec::topics::{Found, Part, Topic, find, topics};

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
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(Output::width().min(WIDEST));
    let has_kinds = parts.iter().any(|part| !part.expects.is_empty());
    for part in parts {
        let name = format!(" {}", part.name);
        if has_kinds {
            table.add_row([&name, &part.expects, &part.doc]);
        } else {
            table.add_row([&name, &part.doc]);
        }
    }
    let lines = table.to_string();
    let lines: Vec<_> = lines.lines().map(str::trim_end).collect();
    lines.join("\n")
}
