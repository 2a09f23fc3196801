//! The rules of `[[adapters]]`: which weights can be adapted, and what contradicts that.

use wildmatch::WildMatch;

use super::Point;
use super::groups::{matches, shortened};
use super::network::Network;
use crate::diagnostic::{Diagnostic, Severity, nearest};
use crate::spec::backend::{Backend, Precision};
use crate::spec::model::layer_spec::Weights;
use crate::spec::section::Choice;
use crate::spec::strategy::StrategySpec;

/// What can be adapted, for notes.
const ADAPTABLE: &str =
    "matrices of linear layers, attention, transformer stacks and `swiglu` can be adapted";

/// The names of matrices of attention in other libraries, with those here.
const NAMES: [(&str, &str); 5] = [
    ("q_proj", "query"),
    ("k_proj", "key"),
    ("v_proj", "value"),
    ("o_proj", "output"),
    ("out_proj", "output"),
];

/// The pattern here for what other libraries call target modules: the name of a layer alone, perhaps of their own.
fn meant(pattern: &str, matrices: &[String]) -> Option<String> {
    let name = pattern.trim_end_matches(".weight");
    let name = name.trim_matches(['*', '.']);
    let name = name.rsplit('.').next().filter(|name| !name.is_empty())?;
    let other = NAMES.iter().find(|(other, _)| *other == name);
    let pattern = format!("*.{}.weight", other.map_or(name, |(_, here)| here));
    let matcher = WildMatch::new(&pattern);
    let is_there = matrices.iter().any(|path| matcher.matches(path));
    is_there.then_some(pattern)
}

/// The paths of all matrices that can be adapted.
fn matrices(network: &Network) -> Vec<String> {
    let layers = network.layers.iter();
    let all = layers.flat_map(|layer| {
        let matrices = layer.matrices().into_iter();
        matrices.map(|(path, _)| format!("{}.{path}", layer.name))
    });
    all.collect()
}

/// The patterns of one of the keys of all tables, each with its path in the file.
fn patterns(point: &Point<'_>, key: &str) -> Vec<(String, String)> {
    let tables = point.spec.adapters.iter().enumerate();
    let all = tables.flat_map(|(at, table)| {
        let list = if key == "train" {
            &table.train
        } else {
            &table.parameters
        };
        let list = list.iter().enumerate();
        list.map(move |(number, pattern)| {
            let path = format!("adapters[{at}].{key}[{number}]");
            (path, pattern.clone())
        })
    });
    all.collect()
}

/// The place of a pattern: the whole value if it is not in a list.
fn refuse(point: &Point<'_>, code: &'static str, path: &str, message: String) -> Diagnostic {
    Diagnostic::error(code, message).at(point.span(path))
}

/// The path of the list that a pattern is in.
fn list_of(path: &str) -> &str {
    path.rsplit_once('[').map_or(path, |(list, _)| list)
}

fn matches_nothing(
    point: &Point<'_>,
    (path, pattern): &(String, String),
    known: &[String],
    what: &str,
) -> Diagnostic {
    let list = list_of(path);
    let message = format!("`{list}` contains \"{pattern}\", which matches no {what}");
    let mut diagnostic = refuse(point, "unknown-value", path, message);
    if let Some(near) = nearest(pattern, known.iter().map(String::as_str)) {
        diagnostic = diagnostic.help(format!("did you mean \"{near}\"?"));
    }
    diagnostic
}

