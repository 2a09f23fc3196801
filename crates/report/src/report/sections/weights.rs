//! Weights and their gradients.

use super::{Section, dash};
use crate::report::model::Report;
use crate::report::norms::ParameterNorms;
use crate::report::numbers::short_number;
use runner_core::diagnostic::counted;
use runner_core::record::weights::{Distribution, ParameterValues};

/// The norms of the gradients of single parameters.
pub fn gradients(report: &Report) -> Option<Section> {
    let norms = report.curves.norms.as_ref()?;
    let row = |of: &ParameterNorms| {
        let known = || of.means.iter().flatten().copied();
        let number = |norm: Option<f64>| norm.map_or_else(dash, short_number);
        vec![
            of.name.clone(),
            number(known().next()),
            number(known().reduce(f64::max)),
            number(known().last()),
        ]
    };
    let head = ["parameter", "first", "largest", "last"].map(str::to_owned);
    let rows = norms.parameters.iter().map(row).collect();
    let more = (norms.num_more > 0).then(|| {
        format!(
            "Omitted: {}; see `metrics.csv` of each run.",
            counted(norms.num_more, "parameter")
        )
    });
    let section = Section::new("gradients", "Gradient norms").intro(format!(
        "Of `{}`, means over the steps of an epoch{}, before clipping.",
        norms.trial,
        match norms.n {
            1 => String::new(),
            n => format!(" and over {n} runs"),
        }
    ));
    Some(section.table(head.to_vec(), rows).notes(more))
}

/// The distributions of the weights.
pub fn weights(report: &Report) -> Option<Section> {
    let of = report.weights.as_ref()?;
    let mean_and_sd = |of: &Distribution| match of.not_finite {
        0 => format!("{} \u{b1} {}", short_number(of.mean), short_number(of.sd)),
        num => format!("{num} not finite"),
    };
    let row = |of: &ParameterValues| {
        let shape: Vec<String> = of.shape.iter().map(usize::to_string).collect();
        let values = of.values.iter().map(mean_and_sd);
        [of.name.clone(), shape.join(" x ")]
            .into_iter()
            .chain(values)
            .collect()
    };
    let rows: Vec<Vec<String>> = of.weights.parameters.iter().map(row).collect();
    if rows.is_empty() {
        return None;
    }
    let saved = of.weights.saved.iter().map(|name| moment(name).to_owned());
    let head = ["parameter", "shape"].map(str::to_owned).into_iter();
    let more = (of.weights.num_more > 0).then(|| {
        format!(
            "Omitted: {} after these in the network.",
            counted(of.weights.num_more, "parameter")
        )
    });
    let section = Section::new("weights", "Weights").intro(format!(
        "Of `{}`: mean and standard deviation of the values of each parameter.",
        of.run
    ));
    Some(section.table(head.chain(saved).collect(), rows).notes(more))
}

/// When weights were saved, as text.
pub fn moment(saved: &str) -> &str {
    match saved {
        "initial" => "before training",
        "best" => "best epoch",
        "final" => "end",
        other => other,
    }
}
