//! The content of a folder: a single walk, so that the files read and the files in the data's digest are the same.
//!
//! Links to files and folders are followed, and their content has the link's name. A link to a folder that contains it
//! would never end, and is refused.

use std::path::{Path, PathBuf};

use super::unreadable;
use crate::data::DataError;
use crate::disk;

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub path: PathBuf,
    /// Its name.
    pub name: String,
    /// Whether it is a folder, or a link to one.
    pub is_folder: bool,
}

/// The entries of a folder by name, except hidden ones.
pub fn entries(folder: &Path) -> Result<Vec<Entry>, DataError> {
    let unreadable = |e| unreadable(folder, &e);
    let mut entries = Vec::new();
    for entry in disk::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path();
        let Ok(name) = entry.file_name().into_string() else {
            return Err(
                DataError::new(format!("the name of `{}` is not UTF-8", path.display()))
                    .help("rename it"),
            );
        };
        if name.starts_with('.') {
            continue;
        }
        let is_folder = match entry.file_type() {
            Ok(kind) if kind.is_symlink() => disk::is_dir(&path),
            Ok(kind) => kind.is_dir(),
            Err(_) => false,
        };
        entries.push(Entry {
            path,
            name,
            is_folder,
        });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// Visits everything below a folder that is not a folder, by name in each folder. The content of the folders `without`
/// is skipped, however it is reached.
pub fn walk(
    folder: &Path,
    without: &[&Path],
    see: &mut dyn FnMut(PathBuf),
) -> Result<(), DataError> {
    let real = canonical(folder)?;
    walk_into(folder, without, &mut vec![real], see)
}

fn walk_into(
    folder: &Path,
    without: &[&Path],
    above: &mut Vec<PathBuf>,
    see: &mut dyn FnMut(PathBuf),
) -> Result<(), DataError> {
    for entry in entries(folder)? {
        if !entry.is_folder {
            see(entry.path);
            continue;
        }
        let real = canonical(&entry.path)?;
        if without.contains(&entry.path.as_path()) || without.contains(&real.as_path()) {
            continue;
        }
        if above.contains(&real) {
            return Err(DataError::new(format!(
                "`{}` is a link to a folder that contains it",
                entry.path.display()
            ))
            .help("remove the link"));
        }
        above.push(real);
        walk_into(&entry.path, without, above, see)?;
        above.pop();
    }
    Ok(())
}

fn canonical(folder: &Path) -> Result<PathBuf, DataError> {
    disk::canonicalize(folder).map_err(|e| unreadable(folder, &e))
}
