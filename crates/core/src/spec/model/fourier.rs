//! The discrete Fourier transform as a layer.

use serde::{Deserialize, Serialize};

use crate::spec::kind::Kind;
use crate::spec::section::{Section, choices};

choices! {
    /// The numbers that are taken of a spectrum.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SpectrumPart {
        Real "real" "The real parts.",
        Imaginary "imaginary" "The imaginary parts.",
        Power "power" "The squares of absolute values.",
    }
}

/// A Fourier transform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fourier {
    /// The axes that are transformed, one after the other.
    pub axes: Vec<i64>,
    /// The numbers of the spectrum.
    pub part: SpectrumPart,
}

impl Fourier {
    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        Self {
            axes: {
                let doc = "The axes to transform, without the batch axis.";
                let axes = s.field("axes", Kind::list(Kind::Int(-5, 4), 1), doc);
                axes.or(vec![-1])
            },
            part: s.choice("part", "The numbers of the spectrum.", SpectrumPart::Real),
        }
    }

    /// The cosines and negated sines of a transform of `size` numbers, each \[size, size\].
    pub fn waves(size: usize) -> [Vec<f64>; 2] {
        let turn = std::f64::consts::TAU / size as f64;
        // A whole number of turns is removed first: angles of many turns have no digits left.
        let angles = (0..size * size).map(|at| ((at / size) * (at % size) % size) as f64 * turn);
        let both = angles.map(|angle| [libm::cos(angle), -libm::sin(angle)]);
        let (mut cosines, mut sines) = (Vec::new(), Vec::new());
        for [cosine, sine] in both {
            cosines.push(cosine);
            sines.push(sine);
        }
        [cosines, sines]
    }
}
