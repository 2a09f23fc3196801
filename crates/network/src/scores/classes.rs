//! How often classes are chosen, and how often rightly.

use burn::tensor::{Bool, Int, Tensor};

use super::measured::Measured;
use runner_core::spec::backend::Kernels;

/// Counts the positions that have a class, \[rows, 1\], and those for which the highest of the scores, \[rows, classes\],
/// is that of their class; with `counts_each` also how often each class is chosen, wanted and both.
pub(super) fn count(
    kernels: Kernels,
    (outputs, classes): (&Tensor<2>, &Tensor<2, Int>),
    counts_each: bool,
    to: &mut Measured,
) {
    #[cfg(feature = "flex")]
    if kernels.is_fast() && count_on_host(outputs, classes, counts_each, to) {
        return;
    }
    let _ = kernels;
    count_on_device(outputs, classes, counts_each, to);
}

/// Counts on the host, for scores that are there: one pass, and nothing to read back. Returns whether it did.
#[cfg(feature = "flex")]
fn count_on_host(
    outputs: &Tensor<2>,
    classes: &Tensor<2, Int>,
    counts_each: bool,
    to: &mut Measured,
) -> bool {
    let Some(chosen) = crate::fast::chosen::classes(outputs) else {
        return false;
    };
    let num_classes = if counts_each { outputs.dims()[1] } else { 0 };
    let mut each = [(); 3].map(|()| vec![0; num_classes]);
    let (mut num_counted, mut num_right) = (0u32, 0u32);
    for (chosen, wanted) in chosen.into_iter().zip(classes.to_data().iter::<i64>()) {
        // An ignored position has no class, so it is never right.
        let Ok(wanted) = usize::try_from(wanted) else {
            continue;
        };
        num_counted += 1;
        let mut add = |of: usize, class: usize| {
            if let Some(count) = each[of].get_mut(class) {
                *count += 1;
            }
        };
        add(1, chosen);
        add(2, wanted);
        if chosen == wanted {
            num_right += 1;
            add(0, wanted);
        }
    }
    to.know("counted", f64::from(num_counted));
    to.know("right", f64::from(num_right));
    if counts_each {
        for (name, counts) in ["both", "chosen", "wanted"].into_iter().zip(each) {
            to.know_counts(name, counts);
        }
    }
    true
}

/// The same on the device.
fn count_on_device(
    outputs: &Tensor<2>,
    classes: &Tensor<2, Int>,
    counts_each: bool,
    to: &mut Measured,
) {
    let dims = outputs.dims();
    let is_counted = classes.clone().greater_equal_scalar(0);
    to.count("counted", is_counted.clone().int().sum());
    let chosen = outputs.clone().argmax(1);
    let right = chosen.clone().equal(classes.clone());
    to.count("right", right.int().sum());
    if counts_each {
        let each = Tensor::<1, Int>::arange(0..dims[1] as i64, &outputs.device());
        let each = each.unsqueeze_dim::<2>(0).expand(dims);
        let is = |of: Tensor<2, Int>| of.expand(dims).equal(each.clone());
        let chosen = is(chosen).bool_and(is_counted.expand(dims));
        let wanted = is(classes.clone());
        count_each(chosen, wanted, to);
    }
}

/// Counts how often each class or label is chosen, wanted and both, \[rows, classes\].
pub(super) fn count_each(chosen: Tensor<2, Bool>, wanted: Tensor<2, Bool>, to: &mut Measured) {
    let total = |of: Tensor<2, Bool>| of.int().sum_dim(0).flatten(0, 1);
    to.counts("both", total(chosen.clone().bool_and(wanted.clone())));
    to.counts("chosen", total(chosen));
    to.counts("wanted", total(wanted));
}
