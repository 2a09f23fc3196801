//! Foreign text for display: terminal control characters and invisible characters are escaped.
//!
//! Names, messages and labels come from files, from other people's results and from servers. An escape sequence in one
//! of them moves the cursor, rewrites lines above or sets the clipboard; a bidirectional override disguises a name.
//! Everything that runner writes to a terminal passes through one of these functions.

use std::borrow::Cow;

/// Whether a character affects a terminal or the text around it instead of being visible: control characters,
/// bidirectional controls, zero-width characters, line separators, tags.
pub fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// A text on one line in which such characters are written as `\u001b`.
pub fn printable(text: &str) -> Cow<'_, str> {
    spelled_out(text, is_odd)
}

/// A text of several lines in which such characters except tabs are written as `\u001b`. JSON stays valid: there they
/// only occur in strings, where JSON uses the same notation.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    spelled_out(text, |c| is_odd(c) && !matches!(c, '\n' | '\t'))
}

/// Like [`printable_lines`], but keeps escape sequences that set colors, which a rendered diagnostic contains.
pub fn printable_in_color(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return printable_lines(text);
    }
    let mut parts = text.split('\u{1b}');
    let mut shown = printable_lines(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        shown.push_str(if begins_with_color(part) {
            "\u{1b}"
        } else {
            "\\u001b"
        });
        shown.push_str(&printable_lines(part));
    }
    Cow::Owned(shown)
}

/// Whether the text after an escape character sets colors, as in `[1;31m`.
fn begins_with_color(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|rest| rest.split_once('m'));
    inner.is_some_and(|(codes, _)| codes.chars().all(|c| c.is_ascii_digit() || c == ';'))
}

/// A text with the same byte positions in which a visible character replaces every such character except line breaks
/// and tabs: excerpts of files are marked by byte ranges.
pub fn masked(text: &str) -> Cow<'_, str> {
    let is_shown_otherwise = |c: char| is_odd(c) && !matches!(c, '\n' | '\r' | '\t');
    if !text.contains(is_shown_otherwise) {
        return Cow::Borrowed(text);
    }
    let mask = |c: char| match c.len_utf8() {
        _ if !is_shown_otherwise(c) => c,
        1 => '?',
        2 => '\u{b7}',
        3 => '\u{fffd}',
        _ => '\u{1f6c7}',
    };
    Cow::Owned(text.chars().map(mask).collect())
}

fn spelled_out(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                shown.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_obeys_is_spelled_out() {
        for (text, shown) in [
            ("größe=64 日本", "größe=64 日本"),
            ("a\u{1b}]52;c;x\u{7}", "a\\u001b]52;c;x\\u0007"),
            ("a\u{9b}2J\u{7f}", "a\\u009b2J\\u007f"),
            ("\u{202e}live\u{2066}", "\\u202elive\\u2066"),
            ("b\u{200b}a\u{feff}se", "b\\u200ba\\ufeffse"),
            ("\u{e0041}", "\\udb40\\udc41"),
            ("a\nb\tc\r", "a\\u000ab\\u0009c\\u000d"),
        ] {
            assert_eq!(printable(text), shown);
        }
        assert_eq!(printable_lines("a\n\tb\r\u{1b}"), "a\n\tb\\u000d\\u001b");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = "a\u{1b}[2J\u{9b}\u{202e}\u{200d}\u{e0041}\n\u{7f}";
        let text = serde_json::to_string_pretty(&[value]).unwrap();
        let shown = printable_lines(&text);
        assert!(!shown.contains(|c| is_odd(c) && c != '\n'), "{shown}");
        assert_eq!(
            serde_json::from_str::<[String; 1]>(&shown).unwrap(),
            [value]
        );
    }

    #[test]
    fn colours_are_let_through_and_nothing_else_is() {
        let text = "\u{1b}[1m\u{1b}[91merror\u{1b}[0m: \u{1b}[2J\u{1b}]0;x\u{7}\u{1b}";
        let shown = "\u{1b}[1m\u{1b}[91merror\u{1b}[0m: \\u001b[2J\\u001b]0;x\\u0007\\u001b";
        assert_eq!(printable_in_color(text), shown);
    }

    #[test]
    fn a_mask_keeps_every_place() {
        let text = "a = \"\u{202e}x\u{9b}\u{1b}\u{e0041}\"\n\tb\r\n";
        let shown = masked(text);
        assert_eq!(shown.len(), text.len());
        assert!(!shown.contains(|c| is_odd(c) && !"\n\r\t".contains(c)));
        assert_eq!(shown.find('x'), text.find('x'));
    }
}
