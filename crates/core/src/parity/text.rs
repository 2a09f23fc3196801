//! Comparisons as tables and sentences.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::{Beyond, Compared, FLOORS, KindRow, LITTLE_ULPS, Of, Step, Verdict, tolerance};

/// The format of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// For a terminal.
    Text,
    /// For a Markdown file.
    Markdown,
}

/// The losses of each step, and the number of tensors beyond tolerance.
pub fn step_table(steps: &[Step], style: Style) -> String {
    let mut table = new(
        &[
            "step",
            "loss",
            "difference",
            "ulp",
            "floor",
            "tensors beyond tolerance",
        ],
        style,
        0..5,
    );
    for step in steps {
        let loss = step.compared.iter().find(|tensor| is_loss(tensor));
        let num_beyond = step.compared.iter().filter(|tensor| tensor.is_beyond());
        table.add_row([
            step.step.to_string(),
            format!("{:.6}", step.reference_loss),
            format!("{:+.1e}", step.loss - step.reference_loss),
            loss.map_or(String::new(), |loss| number(loss.error.ulps)),
            loss.map_or(String::new(), |loss| number(loss.floor)),
            format!("{} of {}", num_beyond.count(), step.compared.len()),
        ]);
    }
    table.trim_fmt()
}

/// The mean loss of a step, as one of the tensors.
fn is_loss(tensor: &Compared) -> bool {
    tensor.kind == "loss" && tensor.of == Of::Output && !tensor.by_itself
}

/// For each layer, what uses the most of its tolerance over all steps: its output and gradients in training, and both
/// in isolation.
pub fn tensor_table(steps: &[Step], style: Style) -> String {
    let head = [
        "layer", "type", "tensor", "step", "maximum", "relative", "ulp", "floor", "",
    ];
    let mut table = new(&head, style, 3..8);
    let mut layers: Vec<&str> = Vec::new();
    for tensor in steps.iter().flat_map(|step| &step.compared) {
        if !layers.contains(&tensor.layer.as_str()) {
            layers.push(&tensor.layer);
        }
    }
    for layer in layers {
        for group in [GROUP_OUTPUT, GROUP_GRADIENT, GROUP_WEIGHTS, GROUP_ITSELF] {
            let tensors = steps.iter().flat_map(|step| {
                let of_layer = step.compared.iter().filter(|tensor| tensor.layer == layer);
                of_layer.map(|tensor| (step.step, tensor))
            });
            let tensors = tensors.filter(|(_, tensor)| group_of(tensor) == group);
            // The first of equal ones.
            let worst = tensors.reduce(|worst, next| {
                if next.1.used() > worst.1.used() {
                    next
                } else {
                    worst
                }
            });
            let Some((step, tensor)) = worst else {
                continue;
            };
            let by_itself = if tensor.by_itself { ", isolated" } else { "" };
            table.add_row([
                layer.to_owned(),
                tensor.kind.clone(),
                format!("{}{by_itself}", tensor.what()),
                step.to_string(),
                small(tensor.error.maximum),
                small(tensor.error.relative),
                number(tensor.error.ulps),
                number(tensor.floor),
                if tensor.is_beyond() { "beyond" } else { "" }.to_owned(),
            ]);
        }
    }
    table.trim_fmt()
}

const GROUP_OUTPUT: u8 = 0;
const GROUP_GRADIENT: u8 = 1;
const GROUP_WEIGHTS: u8 = 2;
const GROUP_ITSELF: u8 = 3;

fn group_of(tensor: &Compared) -> u8 {
    match tensor.of {
        _ if tensor.by_itself => GROUP_ITSELF,
        Of::Output => GROUP_OUTPUT,
        Of::Weights => GROUP_WEIGHTS,
        _ => GROUP_GRADIENT,
    }
}