pub fn weights_can_be_adapted(point: &Point<'_>) -> Option<Diagnostic> {
    let network = point.network?;
    let matrices = matrices(network);
    let others = network.layers.iter().flat_map(|layer| {
        let base = layer.base_parameters().into_iter();
        base.map(move |(path, _)| (layer, format!("{}.{path}", layer.name)))
    });
    let others: Vec<_> = others
        .filter(|(_, path)| !matrices.contains(path))
        .collect();
    patterns(point, "parameters").into_iter().find_map(|known| {
        let (path, pattern) = &known;
        let matcher = WildMatch::new(pattern);
        if let Some((layer, other)) = others.iter().find(|(_, path)| matcher.matches(path)) {
            let list = list_of(path);
            let is_vector = ["bias", "gamma", "beta", "alpha"]
                .iter()
                .any(|name| other.ends_with(name));
            let what = if is_vector {
                format!("`{other}`, but vectors cannot be adapted")
            } else {
                let kind = layer.kind.type_name();
                format!("`{other}` of a `{kind}`, but that cannot be adapted")
            };
            let message = format!("`{list}` contains \"{pattern}\", which matches {what}");
            let diagnostic = refuse(point, "unknown-value", path, message).note(ADAPTABLE);
            let mut adaptable = matrices.iter();
            let found = adaptable.find(|path| matcher.matches(path));
            return Some(match found.or(matrices.first()) {
                Some(example) => diagnostic.help(format!(
                    "use a pattern that only matches such matrices, such as \"{example}\""
                )),
                None => diagnostic.help("remove `[[adapters]]`: the network has no such matrix"),
            });
        }
        if matrices.iter().any(|path| matcher.matches(path)) {
            return None;
        }
        let what = "weight that can be adapted";
        let diagnostic = match meant(pattern, &matrices) {
            None => matches_nothing(point, &known, &matrices, what),
            Some(meant) => matches_nothing(point, &known, &[], what)
                .help(format!("use \"{meant}\", as it is named here")),
        };
        let note = match matrices.as_slice() {
            [] => format!("{ADAPTABLE}, and the network has none"),
            some => format!("the weights that can be adapted are {}", shortened(some)),
        };
        Some(diagnostic.note(note))
    })
}

pub fn weights_are_adapted_once(point: &Point<'_>) -> Option<Diagnostic> {
    let tables = &point.spec.adapters;
    let matrices = matrices(point.network?);
    (1..tables.len()).find_map(|at| {
        let mut twice = matrices
            .iter()
            .filter(|path| matches(&tables[at].parameters, path));
        let path = twice.find(|path| {
            let mut before = tables[..at].iter();
            before.any(|table| matches(&table.parameters, path))
        })?;
        let key = format!("adapters[{at}].parameters");
        let message = format!("`{key}` matches `{path}`, which an earlier table adapts");
        let diagnostic = refuse(point, "contradiction", &key, message);
        Some(diagnostic.help("narrow the patterns so that each weight is in one table"))
    })
}

pub fn adapted_weights_are_not_tied(point: &Point<'_>) -> Option<Diagnostic> {
    let network = point.network?;
    network.layers.iter().enumerate().find_map(|(at, layer)| {
        let adapter = layer.adapters.first()?;
        let path = format!("{}.{}", layer.name, adapter.path);
        let tables = point.spec.adapters.iter();
        let number = tables.clone().position(|table| matches(&table.parameters, &path))?;
        let key = format!("adapters[{number}].parameters");
        let refuse = |message: String| refuse(point, "contradiction", &key, message);
        let mut others = network.layers.iter();
        if let Some(other) = others.find(|other| other.weights == Some(Weights::Tied(at))) {
            let message = format!(
                "`{path}` cannot be adapted: `{}` is tied to it and would change too",
                other.name
            );
            return Some(refuse(message).help(format!(
                "leave it out, or remove `tie` from `{}`",
                other.name
            )));
        }
        layer.freeze.then(|| {
            let message = format!("`{path}` is adapted, but its layer `{}` sets `freeze`", layer.name);
            refuse(message)
                .note("adapted weights are frozen anyway, and everything else is unless `train` names it")
                .help(format!("remove `freeze` from `{}`", layer.name))
        })
    })
}

