//! A reproduction in words.

use super::Reproduction;
use crate::cli::output::Output;
use runner_core::diagnostic::counted;

/// Prints what was compared, and the verdict.
pub fn show(reproduction: &Reproduction, steps: Option<usize>, output: &mut Output) {
    let comparison = &reproduction.comparison;
    match comparison.first_loss {
        _ if comparison.num_steps == 0 => {}
        None => output.print(&format!(
            "losses      equal in all of {}",
            counted(comparison.num_steps, "step")
        )),
        Some((step, then, now)) => output.print(&format!(
            "losses      differ from step {step} of {} on: {then} then, {now} now",
            comparison.num_steps
        )),
    }
    match &comparison.first_parameters {
        None => output.print("parameters  equal wherever they were compared"),
        Some((step, paths)) => {
            let first = &paths[0];
            let more = match paths.len() - 1 {
                0 => String::new(),
                num => format!(" and {num} more"),
            };
            output.print(&format!(
                "parameters  differ after step {step}: {first}{more}"
            ));
        }
    }
    match &comparison.first_numbers {
        _ if comparison.num_numbers == 0 => {}
        None => output.print(&format!(
            "metrics     equal in all of {}",
            counted(comparison.num_numbers, "number")
        )),
        Some(first) => {
            let name = first.names.first().map_or("", String::as_str);
            let more = match first.names.len() {
                0 | 1 => String::new(),
                num => format!(", and {} more there", num - 1),
            };
            let shown = |value: Option<f64>| value.map_or("none".into(), |value| value.to_string());
            output.print(&format!(
                "metrics     differ from {} on: {name} {} then, {} now{more}",
                first.place,
                shown(first.then),
                shown(first.now)
            ));
        }
    }
    if let Some((then, now)) = comparison.objective {
        output.print(&format!(
            "objective   {} {then:.6} then, {now:.6} now",
            reproduction.metric
        ));
    }
    for what in &comparison.not_compared {
        output.print(&format!("not compared: {what}"));
    }
    let of_steps = match steps {
        Some(steps) => format!(" (of the first {})", counted(steps, "step")),
        None => String::new(),
    };
    output.print(&format!("verdict: {}{of_steps}", reproduction.grade));
}
