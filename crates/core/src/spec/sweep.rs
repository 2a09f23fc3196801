//! `[sweep]`: the keys that vary, and how.

use super::distribution::Distribution;
use super::document::{Entry, Node, Table, Value};
use super::kind::Kind;
use super::search::SearchSpec;
use super::section::{Findings, KeyDoc, Section, Shape, choices, collect_axes, read_at};
use crate::diagnostic::{Diagnostic, Span};

/// The `[sweep]` table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepSpec {
    /// Every combination of these, in file order.
    pub grid: Vec<AxisSpec>,
    /// These item by item.
    pub zip: Vec<AxisSpec>,
    /// Explicit trials; keys with their values.
    pub list: Vec<Vec<(String, Entry)>>,
    /// Sampled values.
    pub random: Option<RandomSpec>,
    /// Points that satisfy one of these are excluded.
    pub exclude: Vec<Text>,
    /// The maximum number of trials, and its place.
    pub limit: Option<(usize, Span)>,
    /// `[search]`: its points are suggested, instead of sampled at once.
    pub search: Option<SearchSpec>,
}

/// A varied key, or several that are set together, with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisSpec {
    /// The dotted key as written, or several separated by commas.
    pub key: String,
    /// The place of the key.
    pub key_span: Span,
    /// The list of values, not yet checked.
    pub values: Node,
    /// Its condition; none if not set.
    pub when: Option<Text>,
}

/// The `[sweep.random]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomSpec {
    /// Number of samples; 0 in a search.
    pub num_trials: usize,
    /// The seed.
    pub seed: u64,
    /// How points are spread.
    pub sampler: Sampler,
    /// The keys that a search replaces, with their places.
    pub written: Vec<(&'static str, Span)>,
    /// The random axes.
    pub axes: Vec<RandomAxisSpec>,
    /// The place of the table.
    pub span: Span,
}

/// A varied key, or several, with the distribution of its values.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomAxisSpec {
    /// Like [`AxisSpec`].
    pub key: String,
    /// The place of the key.
    pub key_span: Span,
    /// The place of the distribution.
    pub span: Span,
    /// The distribution.
    pub distribution: Distribution,
    /// Its condition; none if not set.
    pub when: Option<Text>,
}

/// A condition as written.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// The text.
    pub source: String,
    /// Its place.
    pub span: Span,
}

choices! {
    /// How random points are spread.
    pub enum Sampler {
        Sobol "sobol" "A Sobol sequence with Owen scrambling (Burley, 2020): points that cover the space evenly.",
        Uniform "uniform" "Independent points.",
    }
}

impl SweepSpec {
    /// The keys that differ between trials.
    pub fn keys(&self) -> Vec<String> {
        let axes = self.grid.iter().chain(&self.zip).map(|axis| &axis.key);
        let drawn = self.random.iter().flat_map(|random| &random.axes);
        let listed = self.list.iter().flatten().map(|(key, _)| key);
        let keys = axes.chain(drawn.map(|axis| &axis.key)).chain(listed);
        let mut all: Vec<String> = keys
            .flat_map(|key| key.split(','))
            .map(|key| key.trim().to_owned())
            .collect();
        all.sort();
        all.dedup();
        all
    }

    /// Refuses random axes without a number of samples.
    pub(super) fn refuse_no_trials(&self, findings: &mut Findings) {
        let key = "sweep.random.num_trials";
        let Some(random) = self.random.as_ref().filter(|random| random.num_trials == 0) else {
            return;
        };
        if !findings.is_poisoned(key) {
            let message = "missing key `num_trials` in `sweep.random`";
            let missing = Diagnostic::error("missing-key", message).at(random.span);
            let missing = missing.label("`num_trials` must be set here");
            let help = format!("add `num_trials = …`, {}", NUM_SAMPLES.expected());
            findings.refuse(key, missing.help(help));
        }
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Self {
        let grid = "Keys with lists of values; every combination is a trial. `{ values = […], when = \"…\" }` sets the key only in trials that satisfy the condition.";
        let zip = "Keys with lists of equal length, combined item by item.";
        let exclude = "Conditions over dotted keys, such as \"optimizer.type == 'sgd' and train.batch_size > 64\"; combinations that satisfy one are excluded.";
        Self {
            grid: axes(s, "grid", grid),
            zip: axes(s, "zip", zip),
            list: trials(s, "list", LIST),
            random: s.optional_table(
                "random",
                "Trials with sampled values; the same samples are used for every combination of the other axes.",
                RandomSpec::decode,
            ),
            exclude: Text::list(s, "exclude", Kind::Text, 0, exclude),
            limit: {
                let doc = "The maximum number of trials; the first ones are kept.";
                let limit: Option<usize> = s.field("limit", Kind::at_least(1), doc).optional();
                limit.zip(s.written_at("limit"))
            },
            search: None,
        }
    }
}

impl Text {
    /// The texts of a list of at least `min_items` different ones.
    pub(super) fn list(
        s: &mut Section<'_>,
        key: &'static str,
        item: Kind,
        min_items: usize,
        doc: &'static str,
    ) -> Vec<Self> {
        let kind = Kind::List {
            item: Box::new(item),
            min_items,
            unique: true,
        };
        let read: Option<Value> = s.field(key, kind, doc).optional();
        let text = |node: Node| match node.value {
            Value::Str(source) => Some(Self {
                source,
                span: node.span,
            }),
            _ => None,
        };
        match read {
            Some(Value::Array(items)) => items.into_iter().filter_map(text).collect(),
            _ => Vec::new(),
        }
    }