/// Adapters are added to weights when a run is opened, which leaves nothing to compute weights from.
pub fn weights_are_parameters(point: &Point<'_>) -> Option<Diagnostic> {
    if point.spec.adapters.is_empty() {
        return None;
    }
    let mut layers = point.network?.layers.iter();
    let layer = layers.find(|layer| !layer.kind.parametrization().is_none())?;
    let name = layer.kind.parametrization().name();
    let message = format!(
        "`[[adapters]]` need weights that are parameters, but `{}` sets `parametrization` \"{name}\"",
        layer.name
    );
    let diagnostic = refuse(point, "contradiction", "adapters", message);
    Some(diagnostic.help("remove `parametrization`, or train the weights themselves"))
}

pub fn trained_parameters_are_there(point: &Point<'_>) -> Option<Diagnostic> {
    let network = point.network?;
    let paths: Vec<String> = network
        .layers
        .iter()
        .flat_map(|layer| {
            let base = layer.base_parameters().into_iter();
            base.map(|(path, _)| format!("{}.{path}", layer.name))
        })
        .collect();
    let adapted: Vec<String> = network
        .layers
        .iter()
        .flat_map(|layer| {
            let adapters = layer.adapters.iter();
            adapters.map(|adapter| format!("{}.{}", layer.name, adapter.path))
        })
        .collect();
    let frozen = network.layers.iter().filter(|layer| layer.freeze);
    let frozen: Vec<_> = frozen.map(|layer| format!("{}.", layer.name)).collect();
    patterns(point, "train").into_iter().find_map(|known| {
        let (path, pattern) = &known;
        let list = list_of(path);
        let matcher = WildMatch::new(pattern);
        if let Some(both) = adapted.iter().find(|path| matcher.matches(path)) {
            let message = format!(
                "`{list}` contains \"{pattern}\", which matches `{both}`, but that is adapted"
            );
            let diagnostic = refuse(point, "contradiction", path, message)
                .note("a weight under an adapter is frozen");
            return Some(
                diagnostic.help("narrow the pattern, or leave the weight out of `parameters`"),
            );
        }
        let mut found = paths.iter().filter(|path| matcher.matches(path)).peekable();
        let Some(first) = found.peek() else {
            let diagnostic = matches_nothing(point, &known, &paths, "parameter");
            return Some(diagnostic.note(format!("the parameters are {}", shortened(&paths))));
        };
        let first = (*first).clone();
        let layer = frozen.iter().find(|layer| first.starts_with(*layer))?;
        let is_idle = found.all(|path| frozen.iter().any(|layer| path.starts_with(layer)));
        is_idle.then(|| {
            let layer = layer.trim_end_matches('.');
            let message = format!("`{list}` contains \"{pattern}\", but `{layer}` sets `freeze`");
            let diagnostic = refuse(point, "contradiction", path, message);
            diagnostic.help(format!("remove `freeze` from `{layer}`, or the pattern"))
        })
    })
}

pub fn rank_is_small(point: &Point<'_>) -> Option<Diagnostic> {
    let network = point.network?;
    point.spec.adapters.iter().enumerate().find_map(|(at, table)| {
        let (layer, adapter) = network.layers.iter().find_map(|layer| {
            let mut adapters = layer.adapters.iter();
            let adapter = adapters.find(|adapter| {
                let path = format!("{}.{}", layer.name, adapter.path);
                adapter.rank > adapter.inputs.min(adapter.outputs)
                    && matches(&table.parameters, &path)
            })?;
            Some((layer, adapter))
        })?;
        let least = adapter.inputs.min(adapter.outputs);
        let (rank, path) = (adapter.rank, format!("{}.{}", layer.name, adapter.path));
        let message = format!(
            "`adapters[{at}].rank` is {rank}, but `{path}` is {} x {}: no matrix of that size has a rank above {least}",
            adapter.inputs, adapter.outputs
        );
        let mut diagnostic = Diagnostic::error("out-of-range", message)
            .at(point.span(&format!("adapters[{at}].rank")));
        diagnostic.severity = Severity::Warning;
        Some(diagnostic.help(format!("use a rank of at most {least}, or train the weight itself")))
    })
}

