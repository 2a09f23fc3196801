//! Operators that rearrange and join axes, and lookups.

use runner_core::spec::model::layer::LayerKind;
use runner_core::spec::model::layer_spec::Source;

use crate::onnx::import::attributes::{axes, int, operator, text};
use crate::onnx::import::constant::Constant;
use crate::onnx::import::fold;
use crate::onnx::import::reader::{Live, Reader};
use crate::onnx::import::refused::Read;
use crate::onnx::import::view::View;
use crate::onnx::messages::NodeProto;

impl Reader<'_> {
    /// Axes that split those of the layer's output need a separate layer.
    pub(super) fn cut_through(&mut self, live: &Live, sizes: &[usize]) -> Read<Live> {
        if let Some(view) = live.view.reshaped(sizes) {
            return Ok(Live {
                view,
                ..live.clone()
            });
        }
        let shape = live.view.shape();
        let mixed = || format!("it mixes the batch with other axes: {shape:?} becomes {sizes:?}");
        let first = usize::from(self.batch.is_some());
        let front = self.front(live, None)?;
        let is_first = self.batch.is_none()
            || (front.places.first() == Some(&None) && sizes.first() == Some(&shape[0]));
        if !is_first || front.places[first..].contains(&None) {
            return Err(mixed().into());
        }
        let dims = sizes.get(first..).unwrap_or_default();
        let source = self.reshaped(front.source, dims)?;
        Ok(Live {
            source,
            view: View::fresh(self.batch, dims),
        })
    }

    pub(super) fn view(&mut self, node: &NodeProto) -> Read {
        let Live { source, view } = self.live(node, 0)?;
        let shape = view.shape();
        let mixed = |sizes: &[usize]| {
            format!("it mixes the batch with other axes: {shape:?} becomes {sizes:?}")
        };
        let view = match operator(node) {
            "Transpose" => view.permuted(&fold::order(node, view.rank())?),
            "Flatten" => {
                let sizes = fold::flattened(node, &shape)?;
                view.reshaped(&sizes).ok_or_else(|| mixed(&sizes))?
            }
            "Unsqueeze" => {
                let list = self
                    .list(node, "axes", 1)
                    .ok_or("its axes depend on the inputs of the graph")?;
                let new = axes(&list, shape.len() + list.len())?;
                new.iter().fold(view, |view, at| view.unsqueezed(*at))
            }
            "Squeeze" => {
                let list = self.list(node, "axes", 1);
                let gone = match list {
                    Some(list) => axes(&list, shape.len())?,
                    None => (0..shape.len())
                        .filter(|at| shape[*at] == 1 && view.axes()[*at] != [0])
                        .collect(),
                };
                if gone.iter().any(|at| shape[*at] != 1) {
                    return Err(
                        format!("it removes axes of {shape:?} that are not of size 1").into(),
                    );
                }
                let mut left = Some(view);
                for at in gone.iter().rev() {
                    left = left.and_then(|view| view.squeezed(*at));
                }
                left.ok_or("it removes the batch")?
            }
            _ => {
                let asked = self
                    .list(node, "shape", 1)
                    .ok_or("its shape depends on the inputs of the graph")?;
                let sizes =
                    fold::reshape(&shape, &asked, int(node, "allowzero").unwrap_or(0) == 0)?;
                let live = Live { source, view };
                let live = self.cut_through(&live, &sizes)?;
                return self.put_at(node, 0, live.source, live.view);
            }
        };
        self.put_at(node, 0, source, view)
    }

    pub(super) fn depth_to_space(&mut self, node: &NodeProto) -> Read {
        let Live { source, view, .. } = self.live(node, 0)?;
        let size = int(node, "blocksize")
            .and_then(|size| usize::try_from(size).ok())
            .unwrap_or(0);
        let ([batch, channels, height, width], true) = (&view.shape()[..], size > 0) else {
            return Err("its input is not a batch of images".into());
        };
        let inner = channels / (size * size);
        let is_column_first = text(node, "mode").as_deref() == Some("CRD");
        let (split, order): (_, [usize; 6]) = if is_column_first {
            (
                [*batch, inner, size, size, *height, *width],
                [0, 1, 4, 2, 5, 3],
            )
        } else {
            (
                [*batch, size, size, inner, *height, *width],
                [0, 3, 4, 1, 5, 2],
            )
        };
        let whole = [*batch, inner, height * size, width * size];
        let view = view.reshaped(&split).map(|view| view.permuted(&order));
        let view = view.and_then(|view| view.reshaped(&whole));
        self.put(
            node,
            source,
            view.ok_or("its block size does not divide its input")?,
        )
    }

    pub(super) fn concat(&mut self, node: &NodeProto) -> Read {
        let mut parts = Vec::new();
        for at in 0..node.input.len() {
            parts.push(match self.constant(node, at) {
                Some(constant) => Err(constant),
                None => Ok(self.live(node, at)?),
            });
        }
        let first = parts.iter().find_map(|part| part.as_ref().ok()).cloned();
        let first = first.ok_or("it has no inputs")?;
        let at = self.axis(node, 1, first.view.rank())?;
        let front = self.front(&first, None)?;
        let place = front.places[at]
            .filter(|_| !front.is_batch(at))
            .ok_or("it concatenates along the batch")?;
        let mut sources = Vec::new();
        for part in &parts {
            sources.push(match part {
                Ok(live) => {
                    let own = self.front(live, None)?;
                    if own.places != front.places {
                        return Err("its inputs have different axes".into());
                    }
                    own.source
                }
                Err(constant) => self.stretched_parameter(node, constant, &first, at)?,
            });
        }
        let source = self.concatenated(&sources, place)?;
        let view = self.back(&front, source)?;
        self.put(node, source, view)
    }

    /// A constant with all sizes of a value except one, to be concatenated with it.
    fn stretched_parameter(
        &mut self,
        node: &NodeProto,
        constant: &Constant,
        like: &Live,
        axis: usize,
    ) -> Read<Source> {
        let mut shape = like.view.shape();
        if constant.shape.len() != shape.len() {
            return Err("its constant has different axes than its inputs".into());
        }
        shape[axis] = constant.shape[axis];
        let constant = constant.expanded(&shape, &mut self.budget)?;
        let front = self.front(like, None)?;
        let name = node.name.as_deref().unwrap_or_default();
        let name = name
            .rsplit('/')
            .next()
            .filter(|name| !name.is_empty())
            .unwrap_or("parameter")
            .to_owned();
        self.parameter(&constant, &front, &name)
    }

    pub(super) fn concatenated(&mut self, sources: &[Source], axis: usize) -> Read<Source> {
        match sources {
            [only] => Ok(*only),
            _ => self
                .builder
                .plain(LayerKind::Concat { axis: axis as i64 }, sources),
        }
    }

    pub(super) fn tile(&mut self, node: &NodeProto) -> Read {
        const MOST: usize = 64;
        let live = self.live(node, 0)?;
        let asked = self
            .weight(node, 1)
            .map_err(|_| "its shape depends on the inputs of the graph")?;
        let asked: Option<Vec<usize>> = asked
            .integers()
            .iter()
            .map(|size| usize::try_from(*size).ok().filter(|size| *size > 0))
            .collect();
        let asked = asked.ok_or("it has a size below 1")?;
        let live = Self::lifted(&live, asked.len());
        let shape = live.view.shape();
        let asked = [vec![1; shape.len() - asked.len()], asked].concat();
        let times = shape
            .iter()
            .zip(&asked)
            .map(|(size, asked)| match operator(node) {
                "Tile" => Some(*asked),
                _ if asked == size || *asked == 1 => Some(1),
                _ if *size == 1 => Some(*asked),
                _ => None,
            });
        let times: Vec<usize> = times
            .collect::<Option<_>>()
            .ok_or("its shape is incompatible with its input")?;
        let mut live = live;
        for (at, times) in times.iter().enumerate().filter(|(_, times)| **times > 1) {
            if *times > MOST {
                return Err(format!(
                    "it repeats an axis {times} times, and at most {MOST} are supported"
                )
                .into());
            }
            let front = self.front(&live, None)?;
            let place = front.places[at]
                .filter(|_| !front.is_batch(at))
                .ok_or("it repeats items of the batch")?;
            let sources = vec![front.source; *times];
            let source = self
                .builder
                .plain(LayerKind::Concat { axis: place as i64 }, &sources)?;
            live = Live {
                source,
                view: self.back(&front, source)?,
            };
        }
        self.put(node, live.source, live.view)
    }
}
