//! Values that are not TOML's, except texts.

use super::super::line::{Kind, halves, is_in_text, is_number, is_value, parts};
use super::{Found, Place, each_word, is_whole, value_words};

/// Words for nothing.
pub fn nulls(line: &str, place: Place) -> Option<Found> {
    let words = value_words(line, place);
    let mut words = words.iter().map(|part| &line[part.at.clone()]);
    let word = words.find(|word| {
        matches!(
            *word,
            "None" | "null" | "nil" | "~" | "NULL" | "Null" | "undefined"
        )
    })?;
    let help = match halves(line) {
        Some((key, value)) if value == word => {
            format!("remove the line, or give `{key}` a value")
        }
        _ => "remove it: what is not set has its default".to_owned(),
    };
    Found::say(format!("TOML has no `{word}`"), help)
}

/// Values that have to be computed.
pub fn expressions(line: &str, _: Place) -> Option<Found> {
    let (key, value) = halves(line)?;
    if let Some(number) = value.strip_suffix('%')
        && is_number(number.trim())
    {
        let share = number.trim().parse::<f64>().ok()? / 100.0;
        return Found::write(
            format!("`{value}` is not a number"),
            format!("{key} = {share}"),
        );
    }
    let joined: String = value.split(' ').collect();
    if is_number(&joined) && is_value(&joined) && value.contains(' ') {
        return Found::write("a number has no spaces", format!("{key} = {joined}"));
    }
    let what = "an expression is written `\"${…}\"`";
    if value.starts_with("${") && value.ends_with('}') && !value.contains('"') {
        return Found::write(what, format!("{key} = \"{value}\""));
    }
    let is_one = value.contains(['*', '/'])
        && value.starts_with(|c: char| c.is_ascii_digit() || c == '(')
        && value.ends_with(|c: char| c.is_ascii_digit() || c == ')')
        && value.chars().all(|c| "0123456789.eE+-*/() ".contains(c));
    is_one.then(|| Found::write(what, format!("{key} = \"${{{value}}}\"")))?
}

/// Decimal commas, and commas between thousands.
pub fn decimal_comma(line: &str, place: Place) -> Option<Found> {
    let (key, value) = halves(line)?;
    let (whole, rest) = value.trim_end_matches(',').split_once(',')?;
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let digits = whole.trim_start_matches(['-', '+']);
    if place != Place::File || !are_digits(&digits.replace('.', "")) || !are_digits(rest) {
        return None;
    }
    let help = match digits {
        "0" => format!("write `{key} = {whole}.{rest}`"),
        _ if digits.contains('.') => format!("write `{}.{rest}`", whole.replace('.', "")),
        _ if rest.len() == 3 => {
            format!("write `{whole}{rest}` or `{whole}.{rest}`, whichever is meant")
        }
        _ => format!(
            "write `{whole}.{rest}` if it is one number, and `[{whole}, {rest}]` if it is a list"
        ),
    };
    Found::say("a number has no `,`", help)
}

/// Lists and calls of other languages.
pub fn parentheses(line: &str, place: Place) -> Option<Found> {
    let all = parts(line);
    let from = match place {
        Place::List => 0,
        _ => all.iter().find(|part| part.kind == Kind::Mark('='))?.at.end,
    };
    let mut changes = Vec::new();
    for (at, mark) in line
        .char_indices()
        .filter(|(at, _)| *at >= from && !is_in_text(&all, *at))
    {
        let is_call = || line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        match mark {
            '(' if is_call() => {
                return Found::say(
                    "TOML has no calls",
                    "write the value, in quotes if it is a text",
                );
            }
            '(' => changes.push((at..at + 1, "[".to_owned())),
            ')' => changes.push((at..at + 1, "]".to_owned())),
            _ => {}
        }
    }
    // Parentheses of a text without quotes stay.
    let is_list = line[from..].trim_start().starts_with(['(', '[', '{']);
    is_list.then(|| Found::replace("a list has square brackets", line, &changes))?
}

