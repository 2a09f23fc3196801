//! Attention as one operator. Its steps are layers; those of a whole block become one layer again (`patterns`).

use runner_core::spec::model::activation::Activation;
use runner_core::spec::model::layer::LayerKind;

use super::choices::{LOWEST, masked_numbers};
use crate::onnx::import::attributes::{flag, float, int};
use crate::onnx::import::constant::Constant;
use crate::onnx::import::reader::{Live, Reader};
use crate::onnx::import::refused::Read;
use crate::onnx::messages::NodeProto;

impl Reader<'_> {
    pub(super) fn attention_node(&mut self, node: &NodeProto) -> Read {
        let is_given = |at: usize| node.input.get(at).is_some_and(|name| !name.is_empty());
        if (4..node.input.len()).any(is_given) {
            return Err("it continues an earlier sequence".into());
        }
        if (1..node.output.len()).any(|at| self.is_used(node, at)) {
            return Err("its keys, values or scores are used".into());
        }
        if float(node, "softcap", 0.0) != 0.0 {
            return Err("it caps its scores (`softcap`)".into());
        }
        let is_flat = self.live(node, 0)?.view.rank() == 3;
        let mut query = self.heads(node, 0, "q_num_heads")?;
        let (mut key, mut value) = (
            self.heads(node, 1, "kv_num_heads")?,
            self.heads(node, 2, "kv_num_heads")?,
        );
        let ([_, num, length, width], [_, num_keys, steps, _]) =
            (&query.view.shape()[..], &key.view.shape()[..])
        else {
            return Err("its inputs are not sequences".into());
        };
        let (num, num_keys, length, steps) = (*num, *num_keys, *length, *steps);
        if num != num_keys {
            if num_keys == 0 || !num.is_multiple_of(num_keys) {
                return Err(format!("it has {num} heads of queries for {num_keys} of keys").into());
            }
            let places: Vec<usize> = (0..num).map(|at| at / (num / num_keys)).collect();
            key = self.taken(&key, 1, &places)?;
            value = self.taken(&value, 1, &places)?;
        }
        let usual = 1.0 / (*width as f64).sqrt();
        key.view = key.view.permuted(&[0, 1, 3, 2]);
        let (source, view) = self.product(&query, &key)?;
        let factor = match float(node, "scale", usual) {
            // 32 bits of a root.
            given if (given / usual - 1.0).abs() < 1e-6 => usual,
            given => given,
        };
        let scale = Activation::Scale {
            factor,
            offset: 0.0,
        };
        query = Live {
            source: self.activated(scale, source)?,
            view,
        };
        if is_given(3) {
            query = match self.constant(node, 3) {
                Some(mask) => self.shifted(&query, &masked_numbers(&mask))?,
                None => {
                    let mask = self.live(node, 3)?;
                    let (source, view) = self.pair(LayerKind::Add, &query, &mask)?;
                    Live { source, view }
                }
            };
        }
        if flag(node, "is_causal") {
            let num = self.budget.take(&[length, steps])?;
            let is_later = |at: usize| at % steps > at / steps;
            let values = (0..num).map(|at| if is_later(at) { LOWEST } else { 0.0 });
            let mask = Constant::floats_of(vec![length, steps], values.collect());
            query = self.shifted(&query, &mask)?;
        }
        let shares = self.normalized(&query, Activation::Softmax)?;
        let (source, view) = self.product(&shares, &value)?;
        if !is_flat {
            return self.put(node, source, view);
        }
        let joined = Live {
            source,
            view: view.permuted(&[0, 2, 1, 3]),
        };
        let sizes = joined.view.shape();
        let joined = self.cut_through(&joined, &[sizes[0], sizes[1], sizes[2] * sizes[3]])?;
        self.put(node, joined.source, joined.view)
    }

    /// An input as heads of sequences.
    fn heads(&mut self, node: &NodeProto, at: usize, name: &str) -> Read<Live> {
        let live = self.live(node, at)?;
        let shape = live.view.shape();
        if shape.len() == 4 {
            return Ok(live);
        }
        let num = usize::try_from(int(node, name).unwrap_or(0)).unwrap_or(0);
        let [batch, length, width] = shape[..] else {
            return Err("its inputs are not sequences".into());
        };
        if num == 0 || !width.is_multiple_of(num) {
            return Err(format!("its `{name}` does not fit {width} features").into());
        }
        let mut heads = self.cut_through(&live, &[batch, length, num, width / num])?;
        heads.view = heads.view.permuted(&[0, 2, 1, 3]);
        Ok(heads)
    }

    /// A value with a constant added.
    fn shifted(&mut self, live: &Live, by: &Constant) -> Read<Live> {
        let front = self.front(live, None)?;
        let mask = self.parameter(by, &front, "mask")?;
        let source = self.builder.plain(LayerKind::Add, &[front.source, mask])?;
        Ok(Live {
            source,
            view: self.back(&front, source)?,
        })
    }
}
