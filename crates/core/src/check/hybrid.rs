//! The rules of `[strategy] type = "hybrid"`.

use super::Point;
use super::recipe::contradiction;
use crate::diagnostic::Diagnostic;

/// A training that ends before its first prediction.
pub fn something_is_predicted(point: &Point<'_>) -> Option<Diagnostic> {
    let hybrid = point.spec.strategy.hybrid()?;
    let train = &point.spec.train;
    let per_epoch = point.data?.num_train.div_ceil(train.batch_size.max(1));
    let num_steps = train.epochs.saturating_mul(per_epoch);
    let before = hybrid.warmup_steps.saturating_add(hybrid.full_steps);
    (before >= num_steps).then(|| {
        let message = format!(
            "`strategy.warmup_steps` is {} and `strategy.full_steps` is {}, but training has {num_steps} steps: nothing would be predicted",
            hybrid.warmup_steps, hybrid.full_steps
        );
        let help = if num_steps > 2 {
            format!("set fewer (together at most {}), or train more epochs", num_steps - 1)
        } else {
            "train more epochs".to_owned()
        };
        contradiction(point, "strategy.warmup_steps", message).help(help)
    })
}

/// A probe larger than its split.
pub fn probe_fits_split(point: &Point<'_>) -> Option<Diagnostic> {
    let hybrid = point.spec.strategy.hybrid()?;
    let batch = point.spec.train.batch_size.max(1);
    let num_train = point.data?.num_train;
    let most = num_train.div_ceil(batch);
    (hybrid.probe_batches > most).then(|| {
        let message = format!(
            "`strategy.probe_batches` is {}, but the train split has {most} batches",
            hybrid.probe_batches
        );
        contradiction(point, "strategy.probe_batches", message).help(format!("set at most {most}"))
    })
}

/// Averages would follow updates that may be rolled back.
pub fn no_average_of_predictions(point: &Point<'_>) -> Option<Diagnostic> {
    point.spec.strategy.hybrid()?;
    point.spec.train.ema?;
    let message = "`[train.ema]` does not work with `strategy.type = \"hybrid\"`";
    Some(
        contradiction(point, "train.ema", message)
            .note("an average would contain predicted weights that are rolled back later")
            .help("remove `[train.ema]`, or use another strategy"),
    )
}
