//! `report.html`: one self-contained file, from a template that users can replace.
//!
//! The template (`report.html`) receives a [`page::Page`]. Its values are text, which is escaped when it is inserted;
//! only the plots, the style and the script are not.

mod axes;
mod blocks;
mod contours;
mod cost;
mod curves;
mod evaluation;
mod figures;
mod page;
mod search;
mod verdicts;
mod weights;

use std::fmt;
use std::ops::Range;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, Error, UndefinedBehavior};

use super::model::Report;
use page::Page;

/// The built-in template.
pub const TEMPLATE: &str = include_str!("report.html");

/// The name of the built-in template, for `extends`.
const BUILT_IN: &str = "report.html";

/// The internal name of a user's template.
const GIVEN: &str = "template";

/// An error in a template.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateError {
    /// The line, from 1, if known.
    pub line: Option<usize>,
    /// The byte range in the template, if known.
    pub range: Option<Range<usize>>,
    /// The problem.
    pub reason: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "line {line}: {}", self.reason),
            None => f.write_str(&self.reason),
        }
    }
}

impl std::error::Error for TemplateError {}

/// The page of a report, with the built-in template or a user's. A user's template can extend the built-in one:
/// `{% extends "report.html" %}` with the blocks to override.
pub fn html(report: &Report, template: Option<&str>) -> Result<String, TemplateError> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_debug(true);
    let mut syntax = SyntaxConfig::builder();
    if let Ok(syntax) = syntax.trim_blocks(true).lstrip_blocks(true).build() {
        environment.set_syntax(syntax);
    }
    environment.add_filter("code", |text: String| Value::from_safe_string(code(&text)));
    environment.add_filter("breaks", |text: String| {
        Value::from_safe_string(breaks(&text, &['.', '_', '/']))
    });
    environment.add_filter("commas", |text: String| {
        Value::from_safe_string(breaks(&text, &[',']))
    });
    let add = |environment: &mut Environment<'static>, name: &'static str, text: String| {
        let added = environment.add_template_owned(name, text);
        added.map_err(|error| TemplateError::of(&error))
    };
    add(&mut environment, BUILT_IN, TEMPLATE.to_owned())?;
    if let Some(text) = template {
        add(&mut environment, GIVEN, text.to_owned())?;
        blocks::check(text, TEMPLATE)?;
    }
    let name = template.map_or(BUILT_IN, |_| GIVEN);
    let render = || {
        environment
            .get_template(name)?
            .render(Serde(Page::of(report)))
    };
    let mut page = render().map_err(|error| TemplateError::of(&error))?;
    if !page.ends_with('\n') {
        page.push('\n');
    }
    Ok(page)
}

impl TemplateError {
    fn of(error: &Error) -> Self {
        // An error inside a block or a macro is the source of the error around it.
        let mut error = error;
        while let Some(inner) = std::error::Error::source(error).and_then(|e| e.downcast_ref()) {
            error = inner;
        }
        let is_given = error.name() == Some(GIVEN);
        let detail = error
            .detail()
            .map_or(String::new(), |detail| format!(": {detail}"));
        Self {
            line: error.line().filter(|_| is_given),
            range: error.range().filter(|_| is_given),
            reason: format!("{}{detail}", error.kind()),
        }
    }
}

/// A text of runner as HTML: words between backticks are code.
fn code(text: &str) -> String {
    let mut html = String::new();
    let mut pieces = text.split('`').peekable();
    let mut is_code = false;
    while let Some(piece) = pieces.next() {
        let escaped = super::plot::escape(piece);
        match is_code && pieces.peek().is_some() {
            // Names of trials are broken between their parts.
            true => html.push_str(&format!("<code>{}</code>", breaks(piece, &[',']))),
            // A single backtick is a character.
            false if is_code => html.push_str(&format!("`{escaped}")),
            false => html.push_str(&escaped),
        }
        is_code = !is_code;
    }
    html
}

/// A name as HTML that may be broken after dots and similar characters.
fn breaks(name: &str, after: &[char]) -> String {
    let mut html = String::new();
    for piece in name.split_inclusive(after) {
        html.push_str(&super::plot::escape(piece));
        html.push_str("<wbr>");
    }
    html.truncate(html.len() - if html.is_empty() { 0 } else { "<wbr>".len() });
    html
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn names_break_after_dots() {
        let breaks = |name: &str| super::breaks(name, &['.', '_', '/']);
        assert_eq!(
            breaks("optimizer.learning_rate"),
            "optimizer.<wbr>learning_<wbr>rate"
        );
        assert_eq!(breaks("<n>"), "&lt;n&gt;");
        assert_eq!(breaks(""), "");
    }

    #[test]
    fn words_between_backticks_are_code() {
        assert_eq!(
            code("of `a<b` and `c`."),
            "of <code>a&lt;b</code> and <code>c</code>."
        );
        assert_eq!(code("a ` alone & `"), "a <code> alone &amp; </code>");
        assert_eq!(code("it's `"), "it&#39;s `");
        assert_eq!(code(""), "");
    }
}
