//! Values that are chosen by constants: masks.

use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::model::layer_spec::Source;

use crate::onnx::import::constant::Constant;
use crate::onnx::import::fold;
use crate::onnx::import::reader::{Front, Live, Reader};
use crate::onnx::import::refused::Read;
use crate::onnx::messages::NodeProto;

/// A number that acts as minus infinity when added.
pub(super) const LOWEST: f32 = -1e30;
/// What is added to scores that must not count is at most this.
const MASKED: f32 = -1e9;

/// A number where a condition holds, and another one elsewhere.
fn numbers(condition: &Constant, holds: f32, other: f32) -> Constant {
    let values = condition.integers();
    let values = values
        .iter()
        .map(|is_true| if *is_true != 0 { holds } else { other });
    Constant::floats_of(condition.shape.clone(), values.collect())
}

/// What a mask of attention adds to its scores: numbers, or nothing where it is true.
pub(super) fn masked_numbers(mask: &Constant) -> Constant {
    if mask.is_integer() {
        return numbers(mask, 0.0, LOWEST);
    }
    let values = mask.floats();
    let values = values.iter().map(|value| {
        if *value == f32::NEG_INFINITY {
            LOWEST
        } else {
            *value
        }
    });
    Constant::floats_of(mask.shape.clone(), values.collect())
}

impl Reader<'_> {
    /// Values where a constant is set, and others or a number elsewhere, as in attention masks.
    pub(super) fn masked(&mut self, node: &NodeProto) -> Read {
        let Some(condition) = self.constant(node, 0) else {
            return Err("its condition depends on the inputs of the graph".into());
        };
        let (live, number, is_kept) = match (self.constant(node, 1), self.constant(node, 2)) {
            (None, Some(number)) => (self.live(node, 1)?, number, true),
            (Some(number), None) => (self.live(node, 2)?, number, false),
            _ => return self.mixed(node, &condition),
        };
        let rank = live.view.rank().max(condition.shape.len());
        let live = Self::lifted(&live, rank);
        if condition.single() == Some(f32::from(is_kept)) && rank == live.view.rank() {
            return self.put(node, live.source, live.view);
        }
        let number = number.single().ok_or("its constant is not a scalar")?;
        let front = self.front(&live, None)?;
        let keep = |kept: f32, replaced: f32| {
            let [holds, other] = if is_kept {
                [kept, replaced]
            } else {
                [replaced, kept]
            };
            numbers(&condition, holds, other)
        };
        let mut source = front.source;
        let is_lowest = number == f32::NEG_INFINITY || number <= MASKED && self.is_of_scores(node);
        let added = if is_lowest { LOWEST } else { number };
        if added != LOWEST {
            source = self.times(source, &keep(1.0, 0.0), &front)?;
        }
        if added != 0.0 {
            let mask = self.parameter(&keep(0.0, added), &front, "mask")?;
            source = self.builder.plain(LayerKind::Add, &[source, mask])?;
        }
        let view = self.back(&front, source)?;
        self.put(node, source, view)
    }

    /// One of two values at each place: the sum of both, each times 0 or 1.
    fn mixed(&mut self, node: &NodeProto, condition: &Constant) -> Read {
        let both = [self.live(node, 1)?, self.live(node, 2)?];
        let rank = both.iter().map(|live| live.view.rank()).max().unwrap_or(0);
        let rank = rank.max(condition.shape.len());
        let mut parts = Vec::new();
        for (live, [holds, other]) in both.iter().zip([[1.0, 0.0], [0.0, 1.0]]) {
            let live = Self::lifted(live, rank);
            let front = self.front(&live, None)?;
            let source = self.times(front.source, &numbers(condition, holds, other), &front)?;
            parts.push(Live {
                view: self.back(&front, source)?,
                source,
            });
        }
        let (source, view) = self.pair(LayerKind::Add, &parts[0], &parts[1])?;
        self.put(node, source, view)
    }

    fn times(&mut self, source: Source, factors: &Constant, front: &Front) -> Read<Source> {
        let mask = self.parameter(factors, front, "mask")?;
        self.builder.plain(LayerKind::Multiply, &[source, mask])
    }

    /// The upper or lower triangle of matrices.
    pub(super) fn triangle(&mut self, node: &NodeProto) -> Read {
        let live = self.live(node, 0)?;
        let shape = live.view.shape();
        let Some([rows, columns]) = shape.last_chunk::<2>().copied() else {
            return Err("its input is not a matrix".into());
        };
        let num = self.budget.take(&[rows, columns])?;
        let ones = Constant::floats_of(vec![rows, columns], vec![1.0; num]);
        let mask = fold::triangle(node, &ones, self.constant(node, 1).as_deref());
        let front = self.front(&live, None)?;
        let source = self.times(front.source, &mask, &front)?;
        let view = self.back(&front, source)?;
        self.put(node, source, view)
    }

    /// Exporters guard softmax against rows in which nothing counts. Where there are none, nothing is NaN.
    pub(super) fn is_nan(&mut self, node: &NodeProto) -> Read {
        let live = self.live(node, 0)?;
        let Some((LayerKind::Activation(Activation::Softmax), [scores])) =
            self.builder.layer(live.source)
        else {
            return Err("there is no layer for it".into());
        };
        let inputs = match self.builder.layer(*scores) {
            Some((LayerKind::Add, inputs)) => inputs,
            _ => &[],
        };
        let is_empty = |source: &Source| {
            let mask = self.builder.weights(*source)?.get("value")?;
            let columns = mask.0.last().copied().unwrap_or(1).max(1);
            let mut rows = mask.1.chunks(columns);
            Some(rows.any(|row| row.iter().all(|value| *value <= MASKED)))
        };
        if inputs.iter().any(|source| is_empty(source) == Some(true)) {
            return Err("its mask has rows in which nothing counts".into());
        }
        self.put_constant(node, Constant::integers_of(Vec::new(), vec![0]))
    }
}
