//! Initial weights of a network from a file: `[init]`.
//!
//! [`resolve`] inspects names and shapes while an experiment is planned, and decides which tensor of the file is loaded
//! into each tensor of the network; [`load`] reads the values in the worker, only if the file has not changed.

mod matching;
mod open;
mod order;
mod positions;
#[cfg(feature = "native")]
mod teacher;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use runner_core::check::network::Network;
use runner_core::data::{DataError, Folders, file_digest, sha256_of};
use runner_core::hash::sha256_hex;
#[cfg(feature = "native")]
use runner_core::plan::constant::ConstantPlan;
#[cfg(feature = "native")]
use runner_core::plan::init::Files;
use runner_core::plan::init::{InitPlan, InitRefusal, InitRow, Taken};
#[cfg(feature = "native")]
use runner_core::plan::teacher::{Student, TeacherPlan};
use runner_core::show::plain_io_error;
use runner_core::spec::hub::HubNames;
use runner_core::spec::init::{InitLayout, InitSpec};
#[cfg(feature = "native")]
use runner_core::spec::model::layer::ConstantFile;
use runner_core::spec::plain_file;

#[cfg(feature = "native")]
use crate::constant;
use crate::peft;
use crate::slots;
use crate::tensors::{Dtype, NamedTensor};
pub use matching::is_derived;
pub use open::Opened;
pub(crate) use words::refusal;

/// The files of an experiment. The trials of a sweep usually share one file and one network.
pub struct Finder<'a> {
    folders: &'a Folders,
    digests: BTreeMap<PathBuf, String>,
    last: Option<(InitSpec, Network, InitPlan)>,
    /// The last teacher, with what was asked for.
    #[cfg(feature = "native")]
    teacher: Option<(String, TeacherPlan)>,
}

impl<'a> Finder<'a> {
    /// Files relative to a folder; digests are stored in the cache.
    pub fn new(folders: &'a Folders) -> Self {
        Self {
            folders,
            digests: BTreeMap::new(),
            last: None,
            #[cfg(feature = "native")]
            teacher: None,
        }
    }

    /// The tensors that a network takes from the file of an `[init]`.
    pub fn find(&mut self, spec: &InitSpec, network: &Network) -> Result<InitPlan, InitRefusal> {
        if let Some((known, of, plan)) = &self.last
            && (known, of) == (spec, network)
        {
            return Ok(plan.clone());
        }
        let Self {
            folders, digests, ..
        } = self;
        let mut digest_of = |path: &Path| known_digest(digests, path, folders);
        let plan = resolve(spec, network, &folders.base, &mut digest_of)?;
        self.last = Some((spec.clone(), network.clone(), plan.clone()));
        Ok(plan)
    }
}

/// The digest of a file, which is read once.
fn known_digest(
    digests: &mut BTreeMap<PathBuf, String>,
    path: &Path,
    folders: &Folders,
) -> Result<String, DataError> {
    if let Some(digest) = digests.get(path) {
        return Ok(digest.clone());
    }
    let digest = file_digest(path, &folders.cache)?;
    digests.insert(path.to_owned(), digest.clone());
    Ok(digest)
}

#[cfg(feature = "native")]
impl Files for Finder<'_> {
    fn init(&mut self, spec: &InitSpec, network: &Network) -> Result<InitPlan, InitRefusal> {
        self.find(spec, network)
    }

    fn teacher(&mut self, from: &str, student: &Student<'_>) -> Result<TeacherPlan, InitRefusal> {
        let asked = format!("{from}: {student:?}");
        if let Some((_, teacher)) = self.teacher.iter().find(|(known, _)| *known == asked) {
            return Ok(teacher.clone());
        }
        let Self {
            folders, digests, ..
        } = self;
        let mut digest_of = |path: &Path| known_digest(digests, path, folders);
        let teacher = teacher::teacher(from, student, &folders.base, &mut digest_of)?;
        self.teacher = Some((asked, teacher.clone()));
        Ok(teacher)
    }

    fn constant(
        &mut self,
        file: &ConstantFile,
        shape: &[usize],
    ) -> Result<ConstantPlan, InitRefusal> {
        let Self {
            folders, digests, ..
        } = self;
        let mut digest_of = |path: &Path| known_digest(digests, path, folders);
        constant::resolve(file, shape, &folders.base, &mut digest_of)
    }
}

