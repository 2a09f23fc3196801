//! Text that contains `${…}`, parsed into pieces.

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part<'a> {
    /// Literal text.
    Text(&'a str),
    /// `$${`, an escaped `${`.
    Escape,
    /// The text between `${` and `}`.
    Expression(&'a str),
}

/// Whether there is anything to parse.
pub fn is_template(text: &str) -> bool {
    text.contains("${")
}

/// The pieces of a text; `None` if a `${` is not closed.
pub fn parts(text: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let escaped = before.strip_suffix('$');
        let before = escaped.unwrap_or(before);
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        rest = match escaped {
            Some(_) => {
                parts.push(Part::Escape);
                after
            }
            None => {
                let (inner, behind) = after.split_once('}')?;
                parts.push(Part::Expression(inner));
                behind
            }
        };
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Some(parts)
}

/// The escaped form of a text, which parses to `text` itself.
pub fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_taken_apart_and_escapes_kept() {
        use Part::*;
        assert_eq!(
            parts("a ${b} c"),
            Some(vec![Text("a "), Expression("b"), Text(" c")])
        );
        assert_eq!(parts("${b}"), Some(vec![Expression("b")]));
        assert_eq!(parts("$${b} $x"), Some(vec![Escape, Text("b} $x")]));
        assert_eq!(parts("${b"), None);
        assert_eq!(parts(&escaped("${b}")), Some(vec![Escape, Text("b}")]));
    }
}
