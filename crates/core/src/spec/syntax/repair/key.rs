//! Lines that are not a key with a value, or have another sign between them.

use std::ops::Range;

use super::super::known;
use super::super::line::{Kind, halves, is_key, is_name, is_toml, is_value, open_ends, parts};
use super::{Found, Place};

/// Comments and ends of lines of other languages.
pub fn comments(line: &str, place: Place) -> Option<Found> {
    const WHAT: &str = "a comment begins with `#`";
    let text = |comment: &str| {
        let text = comment.trim_end_matches("*/").trim_end_matches("-->");
        format!("# {}", text.trim())
    };
    for mark in ["//", "/*", "<!--", ";"] {
        if let Some(comment) = line.strip_prefix(mark)
            && !comment.is_empty()
        {
            return Found::write(WHAT, text(comment));
        }
    }
    for mark in ["--", "%"] {
        if let Some(comment) = line.strip_prefix(mark)
            && comment.starts_with([' ', '-'])
        {
            return Found::write(WHAT, text(comment.trim_start_matches('-')));
        }
    }
    if let Some(bare) = line.strip_suffix(';') {
        let bare = bare.trim_end();
        return if place == Place::File {
            Found::write("a line needs no `;` at its end", bare)
        } else {
            Found::write("`;` is not `,`", format!("{bare},"))
        };
    }
    let all = parts(line);
    let mut words = all.iter().filter(|part| part.kind == Kind::Word);
    let part = words.find(|part| {
        let word = &line[part.at.clone()];
        let is_comment = word.starts_with("//") || word.starts_with("/*") || word == "--";
        let is_apart = || place == Place::File && open_ends(&line[..part.at.start]).0.is_empty();
        is_comment || word.starts_with(';') && is_apart()
    })?;
    let (code, comment) = line.split_at(part.at.start);
    let comment = comment.trim_start_matches(['/', '*', ';', '-']);
    Found::write(WHAT, format!("{code}{}", text(comment)))
}

/// Lines that nothing of TOML is like.
pub fn no_statement(line: &str, place: Place) -> Option<Found> {
    if place != Place::File {
        return None;
    }
    if line.starts_with("- ") || line == "-" {
        return Found::say(
            "`-` does not begin an item",
            "a list is `name = [16, 32]`; each table of a list begins with `[[name]]`",
        );
    }
    if line.starts_with("```") {
        return Found::say("a fence of Markdown is not TOML", "remove the line");
    }
    let only_marks = line.chars().all(|c| "[]{}(),;= ".contains(c));
    only_marks.then(|| Found::say(format!("`{line}` belongs to nothing"), "remove the line"))?
}

/// What stands before the key in other languages.
pub fn words_before(line: &str, place: Place) -> Option<Found> {
    if place != Place::File {
        return None;
    }
    if let Some(rest) = line.strip_prefix("--")
        && rest.starts_with(|c: char| c.is_ascii_alphabetic())
    {
        return Found::write("a key has no `--` before it", rest);
    }
    let (first, rest) = line.split_once(' ')?;
    let is_keyword = matches!(
        first,
        "let" | "var" | "const" | "export" | "set" | "local" | "static"
    );
    (is_keyword && !rest.trim_start().starts_with(['=', ':']))
        .then(|| Found::write(format!("`{first}` is not TOML"), rest.trim_start()))?
}

/// Other signs than one `=` after the key.
pub fn equals(line: &str, place: Place) -> Option<Found> {
    const SIGNS: [&str; 9] = ["===", "= =", "==", "=>", ":=", "::", "->", ":", "="];
    if place == Place::List {
        return None;
    }
    let (key, sign, value) = SIGNS.into_iter().find_map(|sign| {
        let (key, value) = line.split_once(sign)?;
        is_key(key.trim().trim_matches(['"', '\''])).then_some((key.trim(), sign, value.trim()))
    })?;
    if sign == "=" {
        return None;
    }
    if !value.is_empty() {
        let what = format!("a key is set by `=`, not `{sign}`");
        return Found::write(what, format!("{key} = {value}"));
    }
    if known::table(key).is_some() {
        return table(key);
    }
    Found::say(
        format!("a key is set by `=`, not `{sign}`"),
        format!("write `{key} = ` and its value"),
    )
}

fn table(name: &str) -> Option<Found> {
    Found::say(
        format!("a table is written `[{name}]`"),
        format!("write `[{name}]`, and a line `name = value` for each of its keys"),
    )
}

/// Other signs than one `=`, or none, after keys in braces.
pub fn braces(line: &str, _: Place) -> Option<Found> {
    let all = parts(line);
    let mut open = Vec::new();
    let mut changes: Vec<(Range<usize>, String)> = Vec::new();
    let mut what = None;
    for at in 0..all.len().saturating_sub(1) {
        match all[at].kind {
            Kind::Mark(mark @ ('[' | '{')) => open.push(mark),
            Kind::Mark(']' | '}') => {
                open.pop();
            }
            _ => {}
        }
        let begins = matches!(all[at].kind, Kind::Mark('{' | ','));
        if !begins || open.last() != Some(&'{') {
            continue;
        }
        let key = &all[at + 1];
        let word = &line[key.at.clone()];
        let rest = line[key.at.end..].trim_start();
        let gap = line.len() - rest.len();
        let sign = ["==", "=>", ":=", "::", "->", ":"]
            .into_iter()
            .find(|sign| rest.starts_with(sign));
        match (key.kind, sign) {
            (Kind::Word | Kind::Text, Some(sign)) => {
                changes.push((key.at.end..gap + sign.len(), " =".into()));
                what.get_or_insert(format!("a key is set by `=`, not `{sign}`"));
            }
            (Kind::Word, None) if word.contains(':') => {
                let (name, value) = word.split_once(':')?;
                let space = if value.is_empty() { "" } else { " " };
                changes.push((key.at.clone(), format!("{name} ={space}{value}")));
                what.get_or_insert("a key is set by `=`, not `:`".into());
            }
            (Kind::Word, None) if is_key(word) && all.len() > at + 2 => {
                let next = &all[at + 2];
                let is_one = matches!(next.kind, Kind::Text | Kind::Mark('[' | '{'))
                    || next.kind == Kind::Word && is_value(&line[next.at.clone()]);
                if is_one {
                    changes.push((key.at.end..next.at.start, " = ".into()));
                    what.get_or_insert(format!("`=` is missing after `{word}`"));
                }
            }
            _ => {}
        }
    }
    Found::replace(what?, line, &changes)
}