    /// The `when` key of an axis.
    pub(super) fn when(s: &mut Section<'_>) -> Option<Self> {
        let doc = "A condition over dotted keys, such as \"optimizer.type == 'sgd'\"; where it is false, the key keeps the value in the file.";
        let source: Option<String> = s.field("when", Kind::Text, doc).optional();
        let span = s.written_at("when")?;
        source.map(|source| Self { source, span })
    }
}

/// Whether a table has the ends of a range instead of lists of values.
fn is_range(table: &Table) -> bool {
    const ENDS: [&str; 8] = [
        "min", "max", "low", "high", "lower", "upper", "start", "stop",
    ];
    let is_number = |entry: &Entry| matches!(entry.node.value, Value::Int(_) | Value::Float(_));
    let mut ends = ENDS.iter().filter_map(|key| table.get(key));
    let holds = |entry: &Entry| matches!(entry.node.value, Value::Array(_) | Value::Table(_));
    ends.any(is_number) && !table.entries.iter().any(holds)
}

/// The axes of `grid` or `zip`.
fn axes(s: &mut Section<'_>, key: &'static str, doc: &'static str) -> Vec<AxisSpec> {
    let is_axis = |_: &Entry, table: &Table| {
        let condition = table.get("when").map(|entry| &entry.node.value);
        table.get("values").is_some() || matches!(condition, Some(Value::Str(_))) || is_range(table)
    };
    let example = "\"optimizer.learning_rate\" = [1e-3, 1e-2]";
    let entries = s.axes(key, doc, Shape::Axes, example, is_axis);
    let mut axes = Vec::new();
    for (path, entry) in entries {
        if let (Value::Table(table), Some((_, findings))) = (&entry.node.value, s.reading())
            && is_range(table)
        {
            let message =
                format!("the axis `{path}` of `[sweep.{key}]` is a range instead of a list");
            let wrong = Diagnostic::error("wrong-type", message).at(entry.node.span);
            let wrong = wrong
                .help(format!("list its values, such as `{example}`"))
                .help("or move it to `[sweep.random.axes]`, where values are sampled from distributions such as `{ type = \"log_uniform\", min = 1e-4, max = 1e-1 }`");
            findings.refuse(format!("sweep.{key}"), wrong);
            continue;
        }
        let mut read = (Some(entry.node.clone()), None);
        if let (Value::Table(table), Some((_, findings))) = (&entry.node.value, s.reading()) {
            let at = format!("sweep.{key}.{path}");
            let (values, when) = read_at(table, at, entry.key_span, findings, long_axis);
            read = (values.map(|entry| entry.node), when);
        }
        let (Some(values), when) = read else {
            continue;
        };
        axes.push(AxisSpec {
            key: path,
            key_span: entry.key_span,
            values,
            when,
        });
    }
    axes
}

fn long_axis(s: &mut Section<'_>) -> (Option<Entry>, Option<Text>) {
    let values = s.raw("values", "The values.", Shape::Values);
    let when = Text::when(s);
    let place = s.reading().map(|(span, _)| span);
    if let (None, Some(place)) = (&values, place) {
        let missing = Diagnostic::error("missing-key", "missing key `values` of an axis").at(place);
        let help = "add `values = […]`, the values of the axis";
        s.refuse("values", missing.help(help));
    }
    (values, when)
}

/// The keys of the long form of an axis, for the schema.
pub fn describe_long_axis() -> Vec<KeyDoc> {
    super::section::describe(long_axis)
}

/// The keys of a distribution, for the schema.
pub fn describe_distribution() -> Vec<KeyDoc> {
    super::section::describe(Distribution::decode)
}

const LIST: &str = "Explicit trials: tables of dotted keys with one value each.";

/// Such as `[[sweep.list]]`: each table sets the keys that it lists; an inline table is the value of its key.
pub(super) fn trials(
    s: &mut Section<'_>,
    key: &'static str,
    doc: &'static str,
) -> Vec<Vec<(String, Entry)>> {
    let path = s.path_of(key);
    let Some(entry) = s.raw(key, doc, Shape::Trials) else {
        return Vec::new();
    };
    let Some((_, findings)) = s.reading() else {
        return Vec::new();
    };
    let help = format!(
        "add `[[{path}]]` on a separate line for each trial, with keys such as `optimizer.type = \"sgd\"` below"
    );
    let mut refuse = |message: String, at| {
        let wrong = Diagnostic::error("wrong-type", message).at(at);
        findings.refuse(path.clone(), wrong.help(help.clone()));
    };
    let found = entry.node.value.kind();
    let Value::Array(items) = entry.node.value else {
        refuse(
            format!("`{path}` must be a list of tables, found {found}"),
            entry.key_span,
        );
        return Vec::new();
    };
    if items.is_empty() {
        refuse(format!("`{path}` is empty"), entry.node.span);
    }
    let mut trials = Vec::new();
    for (at, item) in items.into_iter().enumerate() {
        let Value::Table(table) = &item.value else {
            let found = item.value.kind();
            refuse(
                format!("`{path}[{at}]` must be a table, found {found}"),
                item.span,
            );
            continue;
        };
        let mut keys = Vec::new();
        collect_axes(table, "", &|entry, _| entry.is_inline(), &mut keys);
        trials.push(keys);
    }
    trials
}

/// The number of points and seeds of the Sobol sequence.
const NUM_SAMPLES: Kind = Kind::Int(1, 1 << 16);

impl RandomSpec {
    fn decode(s: &mut Section<'_>) -> Self {
        let doc = "Number of samples; required without `[search]`.";
        let num_trials = s.field("num_trials", NUM_SAMPLES, doc).optional();
        let doc = "Seed of the sampler.";
        let seed = s.field("seed", Kind::Int(0, u32::MAX.into()), doc).or(0);
        let doc = "How the samples are spread.";
        let sampler = s.choice("sampler", doc, Sampler::Sobol);
        let doc = "Keys with the distributions of their values. The order matters: adding an axis at the end keeps the samples of the others.";
        let example =
            "\"optimizer.learning_rate\" = { type = \"log_uniform\", min = 1e-4, max = 1e-1 }";
        let entries = s.axes(
            "axes",
            doc,
            Shape::Distributions,
            example,
            |entry, table| {
                let is_value = |entry: &Entry| !matches!(entry.node.value, Value::Table(_));
                let kind = table.get("type").map(|kind| &kind.node.value);
                let has_values = table.entries.iter().any(is_value);
                matches!(kind, Some(Value::Str(_))) || entry.is_inline() && has_values
            },
        );
        let written = ["num_trials", "seed", "sampler"].into_iter();
        let written = written
            .filter_map(|key| Some((key, s.written_at(key)?)))
            .collect();
        let Some((span, findings)) = s.reading() else {
            return Self::stand_in();
        };
        if entries.is_empty() && !findings.is_poisoned("sweep.random.axes") {
            let message = "`[sweep.random]` has no axes to sample";
            let help =
                format!("add `[sweep.random.axes]`, with lines such as `{example}` below it");
            let missing = Diagnostic::error("missing-table", message).at(span);
            findings.refuse("sweep.random", missing.help(help));
        }
        let mut axes = Vec::new();
        for (key, entry) in entries {
            match &entry.node.value {
                Value::Table(table) => {
                    axes.push(RandomAxisSpec::read(key, &entry, table, findings))
                }
                other => {
                    let help = match other {
                        Value::Array(_) => format!(
                            "use {{ type = \"choice\", values = {} }}, or move the axis to `[sweep.grid]`",
                            other.to_toml()
                        ),
                        _ => format!("use `{example}`"),
                    };
                    let message = format!(
                        "the random axis `{key}` must be a distribution, found {}",
                        other.kind()
                    );
                    let wrong = Diagnostic::error("wrong-type", message).at(entry.node.span);
                    findings.refuse("sweep.random", wrong.help(help));
                }
            }
        }
        Self {
            num_trials: num_trials.unwrap_or(0),
            seed,
            sampler,
            written,
            axes,
            span,
        }
    }

    fn stand_in() -> Self {
        Self {
            num_trials: 1,
            seed: 0,
            sampler: Sampler::Sobol,
            written: Vec::new(),
            axes: Vec::new(),
            span: Span::default(),
        }
    }
}

impl RandomAxisSpec {
    fn read(key: String, entry: &Entry, table: &Table, findings: &mut Findings) -> Self {
        let at = format!("sweep.random.axes.{key}");
        let (distribution, when) =
            read_at(table, at, entry.key_span, findings, Distribution::decode);
        Self {
            key,
            key_span: entry.key_span,
            span: if entry.is_inline() {
                entry.node.span
            } else {
                entry.key_span
            },
            distribution,
            when,
        }
    }
}
