//! Networks in folders of model hubs.

use super::Point;
use crate::diagnostic::Diagnostic;

/// A last layer that is kept has a row for each class of the folder, in the folder's order.
pub fn classes_are_those_of_the_folder(point: &Point<'_>) -> Option<Diagnostic> {
    let hub = point.spec.init.as_ref()?.hub.as_ref()?;
    let classes = &point.data?.noticed.classes.as_ref()?.names;
    let theirs = &hub.labels;
    let is_comparable = !hub.is_head_new && classes.len() == theirs.len();
    if !is_comparable || classes == theirs {
        return None;
    }
    let listed = |names: &[String]| {
        let shown = names.iter().take(5).map(|name| format!("`{name}`"));
        let mut shown = shown.collect::<Vec<_>>().join(", ");
        if names.len() > 5 {
            shown += ", …";
        }
        shown
    };
    let sorted = |names: &[String]| {
        let mut names: Vec<String> = names.iter().map(|name| name.to_lowercase()).collect();
        names.sort();
        names
    };
    let at = point.span("model.path");
    let (ours, said) = (listed(classes), listed(theirs));
    let is_mixed_up = sorted(classes) == sorted(theirs)
        && classes
            .iter()
            .zip(theirs)
            .any(|(ours, theirs)| ours.to_lowercase() != theirs.to_lowercase());
    if is_mixed_up {
        let message = format!(
            "the classes of the data are {ours}, and the outputs of the folder {said}: the order differs"
        );
        let help = "set `head = \"new\"` in `[model]`, or rename the classes so that they sort like those of the folder";
        return Some(
            Diagnostic::error("contradiction", message)
                .at(at)
                .help(help),
        );
    }
    if sorted(classes) == sorted(theirs) {
        return None;
    }
    let message =
        format!("the classes of the data are {ours}, and the outputs of the folder {said}");
    let help = "set `head = \"new\"` in `[model]` to begin with random values in the last layer";
    Some(Diagnostic::warning("classes", message).at(at).help(help))
}

/// Adapters freeze everything else, and so a head that begins with random values.
pub fn new_heads_are_trained(point: &Point<'_>) -> Option<Diagnostic> {
    let hub = point.spec.init.as_ref()?.hub.as_ref()?;
    let network = point.network.filter(|network| network.has_adapters())?;
    if !hub.is_head_new {
        return None;
    }
    // The last one decides; a pooler before it may be in the file.
    let layers = network.layers.iter();
    let mut heads = layers.filter(|layer| hub.is_of_head(&format!("{}.weight", layer.name)));
    let head = heads.next_back()?;
    let is_trained = !head.adapters.is_empty() || head.frozen.is_empty();
    (!is_trained).then(|| {
        let name = &head.name;
        let message = format!(
            "`{name}` begins with random values and stays so: `[[adapters]]` freezes all other layers"
        );
        Diagnostic::warning("untrained", message)
            .at(point.span("model"))
            .help(format!("add `train = ['{name}.*']` to `[[adapters]]`"))
    })
}