/// Numbers as other languages write them.
pub fn numbers(line: &str, place: Place) -> Option<Found> {
    each_word(line, place, |word| {
        let digits = word.trim_start_matches(['-', '+']);
        let sign = &word[..word.len() - digits.len()];
        if let Some(digits) = digits.strip_prefix("0X") {
            let mended = format!("0x{digits}");
            return is_value(&mended).then(|| ("`0X` is written `0x`".to_owned(), mended));
        }
        if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            || digits.contains([':', '-']) && !digits.contains(['e', 'E'])
        {
            return None;
        }
        let (mantissa, exponent) = match digits.find(['e', 'E']) {
            Some(at) => digits.split_at(at),
            None => (digits, ""),
        };
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, "-"));
        let stripped = whole.trim_start_matches('0');
        let (what, whole) = match whole {
            "" => ("a number has digits before its point", "0"),
            _ if stripped.len() < whole.len() && whole.len() > 1 => {
                let stripped = if stripped.is_empty() { "0" } else { stripped };
                ("a number does not begin with `0`", stripped)
            }
            _ => ("a number has digits after its point", whole),
        };
        let part = match part {
            // Also where a whole number is expected.
            "-" | "" => String::new(),
            digits => format!(".{digits}"),
        };
        let mended = format!("{sign}{whole}{part}{exponent}");
        (mended != word && is_value(&mended)).then(|| (what.to_owned(), mended))
    })
}

/// Constants as other languages write them.
pub fn constants(line: &str, place: Place) -> Option<Found> {
    let alone = halves(line).is_some_and(|(_, value)| {
        matches!(value.to_lowercase().as_str(), "yes" | "no" | "on" | "off")
    });
    each_word(line, place, |word| {
        let ours = match word {
            "True" | "TRUE" => "true",
            "False" | "FALSE" => "false",
            "NaN" | "NAN" => "nan",
            "Inf" | "INF" | "Infinity" | "infinity" => "inf",
            "-Inf" | "-INF" | "-Infinity" | "-infinity" => "-inf",
            _ if alone => match word.to_lowercase().as_str() {
                "yes" | "on" => "true",
                "no" | "off" => "false",
                _ => return None,
            },
            _ => return None,
        };
        Some((format!("`{word}` is written `{ours}`"), ours.to_owned()))
    })
}

/// A comma at the end of a line.
pub fn end(line: &str, place: Place) -> Option<Found> {
    let bare = line.strip_suffix(',')?.trim_end();
    let goes_on = bare.ends_with(['[', '{', ',']);
    (place == Place::File && !goes_on)
        .then(|| Found::write("a line needs no `,` at its end", bare))?
}

/// A bracket that is opened or closed by one of another kind, or too often.
pub fn pairs(line: &str, place: Place) -> Option<Found> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let all = parts(line);
    let (at, last) = all.iter().find_map(|part| {
        let at = part.at.start;
        match part.kind {
            Kind::Mark(mark @ ('[' | '{')) => open.push((at, mark)),
            Kind::Mark(mark @ (']' | '}')) => {
                let top = open.pop();
                let is_pair = top.is_some_and(|(_, top)| (top == '[') == (mark == ']'));
                return (!is_pair).then_some((at, top));
            }
            _ => {}
        }
        None
    })?;
    let close = &line[at..=at];
    let what = match last {
        Some((_, mark)) => format!("`{mark}` is closed by `{close}`"),
        None => format!("`{close}` closes nothing"),
    };
    let swapped = |at: usize, with: &str| {
        let mut line = line.to_owned();
        line.replace_range(at..=at, with);
        line
    };
    let (open, other_open, other_close) = match close {
        "]" => ("[", "[", "}"),
        _ => ("{ ", "{", "]"),
    };
    let marks = |kinds: &'static str| {
        let all = all.iter();
        all.filter(move |part| matches!(part.kind, Kind::Mark(mark) if kinds.contains(mark)))
    };
    let kind = if close == "]" { "]" } else { "}" };
    let inserted = marks("=[,").map(|part| {
        let mut line = line.to_owned();
        let gap = if part.kind == Kind::Mark('[') {
            ""
        } else {
            " "
        };
        line.insert_str(part.at.end, &format!("{gap}{}", open.trim_end()));
        line
    });
    // The likeliest first: the other kind, one too many, one that is missing.
    let candidates = [
        vec![swapped(at, other_close)],
        last.map(|(at, _)| swapped(at, other_open))
            .into_iter()
            .collect(),
        marks(kind).map(|part| swapped(part.at.start, "")).collect(),
        inserted.chain([format!("{open}{line}")]).collect(),
    ];
    let mut right = candidates.into_iter().map(|lines| {
        let mut lines: Vec<String> = lines
            .into_iter()
            .map(|line| line.trim_end().to_owned())
            .filter(|line| is_whole(line, place))
            .collect();
        lines.dedup();
        lines
    });
    match right.find(|lines| !lines.is_empty()).as_deref() {
        Some([line]) => Found::write(what, line),
        _ => Found::say(what, "close each bracket by one of its kind"),
    }
}

