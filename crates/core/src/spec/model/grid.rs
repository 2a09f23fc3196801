//! Layers that take samples of images at places that the network computes (Jaderberg et al., 2015).

use serde::{Deserialize, Serialize};

use super::decode::sizes;
use crate::spec::kind::Kind;
use crate::spec::section::{Section, choices};

choices! {
    /// The value between pixels.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GridMode {
        Linear "linear" "The four pixels around each place, weighted by their distance.",
        Nearest "nearest" "The nearest pixel; the grid gets no gradient.",
    }
}

choices! {
    /// The value outside of the image.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum GridPadding {
        Zeros "zeros" "0.",
        Border "border" "The nearest pixel of the image.",
    }
}

/// Samples of images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GridSample {
    /// The value between pixels.
    pub mode: GridMode,
    /// The value outside of the image.
    pub padding: GridPadding,
    /// Whether -1 and 1 are the centers of the outermost pixels, and not their outer edges.
    pub align_corners: bool,
}

impl GridSample {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        Self {
            mode: s.choice("mode", "The value between pixels.", GridMode::Linear),
            padding: s.choice(
                "padding",
                "The value outside of the image.",
                GridPadding::Zeros,
            ),
            align_corners: align_corners(s),
        }
    }
}

/// The grid of an affine map.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AffineGrid {
    /// Height and width.
    pub output_size: Vec<usize>,
    /// As for [`GridSample`].
    pub align_corners: bool,
    /// Whether the numbers are added to those of the identity.
    pub add_identity: bool,
}

/// The map that moves nothing.
pub const IDENTITY: [f64; 6] = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];

impl AffineGrid {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        Self {
            output_size: {
                let doc = "Height and width of the grid, one size or two.";
                sizes(s, "output_size", doc, 2)
            },
            align_corners: align_corners(s),
            add_identity: {
                let doc = "Whether the 6 numbers are added to those of the identity, so that small ones hardly move the image.";
                s.field("add_identity", Kind::Bool, doc).or(false)
            },
        }
    }

    /// The places of a grid of -1 to 1 as \[3, height * width\]: how far right, how far down, and ones.
    pub fn places(&self) -> Vec<f64> {
        let [height, width] = [self.output_size[0], self.output_size[1]];
        let along = |at: usize, size: usize| match (self.align_corners, size) {
            // As in PyTorch.
            (true, 1) => 0.0,
            (true, _) => 2.0 * at as f64 / (size as f64 - 1.0) - 1.0,
            (false, _) => (2.0 * at as f64 + 1.0) / size as f64 - 1.0,
        };
        let all = 0..height * width;
        let right = all.clone().map(|at| along(at % width, width));
        let down = all.clone().map(|at| along(at / width, height));
        right.chain(down).chain(all.map(|_| 1.0)).collect()
    }
}

fn align_corners(s: &mut Section<'_>) -> bool {
    let doc =
        "Whether -1 and 1 are the centers of the outermost pixels, and not their outer edges.";
    s.field("align_corners", Kind::Bool, doc).or(false)
}
