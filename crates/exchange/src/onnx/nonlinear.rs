//! The inverses of nonlinear transforms of targets as operators on 64-bit floats.

use super::messages::tensor_proto::DataType;
use super::transforms::{cast, doubles};
use super::{Attribute, Graph};
use runner_core::data::encode::{END_AGAIN, Nonlinear};

/// The share of the normal distribution above z >= 0 is exp(-z*z/2) times the quotient of these polynomials (Hart, 1968,
/// algorithm 5666), to 1e-9 of that share. The operator `Erf` has no version for 64-bit floats in every runtime.
const NUMERATOR: [f64; 7] = [
    220.206_867_912_376,
    221.213_596_169_931,
    112.079_291_497_871,
    33.912_866_078_383,
    6.373_962_203_531_65,
    0.700_383_064_443_688,
    0.035_262_496_599_891_1,
];
const DENOMINATOR: [f64; 8] = [
    440.413_735_824_752,
    793.826_512_519_948,
    637.333_633_378_831,
    296.564_248_779_674,
    86.780_732_202_946_1,
    16.064_177_579_207,
    1.755_667_163_182_64,
    0.088_388_347_648_318_4,
];
/// Beyond this, numbers have the share of the end of the distribution.
const FARTHEST: f64 = 8.0;

/// The numbers, \[batch, numbers\], before the transforms, of which there is one for each.
pub(super) fn undone(graph: &mut Graph, transforms: &[Nonlinear], value: String) -> String {
    match transforms.first() {
        None => value,
        Some(Nonlinear::Log) => graph.node("Exp", &[&value], &[]),
        Some(Nonlinear::Log1p) => {
            let exp = graph.node("Exp", &[&value], &[]);
            let one = doubles(graph, &[1.0]);
            graph.node("Sub", &[&exp, &one], &[])
        }
        Some(first @ Nonlinear::Quantile { .. }) => {
            let num = first.num_quantiles();
            let tables = transforms.iter().flat_map(|one| match one {
                Nonlinear::Quantile { quantiles } => quantiles.as_slice(),
                Nonlinear::Log | Nonlinear::Log1p => &[],
            });
            let tables: Vec<f64> = tables.copied().collect();
            let share = share(graph, &value);
            quantile(graph, &tables, num, &share)
        }
    }
}

/// The share of the normal distribution below each number; 0 and 1 close to these.
fn share(graph: &mut Graph, value: &str) -> String {
    let size = graph.node("Abs", &[value], &[]);
    let farthest = doubles(graph, &[FARTHEST]);
    let size = graph.node("Min", &[&size, &farthest], &[]);
    let polynomial = |graph: &mut Graph, factors: &[f64]| {
        let mut factors = factors.iter().rev();
        let mut sum = doubles(graph, &[factors.next().copied().unwrap_or(0.0)]);
        for factor in factors {
            let factor = doubles(graph, &[*factor]);
            let product = graph.node("Mul", &[&sum, &size], &[]);
            sum = graph.node("Add", &[&product, &factor], &[]);
        }
        sum
    };
    let above = polynomial(graph, &NUMERATOR);
    let below = polynomial(graph, &DENOMINATOR);
    let square = graph.node("Mul", &[&size, &size], &[]);
    let half = doubles(graph, &[-0.5]);
    let power = graph.node("Mul", &[&square, &half], &[]);
    let density = graph.node("Exp", &[&power], &[]);
    let quotient = graph.node("Div", &[&above, &below], &[]);
    let tail = graph.node("Mul", &[&density, &quotient], &[]);
    let (zero, one) = (doubles(graph, &[0.0]), doubles(graph, &[1.0]));
    let rest = graph.node("Sub", &[&one, &tail], &[]);
    let is_above = graph.node("Greater", &[value, &zero], &[]);
    let share = graph.node("Where", &[&is_above, &rest, &tail], &[]);
    let (least, most) = (
        doubles(graph, &[END_AGAIN]),
        doubles(graph, &[1.0 - END_AGAIN]),
    );
    let is_first = graph.node("Less", &[&share, &least], &[]);
    let share = graph.node("Where", &[&is_first, &zero, &share], &[]);
    let is_last = graph.node("Greater", &[&share, &most], &[]);
    graph.node("Where", &[&is_last, &one, &share], &[])
}

/// The quantiles at shares, interpolated between `num` quantiles of each number.
fn quantile(graph: &mut Graph, tables: &[f64], num: usize, share: &str) -> String {
    let last = doubles(graph, &[(num - 1) as f64]);
    let place = graph.node("Mul", &[share, &last], &[]);
    let below = graph.node("Floor", &[&place], &[]);
    let before_last = doubles(graph, &[(num - 2) as f64]);
    let below = graph.node("Min", &[&below, &before_last], &[]);
    let part = graph.node("Sub", &[&place, &below], &[]);
    let starts: Vec<i64> = (0..tables.len() / num)
        .map(|at| (at * num) as i64)
        .collect();
    let starts = graph.integers(&starts);
    let at = cast(graph, &below, DataType::Int64);
    let at = graph.node("Add", &[&at, &starts], &[]);
    let one = graph.integers(&[1]);
    let next = graph.node("Add", &[&at, &one], &[]);
    let tables = doubles(graph, tables);
    let first_axis = [Attribute::Int("axis", 0)];
    let low = graph.node("Gather", &[&tables, &at], &first_axis);
    let high = graph.node("Gather", &[&tables, &next], &first_axis);
    let step = graph.node("Sub", &[&high, &low], &[]);
    let step = graph.node("Mul", &[&step, &part], &[]);
    graph.node("Add", &[&low, &step], &[])
}
