//! Norms.

use super::super::{Attribute, OnnxError};
use super::Scope;
use runner_core::spec::model::layer::Norm;

/// A norm over channels or features.
pub fn norm(scope: &mut Scope<'_>, norm: &Norm, x: &str) -> Result<String, OnnxError> {
    let small = |epsilon: f64| Attribute::Float("epsilon", epsilon);
    match *norm {
        Norm::Batch { epsilon, .. } => {
            let paths = ["gamma", "beta", "running_mean", "running_var"];
            let mut constants = Vec::with_capacity(paths.len());
            for path in paths {
                constants.push(scope.weight(path)?);
            }
            let constants = constants.iter().map(String::as_str);
            let inputs: Vec<&str> = [x].into_iter().chain(constants).collect();
            let node = scope
                .graph
                .node("BatchNormalization", &inputs, &[small(epsilon)]);
            Ok(node)
        }
        Norm::Layer { epsilon, .. } => layer(scope, x, "", epsilon),
        Norm::Group {
            num_groups,
            epsilon,
            affine,
        } => {
            // The operator of version 18 scales groups; channels are scaled here.
            let dims = scope.dims().to_vec();
            let values = dims.iter().product::<usize>() / num_groups;
            let graph = &mut *scope.graph;
            let groups = graph.reshape(x, &[num_groups, values]);
            let ones = graph.numbers(&[num_groups], &vec![1.0; num_groups]);
            let zeros = graph.numbers(&[num_groups], &vec![0.0; num_groups]);
            let inputs = [groups.as_str(), &ones, &zeros];
            let normal = graph.node("InstanceNormalization", &inputs, &[small(epsilon)]);
            let normal = graph.reshape(&normal, &dims);
            if !affine {
                return Ok(normal);
            }
            let (gamma, beta) = (scope.per_channel("gamma")?, scope.per_channel("beta")?);
            let scaled = scope.graph.node("Mul", &[&normal, &gamma], &[]);
            Ok(scope.graph.node("Add", &[&scaled, &beta], &[]))
        }
        Norm::Instance { epsilon, affine } => {
            let channels = scope.dims()[0];
            let (gamma, beta) = if affine {
                (scope.weight("gamma")?, scope.weight("beta")?)
            } else {
                let graph = &mut *scope.graph;
                let ones = graph.numbers(&[channels], &vec![1.0; channels]);
                (ones, graph.numbers(&[channels], &vec![0.0; channels]))
            };
            let inputs = [x, &gamma, &beta];
            let node = scope
                .graph
                .node("InstanceNormalization", &inputs, &[small(epsilon)]);
            Ok(node)
        }
        Norm::Rms { epsilon } => rms(scope, x, "", epsilon),
        Norm::LocalResponse {
            size,
            alpha,
            beta,
            k,
        } => Ok(local_response(scope, x, size, [alpha, beta, k])),
    }
}

/// Normalizes the last axis to a root mean square of 1, scaled by the tensor at a path.
pub fn rms(scope: &mut Scope<'_>, x: &str, path: &str, epsilon: f64) -> Result<String, OnnxError> {
    let gamma = scope.weight(&format!("{path}gamma"))?;
    let graph = &mut *scope.graph;
    let square = graph.node("Mul", &[x, x], &[]);
    let last = graph.integers(&[-1]);
    let mean = graph.node("ReduceMean", &[&square, &last], &[]);
    let epsilon = graph.number(epsilon);
    let sum = graph.node("Add", &[&mean, &epsilon], &[]);
    let root = graph.node("Sqrt", &[&sum], &[]);
    let normal = graph.node("Div", &[x, &root], &[]);
    Ok(graph.node("Mul", &[&normal, &gamma], &[]))
}

/// Normalizes the last axis to mean 0 and deviation 1, scaled by the tensor at a path.
pub fn layer(
    scope: &mut Scope<'_>,
    x: &str,
    path: &str,
    epsilon: f64,
) -> Result<String, OnnxError> {
    let gamma = scope.weight(&format!("{path}gamma"))?;
    let beta = format!("{path}beta");
    let settings = [
        Attribute::Int("axis", -1),
        Attribute::Float("epsilon", epsilon),
    ];
    if !scope.has(&beta) {
        return Ok(scope
            .graph
            .node("LayerNormalization", &[x, &gamma], &settings));
    }
    let beta = scope.weight(&beta)?;
    Ok(scope
        .graph
        .node("LayerNormalization", &[x, &gamma, &beta], &settings))
}

/// Values divided by a power of the mean square of neighboring channels. Runtimes support ONNX's operator only for odd
/// sizes and four axes.
fn local_response(scope: &mut Scope<'_>, x: &str, size: usize, numbers: [f64; 3]) -> String {
    let dims = scope.dims().to_vec();
    let behind: usize = dims[1..].iter().product();
    let graph = &mut *scope.graph;
    let square = graph.node("Mul", &[x, x], &[]);
    let columns = graph.reshape(&square, &[1, dims[0], behind]);
    let (size, before) = (size as i64, (size as i64 - 1) / 2);
    let window = [
        Attribute::Ints("kernel_shape", vec![size, 1]),
        Attribute::Ints("pads", vec![before, 0, size / 2, 0]),
        Attribute::Int("count_include_pad", 1),
    ];
    let means = graph.node("AveragePool", &[&columns], &window);
    let means = graph.reshape(&means, &dims);
    let [alpha, beta, k] = numbers.map(|number| graph.number(number));
    let scaled = graph.node("Mul", &[&means, &alpha], &[]);
    let sum = graph.node("Add", &[&scaled, &k], &[]);
    let power = graph.node("Pow", &[&sum, &beta], &[]);
    graph.node("Div", &[x, &power], &[])
}
