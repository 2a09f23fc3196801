//! What `backend.arithmetic = "portable"` can be combined with.

use super::Point;
use super::network::portable::{Missing, missing};
use crate::diagnostic::Diagnostic;
use crate::spec::backend::{Backend, Precision};
use crate::spec::loss::LossFunction;
use crate::spec::method::Method;
use crate::spec::metric::Metric;
use crate::spec::model::layer::LayerKind;
use crate::spec::section::Choice;
use crate::spec::strategy::StrategySpec;

/// The reason in every diagnostic here.
const REASON: &str = "`backend.arithmetic` is \"portable\": everything is computed with the same bits on every processor";

fn refused(point: &Point<'_>, key: &str, message: String) -> Diagnostic {
    let diagnostic = Diagnostic::error("contradiction", message).at(point.span(key));
    diagnostic.note(REASON)
}

pub fn place_is_portable(point: &Point<'_>) -> Option<Diagnostic> {
    let backend = &point.spec.backend;
    if backend.arithmetic.is_fast() {
        return None;
    }
    let [key, found, needed] = if backend.device.map(|device| device.backend) != Some(Backend::Flex)
    {
        let name = backend
            .device
            .map_or("auto".into(), |device| device.to_string());
        ["device", &name.clone(), "flex"].map(str::to_owned)
    } else if backend.precision != Precision::F32 {
        ["precision", backend.precision.name(), "f32"].map(str::to_owned)
    } else if !backend.kernels.is_fast() {
        ["kernels", backend.kernels.name(), "fast"].map(str::to_owned)
    } else {
        return None;
    };
    let message = format!(
        "portable arithmetic needs `{key} = \"{needed}\"`, and `backend.{key}` is \"{found}\""
    );
    let diagnostic = refused(point, &format!("backend.{key}"), message);
    Some(diagnostic.help(format!(
        "write `{key} = \"{needed}\"`, or `arithmetic = \"fast\"`"
    )))
}

pub fn layers_are_portable(point: &Point<'_>) -> Option<Diagnostic> {
    if point.spec.backend.arithmetic.is_fast() {
        return None;
    }
    let layers = point.network?.layers.iter().zip(&point.spec.model.layers);
    let (layer, spec, what) = layers
        .filter_map(|(layer, spec)| Some((layer, spec, missing(&layer.kind)?)))
        .next()?;
    let name = layer.kind.type_name();
    let (message, key, help) = match what {
        Missing::Initializer => (
            format!(
                "`{}`: orthogonal weights are not available with portable arithmetic",
                layer.name
            ),
            "initializer",
            "choose another initializer, such as `xavier_uniform`, or write `arithmetic = \"fast\"`",
        ),
        Missing::Own => (
            format!(
                "`{}`: `{name}` is a layer type of this program, and runner cannot know how it rounds",
                layer.name
            ),
            "type",
            "use built-in layers, or write `arithmetic = \"fast\"`",
        ),
        Missing::Layer => (
            format!(
                "`{}`: `{name}`{} is not available with portable arithmetic",
                layer.name,
                match layer.kind {
                    LayerKind::Pool(_) | LayerKind::MultiHeadAttention { .. } =>
                        " with these settings",
                    _ => "",
                }
            ),
            "type",
            "choose another layer, or write `arithmetic = \"fast\"`",
        ),
    };
    let diagnostic = Diagnostic::error("contradiction", message).note(REASON);
    Some(spec.point(diagnostic, key).help(help))
}

pub fn loss_is_portable(point: &Point<'_>) -> Option<Diagnostic> {
    if point.spec.backend.arithmetic.is_fast() {
        return None;
    }
    let main = point.spec.loss.as_ref();
    let main = main.map(|loss| ("loss".to_owned(), &loss.function));
    let terms = point.spec.losses.iter().enumerate();
    let terms = terms.map(|(at, term)| (format!("losses[{at}]"), &term.loss.function));
    main.into_iter().chain(terms).find_map(|(path, function)| {
        let (name, other) = unportable(function)?;
        let message = format!("the loss `{name}` is not available with portable arithmetic");
        let help = format!("{other}, or write `arithmetic = \"fast\"`");
        Some(refused(point, &format!("{path}.type"), message).help(help))
    })
}

