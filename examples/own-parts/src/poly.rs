//! A loss of classes: cross-entropy with another first coefficient (Leng et al., 2022).

use burn::tensor::Tensor;
use burn::tensor::activation::log_softmax;
use burn_runner::parts::{Kind, LossPart, LossTargets, Section, TaskKind};
use serde::{Deserialize, Serialize};

/// `-ln p + epsilon (1 - p)`, where p is the probability of the right class.
pub struct Poly;

/// The keys of the loss in an experiment file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    epsilon: f64,
}

impl LossPart for Poly {
    const NAME: &'static str = "poly";
    const DOC: &'static str = "Cross-entropy plus `epsilon` (1 - the probability of the class).";
    const TASKS: &'static [TaskKind] = &[TaskKind::Classification];
    const OF_LOGITS: bool = true;
    type Settings = Settings;

    fn settings(section: &mut Section<'_>) -> Settings {
        let doc = "What is added to the first coefficient of the loss as a polynomial of 1 - p.";
        Settings {
            epsilon: section
                .field("epsilon", Kind::between(-1.0, 100.0), doc)
                .or(1.0),
        }
    }

    fn losses(settings: &Settings, outputs: Tensor<2>, targets: LossTargets) -> Tensor<2> {
        let LossTargets::Classes(classes) = targets else {
            unreachable!("`TASKS` has only classes");
        };
        let logs = log_softmax(outputs, 1).gather(1, classes.unsqueeze_dim(1));
        let wrong = logs.clone().exp().neg().add_scalar(1.0);
        logs.neg() + wrong.mul_scalar(settings.epsilon)
    }
}
