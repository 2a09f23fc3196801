//! The rules of `[strategy] type = "adversarial"`: a generator and a discriminator in one network, and what they exclude.

use std::ops::Range;

use super::Point;
use super::network::heads::{Head, Needs};
use super::network::pair::named;
use super::network::{Documents, Items, Part, Shape};
use super::recipe::contradiction;
use crate::data::DataPlan;
use crate::diagnostic::{Diagnostic, nearest};
use crate::spec::ExperimentSpec;
use crate::spec::adversarial::CONDITION;
use crate::spec::backend::Precision;
use crate::spec::loss::LossFunction;
use crate::spec::model::activation::Activation;
use crate::spec::model::layer::{LayerKind, Norm, Pairwise, Reduction};
use crate::spec::model::layer_spec::{LayerSpec, Source};
use crate::spec::model::parametrization::Parametrization;
use crate::spec::section::Choice;
use crate::spec::task::TaskKind;

/// How the network of an adversarial training looks.
const STRUCTURE: &str = "an adversarial training needs three layers: `{ type = \"noise\", size = 64 }`, the generator, and the discriminator; the last two are blocks with these names";

/// The task of a file whose `task.type` may be missing.
pub(super) fn task_of(point: &Point<'_>, usual: TaskKind) -> TaskKind {
    let by_strategy = match point.spec.strategy.adversarial() {
        Some(_) => TaskKind::Generation,
        None => usual,
    };
    point.spec.task.kind.unwrap_or(by_strategy)
}

/// Whether a task and the data are those of the strategy.
pub(super) fn task_fits(point: &Point<'_>, kind: TaskKind, data: &DataPlan) -> Option<Diagnostic> {
    let is_adversarial = point.spec.strategy.adversarial().is_some();
    let wrong = |message: String, key: &str| Diagnostic::error("task", message).at(point.span(key));
    if kind != TaskKind::Generation {
        return is_adversarial.then(|| {
            let message = format!(
                "`strategy.type` is \"adversarial\", which generates items, but `task.type` is \"{}\"",
                kind.name()
            );
            wrong(message, "task.type").help("remove `type`, or use another strategy")
        });
    }
    if !is_adversarial {
        let message = "`task.type` is \"generation\", but nothing trains a generator";
        return Some(wrong(message.into(), "task.type").help(
            "set `[strategy]` with `type = \"adversarial\"`, or remove `type` to predict the target",
        ));
    }
    let input = &data.input;
    let what = if input.vocabulary.is_some() {
        "are tokens, which have no gradient"
    } else if input.graph.is_some() {
        "are graphs"
    } else if !input.parts.is_empty() {
        "have named inputs"
    } else {
        return None;
    };
    let message = format!(
        "`strategy.type` is \"adversarial\", which generates lists of numbers, but the items of `{}` {what}",
        data.dataset.name()
    );
    Some(
        wrong(message, "strategy.type").help("use other data, such as images, or another strategy"),
    )
}

/// The inputs of a network: the items, and in a conditional pair what they are generated for.
pub(super) fn items(spec: &ExperimentSpec, data: &DataPlan) -> Items {
    let items = Items::of(&data.input, &data.noticed.padding, Documents::of(data));
    let pair = spec.strategy.adversarial();
    let target = pair.filter(|pair| pair.conditional);
    let Some(dims) = target.and_then(|_| data.target.as_condition()) else {
        return items;
    };
    let condition = Part {
        name: CONDITION.to_owned(),
        shape: Shape::numbers(&dims),
    };
    Items {
        parts: vec![condition],
        ..items
    }
}

/// A condition must be in the data.
fn condition_is_there(point: &Point<'_>, data: &DataPlan) -> Result<(), Box<Diagnostic>> {
    if data.target.as_condition().is_some() {
        return Ok(());
    }
    let message = format!(
        "`strategy.conditional` generates items for targets, but the items of `{}` have none",
        data.dataset.name()
    );
    let diagnostic = Diagnostic::error("task", message).at(point.span("strategy.conditional"));
    Err(Box::new(diagnostic.help(
        "name the target in `[data]`, such as `target = \"class\"`, or remove `conditional`",
    )))
}

