//! `runner data`: the data of a run, as numbers, as text, and as a sheet of images.

use serde_json::json;

use super::experiment::{plan as plan_experiment, refuse};
use super::output::Output;
use super::{DataArgs, OK};
use runner_core::data::profile::{Profile, pictures};
use runner_core::data::serve::{Moment, Split};
use runner_core::data::{self, DataPlan, Loaded};
use runner_core::diagnostic::Diagnostic;
use runner_core::record::write_whole;
use runner_core::spec::document::plain_io_error;
use runner_report::sheet::{self, Section};

/// Images of each split on a sheet.
const PICTURES: usize = 24;

/// `runner data`
pub fn data(args: &DataArgs, output: &mut Output) -> u8 {
    let plan = match plan_experiment(&args.spec, None, output) {
        Ok((_, plan)) => plan,
        Err(code) => return code,
    };
    // Trials that do not differ in the data are shown once.
    let mut seen: Vec<(&DataPlan, u64, Vec<&str>)> = Vec::new();
    for run in &plan.runs {
        match seen.iter_mut().find(|(known, ..)| **known == run.data) {
            Some((.., trials)) if trials.last() != Some(&run.trial.as_str()) => {
                trials.push(&run.trial);
            }
            Some(_) => {}
            None => seen.push((&run.data, run.seed, vec![&run.trial])),
        }
    }
    let several = seen.len() > 1;
    let mut sections = Vec::new();
    for (at, (data, seed, trials)) in seen.iter().enumerate() {
        let loaded = match data::load(data, &|_, _| {}) {
            Ok(loaded) => loaded,
            Err(error) => return refuse(error.to_diagnostic(), output),
        };
        if args.json {
            let object = json!({ "trials": trials, "data": Profile::of(data, &loaded) });
            output.print(&object.to_string());
        }
        if at > 0 && !args.json {
            output.print("");
        }
        if several && !args.json {
            let more = match trials.len() {
                1 => String::new(),
                num => format!(" and {} more trials", num - 1),
            };
            output.print(&format!("trial {}{more}", trials[0]));
        }
        if !args.json {
            output.print(&Profile::of(data, &loaded).show(Output::width()));
        }
        let of = if several {
            format!(", trial {}", trials[0])
        } else {
            String::new()
        };
        if args.html.is_some() {
            sections.extend(sections_of(&loaded, *seed, &of));
        }
    }
    let Some(path) = &args.html else { return OK };
    if sections.is_empty() {
        let error = Diagnostic::error(
            "usage",
            "there are no images to show: the items have other shapes",
        );
        return refuse(error.help("remove `--html`"), output);
    }
    let page = sheet::sheet(&plan.experiment, &sections);
    if let Err(error) = write_whole(path, page.as_bytes()) {
        let reason = plain_io_error(&error);
        let error = Diagnostic::error(
            "unwritable",
            format!("cannot write `{}`: {reason}", path.display()),
        );
        return refuse(
            error.help("use a file in a folder that you can write to"),
            output,
        );
    }
    output.say(&format!("wrote {}", path.display()));
    OK
}

/// The images of each split, as in the first epoch of a run with a seed.
fn sections_of(loaded: &Loaded, seed: u64, of: &str) -> Vec<Section> {
    let splits = [
        ("train", Some(&loaded.train)),
        ("valid", Some(&loaded.valid)),
        ("test", loaded.test.as_ref()),
    ];
    let section = |(name, split): (&str, Option<&Split>)| {
        let split = split?;
        let changed = if split.is_augmented() {
            format!(", as changed in epoch 1 of seed {seed}")
        } else {
            String::new()
        };
        Some(Section {
            heading: format!("{name}{changed}{of}"),
            pictures: pictures(split, PICTURES, Moment { seed, epoch: 1 }),
        })
    };
    let sections = splits.into_iter().filter_map(section);
    sections.filter(|s| !s.pictures.is_empty()).collect()
}
