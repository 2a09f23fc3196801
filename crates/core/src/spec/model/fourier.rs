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

    /// The transform of real numbers, by operations on whatever holds them.
    pub fn of<T: Transform>(&self, x: &T::Numbers, by: &mut T) -> T::Numbers
    where
        T::Numbers: Clone,
    {
        let Some((last, others)) = self.axes.split_last() else {
            return x.clone();
        };
        let mut real = x.clone();
        let mut imaginary: Option<T::Numbers> = None;
        for axis in others {
            let parts = (&real, imaginary.as_ref());
            let next = (
                real_part(parts, *axis, by),
                imaginary_part(parts, *axis, by),
            );
            (real, imaginary) = (next.0, Some(next.1));
        }
        let parts = (&real, imaginary.as_ref());
        match self.part {
            SpectrumPart::Real => real_part(parts, *last, by),
            SpectrumPart::Imaginary => imaginary_part(parts, *last, by),
            SpectrumPart::Power => {
                let real = real_part(parts, *last, by);
                let imaginary = imaginary_part(parts, *last, by);
                let squares = [by.square(real), by.square(imaginary)];
                let [real, imaginary] = squares;
                by.add(real, imaginary)
            }
        }
    }
}

/// What a transform consists of. Axes are those of the items, as in a file.
pub trait Transform {
    /// Numbers in the shape of the items.
    type Numbers;

    /// The product along an axis with a [`Wave`].
    fn product(&mut self, x: &Self::Numbers, axis: i64, wave: Wave) -> Self::Numbers;

    /// The sum of both.
    fn add(&mut self, a: Self::Numbers, b: Self::Numbers) -> Self::Numbers;

    /// The first minus the second.
    fn subtract(&mut self, a: Self::Numbers, b: Self::Numbers) -> Self::Numbers;

    /// The square of each number.
    fn square(&mut self, x: Self::Numbers) -> Self::Numbers;
}

/// The real and the imaginary part of a spectrum; without the latter, it is 0.
type Parts<'a, N> = (&'a N, Option<&'a N>);

/// Of (x + i y)(c + i s): x c - y s.
fn real_part<T: Transform>((x, y): Parts<'_, T::Numbers>, axis: i64, by: &mut T) -> T::Numbers {
    let first = by.product(x, axis, Wave::Cosine);
    match y {
        Some(y) => {
            let second = by.product(y, axis, Wave::NegatedSine);
            by.subtract(first, second)
        }
        None => first,
    }
}

/// Of the same: x s + y c.
fn imaginary_part<T: Transform>(
    (x, y): Parts<'_, T::Numbers>,
    axis: i64,
    by: &mut T,
) -> T::Numbers {
    let first = by.product(x, axis, Wave::NegatedSine);
    match y {
        Some(y) => {
            let second = by.product(y, axis, Wave::Cosine);
            by.add(first, second)
        }
        None => first,
    }
}

/// A part of the waves of a transform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wave {
    /// Cosines.
    Cosine,
    /// Negated sines.
    NegatedSine,
}

impl Wave {
    /// The matrix of a transform of `size` numbers, \[size, size\], which is symmetric.
    pub fn matrix(self, size: usize) -> Vec<f64> {
        let turn = std::f64::consts::TAU / size as f64;
        let at = |place: usize| match self {
            Self::Cosine => libm::cos(place as f64 * turn),
            Self::NegatedSine => -libm::sin(place as f64 * turn),
        };
        let circle: Vec<f64> = (0..size).map(at).collect();
        // A whole number of turns is removed first: angles of many turns have no digits left.
        let all = 0..size * size;
        all.map(|at| circle[(at / size) * (at % size) % size])
            .collect()
    }
}