/// Semicolons between values.
pub fn semicolons(line: &str, place: Place) -> Option<Found> {
    let mut depth = i32::from(place != Place::File);
    let mut changes = Vec::new();
    for part in parts(line) {
        match part.kind {
            Kind::Mark('[' | '{') => depth += 1,
            Kind::Mark(']' | '}') => depth -= 1,
            Kind::Word if depth > 0 && line[part.at.clone()].ends_with(';') => {
                let gap = line[..part.at.end - 1].trim_end().len();
                changes.push((gap..part.at.end, ",".to_owned()));
            }
            _ => {}
        }
    }
    Found::replace("values are separated by `,`, not `;`", line, &changes)
}

/// Lists that lack a bracket or have one too many, or are in braces.
pub fn brackets(line: &str, place: Place) -> Option<Found> {
    if place == Place::List {
        return None;
    }
    let (key, value) = halves(line)?;
    let value = value.trim_end_matches(',').trim_end();
    if let Some(list) = value.strip_suffix([']', '}'])
        && is_value(list)
    {
        let close = &value[list.len()..];
        return Found::write(
            format!("`{close}` closes nothing"),
            format!("{key} = {list}"),
        );
    }
    let braced = value
        .strip_prefix('{')
        .and_then(|value| value.strip_suffix('}'));
    let candidates = [
        Some(format!("[{value}]")),
        Some(format!("[{value}")),
        braced.map(|items| format!("[{}]", items.trim())),
    ];
    let is_list = |text: &String| text.contains(',') && text.starts_with('[');
    let all = parts(value);
    let are_words = all.len() > 2
        && all.len() % 2 == 1
        && all
            .iter()
            .step_by(2)
            .all(|part| matches!(part.kind, Kind::Word | Kind::Text))
        && all
            .iter()
            .skip(1)
            .step_by(2)
            .all(|part| part.kind == Kind::Mark(','));
    let mut found = candidates.into_iter().flatten();
    let list = found
        .find(|list| is_list(list) && is_value(list))
        .or_else(|| are_words.then(|| format!("[{value}]")))?;
    Found::write("a list has square brackets", format!("{key} = {list}"))
}

/// Values of a list, and keys in braces, without commas between them.
pub fn commas(line: &str, place: Place) -> Option<Found> {
    let mut depth = if place == Place::File { 0 } else { 1 };
    let mut changes = Vec::new();
    let all = parts(line);
    let is_text = |at: usize| {
        let is_key = all
            .get(at + 1)
            .is_some_and(|part| part.kind == Kind::Mark('='));
        all[at].kind == Kind::Word && !is_key && !is_value(&line[all[at].at.clone()])
    };
    for at in 1..all.len() {
        let [before, part] = [&all[at - 1], &all[at]];
        match before.kind {
            Kind::Mark('[' | '{') => depth += 1,
            Kind::Mark(']' | '}') => depth -= 1,
            _ => {}
        }
        let ends = matches!(before.kind, Kind::Word | Kind::Text | Kind::Mark(']' | '}'));
        let begins = matches!(part.kind, Kind::Word | Kind::Text | Kind::Mark('[' | '{'));
        if depth < 1 || !ends || !begins {
            continue;
        }
        // Two words without quotes can be one text.
        if is_text(at - 1) && is_text(at) {
            return None;
        }
        changes.push((before.at.end..part.at.start, ", ".to_owned()));
    }
    Found::replace("a `,` is missing between two values", line, &changes)
}

/// Commas without a value between them.
pub fn extra_commas(line: &str, _: Place) -> Option<Found> {
    let mut changes = Vec::new();
    for pair in parts(line).windows(2) {
        let is_before = matches!(pair[0].kind, Kind::Mark('[' | '{' | ','));
        if is_before && pair[1].kind == Kind::Mark(',') {
            changes.push((pair[0].at.end..pair[1].at.end, String::new()));
        }
    }
    Found::replace("a `,` has no value before it", line, &changes)
}
