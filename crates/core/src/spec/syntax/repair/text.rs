//! Texts whose quotes are missing, of another kind, or not where they should be.

use super::super::line::{Kind, halves, is_in_text, is_number, is_value, parts};
use super::{Found, Place, each_word, is_whole, value_words};

/// Characters that look like those of TOML, or like nothing: what is wrong, and the line without them.
pub fn lookalikes(line: &str) -> Option<(String, String)> {
    let meant = |c: char| match c {
        '“' | '”' | '„' | '‟' | '«' | '»' | '`' => Some("\""),
        '‘' | '’' | '‚' | '‛' | '´' => Some("'"),
        '–' | '—' | '−' | '‐' => Some("-"),
        '＝' => Some("="),
        '，' => Some(","),
        '：' => Some(":"),
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{3000}' => Some(" "),
        '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}' => Some(""),
        _ => None,
    };
    // In a text with proper quotes, and in a comment, each has its meaning.
    let all = parts(line);
    let end = all.last().map_or(0, |part| part.at.end);
    let mut first = None;
    let mut plain = String::new();
    for (at, c) in line.char_indices() {
        match meant(c).filter(|_| at < end && !is_in_text(&all, at)) {
            Some(ours) => {
                first.get_or_insert((c, ours));
                plain += ours;
            }
            None => plain.push(c),
        }
    }
    if line.starts_with("```") {
        return None;
    }
    let what = match first? {
        (_, " ") => "a space of another kind is not TOML".to_owned(),
        (_, "") => "an invisible character is not TOML".to_owned(),
        (c, ours) => format!("`{c}` is not `{ours}`"),
    };
    Some((what, plain))
}

/// Whether `#` cuts a text without quotes.
pub fn is_cut(code: &str, comment: &str) -> bool {
    let ends = parts(code)
        .last()
        .is_some_and(|part| part.kind == Kind::Word);
    let word = code.rsplit([' ', '=', ',', '[']).next().unwrap_or_default();
    let is_text = word.contains(|c: char| c.is_alphabetic()) && !is_value(word);
    ends && is_text && comment.starts_with('#') && !comment.starts_with("# ") && comment != "#"
}

/// Letters before quotes, as in Python.
pub fn prefixes(line: &str, _: Place) -> Option<Found> {
    let all = parts(line);
    let change = all.windows(2).find_map(|pair| {
        let word = &line[pair[0].at.clone()];
        let is_prefix = matches!(word, "r" | "f" | "b" | "u" | "R" | "F" | "B");
        let is_text = pair[1].kind == Kind::Text && pair[1].at.start == pair[0].at.end;
        // In `["a, "b", "c"]`, a quote is missing.
        let is_lone = line.matches('"').count() <= 2;
        (is_prefix && is_text && is_lone).then(|| (pair[0].at.clone(), word))
    });
    let (at, word) = change?;
    let what = format!("a text has no `{word}` before its quotes");
    Found::replace(what, line, &[(at, String::new())])
}

/// A text that contains the quotes around it.
pub fn inner_quotes(line: &str, place: Place) -> Option<Found> {
    let (before, value) = match place {
        Place::List => ("", line),
        _ => {
            let (_, value) = halves(line)?;
            line.split_at(line.len() - value.len())
        }
    };
    let quote = value.chars().next().filter(|c| "\"'".contains(*c))?;
    let inner = value.strip_prefix(quote)?.strip_suffix(quote)?;
    if !inner.contains(quote) || inner.contains([',', '[', ']', '{', '}', '=', '\\']) {
        return None;
    }
    let doubled = inner.trim_matches(quote);
    if !doubled.contains(quote) {
        let what = format!("a text begins and ends with one `{quote}`");
        let is_whole = !doubled.is_empty();
        return is_whole.then(|| Found::write(what, format!("{before}{quote}{doubled}{quote}")))?;
    }
    let other = if quote == '"' { '\'' } else { '"' };
    let what = format!("a text in `{quote}` cannot contain `{quote}`");
    (!inner.contains(other))
        .then(|| Found::write(what, format!("{before}{other}{inner}{other}")))?
}

/// A quote that is missing, too much, or of the other kind, if only one place gives a line with plain texts.
pub fn one_quote(line: &str, place: Place) -> Option<Found> {
    const LONGEST: usize = 200;
    let all = parts(line);
    let open = all.last().filter(|part| part.kind == Kind::Unclosed)?;
    let quote = &line[open.at.start..=open.at.start];
    if line.len() > LONGEST || line.contains("\"\"\"") {
        return None;
    }
    let quotes: Vec<usize> = line.match_indices(['"', '\'']).map(|(at, _)| at).collect();
    let changed = |at: std::ops::Range<usize>, with: &str| {
        let mut line = line.to_owned();
        line.replace_range(at, with);
        line
    };
    let right = |lines: Vec<String>| {
        let mut lines: Vec<String> = lines
            .into_iter()
            .filter(|line| has_plain_texts(line) && is_whole(line, place))
            .collect();
        lines.sort();
        lines.dedup();
        lines
    };
    let removed = right(quotes.iter().map(|at| changed(*at..at + 1, "")).collect());
    let inserted = {
        let ends = line.char_indices().filter(|(at, c)| {
            let before = line[..*at].chars().next_back().unwrap_or(' ');
            let begins = " =[,{".contains(before) && !" =[,{]}".contains(*c);
            let ends = " =,]}".contains(*c) && !" =,[{".contains(before);
            begins || ends
        });
        let ends = ends.map(|(at, _)| at).chain([line.len()]);
        right(ends.map(|at| changed(at..at, quote)).collect())
    };
    let swapped = right(
        quotes
            .iter()
            .map(|at| {
                changed(
                    *at..at + 1,
                    if &line[*at..=*at] == "\"" { "'" } else { "\"" },
                )
            })
            .collect(),
    );
    let is_mixed = line.contains('"') && line.contains('\'');
    match (&swapped[..], &inserted[..], &removed[..]) {
        ([line, ..], _, _) if is_mixed => {
            Found::write("a text begins and ends with the same quotes", line)
        }
        // The text is a number.
        (_, [quoted], [bare]) if has_number_in_quotes(quoted) => {
            Found::write(format!("a number has no `{quote}`"), bare)
        }
        (_, [line], _) => Found::write(format!("a `{quote}` is missing"), line),
        (_, [], [line]) => Found::write(format!("there is a `{quote}` too many"), line),
        _ => None,
    }
}

