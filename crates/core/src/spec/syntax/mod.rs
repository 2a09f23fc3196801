//! What is wrong with a text that is not TOML, in words that help: the parser says what it expected at the place where
//! it stopped, which is often far from the mistake.

mod brackets;
mod known;
mod line;
mod repair;

use std::ops::Range;

use crate::diagnostic::{Diagnostic, Span};
use brackets::{Brackets, Open, Problem};
use line::{Kind, code, is_toml, is_value, open_ends, parts};
use repair::Place;

/// What is wrong with a line, and what to do if that is known.
#[derive(Debug, PartialEq)]
pub struct Wrong {
    what: String,
    help: Option<String>,
}

const HELP: &str = "a line is a table `[name]`, a key with its value `name = value`, or a comment `# …`; texts have quotes, and lists brackets";

/// So many errors are shown.
const MOST: usize = 3;

/// The errors of a parser as diagnostics. The first of each line is kept, at most three in total, because later ones are
/// mostly consequences; so are all after a bracket that is not closed.
pub fn diagnostics(text: &str, source: u16, errors: &[toml::de::Error]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    if errors.is_empty() {
        return found;
    }
    let error = |wrong: Wrong, at: Range<usize>| {
        let help = wrong.help.unwrap_or_else(|| HELP.to_owned());
        Diagnostic::error("syntax", format!("not valid TOML: {}", wrong.what))
            .at(Span::of(source, at))
            .help(help)
    };
    let Brackets { problem, places } = Brackets::of(text);
    let text = Text::new(text, places);
    if let Some(at) = text.merge_marker() {
        let wrong = Wrong {
            what: "the file has the marks of an unfinished merge".into(),
            help: Some(
                "keep one of the two versions, and remove the lines `<<<<<<<`, `=======` and `>>>>>>>`"
                    .into(),
            ),
        };
        return vec![error(wrong, at)];
    }
    let in_brackets = problem.as_ref().map(|problem| match problem {
        Problem::Open(open) => text.line_of(open.at),
        Problem::ClosedBy { at, .. } => text.line_of(*at),
    });
    let mut sorted: Vec<_> = errors
        .iter()
        .map(|wrong| (wrong.span().unwrap_or(0..0), wrong.message().trim()))
        .collect();
    sorted.sort_by_key(|(at, _)| at.start);
    let mut last = None;
    for (at, message) in sorted {
        let line = text.line_of(at.start);
        if let Some(problem) = problem.as_ref().filter(|_| in_brackets <= Some(line)) {
            let (wrong, at) = unbalanced(&text, problem);
            found.push(error(wrong, at));
            break;
        }
        if found.len() == MOST {
            break;
        }
        if last.replace(line) == Some(line) {
            continue;
        }
        let written = text.lines[line];
        if message.contains("duplicate key") {
            // The keys below a table that is wrong are added to the one before it.
            if found.is_empty() {
                found.push(error(duplicate(written, message), at));
            }
            break;
        }
        if let Some(wrong) = value_in_next_line(&text.lines[line..]) {
            found.push(error(wrong, at));
            break;
        }
        let place = text.place(line);
        let wrong = repair::wrong(written, place, true)
            .or_else(|| comma_before(&text.lines[..line], place, message))
            .unwrap_or_else(|| unknown(written, message));
        found.push(error(wrong, at));
        if ends_all(written, place) {
            break;
        }
    }
    found
}

/// The lines of a text.
struct Text<'a> {
    lines: Vec<&'a str>,
    /// The first byte of each.
    starts: Vec<usize>,
    /// What each is in, as far as that is known.
    places: Vec<Place>,
}

impl<'a> Text<'a> {
    fn new(text: &'a str, places: Vec<Place>) -> Self {
        let lines: Vec<&str> = text.split('\n').collect();
        let mut next = 0;
        let starts = lines.iter().map(|line| {
            let start = next;
            next += line.len() + 1;
            start
        });
        Self {
            starts: starts.collect(),
            lines,
            places,
        }
    }

    /// The line with a byte.
    fn line_of(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at) - 1
    }

    fn place(&self, line: usize) -> Place {
        self.places.get(line).copied().unwrap_or(Place::File)
    }

    /// Where a merge that has not been finished begins.
    fn merge_marker(&self) -> Option<Range<usize>> {
        let begins = |line: &&str, mark: &str| line.split_whitespace().next() == Some(mark);
        let first = self.lines.iter().position(|line| begins(line, "<<<<<<<"))?;
        let mut after = self.lines[first..].iter();
        let start = self.starts[first];
        after
            .any(|line| begins(line, ">>>>>>>"))
            .then_some(start..start + 7)
    }
}

/// A key or a table that is there twice.
fn duplicate(line: &str, message: &str) -> Wrong {
    let name = code(line).trim_matches(['[', ']', ' ']);
    let is_header = code(line).starts_with('[');
    let help = if is_header && known::table(name) == Some(true) {
        format!("write `[[{name}]]` for each of them")
    } else {
        "a key or table stands only once in a file: remove one of the two, or merge the tables"
            .into()
    };
    Wrong {
        what: message.to_owned(),
        help: Some(help),
    }
}

