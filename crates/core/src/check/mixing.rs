//! Mixed items, changed colors and changed labels, checked against the data and the loss.

use super::Point;
use super::adversarial;
use super::data::contradiction;
use super::task::usual_task;
use crate::data::TargetPlan;
use crate::diagnostic::Diagnostic;
use crate::spec::data::Scale;
use crate::spec::loss::{LossKind, LossSpec};
use crate::spec::section::Choice;
use crate::spec::task::TaskKind;

/// Mixed images have two classes, which cross-entropy takes.
pub fn classes_can_be_mixed(point: &Point<'_>) -> Option<Diagnostic> {
    let (augment, data) = (point.spec.data.augment.as_ref()?, point.data?);
    let key = match (&augment.mixup, &augment.cutmix) {
        (Some(_), _) => "data.augment.mixup",
        (None, Some(_)) => "data.augment.cutmix",
        (None, None) => return None,
    };
    let refuse = |message: String, help: &str| {
        let at = point.span(key);
        Some(contradiction(message).at(at).help(help))
    };
    let kind = adversarial::task_of(point, usual_task(&data.target, data));
    if kind != TaskKind::Classification || !matches!(data.target, TargetPlan::Class { .. }) {
        return refuse(
            format!(
                "`{key}` mixes classes of images, but the task is \"{}\"",
                kind.name()
            ),
            "remove it",
        );
    }
    let loss = point.spec.loss.clone();
    let loss = loss.unwrap_or_else(|| LossSpec::default_for(kind));
    let terms = point.spec.losses.iter();
    let of_classes = terms.filter(|term| term.target.is_none());
    let of_classes = of_classes.filter(|term| !term.loss.function.is_penalty());
    let mut losses = [&loss].into_iter().chain(of_classes.map(|term| &term.loss));
    if let Some(other) = losses.find(|loss| loss.function.kind() != Some(LossKind::CrossEntropy)) {
        return refuse(
            format!(
                "`{key}` mixes classes, which the loss `{}` does not support",
                other.function.name()
            ),
            "use \"cross_entropy\", or remove the table",
        );
    }
    if let Some(term) = point
        .spec
        .losses
        .iter()
        .find(|term| term.columns().is_some())
    {
        return refuse(
            format!(
                "`{key}` mixes the items, but not the other columns that `{}` of `[[losses]]` predicts",
                term.name
            ),
            "remove one of them",
        );
    }
    if data.weight().is_some() {
        return refuse(
            format!("`{key}` mixes items, but `data.weight` gives each a weight of its own"),
            "remove one of them",
        );
    }
    (point.spec.train.batch_size == 1).then(|| {
        contradiction(format!(
            "`{key}` mixes the images of a batch, but batches have one item"
        ))
        .at(point.span("train.batch_size"))
        .help("use larger batches")
    })
}

/// Where pixels of images move, those of other images that belong to them would have to move, too.
pub fn targets_move_with_images(point: &Point<'_>) -> Option<Diagnostic> {
    let (augment, data) = (point.spec.data.augment.as_ref()?, point.data?);
    let &[_, height, width] = &data.input.shape[..] else {
        return None;
    };
    let key = augment.moves()?;
    let is_image = |target: &TargetPlan| match target {
        TargetPlan::Values { shape } | TargetPlan::Classes { shape, .. } => {
            shape.ends_with(&[height, width])
        }
        _ => false,
    };
    let kind = adversarial::task_of(point, usual_task(&data.target, data));
    let moves = |target: &TargetPlan| matches!(target, TargetPlan::Classes { shape, .. } if shape[..] == [height, width]);
    let is_main = !kind.is_of_items() && is_image(&data.target) && !moves(&data.target);
    let other = if is_main {
        "the target, which has their height and width".to_owned()
    } else {
        let at = data.more_targets.iter().position(is_image)?;
        let terms = point.spec.losses.iter();
        let mut terms = terms.filter(|term| term.columns().is_some());
        let name = &terms.nth(at)?.name;
        format!("the target of `{name}` of `[[losses]]`, which has their height and width")
    };
    let message = format!("`data.augment.{key}` moves the pixels of images, but not {other}");
    let help = "remove it; masks that are the main target, with a class for each pixel, are changed with their images";
    let at = point.span(&format!("data.augment.{key}"));
    Some(contradiction(message).at(at).help(help))
}

/// A batch is mixed in one way.
pub fn mixing_is_one_way(point: &Point<'_>) -> Option<Diagnostic> {
    let augment = point.spec.data.augment.as_ref()?;
    let (mixup, cutmix) = (augment.mixup?, augment.cutmix?);
    let sum = mixup.probability + cutmix.probability;
    (sum > 1.0).then(|| {
        let message = format!(
            "the probabilities of `mixup` ({}) and `cutmix` ({}) add up to more than 1, but a batch is mixed in one way",
            mixup.probability, cutmix.probability
        );
        let key = ["cutmix", "mixup"]
            .map(|name| format!("data.augment.{name}.probability"))
            .into_iter()
            .find(|key| point.root.at(key).is_some())
            .unwrap_or("data.augment.cutmix".into());
        contradiction(message)
            .at(point.span(&key))
            .help("set probabilities that add up to at most 1, such as 0.5 each")
    })
}

/// Colors need pixels with three channels.
pub fn colors_are_there(point: &Point<'_>) -> Option<Diagnostic> {
    let (augment, data) = (point.spec.data.augment.as_ref()?, point.data?);
    let &[channels, ..] = &data.input.shape[..] else {
        return None;
    };
    if !augment.changes_colors() || data.input.shape.len() != 3 {
        return None;
    }
    let sizes = [
        ("saturation", augment.saturation),
        ("hue", augment.hue),
        ("brightness", augment.brightness),
        ("contrast", augment.contrast),
    ];
    let (name, _) = sizes.into_iter().find(|(_, size)| *size > 0.0)?;
    let key = format!("data.augment.{name}");
    if matches!(name, "saturation" | "hue") && channels != 3 {
        let message = format!(
            "`{key}` needs images with red, green and blue, but they have {} channel{}",
            channels,
            if channels == 1 { "" } else { "s" }
        );
        let wrong = contradiction(message).at(point.span(&key));
        return Some(
            wrong.help("remove it; `brightness` and `contrast` apply to other images too"),
        );
    }
    (data.scale == Scale::Normalize).then(|| {
        let message = format!(
            "`{key}` changes pixels, but `scale = \"normalize\"` gives each image unit length"
        );
        contradiction(message)
            .at(point.span(&key))
            .help("set another `scale`, such as \"standardize\"")
    })
}

/// Labels that can be changed.
pub fn noise_has_labels(point: &Point<'_>) -> Option<Diagnostic> {
    let data = point.data?;
    let noise = point.spec.data.label_noise;
    if noise == 0.0 {
        return None;
    }
    let at = point.span("data.label_noise");
    if !matches!(data.target, TargetPlan::Class { .. }) {
        let message = format!(
            "`data.label_noise` changes classes, but the items have {}",
            data.target.show()
        );
        return Some(contradiction(message).at(at).help("remove it"));
    }
    (data.num_train > 0 && (noise * data.num_train as f64).round() == 0.0).then(|| {
        let message = format!(
            "`data.label_noise` is {noise}, which is less than one of the {} items of the train split",
            data.num_train
        );
        Diagnostic::warning("no-effect", message)
            .at(at)
            .help("choose a larger fraction, or remove it")
    })
}
