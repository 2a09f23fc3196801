//! The files that an experiment names, found and checked.

use std::iter::Peekable;
use std::path::{Path, PathBuf};

use wildmatch::WildMatch;

use crate::data::DataError;
use crate::data::encode::tokenizer::chat;
use crate::data::known::{Known, Trust};
use crate::data::read::{tables, unreadable};
use crate::diagnostic::nearest;
use crate::disk;
use crate::spec::data::{FilesSpec, Format};
use crate::spec::plain_file;

/// Files with absolute paths and without patterns, relative to `base`.
pub fn resolve(spec: &FilesSpec, base: &Path) -> Result<FilesSpec, DataError> {
    tables::image::check(spec)?;
    let mut files = spec.clone();
    let of_images = matches!(spec.format, Format::ImageFolder { .. });
    let mut columns = image_columns(spec);
    for (key, paths) in lists(&mut files) {
        let folders = key == IMAGES || of_images && !key.starts_with("tokens.");
        let (key, at) = match columns.next_if(|_| key == IMAGES) {
            Some(column) => ("folder", format!("data.columns[{column}].image.folder")),
            None => (key, format!("data.{key}")),
        };
        let mut found = Vec::new();
        for written in paths.iter() {
            let places = expand(&base.join(written), written, key, folders)
                .map_err(|error| error.key(&at))?;
            found.extend(places);
        }
        *paths = found;
    }
    if files.roles.chats().next().is_some() {
        files.tokens.template = template_files(&files)?;
    }
    Ok(files)
}

/// The columns with images, by their positions among those with settings.
fn image_columns(files: &FilesSpec) -> Peekable<impl Iterator<Item = usize>> {
    let columns = files.roles.columns.iter().enumerate();
    let images = columns.filter_map(|(at, column)| column.image.as_ref().map(|_| at));
    images.peekable()
}

/// The files of the template for conversations: the named one and the settings beside it, or those beside the tokenizer.
fn template_files(files: &FilesSpec) -> Result<Vec<String>, DataError> {
    let path = |paths: &[String]| paths.first().map(PathBuf::from);
    let (named, tokenizer) = (path(&files.tokens.template), path(&files.tokens.path));
    let found = chat::files_of(named.as_deref(), tokenizer.as_deref());
    if found.is_empty() {
        let error =
            DataError::new("conversations are written by a chat template, but there is none")
                .key("data.tokens");
        let message = format!(
            "set `template` to a file in Jinja, or `path` to a `tokenizer.json` beside which there is a `{}` or a `{}`",
            chat::TEMPLATE,
            chat::CONFIG
        );
        return Err(error.help(message));
    }
    let found = found.into_iter();
    Ok(found
        .map(|path| path.to_string_lossy().into_owned())
        .collect())
}

/// The key of the folders of images that columns name.
pub(in crate::data) const IMAGES: &str = "columns.image.folder";

/// Every list of paths with its key.
pub(in crate::data) fn lists(files: &mut FilesSpec) -> Vec<(&'static str, &mut Vec<String>)> {
    let mut lists = vec![
        ("path", &mut files.path),
        ("valid_path", &mut files.valid_path),
        ("test_path", &mut files.test_path),
        ("tokens.path", &mut files.tokens.path),
        ("tokens.template", &mut files.tokens.template),
    ];
    if let Format::Npy { targets }
    | Format::Idx { targets }
    | Format::ImageFolder { masks: targets, .. } = &mut files.format
    {
        lists.extend([
            ("target_path", &mut targets.path),
            ("valid_target_path", &mut targets.valid_path),
            ("test_target_path", &mut targets.test_path),
        ]);
    }
    let columns = files.roles.columns.iter_mut();
    let images = columns.filter_map(|column| column.image.as_mut());
    lists.extend(images.map(|image| (IMAGES, &mut image.folder)));
    if let Some(graph) = &mut files.graph {
        lists.push(("graph.edges", &mut graph.edges));
    }
    lists
}

