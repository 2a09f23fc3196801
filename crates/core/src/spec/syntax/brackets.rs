//! Brackets and quotes that a text opens and does not close as it should.

use super::repair::Place;

/// What is wrong with them.
#[derive(Clone, Debug, PartialEq)]
pub enum Problem {
    /// Something is not closed.
    Open(Open),
    /// A bracket is closed by one of another kind in its line.
    ClosedBy {
        /// Where the other one is, in bytes.
        at: usize,
        /// The bracket.
        open: char,
    },
}

/// What is not closed.
#[derive(Clone, Debug, PartialEq)]
pub struct Open {
    /// Where it begins, in bytes.
    pub at: usize,
    /// What closes it, and all that is open in it.
    pub close: String,
    /// The line, from 0, that should come after it; none if that is not known.
    pub before: Option<usize>,
}

/// The brackets of a text.
#[derive(Debug, Default)]
pub struct Brackets {
    /// The first thing that is wrong.
    pub problem: Option<Problem>,
    /// What each line begins in, up to the problem.
    pub places: Vec<Place>,
}

/// An opening bracket.
struct Bracket {
    at: usize,
    is_list: bool,
    /// The spaces before its line.
    indent: usize,
    line: usize,
}

impl Bracket {
    fn marks(&self) -> (char, char) {
        if self.is_list { ('[', ']') } else { ('{', '}') }
    }
}

