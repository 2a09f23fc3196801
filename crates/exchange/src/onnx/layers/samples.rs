//! Layers that take samples, spectra, the largest values, or states of a recurrence.

use super::super::{Attribute, Graph};
use super::Scope;
use runner_core::check::network::axes::axis_of;
use runner_core::spec::model::fourier::{Fourier, Transform, Wave};
use runner_core::spec::model::grid::{AffineGrid, GridMode, GridSample, IDENTITY};
use runner_core::spec::section::Choice;

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
        let mut of =
            |x: &str, (from, to): (usize, usize)| graph.slice(x, 1, from as i64, to as i64);
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
    let mut nodes = Nodes {
        graph: &mut *scope.graph,
        dims: &dims,
    };
    fourier.of(&x.to_owned(), &mut nodes)
}

/// Nodes of a graph over items of a shape.
struct Nodes<'a> {
    graph: &'a mut Graph,
    dims: &'a [usize],
}

impl Transform for Nodes<'_> {
    type Numbers = String;

    fn product(&mut self, x: &String, axis: i64, wave: Wave) -> String {
        let axis = axis_of(axis, self.dims.len());
        let size = self.dims[axis];
        let matrix = wave.matrix(size).into_iter().map(|value| value as f32);
        let matrix = self
            .graph
            .numbers(&[size; 2], &matrix.collect::<Vec<f32>>());
        let mut order: Vec<i64> = (0..=self.dims.len() as i64).collect();
        order.swap(1 + axis, self.dims.len());
        let moved = self.graph.transpose(x, &order);
        let product = self.graph.node("MatMul", &[&moved, &matrix], &[]);
        self.graph.transpose(&product, &order)
    }

    fn add(&mut self, a: String, b: String) -> String {
        self.graph.node("Add", &[&a, &b], &[])
    }

    fn subtract(&mut self, a: String, b: String) -> String {
        self.graph.node("Sub", &[&a, &b], &[])
    }

    fn square(&mut self, x: String) -> String {
        self.graph.node("Mul", &[&x, &x], &[])
    }
}

/// The values of an axis moved in a circle.
pub fn roll(scope: &mut Scope<'_>, axis: i64, shift: i64, x: &str) -> String {
    let axis = axis_of(axis, scope.dims().len());
    let size = scope.dims()[axis] as i64;
    let moved = shift.rem_euclid(size);
    let axis = 1 + axis as i64;
    if moved == 0 {
        return x.to_owned();
    }
    let graph = &mut *scope.graph;
    let last = graph.slice(x, axis, size - moved, size);
    let first = graph.slice(x, axis, 0, size - moved);
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
    let settings = [
        Attribute::Text("mode", mode),
        Attribute::Text("padding_mode", settings.padding.name()),
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
