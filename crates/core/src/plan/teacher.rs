//! The teacher of a training with `[strategy] type = "distill"`: the network of another run.

use serde::{Deserialize, Serialize};

use super::RunPlan;
use super::init::InitPlan;
use crate::check::distill::incomparable;
use crate::check::network::Network;
use crate::check::network::portable::{Missing, missing};
use crate::data::{DataError, DataPlan, Transforms};
use crate::diagnostic::counted;
use crate::spec::backend::Arithmetic;
use crate::spec::section::Choice;
use crate::spec::strategy::StrategySpec;
use crate::spec::task::TaskKind;

/// The teacher of a run, fully resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TeacherPlan {
    /// Where its weights are, all of which are loaded.
    pub weights: InitPlan,
    /// Its network, without adapters: they are part of the weights.
    pub network: Network,
    /// What the user should know about it.
    #[serde(skip)]
    pub warning: Option<String>,
}

/// What a teacher has to fit.
#[derive(Clone, Copy, Debug)]
pub struct Student<'a> {
    /// The name of its experiment.
    pub experiment: &'a str,
    /// The data of each of its runs.
    pub data: &'a [DataPlan],
    /// The task.
    pub task: TaskKind,
    /// The shape of its output for an item.
    pub output: &'a [usize],
    /// How its sums are rounded.
    pub arithmetic: Arithmetic,
}

/// Loads the items of a plan, only for their transforms.
pub type Transformed<'a> = &'a dyn Fn(&DataPlan) -> Result<Transforms, DataError>;

impl Student<'_> {
    /// Refuses the run of a teacher that cannot teach it. Returns what the user should know.
    ///
    /// # Errors
    /// The reason.
    pub fn accepts(
        &self,
        teacher: &RunPlan,
        theirs: &Transforms,
        transformed: Transformed<'_>,
    ) -> Result<Option<String>, DataError> {
        if let Some(reason) = teacher.unusable_part() {
            return Err(DataError::new(format!(
                "the teacher's network cannot be computed: {reason}"
            )));
        }
        self.shares_task(teacher)?;
        self.can_round(teacher)?;
        let mut warning = None;
        for data in self.data {
            self.shares_shapes(data, teacher)?;
            if data.is_prepared_like(&teacher.data) {
                continue;
            }
            let ours = transformed(data)?;
            same_transforms(&ours, theirs)?;
            if data.digest == teacher.data.digest && data.split != teacher.data.split {
                warning = Some(format!(
                    "the teacher was trained with another split of the same data ({}; here {}), so it may have learned items that validate or test its student",
                    teacher.data.split.show(),
                    data.split.show()
                ));
            }
        }
        Ok(warning)
    }

    fn shares_task(&self, teacher: &RunPlan) -> Result<(), DataError> {
        let theirs = teacher.task.kind;
        if theirs != self.task {
            return Err(DataError::new(format!(
                "the teacher's task is `{}`, but this one is `{}`",
                theirs.name(),
                self.task.name()
            ))
            .help("use a teacher for the same task"));
        }
        match incomparable(self.task, &teacher.loss) {
            None => Ok(()),
            Some(what) => Err(DataError::new(format!(
                "the teacher was trained with the loss `{}`, which {what}",
                teacher.loss.function.name()
            ))
            .help("use a teacher with another loss")),
        }
    }

    /// Portable arithmetic has not all layers.
    fn can_round(&self, teacher: &RunPlan) -> Result<(), DataError> {
        let mut layers = teacher.network.layers.iter();
        let missing = layers.find(|layer| match missing(&layer.kind) {
            // Its weights are not drawn here.
            None | Some(Missing::Initializer) => false,
            Some(Missing::Own | Missing::Layer) => true,
        });
        match missing.filter(|_| self.arithmetic.is_portable()) {
            None => Ok(()),
            Some(layer) => Err(DataError::new(format!(
                "`backend.arithmetic` is \"portable\", but `{}` of the teacher's network, of type `{}`, is not available with portable arithmetic",
                layer.name,
                layer.kind.type_name()
            ))
            .help("use another teacher, or set `arithmetic = \"fast\"`")),
        }
    }

    fn shares_shapes(&self, data: &DataPlan, teacher: &RunPlan) -> Result<(), DataError> {
        let (ours, theirs) = (&data.input, &teacher.data.input);
        let is_same = (&ours.shape, ours.vocabulary, &ours.parts)
            == (&theirs.shape, theirs.vocabulary, &theirs.parts)
            && ours.graph.is_some() == theirs.graph.is_some();
        if !is_same {
            return Err(DataError::new(format!(
                "the teacher takes items of {}, but those here are of {}",
                theirs.show(),
                ours.show()
            ))
            .help("use a teacher that was trained on such items"));
        }
        let drawn = ours.graph.and_then(|graph| graph.drawn);
        let rounds = teacher.network.num_rounds();
        if drawn.is_some_and(|drawn| drawn.num_rounds != rounds) {
            return Err(DataError::new(format!(
                "the teacher's network has {} of messages one after another, for which no neighbors are drawn here",
                counted(rounds, "layer")
            ))
            .help("use a teacher with as many as `data.graph.neighbors` has numbers, or remove `neighbors`"));
        }
        let theirs = teacher.network.layers.last();
        let theirs = theirs.map_or(&teacher.network.items.dims, |layer| &layer.shape);
        if theirs != self.output {
            return Err(DataError::new(format!(
                "the teacher's output has shape {theirs:?}, but the output here has shape {:?}",
                self.output
            ))
            .note(format!(
                "it was trained for {}; the items here have {}",
                teacher.data.target.show(),
                data.target.show()
            ))
            .help("use a teacher with the same targets"));
        }
        Ok(())
    }
}

