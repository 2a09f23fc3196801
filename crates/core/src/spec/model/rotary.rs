//! Rotary position embeddings, and how they are stretched to longer sequences than a network was trained for.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::decode::MAX_SIZE;
use crate::diagnostic::Diagnostic;
use crate::spec::backend::Arithmetic;
use crate::spec::kind::Kind;
use crate::spec::section::{Choice, Section, choices};

/// Rotary position embeddings (Su et al., 2021).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rotary {
    /// Base of the frequencies.
    pub theta: f64,
    /// What positions are divided by (Chen et al., 2023), or those of slow rotations if `stretch` is set.
    pub scaling: f64,
    /// Which rotations are slowed down; all of them if not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stretch: Option<Stretch>,
}

/// How rotations are scaled by more than one number: slow ones are divided by the scaling and fast ones are kept, by how
/// often they turn in a length; or all depend on the length of a sequence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stretch {
    /// Which frequencies are between both.
    pub form: RotaryType,
    /// The number of positions that the network was trained for.
    pub length: usize,
    /// Rotations with fewer turns are divided by the scaling.
    pub low: f64,
    /// Rotations with more turns are kept.
    pub high: f64,
    /// What queries and keys are multiplied by.
    pub attention_factor: f64,
    /// What the rotation of each pair of features is divided by, in sequences of up to the length, and in longer ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub short: Vec<f64>,
    /// See `short`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub long: Vec<f64>,
}

choices! {
    /// How rotations are scaled.
    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum RotaryType {
        Linear "linear" "All positions are divided by `rotary_scaling` (Chen et al., 2023).",
        Llama3 "llama3" "Slow rotations are divided by `rotary_scaling`, fast ones are kept, as in Llama 3.1.",
        Yarn "yarn" "The same with a ramp over the features, and scores that are multiplied (YaRN; Peng et al., 2023).",
        Dynamic "dynamic" "In sequences of more than `rotary_length` positions, the base grows with their length, and with `rotary_scaling` (dynamic NTK scaling).",
        Longrope "longrope" "The rotation of each pair of features is divided by a number of its own: another one in sequences of more than `rotary_length` positions (LongRoPE; Ding et al., 2024).",
    }
}

impl RotaryType {
    /// Whether rotations depend on the length of a sequence.
    pub fn depends_on_length(self) -> bool {
        matches!(self, Self::Dynamic | Self::Longrope)
    }

    /// Whether slow rotations are told from fast ones.
    fn has_turns(self) -> bool {
        matches!(self, Self::Llama3 | Self::Yarn)
    }
}

impl Rotary {
    /// By how much each pair of `size` features is rotated from one position to the next, in sequences with this many
    /// positions, before positions are divided.
    pub fn frequencies(&self, size: usize, positions: usize, arithmetic: Arithmetic) -> Vec<f64> {
        let pairs = size / 2;
        let of_base =
            |base: f64| move |pair: usize| arithmetic.pow(base, -2.0 * pair as f64 / size as f64);
        let plain = of_base(self.theta);
        let Some(stretch) = &self.stretch else {
            return (0..pairs).map(plain).collect();
        };
        let is_longer = positions > stretch.length;
        match stretch.form {
            RotaryType::Dynamic => {
                let times = positions.max(stretch.length) as f64 / stretch.length as f64;
                let growth = self.scaling * times - (self.scaling - 1.0);
                let power = size as f64 / (size as f64 - 2.0);
                let base = self.theta * arithmetic.pow(growth, power);
                return (0..pairs).map(of_base(base)).collect();
            }
            RotaryType::Longrope => {
                let factors = if is_longer {
                    &stretch.long
                } else {
                    &stretch.short
                };
                let each = (0..pairs).zip(factors);
                return each.map(|(pair, factor)| plain(pair) / factor).collect();
            }
            RotaryType::Linear | RotaryType::Llama3 | RotaryType::Yarn => {}
        }
        let kept = stretch.kept(self.theta, size, arithmetic);
        let of_pair = |pair: usize| {
            let (frequency, kept) = (plain(pair), kept(pair, plain(pair)));
            frequency / self.scaling * (1.0 - kept) + frequency * kept
        };
        (0..pairs).map(of_pair).collect()
    }

