//! The text of a template, changed before it is compiled: `{% generation %}` becomes a filter, and all values that a
//! template keeps are bounded.
//!
//! The engine's fuel bounds steps and texts, but not lists of lists: `{% set x = [x, x] %}` doubles what is written with
//! `x` at a constant price. So what `set`, `with` and `for` bind to names, and what macros are called with, is counted.

use std::fmt::Write;
use std::ops::Range;

/// The filter that marks what the assistant wrote.
pub(super) const GENERATION: &str = "__generation";
/// The filter that bounds a value.
pub(super) const BOUNDED: &str = "__bounded";
/// The same for what is assigned to an attribute, which may not be a namespace.
pub(super) const HELD: &str = "__held";
/// Signs and words of a tag outside of texts: the engine nests as deeply.
const MOST_PARTS: usize = 1500;
/// Branches of all conditions of a template.
const MOST_BRANCHES: usize = 500;

/// A changed template.
#[derive(Debug)]
pub(super) struct Source {
    /// Its text, with the same lines.
    pub text: String,
    /// Whether it says what the assistant wrote.
    pub has_generation: bool,
}

/// Changes a template.
///
/// # Errors
/// If a tag is too long, to follow "the chat template".
pub(super) fn changed(template: &str) -> Result<Source, String> {
    let mut source = Source {
        text: String::with_capacity(template.len() + template.len() / 4),
        has_generation: false,
    };
    let (mut done, mut num_branches) = (0, 0);
    while let Some(tag) = Tag::next(template, done)? {
        source.text += &template[done..tag.start];
        let mut end = tag.end;
        let content = &template[tag.content.clone()];
        let (name, rest) = tag.words(content);
        let inside = match name {
            "generation" if rest.is_empty() => {
                source.has_generation = true;
                Some(format!(" filter {GENERATION} "))
            }
            "endgeneration" if rest.is_empty() => Some(" endfilter ".to_owned()),
            "elif" => {
                num_branches += 1;
                None
            }
            "raw" => {
                // Its content is text.
                let after = |from: usize, sign: &str| {
                    let found = template[from..].find(sign);
                    found.map_or(template.len(), |at| from + at + sign.len())
                };
                end = after(after(end, "endraw"), "%}");
                None
            }
            "set" | "with" => tag.first(template, "=").map(|at| {
                let filter = if template[tag.content.start..at.start].contains('.') {
                    HELD
                } else {
                    BOUNDED
                };
                wrapped(template, &tag, at.end..tag.content.end, filter)
            }),
            "for" => tag.first(template, "in").map(|at| {
                let ends = ["if", "recursive"]
                    .into_iter()
                    .filter_map(|word| tag.first(template, word));
                let ends = ends.map(|found| found.start).filter(|end| *end > at.end);
                let value = at.end..ends.min().unwrap_or(tag.content.end);
                wrapped(template, &tag, value, BOUNDED)
            }),
            "macro" | "call" => {
                let mut inside = content.to_owned();
                for name in parameters(content) {
                    let _ = write!(inside, "%}}{{% set {name} = {name} | {BOUNDED} ");
                }
                Some(inside)
            }
            _ => None,
        };
        if num_branches > MOST_BRANCHES {
            return Err(format!("has more than {MOST_BRANCHES} branches"));
        }
        source.text += &template[tag.start..tag.content.start];
        source.text += inside.as_deref().unwrap_or(content);
        source.text += &template[tag.content.end..end];
        done = end;
    }
    source.text += &template[done..];
    Ok(source)
}

/// The content of a tag with a filter after the value at a place.
fn wrapped(template: &str, tag: &Tag, value: Range<usize>, filter: &str) -> String {
    let (before, after) = (
        &template[tag.content.start..value.start],
        &template[value.end..tag.content.end],
    );
    format!("{before} ({}) | {filter} {after}", &template[value])
}

