//! Detects the type of new files.

use std::path::Path;

use super::Incoming;
use crate::data::DataError;
use crate::data::encode::InputEncoder;
use crate::data::read::unreadable;
use crate::disk;
use crate::spec::data::{DataKind, Format};
use crate::spec::section::Choice;

/// The type that a name implies, if any.
pub fn kind_of(path: &Path) -> Option<DataKind> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    if name.ends_with("-ubyte") {
        return Some(DataKind::Idx);
    }
    Some(match name.rsplit_once('.')?.1 {
        "csv" | "tsv" | "tab" => DataKind::Csv,
        "jsonl" | "ndjson" | "json" => DataKind::JsonLines,
        "parquet" | "pq" => DataKind::Parquet,
        "npy" => DataKind::Npy,
        "npz" => DataKind::Npz,
        "safetensors" => DataKind::Safetensors,
        "idx" => DataKind::Idx,
        "png" | "jpg" | "jpeg" => DataKind::ImageFolder,
        "txt" | "text" | "md" => DataKind::Text,
        _ => return None,
    })
}

/// The type of new data: as set, as the name implies, or as in the run.
pub(super) fn kind(incoming: &Incoming<'_>) -> Result<DataKind, DataError> {
    let path = incoming.path;
    let metadata = disk::metadata(path).map_err(|e| unreadable(path, &e))?;
    let of_run = incoming.trained_on().map(|files| files.kind());
    let kind = if metadata.is_dir() {
        Some(DataKind::ImageFolder)
    } else {
        incoming.kind.or_else(|| kind_of(path)).or(of_run)
    };
    let kind = kind.unwrap_or(match &incoming.transforms.input {
        InputEncoder::Text { .. } | InputEncoder::Stream { .. } => DataKind::Text,
        _ => DataKind::Csv,
    });
    refuse_unfit(incoming, kind)?;
    Ok(kind)
}

/// Refuses a type that cannot contain the network's items.
fn refuse_unfit(incoming: &Incoming<'_>, kind: DataKind) -> Result<(), DataError> {
    let (name, transforms) = (incoming.name(), incoming.transforms);
    let array = transforms.array();
    let fits = match kind {
        DataKind::Csv | DataKind::JsonLines | DataKind::Parquet => true,
        DataKind::Npz | DataKind::Safetensors if transforms.has_named_inputs() => {
            transforms.is_of_numbers()
        }
        DataKind::Npy | DataKind::Npz | DataKind::Safetensors | DataKind::Idx => array.is_some(),
        DataKind::ImageFolder => {
            array.is_some_and(|(_, column)| matches!(column.shape[..], [1 | 3, _, _]))
        }
        DataKind::Text => matches!(
            transforms.input,
            InputEncoder::Text { .. } | InputEncoder::Stream { .. }
        ),
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let inputs: Vec<String> = transforms
        .inputs()
        .into_iter()
        .take(8)
        .map(|at| format!("`{}`", transforms.columns[at].name))
        .collect();
    let takes = match (&transforms.input, array) {
        (_, Some((_, column))) => format!("arrays of shape {:?}", column.shape),
        (InputEncoder::Features { features, .. }, _) if features.len() > inputs.len() => {
            format!("{} columns: {}, …", features.len(), inputs.join(", "))
        }
        (InputEncoder::Text { .. } | InputEncoder::Stream { .. }, _) => "texts".to_owned(),
        _ => format!("the columns {}", inputs.join(", ")),
    };
    let help = match array {
        Some((_, column)) if matches!(column.shape[..], [1 | 3, _, _]) => {
            "use a `.npy`, `.npz` or `.safetensors` file, images (`.png`, `.jpg`), or a folder of images"
        }
        Some(_) => {
            "use a `.npy`, `.npz` or `.safetensors` file whose first dimension is the items, or a table"
        }
        None if transforms.has_named_inputs() && transforms.is_of_numbers() => {
            "use a `.npz` or `.safetensors` file with an array for each of them, or a table"
        }
        None if takes == "texts" => "use a text file with one text per line, or a table",
        None => "use a table: `.csv`, `.jsonl` or `.parquet`",
    };
    let what = match kind {
        DataKind::ImageFolder => "images".to_owned(),
        kind => format!("`{}`", kind.name()),
    };
    Err(DataError::new(format!(
        "{name} is read as {what}, but the run was trained on {takes}"
    ))
    .help(help))
}

/// The format of a table whose name implies another separator.
pub(super) fn dialect(path: &Path, format: Format) -> Format {
    let name = path.to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    match format {
        Format::Csv {
            header,
            missing_values,
            rows,
            ..
        } if name.ends_with(".tsv") || name.ends_with(".tab") => Format::Csv {
            delimiter: '\t',
            header,
            missing_values,
            rows,
        },
        other => other,
    }
}
