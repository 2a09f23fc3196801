//! The gradient is that of the loss, and updates that follow each other are learned.

use super::*;

/// Updates in the plane: each is the one before it, turned and shortened. Returns the inner products of each with the
/// two before it.
fn spiral(num: usize, angle: f64, shrink: f64) -> Vec<Vec<f64>> {
    let mut update = [1.0_f64, 0.0];
    let mut all = vec![update];
    for _ in 0..num + 2 {
        let [x, y] = update;
        let (sin, cos) = (libm::sin(angle), libm::cos(angle));
        update = [shrink * (cos * x - sin * y), shrink * (sin * x + cos * y)];
        all.push(update);
    }
    let products = |three: &[[f64; 2]]| -> Vec<f64> {
        let pairs = three.iter().flat_map(|a| three.iter().map(move |b| (a, b)));
        pairs.map(|(a, b)| a[0] * b[0] + a[1] * b[1]).collect()
    };
    all.windows(3).take(num).map(products).collect()
}

fn observed(num: usize) -> Rssm {
    let mut rssm = Rssm::new(2, 7);
    for (at, products) in spiral(num, 0.3, 0.95).iter().enumerate() {
        let loss = 1.0 + libm::exp(-(at as f64) / 50.0);
        rssm.observe(products, (loss, (at % 3 > 0).then_some(0.5 + loss)));
    }
    rssm
}

#[test]
fn the_gradient_is_that_of_the_loss() {
    let mut rssm = observed(11);
    // The head starts with zeros, which would hide what is behind it.
    let drawn = uniform(rssm.parameters.len(), 0.3, 3, Purpose::Predictor, 0);
    rssm.parameters
        .iter_mut()
        .zip(drawn)
        .for_each(|(value, more)| *value += more);
    let layout = Layout::new(2);
    let loss = |rssm: &Rssm| -> f64 {
        let steps = rssm.steps(&layout);
        let each = steps.iter().zip(&rssm.window);
        each.map(|(step, seen)| step.loss(&seen.features) + seen.error(&step.factors))
            .sum()
    };
    let gradient = rssm.gradient(&layout);
    let largest = gradient
        .iter()
        .fold(0.0, |most: f64, value| most.max(value.abs()));
    for (at, value) in gradient.iter().enumerate() {
        let moved = |by: f64| {
            let mut rssm = rssm.clone();
            rssm.parameters[at] += by;
            loss(&rssm)
        };
        let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
        assert!(
            (slope - value).abs() < 1e-7 * largest,
            "{at}: {slope} and {value}"
        );
    }
}

/// How far the first imagined updates are from the real ones, relative to them.
fn misses(rssm: &Rssm, angle: f64, shrink: f64) -> Vec<f64> {
    // Coordinates in which the last known update is (1, 0).
    let at = |steps: i32| {
        let size = shrink.powi(steps);
        let angle = angle * f64::from(steps);
        [size * libm::cos(angle), size * libm::sin(angle)]
    };
    let imagined = rssm.imagine(5).into_iter().zip(1..);
    imagined
        .map(|(factors, step)| {
            let known = factors.iter().zip([at(-2), at(-1), at(0)]);
            let sum = known.fold([0.0, 0.0], |[x, y], (factor, update)| {
                [x + factor * update[0], y + factor * update[1]]
            });
            let wanted = at(step);
            let apart = ((sum[0] - wanted[0]).powi(2) + (sum[1] - wanted[1]).powi(2)).sqrt();
            apart / shrink.powi(step)
        })
        .collect()
}

#[test]
fn it_learns_how_updates_follow_each_other() {
    let before = misses(&Rssm::new(2, 7), 0.3, 0.95);
    let after = misses(&observed(600), 0.3, 0.95);
    assert!(before[0] > 0.29 && before[4] > 1.0, "{before:?}");
    assert!(after[0] < 0.1 && after[4] < 0.6, "{after:?}");
}

#[test]
fn what_it_knows_is_saved_to_the_bit() {
    let rssm = observed(20);
    let text = serde_json::to_string(&rssm).unwrap();
    let mut again: Rssm = serde_json::from_str(&text).unwrap();
    assert_eq!(again, rssm);
    let [next] = spiral(1, 0.3, 0.9).try_into().unwrap();
    let mut rssm = rssm;
    again.observe(&next, (0.7, None));
    rssm.observe(&next, (0.7, None));
    assert_eq!(again.imagine(3), rssm.imagine(3));
}

#[test]
fn what_is_not_finite_teaches_nothing() {
    let rssm = observed(20);
    for (products, loss) in [
        ([f64::NAN; 9], 1.0),
        ([0.0; 9], 1.0),
        ([1.0; 9], f64::INFINITY),
    ] {
        let mut other = rssm.clone();
        other.observe(&products, (loss, None));
        assert_eq!(other, rssm);
    }
}