/// The output of the generator with the shape that it must have, or what is wrong with the two networks.
pub(super) fn head(point: &Point<'_>, data: &DataPlan) -> Result<Option<Head>, Box<Diagnostic>> {
    let Some(spec) = point.spec.strategy.adversarial() else {
        return Ok(None);
    };
    if point.spec.task.output.is_some() {
        let message = "`task.output` has no effect on the task `generation`";
        return Err(Box::new(contradiction(point, "task.output", message).help(
            "remove `output`: the last layer of the discriminator is the last of the network",
        )));
    }
    if spec.conditional {
        condition_is_there(point, data)?;
    }
    let layers = &point.spec.model.layers;
    let generator = part(point, "generator", &spec.generator)?;
    let discriminator = part(point, "discriminator", &spec.discriminator)?;
    parts_follow(point, layers, &generator, &discriminator)?;
    if spec.conditional {
        both_are_conditional(layers, [&generator, &discriminator])?;
    }
    Ok(Some(Head {
        layer: generator.end - 1,
        needs: Needs::Shape(data.input.shape.clone()),
        key: "strategy.generator".into(),
    }))
}

/// The layers of a network that the strategy names.
fn part(point: &Point<'_>, key: &str, name: &str) -> Result<Range<usize>, Box<Diagnostic>> {
    let layers = &point.spec.model.layers;
    let names = || layers.iter().map(|layer| layer.name.as_str());
    let path = format!("strategy.{key}");
    if let Some(range) = named(names(), name) {
        return Ok(range);
    }
    let unset = match point.root.span_at(&path) {
        Some(_) => "",
        None => ", its default",
    };
    let message = format!(
        "`{path}` is \"{name}\"{unset}, but no layer or block of the network has this name"
    );
    let diagnostic = Diagnostic::error("unknown-value", message).at(point.span(&path));
    // The names of blocks in use.
    let blocks = names().map(|layer| layer.split('.').next().unwrap_or(layer));
    Err(Box::new(match nearest(name, blocks) {
        Some(near) => diagnostic.help(format!("did you mean \"{near}\"?")),
        None => diagnostic.note(STRUCTURE).help(format!(
            "give the block the name: `{{ type = \"…\", name = \"{name}\" }}`, or set `{key}` to its name"
        )),
    }))
}

/// Noise goes into the generator, its output into the discriminator, and its score out of the network.
fn parts_follow(
    point: &Point<'_>,
    layers: &[LayerSpec],
    generator: &Range<usize>,
    discriminator: &Range<usize>,
) -> Result<(), Box<Diagnostic>> {
    let refuse = |at: usize, key: &str, message: String, help: &str| {
        let diagnostic = Diagnostic::error("contradiction", message);
        let diagnostic = layers[at].point(diagnostic, key).note(STRUCTURE);
        Err(Box::new(diagnostic.help(help)))
    };
    if generator.start < discriminator.end && discriminator.start < generator.end {
        let message = "`strategy.generator` and `strategy.discriminator` have layers in common";
        return Err(Box::new(
            contradiction(point, "strategy", message)
                .note(STRUCTURE)
                .help("name two blocks, one after the other"),
        ));
    }
    let mut noise = None;
    for (at, layer) in layers.iter().enumerate() {
        let is_noise = matches!(layer.kind, LayerKind::Noise { .. });
        let name = &layer.name;
        if is_noise && noise.replace(at).is_some() {
            let message = format!("`{name}` is a second layer `noise`");
            return refuse(
                at,
                "type",
                message,
                "use one with a larger `size`, and `slice`",
            );
        }
        if is_noise && discriminator.contains(&at) {
            let message = format!("the discriminator has the noise layer `{name}`");
            return refuse(at, "type", message, "move it before the generator");
        }
        if !is_noise && !generator.contains(&at) && !discriminator.contains(&at) {
            let message =
                format!("`{name}` belongs neither to the generator nor to the discriminator");
            return refuse(at, "type", message, "move it into one of the two blocks");
        }
        let owner = layer.weights.map(|weights| weights.owner());
        if owner.is_some_and(|owner| generator.contains(&owner) != generator.contains(&at)) {
            let message = format!("`{name}` shares weights between generator and discriminator");
            return refuse(at, "share", message, "give each network its own weights");
        }
    }
    let Some(noise) = noise else {
        let message = "the generator has no noise to make items from";
        return refuse(
            generator.start,
            "inputs",
            message.into(),
            "add `{ type = \"noise\", size = 64 }` before it",
        );
    };
    for (at, layer) in layers.iter().enumerate() {
        let (inside, what, of) = if generator.contains(&at) {
            (generator, "the generator", noise)
        } else if discriminator.contains(&at) {
            (discriminator, "the discriminator", generator.end - 1)
        } else {
            continue;
        };
        let is_other = |source: &Source| match source {
            Source::Layer(from) => !inside.contains(from) && *from != of,
            Source::Items => at != noise,
            // The condition.
            Source::Part(_) => false,
        };
        if layer.inputs.iter().any(is_other) {
            let (message, help) = (
                format!(
                    "`{}`, a layer of {what}, has an input other than `{}`",
                    layer.name, layers[of].name
                ),
                "put the noise, the generator and the discriminator one after the other, without `inputs` from elsewhere",
            );
            return refuse(at, "inputs", message, help);
        }
    }
    if discriminator.end != layers.len() {
        let message = format!(
            "the last layer of the network is `{}`, not one of the discriminator",
            layers[layers.len() - 1].name
        );
        return refuse(
            layers.len() - 1,
            "type",
            message,
            "move the discriminator to the end",
        );
    }
    Ok(())
}

