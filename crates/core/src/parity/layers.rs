//! The types of layers, each compared on small networks.

use serde::{Deserialize, Serialize};

use super::Compared;

/// A small network, compared layer by layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// Its number, from 1.
    pub number: usize,
    /// The type of the tested layer.
    pub kind: String,
    /// Its layers as in an experiment file.
    pub layers: String,
    /// Its result.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// The result of an example.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Its layers were computed on both devices.
    Compared {
        /// The tensors.
        compared: Vec<Compared>,
    },
    /// It is random, and random numbers differ between devices.
    Random,
    /// The device could not compute it.
    Failed {
        /// Why, as a phrase.
        reason: String,
    },
}

/// The results of all examples of a type of layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KindRow {
    /// The type.
    pub kind: String,
    /// Its examples.
    pub num_examples: usize,
    /// The tensor of a forward pass that uses the most of its tolerance.
    pub output: Option<Compared>,
    /// The same of the backward pass.
    pub gradient: Option<Compared>,
    /// `agrees`, `differs`, `failed`, `random`, or `not compared` where the reference's own noise is infinite.
    pub verdict: &'static str,
    /// Why examples failed.
    pub reasons: Vec<String>,
}

impl KindRow {
    /// Whether no difference from the reference was found.
    pub fn is_good(&self) -> bool {
        matches!(self.verdict, "agrees" | "random")
    }
}

/// One row for each type of layer, in the order of the examples. A layer in the example of another type counts for its
/// own type.
pub fn by_kind(examples: &[Example]) -> Vec<KindRow> {
    let mut rows: Vec<KindRow> = Vec::new();
    for example in examples {
        if !rows.iter().any(|row| row.kind == example.kind) {
            rows.push(row(&example.kind, examples));
        }
    }
    rows
}

fn row(kind: &str, examples: &[Example]) -> KindRow {
    let of_kind = || examples.iter().filter(|example| example.kind == kind);
    let tensors = examples
        .iter()
        .filter_map(|example| match &example.outcome {
            Outcome::Compared { compared } => Some(compared),
            _ => None,
        });
    let tensors: Vec<&Compared> = tensors
        .flatten()
        .filter(|compared| compared.kind == kind)
        .collect();
    let worst = |is_output: bool| {
        let tensors = tensors
            .iter()
            .filter(|compared| (compared.of == super::Of::Output) == is_output);
        let worst = tensors.max_by(|a, b| a.used().total_cmp(&b.used()));
        worst.map(|compared| (*compared).clone())
    };
    let reasons = of_kind().filter_map(|example| match &example.outcome {
        Outcome::Failed { reason } => Some(format!("{}: {reason}", example.layers)),
        _ => None,
    });
    let reasons: Vec<String> = reasons.collect();
    let verdict = match tensors.iter().any(|compared| compared.is_beyond()) {
        _ if !reasons.is_empty() => "failed",
        true => "differs",
        false if tensors.is_empty() => "random",
        false if tensors.iter().any(|compared| compared.is_lost()) => "not compared",
        false => "agrees",
    };
    KindRow {
        kind: kind.to_owned(),
        num_examples: of_kind().count(),
        output: worst(true),
        gradient: worst(false),
        verdict,
        reasons,
    }
}
