//! How weights are drawn before the first step.

use serde::{Deserialize, Serialize};

use crate::spec::kind::Kind;
use crate::spec::section::{Section, choices};

/// A distribution of first weights. Fans are counted as Burn does: for a kernel, channels times its
/// area.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Initializer {
    /// Always this value.
    Constant {
        /// The value.
        value: f64,
    },
    /// Evenly from an interval.
    Uniform {
        /// Its lower end.
        min: f64,
        /// Its upper end.
        max: f64,
    },
    /// From a normal distribution.
    Normal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation.
        std: f64,
    },
    /// He et al., 2015, evenly from an interval.
    KaimingUniform {
        /// Multiplies the deviation.
        gain: f64,
        /// Whether the fan out is used in place of the fan in.
        fan_out: bool,
    },
    /// He et al., 2015, from a normal distribution.
    KaimingNormal {
        /// Multiplies the deviation.
        gain: f64,
        /// Whether the fan out is used in place of the fan in.
        fan_out: bool,
    },
    /// Glorot and Bengio, 2010, evenly from an interval.
    XavierUniform {
        /// Multiplies the deviation.
        gain: f64,
    },
    /// Glorot and Bengio, 2010, from a normal distribution.
    XavierNormal {
        /// Multiplies the deviation.
        gain: f64,
    },
    /// Saxe et al., 2013: orthogonal rows or columns.
    Orthogonal {
        /// Multiplies the matrix.
        gain: f64,
    },
}

choices! {
    /// The `type` of an initializer.
    enum InitializerType {
        KaimingUniform "kaiming_uniform" "He et al., 2015, evenly from an interval.",
        KaimingNormal "kaiming_normal" "He et al., 2015, from a normal distribution.",
        XavierUniform "xavier_uniform" "Glorot and Bengio, 2010, evenly from an interval.",
        XavierNormal "xavier_normal" "Glorot and Bengio, 2010, from a normal distribution.",
        Orthogonal "orthogonal" "Saxe et al., 2013: orthogonal rows or columns.",
        Uniform "uniform" "Evenly from an interval.",
        Normal "normal" "From a normal distribution.",
        Constant "constant" "Always the same value.",
        Zeros "zeros" "Always 0.",
        Ones "ones" "Always 1.",
    }
}

impl Initializer {
    /// The table `initializer` of a layer, if it is written.
    pub(in crate::spec) fn decode(s: &mut Section<'_>) -> Option<Self> {
        const DOC: &str = "How the first weights are drawn; without it as Burn's module does.";
        s.optional_table("initializer", DOC, |s| {
            s.variant("The distribution.", None, Self::of_type)
        })
    }

    fn of_type(s: &mut Section<'_>, kind: InitializerType) -> Self {
        let bounded = Kind::between(-1e6, 1e6);
        let mut number = |key, doc, default| s.field(key, bounded.clone(), doc).or(default);
        match kind {
            InitializerType::Zeros => return Initializer::Constant { value: 0.0 },
            InitializerType::Ones => return Initializer::Constant { value: 1.0 },
            InitializerType::Constant => {
                let value = number("value", "The value.", 0.0);
                return Initializer::Constant { value };
            }
            InitializerType::Uniform => {
                return Initializer::Uniform {
                    min: number("min", "Lower end.", -0.1),
                    max: number("max", "Upper end.", 0.1),
                };
            }
            InitializerType::Normal => {
                return Initializer::Normal {
                    mean: number("mean", "Mean.", 0.0),
                    std: s
                        .field("std", Kind::between(1e-12, 1e6), "Standard deviation.")
                        .or(0.02),
                };
            }
            _ => {}
        }
        let gain = s
            .field(
                "gain",
                Kind::between(1e-6, 1e6),
                "Multiplies the deviation.",
            )
            .or(1.0);
        let mut fan_out = || {
            let doc = "Whether the fan out is used in place of the fan in.";
            s.field("fan_out", Kind::Bool, doc).or(false)
        };
        match kind {
            InitializerType::KaimingNormal => Initializer::KaimingNormal {
                gain,
                fan_out: fan_out(),
            },
            InitializerType::XavierUniform => Initializer::XavierUniform { gain },
            InitializerType::XavierNormal => Initializer::XavierNormal { gain },
            InitializerType::Orthogonal => Initializer::Orthogonal { gain },
            _ => Initializer::KaimingUniform {
                gain,
                fan_out: fan_out(),
            },
        }
    }
}
