//! The rules of `[[notify]]`.

use super::Point;
use crate::diagnostic::Diagnostic;
use crate::spec::notify::Occasion;

pub fn notifications_have_a_way(point: &Point<'_>) -> Option<Diagnostic> {
    let mut tables = point.spec.notify.iter().enumerate();
    tables.find_map(|(at, notify)| {
        let path = format!("notify[{at}]");
        let refuse = |key: &str, message: String| {
            let at = point.span(&format!("{path}{key}"));
            Diagnostic::error("contradiction", message).at(at)
        };
        match (&notify.command, &notify.url_variable) {
            (None, None) => Some(
                refuse("", format!("`{path}` names nothing to notify")).help(
                    "add `command = [\"notify-send\", \"runner\"]`, or `url_variable = \"WEBHOOK_URL\"` and set this environment variable",
                ),
            ),
            (Some(_), Some(_)) => Some(
                refuse(
                    ".url_variable",
                    format!("`{path}` has both a command and a webhook"),
                )
                .help("write two tables `[[notify]]`, one for each"),
            ),
            (None, Some(name)) if name.contains("://") => Some(
                refuse(
                    ".url_variable",
                    format!("`{path}.url_variable` is an address"),
                )
                .note("addresses of webhooks are secrets, and experiment files are copied into results")
                .help("put the address into an environment variable, such as `WEBHOOK_URL`, and write `url_variable = \"WEBHOOK_URL\"`"),
            ),
            (None, Some(name)) if !is_variable(name) => Some(
                refuse(
                    ".url_variable",
                    format!("`{name}` is not the name of an environment variable"),
                )
                .help("use letters, digits and `_`, such as `WEBHOOK_URL`"),
            ),
            _ => None,
        }
    })
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub fn notifications_come_once(point: &Point<'_>) -> Option<Diagnostic> {
    let mut tables = point.spec.notify.iter().enumerate();
    tables.find_map(|(at, notify)| {
        let has = |occasion| notify.on.contains(&occasion);
        (has(Occasion::RunFailed) && has(Occasion::Diverged)).then(|| {
            let key = format!("notify[{at}].on");
            let message = format!("`{key}` has \"run_failed\", which includes \"diverged\"");
            Diagnostic::error("contradiction", message)
                .at(point.span(&key))
                .help("remove \"diverged\"")
        })
    })
}