/// Both networks of a conditional pair take the condition.
fn both_are_conditional(
    layers: &[LayerSpec],
    networks: [&Range<usize>; 2],
) -> Result<(), Box<Diagnostic>> {
    let takes = |layer: &LayerSpec| {
        let mut inputs = layer.inputs.iter();
        inputs.any(|source| matches!(source, Source::Part(_)))
    };
    for (network, what) in networks.into_iter().zip(["generator", "discriminator"]) {
        if layers[network.clone()].iter().any(takes) {
            continue;
        }
        let message = format!(
            "`strategy.conditional` is true, but no layer of the {what} takes `{CONDITION}`"
        );
        let diagnostic = Diagnostic::error("contradiction", message);
        let first = &layers[network.start];
        let diagnostic = first.point(diagnostic, "inputs");
        return Err(Box::new(diagnostic.help(
            "join it with another input, such as `{ type = \"concat\", inputs = [\"previous\", \"condition\"] }`, or remove `conditional`",
        )));
    }
    Ok(())
}

/// Noise is only drawn for generators.
pub fn noise_has_a_use(point: &Point<'_>) -> Option<Diagnostic> {
    if point.spec.strategy.adversarial().is_some() {
        return None;
    }
    let mut layers = point.spec.model.layers.iter();
    let noise = layers.find(|layer| matches!(layer.kind, LayerKind::Noise { .. }))?;
    let message = format!(
        "`{}` is the noise that a generator makes items from, but the network has no generator",
        noise.name
    );
    let wrong = noise.point(Diagnostic::error("contradiction", message), "type");
    Some(wrong.help(
        "set `[strategy]` with `type = \"adversarial\"`; `gaussian_noise` adds noise to the output of a layer",
    ))
}

/// What is about one network that predicts a target.
pub fn nothing_else_is_asked(point: &Point<'_>) -> Option<Diagnostic> {
    point.spec.strategy.adversarial()?;
    let spec = point.spec;
    let has_weights = point.data.is_some_and(|data| data.weight().is_some());
    let asked = [
        (
            "losses",
            !spec.losses.is_empty(),
            "`[[losses]]` adds to the loss of one network, but two have losses of their own",
        ),
        (
            "adapters",
            !spec.adapters.is_empty(),
            "`[[adapters]]` trains a few weights of one network, but two are trained from the start",
        ),
        (
            "predictions",
            spec.predictions
                .as_ref()
                .is_some_and(|asked| !asked.is_empty()),
            "`[predictions]` are of the items of a split, but items are generated from noise",
        ),
        (
            "data",
            has_weights,
            "weights of items have no effect: generated items have none",
        ),
    ];
    let (key, _, message) = asked.into_iter().find(|(_, is_asked, _)| *is_asked)?;
    let help = match key {
        "data" => "remove `weight` from `[data]`, or use another strategy",
        _ => "remove it, or use another strategy",
    };
    Some(
        contradiction(
            point,
            key,
            format!("`strategy.type` is \"adversarial\", and {message}"),
        )
        .help(help),
    )
}