/// The types of layers.
pub fn layer_table(rows: &[KindRow], style: Style) -> String {
    let head = [
        "type",
        "output: maximum",
        "ulp",
        "floor",
        "gradients: maximum",
        "ulp",
        "floor",
        "verdict",
    ];
    let mut table = new(&head, style, 1..7);
    for row in rows {
        let mut cells = vec![row.kind.clone()];
        for tensor in [&row.output, &row.gradient] {
            match tensor {
                Some(tensor) => cells.extend([
                    small(tensor.error.maximum),
                    number(tensor.error.ulps),
                    number(tensor.floor),
                ]),
                None => cells.extend(["-", "-", "-"].map(str::to_owned)),
            }
        }
        cells.push(row.verdict.to_owned());
        table.add_row(cells);
    }
    table.trim_fmt()
}

/// The verdict in sentences; `device` was compared with `reference`.
pub fn show_verdict(verdict: &Verdict, reference: &str, device: &str) -> String {
    match verdict {
        Verdict::Agrees => format!(
            "verdict: agrees: no tensor of {device} differs from {reference} by more than the tolerance, {FLOORS} times the effect of a different summation order on {reference}"
        ),
        Verdict::NotCompared { first } => format!(
            "verdict: not compared\nfirst that cannot be compared: {}\nthe noise of {reference} is infinite there: its numbers are not finite, or become so in another summation order",
            place(first)
        ),
        Verdict::Failed { reason } => format!("verdict: failed: {reason}"),
        Verdict::Drifts { first } => format!(
            "verdict: drifts\nfirst beyond tolerance: {}\nno isolated layer is beyond tolerance, so the difference accumulated, or the update differs",
            place(first)
        ),
        Verdict::Differs { first, wrong } => {
            let mut text = "verdict: differs".to_owned();
            if let Some(first) = first {
                text += &format!("\nfirst beyond tolerance: {}", place(first));
            }
            for wrong in wrong {
                text += &format!("\nwrong in isolation: {}", place(wrong));
            }
            text
        }
    }
}

/// The tensors whose tolerance is so wide that being within it says little; none if there are none.
pub fn show_untold(steps: &[Step], reference: &str) -> Option<String> {
    let mut untold: Vec<String> = Vec::new();
    for compared in steps.iter().flat_map(|step| &step.compared) {
        let place = format!("{} of `{}`", compared.what(), compared.layer);
        if tolerance(compared.floor) >= LITTLE_ULPS && !untold.contains(&place) {
            untold.push(place);
        }
    }
    (!untold.is_empty()).then(|| {
        format!(
            "some comparisons are weak, because the noise of {reference} makes the tolerance wider than a sixteenth of the largest value: {}",
            untold.join(", ")
        )
    })
}

fn place(beyond: &Beyond) -> String {
    let tensor = &beyond.compared;
    let layer = match tensor.kind.as_str() {
        "loss" => "the loss".to_owned(),
        kind => format!("layer `{}` ({kind})", tensor.layer),
    };
    format!(
        "step {}, {layer}, {}: {} ulp, tolerance {}",
        beyond.step,
        tensor.what(),
        number(tensor.error.ulps),
        number(tolerance(tensor.floor)),
    )
}

fn new(head: &[&str], style: Style, numbers: std::ops::Range<usize>) -> Table {
    let mut table = Table::new();
    table.load_style(match style {
        Style::Text => presets::NOTHING,
        Style::Markdown => presets::ASCII_MARKDOWN,
    });
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(head);
    for column in table
        .column_iter_mut()
        .skip(numbers.start)
        .take(numbers.len())
    {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A number of ulp, or of floors.
fn number(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        v if !v.is_finite() => "infinite".into(),
        v if v < 9.95 => format!("{v:.1}"),
        v if v < 1e6 => format!("{v:.0}"),
        v => format!("{v:.1e}"),
    }
}

fn small(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        v if !v.is_finite() => "infinite".into(),
        v => format!("{v:.1e}"),
    }
}
