//! Mistakes that are injected into one layer of a device, for tests.

use std::fmt;
use std::str::FromStr;

use crate::train::fault::{Fault, FaultKind, Phase};
use runner_core::check::network::Layer as LayerPlan;
use runner_core::diagnostic::Reason;
use runner_network::tensor::{DynTensor, map_rank};

/// The kind of mistake.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    /// The output is a thousandth too large.
    Output,
    /// The gradient is a thousandth too large, and the output correct.
    Gradient,
    /// It never finishes.
    Fault(FaultKind),
}

/// Every mistake by its name.
const MISTAKES: [(&str, Mistake); 4] = [
    ("output", Mistake::Output),
    ("gradient", Mistake::Gradient),
    ("panic", Mistake::Fault(FaultKind::Panic)),
    ("kill", Mistake::Fault(FaultKind::Kill)),
];

/// A mistake in a layer, written `LAYER@STEP=MISTAKE`: a layer's name or type, the first affected step, and a mistake
/// of output, gradient, panic, kill.
#[derive(Clone, Debug, PartialEq)]
pub struct WrongLayer {
    layer: String,
    step: usize,
    mistake: Mistake,
}

impl WrongLayer {
    /// The output with the mistake, if this is the layer and the step.
    pub fn apply(&self, step: usize, plan: &LayerPlan, output: DynTensor) -> DynTensor {
        let is_it = plan.name == self.layer || plan.kind.type_name() == self.layer;
        if !is_it || step < self.step {
            return output;
        }
        match self.mistake {
            Mistake::Output => map_rank!(output, t => t * 1.001),
            Mistake::Gradient => map_rank!(output, t => {
                let more = t.clone() * 0.001;
                t + (more.clone() - more.detach())
            }),
            Mistake::Fault(kind) => {
                let phase = Phase::Training(step);
                Fault::reach(Some(&Fault { phase, kind }), phase);
                output
            }
        }
    }
}

impl fmt::Display for WrongLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mistake = MISTAKES
            .iter()
            .find(|(_, mistake)| *mistake == self.mistake);
        let mistake = mistake.map_or("", |(name, _)| name);
        write!(f, "{}@{}={mistake}", self.layer, self.step)
    }
}

impl FromStr for WrongLayer {
    type Err = Reason;

    fn from_str(text: &str) -> Result<Self, Reason> {
        let parsed = text.rsplit_once('@').and_then(|(layer, rest)| {
            let (step, mistake) = rest.split_once('=')?;
            let (_, mistake) = *MISTAKES.iter().find(|(name, _)| *name == mistake)?;
            Some(Self {
                layer: layer.to_owned(),
                step: step.parse().ok()?,
                mistake,
            })
        });
        parsed.ok_or_else(|| {
            Reason(format!("invalid mistake `{text}`: use `LAYER@STEP=MISTAKE` with a mistake of output, gradient, panic, kill"))
        })
    }
}
