//! Names, sizes, durations and errors of the system, in words.

use std::fmt::Display;
use std::io;
use std::time::Duration;

/// Names as in `` `a`, `b` ``.
pub fn listed(names: impl IntoIterator<Item = impl Display>) -> String {
    let names = names.into_iter().map(|name| format!("`{name}`"));
    names.collect::<Vec<_>>().join(", ")
}

/// A number of bytes in a suitable unit, such as `6.4 MiB`.
pub fn show_bytes(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = "B";
    for larger in units {
        if value < 1024.0 {
            break;
        }
        (value, unit) = (value / 1024.0, larger);
    }
    match unit {
        "B" => format!("{bytes} B"),
        _ => format!("{value:.1} {unit}"),
    }
}

/// A duration in its usual form: `1h 30m`.
pub fn show_duration(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

/// What helps when a file or folder cannot be written.
pub fn write_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
            "choose a path that you may write to"
        }
        _ => "free some space, or choose another path",
    }
}

/// An operating-system error without the number that `std` appends.
pub fn plain_io_error(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((reason, _)) => reason.to_lowercase(),
        None => text,
    }
}