/// How a line ends.
enum End {
    Plain,
    /// In a text over several lines.
    Within(usize, &'static str),
    Wrong(Problem),
}

impl Brackets {
    /// Of a text. A list ends at the latest before a line that can only be a key or a table of the file.
    pub fn of(text: &str) -> Self {
        let mut all = Self::default();
        let mut open: Vec<Bracket> = Vec::new();
        let mut quotes: Option<(usize, &str)> = None;
        let (mut start, mut last) = (0, "");
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for (number, line) in lines.iter().enumerate() {
            all.places.push(match open.last() {
                None => Place::File,
                Some(bracket) if bracket.is_list => Place::List,
                Some(_) => Place::Braces,
            });
            let mut from = 0;
            if let Some((_, close)) = quotes {
                let Some(end) = line.find(close) else {
                    start += line.len();
                    continue;
                };
                from = end + close.len();
            } else if let Some(inner) = open.last()
                && begins_a_statement(&lines[number..], inner, last)
            {
                all.problem = Some(Problem::Open(Open::new(&open, Some(number))));
                return all;
            } else if open.is_empty() && line.trim_start().starts_with('[') {
                start += line.len();
                continue;
            }
            quotes = match scan(line, from, start, number, &mut open) {
                End::Plain => None,
                End::Within(at, close) => Some((at, close)),
                End::Wrong(problem) => {
                    all.problem = Some(problem);
                    return all;
                }
            };
            start += line.len();
            if !line.trim().is_empty() {
                last = line;
            }
        }
        all.problem = match quotes {
            Some((at, close)) => Some(Problem::Open(Open {
                at,
                close: close.to_owned(),
                before: None,
            })),
            None if open.is_empty() => None,
            None => Some(Problem::Open(Open::new(&open, None))),
        };
        all
    }
}

impl Open {
    fn new(open: &[Bracket], before: Option<usize>) -> Self {
        Self {
            at: open[0].at,
            close: open.iter().rev().map(|bracket| bracket.marks().1).collect(),
            before,
        }
    }
}

/// Adds the brackets of a line from a place on.
fn scan(line: &str, from: usize, start: usize, number: usize, open: &mut Vec<Bracket>) -> End {
    let indent = indent(line);
    let before = open.len();
    let mut at = from;
    while let Some(next) = line[at..].chars().next() {
        match next {
            '#' => return End::Plain,
            '"' | '\'' => {
                let long = if next == '"' { "\"\"\"" } else { "'''" };
                if line[at..].starts_with(long) {
                    match line[at + 3..].find(long) {
                        Some(end) => at += 3 + end + 3,
                        None => return End::Within(start + at, long),
                    }
                    continue;
                }
                match quoted(&line[at..]) {
                    Some(length) => at += length,
                    None => {
                        close_at_end(&line[at..], before, open);
                        return End::Plain;
                    }
                }
                continue;
            }
            '[' | '{' => open.push(Bracket {
                at: start + at,
                is_list: next == '[',
                indent,
                line: number,
            }),
            ']' | '}' => {
                let is_it = |bracket: &Bracket| bracket.marks().1 == next;
                match open.last() {
                    None => {}
                    Some(top) if is_it(top) => {
                        open.pop();
                    }
                    Some(top) => return End::Wrong(mismatch(top, start + at, number, open)),
                }
            }
            _ => {}
        }
        at += next.len_utf8();
    }
    End::Plain
}

/// What is wrong if a bracket is closed by one of another kind, in a line.
fn mismatch(top: &Bracket, at: usize, line: usize, open: &[Bracket]) -> Problem {
    let (mark, close) = top.marks();
    // What closes the list around it says that it is the one that is not closed.
    if top.line < line && open.len() > 1 {
        return Problem::Open(Open {
            at: top.at,
            close: close.into(),
            before: None,
        });
    }
    Problem::ClosedBy { at, open: mark }
}

/// Closes brackets by those at the end of a line whose last quote is not closed, which has an error of its own. If others
/// are meant, those that the line opened, after the first `before`, count as closed.
fn close_at_end(text: &str, before: usize, open: &mut Vec<Bracket>) {
    let inner = text.trim_end().trim_end_matches([']', '}', ',', ' ']);
    for close in text[inner.len()..].chars().filter(|c| "]}".contains(*c)) {
        if open.last().is_some_and(|top| top.marks().1 == close) {
            open.pop();
        } else {
            open.truncate(before);
            return;
        }
    }
}

/// The length of the quoted text that a text begins with, with its quotes.
pub fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut is_escaped = false;
    for (at, next) in text.char_indices().skip(1) {
        match next {
            _ if is_escaped => is_escaped = false,
            '\\' if quote == '"' => is_escaped = true,
            '\n' => return None,
            _ if next == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Whether the first of some lines cannot belong to a bracket that is open before it.
fn begins_a_statement(lines: &[&str], inner: &Bracket, last: &str) -> bool {
    let line = lines[0];
    let is_deeper = indent(line) > inner.indent;
    if is_header(line) {
        return !is_deeper;
    }
    if !is_assignment(line) || is_deeper {
        return false;
    }
    if inner.is_list {
        return true;
    }
    // In braces, keys can be on lines of their own.
    let goes_on = last.trim_end().ends_with([',', '{']);
    let mut rest = lines.iter().map(|line| line.trim());
    let end = rest.find(|line| line.starts_with('}') || is_header(line));
    !goes_on && !end.is_some_and(|line| line.starts_with('}'))
}

/// The name of a table: a list of a list cannot have a word without quotes.
fn is_header(line: &str) -> bool {
    let line = line.trim();
    let name = line.trim_start_matches('[');
    let depth = line.len() - name.len();
    let Some((name, rest)) = name.split_once(']') else {
        return false;
    };
    let is_number = matches!(name, "true" | "false" | "inf" | "nan");
    let rest = rest.trim_start_matches(']').trim();
    (1..=2).contains(&depth) && begins_a_key(name) && !is_number && is_end(rest)
}

fn is_end(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('#')
}

fn is_assignment(line: &str) -> bool {
    let line = line.trim();
    if line.starts_with(['"', '\'']) {
        let rest = quoted(line).map(|end| line[end..].trim_start());
        return rest.is_some_and(|rest| rest.starts_with('='));
    }
    line.split_once('=')
        .is_some_and(|(key, _)| begins_a_key(key.trim()))
}

fn begins_a_key(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(text: &str) -> Option<(&str, String, Option<usize>)> {
        let Some(Problem::Open(open)) = Brackets::of(text).problem else {
            return None;
        };
        let first = text[open.at..].lines().next().unwrap_or_default();
        Some((first, open.close, open.before))
    }

    #[test]
    fn lists_end_before_the_next_key_or_table() {
        for (text, first, close, before) in [
            ("a = [1, 2\n\n[b]\nc = 1\n", "[1, 2", "]", Some(2)),
            ("a = [[1], [2\nb = 3\n", "[[1], [2", "]]", Some(1)),
            ("a = { b = [1\nc = 2", "{ b = [1", "]}", Some(1)),
            ("a = { b = 1\nc = 2", "{ b = 1", "}", Some(1)),
            ("a = [1, # ]\n  2", "[1, # ]", "]", None),
            ("a = \"\"\"\nb = 1\n", "\"\"\"", "\"\"\"", None),
            ("\"a\" = [1\n\"b.c\" = [2]\n", "[1", "]", Some(1)),
            (
                "a = [\n  { b = 1 },\n  { c = 2,\n]\n",
                "{ c = 2,",
                "}",
                None,
            ),
        ] {
            let found = open(text);
            assert_eq!(found, Some((first, close.to_owned(), before)), "{text}");
        }
    }

    #[test]
    fn brackets_of_other_kinds_do_not_close() {
        let problem = Brackets::of("a = [1, { b = 2 ]]\n").problem;
        let wrong = Problem::ClosedBy { at: 16, open: '{' };
        assert_eq!(problem, Some(wrong));
    }

    #[test]
    fn what_is_closed_is_not_open() {
        for text in [
            "a = [\n  [1, 2],\n  [3],\n]\n[b]\n",
            "a = [\n\"[\", ']', # [\n]\n",
            "a = {\n  b = 1,\n  c = 2\n}\nd = 1\n",
            "a = { b = 1,\nc = 2 }",
            "a = {\nb = 1\nc = 2\n}\nd = 1\n",
            "[[a.b]]\nc = \"\"\"\n[ {\n\"\"\"\n",
            "a = \"[\n[b]\n",
            "a = [\"b\", 'c]\nd = 1\n",
            "a = { b = [\"c], d = 'e }\nf = 1\n",
            "a = [\n  { b = 1 },\n  { b = \"x = [\" },\n]\n",
            "a = [\n  [adam]\n  [sgd]\n]\n",
        ] {
            assert_eq!(open(text), None, "{text}");
        }
    }
}