    /// By how much a pair with this frequency is rotated at a position.
    pub fn angle(&self, position: usize, frequency: f64) -> f64 {
        let divisor = if self.stretch.is_some() {
            1.0
        } else {
            self.scaling
        };
        position as f64 / divisor * frequency
    }

    /// What queries and keys are multiplied by.
    pub fn attention_factor(&self) -> f64 {
        self.stretch
            .as_ref()
            .map_or(1.0, |stretch| stretch.attention_factor)
    }

    /// How rotations are scaled.
    pub fn form(&self) -> RotaryType {
        self.stretch
            .as_ref()
            .map_or(RotaryType::Linear, |stretch| stretch.form)
    }

    pub(super) fn decode(s: &mut Section<'_>) -> Option<Self> {
        let doc = "Whether queries and keys are rotated by their position, the first half of a head's features with the second, as in LLaMA.";
        let is_rotary = s.field("rotary", Kind::Bool, doc).or(false);
        let doc = "For `rotary`: base of the frequencies.";
        let theta = s.field("theta", Kind::positive(), doc).or(10_000.0);
        let doc = "For `rotary`: what positions are divided by, to attend over longer sequences than a network was trained for.";
        let scaling = s.field("rotary_scaling", Kind::positive(), doc).or(1.0);
        let doc = "For `rotary`: which rotations `rotary_scaling` slows down.";
        let form = s.choice("rotary_type", doc, RotaryType::Linear);
        let stretch = Stretch::decode(s, (is_rotary, form), (theta, scaling));
        let keys = ["theta", "rotary_scaling", "rotary_type"];
        for key in keys.into_iter().chain(Stretch::KEYS) {
            if !is_rotary {
                s.refuse_unused(key, "without `rotary`", "`rotary = true`");
            }
        }
        is_rotary.then_some(Self {
            theta,
            scaling,
            stretch,
        })
    }
}

impl Stretch {
    const KEYS: [&str; 6] = [
        "rotary_length",
        "rotary_low",
        "rotary_high",
        "rotary_attention_factor",
        "rotary_short",
        "rotary_long",
    ];

    /// The factor of YaRN's paper for a scaling.
    pub fn usual_factor(scaling: f64) -> f64 {
        if scaling <= 1.0 {
            1.0
        } else {
            0.1 * libm::log(scaling) + 1.0
        }
    }

    /// The factor of LongRoPE's paper for a scaling of a length.
    pub fn usual_long_factor(scaling: f64, length: usize) -> f64 {
        if scaling <= 1.0 || length < 2 {
            1.0
        } else {
            (1.0 + libm::log(scaling) / libm::log(length as f64)).sqrt()
        }
    }

    /// For each pair of features and its frequency, how much of the frequency is kept, from 0 to 1.
    fn kept(
        &self,
        theta: f64,
        size: usize,
        arithmetic: Arithmetic,
    ) -> impl Fn(usize, f64) -> f64 + use<> {
        let Self {
            form,
            length,
            low,
            high,
            ..
        } = *self;
        let length = length as f64;
        // The pair that turns this often, as a number of features.
        let pair = |turns: f64| {
            let log = |x: f64| arithmetic.log10(x);
            size as f64 * log(length / (turns * TAU)) / (2.0 * log(theta))
        };
        let first = pair(high).floor().max(0.0);
        let last = pair(low).ceil().min(size as f64 - 1.0);
        let last = if first == last { last + 0.001 } else { last };
        move |pair, frequency| {
            let kept = if form == RotaryType::Yarn {
                1.0 - (pair as f64 - first) / (last - first)
            } else {
                (length * frequency / TAU - low) / (high - low)
            };
            kept.clamp(0.0, 1.0)
        }
    }

