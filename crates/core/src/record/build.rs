//! The build of the running program. Reading its file takes 50 to 90 ms, so its digest is kept in the cache while the
//! file's stamp proves that it did not change; a worker receives the digest from its runner, and accepts it only for the
//! very same file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::event::Build;
use crate::spec::own;

/// Features that change the compiled code.
const FEATURES: [(&str, bool); 8] = [
    ("flex", cfg!(feature = "flex")),
    ("wgpu", cfg!(feature = "wgpu")),
    ("vulkan", cfg!(feature = "vulkan")),
    ("metal", cfg!(feature = "metal")),
    ("cuda", cfg!(feature = "cuda")),
    ("rocm", cfg!(feature = "rocm")),
    ("cpu", cfg!(feature = "cpu")),
    ("parquet", cfg!(feature = "parquet")),
];

static SHA256: OnceLock<Option<String>> = OnceLock::new();

/// The file of the program, where this process runs another one.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Makes the build that of the program in a file, for processes that only start it, such as Python. The first call
/// determines it.
pub fn use_program(path: &Path) {
    let _ = PROGRAM.set(path.to_owned());
}

/// The running build; `None` if its file cannot be read.
pub fn this_build() -> Option<Build> {
    let sha256 = SHA256.get_or_init(sha256_of_program);
    let features = FEATURES.iter().filter(|(_, is_in)| *is_in);
    Some(Build {
        version: env!("CARGO_PKG_VERSION").into(),
        sha256: sha256.clone()?,
        program: has_parts().then(name_of_program).flatten(),
        commit: option_env!("RUNNER_COMMIT").map(str::to_owned),
        features: features.map(|(name, _)| (*name).to_owned()).collect(),
    })
}

/// Whether this program has parts that `runner` does not have.
fn has_parts() -> bool {
    own::is_extended()
}

fn name_of_program() -> Option<String> {
    let path = std::env::current_exe().ok()?;
    Some(path.file_stem()?.to_string_lossy().into_owned())
}

/// Starts reading the program's file in the background.
pub fn look_at_this_build() {
    std::thread::spawn(this_build);
}

/// What a worker receives from its parent: the digest, and the file that it belongs to.
pub fn known_build() -> Option<String> {
    Some(format!("{}@{}", this_build()?.sha256, file_of_program()?))
}

/// Adopts a digest from [`known_build`] if it belongs to the file that this process runs: the file may have been
/// replaced since the runner started.
pub fn take_known_build(known: &str) {
    if let Some((sha256, file)) = known.split_once('@')
        && sha256.len() == 64
        && file_of_program().as_deref() == Some(file)
    {
        let _ = SHA256.set(Some(sha256.to_owned()));
    }
}

/// On Linux, the running file, even if its name now belongs to another.
fn program() -> io::Result<PathBuf> {
    if let Some(path) = PROGRAM.get() {
        Ok(path.clone())
    } else if cfg!(target_os = "linux") {
        Ok("/proc/self/exe".into())
    } else {
        std::env::current_exe()
    }
}

fn sha256_of_program() -> Option<String> {
    let program = program().ok()?;
    #[cfg(feature = "native")]
    let digest = crate::data::program_digest(&program, &super::decoded_folder());
    #[cfg(not(feature = "native"))]
    let digest = std::fs::File::open(&program).and_then(crate::hash::sha256_of);
    digest.ok()
}

/// Identifies the program's file: a running program cannot be written to, and another file has another inode. `None` if
/// the system has no such numbers.
#[cfg(unix)]
fn file_of_program() -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let it = std::fs::metadata(program().ok()?).ok()?;
    let numbers = [
        it.dev() as i64,
        it.ino() as i64,
        it.len() as i64,
        it.mtime(),
        it.mtime_nsec(),
        it.ctime(),
        it.ctime_nsec(),
    ];
    Some(numbers.map(|number| number.to_string()).join("."))
}

#[cfg(not(unix))]
fn file_of_program() -> Option<String> {
    None
}
