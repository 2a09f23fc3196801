//! Changes of pictures in training.

use crate::spec::data::AugmentSpec;

/// Changes one picture of shape \[channels, height, width\] in place, and its mask of shape \[height, width\] in
/// the same way. All draws come from `seed`; `fill` is the value of what comes in from outside, by
/// channel a black pixel after scaling.
pub fn augment(
    _spec: &AugmentSpec,
    _seed: u64,
    _picture: &mut [f32],
    _shape: [usize; 3],
    _fill: f32,
    _mask: Option<&mut [i32]>,
) {
}
