//! Files in memory, with the signatures of `std::fs`. Folders exist as long as there are files in them, and there are no
//! links.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::TryLockError;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::Deref;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

type Files = BTreeMap<PathBuf, Arc<Vec<u8>>>;

/// As a disk would, it belongs to the whole program: its threads read from it.
static FILES: RwLock<Files> = RwLock::new(BTreeMap::new());

fn with<T>(see: impl FnOnce(&Files) -> T) -> T {
    see(&FILES.read().unwrap_or_else(PoisonError::into_inner))
}

fn change<T>(change: impl FnOnce(&mut Files) -> T) -> T {
    change(&mut FILES.write().unwrap_or_else(PoisonError::into_inner))
}

/// Adds a file, or replaces it. Relative paths begin at the root.
pub fn put(path: &Path, bytes: Vec<u8>) {
    change(|files| files.insert(whole(path), Arc::new(bytes)));
}

/// Removes a file, or all files in a folder.
pub fn remove(path: &Path) {
    let path = whole(path);
    change(|files| files.retain(|name, _| !name.starts_with(&path)));
}

/// The paths of all files, with their sizes in bytes.
pub fn list() -> Vec<(PathBuf, u64)> {
    with(|files| {
        let sizes = files
            .iter()
            .map(|(path, bytes)| (path.clone(), bytes.len() as u64));
        sizes.collect()
    })
}

/// The content of the file with a path.
fn find(path: &Path) -> Option<Arc<Vec<u8>>> {
    with(|files| files.get(&whole(path)).cloned())
}

/// From the root, without `.` and `..`.
fn whole(path: &Path) -> PathBuf {
    let mut whole = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => whole.push(name),
            Component::ParentDir => {
                whole.pop();
            }
            _ => {}
        }
    }
    whole
}

/// Whether something is a file or a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileType {
    is_file: bool,
}

impl FileType {
    /// Whether it is a file.
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// Whether it is a folder.
    pub fn is_dir(&self) -> bool {
        !self.is_file
    }

    /// There are no links.
    pub fn is_symlink(&self) -> bool {
        false
    }
}

/// Kind and size.
#[derive(Clone, Copy, Debug)]
pub struct Metadata {
    kind: FileType,
    len: u64,
}

#[expect(clippy::len_without_is_empty, reason = "as that of std::fs")]
impl Metadata {
    /// Whether it is a file.
    pub fn is_file(&self) -> bool {
        self.kind.is_file()
    }

    /// Whether it is a folder.
    pub fn is_dir(&self) -> bool {
        self.kind.is_dir()
    }

