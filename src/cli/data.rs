//! `runner data`: the data of a run, as numbers, as text, and as a sheet of images.

use serde_json::json;

use super::output::Output;
use super::tell::Teller;
use super::{DataArgs, OK};
use crate::ops::{self, DataOptions};
use runner_core::data::Loaded;
use runner_core::data::profile::pictures;
use runner_core::data::serve::{Moment, Split};
use runner_core::diagnostic::Diagnostic;
use runner_core::record::write_whole;
use runner_core::show::plain_io_error;
use runner_report::console::Mode;
use runner_report::sheet::{self, Section};

/// Images of each split on a sheet.
const PICTURES: usize = 24;

/// `runner data`
pub fn data(args: &DataArgs, output: &mut Output) -> u8 {
    let options = DataOptions::new(args.spec.experiment());
    let teller = Teller::new(Mode::Normal);
    let data = match ops::data(&options, &|progress| teller.tell(progress)) {
        Ok(data) => data,
        Err(error) => return output.fail(&error),
    };
    drop(teller);
    let several = data.sets.len() > 1;
    let mut sections = Vec::new();
    for (at, set) in data.sets.iter().enumerate() {
        let loaded = match set.load() {
            Ok(loaded) => loaded,
            Err(error) => return output.fail(&error),
        };
        let (trials, profile) = (&set.trials, set.profile(&loaded));
        if args.json {
            let object = json!({ "trials": trials, "data": profile });
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
            output.print(&profile.show(Output::width()));
        }
        let of = if several {
            format!(", trial {}", trials[0])
        } else {
            String::new()
        };
        if args.html.is_some() {
            sections.extend(sections_of(&loaded, set.seed, &of));
        }
    }
    let Some(path) = &args.html else { return OK };
    if sections.is_empty() {
        let error = Diagnostic::error(
            "usage",
            "there are no images to show: the items have other shapes",
        );
        return output.refuse(error.help("remove `--html`"));
    }
    let page = sheet::sheet(&data.experiment, &sections);
    if let Err(error) = write_whole(path, page.as_bytes()) {
        let reason = plain_io_error(&error);
        let error = Diagnostic::error(
            "unwritable",
            format!("cannot write `{}`: {reason}", path.display()),
        );
        return output.refuse(error.help("use a file in a folder that you can write to"));
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
