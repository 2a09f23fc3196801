//! What a learning rate range test (Smith, 2017) suggests: a training whose rate rises from update to update.

use serde::Serialize;

/// An update of a range test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatePoint {
    /// The learning rate.
    pub learning_rate: f64,
    /// The loss before the update.
    pub loss: f64,
    /// The moving average of the losses so far.
    pub smoothed: f64,
}

/// The fraction of the moving average that is kept at each update.
const KEPT: f64 = 0.98;
/// The first updates are left out: losses fall in them whatever the rate, and their average is one of few.
const BEGINNING: usize = 10;
/// The last update is left out: its slope has one side.
const END: usize = 1;

/// The losses of a range test, smoothed by an exponential moving average that is not biased to 0.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RateRange {
    points: Vec<RatePoint>,
    average: f64,
    /// The sum of the average's weights, where that of the last loss is 1.
    weights: f64,
}

impl RateRange {
    /// Adds the loss of an update.
    pub fn add(&mut self, learning_rate: f64, loss: f64) {
        self.weights = 1.0 + KEPT * self.weights;
        // As a step towards the loss, so that losses that do not change are not changed by rounding.
        self.average += (loss - self.average) / self.weights;
        self.points.push(RatePoint {
            learning_rate,
            loss,
            smoothed: self.average,
        });
    }

    /// The updates so far.
    pub fn points(&self) -> &[RatePoint] {
        &self.points
    }

    /// The updates after the beginning.
    fn settled(&self) -> &[RatePoint] {
        &self.points[BEGINNING.min(self.points.len() / 2)..]
    }

    /// The update with the lowest smoothed loss, after the beginning.
    pub fn minimum(&self) -> Option<&RatePoint> {
        let by_loss = |a: &&RatePoint, b: &&RatePoint| a.smoothed.total_cmp(&b.smoothed);
        self.settled().iter().min_by(by_loss)
    }

    /// Whether the smoothed loss fell by more than twice the error of an average of as many losses as the beginning has.
    fn has_fallen(&self) -> bool {
        let (Some(first), Some(least)) = (self.settled().first(), self.minimum()) else {
            return false;
        };
        let before = self.points.iter();
        let before = before.take_while(|point| point.learning_rate <= least.learning_rate);
        let residuals = before.map(|point| (point.loss - point.smoothed).powi(2));
        let (num, sum) = residuals.fold((0.0, 0.0), |(num, sum), square| (num + 1.0, sum + square));
        let error = (sum / f64::max(num, 1.0) / BEGINNING as f64).sqrt();
        first.smoothed - least.smoothed > 2.0 * error
    }

    /// Whether the smoothed loss is four times its minimum; if it can be negative, whether it is as far above it as three
    /// times the way that it fell. Never in the beginning.
    pub fn has_diverged(&self) -> bool {
        let (Some(first), Some(last), Some(least)) =
            (self.points.first(), self.points.last(), self.minimum())
        else {
            return false;
        };
        if self.points.len() <= BEGINNING {
            return false;
        }
        let fallen = first.smoothed - least.smoothed;
        last.smoothed > least.smoothed + 3.0 * least.smoothed.abs().max(fallen)
    }

    /// The learning rate at which the smoothed loss falls most steeply over the logarithm of the rate, if it falls: by the
    /// slope between updates around it, of which several are in between in a long test, so that no single batch decides.
    pub fn steepest(&self) -> Option<f64> {
        let points = &self.points;
        let around = (points.len() / 20).max(1);
        let first = BEGINNING.min(points.len() / 10) + around;
        let last = points.len().checked_sub(END + around - 1)?;
        let slope = |at: &usize| {
            let (before, after) = (&points[at - around], &points[at + around]);
            let way = (after.learning_rate / before.learning_rate).ln();
            (after.smoothed - before.smoothed) / way
        };
        let inner = first..last.max(first);
        let steepest = inner.min_by(|a, b| slope(a).total_cmp(&slope(b)))?;
        (slope(&steepest) < 0.0 && self.has_fallen()).then(|| points[steepest].learning_rate)
    }

    /// A tenth of the learning rate with the lowest smoothed loss, if the loss fell at all and such a rate was tried.
    pub fn tenth_of_minimum(&self) -> Option<f64> {
        let (first, least) = (self.points.first()?, self.minimum()?);
        let tenth = least.learning_rate / 10.0;
        (self.has_fallen() && tenth >= first.learning_rate).then_some(tenth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The losses of a quadratic bowl seen by a rate: flat, falling around 1e-2, rising from 1 on.
    fn range(mut loss: impl FnMut(f64) -> f64) -> RateRange {
        let mut range = RateRange::default();
        for step in 0..101 {
            let rate = 1e-5 * 10f64.powf(step as f64 / 20.0);
            range.add(rate, loss(rate));
        }
        range
    }

    #[test]
    fn losses_that_do_not_change_are_not_smoothed() {
        let range = range(|_| 2.0);
        assert!(
            range
                .points()
                .iter()
                .all(|point| (point.smoothed - 2.0).abs() < 1e-12)
        );
        assert_eq!((range.steepest(), range.tenth_of_minimum()), (None, None));
        assert!(!range.has_diverged());
        let empty = RateRange::default();
        assert_eq!((empty.steepest(), empty.tenth_of_minimum()), (None, None));
        assert!(!empty.has_diverged());
    }

    #[test]
    fn the_suggestions_are_where_the_loss_falls() {
        // A step down at 1e-3, and up at 0.3: the average follows some updates later.
        let range = range(|rate| {
            if rate < 1e-3 {
                3.0
            } else if rate < 0.3 {
                1.0
            } else {
                50.0
            }
        });
        let steepest = range.steepest().unwrap();
        assert!((1e-3..2e-3).contains(&steepest), "{steepest}");
        let tenth = range.tenth_of_minimum().unwrap();
        assert!((0.02..0.03).contains(&tenth), "{tenth}");
        assert!(range.has_diverged());
    }

    /// A moving average as in the formula of Kingma and Ba (2015), by hand.
    #[test]
    fn averages_are_not_biased_to_zero() {
        let mut range = RateRange::default();
        range.add(0.1, 4.0);
        range.add(0.2, 2.0);
        let smoothed: Vec<f64> = range.points().iter().map(|point| point.smoothed).collect();
        let second = (0.98 * 0.02 * 4.0 + 0.02 * 2.0) / (1.0 - 0.98 * 0.98);
        assert!((smoothed[0] - 4.0).abs() < 1e-12);
        assert!((smoothed[1] - second).abs() < 1e-12);
    }

    /// The first batch has a small loss by chance, and none after it falls.
    #[test]
    fn noise_is_no_suggestion() {
        let mut losses = (0..).map(|at| 1.0 + 0.5 * f64::from((at * 7919) % 101 - 50) / 50.0);
        let mut noise = range(|_| losses.next().unwrap());
        assert_eq!((noise.steepest(), noise.tenth_of_minimum()), (None, None));
        noise = RateRange::default();
        noise.add(1e-7, 0.01);
        for step in 1..9 {
            noise.add(1e-7 * f64::from(step), 1.0);
            assert!(!noise.has_diverged(), "{step}");
        }
    }

    #[test]
    fn negative_losses_diverge_when_they_rise() {
        let mut range = RateRange::default();
        for loss in [1.0, -1.0, -2.0].iter().chain(&[-2.0; 12]) {
            range.add(0.1, *loss);
        }
        assert!(!range.has_diverged());
        for _ in 0..20 {
            range.add(0.1, 30.0);
        }
        assert!(range.has_diverged());
    }
}
