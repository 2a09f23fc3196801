//! Digests of what a training saved.

use std::path::Path;

use super::saved::Saved;
use runner_core::diagnostic::Reason;
use runner_core::record::OPTIMIZER;
use runner_network::digest::digest;
use runner_network::paths::Paths;

/// Path and digest of each tensor of a saved optimizer's state, such as `optimizer/hidden.weight/moment_1`; independent
/// of the ids that Burn assigns to parameters.
pub fn optimizer_digests(path: &Path, paths: &Paths) -> Result<Vec<(String, String)>, Reason> {
    let saved = Saved::read(path)?;
    let mut digests = Vec::new();
    for (name, data) in &saved.tensors {
        let (id, field) = name.split_once('.').unwrap_or((name, ""));
        let parameter = saved.metadata.get(id).map_or(id, String::as_str);
        let path = format!("{OPTIMIZER}{}/{field}", paths.of(parameter));
        digests.push((path, digest(data)));
    }
    digests.sort();
    Ok(digests)
}