pub fn bases_agree(point: &Point<'_>) -> Option<Diagnostic> {
    let tables = point.spec.adapters.iter().enumerate();
    let mut bases = tables.filter_map(|(at, table)| Some((at, table.base?)));
    let (first, base) = bases.next()?;
    let (at, other) = bases.find(|(_, other)| *other != base)?;
    let key = format!("adapters[{at}].base");
    let message = format!(
        "`{key}` is \"{}\", but `adapters[{first}].base` is \"{}\"",
        other.name(),
        base.name()
    );
    let diagnostic = refuse(point, "contradiction", &key, message)
        .note("it is about all frozen matrices of the network, whichever table adapts them");
    Some(diagnostic.help("make both equal, or remove one"))
}

pub fn base_saves_memory(point: &Point<'_>) -> Option<Diagnostic> {
    let mut tables = point.spec.adapters.iter().enumerate();
    let (at, base) = tables.find_map(|(at, table)| Some((at, table.base?)))?;
    let backend = &point.spec.backend;
    // The best device may be another one, which only the machine knows.
    let device = backend
        .device
        .map_or(Backend::Flex, |device| device.backend);
    if base.is_full() || backend.kernels.are_own(device, backend.precision) {
        return None;
    }
    let key = format!("adapters[{at}].base");
    let message = format!(
        "`{key}` saves no memory here: matrices are rounded as with \"{}\", but held in `{}`",
        base.name(),
        backend.precision.name()
    );
    let mut diagnostic = refuse(point, "contradiction", &key, message)
        .note("only runner's kernels multiply by fewer bits: on the processor, in `f32`");
    diagnostic.severity = Severity::Warning;
    Some(
        if device != Backend::Flex && backend.precision.num_bytes() <= 2 {
            diagnostic.help(format!(
                "remove `{key}`: `backend.precision` halves all weights"
            ))
        } else if device != Backend::Flex {
            diagnostic.help("set `backend.precision` to \"bf16\" or \"f16\", which halves all weights, or train on `flex`")
        } else if backend.precision == Precision::F32 {
            diagnostic.help("remove `backend.kernels`")
        } else {
            diagnostic.help("remove `backend.precision`, for `f32`")
        },
    )
}

pub fn updates_are_computed(point: &Point<'_>) -> Option<Diagnostic> {
    let is_hybrid = matches!(point.spec.strategy, StrategySpec::Hybrid(_));
    if point.spec.adapters.is_empty() || !is_hybrid {
        return None;
    }
    let message =
        "`strategy.type` \"hybrid\" predicts all weights, but those under adapters are frozen";
    let diagnostic = refuse(point, "contradiction", "strategy.type", message.to_owned());
    Some(diagnostic.help("use another strategy, or remove `[[adapters]]`"))
}

pub fn groups_name_trained_parameters(point: &Point<'_>) -> Option<Diagnostic> {
    let network = point.network?;
    if !network.has_adapters() {
        return None;
    }
    let mut groups = point.spec.optimizer.groups.iter().enumerate();
    groups.find_map(|(at, group)| {
        let named = network.named_parameters();
        let mut named = named.filter(|(_, path, _)| matches(&group.parameters, path));
        let (layer, first, _) = named.next()?;
        if !layer.freezes(&first) || named.any(|(layer, path, _)| !layer.freezes(&path)) {
            return None;
        }
        let key = format!("optimizer.groups[{at}].parameters");
        let message =
            format!("`optimizer.groups[{at}]` has no effect: `{first}` is frozen, as the network has adapters");
        let diagnostic = refuse(point, "contradiction", &key, message);
        Some(diagnostic.help(
            "name trained parameters, such as \"*.lora.b\", or train these with `train` in `[[adapters]]`",
        ))
    })
}
