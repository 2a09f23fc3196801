//! The sources of a comparison: folders of experiments and of runs, whole results folders, saved reports, and patterns.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use wildmatch::WildMatch;

use crate::ops::tree::lost_plan;
use runner_core::diagnostic::Wrong;
use runner_core::record::{
    ExperimentFolder, Index, PLAN_REMEDY, RunFolder, check_seal, experiment_remedy,
};
use runner_core::show::plain_io_error;
use runner_core::spec::plain_file;
use runner_report::report::compare::Source;
use runner_report::report::{Report, of_all_metrics};

/// Reads the sources in the arguments, an experiment once however many of its runs are listed. Unreadable ones next to
/// readable ones are skipped with a message to `tell`.
pub(super) fn read(what: &[String], tell: impl Fn(&str)) -> Result<Vec<Source>, Wrong> {
    let mut paths = Vec::new();
    for text in what {
        paths.extend(expand(text)?);
    }
    // Runs by their experiment's folder; no runs for all of them.
    let mut experiments: Vec<(PathBuf, Vec<String>)> = Vec::new();
    let mut reports = Vec::new();
    for path in paths {
        match Kind::of(&path)? {
            Kind::Report => {
                let report = saved(&path)?;
                reports.push((path, report));
            }
            Kind::Experiments(folders) => {
                for ExperimentFolder(folder) in folders {
                    experiments.retain(|(known, _)| *known != folder);
                    experiments.push((folder, Vec::new()));
                }
            }
            Kind::Run(folder, id) => {
                match experiments.iter_mut().find(|(known, _)| *known == folder) {
                    Some((_, ids)) if ids.is_empty() || ids.contains(&id) => {}
                    Some((_, ids)) => ids.push(id),
                    None => experiments.push((folder, vec![id])),
                }
            }
        }
    }
    // The report of a folder that is read anyway has the same content.
    reports.retain(|(path, _)| {
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        let is_known = folder.is_some_and(|folder| {
            let mut known = experiments.iter().map(|(known, _)| known.canonicalize());
            known.any(|known| known.is_ok_and(|known| known == folder))
        });
        if is_known {
            tell(&format!(
                "skipped: `{}` is the report of an experiment that is already compared",
                path.display()
            ));
        }
        !is_known
    });
    let mut all = Vec::new();
    let mut unreadable = Vec::new();
    for (folder, ids) in experiments {
        match of_folder(&folder, &ids) {
            Ok(report) => all.push((report, Some(ExperimentFolder(folder)))),
            Err(wrong) => unreadable.push(wrong),
        }
    }
    all.extend(reports.into_iter().map(|(_, report)| (report, None)));
    if all.is_empty() && !unreadable.is_empty() {
        return Err(unreadable.swap_remove(0));
    }
    for Wrong { message, help } in unreadable {
        tell(&format!("skipped: {message}\n  help: {help}"));
    }
    Ok(named(all))
}

/// Unique names of the reports: those of the experiments, numbered if repeated.
fn named(reports: Vec<(Report, Option<ExperimentFolder>)>) -> Vec<Source> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let name = |(report, folder): (Report, _)| {
        let number = seen.entry(report.experiment.clone()).or_default();
        *number += 1;
        let name = match *number {
            1 => report.experiment.clone(),
            number => format!("{}@{number}", report.experiment),
        };
        Source {
            name,
            report,
            folder,
        }
    };
    reports.into_iter().map(name).collect()
}

/// What a path is.
enum Kind {
    Report,
    Experiments(Vec<ExperimentFolder>),
    /// The experiment's folder and the run's id.
    Run(PathBuf, String),
}