    fn decode(
        s: &mut Section<'_>,
        (is_rotary, form): (bool, RotaryType),
        (theta, scaling): (f64, f64),
    ) -> Option<Self> {
        let doc = "For all `rotary_type` except \"linear\", required: the number of positions that the network was trained for.";
        let length = s.field("rotary_length", Kind::Int(1, MAX_SIZE), doc);
        let length: usize = if is_rotary && form != RotaryType::Linear {
            length.required()
        } else {
            length.optional().unwrap_or(1)
        };
        let doc = "For \"llama3\" and \"yarn\": rotations that turn less often in `rotary_length` positions are divided by `rotary_scaling`.";
        let low: f64 = s.field("rotary_low", Kind::positive(), doc).or(1.0);
        let doc = "For \"llama3\" and \"yarn\": rotations that turn more often in `rotary_length` positions are kept; 4 for \"llama3\" and 32 for \"yarn\" when not set.";
        let high: Option<f64> = s.field("rotary_high", Kind::positive(), doc).optional();
        let usual = if form == RotaryType::Yarn { 32.0 } else { 4.0 };
        let high = high.unwrap_or(usual);
        let doc = "For \"yarn\" and \"longrope\": what queries and keys are multiplied by; 0.1 ln(`rotary_scaling`) + 1 for \"yarn\", and √(1 + ln(`rotary_scaling`) / ln(`rotary_length`)) for \"longrope\" when not set.";
        let factor = s.field("rotary_attention_factor", Kind::positive(), doc);
        let factor: Option<f64> = factor.optional();
        let is_long = is_rotary && form == RotaryType::Longrope;
        let mut factors = |key, doc| {
            let field = s.field(key, Kind::list(Kind::positive(), 1), doc);
            if is_long {
                field.required()
            } else {
                field.optional().unwrap_or_default()
            }
        };
        let short: Vec<f64> = factors(
            "rotary_short",
            "For \"longrope\", required: what the rotation of each pair of a head's features is divided by, in sequences of up to `rotary_length` positions.",
        );
        let long: Vec<f64> = factors(
            "rotary_long",
            "For \"longrope\", required: the same for longer sequences.",
        );
        if !is_rotary {
            return None;
        }
        Self::refuse_unused(s, form);
        if form == RotaryType::Linear {
            return None;
        }
        let at = s.written_at("rotary_high").or(s.written_at("rotary_low"));
        if let (true, Some(at)) = (form.has_turns() && low >= high, at) {
            let message =
                format!("`rotary_low` is {low}, which is not below `rotary_high`, {high}");
            let wrong = Diagnostic::error("contradiction", message).at(at);
            let help = format!("set `rotary_low = 1.0` and `rotary_high = {usual:?}`");
            s.refuse("rotary_high", wrong.help(help));
        }
        if let (true, Some(at)) = (
            form == RotaryType::Yarn && theta <= 1.0,
            s.written_at("theta"),
        ) {
            let message =
                format!("`theta` is {theta}, with which \"yarn\" finds no slow rotations");
            let wrong = Diagnostic::error("contradiction", message).at(at);
            s.refuse(
                "theta",
                wrong.help("use a number above 1, such as `theta = 10000.0`"),
            );
        }
        Some(Self {
            form,
            length,
            low,
            high,
            attention_factor: factor.unwrap_or_else(|| match form {
                RotaryType::Yarn => Self::usual_factor(scaling),
                RotaryType::Longrope => Self::usual_long_factor(scaling, length),
                _ => 1.0,
            }),
            short,
            long,
        })
    }

    fn refuse_unused(s: &mut Section<'_>, form: RotaryType) {
        let [length, low, high, factor, short, long] = Self::KEYS;
        let used: &[&str] = match form {
            RotaryType::Linear => &[],
            RotaryType::Llama3 => &[length, low, high],
            RotaryType::Yarn => &[length, low, high, factor],
            RotaryType::Dynamic => &[length],
            RotaryType::Longrope => &[length, factor, short, long],
        };
        for key in Self::KEYS.into_iter().filter(|key| !used.contains(key)) {
            let other = match key {
                "rotary_attention_factor" => "yarn",
                "rotary_short" | "rotary_long" => "longrope",
                _ => "llama3",
            };
            let why = format!("with `rotary_type = \"{}\"`", form.name());
            s.refuse_unused(key, &why, &format!("`rotary_type = \"{other}\"`"));
        }
    }
}
