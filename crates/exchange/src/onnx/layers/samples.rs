//! Layers that take samples, spectra, the largest values, or states of a recurrence.

use super::super::{Attribute, Graph};
use super::Scope;
use runner_core::check::network::axes::axis_of;
use runner_core::spec::model::fourier::{Fourier, SpectrumPart};
use runner_core::spec::model::grid::{AffineGrid, GridMode, GridPadding, GridSample, IDENTITY};
use runner_core::spec::section::Choice;

/// A range of an axis.
fn part(graph: &mut Graph, x: &str, axis: i64, from: usize, to: usize) -> String {
    let [from, to, axis] = [from as i64, to as i64, axis].map(|at| graph.integers(&[at]));
    graph.node("Slice", &[x, &from, &to, &axis], &[])
}

fn joined(graph: &mut Graph, parts: &[&str], axis: i64) -> String {
    graph.node("Concat", parts, &[Attribute::Int("axis", axis)])
}

/// The states of a recurrence by a parallel scan: each pass adds to the sums of n steps those of the n steps before.
pub fn linear_scan(scope: &mut Scope<'_>, inputs: &[String], reverse: bool) -> String {
    let length = scope.dims()[0];
    let graph = &mut *scope.graph;
    let [mut factors, mut states] = [inputs[0].clone(), inputs[1].clone()];
    let mut done = 1;
    while done < length {
        // States that have one before them, those before them, and the others.
        let (later, before, first) = if reverse {
            ((0, length - done), (done, length), (length - done, length))
        } else {
            ((done, length), (0, length - done), (0, done))
        };
        let mut of = |x: &str, (from, to)| part(graph, x, 1, from, to);
        let (of_states, of_factors) = (of(&states, before), of(&factors, later));
        let (last_states, first_states) = (of(&states, later), of(&states, first));
        let (before_factors, first_factors) = (of(&factors, before), of(&factors, first));
        let moved = graph.node("Mul", &[&of_factors, &of_states], &[]);
        let moved = graph.node("Add", &[&last_states, &moved], &[]);
        let product = graph.node("Mul", &[&of_factors, &before_factors], &[]);
        let order = |first, later| {
            if reverse {
                [later, first]
            } else {
                [first, later]
            }
        };
        states = joined(graph, &order(first_states.as_str(), moved.as_str()), 1);
        factors = joined(graph, &order(first_factors.as_str(), product.as_str()), 1);
        done *= 2;
    }
    states
}

/// A spectrum, by products with cosines and sines.
pub fn fourier(scope: &mut Scope<'_>, fourier: &Fourier, x: &str) -> String {
    let dims = scope.dims().to_vec();
    let graph = &mut *scope.graph;
    let mut real = Some(x.to_owned());
    let mut imaginary: Option<String> = None;
    for (at, axis) in fourier.axes.iter().enumerate() {
        let axis = axis_of(*axis, dims.len());
        let is_taken = |part| fourier.part == part || fourier.part == SpectrumPart::Power;
        let is_needed = |part| at + 1 < fourier.axes.len() || is_taken(part);
        let waves = Fourier::waves(dims[axis]).map(|values| {
            let values: Vec<f32> = values.into_iter().map(|value| value as f32).collect();
            graph.numbers(&[dims[axis]; 2], &values)
        });
        let mut product = |x: &Option<String>, wave: usize| {
            let x = x.as_ref()?;
            let mut order: Vec<i64> = (0..=dims.len() as i64).collect();
            order.swap(1 + axis, dims.len());
            let moved = graph.transpose(x, &order);
            let product = graph.node("MatMul", &[&moved, &waves[wave]], &[]);
            Some(graph.transpose(&product, &order))
        };
        let [real_cosines, real_sines] = [0, 1].map(|wave| product(&real, wave));
        let [imaginary_cosines, imaginary_sines] = [0, 1].map(|wave| product(&imaginary, wave));
        let next_real = is_needed(SpectrumPart::Real)
            .then(|| both(graph, "Sub", real_cosines, imaginary_sines));
        let next_imaginary = is_needed(SpectrumPart::Imaginary)
            .then(|| both(graph, "Add", real_sines, imaginary_cosines));
        (real, imaginary) = (next_real.flatten(), next_imaginary.flatten());
    }
    let mut square =
        |part: Option<String>| part.map(|part| graph.node("Mul", &[&part, &part], &[]));
    let taken = match fourier.part {
        SpectrumPart::Real => real,
        SpectrumPart::Imaginary => imaginary,
        SpectrumPart::Power => {
            let squares = [square(real), square(imaginary)];
            let [real, imaginary] = squares;
            both(graph, "Add", real, imaginary)
        }
    };
    taken.unwrap_or_default()
}

