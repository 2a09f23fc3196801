//! Triangles between points (Delaunay; Bowyer, 1981, and Watson, 1981), over which values are interpolated linearly.

/// A point; both coordinates are about from 0 to 1.
type Place = (f64, f64);

/// Points are moved by this much at most, so that no four of them lie on a circle, as in a grid.
const NUDGE: f64 = 1e-6;

/// How far the triangle around everything reaches.
const FAR: f64 = 40.0;

/// The triangles between points that differ, each as the positions of its corners. None if all points are on a line.
pub fn triangles(points: &[Place]) -> Vec<[usize; 3]> {
    let num = points.len();
    let nudged = points.iter().enumerate().map(|(at, (x, y))| {
        let noise = |salt: u64| {
            let mixed = (at as u64 + 1).wrapping_mul(salt) >> 40;
            NUDGE * (mixed as f64 / (1u64 << 24) as f64 - 0.5)
        };
        (
            x + noise(0x9e37_79b9_7f4a_7c15),
            y + noise(0xc2b2_ae3d_27d4_eb4f),
        )
    });
    let mut all: Vec<Place> = nudged.collect();
    all.extend([(-FAR, -FAR), (FAR, -FAR), (0.5, FAR)]);
    let mut found: Vec<[usize; 3]> = vec![[num, num + 1, num + 2]];
    for at in 0..num {
        let is_bad = |corners: &[usize; 3]| is_around(corners.map(|corner| all[corner]), all[at]);
        let (bad, kept): (Vec<_>, Vec<_>) = found.into_iter().partition(is_bad);
        found = kept;
        let edges = |of: &[usize; 3]| [[of[0], of[1]], [of[1], of[2]], [of[2], of[0]]];
        let every: Vec<[usize; 2]> = bad.iter().flat_map(edges).collect();
        // An edge inside the hole belongs to two of its triangles, in opposite directions.
        let outer = every
            .iter()
            .filter(|[from, to]| !every.contains(&[*to, *from]));
        found.extend(outer.map(|[from, to]| [*from, *to, at]));
    }
    found.retain(|corners| {
        let is_inner = corners.iter().all(|corner| *corner < num);
        // Slivers between points on a line have no area.
        is_inner && area(corners.map(|corner| points[corner])) > NUDGE
    });
    found
}

/// Twice the area of a triangle, positive if its corners go against the clock.
fn area([a, b, c]: [Place; 3]) -> f64 {
    (b.0 - a.0) * (c.1 - a.1) - (b.1 - a.1) * (c.0 - a.0)
}

/// Whether a point is inside the circle through the corners of a triangle, which go against the clock.
fn is_around(corners: [Place; 3], (x, y): Place) -> bool {
    let [a, b, c] = corners.map(|corner| (corner.0 - x, corner.1 - y));
    let square = |of: Place| of.0 * of.0 + of.1 * of.1;
    let (aa, bb, cc) = (square(a), square(b), square(c));
    aa * (b.0 * c.1 - b.1 * c.0) - bb * (a.0 * c.1 - a.1 * c.0) + cc * (a.0 * b.1 - a.1 * b.0) > 0.0
}

/// The part of a triangle where the value that its corners have is between two levels: a polygon, empty if there is
/// none.
pub fn between(corners: [(Place, f64); 3], low: f64, high: f64) -> Vec<Place> {
    let above = clipped(corners.to_vec(), &|value| value - low);
    let within = clipped(above, &|value| high - value);
    within.into_iter().map(|(place, _)| place).collect()
}

/// The part of a polygon where a linear function of its values is not negative (Sutherland and Hodgman, 1974).
fn clipped(polygon: Vec<(Place, f64)>, inside: &dyn Fn(f64) -> f64) -> Vec<(Place, f64)> {
    let mut kept = Vec::new();
    for (at, (place, value)) in polygon.iter().enumerate() {
        let (next, next_value) = polygon[(at + 1) % polygon.len()];
        let (here, there) = (inside(*value), inside(next_value));
        if here >= 0.0 {
            kept.push((*place, *value));
        }
        if (here < 0.0) != (there < 0.0) {
            let share = here / (here - there);
            let along = |from: f64, to: f64| from + share * (to - from);
            let cut = (along(place.0, next.0), along(place.1, next.1));
            kept.push((cut, along(*value, next_value)));
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn total(points: &[Place], found: &[[usize; 3]]) -> f64 {
        let areas = found
            .iter()
            .map(|corners| 0.5 * area(corners.map(|corner| points[corner])));
        areas.sum()
    }

    #[test]
    fn a_grid_is_covered_once() {
        let points: Vec<Place> = (0..30)
            .map(|at| (f64::from(at % 6) / 5.0, f64::from(at / 6) / 4.0))
            .collect();
        let found = triangles(&points);
        assert!((total(&points, &found) - 1.0).abs() < 1e-3, "{found:?}");
        assert_eq!(found.len(), 2 * 5 * 4);
    }

    #[test]
    fn no_point_is_in_the_circle_of_a_triangle() {
        let points: Vec<Place> = (1..60_u64)
            .map(|at| {
                let part = |salt: u64| (at.wrapping_mul(salt) >> 11) as f64 / (1u64 << 53) as f64;
                (part(0x9e37_79b9_7f4a_7c15), part(0xd1b5_4a32_d192_ed03))
            })
            .collect();
        let found = triangles(&points);
        for corners in &found {
            let circle = corners.map(|corner| points[corner]);
            let inside = (0..points.len())
                .filter(|at| !corners.contains(at))
                .filter(|at| is_around(circle, points[*at]));
            // Those that are on the circle to within the nudge.
            let inside: Vec<usize> = inside
                .filter(|at| {
                    let (x, y) = points[*at];
                    is_around(circle, (x + 1e-4, y)) && is_around(circle, (x - 1e-4, y))
                })
                .collect();
            assert_eq!(inside, [0; 0], "{corners:?}");
        }
        assert!(found.len() > 90 && total(&points, &found) > 0.7);
    }

    #[test]
    fn points_on_a_line_have_no_triangles() {
        assert_eq!(triangles(&[]), [[0; 3]; 0]);
        assert_eq!(triangles(&[(0.5, 0.5)]), [[0; 3]; 0]);
        let line: Vec<Place> = (0..9).map(|at| (f64::from(at) / 8.0, 0.5)).collect();
        assert_eq!(triangles(&line), [[0; 3]; 0]);
        assert_eq!(triangles(&[(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)]).len(), 1);
    }

    #[test]
    fn levels_divide_a_triangle() {
        let corners = [((0.0, 0.0), 0.0), ((1.0, 0.0), 1.0), ((0.0, 1.0), 0.0)];
        let of = |low, high| {
            let polygon = between(corners, low, high);
            let fan = (1..polygon.len().max(2) - 1)
                .map(|at| 0.5 * area([polygon[0], polygon[at], polygon[at + 1]]));
            fan.sum::<f64>()
        };
        assert!((of(-1.0, 2.0) - 0.5).abs() < 1e-12);
        assert!((of(0.5, 2.0) - 0.125).abs() < 1e-12);
        assert!((of(0.0, 0.5) - 0.375).abs() < 1e-12);
        assert_eq!(between(corners, 2.0, 3.0), []);
    }
}
