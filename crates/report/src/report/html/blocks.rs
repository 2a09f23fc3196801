//! The blocks of a template that extends the built-in one: the content of an unknown block would never appear.

use std::ops::Range;

use super::{BUILT_IN, TemplateError};
use runner_core::spec::nearest_path;

/// A top-level block.
struct Block<'a> {
    name: &'a str,
    range: Range<usize>,
}

/// Refuses blocks that the extended built-in template does not have.
pub fn check(text: &str, built_in: &str) -> Result<(), TemplateError> {
    let extends = tags(text).any(|(words, _)| {
        let quoted = words.strip_prefix("extends").map(str::trim);
        quoted.is_some_and(|name| name.trim_matches(['"', '\'']) == BUILT_IN)
    });
    if !extends {
        return Ok(());
    }
    let known = blocks(built_in, false);
    let names = known.iter().map(|block| block.name);
    let own = blocks(text, true);
    let unknown = own
        .iter()
        .find(|block| !names.clone().any(|name| name == block.name));
    let Some(block) = unknown else { return Ok(()) };
    let reason = match nearest_path(block.name, names.clone()) {
        Some(near) => format!(
            "`{BUILT_IN}` has no block `{}`, so it would not appear; did you mean `{near}`?",
            block.name
        ),
        None => format!(
            "`{BUILT_IN}` has no block `{}`, so it would not appear; its blocks are `{}`",
            block.name,
            names.collect::<Vec<_>>().join("`, `")
        ),
    };
    Err(TemplateError {
        line: Some(1 + text[..block.range.start].matches('\n').count()),
        range: Some(block.range.clone()),
        reason,
    })
}

/// The blocks of a template in order, including nested ones unless only `outer` ones are requested.
fn blocks(text: &str, outer: bool) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut depth = 0_usize;
    for (words, range) in tags(text) {
        let (word, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        match word {
            "block" => {
                if depth == 0 || !outer {
                    let name = rest.split_whitespace().next().unwrap_or_default();
                    found.push(Block { name, range });
                }
                depth += 1;
            }
            "endblock" => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    found
}

/// The tags of a template, `{% … %}` without delimiters, with their positions. Comments and raw text have none.
fn tags(text: &str) -> impl Iterator<Item = (&str, Range<usize>)> {
    let mut at = 0;
    let mut is_raw = false;
    std::iter::from_fn(move || {
        loop {
            let start = at
                + text[at..]
                    .find("{%")
                    .into_iter()
                    .chain(text[at..].find("{#"))
                    .min()?;
            if text[start..].starts_with("{#") && !is_raw {
                at = start + text[start..].find("#}")? + 2;
                continue;
            }
            if text[start..].starts_with("{#") {
                at = start + 2;
                continue;
            }
            let end = start + text[start..].find("%}")? + 2;
            at = end;
            let words = text[start + 2..end - 2].trim_matches(['-', '+']).trim();
            match words {
                "raw" => is_raw = true,
                "endraw" => is_raw = false,
                words if !is_raw => return Some((words, start..end)),
                _ => {}
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::check;

    const BUILT_IN: &str = "{% block head %}{% endblock %}{% block footer %}{% endblock %}";

    fn wrong(text: &str) -> Option<String> {
        let text = format!("{{% extends \"report.html\" %}}\n{text}");
        check(&text, BUILT_IN).err().map(|error| error.to_string())
    }

    #[test]
    fn blocks_that_are_not_there_are_refused() {
        insta::assert_snapshot!(wrong("{% block foter %}x{% endblock %}").unwrap(), @"line 2: `report.html` has no block `foter`, so it would not appear; did you mean `footer`?");
        insta::assert_snapshot!(wrong("a\n{%- block appendix -%}x{% endblock %}").unwrap(), @"line 3: `report.html` has no block `appendix`, so it would not appear; its blocks are `head`, `footer`");
    }

    #[test]
    fn blocks_inside_of_known_ones_and_what_is_no_block_are_not() {
        for text in [
            "{% block footer %}{% block inner %}{% endblock %}{% endblock footer %}",
            "{# {% block x %} #}",
            "{% raw %}{# {% block x %}{% endraw %}",
            "{% block head %}",
            "{% block",
            "{#",
        ] {
            assert_eq!(wrong(text), None, "{text}");
        }
        assert!(check("{% block x %}{% endblock %}", BUILT_IN).is_ok());
    }
}