/// Returns the sha256 of a file, possibly from a cache.
pub type Digest<'a> = &'a mut dyn FnMut(&Path) -> Result<String, DataError>;

/// Decides which tensors a network takes from the file of its `[init]`, whose path is relative to `base`.
pub fn resolve(
    spec: &InitSpec,
    network: &Network,
    base: &Path,
    digest_of: Digest<'_>,
) -> Result<InitPlan, InitRefusal> {
    let path = base.join(&spec.from);
    let path = std::path::absolute(&path).unwrap_or(path);
    let opened = Opened::open(&path, spec.top_level_key.as_deref(), network)
        .map_err(|error| words::refusal("init.from", &error))?;
    let layout = match spec.layout {
        InitLayout::Auto => opened.weights.layout(),
        said => said,
    };
    let matched = matching::matched(spec, network, layout, &opened)?;
    let refuse = |error: DataError| words::refusal("init.from", &error);
    refuse_not_finite(&opened, &matched.taken, &path).map_err(refuse)?;
    if let Some(hub) = &spec.hub {
        refuse_other_head(&opened, &matched, hub, &path).map_err(refuse)?;
    }
    let digest = opened.digest(digest_of).map_err(refuse)?;
    let mut plan = InitPlan {
        path,
        digest,
        layout,
        top_level_key: spec.top_level_key.clone(),
        tensors: matched.taken,
        adapter: None,
        report: matched.report,
    };
    if let Some(folder) = &spec.adapter {
        let folder = base.join(folder);
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        let adapter = peft::resolve(&folder, network, &plan, digest_of);
        let adapter = adapter.map_err(|error| words::refusal("init.adapter", &error))?;
        plan.adapter = Some(adapter);
    }
    Ok(plan)
}

/// Refuses weights that cannot be used to start training.
fn refuse_not_finite(opened: &Opened, taken: &[Taken], path: &Path) -> Result<(), DataError> {
    let wanted: BTreeSet<&str> = taken.iter().map(|taken| taken.from.as_str()).collect();
    opened.weights.read(&wanted, &mut |tensor| {
        let is_finite = match tensor.dtype() {
            Dtype::F64 => tensor.to_f64s().iter().all(|value| value.is_finite()),
            dtype if dtype.is_float() => tensor.to_f32s().iter().all(|value| value.is_finite()),
            _ => true,
        };
        if is_finite {
            return Ok(());
        }
        let (place, name) = (path.display(), tensor.name());
        // Patterns are over the names in the network.
        let taken = taken.iter().find(|taken| taken.from == name);
        let message =
            format!("`{place}` cannot be used: `{name}` has values that are infinite or NaN");
        Err(DataError::new(message).help(format!(
            "use weights of an earlier step, or keep random values with `exclude = '^{}$'`",
            regex::escape(taken.map_or(name, |taken| &taken.name))
        )))
    })
}

