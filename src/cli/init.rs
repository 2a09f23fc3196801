//! `runner init`: writes a first experiment file.

use super::output::Output;
use super::tell::Teller;
use super::{InitArgs, OK};
use crate::ops::{self, Init};
use runner_core::diagnostic::Reason;
use runner_core::spec::section::Choice;
use runner_core::spec::task::TaskKind;
use runner_report::console::Mode;

/// A task by its name.
pub fn task(name: &str) -> Result<TaskKind, Reason> {
    let found = TaskKind::ALL.iter().find(|(_, known, _)| *known == name);
    found.map(|(task, _, _)| *task).ok_or_else(|| {
        let names: Vec<_> = TaskKind::ALL.iter().map(|(_, name, _)| *name).collect();
        format!("the tasks are {}", names.join(", ")).into()
    })
}

/// `runner init`
pub fn init(args: &InitArgs, output: &mut Output) -> u8 {
    let options = Init {
        data: args.data.clone(),
        task: args.task,
        out: args.out.clone(),
        force: args.force,
    };
    let teller = Teller::new(Mode::Normal);
    let starter = match ops::init(&options, &|progress| teller.tell(progress)) {
        Ok(starter) => starter,
        Err(error) => return output.fail(&error),
    };
    match &starter.path {
        None => output.print(&starter.text),
        Some(path) => {
            output.say(&format!("wrote {}; next:", path.display()));
            let file = &starter.file;
            output.print(&format!("runner check {file}\nrunner run {file}"));
        }
    }
    OK
}