/// Names of tables with other marks around or within them.
pub fn tables(line: &str, place: Place) -> Option<Found> {
    if place != Place::File || line.contains(['"', '\'', ',']) {
        return None;
    }
    let bare = line.trim_end_matches([':', ';', '=', ' ']);
    let opens = bare.starts_with(['[', '(', '{', '<']);
    let open = bare.trim_start_matches(['[', '(', '{', '<', ' ']);
    let inner = open.trim_end_matches([']', ')', '}', '>', ' ']);
    if let Some(name) = line.strip_suffix('{')
        && !name.contains('=')
        && is_key(name.trim().trim_matches(['[', ']']))
    {
        return table(name.trim().trim_matches(['[', ']']));
    }
    let parts = inner.split(['.', '/', ':', ' ', '[', ']']);
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let begins = |part: &&str| part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !parts.iter().all(|part| is_name(part) && begins(part)) || parts.is_empty() {
        return None;
    }
    let name = parts.join(".");
    let known = known::table(&name);
    // A single word with brackets of any kind can be a table that is not known; several words have to be one.
    let is_meant = if parts.len() == 1 || inner == name {
        opens || inner.len() < open.len() && known.is_some()
    } else {
        known.is_some()
    };
    if !is_meant {
        return None;
    }
    let is_list = known.unwrap_or_else(|| bare.starts_with("[["));
    let header = if is_list {
        format!("[[{name}]]")
    } else {
        format!("[{name}]")
    };
    Found::write(format!("this table is written `{header}`"), header)
}

/// A table and a key in one line.
pub fn table_and_key(line: &str, place: Place) -> Option<Found> {
    let (table, rest) = line.split_once(']')?;
    let rest = rest.trim_start_matches(']').trim();
    let is_one = place == Place::File
        && line.starts_with('[')
        && is_key(table.trim_start_matches('['))
        && rest.contains('=')
        && is_toml(rest);
    let table = line[..line.len() - rest.len()].trim();
    is_one.then(|| {
        Found::say(
            "a table and a key are in one line",
            format!("write `{rest}` in a line below `{table}`"),
        )
    })?
}

/// The keys of an axis over several ones without quotes.
pub fn several(line: &str, _: Place) -> Option<Found> {
    let (key, _) = halves(line)?;
    let keys: Vec<&str> = key.rsplit('{').next()?.split(',').map(str::trim).collect();
    let are_keys = keys.len() > 1
        && keys.iter().all(|key| is_key(key))
        && keys.iter().any(|key| key.contains('.'));
    are_keys.then(|| {
        Found::say(
            "several keys need quotes",
            "quote the name of an axis over several keys: `\"train.batch_size, train.epochs\" = [[32, 10], [64, 20]]`",
        )
    })?
}

/// A key and a value without a sign between them.
pub fn missing_equals(line: &str, place: Place) -> Option<Found> {
    let (key, value) = line.split_once([' ', '\t'])?;
    let value = value.trim();
    let is_word = known::is_key_name(key) && is_name(value);
    (place != Place::List && is_key(key) && (is_value(value) || is_word)).then(|| {
        let what = format!("`=` is missing after `{key}`");
        Found::write(what, format!("{key} = {value}"))
    })?
}

/// Keys of several words, or with letters that need quotes.
pub fn spaced(line: &str, place: Place) -> Option<Found> {
    if place == Place::List {
        return None;
    }
    let (key, value) = halves(line)?;
    let words: Vec<&str> = key.split_whitespace().collect();
    let is_foreign = |c: char| !c.is_ascii() && c.is_alphanumeric();
    if words.len() == 1 && key.contains(is_foreign) && !key.contains(['"', '\'', '.']) {
        return Found::write(
            format!("the key `{key}` needs quotes"),
            format!("\"{key}\" = {value}"),
        );
    }
    if words.len() < 2 || !words.iter().all(|word| is_key(word)) {
        return None;
    }
    let what = "a key has no spaces";
    let name = words.join("_");
    let last = name.rsplit('.').next().unwrap_or(&name);
    if known::is_key_name(last) {
        return Found::write(what, format!("{name} = {value}"));
    }
    if known::table(words[0]).is_some() && known::is_key_name(words[words.len() - 1]) {
        return Found::write(what, format!("{} = {value}", words.join(".")));
    }
    Found::say(
        what,
        format!("join its words, as in `{name}`, or write it in quotes"),
    )
}

/// A key alone.
pub fn without_value(line: &str, place: Place) -> Option<Found> {
    if place == Place::List {
        return None;
    }
    if is_key(line) && line.contains(|c: char| c.is_alphabetic()) {
        return Found::say(
            format!("`{line}` has no value"),
            format!("write `{line} = ` and its value, or remove the line"),
        );
    }
    let (key, value) = halves(line)?;
    (value.is_empty() && !key.is_empty()).then(|| {
        Found::say(
            format!("`{key}` has no value"),
            "write its value after `=`, or remove the line",
        )
    })?
}
