//! Initial weights from a file: which tensor of the file is loaded into each tensor of a network.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::constant::{ConstantPlan, no_constant};
use super::teacher::{Student, TeacherPlan};
use crate::check::network::Network;
use crate::diagnostic::Diagnostic;
use crate::spec::init::{InitLayout, InitSpec};
use crate::spec::model::layer::ConstantFile;

/// The source of a run's initial weights, fully resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InitPlan {
    /// The file, or the folder of a run.
    pub path: PathBuf,
    /// sha256 of the file, or of the weights of the run.
    pub digest: String,
    /// Its names and layouts, which are never `Auto`.
    pub layout: InitLayout,
    /// The key that contains the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_level_key: Option<String>,
    /// The tensors that are loaded, in the network's order.
    pub tensors: Vec<Taken>,
    /// The adapter that is loaded too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<AdapterInit>,
    /// All tensors on either side, for the user.
    #[serde(skip)]
    pub report: InitReport,
}

/// A tensor of the network that is loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Taken {
    /// Its place among the tensors of the network.
    pub at: usize,
    /// Its name in the layout of the file.
    pub name: String,
    /// The name of the tensor in the file.
    pub from: String,
    /// Whether it is a matrix that is transposed first.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_transposed: bool,
    /// Whether it is a table of the positions of patches that is interpolated to another number of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_interpolated: bool,
}

/// The source of the first values of adapters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdapterInit {
    /// The folder.
    pub path: PathBuf,
    /// sha256 of its files.
    pub digest: String,
    /// The matrices of adapters.
    pub matrices: Vec<TakenMatrix>,
    /// Other tensors, in PyTorch's layout.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tensors: Vec<Taken>,
}

/// A matrix of an adapter that is loaded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TakenMatrix {
    /// Its path in the network.
    pub path: String,
    /// The name of the tensor in the file, which is its transpose.
    pub from: String,
}

/// The fate of each tensor of a file and of a network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct InitReport {
    /// In the network's order, followed by unused ones of the file.
    pub rows: Vec<InitRow>,
}

/// A tensor of a network, of a file, or of both.
#[derive(Clone, Debug, PartialEq)]
pub struct InitRow {
    /// Its fate.
    pub fate: InitFate,
    /// Its name in the network with its shape there; if it is unused, the one that `remap` gave it.
    pub ours: Option<(String, Vec<usize>)>,
    /// Its name in the file with its shape there.
    pub theirs: Option<(String, Vec<usize>)>,
}

/// The fate of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InitFate {
    /// It is loaded.
    Matched,
    /// The file lacks it.
    Missing,
    /// Its shape in the file is different.
    Mismatched,
    /// It is not used.
    Unused,
    /// It is excluded by `only` or `exclude`.
    Excluded,
}

impl InitFate {
    /// As shown in tables.
    pub fn name(self) -> &'static str {
        match self {
            InitFate::Matched => "matched",
            InitFate::Missing => "missing",
            InitFate::Mismatched => "mismatched",
            InitFate::Unused => "unused",
            InitFate::Excluded => "excluded",
        }
    }
}

impl InitReport {
    /// The number of tensors with a fate.
    pub fn num(&self, fate: InitFate) -> usize {
        self.rows.iter().filter(|row| row.fate == fate).count()
    }

    /// The number of tensors with each fate, as text: `4 matched, 2 excluded`.
    pub fn counts(&self) -> String {
        use InitFate::{Excluded, Matched, Mismatched, Missing, Unused};
        let fates = [Matched, Missing, Mismatched, Unused, Excluded];
        let counts = fates.into_iter().filter_map(|fate| match self.num(fate) {
            0 if fate != Matched => None,
            num => Some(format!("{num} {}", fate.name())),
        });
        counts.collect::<Vec<_>>().join(", ")
    }
}

/// Weights that cannot be used, with the key of `[init]` that causes it.
#[derive(Debug)]
pub struct InitRefusal {
    /// The key, such as `init.from`.
    pub key: &'static str,
    /// What is wrong, without a place.
    pub diagnostic: Box<Diagnostic>,
}

/// Inspects files of weights.
pub trait Files {
    /// The tensors that a network takes from the file of an `[init]`.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn init(&mut self, spec: &InitSpec, network: &Network) -> Result<InitPlan, InitRefusal>;

    /// The teacher in a run's folder or a capsule.
    ///
    /// # Errors
    /// Why it cannot teach the student.
    fn teacher(&mut self, from: &str, student: &Student<'_>) -> Result<TeacherPlan, InitRefusal>;

    /// The file of a constant of this shape; refusals are at a key of its layer.
    ///
    /// # Errors
    /// Why it cannot be used.
    fn constant(
        &mut self,
        file: &ConstantFile,
        shape: &[usize],
    ) -> Result<ConstantPlan, InitRefusal> {
        no_constant(file, shape)
    }
}

/// The teacher's key.
pub const TEACHER_KEY: &str = "strategy.teacher";

/// A function that knows no teachers.
impl<F: FnMut(&InitSpec, &Network) -> Result<InitPlan, InitRefusal>> Files for F {
    fn init(&mut self, spec: &InitSpec, network: &Network) -> Result<InitPlan, InitRefusal> {
        self(spec, network)
    }

    fn teacher(&mut self, _: &str, _: &Student<'_>) -> Result<TeacherPlan, InitRefusal> {
        let wrong = Diagnostic::error("weights", "a teacher cannot be loaded here");
        Err(InitRefusal {
            key: TEACHER_KEY,
            diagnostic: Box::new(wrong.help("train the file with `runner run`")),
        })
    }
}

/// Inspects files of weights.
pub type FindWeights<'a> = &'a mut dyn Files;

/// Finds no weights; for plans without any.
///
/// # Errors
/// Always.
pub fn no_files(_: &InitSpec, _: &Network) -> Result<InitPlan, InitRefusal> {
    let message = "files of weights are not looked at here";
    Err(InitRefusal {
        key: "init.from",
        diagnostic: Box::new(Diagnostic::error("weights", message)),
    })
}
