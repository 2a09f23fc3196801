//! Parts of a program that uses runner as a library: types of layers, losses, optimizers, schedules, strategies,
//! metrics and data sources.
//!
//! A program installs its parts once, before anything is read ([`install`]). They are decoded, explained, planned and
//! recorded as the built-in types are. The functions of a part are its author's code: a panic in one of them becomes a
//! message that names the part.

mod data;
mod keys;
mod layer;
mod metric;
mod panics;
mod training;

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::section::{Choice, Section, Types};
use crate::diagnostic::{Diagnostic, Reason};
pub use data::{AnyData, OwnData};
pub use layer::{AnyLayer, Dims, LayerExample, Own, OwnLayer, Parameter, Planned, Unfit};
pub use metric::{MetricName, OwnMetric};
pub use training::{
    AnySchedule, OwnLoss, OwnOptimizer, OwnSchedule, OwnStrategy, Place, SchedulePart, factor,
    schedule,
};

/// The settings of a part, as it serializes them.
pub type Settings = Map<String, Json>;

/// What every part has.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The `type` in the file.
    pub name: &'static str,
    /// Its meaning, as one sentence.
    pub doc: &'static str,
    /// Reads its keys.
    pub decode: fn(&mut Section<'_>) -> Settings,
}

/// The parts of a program.
#[derive(Clone, Default)]
pub struct Parts {
    /// Layer types.
    pub layers: Vec<OwnLayer>,
    /// Losses.
    pub losses: Vec<OwnLoss>,
    /// Optimizers.
    pub optimizers: Vec<OwnOptimizer>,
    /// Learning rate schedules.
    pub schedules: Vec<OwnSchedule>,
    /// Strategies.
    pub strategies: Vec<OwnStrategy>,
    /// Metrics.
    pub metrics: Vec<OwnMetric>,
    /// Data sources.
    pub data: Vec<OwnData>,
    /// What the program does at each event of a training.
    pub on_event: Option<&'static (dyn Any + Send + Sync)>,
}

impl fmt::Debug for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("layers", &names(&self.layers))
            .field("losses", &names(&self.losses))
            .field("optimizers", &names(&self.optimizers))
            .field("schedules", &names(&self.schedules))
            .field("strategies", &names(&self.strategies))
            .field("metrics", &names(&self.metrics))
            .field("data", &names(&self.data))
            .field("on_event", &self.on_event.is_some())
            .finish()
    }
}

fn names<P: Part>(parts: &[P]) -> Vec<&'static str> {
    parts.iter().map(|part| part.entry().name).collect()
}

/// A kind of part.
pub trait Part: Sized + 'static {
    /// What it is called in messages.
    const KIND: &'static str;

    /// Those of a program.
    fn of(parts: &Parts) -> &[Self];

    /// Its name and keys.
    fn entry(&self) -> &Entry;

    /// Those of this program.
    fn installed() -> &'static [Self] {
        PARTS.get().map_or(&[], Self::of)
    }

    /// The one of a name, if this program has it.
    fn named(name: &str) -> Option<&'static Self> {
        let mut installed = Self::installed().iter();
        installed.find(|part| part.entry().name == name)
    }

    /// Why this program cannot compute with the one of a name, if it cannot.
    fn missing(name: &str) -> Option<String> {
        let kind = Self::KIND;
        let message = || format!("the {kind} `{name}` is not part of this program");
        Self::named(name).is_none().then(message)
    }

    /// The message about a promise that the one of a name broke.
    fn broken(name: &str, promise: impl fmt::Display) -> String {
        let kind = Self::KIND;
        format!("the {kind} `{name}` of this program broke its promise: {promise}")
    }

    /// Runs code of the one of a name.
    ///
    /// # Errors
    /// A message that names the part, if it panicked.
    fn guarded<T>(name: &str, when: &str, run: impl FnOnce() -> T) -> Result<T, String> {
        panics::caught(run).map_err(|(payload, place)| {
            let panicked = panicked(Self::KIND, name, when, &*payload);
            // A message about a part that this one ran has its own.
            let is_about_other = panicked.matches("of this program").count() > 1;
            let place = place.filter(|_| !is_about_other);
            place.map_or(panicked.clone(), |place| format!("{panicked} ({place})"))
        })
    }

    /// The settings in a table.
    fn decode(&self, s: &mut Section<'_>) -> Settings {
        let settings = self.reported(s, |s| (self.entry().decode)(s));
        // TOML, the format of plans, has no null.
        let set = settings.into_iter().filter(|(_, value)| !value.is_null());
        set.collect()
    }

    /// Runs code of the part for a table. If it panics, that is a finding about the table.
    fn reported<T: Default>(
        &self,
        s: &mut Section<'_>,
        run: impl FnOnce(&mut Section<'_>) -> T,
    ) -> T {
        let name = self.entry().name;
        let done = Self::guarded(name, "while reading its keys", || run(s));
        done.unwrap_or_else(|panicked| {
            if let Some((span, findings)) = s.reading() {
                let wrong = Diagnostic::error("own-part", panicked).at(span);
                findings.diagnostics.push(wrong.help(REMEDY));
            }
            T::default()
        })
    }
}

/// A part as an experiment uses it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Used {
    /// The `type` in the file.
    pub part: String,
    /// Its settings as decoded.
    pub settings: Settings,
}

impl Used {
    pub(super) fn decode(s: &mut Section<'_>, part: &impl Part) -> Self {
        Self {
            part: part.entry().name.to_owned(),
            settings: part.decode(s),
        }
    }

