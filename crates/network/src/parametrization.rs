//! Weights that are computed from other parameters: weight norm and spectral norm, as PyTorch computes them.
//!
//! They are reparameterizations of Burn's parameters. [`computed`] makes a layer with the weight that they give, once for
//! each time that the layer is used, since each use in training is a step of power iteration.

use burn::module::{
    Module, ModuleMapper, Param, ParamId, Reparameterization, Reparameterizer, RunningState,
};
use burn::tensor::{Device, Shape, Tensor, TensorData};

use crate::layer::Layer;
use crate::numeric::{expand, matmul, sum_axis};
use runner_core::check::network::Layer as LayerPlan;
use runner_core::data::order::{Purpose, uniform};
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::model::parametrization::{Parametrization, Rows};

/// The least norm that a vector is divided by, as in PyTorch.
const EPSILON: f64 = 1e-12;
/// Steps of power iteration before training, as in PyTorch.
const FIRST_ITERATIONS: usize = 15;
/// The path of its vectors below a weight.
pub(crate) const SPECTRAL_NORM: &str = SpectralNorm::NAME;

/// A direction for each row, which is the stored weight, times a length.
#[derive(Module, Debug)]
struct WeightNorm {
    /// \[rows\].
    scale: Param<Tensor<1>>,
    #[module(skip)]
    computed: (Rows, Arithmetic),
}

impl Reparameterization for WeightNorm {
    const NAME: &'static str = "weight_norm";

    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
        let (rows, arithmetic) = self.computed;
        let dims = base.dims();
        let [num, others] = rows.sizes(&dims);
        // The axis of the rows stays where it is.
        let (sizes, axis) = match rows {
            Rows::Second => ([others, num], 0),
            Rows::First | Rows::Exchanged => ([num, others], 1),
        };
        let matrix = base.reshape(sizes);
        let squares = sum_axis(arithmetic, matrix.clone() * matrix.clone(), axis);
        let mut one = [1; 2];
        one[1 - axis] = num;
        let factors = self.scale.val().reshape(one) / squares.sqrt();
        (matrix * expand(arithmetic, factors, sizes)).reshape(dims)
    }
}

/// The stored weight divided by its largest singular value, which the product with two vectors estimates.
#[derive(Module, Debug)]
struct SpectralNorm {
    /// \[rows\].
    u: RunningState<Tensor<1>>,
    /// \[columns\].
    v: RunningState<Tensor<1>>,
    #[module(skip)]
    computed: (Rows, Arithmetic),
}

impl Reparameterization for SpectralNorm {
    const NAME: &'static str = "spectral_norm";

    fn apply<const D: usize>(&self, base: Tensor<D>) -> Tensor<D> {
        let (rows, arithmetic) = self.computed;
        let dims = base.dims();
        let [num, others] = rows.sizes(&dims);
        let matrix = match rows {
            Rows::First => base.clone().reshape([num, others]),
            Rows::Second => base.clone().reshape([others, num]).transpose(),
            Rows::Exchanged => base.clone().swap_dims(0, 1).reshape([num, others]),
        };
        let device = base.device();
        let [mut u, mut v] = [&self.u, &self.v].map(|state| state.value_sync().to_device(&device));
        // In training, unless the weight is frozen.
        if base.is_require_grad() {
            let matrix = matrix.clone().detach();
            u = unit(arithmetic, product(arithmetic, matrix.clone(), v));
            v = unit(
                arithmetic,
                product(arithmetic, matrix.transpose(), u.clone()),
            );
            for (state, new) in [(&self.u, &u), (&self.v, &v)] {
                state.update(new.clone());
                // Burn's states lag behind by an update otherwise.
                state.value_sync();
            }
        }
        let value = sum_axis(arithmetic, u * product(arithmetic, matrix, v), 0);
        base / expand(arithmetic, value.reshape([1; D]), dims)
    }
}

/// A matrix times a vector.
fn product(arithmetic: Arithmetic, matrix: Tensor<2>, vector: Tensor<1>) -> Tensor<1> {
    let [rows, columns] = matrix.dims();
    matmul(arithmetic, matrix, vector.reshape([columns, 1])).reshape([rows])
}

/// A vector of length 1.
fn unit(arithmetic: Arithmetic, vector: Tensor<1>) -> Tensor<1> {
    let squares = sum_axis(arithmetic, vector.clone() * vector.clone(), 0);
    let length = squares.sqrt().clamp_min(EPSILON);
    let dims = vector.dims();
    vector / expand(arithmetic, length, dims)
}

/// A layer whose weight is computed as its plan says, from parameters without their [`started`] values.
pub fn attached(layer: Layer, plan: &LayerPlan) -> Layer {
    let kind = plan.kind.parametrization();
    let is_own = plan.weights.is_none();
    let computed = (kind.rows(&plan.kind), plan.arithmetic);
    match kind {
        Parametrization::WeightNorm if is_own => layer.apply_reparameterization(Attach(
            |rows: usize, _, device: &Device| WeightNorm {
                scale: ones(rows, device),
                computed,
            },
            computed.0,
        )),
        Parametrization::SpectralNorm if is_own => layer.apply_reparameterization(Attach(
            |rows, columns, device: &Device| {
                let state = |num: usize| RunningState::new(Tensor::ones([num], device));
                SpectralNorm {
                    u: state(rows),
                    v: state(columns),
                    computed,
                }
            },
            computed.0,
        )),
        _ => layer,
    }
}

