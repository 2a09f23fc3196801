//! The name of an experiment that does not have one.

use std::path::Path;

use crate::data::sha256_hex;
use crate::spec::portable::is_reserved;

/// The name of an experiment that does not set one.
///
/// ```
/// use runner_core::plan::default_name;
///
/// assert_eq!(default_name("experiments/my flowers.toml".as_ref()), "my_flowers");
/// // Letters that a name cannot have: files whose names differ in them alone are other experiments.
/// assert_eq!(default_name("größe.toml".as_ref()), "gr__e_d353");
/// ```
pub fn default_name(path: &Path) -> String {
    let stem = path.file_stem();
    let stem = stem.map(|stem| stem.to_string_lossy().into_owned());
    folder_name(&stem.unwrap_or_default())
}

/// A file name as a folder name.
fn folder_name(stem: &str) -> String {
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '_'
        }
    };
    let mut name: String = stem.trim_start_matches('.').chars().map(keep).collect();
    if !stem.is_ascii() {
        name += &format!("_{}", &sha256_hex(stem.as_bytes())[..4]);
    }
    let name = name.trim_end_matches('.');
    match name {
        "" => "experiment".into(),
        _ if is_reserved(name) => format!("{name}_"),
        _ => name.to_owned(),
    }
}