    /// The part.
    ///
    /// # Panics
    /// If this program does not have it.
    pub fn installed<P: Part>(&self) -> &'static P {
        P::named(&self.part).unwrap_or_else(|| panic!("the {} `{}` is missing", P::KIND, self.part))
    }
}

static PARTS: OnceLock<Parts> = OnceLock::new();

/// What the program does at each event of a training, if it does anything.
pub fn on_event() -> Option<&'static (dyn Any + Send + Sync)> {
    PARTS.get()?.on_event
}

/// Whether this program has parts that `runner` does not have.
pub fn is_extended() -> bool {
    PARTS.get().is_some_and(|parts| {
        !(parts.layers.is_empty()
            && parts.losses.is_empty()
            && parts.optimizers.is_empty()
            && parts.schedules.is_empty()
            && parts.strategies.is_empty()
            && parts.metrics.is_empty()
            && parts.data.is_empty())
    })
}

/// Installs the parts of the program, once, before any file is read.
///
/// # Errors
/// If a name cannot be a type or a key, is taken, or something was installed before.
pub fn install(parts: Parts) -> Result<(), Reason> {
    let layers = super::model::layer::built_in_types();
    are_new(&parts.layers, layers.chain(["sequence", "layers"]))?;
    are_new(&parts.losses, names_of::<super::loss::LossKind>())?;
    are_new(&parts.optimizers, super::method::built_in_types())?;
    are_new(&parts.schedules, super::scheduler::built_in_types())?;
    are_new(&parts.strategies, super::strategy::built_in_types())?;
    are_new(&parts.metrics, names_of::<super::metric::Metric>())?;
    are_new(&parts.data, names_of::<super::data::DataKind>())?;
    PARTS
        .set(parts)
        .map_err(|_| Reason("the parts of this program were already installed".into()))?;
    if is_extended() {
        panics::tell_by_message();
        keys::are_new()?;
    }
    Ok(())
}

pub(super) fn names_of<T: Choice>() -> impl Iterator<Item = &'static str> {
    T::ALL.iter().map(|(_, name, _)| *name)
}

/// Whether a part can have a name: lowercase letters, digits and `_`.
fn is_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(is_fine)
}

/// Parts with names that can be types and are not taken.
fn are_new<P: Part>(
    parts: &[P],
    built_in: impl Iterator<Item = &'static str>,
) -> Result<(), Reason> {
    let (kind, mut taken) = (P::KIND, built_in.collect::<Vec<_>>());
    for name in names(parts) {
        if !is_name(name) {
            let example = kind.split(' ').next().unwrap_or_default();
            return Err(Reason(format!(
                "the {kind} cannot be named `{name}`: use lowercase letters, digits and `_`, such as \"my_{example}\""
            )));
        }
        if taken.contains(&name) {
            return Err(Reason(format!(
                "the {kind} `{name}` already exists: choose another name"
            )));
        }
        taken.push(name);
    }
    Ok(())
}

/// The settings of a part as recorded.
///
/// # Panics
/// If they are not a struct that can be serialized.
pub fn recorded(settings: &impl Serialize) -> Settings {
    match serde_json::to_value(settings) {
        Ok(Json::Object(settings)) => settings,
        // A unit struct: a part without settings.
        Ok(Json::Null) => Settings::new(),
        Ok(other) => panic!("its settings must be a struct, and serialize to {other}"),
        Err(e) => panic!("its settings cannot be serialized: {e}"),
    }
}

/// Recorded settings as the part's type.
///
/// # Panics
/// If they are not those of the type.
pub fn restored<T: DeserializeOwned>(settings: &Settings) -> T {
    let object = serde_json::from_value(Json::Object(settings.clone()));
    // A unit struct is not an object.
    let restored = object.or_else(|e| {
        let unit = settings
            .is_empty()
            .then(|| serde_json::from_value(Json::Null));
        unit.and_then(Result::ok).ok_or(e)
    });
    restored.unwrap_or_else(|e| panic!("its settings cannot be deserialized: {e}"))
}

pub(crate) const REMEDY: &str = "correct the part in the source of this program";

/// The message about a panic in a part.
pub fn panicked(kind: &str, name: &str, when: &str, payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or(payload.downcast_ref::<String>().map(String::as_str));
    let text = text.unwrap_or("a panic without a message");
    format!("the {kind} `{name}` of this program panicked {when}: {text}")
}

/// A type, built in or of the program.
#[derive(Debug)]
pub enum OrOwn<B, P: 'static> {
    /// Built in.
    BuiltIn(B),
    /// Of the program.
    Own(&'static P),
}

impl<B: Copy, P> Clone for OrOwn<B, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Copy, P> Copy for OrOwn<B, P> {}

impl<B: PartialEq, P: Part> PartialEq for OrOwn<B, P> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::BuiltIn(a), Self::BuiltIn(b)) => a == b,
            (Self::Own(a), Self::Own(b)) => a.entry().name == b.entry().name,
            _ => false,
        }
    }
}

impl<B: Types, P: Part> Types for OrOwn<B, P> {
    fn all() -> Vec<(Self, &'static str, &'static str)> {
        let built_in = B::all().into_iter();
        let built_in = built_in.map(|(kind, name, doc)| (Self::BuiltIn(kind), name, doc));
        let own = P::installed().iter();
        let own = own.map(|part| (Self::Own(part), part.entry().name, part.entry().doc));
        built_in.chain(own).collect()
    }
}
