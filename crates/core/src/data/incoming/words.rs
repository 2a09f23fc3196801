//! Errors of the readers in the words of new data: readers are written for the files of an experiment, whose keys do not
//! apply here.

use crate::data::DataError;

/// Marks of a remedy that changes an experiment file.
const OF_SPECS: [&str; 10] = [
    "`[data]`",
    "`[[data",
    "`ignore`",
    "`path`",
    "`target_path`",
    "`target_type`",
    "`missing_values`",
    "`features`",
    "`size`",
    " = ",
];

/// The same error without keys of an experiment file. The flag `--data-type` sets what `type` sets there.
pub(super) fn of_new_data(mut error: DataError) -> DataError {
    error.key = String::new();
    if let Some((what, kind)) = error.message.split_once(", which `type = \"")
        && let Some(kind) = kind.strip_suffix("\"` does not read")
    {
        error.message = format!("{what}, but it is read as `{kind}`");
    }
    let num = error.helps.len();
    for help in &mut error.helps {
        if help.contains("type = \"image_folder\"") {
            "for images, pass `--data-type image`".clone_into(help);
        }
        *help = with_flag(help);
    }
    error
        .helps
        .retain(|help| !OF_SPECS.iter().any(|mark| help.contains(mark)));
    if error.helps.len() < num && error.helps.is_empty() {
        return error.help("write it like the data that the run was trained on");
    }
    error
}

/// A remedy with ``pass `--data-type csv` `` instead of ``set `type = "csv"` ``.
fn with_flag(help: &str) -> String {
    let mut parts = help.split("`type = \"");
    let mut flagged = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        if let Some(before) = flagged.strip_suffix("set ") {
            flagged = format!("{before}pass ");
        }
        let (kind, rest) = part.split_once("\"`").unwrap_or((part, ""));
        flagged.push_str(&format!("`--data-type {kind}`{rest}"));
    }
    flagged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(error: DataError) -> String {
        let error = of_new_data(error);
        format!("{}; {}", error.message, error.helps.join("; "))
    }

    #[test]
    fn remedies_name_flags_instead_of_keys() {
        let error =
            DataError::new("`x` is an npz archive of arrays, which `type = \"npy\"` does not read")
                .key("data.type")
                .help("set `type = \"npz\"`");
        assert_eq!(
            said(error),
            "`x` is an npz archive of arrays, but it is read as `npy`; pass `--data-type npz`"
        );
        let text = "for a table, set `type = \"csv\"`; for one JSON object per line, `type = \"json_lines\"`";
        assert_eq!(
            said(DataError::new("wrong").help(text)),
            "wrong; for a table, pass `--data-type csv`; for one JSON object per line, `--data-type json_lines`"
        );
        let error = DataError::new("`x` has one column")
            .help("set `delimiter = \";\"` if it separates values");
        assert_eq!(
            said(error),
            "`x` has one column; write it like the data that the run was trained on"
        );
        let error = DataError::new("wrong")
            .help("fix it")
            .help("or list it in `ignore`");
        assert_eq!(said(error), "wrong; fix it");
    }
}