/// Refuses transforms with which a teacher would see other numbers, or mean another class by an output.
fn same_transforms(ours: &Transforms, theirs: &Transforms) -> Result<(), DataError> {
    let names = |transforms: &Transforms| transforms.names().target_names();
    let (our_names, their_names) = (names(ours), names(theirs));
    let other = our_names
        .iter()
        .zip(&their_names)
        .position(|(ours, theirs)| ours != theirs);
    if let Some(at) = other {
        return Err(DataError::new(format!(
            "output {at} of the teacher is \"{}\", but here it is \"{}\"",
            their_names[at], our_names[at]
        ))
        .note(format!(
            "the teacher has {}, in order: {}; here: {}",
            counted(their_names.len(), "output"),
            listed(&their_names),
            listed(&our_names)
        ))
        .help("use a teacher with the same names in the same order"));
    }
    let used = |transforms: &Transforms, columns: Vec<usize>| {
        let columns = columns.into_iter();
        let columns = columns.map(|at| transforms.columns[at].clone());
        columns.collect::<Vec<_>>()
    };
    let inputs = |of: &Transforms| (of.input.clone(), used(of, of.inputs()));
    let target = |of: &Transforms| (of.target.clone(), used(of, of.target.columns()));
    let what = if inputs(ours) != inputs(theirs) {
        "items are prepared for it"
    } else if target(ours) != target(theirs) {
        "targets are prepared for it"
    } else {
        return Ok(());
    };
    Err(DataError::new(format!(
        "the teacher would see other numbers: {what} in another way"
    ))
    .note("the scaling of columns, their order, their categories, and vocabularies are those of its train split; its `transforms.json` differs from that of a run here")
    .help("train the teacher with the `[data]` of this file: the same columns, `scale` and `split`"))
}

/// The first names of a list.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown: Vec<String> = names
        .iter()
        .take(SHOWN)
        .map(|n| format!("\"{n}\""))
        .collect();
    let more = if names.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}

impl RunPlan {
    /// The plan with which the teacher of this run is built, if it has one: the teacher's network and weights, and the
    /// device, precision and kernels of the run.
    pub fn of_teacher(&self) -> Option<Self> {
        let teacher = self.teacher.as_ref()?;
        Some(Self {
            network: teacher.network.clone(),
            init: Some(teacher.weights.clone()),
            // They are among its weights.
            constants: Vec::new(),
            losses: Vec::new(),
            strategy: StrategySpec::Standard,
            teacher: None,
            ..self.clone()
        })
    }
}
