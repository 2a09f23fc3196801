//! `runner data`: the data of a run, as numbers, as text, and as a page of images.

use serde_json::json;

use super::output::Output;
use super::tell::Teller;
use super::{DataArgs, OK};
use crate::error::Error;
use crate::ops::{self, DataOptions, DataSet};
use runner_core::data::Loaded;
use runner_report::console::Mode;

/// `runner data`
pub fn data(args: &DataArgs, output: &mut Output) -> u8 {
    match show(args, output) {
        Ok(()) => OK,
        Err(error) => output.fail(&error),
    }
}

fn show(args: &DataArgs, output: &mut Output) -> Result<(), Error> {
    let page = args.html.as_deref();
    let page = page.map(|path| args.spec.destination(path, args.force));
    let page = page.transpose()?;
    let options = DataOptions::new(args.spec.experiment());
    let teller = Teller::new(Mode::Normal);
    let data = ops::data(&options, &|progress| teller.tell(progress))?;
    drop(teller);
    let several = data.sets.len() > 1;
    let mut sections = Vec::new();
    for (at, set) in data.sets.iter().enumerate() {
        let loaded = set.load()?;
        if args.json {
            let object = json!({ "trials": set.trials, "data": set.profile(&loaded) });
            output.print(&object.to_string());
        } else {
            if at > 0 {
                output.print("");
            }
            print(set, &loaded, several, output);
        }
        if args.html.is_some() {
            let mut pictures = set.pictures(&loaded);
            for section in pictures.iter_mut().filter(|_| several) {
                section.heading += &format!(", trial {}", set.trials[0]);
            }
            sections.extend(pictures);
        }
    }
    if let Some(page) = page {
        page.whole(data.page(&sections)?.as_bytes())?;
        output.say(&format!("wrote {}", page.path().display()));
    }
    Ok(())
}

fn print(set: &DataSet, loaded: &Loaded, several: bool, output: &mut Output) {
    if several {
        let more = match set.trials.len() {
            1 => String::new(),
            num => format!(" and {} more trials", num - 1),
        };
        output.print_fitted(&format!("trial {}{more}", set.trials[0]));
    }
    output.print_fitted(&set.profile(loaded).show(Output::width()));
}