/// The names of the parameters of a macro, as `f(a, b=1)` lists them.
fn parameters(content: &str) -> Vec<&str> {
    let Some((_, list)) = content.split_once('(') else {
        return Vec::new();
    };
    let (mut depth, mut is_name, mut start, mut names) = (0usize, true, 0, Vec::new());
    let mut quote = None;
    for (at, sign) in list.char_indices() {
        match (quote, sign) {
            (Some(open), _) if open == sign => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(sign),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ',' | '=' | ')') if depth == 0 => {
                let name = list[start..at].trim();
                if is_name && !name.is_empty() {
                    names.push(name);
                }
                is_name = sign == ',';
                start = at + 1;
                if sign == ')' {
                    break;
                }
            }
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    names
}

/// A tag of a template.
struct Tag {
    start: usize,
    end: usize,
    /// Without the delimiters and the control of white space.
    content: Range<usize>,
    /// Whether it writes a value.
    is_output: bool,
    /// Words, and `=`, that are in no bracket and no text.
    outer: Vec<Range<usize>>,
}

impl Tag {
    /// The next tag from a place on. An incomplete one is none: the engine refuses it.
    fn next(template: &str, from: usize) -> Result<Option<Self>, String> {
        let bytes = template.as_bytes();
        let mut at = from;
        while let Some(found) = template[at..].find('{').map(|found| at + found) {
            match bytes.get(found + 1) {
                Some(b'#') => match template[found..].find("#}") {
                    Some(end) => at = found + end + 2,
                    None => return Ok(None),
                },
                Some(b'{' | b'%') => return Self::at(template, found),
                _ => at = found + 1,
            }
        }
        Ok(None)
    }

    fn at(template: &str, start: usize) -> Result<Option<Self>, String> {
        let bytes = template.as_bytes();
        let is_output = bytes[start + 1] == b'{';
        let closes: &[u8] = if is_output { b"}}" } else { b"%}" };
        let mut at = start + 2 + usize::from(matches!(bytes.get(start + 2), Some(b'-' | b'+')));
        let first = at;
        let (mut depth, mut num_parts, mut outer) = (0usize, 0, Vec::new());
        while let Some(&byte) = bytes.get(at) {
            if depth == 0 && bytes[at..].starts_with(closes) {
                let controls = at > first && matches!(bytes[at - 1], b'-' | b'+');
                return Ok(Some(Self {
                    start,
                    end: at + 2,
                    content: first..at - usize::from(controls),
                    is_output,
                    outer,
                }));
            }
            let is_word =
                |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
            let begin = at;
            at += 1;
            match byte {
                b'"' | b'\'' => at = text_end(bytes, begin),
                b'(' | b'[' | b'{' => depth += 1,
                b')' | b']' | b'}' => depth = depth.saturating_sub(1),
                _ if is_word(&byte) => {
                    at += bytes[at..].iter().take_while(|byte| is_word(byte)).count()
                }
                _ => {}
            }
            let is_equal = byte == b'=' && bytes.get(at) != Some(&b'=');
            if depth == 0 && (is_word(&byte) || is_equal) {
                outer.push(begin..at);
            }
            num_parts += usize::from(!byte.is_ascii_whitespace());
            if num_parts > MOST_PARTS {
                let line = template[..start].matches('\n').count() + 1;
                return Err(format!(
                    "has a tag of more than {MOST_PARTS} parts in line {line}"
                ));
            }
        }
        Ok(None)
    }

    /// Its first word, and the rest; nothing if it writes a value.
    fn words<'a>(&self, content: &'a str) -> (&'a str, &'a str) {
        let content = content.trim();
        let end = content.find(|c: char| !c.is_ascii_alphanumeric());
        match end.map_or((content, ""), |end| content.split_at(end)) {
            _ if self.is_output => ("", ""),
            (name, rest) => (name, rest.trim()),
        }
    }

    /// The first of its outer words, or `=`.
    fn first(&self, template: &str, word: &str) -> Option<Range<usize>> {
        let mut outer = self.outer.iter();
        outer.find(|at| &template[(*at).clone()] == word).cloned()
    }
}

/// The end of the text that begins at a place.
fn text_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'\\' => at += 1,
            _ if byte == bytes[start] => break,
            _ => {}
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(template: &str) -> String {
        changed(template).unwrap().text
    }

    #[test]
    fn texts_and_other_tags_stay() {
        for template in [
            "{{ {'a': {'b': '}}'}} }} {% if a == 1 %}{% set b %}c{% endset %}",
            "{# {% generation %} #}{% raw %}{% set a = 1 %}{% endraw %}{{ a }}",
            "{{ '{% generation %}' }} {% set",
            "{% endfor %}{{ generation }}{ {} }",
            "{% macro f() %}{% endmacro %}",
        ] {
            assert_eq!(of(template), template);
        }
    }

    #[test]
    fn values_with_names_are_bounded() {
        for (template, expected) in [
            (
                "{%- generation -%}a{% endgeneration +%}",
                "{%- filter __generation -%}a{% endfilter +%}",
            ),
            (
                "{%- set a = 'x=%}' ~ {'c': 1} == 1 -%}",
                "{%- set a = ( 'x=%}' ~ {'c': 1} == 1 ) | __bounded -%}",
            ),
            ("{% set a.b = a%}", "{% set a.b = ( a) | __held %}"),
            (
                "{% set a, b = 1, 2 %}",
                "{% set a, b = ( 1, 2 ) | __bounded %}",
            ),
            (
                "{% for a in b if a in c %}",
                "{% for a in ( b ) | __bounded if a in c %}",
            ),
            (
                "{% for a, b in (c if d else e).items() %}",
                "{% for a, b in ( (c if d else e).items() ) | __bounded %}",
            ),
            (
                "{%- macro f(a, b=[1, ','], c=',)') -%}",
                "{%- macro f(a, b=[1, ','], c=',)') %}{% set a = a | __bounded %}{% set b = b | __bounded %}{% set c = c | __bounded -%}",
            ),
            (
                "{% call(a) f(b) %}",
                "{% call(a) f(b) %}{% set a = a | __bounded %}",
            ),
        ] {
            assert_eq!(of(template), expected);
        }
        assert!(changed("{% generation%}").unwrap().has_generation);
    }

    #[test]
    fn long_tags_are_refused() {
        let long = format!("\n{{{{ 1{} }}}}", "+1".repeat(MOST_PARTS));
        assert!(changed(&long).unwrap_err().ends_with("in line 2"));
        assert!(changed(&format!("{{{{ '{}' }}}}", "+".repeat(MOST_PARTS))).is_ok());
        assert!(changed(&"{% elif a %}".repeat(MOST_BRANCHES + 1)).is_err());
    }
}
