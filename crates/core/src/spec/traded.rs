//! Numbers of a trial that a search trades off against its objective.

use serde::{Deserialize, Serialize};

use super::kind::Kind;
use super::metric::{Metric, Objective};
use super::section::{Choice, by_name, choices};
use crate::diagnostic::Reason;

/// A further objective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Traded {
    /// A metric of a split.
    Metric(Objective),
    /// What a trial costs.
    Cost(Cost),
}

choices! {
    /// What a trial costs: less is better.
    pub enum Cost {
        Parameters "parameters" "The number of parameters of the network.",
        EpochSecs "epoch_secs" "Seconds of training per epoch.",
        WallSecs "wall_secs" "Seconds of a run.",
        MemoryBytes "memory_bytes" "Peak memory of a run.",
    }
}

impl Traded {
    /// What is accepted, for messages and the schema.
    pub fn kind() -> Kind {
        Kind::Either(
            Box::new(Kind::of_choice::<Cost>()),
            Box::new(Kind::Objective),
        )
    }

    /// Parses the name of a cost or of a metric of a split.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        match by_name::<Cost>(text) {
            Some(cost) => Ok(Self::Cost(cost)),
            None => Objective::parse(text).map(Self::Metric),
        }
    }

    /// As written and recorded.
    pub fn name(self) -> String {
        match self {
            Self::Metric(metric) => metric.name(),
            Self::Cost(cost) => cost.name().to_owned(),
        }
    }

    /// Whether a value is better than another.
    pub fn is_better(self, a: f64, b: f64) -> bool {
        match self {
            Self::Metric(metric) => metric.is_better(a, b),
            Self::Cost(_) => a < b,
        }
    }

    /// Whether it is the loss, which depends on the function that is minimized.
    pub fn is_loss(self) -> bool {
        matches!(self, Self::Metric(metric) if metric.metric == Metric::Loss)
    }
}

impl TryFrom<String> for Traded {
    type Error = Reason;

    fn try_from(text: String) -> Result<Self, Reason> {
        Self::parse(&text).map_err(|help| Reason(format!("`{text}` is not an objective: {help}")))
    }
}

impl From<Traded> for String {
    fn from(traded: Traded) -> Self {
        traded.name()
    }
}
