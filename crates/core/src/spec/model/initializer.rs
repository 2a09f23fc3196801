//! Initialization of weights.

use serde::{Deserialize, Serialize};

use crate::spec::kind::Kind;
use crate::spec::section::{Section, choices};

/// A distribution of initial weights. Fans are counted as in Burn: for a kernel, channels times its area.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Initializer {
    /// A constant.
    Constant {
        /// The value.
        value: f64,
    },
    /// Uniform in an interval.
    Uniform {
        /// Its lower bound.
        min: f64,
        /// Its upper bound.
        max: f64,
    },
    /// Normally distributed.
    Normal {
        /// Its mean.
        mean: f64,
        /// Its standard deviation.
        std: f64,
    },
    /// He et al., 2015, uniform.
    KaimingUniform {
        /// Factor of the deviation.
        gain: f64,
        /// Whether to use fan-out instead of fan-in.
        fan_out: bool,
    },
    /// He et al., 2015, normal.
    KaimingNormal {
        /// Factor of the deviation.
        gain: f64,
        /// Whether to use fan-out instead of fan-in.
        fan_out: bool,
    },
    /// Glorot and Bengio, 2010, uniform.
    XavierUniform {
        /// Factor of the deviation.
        gain: f64,
    },
    /// Glorot and Bengio, 2010, normal.
    XavierNormal {
        /// Factor of the deviation.
        gain: f64,
    },
    /// Saxe et al., 2013: orthogonal rows or columns.
    Orthogonal {
        /// Factor of the matrix.
        gain: f64,
    },
}

choices! {
    /// The `type` of an initializer.
    enum InitializerType {
        KaimingUniform "kaiming_uniform" "Kaiming (He et al., 2015), uniform.",
        KaimingNormal "kaiming_normal" "Kaiming (He et al., 2015), normal.",
        XavierUniform "xavier_uniform" "Xavier (Glorot and Bengio, 2010), uniform.",
        XavierNormal "xavier_normal" "Xavier (Glorot and Bengio, 2010), normal.",
        Orthogonal "orthogonal" "Saxe et al., 2013: orthogonal rows or columns.",
        Uniform "uniform" "Uniform in an interval.",
        Normal "normal" "Normally distributed.",
        Constant "constant" "A constant.",
        Zeros "zeros" "Always 0.",
        Ones "ones" "Always 1.",
    }
}

impl Initializer {
    /// The table `initializer` of a layer, if it is set.
    pub(in crate::spec) fn decode(s: &mut Section<'_>) -> Option<Self> {
        const DOC: &str =
            "How initial weights are sampled; the default of Burn's module when not set.";
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
                    min: number("min", "Lower bound.", -0.1),
                    max: number("max", "Upper bound.", 0.1),
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
                "Factor that multiplies the deviation.",
            )
            .or(1.0);
        let mut fan_out = || {
            let doc = "Whether to use fan-out instead of fan-in.";
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
