//! Resizing.

use runner_core::spec::model::layer::{Interpolation, LayerKind};

use crate::onnx::import::attributes::{axis, flag, float, ints, operator, text};
use crate::onnx::import::reader::Reader;
use crate::onnx::import::refused::Read;
use crate::onnx::messages::NodeProto;

impl Reader<'_> {
    /// The interpolation of a resize from one shape to another, and whether corners are aligned.
    fn interpolation(
        &self,
        node: &NodeProto,
        shape: &[usize],
        output: &[usize],
    ) -> Read<(Interpolation, bool)> {
        let is_new = operator(node) == "Resize" && self.opset >= 11;
        let mode = text(node, "mode").unwrap_or_else(|| "nearest".into());
        let usual = if is_new { "half_pixel" } else { "asymmetric" };
        let place = text(node, "coordinate_transformation_mode").unwrap_or_else(|| usual.into());
        let rounding = text(node, "nearest_mode").unwrap_or_else(|| "round_prefer_floor".into());
        for (is_set, name) in [
            (flag(node, "antialias"), "antialias"),
            (flag(node, "exclude_outside"), "exclude_outside"),
            (
                float(node, "cubic_coeff_a", -0.75) != -0.75,
                "cubic_coeff_a",
            ),
        ] {
            if is_set && mode != "nearest" {
                return Err(format!("it sets `{name}`").into());
            }
        }
        if text(node, "keep_aspect_ratio_policy").is_some_and(|policy| policy != "stretch") {
            return Err("it keeps the aspect ratio".into());
        }
        let mut factors = shape.iter().zip(output);
        let is_whole = factors.all(|(size, output)| output.is_multiple_of(*size));
        let is_double = shape
            .iter()
            .zip(output)
            .all(|(size, output)| output <= &(2 * size));
        let is_one = place == "pytorch_half_pixel" && output[2..].contains(&1) && shape != output;
        match (mode.as_str(), place.as_str(), rounding.as_str()) {
            ("nearest", "asymmetric", "floor") => Ok((Interpolation::Nearest, false)),
            ("nearest", "asymmetric", _) if !is_new => Ok((Interpolation::Nearest, false)),
            ("nearest", "asymmetric", "round_prefer_floor") if is_whole && is_double => {
                Ok((Interpolation::Nearest, false))
            }
            (
                "nearest",
                "half_pixel" | "pytorch_half_pixel",
                "round_prefer_floor" | "round_prefer_ceil",
            ) if is_whole => Ok((Interpolation::Nearest, false)),
            (_, "pytorch_half_pixel", _) if is_one => Err("it resizes to one sample".into()),
            ("linear", "half_pixel" | "pytorch_half_pixel", _) => {
                Ok((Interpolation::Linear, false))
            }
            ("linear", "align_corners", _) => Ok((Interpolation::Linear, true)),
            ("cubic", "half_pixel" | "pytorch_half_pixel", _) => Ok((Interpolation::Cubic, false)),
            ("cubic", "align_corners", _) => Ok((Interpolation::Cubic, true)),
            ("nearest", ..) => {
                Err(format!("it uses the mode `{mode}` with `{place}` and `{rounding}`").into())
            }
            _ => Err(format!("it uses the mode `{mode}` with `{place}`").into()),
        }
    }

    pub(super) fn resize(&mut self, node: &NodeProto) -> Read {
        let live = self.live(node, 0)?;
        let shape = live.view.shape();
        let rank = shape.len();
        let is_new = operator(node) == "Resize" && self.opset >= 11;
        let axes: Vec<usize> = match ints(node, "axes") {
            Some(list) => list
                .iter()
                .map(|at| axis(*at, rank))
                .collect::<Result<_, _>>()?,
            None => (0..rank).collect(),
        };
        if !(3..=4).contains(&rank) {
            return Err(format!("its input has {rank} axes").into());
        }
        let list = |at: usize| {
            self.constant(node, at)
                .filter(|list| list.len() == axes.len())
        };
        let (scales, wanted) = if is_new {
            (list(2), list(3))
        } else {
            (list(1), None)
        };
        let mut output = shape.clone();
        match (&scales, wanted) {
            (_, Some(wanted)) => {
                for (at, size) in axes.iter().zip(wanted.integers().iter()) {
                    output[*at] = usize::try_from(*size).unwrap_or(0);
                }
            }
            (Some(scales), None) => {
                for (at, scale) in axes.iter().zip(scales.floats().iter()) {
                    output[*at] = (shape[*at] as f32 * scale).floor() as usize;
                }
            }
            _ => return Err("its scales depend on the inputs of the graph".into()),
        }
        if output[..2] != shape[..2] || output.iter().any(|size| !(1..=1 << 24).contains(size)) {
            return Err(format!("it resizes {shape:?} to {output:?}").into());
        }
        let whole_scales = scales.is_none_or(|scales| {
            let scales = scales.floats();
            let mut each = axes.iter().zip(scales.iter());
            each.all(|(at, scale)| shape[*at] as f32 * scale == output[*at] as f32)
        });
        // Places follow from the scales, and otherwise from the sizes, as here.
        if !whole_scales {
            return Err(format!("its scales do not make {shape:?} whole sizes").into());
        }
        let (mode, align_corners) = self.interpolation(node, &shape, &output)?;
        let kind = LayerKind::Interpolate {
            dims: rank - 2,
            output_size: Some(output[2..].to_vec()),
            scale: None,
            mode,
            align_corners,
        };
        let front = self.images(&live)?;
        self.put_layer(node, &front, &kind.type_name(), kind)
            .map(drop)
    }
}