/// A loss that is not computed portably, with what to do instead.
fn unportable(function: &LossFunction) -> Option<(&str, &'static str)> {
    match function {
        LossFunction::Own { used, .. } => Some((&used.part, "use a built-in loss")),
        LossFunction::Lp { .. } => Some(("lp", "choose another loss, such as `mae`")),
        LossFunction::MultiMargin { .. } => Some((
            "multi_margin",
            "choose another loss, such as `cross_entropy`",
        )),
        LossFunction::CrossEntropy { .. }
        | LossFunction::Dice { .. }
        | LossFunction::BinaryCrossEntropy { .. }
        | LossFunction::SoftMargin
        | LossFunction::Mse
        | LossFunction::Mae
        | LossFunction::Quantile { .. }
        | LossFunction::Huber { .. }
        | LossFunction::SmoothL1 { .. }
        | LossFunction::PoissonNll { .. }
        | LossFunction::GaussianNll
        | LossFunction::KlNormal
        | LossFunction::L1
        | LossFunction::L2
        | LossFunction::Gan
        | LossFunction::Lsgan
        | LossFunction::HingeGan
        | LossFunction::Wgan { .. }
        | LossFunction::WganGp { .. } => None,
    }
}

pub fn metrics_are_portable(point: &Point<'_>) -> Option<Diagnostic> {
    if point.spec.backend.arithmetic.is_fast() {
        return None;
    }
    let main = ("task".to_owned(), &point.spec.task.metrics);
    let terms = point.spec.losses.iter().enumerate();
    let terms = terms.map(|(at, term)| (format!("losses[{at}]"), &term.metrics));
    [main].into_iter().chain(terms).find_map(|(path, metrics)| {
        let own = |metric: &&Metric| matches!(metric, Metric::Own(_));
        let name = metrics.as_ref()?.iter().find(own)?.name();
        let message = format!("the metric `{name}` is not available with portable arithmetic");
        let help = "remove it, or write `arithmetic = \"fast\"`";
        Some(refused(point, &format!("{path}.metrics"), message).help(help))
    })
}

pub fn updates_are_portable(point: &Point<'_>) -> Option<Diagnostic> {
    if point.spec.backend.arithmetic.is_fast() {
        return None;
    }
    if let Some(used) = point.spec.scheduler.own() {
        let name = &used.part;
        let message = format!("the schedule `{name}` is not available with portable arithmetic");
        let help = "use a built-in schedule, or write `arithmetic = \"fast\"`";
        return Some(refused(point, "scheduler.type", message).help(help));
    }
    if let StrategySpec::Own { used, .. } = &point.spec.strategy {
        let name = &used.part;
        let message = format!("the strategy `{name}` is not available with portable arithmetic");
        let help = "use a built-in strategy, or write `arithmetic = \"fast\"`";
        return Some(refused(point, "strategy.type", message).help(help));
    }
    let optimizer = &point.spec.optimizer;
    let unportable = match &optimizer.method {
        Method::Adafactor { .. } => Some("adafactor"),
        Method::Own { used, .. } => Some(used.part.as_str()),
        Method::Sgd { .. }
        | Method::Adam(_)
        | Method::Adamw(_)
        | Method::Adagrad { .. }
        | Method::Rmsprop { .. }
        | Method::Adan { .. }
        | Method::Lamb { .. }
        | Method::Lion { .. }
        | Method::Muon { .. } => None,
    };
    if let Some(name) = unportable {
        let message = format!("the optimizer `{name}` is not available with portable arithmetic");
        let help = "choose another optimizer, such as `adamw`, or write `arithmetic = \"fast\"`";
        return Some(refused(point, "optimizer.type", message).help(help));
    }
    let clip = optimizer.clip.as_ref()?;
    clip.norm.map(|_| {
        let message = "`optimizer.clip.norm` is not available with portable arithmetic".into();
        let help = "clip by `global_norm` or `value`, or write `arithmetic = \"fast\"`";
        refused(point, "optimizer.clip.norm", message).help(help)
    })
}
