//! Metrics of numbers: errors, scaled and in the units of the data, and the similarity of images.

use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Tensor, TensorData};

use super::measured::{self, InUnits, Measured};
use super::{Scores, of_own};
use crate::numeric::{self, exp, mean_axis, softplus};
use crate::own::{self, LossTargets};
use runner_core::data::encode::Unit;
use runner_core::spec::backend::Arithmetic;
use runner_core::spec::loss::LossFunction;
use runner_core::spec::metric::Metric;

impl Scores {
    /// `targets` is \[batch, values\]; with `factors`, means over the values of an item are multiplied by its factor.
    pub(super) fn measure_values(
        &self,
        outputs: Tensor<2>,
        targets: Tensor<2>,
        factors: Option<Tensor<1>>,
        to: &mut Measured,
    ) {
        let [num_items, num_values] = targets.dims();
        to.know("items", num_items as f64);
        let predicted = self.predicted(outputs, num_values);
        if self.wants(&[Metric::R2, Metric::Rmse, Metric::TargetRmse]) {
            to.pairs(predicted.clone(), targets.clone());
        }
        if self.wants(&[Metric::Mape]) {
            let in_units = InUnits::Relative;
            to.in_units(predicted.clone(), targets.clone(), &self.units, in_units);
        }
        for own in self.own() {
            let wanted = self.in_units(targets.clone(), measured::target_in_units);
            let wanted = LossTargets::Values(wanted);
            let predicted = self.in_units(predicted.clone(), measured::in_units);
            let rows = own::of_rows(own, predicted, wanted, None);
            to.columns(of_own(own), rows);
        }
        let errors = predicted.clone() - targets.clone();
        let mean_of = |each: Tensor<2>| {
            let means = mean_axis(self.arithmetic, each, 1).flatten(0, 1);
            match &factors {
                Some(factors) => means * factors.clone(),
                None => means,
            }
        };
        let absolute = |errors: Tensor<2>| mean_of(errors.abs());
        if self.wants(&[Metric::Mae]) {
            to.sum("absolute", absolute(errors.clone()));
        }
        if !self.is_linear() {
            for (metric, in_units) in [
                (Metric::TargetMae, InUnits::Absolute),
                (Metric::TargetRmse, InUnits::Squared),
            ] {
                if self.wants(&[metric]) {
                    to.in_units(predicted.clone(), targets.clone(), &self.units, in_units);
                }
            }
        } else if self.wants(&[Metric::TargetMae]) {
            let factors = (0..num_values).map(|value| self.unit(value).0);
            let factors = TensorData::new(factors.collect(), [1, num_values]);
            let factors: Tensor<2> = Tensor::from_data(factors, &errors.device());
            to.sum("target_absolute", absolute(errors.clone() * factors));
        }
        let squared = |errors: Tensor<2>| mean_of(errors.square());
        if self.wants(&[Metric::Mse]) {
            to.sum("squared", squared(errors.clone()));
        }
        if self.wants(&[Metric::Psnr]) {
            match self.pixels.of_all() {
                Some((unit, _)) => to.decibels(f64::from(unit).powi(2), squared(errors)),
                None => {
                    let [units, _] = self.of_pixels(num_values, &errors.device());
                    to.decibels(1.0, squared(errors * units));
                }
            }
        }
        if let (Some([channels, height, width]), true) = (self.image, self.wants(&[Metric::Ssim])) {
            let shape = [num_items, channels, height, width];
            let of_each = self.of_pixels(num_values, &predicted.device());
            let low = self.pixels.low();
            let images = |flat: Tensor<2>| match self.pixels.of_all() {
                Some((unit, zero)) => (flat * unit + (zero + low)).reshape(shape),
                None => {
                    let [units, zeros] = of_each.clone();
                    (flat * units + zeros + low).reshape(shape)
                }
            };
            to.sum(
                "similarity",
                similarities(self.arithmetic, images(predicted), images(targets)),
            );
        }
    }

    /// Whether errors in the units of the data are multiples of errors of scaled targets.
    pub(super) fn is_linear(&self) -> bool {
        self.units.iter().all(|unit| unit.linear().is_some())
    }