/// What the derivative of a penalty of gradients cannot be computed with.
pub fn penalty_can_be_computed(point: &Point<'_>) -> Option<Diagnostic> {
    let spec = point.spec.strategy.adversarial()?;
    let loss = point.spec.loss.as_ref()?;
    if !matches!(loss.function, LossFunction::WganGp { .. }) {
        return None;
    }
    let precision = point.spec.backend.precision;
    if matches!(precision, Precision::F16 | Precision::Bf16) {
        let message = format!("the loss `wgan_gp` does not work in {}", precision.name());
        return Some(
            contradiction(point, "loss.type", message)
                .note("the derivative of its penalty is computed from small differences, which are lost in 16 bits")
                .help("set `backend.precision = \"f32\"`, or use another loss, such as `hinge_gan`"),
        );
    }
    let layers = &point.spec.model.layers;
    let names = layers.iter().map(|layer| layer.name.as_str());
    let discriminator = named(names, &spec.discriminator)?;
    let wrong = |layer: &LayerSpec, what: &str, help: &str| {
        let message = format!("`{}` {what}", layer.name);
        let diagnostic = Diagnostic::error("contradiction", message);
        layer.point(diagnostic, "type").help(help)
    };
    layers[discriminator].iter().find_map(|layer| {
        if matches!(layer.kind, LayerKind::Norm(Norm::Batch { .. })) {
            Some(wrong(
                layer,
                "makes the score of an item depend on the others of its batch, but the loss `wgan_gp` penalizes the gradient of each item's score (Gulrajani et al., 2017, section 4)",
                "use `layer_norm` or `instance_norm` in the discriminator, or another loss",
            ))
        } else if draws(&layer.kind) {
            Some(wrong(
                layer,
                "is random, but the penalty of the loss `wgan_gp` compares scores of the same function at near points",
                "remove it from the discriminator, or use another loss, such as `hinge_gan`",
            ))
        } else if has_kinks(&layer.kind) {
            Some(wrong(
                layer,
                "has kinks, but the loss `wgan_gp` computes the derivative of gradients as a difference, which is wrong across a kink",
                "use a smooth function, such as `silu`, `gelu` or `tanh`, and strides or `avg_pool2d` for pooling, or another loss",
            ))
        } else if layer.kind.parametrization() == Parametrization::SpectralNorm {
            Some(wrong(
                layer,
                "has a spectral norm, which bounds gradients and changes with each use, but the loss `wgan_gp` penalizes them",
                "remove `parametrization`, or use another loss, such as `hinge_gan`",
            ))
        } else {
            None
        }
    })
}

/// Whether the gradient of a layer's output jumps somewhere.
fn has_kinks(kind: &LayerKind) -> bool {
    match kind {
        LayerKind::Activation(activation) => !matches!(
            activation,
            Activation::Gelu
                | Activation::GeluTanh
                | Activation::Silu
                | Activation::Mish
                | Activation::Celu { .. }
                | Activation::Elu { alpha: 1.0 }
                | Activation::Tanh
                | Activation::Sigmoid
                | Activation::LogSigmoid
                | Activation::Softplus { .. }
                | Activation::Softsign
                | Activation::Tanhshrink
                | Activation::Exp
                | Activation::Erf
                | Activation::Power { .. }
                | Activation::Scale { .. }
                | Activation::Softmax
                | Activation::LogSoftmax
                | Activation::Glu
        ),
        LayerKind::Pool(pool) => pool.max,
        LayerKind::Reduce { operation, .. } => *operation == Reduction::Max,
        LayerKind::Pairwise { operation } => {
            matches!(operation, Pairwise::Maximum | Pairwise::Minimum)
        }
        LayerKind::Prelu { .. } | LayerKind::TopK { .. } | LayerKind::GridSample(_) => true,
        _ => false,
    }
}

/// Whether a layer draws random numbers in training.
fn draws(kind: &LayerKind) -> bool {
    match kind {
        LayerKind::Dropout { probability }
        | LayerKind::ChannelDropout { probability }
        | LayerKind::StochasticDepth { probability } => *probability > 0.0,
        LayerKind::GaussianNoise { .. } | LayerKind::GaussianSample | LayerKind::Noise { .. } => {
            true
        }
        LayerKind::Activation(Activation::Rrelu { lower, upper }) => lower != upper,
        LayerKind::MultiHeadAttention { dropout, .. } => *dropout > 0.0,
        LayerKind::GroupedAttention(attention) => attention.dropout > 0.0,
        LayerKind::TransformerEncoder(stack) | LayerKind::TransformerDecoder(stack) => {
            stack.dropout > 0.0
        }
        _ => false,
    }
}