fn has_number_in_quotes(line: &str) -> bool {
    let texts = parts(line)
        .into_iter()
        .filter(|part| part.kind == Kind::Text);
    let mut inner = texts.map(|part| &line[part.at.start + 1..part.at.end - 1]);
    inner.any(is_number)
}

/// Whether texts are such that none of their quotes belongs to another one.
fn has_plain_texts(line: &str) -> bool {
    parts(line).iter().all(|part| match part.kind {
        Kind::Text => {
            let text = &line[part.at.start + 1..part.at.end - 1];
            let is_one = !text.contains([',', '=', '"', '\'']);
            is_one && !text.is_empty() && text.trim() == text
        }
        kind => kind != Kind::Unclosed,
    })
}

/// A text that lacks the quote at its end.
pub fn unclosed(line: &str, place: Place) -> Option<Found> {
    let all = parts(line);
    let open = all.last().filter(|part| part.kind == Kind::Unclosed)?;
    let (before, text) = line.split_at(open.at.start);
    let quote = &text[..1];
    // `"C:\data\"`
    if let Some(path) = text[1..].strip_suffix("\\\"")
        && quote == "\""
        && path.contains('\\')
        && !path.contains('\'')
    {
        let what = "in double quotes, `\\` begins an escape";
        return Found::write(what, format!("{before}'{path}\\'"));
    }
    let what = format!("the text `{text}` is not closed by `{quote}`");
    let value = halves(line).filter(|(_, value)| *value == text);
    let is_alone = place == Place::File && value.is_some() && !text[1..].contains(['"', '\'']);
    if is_alone && text.len() > 1 && !text.ends_with(',') {
        return Found::write(what, format!("{before}{text}{quote}"));
    }
    Found::say(what, format!("close it with `{quote}`"))
}

/// Paths of Windows in double quotes.
pub fn backslashes(line: &str, _: Place) -> Option<Found> {
    let all = parts(line);
    let texts = all.iter().filter(|part| part.kind == Kind::Text);
    let changes: Vec<_> = texts
        .filter_map(|part| {
            let text = line[part.at.clone()].strip_prefix('"')?.strip_suffix('"')?;
            let is_plain = text.contains('\\') && !text.contains(['\'', '"']);
            is_plain.then(|| (part.at.clone(), format!("'{text}'")))
        })
        .collect();
    let what = "in double quotes, `\\` begins an escape";
    Found::replace(what, line, &changes)
}

/// Texts without quotes.
pub fn words(line: &str, place: Place) -> Option<Found> {
    let what = |text: &str| format!("`{text}` needs quotes");
    if let Some((key, value)) = halves(line)
        && place != Place::List
        && is_sentence(value)
    {
        let quote = if value.contains(['\\', '"']) {
            '\''
        } else {
            '"'
        };
        let is_apart = !value.contains(quote);
        return is_apart
            .then(|| Found::write(what(value), format!("{key} = {quote}{value}{quote}")))?;
    }
    // Of several words in a row, it is not known where a text ends.
    let apart = value_words(line, place);
    if apart
        .windows(2)
        .any(|pair| line[pair[0].at.end..pair[1].at.start].trim().is_empty())
    {
        return None;
    }
    each_word(line, place, |word| {
        let quote = if word.contains('\\') { '\'' } else { '"' };
        (is_text(word) && !is_value(word)).then(|| (what(word), format!("{quote}{word}{quote}")))
    })
}

/// Whether several words are one text.
fn is_sentence(text: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || "_./~:%+-?!'()\\$ ".contains(c);
    let (first, rest) = text.split_once(' ').unwrap_or((text, ""));
    // A quote at the end of a word is one that lacks the other.
    let is_quoted = text.starts_with('\'') || text.ends_with('\'') || text.contains("' ");
    is_text(first) && text.chars().all(is_inner) && !is_quoted && !rest.ends_with(' ')
}

/// Whether a word is a text: neither a number nor a constant that is written in another way.
fn is_text(word: &str) -> bool {
    const UNITS: [&str; 12] = [
        "B", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "s", "m", "h",
    ];
    let is_inner = |c: char| c.is_alphanumeric() || "_./~:%+-$?!'()\\".contains(c);
    if word.starts_with(|c: char| c.is_ascii_digit()) {
        let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is_size = word.split_once('x').is_some_and(|(height, width)| {
            [height, width]
                .iter()
                .all(|size| size.parse::<u32>().is_ok())
        });
        return UNITS.contains(&unit) || is_size;
    }
    let begins = |c: char| c.is_alphabetic() || "/~$.".contains(c);
    word.starts_with(begins)
        && word.contains(|c: char| c.is_alphanumeric())
        && !word.ends_with(':')
        && word.chars().all(is_inner)
}