fn both(graph: &mut Graph, operator: &str, a: Option<String>, b: Option<String>) -> Option<String> {
    match (a, b) {
        (Some(a), Some(b)) => Some(graph.node(operator, &[&a, &b], &[])),
        (a, b) => a.or(b),
    }
}

/// The values of an axis moved in a circle.
pub fn roll(scope: &mut Scope<'_>, axis: i64, shift: i64, x: &str) -> String {
    let axis = axis_of(axis, scope.dims().len());
    let size = scope.dims()[axis];
    let moved = shift.rem_euclid(size as i64) as usize;
    let axis = 1 + axis as i64;
    if moved == 0 {
        return x.to_owned();
    }
    let graph = &mut *scope.graph;
    let last = part(graph, x, axis, size - moved, size);
    let first = part(graph, x, axis, 0, size - moved);
    joined(graph, &[&last, &first], axis)
}

/// The largest values of the last axis, sorted, and their places.
fn sorted(graph: &mut Graph, x: &str, num: usize) -> [String; 2] {
    let num = graph.integers(&[num as i64]);
    let last = [Attribute::Int("axis", -1)];
    graph.nodes("TopK", &[x, &num], [true, true], &last)
}

/// The largest values of the last axis, and a number in the place of the others.
pub fn top_k(scope: &mut Scope<'_>, k: usize, fill: f64, x: &str) -> String {
    let graph = &mut *scope.graph;
    let [_, places] = sorted(graph, x, k);
    let shape = graph.node("Shape", &[x], &[]);
    let zeros = graph.node("ConstantOfShape", &[&shape], &[]);
    let shape = graph.node("Shape", &[&places], &[]);
    let one = graph.number(1.0);
    let ones = graph.node("Expand", &[&one, &shape], &[]);
    let last = [Attribute::Int("axis", -1)];
    let kept = graph.node("ScatterElements", &[&zeros, &places, &ones], &last);
    let (half, fill) = (graph.number(0.5), graph.number(fill));
    let kept = graph.node("Greater", &[&kept, &half], &[]);
    graph.node("Where", &[&kept, x, &fill], &[])
}

/// Values of the last axis, which has `width`, above the largest of all thresholds.
pub fn sparsemax(graph: &mut Graph, x: &str, width: usize) -> String {
    let axes = graph.integers(&[-1]);
    let most = graph.node("ReduceMax", &[x, &axes], &[]);
    let x = graph.node("Sub", &[x, &most], &[]);
    let [values, _] = sorted(graph, &x, width);
    let axis = graph.integer(-1);
    let sums = graph.node("CumSum", &[&values, &axis], &[]);
    let one = graph.number(1.0);
    let places: Vec<f32> = (1..=width).map(|place| place as f32).collect();
    let places = graph.numbers(&[width], &places);
    let beyond = graph.node("Sub", &[&sums, &one], &[]);
    let thresholds = graph.node("Div", &[&beyond, &places], &[]);
    let threshold = graph.node("ReduceMax", &[&thresholds, &axes], &[]);
    let above = graph.node("Sub", &[&x, &threshold], &[]);
    graph.node("Relu", &[&above], &[])
}

/// Samples of an image.
pub fn grid_sample(scope: &mut Scope<'_>, settings: &GridSample, inputs: &[String]) -> String {
    let mode = match settings.mode {
        GridMode::Linear => "bilinear",
        GridMode::Nearest => "nearest",
    };
    let padding = match settings.padding {
        GridPadding::Zeros | GridPadding::Border => settings.padding.name(),
    };
    let settings = [
        Attribute::Text("mode", mode),
        Attribute::Text("padding_mode", padding),
        Attribute::Int("align_corners", i64::from(settings.align_corners)),
    ];
    let inputs = [inputs[0].as_str(), inputs[1].as_str()];
    scope.graph.node("GridSample", &inputs, &settings)
}

/// The grid of an affine map.
pub fn affine_grid(scope: &mut Scope<'_>, settings: &AffineGrid, x: &str) -> String {
    let shape = scope.layer.shape.clone();
    let graph = &mut *scope.graph;
    let places: Vec<f32> = settings
        .places()
        .into_iter()
        .map(|place| place as f32)
        .collect();
    let places = graph.numbers(&[3, places.len() / 3], &places);
    let maps = graph.reshape(x, &[2, 3]);
    let maps = if settings.add_identity {
        let identity = graph.numbers(&[2, 3], &IDENTITY.map(|number| number as f32));
        graph.node("Add", &[&maps, &identity], &[])
    } else {
        maps
    };
    let both = graph.node("MatMul", &[&maps, &places], &[]);
    let both = graph.transpose(&both, &[0, 2, 1]);
    graph.reshape(&both, &shape)
}
