//! The rules of `[[optimizer.groups]]`: which parameters match a group.

use wildmatch::WildMatch;

use super::Point;
use crate::diagnostic::{Diagnostic, nearest};
use crate::spec::method::Method;
use crate::spec::optimizer::GroupSpec;

/// Whether one of the patterns matches the parameter at `path`.
pub fn matches(patterns: &[String], path: &str) -> bool {
    let mut patterns = patterns.iter();
    patterns.any(|pattern| WildMatch::new(pattern).matches(path))
}

/// The group of a parameter, if any: the last one that matches it.
pub fn group_of<'a>(groups: &'a [GroupSpec], path: &str) -> Option<&'a GroupSpec> {
    let mut groups = groups.iter().rev();
    groups.find(|group| matches(&group.parameters, path))
}

/// Every list of patterns in `[optimizer]`, with its path.
fn patterns(point: &Point<'_>) -> Vec<(String, Vec<String>)> {
    let optimizer = &point.spec.optimizer;
    let groups = optimizer.groups.iter().enumerate();
    let mut all: Vec<_> = groups
        .map(|(at, group)| {
            let path = format!("optimizer.groups[{at}].parameters");
            (path, group.parameters.clone())
        })
        .collect();
    if let Method::Muon { adamw, .. } = &optimizer.method {
        let path = "optimizer.adamw.parameters".to_owned();
        all.push((path, adamw.parameters.clone()));
    }
    all
}

pub fn patterns_match(point: &Point<'_>) -> Option<Diagnostic> {
    let paths = point.network?.parameter_paths();
    let is_idle = |pattern: &String| {
        let pattern = WildMatch::new(pattern);
        !paths.iter().any(|path| pattern.matches(path))
    };
    let (key, at, pattern) = patterns(point).into_iter().find_map(|(key, patterns)| {
        let at = patterns.iter().position(is_idle)?;
        Some((key, at, patterns[at].clone()))
    })?;
    let message = format!("`{key}` contains \"{pattern}\", which matches no parameter");
    let mut diagnostic =
        Diagnostic::error("unknown-value", message).at(point.span(&format!("{key}[{at}]")));
    if let Some(near) = nearest(&pattern, paths.iter().map(String::as_str)) {
        diagnostic = diagnostic.help(format!("did you mean \"{near}\"?"));
    }
    Some(diagnostic.note(format!("the parameters are {}", shortened(&paths))))
}

/// The first paths, and how many more there are.
pub(super) fn shortened(paths: &[String]) -> String {
    const SHOWN: usize = 8;
    let quoted = paths.iter().take(SHOWN).map(|path| format!("`{path}`"));
    let mut text = quoted.collect::<Vec<_>>().join(", ");
    if paths.len() > SHOWN {
        text.push_str(&format!(" and {} more", paths.len() - SHOWN));
    }
    text
}

pub fn groups_change_something(point: &Point<'_>) -> Option<Diagnostic> {
    let mut groups = point.spec.optimizer.groups.iter().enumerate();
    groups.find_map(|(at, group)| {
        let path = format!("optimizer.groups[{at}]");
        let refuse = |key: &str, message: String| {
            let at = point.span(&format!("{path}.{key}"));
            Diagnostic::error("contradiction", message).at(at)
        };
        let has_factor = group.learning_rate_factor != 1.0;
        if group.freeze && (group.weight_decay.is_some() || has_factor) {
            let other = if has_factor { "learning_rate_factor" } else { "weight_decay" };
            let message =
                format!("`{path}` sets both `freeze` and `{other}`, but frozen parameters are not updated");
            return Some(refuse(other, message).help(format!("remove `{other}`, or `freeze`")));
        }
        if let Method::Own {
            weight_decay: None,
            used,
            ..
        } = &point.spec.optimizer.method
            && group.weight_decay.is_some()
        {
            let message = format!(
                "`{path}.weight_decay` has no effect: the optimizer `{}` has no weight decay",
                used.part
            );
            return Some(refuse("weight_decay", message).help("remove `weight_decay`"));
        }
        // After others, it returns parameters to the settings of the optimizer; and where a setting is written, it is the
        // control of a sweep.
        let is_said = |key: &&str| point.root.span_at(&format!("{path}.{key}")).is_some();
        let is_meant = at > 0 || ["freeze", "learning_rate_factor"].iter().any(is_said);
        let is_usual = !group.freeze && group.weight_decay.is_none() && !has_factor;
        (is_usual && !is_meant).then(|| {
            refuse("parameters", format!("`{path}` has no effect")).help(
                "add `weight_decay = 1e-2`, `learning_rate_factor = 0.1` or `freeze = true` to it, or remove it",
            )
        })
    })
}

pub fn groups_are_not_hidden(point: &Point<'_>) -> Option<Diagnostic> {
    let paths = point.network?.parameter_paths();
    let groups = &point.spec.optimizer.groups;
    let at = (0..groups.len()).find(|at| {
        let own: Vec<_> = paths
            .iter()
            .filter(|path| matches(&groups[*at].parameters, path))
            .collect();
        let later = &groups[at + 1..];
        !own.is_empty() && own.iter().all(|path| group_of(later, path).is_some())
    })?;
    let key = format!("optimizer.groups[{at}]");
    let message = format!("`{key}` has no effect: all of its parameters are also in later groups");
    Some(
        Diagnostic::error("contradiction", message)
            .at(point.span(&format!("{key}.parameters")))
            .note("if a parameter is in several groups, only the last one applies, with all of its keys")
            .help("list the general groups first and the special ones after them"),
    )
}

pub fn something_is_trained(point: &Point<'_>) -> Option<Diagnostic> {
    let network = point.network?;
    let paths = network.parameter_paths();
    let groups = &point.spec.optimizer.groups;
    let mut parameters = network.named_parameters();
    let are_frozen = parameters.all(|(layer, path, _)| {
        layer.freezes(&path) || group_of(groups, &path).is_some_and(|group| group.freeze)
    });
    if paths.is_empty() {
        let message = "no layer of the network has parameters, so there is nothing to train";
        let diagnostic = Diagnostic::error("contradiction", message).at(point.span("model"));
        return Some(diagnostic.help("add a layer with weights, such as `linear`"));
    }
    // Adapters that match nothing are refused themselves.
    if !are_frozen || (!point.spec.adapters.is_empty() && !network.has_adapters()) {
        return None;
    }
    let message = "every parameter is frozen, so there is nothing to train";
    let diagnostic = Diagnostic::error("contradiction", message);
    Some(match groups.iter().rposition(|group| group.freeze) {
        Some(at) => diagnostic
            .at(point.span(&format!("optimizer.groups[{at}].freeze")))
            .help("narrow the patterns of the groups with `freeze = true`"),
        None => diagnostic
            .at(point.span("model"))
            .help("remove `freeze` from a layer that has weights"),
    })
}
