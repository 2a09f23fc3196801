//! `runner schema`: the JSON Schema of experiment files.

use std::path::Path;

use super::output::Output;
use super::{FAILED, OK, WRONG};
use runner_core::diagnostic::Diagnostic;
use runner_core::record::write_whole;
use runner_core::show::plain_io_error;
use runner_core::spec::schema::experiment_schema;

/// `runner schema`
pub fn schema(path: &Path, output: &mut Output) -> u8 {
    let schema = experiment_schema();
    if path == Path::new("-") {
        output.print(&schema);
        return OK;
    }
    match write_whole(path, schema.as_bytes()) {
        Ok(()) => {
            output.say(&format!("wrote {}", path.display()));
            OK
        }
        Err(e) => {
            let message = format!("cannot write `{}`: {}", path.display(), plain_io_error(&e));
            output.refuse(Diagnostic::error("results", message));
            if e.kind() == std::io::ErrorKind::NotFound {
                WRONG
            } else {
                FAILED
            }
        }
    }
}
