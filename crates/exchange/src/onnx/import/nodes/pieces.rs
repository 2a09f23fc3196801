//! Steps that several operators share.

use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::model::layer_spec::Source;

use crate::onnx::import::constant::Constant;
use crate::onnx::import::reader::{Front, Live, Reader};
use crate::onnx::import::refused::Read;
use crate::onnx::import::view::{BATCH, View};

impl Reader<'_> {
    /// A range of an axis.
    pub fn cut(&mut self, live: &Live, axis: usize, start: usize, end: usize) -> Read<Live> {
        let size = live.view.shape()[axis];
        if start >= end || end > size {
            return Err(format!("it selects {start} to {end} of an axis of size {size}").into());
        }
        if start == 0 && end == size {
            return Ok(live.clone());
        }
        if let Some(cut) = self.cut_in_place(live, axis, start, end)? {
            return Ok(cut);
        }
        let front = self.front(live, None)?;
        let place = front.places[axis].ok_or("it selects items of the batch")?;
        if live.view.axes()[axis].contains(&BATCH) {
            return Err("it selects items of the batch".into());
        }
        let source = self.slice_of(front.source, place, start, end)?;
        let view = self.back(&front, source)?;
        Ok(Live { source, view })
    }

    fn slice_of(&mut self, source: Source, axis: usize, start: usize, end: usize) -> Read<Source> {
        let kind = LayerKind::Slice {
            axis: axis as i64,
            start: start as i64,
            end: Some(end as i64),
        };
        self.builder.plain(kind, &[source])
    }

    /// The same if the axis is the outer part of one of the layer's axes, whose order then needs no change: this is how
    /// queries, keys and values are sliced from one product.
    fn cut_in_place(
        &mut self,
        live: &Live,
        axis: usize,
        start: usize,
        end: usize,
    ) -> Read<Option<Live>> {
        let [factor] = live.view.axes()[axis][..] else {
            return Ok(None);
        };
        if factor == BATCH || self.builder.is_tokens(live.source) {
            return Ok(None);
        }
        let dims = self.builder.dims(live.source).to_vec();
        // The axis of the layer whose outermost factor this is, and the factors inside of it.
        let mut first = 1;
        for (at, size) in dims.iter().enumerate() {
            let mut product = 1;
            let mut last = first;
            while product < *size && last < live.view.factors().len() {
                product *= live.view.factor(last);
                last += 1;
            }
            if product != *size {
                return Ok(None);
            }
            if first == factor && last > first {
                let inner = size / live.view.factor(factor);
                let source = self.slice_of(live.source, at, start * inner, end * inner)?;
                let mut factors = live.view.factors().to_vec();
                factors[factor] = end - start;
                let view = View::of(factors, live.view.axes().to_vec());
                return Ok(Some(Live { source, view }));
            }
            if last == first {
                // A size of 1, which may or may not have a factor.
                return Ok(None);
            }
            first = last;
        }
        Ok(None)
    }

    /// A value with axes of size 1 in front, up to a rank.
    pub fn lifted(live: &Live, rank: usize) -> Live {
        let mut live = live.clone();
        while live.view.rank() < rank {
            live.view = live.view.unsqueezed(0);
        }
        live
    }

    /// A constant as a learned tensor that is combined with items; its axes are those of the value.
    pub fn parameter(&mut self, constant: &Constant, front: &Front, name: &str) -> Read<Source> {
        let rank = front.places.len();
        if constant.shape.len() > rank {
            return Err(format!(
                "its constant of shape {:?} has more axes than its input",
                constant.shape
            )
            .into());
        }
        let ones = vec![1; rank - constant.shape.len()];
        let mut value = constant.reshaped([ones, constant.shape.clone()].concat())?;
        for axis in (0..rank).rev() {
            let is_batch = front.is_batch(axis);
            if front.places[axis].is_none() {
                value = value
                    .without(axis)
                    .ok_or("its constant differs between items of the batch")?;
            } else if is_batch && value.shape[axis] != 1 {
                return Err("its constant varies along the batch".into());
            }
        }
        let shape = if value.shape.is_empty() {
            vec![1]
        } else {
            value.shape.clone()
        };
        let kind = LayerKind::Parameter {
            shape: shape.clone(),
            // The defaults: its values are given.
            mean: 0.0,
            std: 0.02,
            file: None,
        };
        let source = self.builder.add(name, kind, &[front.source])?;
        self.builder
            .give(source, "value", shape, value.floats().to_vec());
        Ok(source)
    }
}