impl Kind {
    fn of(path: &Path) -> Result<Self, Wrong> {
        if path.is_file() {
            return Ok(Self::Report);
        }
        let experiments = ExperimentFolder::all(path);
        if !experiments.is_empty() {
            return Ok(Self::Experiments(experiments));
        }
        if RunFolder(path.to_owned()).run_toml().exists() {
            let experiment = path.parent().and_then(Path::parent);
            let name = path.file_name().and_then(|name| name.to_str());
            return match (experiment, name) {
                (Some(folder), Some(id)) if folder.join("plan.json").exists() => {
                    Ok(Self::Run(folder.to_owned(), id.to_owned()))
                }
                _ => Err(Wrong::new(
                    format!("`{}` is a run without its experiment", path.display()),
                    "a run is compared if its experiment's `plan.json` is two folders above it; `runner diff` compares two single runs",
                )),
            };
        }
        if let Some(message) = lost_plan(path) {
            return Err(Wrong::new(message, PLAN_REMEDY));
        }
        Err(Wrong::new(
            format!("there is nothing to compare in `{}`", path.display()),
            "use folders of experiments or of runs, such as `results/mnist_sweep`, or a `report.json`",
        ))
    }
}

/// The paths of an argument: itself, or all that match it as a pattern, sorted.
fn expand(text: &str) -> Result<Vec<PathBuf>, Wrong> {
    let path = Path::new(text);
    if path.exists() {
        return Ok(vec![path.to_owned()]);
    }
    if !text.contains(['*', '?']) {
        return Err(Wrong::new(
            format!("there is no `{text}`"),
            "`runner list` shows the runs of a results folder",
        ));
    }
    let mut found = vec![PathBuf::new()];
    for component in path.components() {
        let Component::Normal(name) = component else {
            found.iter_mut().for_each(|path| path.push(component));
            continue;
        };
        let name = name.to_string_lossy();
        found = if !name.contains(['*', '?']) {
            found.into_iter().map(|path| path.join(&*name)).collect()
        } else {
            found
                .iter()
                .flat_map(|path| matching(path, &name))
                .collect()
        };
    }
    found.retain(|path| path.exists());
    if !found.is_empty() {
        Ok(found)
    } else {
        Err(Wrong::new(
            format!("nothing matches `{text}`"),
            "`*` matches any part of a single name; `runner list` shows the existing names",
        ))
    }
}

fn matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let pattern = WildMatch::new(pattern);
    let listed = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let entries = fs::read_dir(listed).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| pattern.matches(name)).collect();
    names.sort();
    names.into_iter().map(|name| folder.join(name)).collect()
}

/// The current report of an experiment, for some of its runs or all.
fn of_folder(folder: &Path, ids: &[String]) -> Result<Report, Wrong> {
    let unreadable = |reason: String, help: &str| {
        let message = format!("cannot read `{}`: {reason}", folder.display());
        Wrong::new(message, help)
    };
    let read = Index::read(&ExperimentFolder(folder.to_owned()));
    let mut index = read
        .map_err(|e| unreadable(plain_io_error(&e), experiment_remedy(&e)))?
        .ok_or_else(|| unreadable("it has no plan".into(), PLAN_REMEDY))?;
    if let Some(missing) = ids
        .iter()
        .find(|id| !index.runs.iter().any(|run| run.id == **id))
    {
        return Err(Wrong::new(
            format!(
                "run `{missing}` is not part of the plan in `{}`",
                folder.display()
            ),
            "it is left over from an earlier plan; `runner diff` compares two single runs",
        ));
    }
    if !ids.is_empty() {
        index.runs.retain(|run| ids.contains(&run.id));
    }
    Ok(of_all_metrics(&index))
}

/// A `report.json`.
fn saved(path: &Path) -> Result<Report, Wrong> {
    let wrong = |reason: String| {
        let message = format!("`{}` is not a saved report: {reason}", path.display());
        Wrong::new(message, "use a `report.json`, or a folder")
    };
    let text = plain_file::read_text(path).map_err(|e| wrong(plain_io_error(&e)))?;
    let report: Report = serde_json::from_str(&text).map_err(|e| wrong(e.to_string()))?;
    check_seal(path, &text, report.format.into()).map_err(|e| {
        let help = "`runner report` on its folder rewrites it; compare folders where possible";
        Wrong::new(e.to_string(), help)
    })?;
    Ok(report)
}
