//! How the trials of a search were found.

use super::{Section, dash, head};
use crate::report::model::Report;
use crate::report::numbers::{interval, mean_and_sd, short_number, value_text};
use crate::report::searched::{Pruning, Searched};
use crate::report::table::head_of;
use runner_core::diagnostic::counted;
use runner_core::spec::search::SuggestedBy;
use runner_core::spec::section::Choice;

/// The search: what it tried, and when it found what.
pub fn search(report: &Report) -> Option<Section> {
    let searched = report.search.as_ref()?;
    let num_chosen = searched.num_suggested - searched.num_sampled - searched.num_enqueued;
    let enqueued = match searched.num_enqueued {
        0 => String::new(),
        num => format!("{num} from the file, "),
    };
    let mut intro = format!(
        "`{}` suggested {}: {enqueued}{} sampled, {num_chosen} chosen from results.",
        searched.method.name(),
        counted(searched.num_suggested, "trial"),
        searched.num_sampled,
    );
    if searched.num_prior > 0 {
        intro.push_str(&format!(
            " It learned from {} of earlier results too.",
            counted(searched.num_prior, "trial")
        ));
    }
    if searched.num_repeated > 0 {
        intro.push_str(&format!(
            " {} had been tried before.",
            counted(searched.num_repeated, "point")
        ));
    }
    if searched.num_without_value > 0 {
        intro.push_str(&format!(
            " {} without a value.",
            counted(searched.num_without_value, "trial")
        ));
    }
    if searched.num_infeasible > 0 {
        intro.push_str(&format!(
            " {}",
            infeasible_in_words(searched.num_infeasible)
        ));
    }
    if let Some(pruning) = &searched.pruning {
        intro.push_str(&format!(" {}", pruned(searched, pruning)));
    }
    if let Some(population) = &searched.population {
        intro.push_str(&format!(
            " A population of {} was trained with `pbt`: {} replaced members, at intervals of {}; {} epochs were trained.",
            population.size,
            copies_in_words(population.copies.len()),
            counted(population.interval, "epoch"),
            searched.epochs,
        ));
    }
    let rows = searched.history.iter().map(|better| {
        let by = match better.by {
            SuggestedBy::Sample => "sampled",
            SuggestedBy::Model => "chosen",
            SuggestedBy::File => "file",
        };
        vec![
            better.number.to_string(),
            better.trial.clone(),
            by.to_owned(),
            short_number(better.value),
            better.epochs.to_string(),
            short_number(better.secs),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let objective = head_of(report, &report.objective);
    let names = head(["number", "trial", "by", &objective, "epochs", "s"]);
    let section = Section::new("search", "Search").intro(intro);
    Some(if rows.is_empty() {
        section
    } else {
        section.table(names, rows).note(
            "The trials that were better than all suggested before them, with the epochs and the seconds of training of all runs up to them, in the order of suggestions. The value of the best of many trials is biased: with other seeds, it is worse on average.",
        )
    })
}

/// The schedule that the best member of a population was trained with.
pub fn schedule(report: &Report) -> Option<Section> {
    let population = report.search.as_ref()?.population.as_ref()?;
    let keys = population.schedule.first()?.values.keys();
    let keys: Vec<&String> = keys.collect();
    let rows = population.schedule.iter().map(|segment| {
        let epochs = format!("{} to {}", segment.from_epoch, segment.to_epoch);
        let values = keys.iter().map(|key| segment.values.get(*key));
        let values = values.map(|value| value.map_or_else(dash, value_text));
        let trial = segment.trial.clone();
        [epochs].into_iter().chain(values).chain([trial]).collect()
    });
    let rows: Vec<_> = rows.collect();
    let names = ["epochs".to_owned()].into_iter();
    let names = names.chain(keys.iter().map(|key| (*key).clone()));
    let names = names.chain(["trial".to_owned()]);
    let best: Vec<String> = population
        .best_epochs
        .iter()
        .map(usize::to_string)
        .collect();
    Some(
        Section::new("schedule", "Schedule")
            .intro(format!(
                "The best trial was trained with these hyperparameters. Its best weights are those after epoch {}.",
                best.join(", ")
            ))
            .table(names.collect(), rows)
            .note("Each trial after the first begins as a copy of the one before it: its weights and the state of its optimizer. The schedule is that of the best of many trials, and its value is biased: with other seeds, it is worse on average."),
    )
}

fn copies_in_words(num: usize) -> String {
    match num {
        1 => "1 copy".into(),
        num => format!("{num} copies"),
    }
}

/// The members of a population that were replaced.
pub fn copies(report: &Report) -> Option<Section> {
    let population = report.search.as_ref()?.population.as_ref()?;
    let rows = population.copies.iter().map(|copy| {
        vec![
            copy.after_epoch.to_string(),
            copy.member.to_string(),
            copy.trial.clone(),
            copy.of.clone(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let names = head(["after epoch", "member", "replaced by", "a copy of"]);
    Some(
        Section::new("copies", "Copies")
            .intro("The members of the population that were replaced, by which trial, and of what that is a copy.")
            .table(names, rows),
    )
}

/// The trials that do not meet the constraints, and by how much.
pub fn infeasible(report: &Report) -> Option<Section> {
    let searched = report.search.as_ref()?;
    let trials = report.trials.iter();
    let rows = trials.flat_map(|trial| {
        trial.violated.iter().map(|violated| {
            vec![
                trial.id.clone(),
                violated.constraint.clone(),
                violated.excess(),
                violated.measured_in_words(),
            ]
        })
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let constraints = searched.constraints.iter();
    let constraints: Vec<String> = constraints.map(|one| format!("`{one}`")).collect();
    let names = head(["trial", "constraint", "excess", "measured"]);
    Some(
        Section::new("infeasible", "Infeasible trials")
            .intro(format!(
                "{} They are ranked behind all others, and are neither selected nor confirmed. Constraints: {}.",
                infeasible_in_words(searched.num_infeasible),
                constraints.join(", ")
            ))
            .table(names, rows)
            .note("The excess is relative to the limit. It is unknown, and counts as infinite, if a number was not measured or is not finite. Numbers are means over the runs of a trial."),
    )
}

/// How many trials do not meet the constraints.
fn infeasible_in_words(num: usize) -> String {
    match num {
        1 => "1 trial does not meet the constraints.".into(),
        num => format!("{num} trials do not meet the constraints."),
    }
}

/// The best trade-offs of several objectives.
pub fn tradeoffs(report: &Report) -> Option<Section> {
    let searched = report.search.as_ref()?;
    let tradeoffs = searched.tradeoffs.as_ref()?;
    let best: Vec<_> = tradeoffs.best().collect();
    let objectives = tradeoffs.objectives.iter();
    let names = objectives.map(|name| head_of(report, name));
    let rows = best.iter().map(|trial| {
        let values = trial.values.iter().map(|value| short_number(*value));
        [trial.trial.clone()].into_iter().chain(values).collect()
    });
    let feasible = match searched.constraints[..] {
        [] => "",
        _ => " that meets the constraints",
    };
    let intro = format!(
        "{} of {} are the best trade-offs: no other trial{feasible} is at least as good in all of {} objectives and better in one.",
        best.len(),
        counted(tradeoffs.trials.len(), "trial"),
        tradeoffs.objectives.len(),
    );
    let section = Section::new("tradeoffs", "Trade-offs").intro(intro);
    let names = ["trial".to_owned()].into_iter().chain(names);
    Some(if best.is_empty() {
        section
    } else {
        section
            .table(names.collect(), rows.collect())
            .note("Means over the runs of a trial, in the order of the ranking. The front of many trials is biased like the best of them: with other seeds, it is worse on average.")
    })
}

/// The best trials with other seeds than those by which they were selected.
pub fn confirmation(report: &Report) -> Option<Section> {
    let searched = report.search.as_ref()?;
    let confirmed = &searched.confirmed;
    if confirmed.is_empty() {
        return None;
    }
    let schedules = match searched.population {
        Some(_) => {
            " Each was trained again from the first epoch on, with its hyperparameters of each epoch."
        }
        None => "",
    };
    let rows = confirmed.iter().map(|one| {
        let sample = one.sample.as_ref();
        let described = sample.map(|sample| mean_and_sd(&sample.description));
        let student = sample.and_then(|sample| sample.student.as_ref());
        vec![
            one.trial.clone(),
            short_number(one.searched),
            described.unwrap_or_else(dash),
            student.map_or_else(dash, interval),
            match sample.map_or(0, |sample| sample.description.n) {
                n if n == one.num_planned => n.to_string(),
                n => format!("{n} of {}", one.num_planned),
            },
        ]
    });
    let rows: Vec<_> = rows.collect();
    let objective = head_of(report, &report.objective);
    let names = head([
        "trial",
        "in the search",
        "with other seeds",
        "95 % interval",
        "n",
    ]);
    Some(Section::new("confirmation", "Confirmation")
        .intro(format!(
            "{objective} of the best {} of the search, in the search and with other seeds. The values in the search are biased, since the trials were selected by them; those with other seeds are not.{schedules}",
            counted(confirmed.len(), "trial")
        ))
        .table(names, rows)
        .note("Best first by the mean with other seeds, ± the standard deviation over them. Intervals for the mean are Student's."))
}

/// What pruning did and saved.
fn pruned(searched: &Searched, pruning: &Pruning) -> String {
    let rungs = pruning.rungs.iter().map(|rung| {
        let pruned = match rung.num_pruned {
            0 => String::new(),
            num => format!(", {num} pruned"),
        };
        format!(
            "{} ({}{pruned})",
            counted(rung.epochs, "epoch"),
            rung.num_trials
        )
    });
    let rungs: Vec<String> = rungs.collect();
    let share = 100.0 * searched.epochs as f64 / pruning.planned_epochs.max(1) as f64;
    format!(
        "`{}` pruned {}; {} of {} epochs ({share:.0} %) were trained, which saved about {} s at the measured times of the pruned runs' epochs. Trials trained for at least: {}.",
        pruning.rule.name(),
        counted(pruning.num_pruned, "trial"),
        searched.epochs,
        pruning.planned_epochs,
        short_number(pruning.saved_secs),
        rungs.join(", "),
    )
}
