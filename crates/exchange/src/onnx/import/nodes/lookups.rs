//! Operators that look things up: rows of tables, and places of axes.

use runner_core::spec::model::layer::{LayerKind, PadMode};
use runner_core::spec::model::parametrization::Parametrization;

use crate::onnx::import::attributes::{axis, int};
use crate::onnx::import::constant::{Constant, strides};
use crate::onnx::import::reader::{Live, Reader};
use crate::onnx::import::refused::{Read, Refused};
use crate::onnx::import::view::View;
use crate::onnx::messages::NodeProto;

/// The most ranges that the places of an axis may be joined of.
const MOST: usize = 256;

impl Reader<'_> {
    pub(super) fn gather(&mut self, node: &NodeProto) -> Read {
        if let Some(table) = self.constant(node, 0) {
            return self.embedding(node, &table);
        }
        let live = self.live(node, 0)?;
        let at = self.axis(node, 0, live.view.rank())?;
        let places = self
            .constant(node, 1)
            .ok_or("its indices depend on the inputs of the graph")?;
        let shape = live.view.shape();
        let each: Vec<usize> = places
            .integers()
            .iter()
            .map(|place| axis(*place, shape[at]))
            .collect::<Result<_, _>>()?;
        let mut taken = self.taken(&live, at, &each)?;
        if places.shape.is_empty() {
            taken.view = taken
                .view
                .squeezed(at)
                .ok_or("it selects an item of the batch")?;
        } else if places.shape.len() > 1 {
            let sizes = [&shape[..at], &places.shape, &shape[at + 1..]].concat();
            taken = self.cut_through(&taken, &sizes)?;
        }
        self.put(node, taken.source, taken.view)
    }

    /// Places that constant indices of several leading axes name.
    pub(super) fn gather_nd(&mut self, node: &NodeProto) -> Read {
        let live = self.live(node, 0)?;
        let places = self
            .constant(node, 1)
            .ok_or("its indices depend on the inputs of the graph")?;
        let shape = live.view.shape();
        let (depth, outer) = match places.shape.split_last() {
            Some((depth, outer)) if (1..=shape.len()).contains(depth) => (*depth, outer),
            _ => return Err("its indices do not fit its input".into()),
        };
        if int(node, "batch_dims").unwrap_or(0) != 0 {
            return Err("it has other indices for each item".into());
        }
        let by = strides(&shape[..depth]);
        let index = |index: &[i64]| {
            let mut places = index.iter().enumerate();
            places.try_fold(0, |sum, (at, place)| {
                Ok::<_, Refused>(sum + axis(*place, shape[at])? * by[at])
            })
        };
        let all = places.integers();
        let each: Vec<usize> = all.chunks(depth).map(index).collect::<Result<_, _>>()?;
        let rest = &shape[depth..];
        let flat = [&[shape[..depth].iter().product()], rest].concat();
        let flat = self.cut_through(&live, &flat)?;
        let taken = self.taken(&flat, 0, &each)?;
        let taken = self.cut_through(&taken, &[outer, rest].concat())?;
        self.put(node, taken.source, taken.view)
    }

    /// Some places of an axis, in their order.
    pub(super) fn taken(&mut self, live: &Live, at: usize, places: &[usize]) -> Read<Live> {
        let first = *places.first().ok_or("it selects nothing")?;
        let last = places[places.len() - 1];
        if places.windows(2).all(|pair| pair[0] + 1 == pair[1]) {
            return self.cut(live, at, first, last + 1);
        }
        let step = places[1].saturating_sub(first);
        if step > 1 && places.windows(2).all(|pair| pair[0] + step == pair[1]) {
            return self.stepped(live, at, first, step, places.len());
        }
        let mut ranges: Vec<[usize; 2]> = Vec::new();
        for place in places {
            match ranges.last_mut() {
                Some([_, end]) if end == place => *end += 1,
                _ => ranges.push([*place, place + 1]),
            }
        }
        if ranges.len() > MOST {
            return Err(format!(
                "it takes an axis apart into {} pieces, and at most {MOST} are supported",
                ranges.len()
            )
            .into());
        }
        let front = self.front(live, None)?;
        let place = front.places[at]
            .filter(|_| !front.is_batch(at))
            .ok_or("it selects items of the batch")?;
        let mut sources = Vec::new();
        for [start, end] in ranges {
            let cut = self.cut(live, at, start, end)?;
            sources.push(self.front(&cut, None)?.source);
        }
        let source = self.concatenated(&sources, place)?;
        Ok(Live {
            source,
            view: self.back(&front, source)?,
        })
    }

    /// Every n-th place of an axis: the first of each row of n.
    fn stepped(
        &mut self,
        live: &Live,
        at: usize,
        start: usize,
        step: usize,
        num: usize,
    ) -> Read<Live> {
        let shape = live.view.shape();
        let missing = (start + num * step).saturating_sub(shape[at]);
        let mut pairs = vec![[0, 0]; shape.len()];
        pairs[at] = [0, missing];
        let whole = self.padded(live, &pairs, PadMode::Constant, 0.0)?;
        let rows = self.cut(&whole, at, start, start + num * step)?;
        let sizes = [&shape[..at], &[num, step], &shape[at + 1..]].concat();
        let rows = self.cut_through(&rows, &sizes)?;
        let mut first = self.cut(&rows, at + 1, 0, 1)?;
        first.view = first
            .view
            .squeezed(at + 1)
            .ok_or("it selects items of the batch")?;
        Ok(first)
    }

    /// An embedding: rows of a table for tokens.
    fn embedding(&mut self, node: &NodeProto, table: &Constant) -> Read {
        let tokens = self.live(node, 1)?;
        let ([_, width], true) = (&table.shape[..], self.builder.is_tokens(tokens.source)) else {
            return Err("its indices are not tokens in the input of the graph".into());
        };
        if tokens.view.axes() != [vec![0], vec![1]] {
            return Err("its tokens are not rows of a batch".into());
        }
        if int(node, "axis").unwrap_or(0) != 0 {
            return Err("it looks up columns".into());
        }
        let name = self.name_of(node, 0, "embedding");
        let kind = LayerKind::Embedding {
            embedding_dim: Some(*width),
            initializer: None,
            parametrization: Parametrization::None,
        };
        let source = self.builder.add(&name, kind, &[tokens.source])?;
        self.builder.give(
            source,
            "weight",
            table.shape.clone(),
            table.floats().to_vec(),
        );
        let view = View::fresh(self.batch, self.builder.dims(source));
        self.put(node, source, view)
    }
}
