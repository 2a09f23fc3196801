//! Clusters that are used through commands of the experiment file.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::{Refusal, ask};
use runner_core::plan::quoted;
use runner_core::record::{Job, JobState, Submission};
use runner_core::spec::launch::Commands;

/// Submits a job or an array; returns its id, the last word that the command prints.
pub(super) fn submit(
    submission: &Submission,
    commands: &Commands,
    job: &Job,
    script: &Path,
    logs: &Path,
) -> Result<String, Refusal> {
    let log = logs.join(format!("{}.log", job.first));
    let values = [
        ("script", quoted(&script.display().to_string())),
        ("log", quoted(&log.display().to_string())),
        (
            "name",
            quoted(&format!(
                "{}-{}",
                submission.plan.experiment, submission.key
            )),
        ),
        ("element", job.first.to_string()),
        ("last", (job.count - 1).to_string()),
        ("count", job.count.to_string()),
    ];
    let printed = shell(&filled_in(&commands.submit, &values))?;
    let id = printed.split_whitespace().next_back();
    id.map(str::to_owned).ok_or_else(|| Refusal {
        program: commands.submit.clone(),
        words: "printed nothing, instead of the id of a job as its last word".into(),
        is_missing: false,
    })
}

/// The elements that wait or run; `None` if the file has no command that says so.
pub(super) fn queue(
    submission: &Submission,
    commands: &Commands,
    is_asked: impl Fn(usize) -> bool,
) -> Result<Option<BTreeMap<usize, JobState>>, Refusal> {
    let Some(status) = &commands.status else {
        return Ok(None);
    };
    let mut states = BTreeMap::new();
    for job in submission.jobs.iter().filter(|job| !job.id.is_empty()) {
        if !(job.first..job.first + job.count).any(&is_asked) {
            continue;
        }
        let command = filled_in(status, &[("job", quoted(&job.id))]);
        let text = shell(&command)?;
        let found = parse(&text, job, commands.index.is_some());
        states.extend(found.map_err(|words| Refusal {
            program: command,
            words,
            is_missing: false,
        })?);
    }
    Ok(Some(states))
}

/// Parses `queued` or `running`, for arrays after the number of the element. Other lines may stand around them, but where
/// none is understood, nothing is known.
fn parse(text: &str, job: &Job, is_array: bool) -> Result<BTreeMap<usize, JobState>, String> {
    let lines = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let mut next = || words.next().unwrap_or_default();
        let element = if is_array { next().parse().ok()? } else { 0 };
        let state = match next().to_ascii_lowercase().as_str() {
            "queued" => JobState::Queued {
                reason: String::new(),
            },
            "running" => JobState::Running,
            _ => return None,
        };
        Some((element, state))
    });
    let states: Vec<(usize, JobState)> = lines.collect();
    if let (true, Some(line)) = (
        states.is_empty(),
        text.lines().find(|line| !line.trim().is_empty()),
    ) {
        let wanted = if is_array {
            "`NUMBER queued` or `NUMBER running`"
        } else {
            "`queued` or `running`"
        };
        return Err(format!(
            "printed `{}` instead of {wanted}, or nothing for what has ended",
            line.trim().chars().take(60).collect::<String>()
        ));
    }
    let states = states.into_iter().filter(|(at, _)| *at < job.count);
    Ok(states.map(|(at, state)| (job.first + at, state)).collect())
}

/// Cancels what is queued or runs of a submission; whether the file has a command for that.
pub(super) fn cancel(
    submission: &Submission,
    commands: &Commands,
    is_asked: impl Fn(usize) -> bool,
) -> Result<bool, Refusal> {
    let Some(cancel) = &commands.cancel else {
        return Ok(false);
    };
    for job in submission.jobs.iter().filter(|job| !job.id.is_empty()) {
        if (job.first..job.first + job.count).any(&is_asked) {
            shell(&filled_in(cancel, &[("job", quoted(&job.id))]))?;
        }
    }
    Ok(true)
}

/// The script of a job. Without an array, each job has its own script, with its number in it.
pub(super) fn script(start: &str, commands: &Commands, element: usize) -> String {
    match &commands.index {
        Some(variable) => format!("{start}\"${{{variable}}}\"\n"),
        None => format!("{start}{element}\n"),
    }
}

fn shell(command: &str) -> Result<String, Refusal> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    ask(shell).map_err(|refusal| Refusal {
        program: command.to_owned(),
        ..refusal
    })
}

/// A command with its placeholders filled in. Any other text in braces belongs to the shell.
fn filled_in(command: &str, values: &[(&str, String)]) -> String {
    let mut filled = command.to_owned();
    for (name, value) in values {
        filled = filled.replace(&format!("{{{name}}}"), value);
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(first: usize, count: usize) -> Job {
        Job {
            id: "7".into(),
            first,
            count,
        }
    }

    #[test]
    fn states_are_parsed() {
        let states = parse(
            "0 running\n2 Queued\n9 running\nbanner text\n",
            &job(10, 3),
            true,
        );
        let queued = JobState::Queued {
            reason: String::new(),
        };
        assert_eq!(
            states.unwrap(),
            [(10, JobState::Running), (12, queued)].into()
        );
        assert_eq!(
            parse("running\n", &job(4, 1), false).unwrap(),
            [(4, JobState::Running)].into()
        );
        assert!(parse("\n", &job(4, 1), false).unwrap().is_empty());
        // Element 9 is of another job.
        assert!(parse("9 running\n", &job(10, 3), true).unwrap().is_empty());
        for (text, is_array) in [("R\n", false), ("running\n", true), ("0 running\n", false)] {
            let words = parse(text, &job(4, 1), is_array).unwrap_err();
            assert!(words.contains(text.trim()), "{words}");
        }
    }

    #[test]
    fn values_are_quoted_and_other_braces_stay() {
        let values = [("job", quoted("a b")), ("count", "3".to_owned())];
        let command = filled_in(
            "stat {job} | awk '{print $1}' ; echo ${HOME} {count}",
            &values,
        );
        assert_eq!(command, "stat 'a b' | awk '{print $1}' ; echo ${HOME} 3");
    }
}