fn ones(num: usize, device: &Device) -> Param<Tensor<1>> {
    let draw = move |device: &Device, require_grad: bool| {
        let values = Tensor::ones([num], device);
        if require_grad {
            values.require_grad()
        } else {
            values
        }
    };
    let shape = Shape::from([num]);
    Param::uninitialized(ParamId::new(), draw, device.clone(), true, shape)
}

/// Attaches what a function makes of the number of rows and columns to the weight of a layer.
struct Attach<F>(F, Rows);

impl<R: Reparameterization, F: FnMut(usize, usize, &Device) -> R> Reparameterizer for Attach<F> {
    type Reparam = R;

    fn reparameterize<const D: usize>(
        &mut self,
        path: &str,
        param: Param<Tensor<D>>,
    ) -> (Param<Tensor<D>>, Option<R>) {
        if path.rsplit('.').next() != Some("weight") {
            return (param, None);
        }
        let [rows, columns] = self.1.sizes(&param.lazy_shape());
        let made = (self.0)(rows, columns, &param.lazy_device());
        (param, Some(made))
    }
}

/// A layer with initial values of what its weight is computed from, which follow from the drawn weight: lengths that
/// leave it as it is, or vectors after some power iteration from a seed.
pub fn started(layer: Layer, plan: &LayerPlan, seed: u64, at: usize) -> Layer {
    let kind = plan.kind.parametrization();
    if kind.is_none() || plan.weights.is_some() {
        return layer;
    }
    layer.map(&mut Start {
        rows: kind.rows(&plan.kind),
        is_spectral: kind == Parametrization::SpectralNorm,
        stream: (seed, at as u64),
        name: String::new(),
        values: Vec::new(),
    })
}

struct Start {
    rows: Rows,
    is_spectral: bool,
    stream: (u64, u64),
    /// The name of the parameter that is visited.
    name: String,
    /// Those of the parameters after the weight, in the order in which they come.
    values: Vec<Vec<f64>>,
}

impl Start {
    /// From the rows of a weight.
    fn values_of(&self, matrix: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let length = |vector: &[f64]| vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        if !self.is_spectral {
            return vec![matrix.iter().map(|row| length(row)).collect()];
        }
        let unit = |mut vector: Vec<f64>| {
            let length = length(&vector).max(EPSILON);
            vector.iter_mut().for_each(|x| *x /= length);
            vector
        };
        let columns = matrix.first().map_or(0, Vec::len);
        let (seed, layer) = self.stream;
        let mut v = unit(uniform(columns, 1.0, seed, Purpose::PowerIteration, layer));
        let mut u = Vec::new();
        for _ in 0..FIRST_ITERATIONS {
            let products = matrix
                .iter()
                .map(|row| row.iter().zip(&v).map(|(a, b)| a * b).sum());
            u = unit(products.collect());
            let mut sums = vec![0.0; columns];
            for (row, factor) in matrix.iter().zip(&u) {
                sums.iter_mut()
                    .zip(row)
                    .for_each(|(sum, x)| *sum += factor * x);
            }
            v = unit(sums);
        }
        // In the reverse of their order.
        vec![v, u]
    }

    fn rows_of<const D: usize>(&self, weight: &Tensor<D>) -> Vec<Vec<f64>> {
        let dims = weight.dims();
        let values: Vec<f64> = weight.to_data().iter::<f64>().collect();
        let [rows, columns] = self.rows.sizes(&dims);
        match self.rows {
            Rows::First => values.chunks(columns.max(1)).map(<[f64]>::to_vec).collect(),
            Rows::Second | Rows::Exchanged => {
                let inner: usize = dims[2..].iter().product();
                let row = |row: usize| {
                    let blocks = values.chunks(rows * inner);
                    blocks
                        .flat_map(|block| block[row * inner..(row + 1) * inner].to_vec())
                        .collect()
                };
                (0..rows).map(row).collect()
            }
        }
    }
}

impl ModuleMapper for Start {
    fn enter_module(&mut self, name: &str, _: &str) {
        name.clone_into(&mut self.name);
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        match self.name.as_str() {
            "weight" => {
                let rows = self.rows_of(&param.val());
                self.values = self.values_of(&rows);
                param
            }
            "scale" | "u" | "v" => {
                let Some(values) = self.values.pop() else {
                    return param;
                };
                let data = TensorData::new(values, param.lazy_shape());
                let (id, device) = (param.id, param.lazy_device());
                param.transform_for_load(Tensor::from_data(data, &device), id)
            }
            _ => param,
        }
    }
}

/// A layer with the weight that is computed; none if its weight is a parameter.
pub fn computed(layer: &Layer) -> Option<Layer> {
    macro_rules! plain {
        ($($variant:ident),+) => {
            match layer {
                $(Layer::$variant(module) => {
                    let mut module = module.clone();
                    module.weight = Param::initialized(module.weight.id, module.weight.val());
                    Some(Layer::$variant(module))
                })+
                _ => None,
            }
        };
    }
    plain!(
        Linear,
        Embedding,
        Conv1d,
        Conv2d,
        Conv3d,
        ConvTranspose1d,
        ConvTranspose2d,
        ConvTranspose3d
    )
}
