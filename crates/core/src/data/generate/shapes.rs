//! Small images of simple shapes.

use super::{Item, below, normal, uniform};
use crate::spec::generate::ShapeTarget;

/// Disk, square, cross.
pub const NUM_SHAPES: usize = 3;

/// An image \[1, size, size\] from 0 to 1 with noise. One shape if it is the class, otherwise each with a probability
/// of one half; later shapes cover earlier ones.
pub fn image(item: &mut Item<'_>, size: usize, noise: f64, target: ShapeTarget) {
    let only = item.at % NUM_SHAPES;
    let shown: Vec<bool> = (0..NUM_SHAPES)
        .map(|shape| match target {
            ShapeTarget::Class => shape == only,
            ShapeTarget::Labels | ShapeTarget::Mask => uniform(&mut item.rng) < 0.5,
        })
        .collect();
    let mut mask = vec![0usize; size * size];
    for (shape, _) in shown.iter().enumerate().filter(|(_, shown)| **shown) {
        let radius = size / 8 + below(&mut item.rng, size / 8 + 1) + 1;
        let room = size - 2 * radius;
        let (row, column) = (
            radius + below(&mut item.rng, room),
            radius + below(&mut item.rng, room),
        );
        for (at, pixel) in mask.iter_mut().enumerate() {
            let down = (at / size).abs_diff(row);
            let across = (at % size).abs_diff(column);
            let is_in = match shape {
                0 => down * down + across * across <= radius * radius,
                1 => down.max(across) < radius,
                _ => down.min(across) <= radius / 4 && down.max(across) <= radius,
            };
            if is_in {
                *pixel = 1 + shape;
            }
        }
    }
    for pixel in &mask {
        let light = if *pixel > 0 { 0.8 } else { 0.2 };
        let value = light + noise * normal(&mut item.rng);
        item.number(value.clamp(0.0, 1.0));
    }
    match target {
        ShapeTarget::Class => item.class(only as i32),
        ShapeTarget::Labels => shown
            .into_iter()
            .for_each(|shown| item.target(f64::from(u8::from(shown)))),
        ShapeTarget::Mask => mask.into_iter().for_each(|pixel| item.class(pixel as i32)),
    }
}