/// Whether what follows a line that is wrong is taken for something else: it is in a text, or in a table of another form.
fn ends_all(line: &str, place: Place) -> bool {
    let all = parts(line);
    let is_open = all.last().is_some_and(|part| part.kind == Kind::Unclosed);
    let has_bracket = all
        .iter()
        .any(|part| matches!(part.kind, Kind::Mark('[' | '{')));
    let is_block = place == Place::File && code(line).ends_with(['{', '(']);
    is_open && (place != Place::File || has_bracket) || is_block
}

/// A value in the line after its key, which is the first one.
fn value_in_next_line(lines: &[&str]) -> Option<Wrong> {
    let key = code(lines[0]);
    let next = lines.get(1)?.trim();
    (key.ends_with('=') && is_value(next)).then(|| Wrong {
        what: format!("`{}` has no value", key.trim_end_matches(['=', ' '])),
        help: Some(format!("write `{key} {next}` in one line")),
    })
}

/// A value of a list, or a key in braces, after one without a comma.
fn comma_before(lines: &[&str], place: Place, message: &str) -> Option<Wrong> {
    if place == Place::File || !message.contains("comma") {
        return None;
    }
    let before = lines.iter().rposition(|line| !code(line).is_empty())?;
    let value = code(lines[before]);
    (!value.ends_with([',', '[', '{'])).then(|| Wrong {
        what: "a `,` is missing between two lines".into(),
        help: Some(format!("write `{value},` in line {}", before + 1)),
    })
}

/// What to say of a line that nothing is known of.
fn unknown(line: &str, message: &str) -> Wrong {
    // The parser guesses at what a value begins with.
    const GUESSES: [&str; 6] = [
        "string values must be quoted",
        "invalid boolean",
        "invalid infinity",
        "invalid nan",
        "invalid date",
        "invalid time",
    ];
    let value = line::halves(line).map(|(_, value)| value);
    let what = match value {
        Some(value)
            if GUESSES.iter().any(|guess| message.contains(guess))
                && !value.is_empty()
                && value.len() < 60
                && !value.contains(['[', '{', '"', '\'']) =>
        {
            format!("`{value}` is not a value")
        }
        _ => message.to_owned(),
    };
    Wrong { what, help: None }
}

/// What to say of a bracket or quotes that are not closed as they should be.
fn unbalanced(text: &Text<'_>, problem: &Problem) -> (Wrong, Range<usize>) {
    // The line may be mended by itself.
    let mended = |line: usize| repair::wrong(text.lines[line], text.place(line), false);
    match problem {
        Problem::ClosedBy { at, open } => {
            let line = text.line_of(*at);
            let wrong = mended(line).unwrap_or_else(|| {
                let within = at - text.starts[line];
                let close = &text.lines[line][within..=within];
                Wrong {
                    what: format!("`{open}` is closed by `{close}`"),
                    help: Some("close each bracket by one of its kind".into()),
                }
            });
            (wrong, *at..at + 1)
        }
        Problem::Open(open) => {
            let mended = mended(text.line_of(open.at)).filter(|wrong| {
                let help = wrong.help.as_deref();
                help.is_some_and(|help| help.starts_with("write `"))
            });
            let wrong = mended.unwrap_or_else(|| not_closed(text, open));
            (wrong, open.at..open.at + 1)
        }
    }
}

fn not_closed(text: &Text<'_>, open: &Open) -> Wrong {
    let lines = &text.lines;
    let line = text.line_of(open.at);
    let within = open.at - text.starts[line];
    let is_text = open.close.starts_with(['"', '\'']);
    let mark = if is_text {
        open.close.as_str()
    } else {
        &lines[line][within..=within]
    };
    let what = format!("`{mark}` is not closed");
    let say = |help: String| Wrong {
        what: what.clone(),
        help: Some(help),
    };
    if is_text {
        return say(format!("write `{mark}` where the text ends"));
    }
    let written = code(lines[line]);
    let bare = written.trim_end_matches([',', ' ']);
    let gap = if open.close.starts_with('}') { " " } else { "" };
    let closed = format!("{bare}{gap}{}", open.close);
    if open.close.len() > 8 {
        return say("close each bracket that is opened".into());
    }
    let mut after = lines.iter().skip(line + 1);
    let is_next = match open.before {
        Some(before) => after
            .take(before - line - 1)
            .all(|line| line.trim().is_empty()),
        None => after.all(|line| line.trim().is_empty()),
    };
    // An item of a list that goes on.
    let is_item = open.before.is_none() && open_ends(written).0 == open.close;
    if is_item && is_toml(&format!("_ = [\n{closed}\n]")) {
        let comma = &written[bare.len()..];
        return say(format!("write `{closed}{}`", comma.trim_end()));
    }
    let twice = lines[line][within..].get(1..2) == Some("{");
    let single = bare.replacen("{{", "{", 1);
    if twice && is_toml(&format!("_ = [\n{single}\n]")) || is_toml(&single) && single != bare {
        return say(format!(
            "write `{single}{}`",
            written[bare.len()..].trim_end()
        ));
    }
    if is_next && is_toml(&closed) {
        // One of two brackets may be too many.
        let single = bare.replacen("[[", "[", 1);
        return say(if open.close == "]" && single != bare && is_toml(&single) {
            format!("write `{closed}` or `{single}`, whichever is meant")
        } else {
            format!("write `{closed}`")
        });
    }
    say(match open.before {
        Some(before) => format!("write `{}` before line {}", open.close, before + 1),
        None => format!("write `{}` at its end", open.close),
    })
}

#[cfg(test)]
mod tests;
