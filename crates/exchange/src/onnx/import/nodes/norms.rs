//! Norms, and learned slopes.

use runner_core::spec::model::layer::{LayerKind, Norm};
use runner_core::spec::model::layer_spec::Source;

use crate::onnx::import::attributes::{flag, float, int, operator, rounded};
use crate::onnx::import::reader::Reader;
use crate::onnx::import::refused::Read;
use crate::onnx::messages::NodeProto;

impl Reader<'_> {
    pub(super) fn batch_norm(&mut self, node: &NodeProto) -> Read {
        let has_statistics = (1..node.output.len()).any(|at| self.is_used(node, at));
        if has_statistics || flag(node, "training_mode") {
            return Err("it is in training mode: export the model in evaluation mode".into());
        }
        let live = self.live(node, 0)?;
        let front = self.images(&live)?;
        let kind = LayerKind::Norm(Norm::Batch {
            epsilon: rounded(float(node, "epsilon", 1e-5)),
            // ONNX specifies the weight of the old mean, PyTorch that of the new one.
            momentum: rounded(1.0 - float(node, "momentum", 0.9)),
            affine: true,
        });
        let channels = self.builder.dims(front.source)[0];
        let name = self.name_of(node, 1, "batch_norm");
        let source = self.put_layer(node, &front, &name, kind)?;
        let paths = ["weight", "bias", "running_mean", "running_var"];
        self.give_channels(node, source, channels, &paths)
    }

    pub(super) fn channel_norm(&mut self, node: &NodeProto) -> Read {
        let live = self.live(node, 0)?;
        let front = self.images(&live)?;
        let epsilon = rounded(float(node, "epsilon", 1e-5));
        let size = |name: &str| usize::try_from(int(node, name).unwrap_or(0)).unwrap_or(0);
        let norm = match operator(node) {
            "LRN" => Norm::LocalResponse {
                size: Some(size("size"))
                    .filter(|size| *size > 0)
                    .ok_or("it has no `size`")?,
                alpha: float(node, "alpha", 1e-4),
                beta: float(node, "beta", 0.75),
                k: float(node, "bias", 1.0),
            },
            "GroupNormalization" => Norm::Group {
                num_groups: Some(size("num_groups"))
                    .filter(|num| *num > 0)
                    .ok_or("it has no `num_groups`")?,
                epsilon,
                affine: true,
            },
            _ => Norm::Instance {
                epsilon,
                affine: true,
            },
        };
        let has_weights = !matches!(norm, Norm::LocalResponse { .. });
        let kind = LayerKind::Norm(norm);
        let name = self.name_of(node, 1, &kind.type_name());
        let channels = self.builder.dims(front.source)[0];
        let source = self.put_layer(node, &front, &name, kind)?;
        let paths: &[&str] = if has_weights {
            &["weight", "bias"]
        } else {
            &[]
        };
        self.give_channels(node, source, channels, paths)
    }

    /// Gives a layer the weights of its channels, which are the node's inputs after the first.
    fn give_channels(
        &mut self,
        node: &NodeProto,
        source: Source,
        channels: usize,
        paths: &[&'static str],
    ) -> Read {
        for (at, path) in paths.iter().enumerate() {
            let weight = self.weight(node, at + 1)?;
            if weight.len() != channels {
                return Err(
                    format!("it has {} weights for {channels} channels", weight.len()).into(),
                );
            }
            self.builder
                .give(source, path, vec![channels], weight.floats().to_vec());
        }
        Ok(())
    }

    pub(super) fn layer_norm(&mut self, node: &NodeProto) -> Read {
        if (1..node.output.len()).any(|at| self.is_used(node, at)) {
            return Err("its mean and deviation are used".into());
        }
        let mut live = self.live(node, 0)?;
        let shape = live.view.shape();
        let at = self.axis(node, -1, shape.len())?;
        let width: usize = shape[at..].iter().product();
        let flat = [&shape[..at], &[width]].concat();
        live.view = live
            .view
            .reshaped(&flat)
            .ok_or("it mixes the batch with other axes")?;
        let front = self.front(&live, Some(1))?;
        if front.is_batch(at) || front.places[at].is_none() {
            return Err("it normalizes along the batch".into());
        }
        let epsilon = rounded(float(node, "epsilon", 1e-5));
        let bias = self.constant(node, 2);
        let norm = if operator(node) == "RMSNormalization" {
            Norm::Rms { epsilon }
        } else {
            Norm::Layer {
                epsilon,
                bias: bias.is_some(),
            }
        };
        let kind = LayerKind::Norm(norm);
        let name = self.name_of(node, 1, &kind.type_name());
        let source = self.builder.add(&name, kind, &[front.source])?;
        let weight = self.weight(node, 1)?;
        for (path, weight) in [("weight", Some(weight)), ("bias", bias)] {
            let Some(weight) = weight else { continue };
            let values = weight.floats();
            if ![1, width].contains(&values.len()) {
                return Err(format!("it has {} weights for {width} values", values.len()).into());
            }
            let of = |at: usize| values[if values.len() == 1 { 0 } else { at }];
            self.builder
                .give(source, path, vec![width], (0..width).map(of).collect());
        }
        let view = self.back(&front, source)?;
        let view = view
            .reshaped(&shape)
            .ok_or("it mixes the batch with other axes")?;
        self.put(node, source, view)
    }

    pub(super) fn prelu(&mut self, node: &NodeProto) -> Read {
        let live = self.live(node, 0)?;
        let slope = self.weight(node, 1)?;
        let num = slope.len();
        let front = self.images(&live)?;
        let channels = self.builder.dims(front.source)[0];
        // Slopes are broadcast from the last axis; in old versions, a single axis is that of the channels.
        let rank = live.view.rank();
        let is_along = slope.shape.len() == 1 && self.opset < 9
            || slope.shape.len() + 1 == rank && slope.shape[0] == num
            || slope.shape.len() == rank && slope.shape.get(1) == Some(&num)
            || rank == 2 && slope.shape.len() == 1;
        if num != 1 && (num != channels || !is_along) {
            return Err(format!(
                "its slopes of shape {:?} do not have one value for each channel",
                slope.shape
            )
            .into());
        }
        let kind = LayerKind::Prelu {
            per_channel: num > 1,
            initial: 0.25,
        };
        let name = self.name_of(node, 1, "prelu");
        let source = self.put_layer(node, &front, &name, kind)?;
        self.builder
            .give(source, "weight", vec![num], slope.floats().to_vec());
        Ok(())
    }
}