/// The files of a path, sorted by name if it is a pattern.
fn expand(path: &Path, written: &str, key: &str, folders: bool) -> Result<Vec<String>, DataError> {
    let missing = |what: String| {
        let folder = disk::folder_of(path);
        let mut names: Vec<_> = disk::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let error = DataError::new(what).note(format!("searched {}", path.display()));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        match nearest(&name, names.iter().map(String::as_str)) {
            // With the folder as it was written, so that it can be copied.
            Some(near) => match written.rsplit_once('/') {
                Some((folder, _)) => error.help(format!("did you mean `{folder}/{near}`?")),
                None => error.help(format!("did you mean `{near}`?")),
            },
            None => error.help("paths are relative to the folder of the experiment file"),
        }
    };
    let is_pattern = written.contains(['*', '?']);
    let places: Vec<PathBuf> = if is_pattern {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let pattern = WildMatch::new(&name);
        let folder = disk::folder_of(path);
        let entries = disk::read_dir(folder).map_err(|e| unreadable(folder, &e))?;
        let mut places: Vec<_> = entries
            .flatten()
            .filter(|entry| pattern.matches(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
        places.sort();
        if places.is_empty() {
            return Err(missing(format!("no file matches `{written}`")));
        }
        places
    } else if disk::exists(path) {
        vec![path.to_owned()]
    } else {
        return Err(missing(format!("the file `{written}` does not exist")));
    };
    let mut found = Vec::new();
    for place in places {
        let metadata = disk::metadata(&place).map_err(|e| unreadable(&place, &e))?;
        if let (false, Err(what)) = (metadata.is_dir(), plain_file::check(&metadata)) {
            let message = format!("`{written}` cannot be read: {what}");
            return Err(DataError::new(message).help("use a regular file that contains the data"));
        }
        if metadata.is_dir() != folders {
            let (is, wanted) = if folders {
                ("a file", "a folder of images")
            } else {
                ("a folder", "a file")
            };
            let message = format!("`{written}` is {is}, but `{key}` needs {wanted}");
            return Err(DataError::new(message).help(if folders {
                "use the folder that contains the images"
            } else {
                "use a file in it, or a pattern such as `*.csv` for all files of a kind"
            }));
        }
        let whole = disk::canonicalize(&place).map_err(|e| unreadable(&place, &e))?;
        found.push(whole.to_string_lossy().into_owned());
    }
    Ok(found)
}

/// Refuses a file that is listed twice: in two splits, training items would also be evaluated, and within one, its
/// items would count twice.
pub fn refuse_twice(files: &FilesSpec, cache: &Path) -> Result<(), DataError> {
    // A file cannot occur twice in a folder, and reading a large folder takes a while.
    if files.path.len() + files.valid_path.len() + files.test_path.len() < 2 {
        return Ok(());
    }
    let mut known = Known::read(cache, Trust::Stamps);
    let mut seen: Vec<(&str, &String, Vec<String>)> = Vec::new();
    let given = [
        ("path", &files.path),
        ("valid_path", &files.valid_path),
        ("test_path", &files.test_path),
    ];
    for (key, path) in given
        .into_iter()
        .flat_map(|(key, paths)| paths.iter().map(move |p| (key, p)))
    {
        let digests = known.digests(Path::new(path))?;
        let same = |(_, other, others): &&(&str, &String, Vec<String>)| {
            *other == path || !digests.is_empty() && digests == *others
        };
        if let Some((other_key, other, _)) = seen.iter().find(same) {
            let message = match (*other == path, *other_key == key) {
                (true, true) => format!("`{key}` lists `{path}` twice"),
                (true, false) => format!("`{other_key}` and `{key}` both list `{path}`"),
                (false, _) => format!("`{path}` has the same content as `{other}`"),
            };
            let (reason, help) = if *other_key == key {
                ("its items would count twice", "list it once")
            } else {
                (
                    "memorized training items would count as correct predictions",
                    "use separate files for each split, or let the fractions of `[data.split]` split one",
                )
            };
            let error = DataError::new(message).key(format!("data.{key}"));
            return Err(error.note(reason).help(help));
        }
        seen.push((key, path, digests));
    }
    known.write();
    Ok(())
}
