//! `runner new-project`: a program with parts of its own.

use std::path::PathBuf;

use clap::Args;

use super::OK;
use super::output::Output;
use super::tell::Teller;
use crate::ops::{NewProject, new_project};
use runner_report::console::Mode;

#[derive(Args)]
pub struct NewProjectArgs {
    /// The folder, which must be new or empty
    folder: PathBuf,
    /// Where the source of runner is, which is not published on crates.io: the path of a checkout of its repository, or
    /// the repository's address for git
    #[arg(long, value_name = "PATH|URL")]
    runner: Option<String>,
    /// The name of the package; by default that of the folder
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// `runner new-project`
pub fn project(args: &NewProjectArgs, output: &mut Output) -> u8 {
    let asked = NewProject {
        folder: args.folder.clone(),
        name: args.name.clone(),
        runner: args.runner.clone(),
    };
    let teller = Teller::new(Mode::Normal);
    let made = new_project(&asked, &|progress| teller.tell(progress));
    drop(teller);
    match made {
        Ok(project) => {
            for file in &project.files {
                output.print(&args.folder.join(file).display().to_string());
            }
            let folder = args.folder.display();
            output.say(&format!(
                "build and try it with: cd '{folder}' && cargo run --release -- run layer.toml"
            ));
            OK
        }
        Err(error) => output.fail(&error),
    }
}