    /// Its kind.
    pub fn file_type(&self) -> FileType {
        self.kind
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Files in memory have no times.
    ///
    /// # Errors
    /// Always.
    pub fn modified(&self) -> io::Result<SystemTime> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Kind and size of what is at a path.
///
/// # Errors
/// If there is nothing.
pub fn metadata(path: impl AsRef<Path>) -> io::Result<Metadata> {
    let path = path.as_ref();
    let folder = Metadata {
        kind: FileType { is_file: false },
        len: 0,
    };
    match find(path) {
        Some(bytes) => Ok(Metadata {
            kind: FileType { is_file: true },
            len: bytes.len() as u64,
        }),
        None => read_dir(path).map(|_| folder),
    }
}

/// The path from the root.
///
/// # Errors
/// If there is nothing.
pub fn canonicalize(path: impl AsRef<Path>) -> io::Result<PathBuf> {
    let path = path.as_ref();
    metadata(path).map(|_| whole(path))
}

/// An entry of a folder.
#[derive(Clone, Debug)]
pub struct DirEntry {
    path: PathBuf,
    kind: FileType,
}

impl DirEntry {
    /// Where it is.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Its name.
    pub fn file_name(&self) -> OsString {
        self.path.file_name().unwrap_or_default().to_owned()
    }

    /// Its kind.
    ///
    /// # Errors
    /// None here.
    pub fn file_type(&self) -> io::Result<FileType> {
        Ok(self.kind)
    }
}

/// The entries of a folder.
///
/// # Errors
/// If there is none. The root is always there.
pub fn read_dir(folder: impl AsRef<Path>) -> io::Result<std::vec::IntoIter<io::Result<DirEntry>>> {
    let folder = folder.as_ref();
    let folder = whole(folder);
    let mut seen = BTreeSet::new();
    with(|files| {
        for name in files.keys() {
            let Ok(inside) = name.strip_prefix(&folder) else {
                continue;
            };
            let mut parts = inside.components();
            if let Some(first) = parts.next() {
                seen.insert((folder.join(first), parts.next().is_none()));
            }
        }
    });
    if seen.is_empty() && folder != Path::new("/") {
        return Err(io::ErrorKind::NotFound.into());
    }
    let entries: Vec<_> = seen
        .into_iter()
        .map(|(path, is_file)| {
            let kind = FileType { is_file };
            Ok(DirEntry { path, kind })
        })
        .collect();
    Ok(entries.into_iter())
}

/// A file that is read.
#[derive(Debug)]
pub struct File(Cursor<Map>);

impl File {
    /// Nobody else has it.
    ///
    /// # Errors
    /// None here.
    pub fn try_lock_shared(&self) -> Result<(), TryLockError> {
        Ok(())
    }

    /// Its kind and size.
    ///
    /// # Errors
    /// None here.
    pub fn metadata(&self) -> io::Result<Metadata> {
        Ok(Metadata {
            kind: FileType { is_file: true },
            len: self.0.get_ref().len() as u64,
        })
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Seek for File {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

/// Opens a file.
///
/// # Errors
/// If there is none.
pub fn open(path: impl AsRef<Path>) -> io::Result<File> {
    let bytes = find(path.as_ref()).ok_or(io::ErrorKind::NotFound)?;
    Ok(File(Cursor::new(Map(bytes))))
}

/// The content of a file.
#[derive(Clone, Debug)]
pub struct Map(Arc<Vec<u8>>);

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl AsRef<[u8]> for Map {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The content of a file.
///
/// # Errors
/// None here.
///
/// # Safety
/// None is needed here; a file of the system may change while it is mapped.
pub unsafe fn map(file: &File) -> io::Result<Map> {
    Ok(file.0.get_ref().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_what_files_are_in() {
        put(Path::new("a/b/c.csv"), vec![1, 2, 3]);
        put(Path::new("/a/d.csv"), vec![4]);
        assert!(metadata(Path::new("a/b")).unwrap().is_dir());
        assert_eq!(metadata(Path::new("/a/./b/c.csv")).unwrap().len(), 3);
        // Items are decoded in several threads.
        let elsewhere = std::thread::spawn(|| metadata("a/d.csv").unwrap().len());
        assert_eq!(elsewhere.join().unwrap(), 1);
        assert_eq!(
            canonicalize(Path::new("a/b/../d.csv")).unwrap(),
            Path::new("/a/d.csv")
        );
        let names = |path: &str| {
            let entries = read_dir(Path::new(path)).unwrap().flatten();
            let shown = entries.map(|of| (of.file_name(), of.file_type().unwrap().is_file()));
            shown.collect::<Vec<_>>()
        };
        assert_eq!(names("/"), [("a".into(), false)]);
        assert_eq!(list()[0], ("/a/b/c.csv".into(), 3));
        assert_eq!(names("/a"), [("b".into(), false), ("d.csv".into(), true)]);
        let mut file = open(Path::new("a/b/c.csv")).unwrap();
        file.seek(SeekFrom::Start(1)).unwrap();
        let mut rest = Vec::new();
        file.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, [2, 3]);
        // SAFETY: it is in memory.
        assert_eq!(*unsafe { map(&file) }.unwrap(), [1, 2, 3]);
        // A name that begins like another is another.
        put(Path::new("ab"), Vec::new());
        remove(Path::new("a"));
        assert_eq!(names("/"), [("ab".into(), true)]);
        for gone in ["a", "a/b", "a/b/c.csv"] {
            let error = metadata(Path::new(gone)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
        }
        assert!(open(Path::new("/")).is_err());
    }
}
