//! Operators that crop values, or pad them.

use runner_core::spec::model::layer::{LayerKind, PadMode};

use crate::onnx::import::attributes::{axis, digits, float, text};
use crate::onnx::import::fold;
use crate::onnx::import::reader::{Live, Reader};
use crate::onnx::import::refused::Read;
use crate::onnx::messages::NodeProto;

impl Reader<'_> {
    pub(super) fn slice(&mut self, node: &NodeProto) -> Read {
        let mut live = self.live(node, 0)?;
        let list = |name: &str, at: usize| self.list(node, name, at);
        for (at, start, num, step) in fold::ranges(node, list, &live.view.shape())? {
            if num == 0 {
                return Err("it selects nothing".into());
            }
            if step == 1 {
                live = self.cut(&live, at, start, start + num)?;
                continue;
            }
            self.budget.take(&[num])?;
            let places = (0..num as i64).map(|place| (start as i64 + place * step) as usize);
            live = self.taken(&live, at, &places.collect::<Vec<_>>())?;
        }
        self.put(node, live.source, live.view)
    }

    pub(super) fn split(&mut self, node: &NodeProto) -> Read {
        let live = self.live(node, 0)?;
        let at = self.axis(node, 0, live.view.rank())?;
        let size = live.view.shape()[at];
        let num = node.output.len().max(1);
        let even = size.div_ceil(num);
        let sizes = self
            .list(node, "split", 1)
            .unwrap_or_else(|| vec![even as i64; num]);
        let mut start = 0;
        for (place, asked) in sizes.iter().enumerate().take(num) {
            let asked = usize::try_from(*asked).map_err(|_| "it has a negative size")?;
            let end = start + asked.min(size - start);
            if self.is_used(node, place) {
                let part = self.cut(&live, at, start, end)?;
                self.put_at(node, place, part.source, part.view)?;
            }
            start = end;
        }
        Ok(())
    }

    pub(super) fn pad(&mut self, node: &NodeProto) -> Read {
        let mut live = self.live(node, 0)?;
        let rank = live.view.rank();
        let pads = self
            .list(node, "pads", 1)
            .or_else(|| self.list(node, "paddings", 1));
        let mut pads = pads.ok_or("its padding depends on the inputs of the graph")?;
        if let Some(list) = self.constant(node, 3) {
            let mut all = vec![0; 2 * rank];
            let list: Vec<usize> = list
                .integers()
                .iter()
                .map(|at| axis(*at, rank))
                .collect::<Result<_, _>>()?;
            if pads.len() != 2 * list.len() {
                return Err("its padding does not have a pair for each axis".into());
            }
            for (place, at) in list.iter().enumerate() {
                all[*at] = pads[place];
                all[rank + at] = pads[list.len() + place];
            }
            pads = all;
        }
        if pads.len() != 2 * rank {
            return Err("its padding does not have a pair for each axis".into());
        }
        const MOST: i64 = 1 << 24;
        if let Some(much) = pads.iter().find(|pad| **pad > MOST) {
            return Err(
                format!("it pads an axis by {much} values, and at most {MOST} are read").into(),
            );
        }
        let mode = match text(node, "mode").as_deref() {
            None | Some("constant") => PadMode::Constant,
            Some("reflect") => PadMode::Reflect,
            Some("edge") => PadMode::Replicate,
            Some("wrap") => return self.wrapped(node, live, &pads),
            Some(other) => return Err(format!("its mode is `{other}`").into()),
        };
        // Negative numbers crop.
        for at in 0..rank {
            let size = live.view.shape()[at];
            let less = |pad: i64| usize::try_from(pad.min(0).unsigned_abs()).unwrap_or(size);
            let (start, end) = (
                less(pads[at]).min(size),
                size - less(pads[rank + at]).min(size),
            );
            live = self.cut(&live, at, start, end)?;
        }
        let value = match self.constant(node, 2) {
            Some(value) => value.single().map_or(0.0, digits),
            None => float(node, "value", 0.0),
        };
        let pairs = (0..rank).map(|at| [pads[at], pads[rank + at]].map(|pad| pad.max(0) as usize));
        let pairs: Vec<[usize; 2]> = pairs.collect();
        let live = self.padded(&live, &pairs, mode, value)?;
        self.put(node, live.source, live.view)
    }

    /// A value that is padded with the values at the opposite end of each axis.
    fn wrapped(&mut self, node: &NodeProto, mut live: Live, pads: &[i64]) -> Read {
        let rank = live.view.rank();
        for at in 0..rank {
            let size = live.view.shape()[at];
            let [before, after] = [pads[at], pads[rank + at]].map(usize::try_from);
            let (Ok(before), Ok(after)) = (before, after) else {
                return Err("it wraps around and crops".into());
            };
            if before.max(after) > size {
                return Err("it wraps around more than once".into());
            }
            if before + after > 0 {
                let places = (size - before..size).chain(0..size).chain(0..after);
                live = self.taken(&live, at, &places.collect::<Vec<_>>())?;
            }
        }
        self.put(node, live.source, live.view)
    }

    /// A padded value.
    pub fn padded(
        &mut self,
        live: &Live,
        pairs: &[[usize; 2]],
        mode: PadMode,
        value: f64,
    ) -> Read<Live> {
        let Some(first) = pairs.iter().position(|pair| *pair != [0, 0]) else {
            return Ok(live.clone());
        };
        let front = self.front(live, None)?;
        if pairs
            .iter()
            .enumerate()
            .any(|(at, pair)| *pair != [0, 0] && front.is_batch(at))
        {
            return Err("it pads the batch".into());
        }
        let places = front.places.iter().zip(pairs).enumerate();
        let padding = places.filter(|(at, (place, _))| *at >= first && place.is_some());
        let kind = LayerKind::Pad {
            padding: padding.map(|(_, (_, pair))| *pair).collect(),
            mode,
            value: value.clamp(f64::from(f32::MIN), f64::from(f32::MAX)),
        };
        let source = self.builder.plain(kind, &[front.source])?;
        Ok(Live {
            source,
            view: self.back(&front, source)?,
        })
    }
}
