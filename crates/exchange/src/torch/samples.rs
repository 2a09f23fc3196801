//! Layers that take samples, spectra, the largest values, or states of a recurrence.

use super::call::{Call, truth};
use super::helpers::Helper;
use super::{Names, Piece};
use runner_core::check::network::Layer;
use runner_core::check::network::axes::axis_of;
use runner_core::spec::model::fourier::SpectrumPart;
use runner_core::spec::model::grid::{AffineGrid, GridMode, GridPadding, GridSample};
use runner_core::spec::model::layer::LayerKind;

/// The states of a recurrence.
pub fn linear_scan(reverse: bool, names: &Names<'_>) -> Piece {
    let call = Call::new("linear_scan");
    let call = names.inputs.iter().fold(call, Call::arg);
    let call = call.flag("reverse", reverse, false);
    Piece::expression(names, call.end()).with(Helper::LinearScan)
}

/// Spectra, moved values and the largest ones. Axes of a plan do not count the batch, which is axis 0 here.
pub fn along_axes(layer: &Layer, names: &Names<'_>) -> Piece {
    let x = names.input();
    let rank = layer.inputs[0].shape.dims.len();
    let axis = |axis: i64| 1 + axis_of(axis, rank);
    match &layer.kind {
        LayerKind::Fourier(fourier) => {
            let axes: Vec<String> = fourier
                .axes
                .iter()
                .map(|at| axis(*at).to_string())
                .collect();
            // A comma makes a tuple of one axis.
            let dim = format!("({},)", axes.join(", "));
            let call = Call::new("torch.fft.fftn").arg(x).named("dim", dim).end();
            let text = match fourier.part {
                SpectrumPart::Real => format!("{call}.real"),
                SpectrumPart::Imaginary => format!("{call}.imag"),
                SpectrumPart::Power => format!("torch.view_as_real({call}).square().sum(-1)"),
            };
            Piece::expression(names, text)
        }
        LayerKind::TopK { k, fill } => {
            let call = Call::new("top_k").arg(x).arg(k).arg(format!("{fill:?}"));
            Piece::expression(names, call.end()).with(Helper::TopK)
        }
        LayerKind::Roll { axis: at, shift } => {
            Piece::expression(names, format!("{x}.roll({shift}, {})", axis(*at)))
        }
        _ => Piece::expression(names, x),
    }
}

/// Samples of an image.
pub fn grid_sample(settings: &GridSample, names: &Names<'_>) -> Piece {
    let call = Call::new("F.grid_sample");
    let call = names.inputs.iter().fold(call, Call::arg);
    let call = match settings.mode {
        GridMode::Linear => call,
        GridMode::Nearest => call.named("mode", "\"nearest\""),
    };
    let call = match settings.padding {
        GridPadding::Zeros => call,
        GridPadding::Border => call.named("padding_mode", "\"border\""),
    };
    // PyTorch warns if it is not there.
    let call = call.named("align_corners", truth(settings.align_corners));
    Piece::expression(names, call.end())
}

/// The grid of an affine map.
pub fn affine_grid(settings: &AffineGrid, names: &Names<'_>) -> Piece {
    let x = names.input();
    let [height, width] = [settings.output_size[0], settings.output_size[1]];
    let identity = if settings.add_identity {
        format!(" + torch.eye(2, 3, dtype={x}.dtype, device={x}.device)")
    } else {
        String::new()
    };
    let call = Call::new("F.affine_grid").arg(format!("{x}.reshape(-1, 2, 3){identity}"));
    let call = call.arg(format!("(len({x}), 1, {height}, {width})"));
    let call = call.named("align_corners", truth(settings.align_corners));
    Piece::expression(names, call.end())
}