/// Refuses the head of a model that the settings call a copy of the table of tokens, if it is another one.
fn refuse_other_head(
    opened: &Opened,
    matched: &matching::Matched,
    hub: &HubNames,
    path: &Path,
) -> Result<(), DataError> {
    const HEAD: &str = "lm_head.weight";
    let is_head = |row: &&InitRow| {
        let theirs = row.theirs.as_ref();
        row.ours.is_none() && theirs.is_some_and(|(name, _)| name == HEAD)
    };
    let table = matched
        .taken
        .iter()
        .find(|taken| taken.name == hub.family.table);
    let (Some(_), Some(table)) = (matched.report.rows.iter().find(is_head), table) else {
        return Ok(());
    };
    let mut found = Vec::new();
    opened
        .weights
        .read(&BTreeSet::from([HEAD, &table.from]), &mut |tensor| {
            found.push((tensor.dtype(), sha256_hex(tensor.bytes())));
            Ok(())
        })?;
    if !matches!(&found[..], [a, b] if a.0 == b.0 && a.1 != b.1) {
        return Ok(());
    }
    let message = format!(
        "`{}` cannot be used: `{HEAD}` differs from the table of tokens, although `tie_word_embeddings` in `config.json` says that they are the same",
        path.display()
    );
    Err(DataError::new(message).help(if hub.family.has_head() {
        "set `\"tie_word_embeddings\": false` in `config.json`, which uses it, or remove it from the file"
    } else {
        "remove it from the file to use the table of tokens in its place"
    }))
}

/// Whether the weights of a plan are still there as it has them.
pub fn is_unchanged(plan: &InitPlan, network: &Network) -> bool {
    let opened = Opened::open(&plan.path, plan.top_level_key.as_deref(), network);
    let digest = opened.and_then(|opened| opened.digest(&mut whole_digest));
    digest.is_ok_and(|digest| digest == plan.digest)
}

/// The tensors that a plan takes, by their paths in the network and in Burn's layout. The file must be the one used for
/// planning.
pub fn load(
    plan: &InitPlan,
    network: &Network,
) -> Result<BTreeMap<String, NamedTensor>, DataError> {
    let opened = Opened::open(&plan.path, plan.top_level_key.as_deref(), network)?;
    let digest = opened.digest(&mut whole_digest)?;
    if digest != plan.digest {
        let message = format!(
            "`{}` has changed since the run was planned",
            plan.path.display()
        );
        return Err(DataError::new(message)
            .help("restore the original file, or plan the run again with `runner run`"));
    }
    let slots: BTreeMap<&str, &Taken> = plan
        .tensors
        .iter()
        .map(|taken| (taken.from.as_str(), taken))
        .collect();
    let wanted: BTreeSet<&str> = slots.keys().copied().collect();
    let shapes = slots::slots(network, plan.layout);
    let mut loaded = BTreeMap::new();
    let mut num = 0;
    opened.weights.read(&wanted, &mut |tensor| {
        num += 1;
        let taken = slots[tensor.name()];
        let tensor = if taken.is_transposed {
            tensor.transposed()
        } else {
            tensor
        };
        // It was matched without its first axes of size 1.
        let tensor = match shapes.get(taken.at) {
            Some(slot) if taken.is_interpolated => positions::interpolated(&tensor, &slot.shape),
            Some(slot) if slot.shape.len() < tensor.shape().len() => {
                let reshaped = tensor.reshaped(slot.shape.clone());
                reshaped.map_err(|e| DataError::new(e.to_string()))?
            }
            _ => tensor,
        };
        for part in slots::to_burn(network, plan.layout, taken.at, tensor)? {
            loaded.insert(part.name().to_owned(), part);
        }
        Ok(())
    })?;
    if num == wanted.len() {
        if let Some(adapter) = &plan.adapter {
            loaded.extend(peft::load(adapter, network, &mut whole_digest)?);
        }
        Ok(loaded)
    } else {
        let message = format!(
            "`{}` lacks tensors that it had when the run was planned",
            plan.path.display()
        );
        Err(DataError::new(message).help("plan the run again with `runner run`"))
    }
}

/// The digest of a file, all of which is read.
pub(crate) fn whole_digest(path: &Path) -> Result<String, DataError> {
    let digest = plain_file::open(path).and_then(|mut file| sha256_of(&mut file));
    digest.map_err(|e| {
        let (place, reason) = (path.display(), plain_io_error(&e));
        DataError::new(format!("`{place}` cannot be read: {reason}"))
    })
}
