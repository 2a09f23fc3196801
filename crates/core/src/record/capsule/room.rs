//! Limits on the unpacked size of a capsule: a few bytes can claim to be terabytes.

use std::path::Path;

use super::CapsuleError;
use crate::show::show_bytes;

/// The default maximum of unpacked bytes.
pub const MAX_BYTES: u64 = 64 << 30;
/// The default maximum ratio of unpacked to packed size: training metrics and images rarely compress to less than half,
/// tables to a tenth.
pub const MAX_RATIO: u64 = 200;
/// Smaller sizes are unpacked whatever the ratio.
const ALWAYS: u64 = 256 << 20;

/// The default maximum of unpacked bytes for a capsule of this size.
pub fn usual_limit(packed: u64) -> u64 {
    packed.saturating_mul(MAX_RATIO).clamp(ALWAYS, MAX_BYTES)
}

/// Refuses to unpack this many bytes from a capsule of this size into a folder: more than allowed, by default or
/// explicitly, or more than there is space.
pub(super) fn check(
    total: u64,
    packed: u64,
    allowed: Option<u64>,
    into: &Path,
) -> Result<(), CapsuleError> {
    let most = allowed.unwrap_or_else(|| usual_limit(packed));
    if total > most {
        let message = format!(
            "the capsule contains {}; at most {} are unpacked",
            show_bytes(total),
            show_bytes(most)
        );
        let is_room = free(into).is_none_or(|free| total <= free);
        let help = match allowed {
            None if is_room => format!(
                "if you trust its author, raise the limit: `--max-unpacked {}MiB`",
                total.div_ceil(1 << 20)
            ),
            _ => "raise the limit if you trust its author and have the space".into(),
        };
        let error = CapsuleError::new(message, help);
        return Err(match allowed {
            Some(_) => error,
            None => error.note(format!(
                "it is {} compressed; by default at most {MAX_RATIO} times that is unpacked, but always {} and never more than {}",
                show_bytes(packed),
                show_bytes(ALWAYS),
                show_bytes(MAX_BYTES)
            )),
        });
    }
    match free(into) {
        Some(free) if total > free => {
            let message = format!(
                "the capsule contains {}, but the destination has only {} free",
                show_bytes(total),
                show_bytes(free)
            );
            Err(CapsuleError::new(
                message,
                "free some space, or unpack it on another disk",
            ))
        }
        _ => Ok(()),
    }
}

/// Free bytes for this user on the disk of a folder, if the system reports them.
#[cfg(unix)]
// These fields have 32 bits on some systems.
#[allow(clippy::useless_conversion)]
fn free(folder: &Path) -> Option<u64> {
    use std::os::unix::ffi::OsStrExt;
    let folder = std::fs::canonicalize(folder).ok()?;
    let path = std::ffi::CString::new(folder.as_os_str().as_bytes()).ok()?;
    let mut there = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the path ends with a zero and lives as long as the call, which fills the structure when it returns 0.
    let there = unsafe {
        if libc::statvfs(path.as_ptr(), there.as_mut_ptr()) != 0 {
            return None;
        }
        there.assume_init()
    };
    let blocks = u64::try_from(there.f_bavail).ok()?;
    blocks.checked_mul(u64::try_from(there.f_frsize).ok()?)
}

#[cfg(not(unix))]
fn free(_: &Path) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_unpacked_than_is_usual_allowed_or_free() {
        let here = Path::new(".");
        assert!(check(ALWAYS, 1, None, here).is_ok());
        let bomb = check(8 << 30, 300 << 10, None, here)
            .unwrap_err()
            .to_string();
        for part in ["contains 8", "at most 256", "300", "raise the limit"] {
            assert!(bomb.contains(part), "{bomb}");
        }
        assert!(
            check(ALWAYS + 1, 2 << 20, None, here).is_ok(),
            "a ratio of 128"
        );
        assert!(check(ALWAYS, 1, Some(ALWAYS - 1), here).is_err());
        #[cfg(unix)]
        {
            let free = check(u64::MAX, 1, Some(u64::MAX), here)
                .unwrap_err()
                .to_string();
            assert!(free.contains("free"), "{free}");
        }
    }
}
