//! Outputs of a network besides that of its last layer.

use super::shape::{self, Mismatch};
use super::{Network, masks, refusal};
use crate::check::sequences::first_misread;
use crate::diagnostic::Diagnostic;
use crate::spec::model::layer::LayerKind;
use crate::spec::model::layer_spec::{LayerSpec, Source};

/// An output that a loss uses.
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    /// The index of its layer.
    pub layer: usize,
    /// What it must be.
    pub needs: Needs,
    /// The key that names it, such as `losses[0].output`.
    pub key: String,
}

/// What an output must be.
#[derive(Clone, Debug, PartialEq)]
pub enum Needs {
    /// Of this shape.
    Shape(Vec<usize>),
    /// An even number of values along the last axis.
    Halves,
    /// A mask of this many positions.
    Mask(usize),
    /// A mask of the rows of the output of a layer.
    MaskOf(usize),
    /// Of any shape.
    Anything,
}

/// The shape that each layer takes a missing size from. An error is a layer that has no size, and whose output is not
/// the one that determines it.
pub(super) fn wanted<'a>(
    layers: &[LayerSpec],
    output: &'a [usize],
    heads: &'a [Head],
) -> Result<Vec<&'a [usize]>, Box<Diagnostic>> {
    let mut wanted = vec![output; layers.len()];
    let mut determined = Vec::new();
    determined.extend(if heads.is_empty() {
        layers.iter().rposition(|spec| spec.kind.has_size())
    } else {
        sized_before(layers, layers.len() - 1)
    });
    for head in heads {
        if let (Needs::Shape(shape), Some(at)) = (&head.needs, sized_before(layers, head.layer))
            && !determined.contains(&at)
        {
            determined.push(at);
            wanted[at] = shape;
        }
    }
    let others = layers.iter().enumerate();
    let mut others = others.filter(|(at, _)| !determined.contains(at));
    match others.find_map(|(_, spec)| Some((spec, missing_size(spec)?))) {
        None => Ok(wanted),
        Some((spec, key)) => {
            let message = format!(
                "`{}` has no `{key}`, and only the last layer of its kind can infer it from the task",
                spec.name
            );
            let diagnostic = spec.point(Diagnostic::error("missing-key", message), "type");
            Err(Box::new(diagnostic.help(format!("add `{key} = 64`"))))
        }
    }
}

/// The layer with a size that an output ends with, or that those without a size follow.
fn sized_before(layers: &[LayerSpec], output: usize) -> Option<usize> {
    let mut at = output;
    loop {
        let spec = layers.get(at)?;
        if spec.kind.has_size() {
            return Some(at);
        }
        match spec.inputs.first()? {
            Source::Layer(before) => at = *before,
            Source::Items | Source::Part(_) => return None,
        }
    }
}

/// The key of a size that the file leaves out.
fn missing_size(spec: &LayerSpec) -> Option<&'static str> {
    match &spec.kind {
        _ if spec.weights.is_some() => None,
        LayerKind::Linear {
            out_features: None, ..
        } => Some("out_features"),
        LayerKind::Conv(conv) if conv.out_channels.is_none() => Some("out_channels"),
        LayerKind::ConvTranspose(conv) if conv.out_channels.is_none() => Some("out_channels"),
        _ => None,
    }
}

/// How the output of a layer gets the size of the wanted images or series, if it has another one.
fn resized(network: &Network, at: usize, wanted: &[usize]) -> Option<String> {
    let shape = &network.layers[at].shape;
    let dims = wanted.len().checked_sub(1).filter(|dims| *dims > 0)?;
    let is_smaller = |(now, wanted): (&usize, &usize)| now <= wanted;
    if shape.len() != wanted.len() || shape[1..] == wanted[1..] {
        return None;
    }
    let interpolate = || {
        let size = &wanted[1..];
        format!("add `{{ type = \"interpolate{dims}d\", output_size = {size:?} }}` at the end")
    };
    if !shape[1..].iter().zip(&wanted[1..]).all(is_smaller) {
        return (dims < 3 && shape[0] == wanted[0]).then(interpolate);
    }
    // What convolutions without padding cut off, up to the items.
    let (mut names, mut whole) = (Vec::new(), shape[1..].to_vec());
    let mut next = Some(at);
    while let Some(layer) = next.map(|at| &network.layers[at]) {
        let input = layer.values().first()?;
        if let LayerKind::Conv(conv) = &layer.kind
            && conv.stride.iter().all(|stride| *stride == 1)
            && layer.shape[1..] != input.shape.dims[1..]
        {
            let sizes = input.shape.dims[1..].iter().zip(&layer.shape[1..]);
            let cut = sizes.map(|(before, after)| before.saturating_sub(*after));
            whole
                .iter_mut()
                .zip(cut)
                .for_each(|(size, cut)| *size += cut);
            names.insert(0, format!("`{}`", layer.name));
        }
        next = input.layer;
    }
    if whole == wanted[1..] {
        let names = names.join(", ");
        return Some(format!(
            "set `padding = \"same\"` in {names}: without padding, a convolution outputs less than it takes"
        ));
    }
    (dims < 3).then(|| {
        let interpolate = interpolate();
        format!("{interpolate}, or enlarge it with `conv_transpose{dims}d`")
    })
}

/// Refuses outputs that do not fit.
pub(super) fn fit(
    network: &Network,
    layers: &[LayerSpec],
    output: &[usize],
    heads: &[Head],
) -> Result<(), Box<Diagnostic>> {
    let refuse = |at: usize, mismatch: Mismatch| {
        let inputs = &network.layers[at].inputs;
        Err(refusal(network, &layers[at], inputs, mismatch))
    };
    let wrong = |at: usize, wanted: &[usize], words: (&str, &str)| {
        let shape = &network.layers[at].shape;
        (shape != wanted).then(|| {
            let mut mismatch = shape::wrong_output(&layers[at].kind, shape, wanted, words);
            if let Some(misread) = first_misread(network, false) {
                mismatch.help = format!("{}: {}", misread.message, misread.instead);
            } else if let Some(help) = resized(network, at, wanted) {
                mismatch.help = help;
            }
            mismatch
        })
    };
    for head in heads {
        let shape = &network.layers[head.layer].shape;
        let what = format!("`{}`", head.key);
        let needs = match head.key.strip_suffix(".output") {
            Some("task") | None => "the task".to_owned(),
            Some(term) => format!("`{term}`"),
        };
        let mismatch = match &head.needs {
            Needs::Shape(wanted) => wrong(head.layer, wanted, (&what, &needs)),
            Needs::Halves => (!shape.last().is_some_and(|width| width.is_multiple_of(2)))
                .then(|| shape::no_halves(shape, &what)),
            Needs::Mask(positions) => masks::of_loss(network, head.layer, *positions),
            Needs::MaskOf(output) => {
                let shape = &network.layers[*output].shape;
                let positions = shape.iter().rev().skip(1).product();
                masks::of_loss(network, head.layer, positions)
            }
            Needs::Anything => None,
        };
        if let Some(mismatch) = mismatch {
            return refuse(head.layer, mismatch);
        }
    }
    let Some(last) = layers.len().checked_sub(1) else {
        return Ok(());
    };
    match wrong(last, output, ("the last layer", "the task")) {
        Some(mismatch) => refuse(last, mismatch),
        None => Ok(()),
    }
}