    /// The factor that brings a value of a target to its units, and what is added then, if all are linear.
    pub(super) fn unit(&self, value: usize) -> (f64, f64) {
        let unit = self.units.get(value).and_then(Unit::linear);
        unit.unwrap_or((1.0, 0.0))
    }

    /// \[batch, values\] in the units of the data.
    fn in_units(&self, values: Tensor<2>, undo: impl Fn(&[Unit], usize, f64) -> f64) -> Tensor<2> {
        let (device, dims) = (values.device(), values.dims());
        if self.is_linear() {
            let [unit, zero] = self.of_values(dims[1], &device);
            return values * unit + zero;
        }
        let data = values.into_data();
        let each = data.iter::<f64>().enumerate();
        let each = each.map(|(at, value)| undo(&self.units, at, value));
        Tensor::from_data(TensorData::new(each.collect(), dims), &device)
    }

    /// What each value is multiplied by to be in the units of the data, and what is added then, \[1, values\].
    fn of_values(&self, num_values: usize, device: &Device) -> [Tensor<2>; 2] {
        let (units, zeros): (Vec<f64>, Vec<f64>) = (0..num_values).map(|at| self.unit(at)).unzip();
        [units, zeros].map(|each| Tensor::from_data(TensorData::new(each, [1, num_values]), device))
    }

    /// What each value is multiplied by to become a pixel, and what is added then, \[1, values\].
    fn of_pixels(&self, num_values: usize, device: &Device) -> [Tensor<2>; 2] {
        let (units, zeros) = self.pixels.of_each(num_values);
        [units, zeros].map(|each| Tensor::from_data(TensorData::new(each, [1, num_values]), device))
    }

    /// The predictions behind the outputs.
    pub fn predicted(&self, outputs: Tensor<2>, num_values: usize) -> Tensor<2> {
        match self.loss {
            LossFunction::GaussianNll => outputs.narrow(1, 0, num_values),
            LossFunction::PoissonNll {
                log_input: true, ..
            } => exp(self.arithmetic, outputs),
            LossFunction::PoissonNll {
                log_input: false, ..
            } => softplus(self.arithmetic, outputs),
            _ => outputs,
        }
    }
}

/// The structural similarity of each pair of images whose range is 1, \[batch\], in Gaussian windows of 11x11 that lie
/// inside the image (Wang et al., 2004).
pub(super) fn similarities(arithmetic: Arithmetic, a: Tensor<4>, b: Tensor<4>) -> Tensor<1> {
    const SIDE: usize = 11;
    const DEVIATION: f64 = 1.5;
    let channels = a.dims()[1];
    let weight = |at: usize| libm::exp(-(at as f64 - 5.0).powi(2) / (2.0 * DEVIATION * DEVIATION));
    let total: f64 = (0..SIDE).map(weight).sum();
    let window = (0..channels * SIDE * SIDE).map(|at| {
        let at = at % (SIDE * SIDE);
        (weight(at / SIDE) * weight(at % SIDE) / (total * total)) as f32
    });
    let window = TensorData::new(window.collect::<Vec<_>>(), [channels, 1, SIDE, SIDE]);
    let window = Tensor::<4>::from_data(window, &a.device());
    let options = ConvOptions::new([1, 1], [0, 0], [1, 1], channels);
    let mean = |images| numeric::conv2d(arithmetic, images, &window, &options);
    let (mean_a, mean_b) = (mean(a.clone()), mean(b.clone()));
    let (square_a, square_b) = (mean_a.clone().square(), mean_b.clone().square());
    let product = mean_a * mean_b;
    let variances =
        mean(a.clone().square()) + mean(b.clone().square()) - square_a.clone() - square_b.clone();
    let covariance = mean(a * b) - product.clone();
    let (c1, c2) = (0.01f64.powi(2), 0.03f64.powi(2));
    let above = (product * 2.0 + c1) * (covariance * 2.0 + c2);
    let below = (square_a + square_b + c1) * (variances + c2);
    let map: Tensor<2> = (above / below).flatten(1, 3);
    mean_axis(arithmetic, map, 1).squeeze_dim(1)
}
