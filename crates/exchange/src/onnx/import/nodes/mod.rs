//! The layers for each operator.

mod arithmetic;
mod attention;
mod axes;
mod choices;
mod einsum;
mod functions;
mod integers;
mod lookups;
mod norms;
mod pieces;
mod products;
mod ranges;
mod recurrent;
mod reductions;
mod resize;
mod windows;

pub use integers::integer_inputs;
pub use recurrent::{RECURRENT_PATHS, gates, stacked};

use super::attributes::operator;
use super::reader::Reader;
use crate::onnx::import::refused::Read;
use crate::onnx::messages::NodeProto;

impl Reader<'_> {
    /// Converts a node with non-constant inputs to layers.
    pub fn layer(&mut self, node: &NodeProto) -> Read {
        let integers = self.integers_of(node)?;
        self.convert(node)?;
        if let Some(integers) = integers {
            self.are_integers(node, integers);
        }
        Ok(())
    }

    fn convert(&mut self, node: &NodeProto) -> Read {
        let op = operator(node);
        if let Some(kind) = self.function(node)? {
            return self.apply(node, kind);
        }
        match op {
            "Identity" | "Cast" | "CastLike" => self.pass(node),
            "Dropout" => self.dropout(node),
            "Conv" => self.conv(node),
            "DeformConv" => self.deform_conv(node),
            "GridSample" => self.grid_sample(node),
            "ConvTranspose" => self.conv_transpose(node),
            "MaxPool" | "AveragePool" => self.pool(node),
            "GlobalAveragePool" | "GlobalMaxPool" => self.global_pool(node),
            "Resize" | "Upsample" => self.resize(node),
            "Gemm" => self.gemm(node),
            "MatMul" => self.matmul(node),
            "Add" | "Sub" | "Mul" | "Div" | "Sum" | "Mean" | "Max" | "Min" | "Pow" => {
                self.arithmetic(node)
            }
            "Greater" => self.greater(node),
            "IsNaN" => self.is_nan(node),
            "Where" if self.above(node, 0).is_some() => self.threshold(node),
            "Where" => self.masked(node),
            "Trilu" => self.triangle(node),
            "Einsum" => self.einsum(node),
            "Attention" => self.attention_node(node),
            "BatchNormalization" => self.batch_norm(node),
            "InstanceNormalization" | "GroupNormalization" | "LRN" => self.channel_norm(node),
            "LayerNormalization" | "RMSNormalization" => self.layer_norm(node),
            "Reshape" | "Flatten" | "Squeeze" | "Unsqueeze" | "Transpose" => self.view(node),
            "DepthToSpace" => self.depth_to_space(node),
            "Concat" => self.concat(node),
            "Gather" => self.gather(node),
            "GatherND" => self.gather_nd(node),
            "Slice" => self.slice(node),
            "Split" => self.split(node),
            "Pad" => self.pad(node),
            "Tile" | "Expand" => self.tile(node),
            "Softmax" | "LogSoftmax" => self.softmax(node),
            "CumSum" => self.cumulated(node),
            "ReduceLogSumExp" => self.log_sum_exp(node),
            "ReduceProd" => self.reduced_product(node),
            "LpNormalization" => self.unit_length(node),
            _ if op.starts_with("Reduce") => self.reduce(node),
            "PRelu" => self.prelu(node),
            "LSTM" | "GRU" | "RNN" => self.recurrent(node),
            _ => Err("there is no layer for it".into()),
        }
    }
}
