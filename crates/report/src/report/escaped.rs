//! Text of records in Markdown and CSV, escaped so that a renderer or a spreadsheet does not interpret it.
//!
//! Names, messages, questions and labels come from foreign files. Reports put names and values between backticks;
//! everything else is text. So code spans stay, as defined by CommonMark, and outside of them anything that starts
//! HTML, a link, an image, an entity, emphasis or a block is escaped. A bare address that some renderers turn into a
//! link stays one: it shows its target.

use runner_core::spec::printable;

/// A paragraph, heading or list item: one line.
pub fn prose(text: &str) -> String {
    let text = one_line(text);
    let text = inline(text.trim());
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let begins_list =
        (rest.starts_with(". ") || rest.starts_with(") ") || [".", ")"].contains(&rest))
            && rest.len() < text.len();
    let mut chars = text.chars();
    let begins_block = match (chars.next(), chars.next()) {
        (Some('#' | '>' | '='), _) => true,
        (Some('-' | '+' | '*'), None | Some(' ')) => true,
        (Some(a @ ('-' | '*' | '~')), Some(b)) => a == b,
        _ => false,
    };
    if begins_block {
        format!("\\{text}")
    } else if begins_list {
        format!("{}\\{rest}", &text[..text.len() - rest.len()])
    } else {
        text
    }
}

/// A cell of a table.
pub fn cell(text: &str) -> String {
    // A bar ends a cell even between backticks.
    inline(one_line(text).trim()).replace('|', "\\|")
}

/// Shell lines between fences that none of them closes.
pub fn fenced(lines: &[String]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| one_line(line)).collect();
    let longest = lines
        .iter()
        .map(|line| longest_run(line))
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}sh\n{}\n{fence}\n", lines.join("\n"))
}

/// A field of CSV. Spreadsheets interpret a text that begins like a formula: it gets an apostrophe, which marks it as
/// text. Numbers, also with a spread, are unchanged.
pub fn field(text: &str) -> String {
    let begins_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let first = text.split(' ').next().unwrap_or_default();
    let is_number = first.parse::<f64>().is_ok() && !text.contains(['(', '!', '|', '=', '@']);
    let text = if begins_formula && !is_number && text != "-" {
        format!("'{text}")
    } else {
        text.to_owned()
    };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

fn one_line(text: &str) -> String {
    printable(&text.replace(['\n', '\r', '\t'], " ")).into_owned()
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|c| c != '`').map(str::len);
    runs.max().unwrap_or(0)
}

/// A text with everything escaped except code spans.
fn inline(text: &str) -> String {
    // A single one closes nothing.
    let is_several = |c: char| text.matches(c).count() > 1;
    let (stars, lows, tildes) = (is_several('*'), is_several('_'), is_several('~'));
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        if c == '`' {
            let (span, is_code) = code_span(rest);
            if is_code {
                shown.push_str(span)
            } else {
                shown.push_str(&"\\`".repeat(span.len()))
            }
            rest = &rest[span.len()..];
            before = '`';
            continue;
        }
        rest = &rest[c.len_utf8()..];
        let next = rest.chars().next().unwrap_or(' ');
        let is_in_word = before.is_alphanumeric() && next.is_alphanumeric();
        match c {
            '<' if next.is_ascii_alphabetic() || "/!?".contains(next) => shown.push_str("&lt;"),
            '&' if next.is_ascii_alphabetic() || next == '#' => shown.push_str("&amp;"),
            '\\' => shown.push_str("\\\\"),
            ']' if "([:".contains(next) => shown.push_str("\\]"),
            '*' if stars => shown.push_str("\\*"),
            '_' if lows && !is_in_word => shown.push_str("\\_"),
            '~' if tildes => shown.push_str("\\~"),
            c => shown.push(c),
        }
        before = c;
    }
    shown
}

/// The code span at the start of a text, or backticks that start none.
fn code_span(text: &str) -> (&str, bool) {
    let run = text.len() - text.trim_start_matches('`').len();
    let mut at = run;
    while let Some(found) = text[at..].find('`') {
        let start = at + found;
        let len = text[start..].len() - text[start..].trim_start_matches('`').len();
        if len == run {
            return (&text[..start + len], true);
        }
        at = start + len;
    }
    (&text[..run], false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_renderer_would_act_on_is_escaped() {
        for (text, shown) in [
            (
                "`a=1` is better, p < 0.05 & d_z 0.2, [16]",
                "`a=1` is better, p < 0.05 & d_z 0.2, [16]",
            ),
            (
                "<img src=x onerror=alert(1)>",
                "&lt;img src=x onerror=alert(1)>",
            ),
            ("</table><!-- x", "&lt;/table>&lt;!-- x"),
            ("[x](javascript:alert(1))", "[x\\](javascript:alert(1))"),
            ("![x][y]", "![x\\][y]"),
            ("[x]: javascript:alert(1)", "[x\\]: javascript:alert(1)"),
            ("&lt;b&#62;", "&amp;lt;b&amp;#62;"),
            (
                "**bold** _a_ ~~b~~",
                "\\*\\*bold\\*\\* \\_a\\_ \\~\\~b\\~\\~",
            ),
            ("# title", "\\# title"),
            ("> quote", "\\> quote"),
            ("1. item", "1\\. item"),
            ("--- ", "\\---"),
            ("- item", "\\- item"),
            ("-0.5 is less", "-0.5 is less"),
            ("0.5 is less", "0.5 is less"),
            ("7)", "7\\)"),
            ("a\n\n<script>\n# b", "a  &lt;script> # b"),
            ("\u{1b}[2J\u{202e}", "\\\\u001b[2J\\\\u202e"),
            ("\\<b>", "\\\\&lt;b>"),
            // Text between backticks is shown unchanged, whoever wrote them.
            ("`<b>` <b> `", "`<b>` &lt;b> \\`"),
            ("`a`b` <b>`", "`a`b` <b>`"),
            ("``a`<b>`", "\\`\\`a`<b>`"),
        ] {
            assert_eq!(prose(text), shown, "{text}");
        }
        assert_eq!(cell("a|b `c|d`\n|---|"), "a\\|b `c\\|d` \\|---\\|");
        let lines = ["a ```".to_owned(), "b\n````\n<b>".to_owned()];
        assert_eq!(fenced(&lines), "`````sh\na ```\nb ```` <b>\n`````\n");
        assert_eq!(fenced(&["a".to_owned()]), "```sh\na\n```\n");
    }

    #[test]
    fn no_field_is_a_formula() {
        for (text, shown) in [
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-1+cmd|' /C calc'!A0", "'-1+cmd|' /C calc'!A0"),
            (
                "=HYPERLINK(\"http://a\",\"b\")",
                "\"'=HYPERLINK(\"\"http://a\"\",\"\"b\"\")\"",
            ),
            ("\t=1", "'\t=1"),
            ("-0.25", "-0.25"),
            ("-0.25 ± 0.5", "-0.25 ± 0.5"),
            ("+1e-3", "+1e-3"),
            ("-inf", "-inf"),
            ("-", "-"),
            ("hidden=64,rate=0.1", "\"hidden=64,rate=0.1\""),
        ] {
            assert_eq!(field(text), shown, "{text}");
        }
    }
}
