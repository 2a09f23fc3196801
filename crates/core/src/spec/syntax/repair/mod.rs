//! What a line that is not TOML was meant to be.
//!
//! Each step mends one kind of mistake. They are taken one after the other until the line is TOML; a line that stays
//! wrong gets no proposal.

mod key;
mod text;
mod value;

use std::borrow::Cow;
use std::ops::Range;

use super::Wrong;
use super::line::{Kind, Part, is_toml, open_ends, parts, replaced};

/// What a line is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file: it is a table, or a key with its value.
    File,
    /// A list over several lines.
    List,
    /// A table in braces over several lines.
    Braces,
}

/// A mistake, and what to do about it.
struct Found {
    what: String,
    then: Then,
}

enum Then {
    /// The line without the mistake, which may have others.
    Write(String),
    /// A remedy in words.
    Say(String),
}

impl Found {
    fn write(what: impl Into<String>, line: impl Into<String>) -> Option<Self> {
        Some(Self {
            what: what.into(),
            then: Then::Write(line.into()),
        })
    }

    /// The line with some parts replaced; none if there are no such parts.
    fn replace(
        what: impl Into<String>,
        line: &str,
        changes: &[(Range<usize>, String)],
    ) -> Option<Self> {
        if changes.is_empty() {
            return None;
        }
        Self::write(what, replaced(line, changes))
    }

    fn say(what: impl Into<String>, help: impl Into<String>) -> Option<Self> {
        Some(Self {
            what: what.into(),
            then: Then::Say(help.into()),
        })
    }
}

type Step = fn(&str, Place) -> Option<Found>;

/// In an order in which none depends on a later one.
const STEPS: &[Step] = &[
    key::comments,
    key::no_statement,
    key::words_before,
    key::equals,
    key::braces,
    value::semicolons,
    key::tables,
    key::table_and_key,
    key::several,
    key::missing_equals,
    key::spaced,
    key::without_value,
    value::nulls,
    value::expressions,
    value::decimal_comma,
    value::parentheses,
    text::prefixes,
    text::inner_quotes,
    text::one_quote,
    text::unclosed,
    value::numbers,
    value::constants,
    text::backslashes,
    value::end,
    value::brackets,
    value::pairs,
    value::commas,
    value::extra_commas,
    text::words,
];

/// What is wrong with a line, if that is clear. `may_go_on` says whether brackets may be open at its end.
pub fn wrong(written: &str, place: Place, may_go_on: bool) -> Option<Wrong> {
    // Spaces of other kinds are looked at.
    let written = written.trim_matches([' ', '\t', '\r']);
    let mut what = None;
    let mut line = Cow::Borrowed(written);
    if let Some((found, plain)) = text::lookalikes(written) {
        what = Some(found);
        line = Cow::Owned(plain);
    }
    let Line {
        code,
        tail,
        comment,
    } = Line::of(line.trim(), place, may_go_on);
    if let Some(found) = doubled_comma(code, tail) {
        return Some(found);
    }
    let is_right = |code: &str| {
        let is_header = place == Place::File && code.starts_with('[');
        match open_ends(code) {
            (close, _) if may_go_on && !is_header => is_whole(&format!("{code}{close}"), place),
            _ => is_whole(code, place),
        }
    };
    if text::is_cut(code, comment) {
        return Some(Wrong {
            what: "`#` begins a comment".into(),
            help: Some("write the whole text in quotes".into()),
        });
    }
    let mut code = code.to_owned();
    for step in STEPS {
        if is_right(&code) {
            break;
        }
        let Some(found) = step(&code, place) else {
            continue;
        };
        match found.then {
            Then::Write(mended) => {
                what.get_or_insert(found.what);
                code = mended;
            }
            Then::Say(help) => {
                return Some(Wrong {
                    what: found.what,
                    help: Some(help),
                });
            }
        }
    }
    let what = what?;
    let gap = if comment.is_empty() { "" } else { "  " };
    let line = format!("{code}{tail}{gap}{comment}");
    const MOST: usize = 120;
    is_right(&code).then(|| Wrong {
        what,
        help: (line.len() < MOST).then(|| format!("write `{line}`")),
    })
}

/// The parts of a line that are looked at apart.
struct Line<'a> {
    code: &'a str,
    /// In a list or braces: a comma, and what closes them.
    tail: &'a str,
    comment: &'a str,
}

impl<'a> Line<'a> {
    fn of(line: &'a str, place: Place, may_close: bool) -> Self {
        let end = parts(line).last().map_or(0, |part| part.at.end);
        let (code, comment) = (&line[..end], line[end..].trim());
        let tail = if place == Place::File {
            code.len()
        } else {
            let closing = open_ends(code).1.filter(|_| may_close);
            let closing = closing.unwrap_or(code.len());
            let is_tail = |c: char| ",]} ".contains(c);
            let end = if code[closing..].chars().all(is_tail) {
                closing
            } else {
                code.len()
            };
            code[..end].trim_end_matches([',', ' ']).len()
        };
        Self {
            code: &code[..tail],
            tail: &code[tail..],
            comment,
        }
    }
}

/// Two commas after an item.
fn doubled_comma(code: &str, tail: &str) -> Option<Wrong> {
    let tail: String = tail.split_whitespace().collect();
    (tail.starts_with(",,") && !code.is_empty()).then(|| Wrong {
        what: "a `,` has no value before it".into(),
        help: Some(format!("write `{code},`")),
    })
}

/// Whether a line is TOML where it is.
fn is_whole(code: &str, place: Place) -> bool {
    match place {
        Place::File => is_toml(code),
        Place::List => is_toml(&format!("_ = [{code}\n]")),
        Place::Braces => is_toml(&format!("_ = {{ {code} }}")),
    }
}

/// The words of a line that are values.
fn value_words(line: &str, place: Place) -> Vec<Part> {
    let all = parts(line);
    let is_key = |at: usize| {
        let next = all.get(at + 1);
        next.is_some_and(|part| part.kind == Kind::Mark('='))
    };
    let first = all.iter().position(|part| part.kind == Kind::Mark('='));
    let from = match (place, first) {
        (Place::List, _) => 0,
        (_, Some(first)) => first,
        (_, None) => all.len(),
    };
    let words = (from..all.len()).filter(|at| all[*at].kind == Kind::Word && !is_key(*at));
    words.map(|at| all[at].clone()).collect()
}

/// Changes words that are values; says what was wrong with the first one.
fn each_word(
    line: &str,
    place: Place,
    change: impl Fn(&str) -> Option<(String, String)>,
) -> Option<Found> {
    let mut first = None;
    let mut changes = Vec::new();
    for part in value_words(line, place) {
        if let Some((what, mended)) = change(&line[part.at.clone()]) {
            first.get_or_insert(what);
            changes.push((part.at, mended));
        }
    }
    Found::replace(first?, line, &changes)
}
